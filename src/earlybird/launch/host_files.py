"""Files that place every rank on a host, for the launchers of each MPI and for Slurm."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.layout import Layout
from earlybird.launch.hosts import without_user

HYDRA, SEQUENTIAL = "{host}:1\n", "{host}\n"


@dataclass(frozen=True)
class PlacementFile:
    """The `text` of a file, and `use`, a text to format with `file` and `ranks` that states how to start a
    program with it.

    `binding` : what the user must know about how ranks are bound to the sockets of the layout; empty if they
    are.
    """

    text: str
    use: str
    binding: str = ""


def host_lines(hosts: Sequence[str], line: str) -> str:
    """Return a line for each rank: `hosts` is the host of each rank, `line` HYDRA or SEQUENTIAL."""
    return "".join(line.format(host=host) for host in hosts)


def mpich_hosts(hosts: Sequence[str]) -> tuple[str, str | None]:
    """Return the host file of MPICH's mpiexec, and the argument of its -rankmap: for each rank the number of
    its host in the file; None if the ranks of each host follow one another.

    `hosts` is the host of each rank. A host that appears again would be another node: its ranks would share
    no memory with the first ones.
    """
    count = Counter(hosts)
    number = {host: k for k, host in enumerate(count)}
    of_ranks = [number[host] for host in hosts]
    text = "".join(f"{host}:{ranks}\n" for host, ranks in count.items())
    return text, None if of_ranks == sorted(of_ranks) else ",".join(map(str, of_ranks))


def parse_cpus(text: str) -> list[list[int]]:
    """Return the CPUs of each socket from a text such as `0-3,8-11/4-7,12-15`; raise InputError for other
    texts."""
    found = []
    for of_socket in text.split("/"):
        cpus = _cpus_of_socket(of_socket)
        if cpus is None:
            raise InputError(
                f"--cpus is {text!r}; give the CPUs of each socket as lscpu lists them, with a slash between "
                "sockets, such as 0-15/16-31"
            )
        found.append(cpus)
    if len({cpu for cpus in found for cpu in cpus}) < sum(map(len, found)):
        raise InputError(f"--cpus is {text!r}, which has a CPU twice; give each CPU of a node once")
    return found


def _cpus_of_socket(text: str) -> list[int] | None:
    """Return [0, 1, 2, 3, 8] for `0-3,8`; None for other text and for an empty range."""
    cpus: list[int] = []
    for part in text.split(","):
        match = _CPUS.fullmatch(part.strip())
        if not match:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            return None
        cpus += range(first, last + 1)
    return cpus


def placement_file(
    layout: Layout, target: str, hosts: Sequence[str] = (), cpus: Sequence[Sequence[int]] | None = None
) -> PlacementFile:
    """Return the file that makes the ranks of `layout` start where it places them.

    `target` is mpich, openmpi, intel, slurm, or rank-order, for a program that renumbers its ranks. `hosts`
    are the names of the nodes in the order of their numbers; rank-order needs none. `cpus` are those of each
    socket, of which each rank gets one; openmpi and rank-order take none.

    Raises InputError unless each node has one host of its own, and each rank a CPU of its socket.
    """
    if target == "rank-order":
        return PlacementFile(_rank_order(layout), _RANK_ORDER)
    nodes = layout.node_group()
    if len(set(hosts)) != len(hosts) or len(hosts) != layout.num_nodes:
        given = f"--hosts names {','.join(hosts)}" if hosts else "--hosts is missing"
        raise InputError(
            f"the layout has {layout.num_nodes} nodes, but {given}; give the name of each node once, such as "
            "--hosts node1,node2"
        )
    with_user = next((host for host in hosts if "@" in host), None)
    if with_user and target in ("openmpi", "slurm"):
        raise InputError(
            f"--hosts names {with_user}, but a file of {target} has no users; give "
            f"{without_user(with_user)}, and the user in ~/.ssh/config"
        )
    of_ranks = [hosts[node] for node in nodes]
    if target == "openmpi":
        return PlacementFile(_rankfile(layout, of_ranks), _OPENMPI)
    bound = None if cpus is None else _by_host(of_ranks, _cpu_of_ranks(layout, of_ranks, cpus))
    missing = _NO_CPUS if bound is None and layout.socket.any() else ""
    if target == "mpich":
        return _mpich(of_ranks, bound, missing)
    if target == "intel":
        return _intel(of_ranks, bound, missing)
    return _slurm(layout, of_ranks, bound)


# A range of CPUs, as the kernel and lscpu write it.
_CPUS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
# What MPICH reads of a line of a host file.
_LONGEST_LINE = 1023
_NO_CPUS = (
    "it names hosts, not sockets; give --cpus, the CPUs of each socket as lscpu lists them, such as "
    "0-15/16-31, to bind ranks to their sockets"
)
_NUMA_DOMAINS = (
    "map_ldom takes the NUMA domains of a node for its sockets; where a socket has several, give --cpus, the "
    "CPUs of each socket as lscpu lists them, such as 0-15/16-31"
)
_NO_LIST = (
    "it names hosts, not sockets: --cpu-bind takes one list for all nodes, but the ranks of this layout are "
    "on other sockets on each; bind each rank when it starts, such as with taskset"
)
_OPENMPI = "mpiexec -n {ranks} --map-by rankfile:file={file} PROGRAM"
_RANK_ORDER = (
    "MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm) in PROGRAM: line r of {file}, counted from 0, is the key "
    "of rank r of a job whose nodes are filled one after the other"
)


def _mpich(hosts: Sequence[str], bound: dict[str, list[int]] | None, missing: str) -> PlacementFile:
    text, rank_map = mpich_hosts(hosts)
    arguments = f"-rankmap {rank_map} " if rank_map else ""
    if bound is not None and (common := _common(bound)) is not None:
        arguments += f"-bind-to user:{_listed(common)} "
    elif bound is not None:
        lines = zip(text.splitlines(), bound.values(), strict=True)
        text = "".join(f"{line} binding=user:{_listed(cpus)}\n" for line, cpus in lines)
        if (longest := max(map(len, text.splitlines()))) > _LONGEST_LINE:
            raise InputError(
                f"a line of the host file would have {longest} characters, of which MPICH reads "
                f"{_LONGEST_LINE}; use fewer ranks on a node, or omit --cpus"
            )
    return PlacementFile(text, f"mpiexec -n {{ranks}} -f {{file}} {arguments}PROGRAM", missing)


def _intel(hosts: Sequence[str], bound: dict[str, list[int]] | None, missing: str) -> PlacementFile:
    """Return a machine file, or a file of arguments if nodes have different CPUs, because hosts have no
    variables of their own."""
    pinned = "I_MPI_PIN_PROCESSOR_LIST"
    common = None if bound is None else _common(bound)
    # A list with more CPUs than ranks of a node is spread over these.
    if bound is None or (common is not None and all(len(one) == len(common) for one in bound.values())):
        pin = f"-genv {pinned} {_listed(common)} " if common else ""
        use = f"mpiexec {pin}-n {{ranks}} -machinefile {{file}} PROGRAM"
        return PlacementFile(host_lines(hosts, HYDRA), use, missing)
    lines = [f"-host {host} -n 1 -env {pinned} {_listed(bound[host])} PROGRAM\n" for host in hosts]
    return PlacementFile("".join(lines), "mpiexec -configfile {file}, after you replace PROGRAM in it")


def _slurm(layout: Layout, hosts: Sequence[str], bound: dict[str, list[int]] | None) -> PlacementFile:
    kind, lists, remark = "map_cpu", bound, ""
    if bound is None and layout.socket.any():
        kind, lists, remark = "map_ldom", _by_host(hosts, layout.socket.tolist()), _NUMA_DOMAINS
    common = None if lists is None else _common(lists)
    bind = "" if common is None else f"--cpu-bind={kind}:{_listed(common)} "
    if lists is not None and common is None:
        remark = _NO_LIST
    use = f"SLURM_HOSTFILE={{file}} srun -n {{ranks}} --distribution=arbitrary {bind}PROGRAM"
    return PlacementFile(host_lines(hosts, SEQUENTIAL), use, remark)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _by_host(hosts: Sequence[str], of_ranks: Sequence[int]) -> dict[str, list[int]]:
    """Return the numbers of each host's ranks, with the hosts in the order in which they first appear."""
    found: dict[str, list[int]] = {host: [] for host in hosts}
    for host, number in zip(hosts, of_ranks, strict=True):
        found[host].append(number)
    return found


