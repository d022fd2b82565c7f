"""Arguments of each family of mpiexec for the number of ranks, their hosts and their cores."""

import itertools
import os
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.launch.host_files import HYDRA, SEQUENTIAL, host_lines, mpich_hosts
from earlybird.launch.hosts import without_user
from earlybird.launch.placement import Binding
from earlybird.launch.variables import left_behind
from earlybird.machine.flavours import Flavour


@dataclass(frozen=True)
class Invocation:
    """The arguments and variables that start the ranks of a program.

    Attributes
    ----------
    before_program : the arguments before the program.
    env : the variables that the ranks need.
    after_program : arguments between the program and its own.
    preferred : the variables to set unless the user has set them.
    by_arguments : the variables that the arguments replace, with the values that these imply.
    placing : a regular expression of the names of variables by which the MPI would place ranks otherwise.
    """

    before_program: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    after_program: tuple[str, ...] = ()
    preferred: dict[str, str] = field(default_factory=dict)
    by_arguments: dict[str, str] = field(default_factory=dict)
    placing: str = ""

    def sets(self) -> set[str]:
        """Return the names of the variables that are set or replaced even if the user has set them."""
        return self.env.keys() | self.by_arguments.keys()


# I_MPI_PIN_INFO and _MAPPING tell ranks how they are bound. Of Open MPI both the names of version 4, which
# version 5 translates, and those of PRRTE; that cores may be oversubscribed places nothing.
_PLACING = {
    "mpich": "HYDRA_(BINDING|MAPPING)",
    "intel": r"I_MPI_PIN_(?!(INFO|MAPPING)$)\w+",
    "openmpi": r"(OMPI|PRTE)_MCA_(rmaps|hwloc)_(base|default)_(mapping|ranking|bind|cpu|pattern|by)\w*"
    r"|OMPI_MCA_(orte_)?rankfile",
}


@dataclass(frozen=True)
class RemoteHosts:
    """The hosts of the ranks, and how to reach them.

    Attributes
    ----------
    hosts : the host of every rank.
    agent : the ssh-like command that starts a command on a host; None is ssh.
    subnet, interface, node_interface : the network to use, the device by which mpiexec is on it, and that of
        the nodes; None leaves the choice to the MPI.
    """

    hosts: tuple[str, ...]
    agent: str | None = None
    subnet: str | None = None
    interface: str | None = None
    node_interface: str | None = None


def invocation(
    flavour: Flavour,
    num_ranks: int,
    binding: Binding,
    folder: Path,
    *,
    oversubscribed: bool,
    remote: RemoteHosts | None = None,
    threads: int = 1,
) -> Invocation:
    """Return what starts `num_ranks` ranks bound as in `binding`, on this machine or on the hosts of
    `remote`.

    Placement is always set, because the defaults differ (hydra binds nothing, Open MPI and Intel MPI bind by
    rules of their own). Waiting ranks yield their core when ranks outnumber cores. `folder` is for files that
    the ranks' nodes also read.
    """
    make = {"mpich": _mpich, "intel": _intel, "openmpi": _openmpi}[flavour.family]
    made = make(flavour, num_ranks, binding, folder, oversubscribed, remote, threads)
    arguments = made.before_program + (
        _binding_script(folder, binding, flavour.family) if binding.by_rank else ()
    )
    preferred = made.preferred | (yielding(flavour.family) if oversubscribed else {})
    return replace(
        made,
        before_program=arguments,
        preferred=preferred | of_threads(threads),
        placing=_PLACING[flavour.family],
    )


def of_threads(threads: int) -> dict[str, str]:
    """Return the variable that makes programs with OpenMP use `threads` threads per rank."""
    return {"OMP_NUM_THREADS": str(threads)} if threads > 1 else {}


