"""From a layout to the cores each rank is bound to, and from what was observed back to the layout."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.data.errors import InputError, WorkError
from earlybird.data.layout import Layout


@dataclass(frozen=True)
class Binding:
    """The CPUs to which each rank is bound, rank by rank; None leaves binding to the MPI. `name` is for
    provenance.

    `by_rank` is set if an MPI has no option for them: each rank then binds itself before it starts.
    """

    name: str
    cpus: tuple[tuple[int, ...], ...] | None
    by_rank: bool = False


def bind_local(layout: Layout, cores: Sequence[Sequence[int]], threads: int = 1) -> Binding:
    """Bind every rank of a one-node layout to cores of its socket, one per thread if there are enough,
    otherwise as many as each rank can have exclusively.

    `cores` are the CPU numbers of the usable cores, a list per socket. Raises InputError if the layout has
    more nodes or sockets than there are.
    """
    if layout.num_nodes > 1:
        raise InputError(
            f"the layout {layout.text} asks for {layout.num_nodes} nodes and ranks are started on this one "
            "alone; give a layout with one node, --hosts, --launcher srun, or a virtual cluster "
            "(earlybird cluster up)"
        )
    return _bind(layout, cores, threads, by_rank=threads > 1)


def bind_virtual(layout: Layout, cores: Sequence[Sequence[int]], threads: int = 1) -> Binding:
    """Bind ranks of nodes on this machine: the ranks of all nodes get its cores round-robin.

    Raises InputError when the layout has more sockets in a node than this machine.
    """
    return _bind(layout, cores, threads, by_rank=True)


def _bind(layout: Layout, cores: Sequence[Sequence[int]], threads: int, by_rank: bool) -> Binding:
    num_sockets = int(layout.socket.max()) + 1
    if num_sockets > len(cores):
        raise InputError(
            f"the layout {layout.text} asks for {num_sockets} sockets and this machine has {len(cores)} "
            f"that may be used; give a layout with at most {len(cores)} sockets (predict takes any layout)"
        )
    ranks = Counter(layout.socket.tolist())
    taken = [0] * num_sockets
    cpus = []
    for socket in layout.socket:
        own = cores[socket]
        # Where threads outnumber cores those of one rank share the cores of that rank. Were all ranks' on all
        # cores, a rank that waits would take turns with the one it waits for: 2 threads a rank on 2 cores
        # took MPICH 5.0.2 0.5 to 3 ms for 64 bytes on a busy machine, 4 us this way.
        share = min(threads, max(len(own) // ranks[socket], 1))
        cpus.append(tuple(sorted(own[(taken[socket] + k) % len(own)] for k in range(share))))
        taken[socket] += share
    return Binding(_name(ranks, cores, threads), tuple(cpus), by_rank)


def _name(ranks: Mapping[int, int], cores: Sequence[Sequence[int]], threads: int) -> str:
    if any(count > len(cores[socket]) for socket, count in ranks.items()):
        return "core, shared by several ranks"
    if any(count * threads > len(cores[socket]) for socket, count in ranks.items()):
        return "core, shared by threads of a rank"
    return "core"


def is_oversubscribed(
    layout: Layout, cores: Sequence[Sequence[int]], threads: int = 1, *, one_machine: bool = False
) -> bool:
    """Return whether ranks share a core: some socket gets more threads of ranks than it has cores, if each
    node is like this one; with `one_machine` all nodes are this one."""
    node = [0] * layout.num_ranks if one_machine else layout.node.tolist()
    ranks = Counter(zip(node, layout.socket.tolist(), strict=True))
    return any(
        count * threads > len(cores[min(socket, len(cores) - 1)]) for (_, socket), count in ranks.items()
    )


def observed_layout(placement: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a launch record's placement, rank by rank, with nodes numbered in order of appearance."""
    hosts: dict[str, int] = {}
    result = []
    for entry in sorted(placement, key=lambda entry: entry["rank"]):
        node = hosts.setdefault(entry["host"], len(hosts))
        sockets = entry["sockets"]
        result.append(dict(entry) | {"node": node, "socket": sockets[0] if len(sockets) == 1 else None})
    return result


def misplaced_ranks(layout: Layout, placement: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the ranks that are not where `layout` places them; `placement` is what `observed_layout`
    returns.

    Names of nodes and numbers of sockets do not matter, only which ranks share them.
    """
    wrong: set[int] = set()
    wrong |= _differing(layout.node, [entry["node"] for entry in placement])
    wrong |= _differing(layout.socket_group(), [(entry["node"], entry["socket"]) for entry in placement])
    wrong |= {entry["rank"] for entry in placement if entry["socket"] is None}
    return sorted(wrong)


def require_placed(layout: Layout, placement: Sequence[Mapping[str, Any]]) -> None:
    """Raise WorkError if ranks are not where they were requested, because their times would be misleading.

    A launch that died before it reported its placement is not checked.
    """
    if len(placement) != layout.num_ranks:
        return
    wrong = misplaced_ranks(layout, placement)
    if wrong:
        where = placement[wrong[0]]
        raise WorkError(
            f"rank {wrong[0]} is not where the layout {layout.text} places it but on {where['host']}, "
            f"socket {where['sockets']}; nothing of this launch is kept: change the layout, the hosts or "
            "the binding"
        )


def _differing(asked: Sequence, observed: Sequence) -> set[int]:
    """Return the positions that violate the one-to-one mapping from requested to observed labels, built in
    order of appearance."""
    forward: dict[Any, Any] = {}
    backward: dict[Any, Any] = {}
    wrong = set()
    for rank, (a, b) in enumerate(zip(asked, observed, strict=True)):
        a = int(a)
        if forward.setdefault(a, b) != b or backward.setdefault(b, a) != a:
            wrong.add(rank)
    return wrong
