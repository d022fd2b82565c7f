"""`earlybird doctor`: what this machine can run and measure; each "no" with its cause and remedy."""

from typing import Any

from earlybird import __version__
from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.data.errors import InputError
from earlybird.data.labels import FLAVOURS, counted
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes
from earlybird.machine import flavours, hardware
from earlybird.machine.abilities import abilities
from earlybird.machine.commands import find_command
from earlybird.machine.discovery import ANSWER_LIMIT_S, Unusable, find_mpis, same_mpi
from earlybird.machine.home import home, homes
from earlybird.present.render.data import print_json
from earlybird.present.render.terminal import print_line, print_rows
from earlybird.toolchain.build import features, is_built

_COLUMNS = ("MPI", "family", "version", "launcher", "native code", "partitioned", "path or remedy")
_LEFT = ("MPI", "family", "launcher", "path or remedy")
# The meaning of an unqualified "yes".
_MEANS = {
    "intra_socket": "ranks on one socket have a core each",
    "inter_socket": "ranks on different sockets have a core each",
    "virtual_cluster": "start nodes with `earlybird cluster up`, then give --launcher cluster:virtual",
    "simulation": "simulate machines of many nodes with SimGrid: give --launcher simgrid:2x2x64, for example",
    "undisturbed_cores": "no load, CPU limit or slow frequency governor was found",
    "single_copy": "ranks may read each other's memory",
    "shared_memory": "ranks of a node may share memory",
}


def doctor(json: bool = AS_JSON) -> None:
    """Report what this machine can run and measure; each "no" with its cause and remedy."""
    present, absent = [], {}
    for name in flavours.NAMES:
        try:
            present.append(flavours.find_flavour(name, ANSWER_LIMIT_S))
        except InputError as error:
            absent[name] = str(error)
    # `system` may be built under a name of its own, such as mpicc.openmpi.
    others, unusable = find_mpis(
        [flavour for flavour in present if flavour.name != "system" or is_built(flavour)]
    )
    others = [flavour for flavour in others if is_built(flavour) or not _is_system(flavour, present)]
    machine = hardware.describe()
    can = {name: ability.to_json() for name, ability in abilities().items()}
    if json:
        mpis = {
            "homes": [str(folder) for folder in homes()],
            "flavours": [_to_json(flavour) for flavour in (*present, *others)],
            "unusable": [{"mpicc": str(mpicc), "cause": cause} for mpicc, cause in unusable],
        }
        print_json({"earlybird": __version__} | mpis | machine | {"can": can})
        return
    print_line(
        f"{machine['cpu_model']}: {counted(machine['cores'], 'core')} on "
        f"{counted(machine['sockets'], 'socket')}, {format_bytes(machine['memory_bytes'])} of memory, "
        f"{machine['kernel']}, load {machine['load']}"
    )
    print_line(
        "caches: " + ", ".join(f"L{c['level']} {format_bytes(c['size_bytes'])}" for c in machine["caches"])
    )
    print_line()
    named = {flavour.name: flavour for flavour in present}
    rows = [
        _row(named[name]) if name in named else _absent_row(name, absent[name]) for name in flavours.NAMES
    ]
    rows += [_row(flavour) for flavour in others] + [_unusable_row(mpi) for mpi in unusable]
    print_rows(_COLUMNS, rows, left=_LEFT)
    shared = [str(folder) for folder in homes()[1:] if folder.is_dir()]
    also = f"; those in {', '.join(shared)} are used, too" if shared else ""
    print_line()
    print_line(f"builds are written to {home()}{also}")
    print_line()
    for name, ability in can.items():
        text = "; ".join(filter(None, [ability["cause"], ability["remedy"]])) or _MEANS.get(name, "")
        print_line(f"{'yes' if ability['can'] else 'no ':<4}{name:<18}{text}".rstrip())


def _is_system(flavour: flavours.Flavour, present: list[flavours.Flavour]) -> bool:
    """Return whether it is the MPI of the mpicc on PATH."""
    return any(same_mpi(flavour, other) for other in present if other.name == "system")


def _to_json(flavour: flavours.Flavour) -> dict[str, Any]:
    return {
        "name": flavour.name,
        "family": flavour.family,
        "version": flavour.version,
        "mpicc": str(flavour.mpicc),
        "mpiexec": str(flavour.mpiexec),
        "env": dict(flavour.env),
        "built": is_built(flavour),
        "features": features(flavour),
    }


def _row(flavour: flavours.Flavour) -> list[str]:
    mpiexec = flavour.mpiexec
    launcher = mpiexec.name if mpiexec.parent == flavour.mpicc.parent else str(mpiexec)
    identity = [flavour.name, FLAVOURS[flavour.family], flavour.version, launcher]
    if not is_built(flavour):
        return [*identity, "not built", "-", f"earlybird build --mpi {quoted(flavour.name)}"]
    partitioned = "yes" if features(flavour).get("has_partitioned") else "no"
    return [*identity, "built", partitioned, flavour.warning or str(flavour.mpicc)]


def _absent_row(name: str, cause: str) -> list[str]:
    family = FLAVOURS[name] if name != "system" else "-"
    if name == flavours.SIMULATED:
        remedy = "optional; see simulation below"
    elif name in flavours.WHEELS:
        remedy = f"earlybird build --mpi {name}"
    else:
        remedy = cause if find_command("mpicc") else "no mpicc on PATH"
    return [name, family, "-", "-", "-", "-", remedy]


def _unusable_row(mpi: Unusable) -> list[str]:
    return [str(mpi.mpicc), "-", "-", "-", "unusable", "-", mpi.cause]


command = make_command(doctor, name="doctor", example="earlybird doctor --json")