def yielding(family: str) -> dict[str, str]:
    """Return the variables that make waiting ranks of an MPI yield their core; determined with the pinned
    versions."""
    return {
        "mpich": {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"},
        "intel": {"I_MPI_THREAD_YIELD": "2"},
        "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
    }[family]


def _mpich(flavour, num_ranks, binding, folder, oversubscribed, remote, threads) -> Invocation:
    arguments = [str(flavour.mpiexec), "-n", str(num_ranks), *_mpich_remote(flavour, folder, remote)]
    bound = _hydra_binding(binding, threads)
    return Invocation((*arguments, "-bind-to", bound), by_arguments={"HYDRA_BINDING": bound})


def _intel(flavour, num_ranks, binding, folder, oversubscribed, remote, threads) -> Invocation:
    arguments = [str(flavour.mpiexec), "-n", str(num_ranks)]
    if remote is not None:
        # Unlike -f, -machinefile keeps to one rank per line.
        hosts = host_lines(remote.hosts, HYDRA)
        arguments += ["-machinefile", str(_host_file(folder, hosts)), *_hydra_network(remote)]
    preferred: dict[str, str] = {}
    env = {"I_MPI_PIN": "0" if binding.by_rank else "1"}
    if binding.cpus and not binding.by_rank:
        masks = (hex(sum(1 << cpu for cpu in cpus)) for cpus in binding.cpus)
        env["I_MPI_PIN_DOMAIN"] = "[" + ",".join(masks) + "]"
    elif not binding.by_rank:
        env |= {"I_MPI_PIN_DOMAIN": "core" if threads == 1 else str(threads), "I_MPI_PIN_ORDER": "compact"}
    if remote is None:
        preferred["I_MPI_FABRICS"] = "shm"
    elif remote.subnet:
        env |= {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}
    if remote is not None and not remote.agent and "SLURM_JOB_ID" in os.environ:
        # The other two detect Slurm and start ranks through it, even if ssh is not allowed.
        preferred["I_MPI_HYDRA_BOOTSTRAP"] = "slurm"
    return Invocation(tuple(arguments), env, preferred=preferred)


def _openmpi(flavour, num_ranks, binding, folder, oversubscribed, remote, threads) -> Invocation:
    arguments = [str(flavour.mpiexec), "-n", str(num_ranks)]
    is_before_5 = re.match(r"[2-4]\.", flavour.version) is not None
    by_arguments: dict[str, str] = {}
    if remote is not None:
        reaching, by_arguments = _openmpi_remote(flavour, remote, is_before_5)
        arguments += reaching
    if is_before_5:
        place = _openmpi_4_placing if remote is None else partial(_openmpi_4_sequence, remote.hosts)
        placing, replaced = place(folder, binding, oversubscribed, threads)
        return Invocation((*arguments, *placing), by_arguments=by_arguments | replaced)
    if remote is not None:
        arguments += ["--hostfile", str(_host_file(folder, _openmpi_hosts(remote.hosts)))]
    modifier = ":OVERSUBSCRIBE" if oversubscribed else ""
    if binding.cpus and not binding.by_rank:
        # Not a rank file: the path of one must hold neither a colon nor a comma.
        cpus = ",".join(str(cpu) for cpus in binding.cpus for cpu in cpus)
        mapping = f"pe-list={cpus}:ordered{modifier}"
        bound = "core:overload-allowed" if oversubscribed else "core"
    else:
        share = f":PE={threads}" if threads > 1 and not binding.by_rank else ""
        mapping = ("core" if remote is None else _sequence(folder, remote.hosts)) + share + modifier
        bound = "none" if oversubscribed or binding.by_rank else "core"
    by_arguments |= {
        "PRTE_MCA_rmaps_default_mapping_policy": mapping, "PRTE_MCA_hwloc_default_binding_policy": bound
    }  # fmt: skip
    return Invocation((*arguments, "--map-by", mapping, "--bind-to", bound), by_arguments=by_arguments)


def _openmpi_remote(
    flavour: Flavour, remote: RemoteHosts, is_before_5: bool
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments by which ranks on other hosts are reached, and the variables that these
    replace."""
    arguments = [text for name in left_behind(flavour) for text in ("-x", name)]
    by_arguments = {}
    if remote.agent:
        # Version 5 has these names for parameters of its runtime, PRRTE; version 4 for its own, ORTE.
        agent = ["--mca", "plm_rsh_agent"] if is_before_5 else ["--prtemca", "plm_ssh_agent"]
        arguments += [*agent, remote.agent]
    if remote.subnet:
        runtime = ["--mca", "oob_tcp_if_include"] if is_before_5 else ["--prtemca", "prte_if_include"]
        arguments += [*runtime, remote.subnet]
        memory = "vader" if is_before_5 else "sm"
        network = {
            "pml": "ob1",
            "btl": f"self,tcp,{memory}",
            "btl_tcp_if_include": str(remote.node_interface),
        }
        for name, value in network.items():
            arguments += ["--mca", name, value]
            by_arguments[f"OMPI_MCA_{name}"] = value
    return arguments, by_arguments


def _openmpi_4_placing(
    folder: Path, binding: Binding, oversubscribed: bool, threads: int
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments with which versions before 5, which lack pe-list, place ranks of this machine, and
    the variables that these replace."""
    if oversubscribed or binding.by_rank:
        shares = ["--oversubscribe"] if oversubscribed else []
        return [*shares, "--bind-to", "none"], {"OMPI_MCA_hwloc_base_binding_policy": "none"}
    if binding.cpus:
        # --cpu-list does not keep the order.
        path = folder / "ranks.txt"
        cpus_of_ranks = (",".join(map(str, cpus)) for cpus in binding.cpus)
        path.write_text("".join(f"rank {k}=localhost slot={cpus}\n" for k, cpus in enumerate(cpus_of_ranks)))
        # Numbers of CPUs as the system counts them, not of cores.
        numbers = ["--mca", "rmaps_rank_file_physical", "1"]
        return [*numbers, "--rankfile", str(path)], {"OMPI_MCA_orte_rankfile": str(path)}
    mapping = f"slot:PE={threads}" if threads > 1 else "core"
    return ["--map-by", mapping, "--bind-to", "core"], {
        "OMPI_MCA_rmaps_base_mapping_policy": mapping, "OMPI_MCA_hwloc_base_binding_policy": "core",
    }  # fmt: skip


def _openmpi_4_sequence(
    hosts: Sequence[str], folder: Path, binding: Binding, oversubscribed: bool, threads: int
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and variables of `_openmpi_4_placing` for ranks on `hosts`."""
    is_bound = not (oversubscribed or binding.by_rank)
    mapping, bound = "seq", "core" if is_bound else "none"
    if any("@" in host for host in hosts):
        # A sequence cannot name users, and has no option for a file of its own before version 5.
        if len([host for host, _ in itertools.groupby(hosts)]) > len(set(hosts)):
            raise InputError(
                "Open MPI before version 5 takes no users of hosts whose ranks do not follow one another; "
                "give the users in ~/.ssh/config, or a layout without a rank order"
            )
        text = _openmpi_hosts(hosts)
        mapping = "core" if threads == 1 or not is_bound else f"slot:PE={threads}"
    elif is_bound:
        # Unlike version 5 it binds ranks of a sequence only to CPUs that are named, here the cores in turn.
        text, next_core = "", Counter()
        for host in hosts:
            first = next_core[host]
            next_core[host] += threads
            text += f"{host} {first}" + (f"-{first + threads - 1}\n" if threads > 1 else "\n")
    else:
        text = host_lines(hosts, SEQUENTIAL)
    arguments = [
        "--hostfile",
        str(_host_file(folder, text)),
        *(["--oversubscribe"] if oversubscribed else []),
    ]
    return [*arguments, "--map-by", mapping, "--bind-to", bound], {
        "OMPI_MCA_rmaps_base_mapping_policy": mapping, "OMPI_MCA_hwloc_base_binding_policy": bound,
    }  # fmt: skip


def _openmpi_hosts(hosts: Sequence[str]) -> str:
    if not any("@" in host for host in hosts):
        return host_lines(hosts, SEQUENTIAL)
    return "".join(f"{host} slots={ranks}\n" for host, ranks in Counter(hosts).items())


def _sequence(folder: Path, hosts: Sequence[str]) -> str:
    """Return the mapping of rank k to line k of the host file, or of another file if the host file contains
    users, which a sequence of hosts cannot name."""
    if not any("@" in host for host in hosts):
        return "seq"
    path = folder / "sequence.txt"
    if re.search("[:,]", str(path)):
        raise InputError(
            f"the path {path} has a colon or a comma, with which Open MPI takes no hosts with users; give "
            "the users in ~/.ssh/config, or another folder"
        )
    path.write_text("".join(f"{without_user(host)}\n" for host in hosts))
    return f"seq:file={path}"


def _mpich_remote(flavour: Flavour, folder: Path, remote: RemoteHosts | None) -> list[str]:
    if remote is None:
        return []
    text, rank_map = mpich_hosts(remote.hosts)
    if rank_map is not None and not _has_rank_map(flavour.mpiexec):
        text, rank_map = host_lines(remote.hosts, HYDRA), None  # the ranks of a node do not all share memory
    arguments = ["-f", str(_host_file(folder, text)), *(["-rankmap", rank_map] if rank_map else [])]
    return [*arguments, *_hydra_network(remote)]


@cache
def _has_rank_map(mpiexec: Path) -> bool:
    """Return whether `mpiexec` has the option -rankmap, which older versions of MPICH lack."""
    try:
        shown = subprocess.run([mpiexec, "-help"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "-rankmap" in shown.stdout + shown.stderr


def _hydra_network(remote: RemoteHosts) -> list[str]:
    arguments = ["-launcher", "ssh", "-launcher-exec", remote.agent] if remote.agent else []
    return [*arguments, "-iface", remote.interface] if remote.interface else arguments


def _hydra_binding(binding: Binding, threads: int) -> str:
    if binding.by_rank:
        return "none"
    if binding.cpus:
        return "user:" + ",".join("+".join(map(str, cpus)) for cpus in binding.cpus)
    return "core" if threads == 1 else f"core:{threads}"


def _binding_script(folder: Path, binding: Binding, family: str) -> tuple[str, ...]:
    """Return a script before the program that binds the rank that it is started as."""
    # The family's own variable alone: inside `srun --mpi=pmi2` ranks of Open MPI inherit srun's PMI_RANK.
    variable = "OMPI_COMM_WORLD_RANK" if family == "openmpi" else "PMI_RANK"
    cases = "\n".join(
        f"{rank}) cpus={','.join(map(str, cpus))} ;;" for rank, cpus in enumerate(binding.cpus or ())
    )
    path = folder / "bind.sh"
    path.write_text(f"""\
case ${variable} in
{cases}
*) echo "earlybird kernel: {variable} is '${variable}', which is not a rank of this launch, so it cannot be \
bound; check with \\`earlybird doctor\\` that mpiexec belongs to the requested MPI" >&2; exit 2 ;;
esac
exec taskset --cpu-list "$cpus" "$@"
""")
    return ("/bin/sh", str(path))


def _host_file(folder: Path, text: str) -> Path:
    path = folder / "hosts.txt"
    path.write_text(text)
    return path