def _common(lists: Mapping[str, list[int]]) -> list[int] | None:
    """Return the longest list if every other list is a prefix of it; None otherwise."""
    longest = max(lists.values(), key=len)
    return longest if all(one == longest[: len(one)] for one in lists.values()) else None


def _cpu_of_ranks(layout: Layout, hosts: Sequence[str], cpus: Sequence[Sequence[int]]) -> list[int]:
    """Return the CPU of each rank: the ranks of a socket get its CPUs one after the other."""
    found = []
    for host, socket, place in zip(hosts, layout.socket.tolist(), _place_on_socket(layout), strict=True):
        if socket >= len(cpus):
            raise InputError(
                f"the layout has a rank on socket {socket} of {host}, counted from 0, but --cpus lists "
                f"{counted(len(cpus), 'socket')}; give the CPUs of each socket, such as 0-15/16-31"
            )
        if place >= len(cpus[socket]):
            raise InputError(
                f"the layout has more ranks on socket {socket} of {host} than --cpus lists CPUs, "
                f"{len(cpus[socket])}; give a CPU for each"
            )
        found.append(cpus[socket][place])
    return found


def _place_on_socket(layout: Layout) -> list[int]:
    """Return how many ranks of its socket precede each rank."""
    taken: Counter[int] = Counter()
    places = []
    for socket in layout.socket_group().tolist():
        places.append(taken[socket])
        taken[socket] += 1
    return places


def _rankfile(layout: Layout, hosts: Sequence[str]) -> str:
    """Return a rank file in which the ranks of a socket get its cores one after the other."""
    placed = zip(hosts, layout.socket.tolist(), _place_on_socket(layout), strict=True)
    return "".join(
        f"rank {rank}={host} slot={socket}:{core}\n" for rank, (host, socket, core) in enumerate(placed)
    )


def _rank_order(layout: Layout) -> str:
    """Return the rank of the layout at each place, sorted by node and socket."""
    return "".join(f"{rank}\n" for rank in np.lexsort((layout.socket, layout.node)))
