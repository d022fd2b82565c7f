"""How each family of mpiexec is told the number of ranks, their hosts and their cores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from earlybird.launch.placement import Binding
from earlybird.machine.flavours import Flavour


@dataclass(frozen=True)
class Invocation:
    """The words before the program, and the variables to set."""

    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


def invocation(
    flavour: Flavour,
    num_ranks: int,
    binding: Binding,
    folder: Path,
    *,
    oversubscribed: bool,
    hosts: Sequence[str] = (),
) -> Invocation:
    """Start `num_ranks` ranks bound as `binding` says; `hosts` gives the host of every rank, none means this
    machine.

    Placement is always set, because the defaults differ (hydra binds nothing, Open MPI and Intel MPI bind by
    rules of their own). Waiting ranks yield their core when ranks outnumber cores.
    """
    make = {"mpich": _mpich, "intel": _intel, "openmpi": _openmpi}[flavour.family]
    return make(flavour, num_ranks, binding, folder, oversubscribed, hosts)


def _mpich(flavour, num_ranks, binding, folder, oversubscribed, hosts) -> Invocation:
    words = [str(flavour.mpiexec), "-n", str(num_ranks)]
    if hosts:
        words += ["-f", str(_machine_file(folder, hosts))]
    words += ["-bind-to", "user:" + ",".join(map(str, binding.cpus)) if binding.cpus else "core"]
    # Found to make waiting ranks of MPICH 5.0.2 give up their core.
    return Invocation(tuple(words), {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"} if oversubscribed else {})


def _intel(flavour, num_ranks, binding, folder, oversubscribed, hosts) -> Invocation:
    words = [str(flavour.mpiexec), "-n", str(num_ranks)]
    env = {"I_MPI_PIN": "1"}
    if hosts:
        words += ["-f", str(_machine_file(folder, hosts))]
    if binding.cpus:
        env["I_MPI_PIN_DOMAIN"] = "[" + ",".join(hex(1 << cpu) for cpu in binding.cpus) + "]"
    else:
        env |= {"I_MPI_PIN_DOMAIN": "core", "I_MPI_PIN_ORDER": "compact"}
    if not hosts:
        env["I_MPI_FABRICS"] = "shm"
    if oversubscribed:
        env["I_MPI_THREAD_YIELD"] = "2"
    return Invocation(tuple(words), env)


def _openmpi(flavour, num_ranks, binding, folder, oversubscribed, hosts) -> Invocation:
    words = [str(flavour.mpiexec), "-n", str(num_ranks)]
    env = {"OMPI_MCA_mpi_yield_when_idle": "1"} if oversubscribed else {}
    if hosts:
        words += ["--hostfile", str(_host_file(folder, hosts))]
    modifier = ":OVERSUBSCRIBE" if oversubscribed else ""
    if binding.cpus:
        # Not a rank file: the path of one must hold neither a colon nor a comma.
        words += ["--map-by", f"pe-list={','.join(map(str, binding.cpus))}:ordered{modifier}"]
        words += ["--bind-to", "core:overload-allowed" if oversubscribed else "core"]
    else:
        words += ["--map-by", f"core{modifier}" if not hosts else f"seq{modifier}"]
        words += ["--bind-to", "none" if oversubscribed else "core"]
    return Invocation(tuple(words), env)


def _machine_file(folder: Path, hosts: Sequence[str]) -> Path:
    """One line per rank: hydra fills the lines in order."""
    path = folder / "hosts.txt"
    path.write_text("".join(f"{host}:1\n" for host in hosts))
    return path


def _host_file(folder: Path, hosts: Sequence[str]) -> Path:
    """One line per rank: `seq` maps rank k to line k."""
    path = folder / "hosts.txt"
    path.write_text("".join(f"{host}\n" for host in hosts))
    return path
