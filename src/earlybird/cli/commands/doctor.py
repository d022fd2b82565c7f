"""`earlybird doctor`: what this machine can run and measure; each "no" with its cause and remedy."""

from typing import Any

from earlybird import __version__
from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.cli.output.printing import print_json, print_line, print_table
from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.units import format_bytes
from earlybird.machine import flavours, hardware
from earlybird.machine.abilities import abilities
from earlybird.toolchain.build import features, is_built

_COLUMNS = ("MPI", "version", "native code", "partitioned", "path or remedy")
# The meaning of an unqualified "yes".
_MEANS = {
    "intra_socket": "ranks on one socket have a core each",
    "inter_socket": "ranks on different sockets have a core each",
    "virtual_cluster": "start nodes with `earlybird cluster up`, then give --launcher cluster:virtual",
    "simulation": "simulate machines of many nodes with SimGrid: give --launcher simgrid:2x2x64, for example",
    "undisturbed_cores": "no load, CPU limit or slow frequency governor was found",
    "single_copy": "ranks may read each other's memory",
}


def doctor(json: bool = AS_JSON) -> None:
    """Report what this machine can run and measure; each "no" with its cause and remedy."""
    rows = [_flavour(name) for name in flavours.NAMES]
    machine = hardware.describe()
    can = {name: ability.to_json() for name, ability in abilities().items()}
    if json:
        present = [flavour for flavour in rows if flavour["mpicc"]]
        print_json({"earlybird": __version__, "flavours": present} | machine | {"can": can})
        return
    print_line(
        f"{machine['cpu_model']}: {counted(machine['cores'], 'core')} on "
        f"{counted(machine['sockets'], 'socket')}, {format_bytes(machine['memory_bytes'])} of memory, "
        f"{machine['kernel']}, load {machine['load']}"
    )
    print_line(
        "caches: "
        + ", ".join(f"L{c['level']} {format_bytes(c['size_bytes'])}" for c in machine["caches"])
        + "\n"
    )
    print_table(_COLUMNS, [_row(flavour) for flavour in rows], left=(_COLUMNS[0], _COLUMNS[-1]))
    print_line()
    for name, ability in can.items():
        text = "; ".join(filter(None, [ability["cause"], ability["remedy"]])) or _MEANS.get(name, "")
        print_line(f"{'yes' if ability['can'] else 'no ':<4}{name:<18}{text}".rstrip())


def _flavour(name: str) -> dict[str, Any]:
    try:
        flavour = flavours.find_flavour(name)
    except InputError as error:
        return {"name": name, "version": "", "mpicc": "", "built": False, "remedy": str(error)}
    return {
        "name": name,
        "version": flavour.version,
        "mpicc": str(flavour.mpicc),
        "mpiexec": str(flavour.mpiexec),
        "env": dict(flavour.env),
        "built": is_built(flavour),
        "features": features(flavour),
    }


def _row(flavour: dict[str, Any]) -> list[str]:
    name = flavour["name"]
    if not flavour["mpicc"]:
        if name == flavours.SIMULATED:
            return [name, "-", "-", "-", "optional; see simulation below"]
        remedy = f"earlybird build --mpi {name}" if name in flavours.WHEELS else "no mpicc on PATH"
        return [name, "-", "-", "-", remedy]
    if not flavour["built"]:
        return [name, flavour["version"], "not built", "-", f"earlybird build --mpi {name}"]
    partitioned = "yes" if flavour["features"].get("has_partitioned") else "no"
    return [name, flavour["version"], "built", partitioned, flavour["mpicc"]]


command = make_command(doctor, name="doctor", example="earlybird doctor --json")
