"""Files that place every rank on a host, for the launchers of each MPI and for Slurm."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout

HYDRA, SEQUENTIAL = "{host}:1\n", "{host}\n"


@dataclass(frozen=True)
class PlacementFile:
    """`text` of a file, and how to start a program with it: `use`, a text to
    format with `file` and `ranks`.

    `binds` : whether it also binds ranks to the sockets of the layout.
    """

    text: str
    use: str
    binds: bool = False


def host_of(entry: str) -> str:
    """The host of `node1:4`; how many ranks it gets is for the layout to say."""
    host, _, slots = entry.partition(":")
    return host if slots.isdecimal() else entry


def host_lines(hosts: Sequence[str], line: str) -> str:
    """A line for each rank: `hosts` is where each one runs, `line` HYDRA or SEQUENTIAL."""
    return "".join(line.format(host=host) for host in hosts)


def mpich_hosts(hosts: Sequence[str]) -> tuple[str, str | None]:
    """The host file of MPICH's mpiexec, and the argument of its -rankmap: for each rank the number of its
    host in the file; None if the ranks of each host follow one another.

    `hosts` is where each rank runs. A host that appears again would be another node: its ranks would share no
    memory with the first ones.
    """
    count = Counter(hosts)
    number = {host: k for k, host in enumerate(count)}
    of_ranks = [number[host] for host in hosts]
    text = "".join(f"{host}:{ranks}\n" for host, ranks in count.items())
    return text, None if of_ranks == sorted(of_ranks) else ",".join(map(str, of_ranks))


def placement_file(layout: Layout, target: str, hosts: Sequence[str] = ()) -> PlacementFile:
    """What starts the ranks of `layout` where it places them.

    `target` is mpich, openmpi, intel, slurm, or rank-order, for a program that renumbers its ranks. `hosts`
    are the names of the nodes in the order of their numbers; rank-order needs none.
    Raises InputError unless each node has one host of its own.
    """
    if target == "rank-order":
        return PlacementFile(_rank_order(layout), _RANK_ORDER)
    nodes = layout.node_group()
    if any(set(host) & set("[] ") for host in hosts):
        raise InputError(
            "--hosts has a bracket or a space; name each node, such as --hosts node1,node2; "
            "`scontrol show hostnames` lists those of a Slurm job"
        )
    if len(set(hosts)) != len(hosts) or len(hosts) != layout.num_nodes:
        given = f"--hosts names {','.join(hosts)}" if hosts else "--hosts is missing"
        raise InputError(
            f"the layout has {layout.num_nodes} nodes, but {given}; give the name of each node once, such as "
            "--hosts node1,node2"
        )
    of_ranks = [hosts[node] for node in nodes]
    if target == "openmpi":
        return PlacementFile(_rankfile(layout, of_ranks), _OPENMPI, binds=True)
    if target == "mpich":
        text, rank_map = mpich_hosts(of_ranks)
        return PlacementFile(text, _MPICH.replace("{map}", f"-rankmap {rank_map} " if rank_map else ""))
    line, use = {"intel": (HYDRA, _INTEL), "slurm": (SEQUENTIAL, _SLURM)}[target]
    return PlacementFile(host_lines(of_ranks, line), use)


_MPICH = "mpiexec -n {ranks} -f {file} {map}PROGRAM"
_INTEL = "mpiexec -n {ranks} -machinefile {file} PROGRAM"
_OPENMPI = "mpiexec -n {ranks} --map-by rankfile:file={file} PROGRAM"
_SLURM = "SLURM_HOSTFILE={file} srun -n {ranks} --distribution=arbitrary PROGRAM"
_RANK_ORDER = (
    "MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm) in PROGRAM: line r of {file}, counted from 0, is the key "
    "of rank r of a job whose nodes are filled one after the other"
)


def _rankfile(layout: Layout, hosts: Sequence[str]) -> str:
    """The ranks of a socket get its cores one after the other."""
    taken: dict[tuple[str, int], int] = {}
    lines = []
    for rank, (host, socket) in enumerate(zip(hosts, layout.socket.tolist(), strict=True)):
        core = taken.get((host, socket), 0)
        taken[host, socket] = core + 1
        lines.append(f"rank {rank}={host} slot={socket}:{core}\n")
    return "".join(lines)


def _rank_order(layout: Layout) -> str:
    """Which rank of the layout each place has, sorted by node and socket."""
    return "".join(f"{rank}\n" for rank in np.lexsort((layout.socket, layout.node)))
