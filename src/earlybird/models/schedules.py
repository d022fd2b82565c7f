"""Messages of collective algorithms, in the steps in which each rank sends and receives them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from earlybird.models.trees import edge_rounds, edges


@dataclass(frozen=True, eq=False)
class Schedule:
    """The messages of one call, arrays (M,).

    A rank posts all messages of a step, and waits for them before it goes on to its next step.

    Attributes
    ----------
    step : ascending.
    src, dst : ranks 0..P-1.
    bytes : of each message.
    """

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray


_TREES = {"linear": "linear", "pipeline": "chain", "binomial": "binomial-halving"}
# Algorithms of a power of two of ranks.
POWERS_ONLY = frozenset({("allgather", "recursive-doubling"), ("reduce", "rabenseifner")})


def _schedule(rows: list[tuple[np.ndarray, ...]]) -> Schedule:
    """Return the schedule of `rows` of step, source, destination and bytes."""
    if not rows:
        empty = np.empty(0, np.int64)
        return Schedule(empty, empty, empty, empty)
    columns = [np.concatenate([np.atleast_1d(row[k]) for row in rows]).astype(np.int64) for k in range(4)]
    order = np.argsort(columns[0], kind="stable")
    return Schedule(*(column[order] for column in columns))


def _rows(step: int, src: np.ndarray, dst: np.ndarray, size: int | np.ndarray) -> tuple[np.ndarray, ...]:
    return np.full(len(src), step), src, dst, np.broadcast_to(size, len(src))


def _down(tree: str, ranks: int, root: int, size_bytes: int) -> Schedule:
    """A broadcast: each rank sends on to one child after the other."""
    parent, child = edges(tree, ranks, root)
    return _schedule([(edge_rounds(tree, ranks), parent, child, np.full(len(parent), size_bytes))])


def _up(tree: str, ranks: int, root: int, size_bytes: int) -> Schedule:
    """A reduction: the broadcast backwards."""
    parent, child = edges(tree, ranks, root)
    rounds = edge_rounds(tree, ranks)
    last = int(rounds.max(initial=0))
    return _schedule([(last - rounds, child, parent, np.full(len(parent), size_bytes))])


def _blocks_of(tree: str, ranks: int, size_bytes: int) -> np.ndarray:
    """Return the bytes of each edge if every rank has a block: those of all ranks below."""
    parent, child = edges(tree, ranks, 0)
    below = np.full(ranks, size_bytes, np.int64)
    for k in range(len(child) - 1, -1, -1):
        below[parent[k]] += below[child[k]]
    blocks: np.ndarray = below[child]
    return blocks


def _gather(tree: str, ranks: int, root: int, size_bytes: int) -> Schedule:
    up = _up(tree, ranks, root, 0)
    blocks = {(root + c) % ranks: size for c, size in zip(
        edges(tree, ranks, 0)[1].tolist(), _blocks_of(tree, ranks, size_bytes).tolist(), strict=True
    )}  # fmt: skip
    return Schedule(up.step, up.src, up.dst, np.array([blocks[one] for one in up.src.tolist()], np.int64))


def _scatter(tree: str, ranks: int, root: int, size_bytes: int) -> Schedule:
    parent, child = edges(tree, ranks, root)
    blocks = _blocks_of(tree, ranks, size_bytes)
    return _schedule([(edge_rounds(tree, ranks), parent, child, blocks)])


def _parts(size_bytes: int, ranks: int) -> np.ndarray:
    """Return the bytes of each of `ranks` nearly equal parts, the first ones larger."""
    return np.diff(-(-np.arange(ranks + 1) * size_bytes // ranks))


def _around(ranks: int, size: np.ndarray, first_step: int, shift: int) -> list[tuple[np.ndarray, ...]]:
    """Return P-1 steps in which each rank sends a part to the next: in step k that of its number plus
    `shift`, less k."""
    here = np.arange(ranks)
    return [
        _rows(first_step + k, here, (here + 1) % ranks, size[(here + shift - k) % ranks])
        for k in range(ranks - 1)
    ]


def _ring_allreduce(ranks: int, root: int, size_bytes: int) -> Schedule:
    """Reduce-scatter and allgather around a ring: 2 (P-1) messages of a P-th from each rank."""
    size = _parts(size_bytes, ranks)
    return _schedule([*_around(ranks, size, 0, 0), *_around(ranks, size, ranks - 1, 1)])


def _ring_allgather(ranks: int, root: int, size_bytes: int) -> Schedule:
    return _schedule(_around(ranks, np.full(ranks, size_bytes), 0, 0))


def _power(ranks: int) -> int:
    return 1 << (ranks.bit_length() - 1)


def _core(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of the largest power of two that take part in the doubling, and the others, each of
    which gives its data to the rank before it."""
    extra = ranks - _power(ranks)
    return np.concatenate([np.arange(0, 2 * extra, 2), np.arange(2 * extra, ranks)]), np.arange(
        1, 2 * extra, 2
    )


def _doubling_allreduce(ranks: int, root: int, size_bytes: int) -> Schedule:
    """Recursive doubling: ranks exchange all data with the one at distance 1, 2, 4..."""
    core, others = _core(ranks)
    rows = [_rows(0, others, others - 1, size_bytes)]
    here = np.arange(len(core))
    steps = len(core).bit_length() - 1
    for k in range(steps):
        rows.append(_rows(1 + k, core, core[here ^ (1 << k)], size_bytes))
    rows.append(_rows(1 + steps, others - 1, others, size_bytes))
    return _schedule(rows)


def _halving_allreduce(ranks: int, root: int, size_bytes: int) -> Schedule:
    """Rabenseifner's: a reduce-scatter by recursive halving, and an allgather by recursive doubling."""
    core, others = _core(ranks)
    rows = [_rows(0, others, others - 1, size_bytes)]
    here = np.arange(len(core))
    steps = len(core).bit_length() - 1
    sizes = [-(-size_bytes // (2 << k)) for k in range(steps)]
    for k in range(steps):
        far = len(core) >> (k + 1)
        rows.append(_rows(1 + k, core, core[here ^ far], sizes[k]))
        rows.append(_rows(2 * steps - k, core, core[here ^ far], sizes[k]))
    rows.append(_rows(1 + 2 * steps, others - 1, others, size_bytes))
    return _schedule(rows)


def _after(first: Schedule, then: Schedule) -> Schedule:
    """Return both, one after the other."""
    later = then.step + int(first.step.max(initial=-1)) + 1
    return Schedule(
        np.concatenate([first.step, later]), np.concatenate([first.src, then.src]),
        np.concatenate([first.dst, then.dst]), np.concatenate([first.bytes, then.bytes]),
    )  # fmt: skip


def _linear_allreduce(ranks: int, root: int, size_bytes: int) -> Schedule:
    """A reduction to rank 0, and a broadcast from there."""
    return _after(_up("linear", ranks, 0, size_bytes), _down("linear", ranks, 0, size_bytes))


def _tree_allreduce(ranks: int, root: int, size_bytes: int) -> Schedule:
    tree = _TREES["binomial"]
    return _after(_up(tree, ranks, 0, size_bytes), _down(tree, ranks, 0, size_bytes))


def _scatter_bcast(ranks: int, root: int, size_bytes: int) -> Schedule:
    """A scatter of equal parts down a binomial tree, and an allgather around a ring."""
    part = -(-size_bytes // ranks)
    return _after(_scatter(_TREES["binomial"], ranks, root, part), _ring_allgather(ranks, root, part))


def _halving_reduce(ranks: int, root: int, size_bytes: int) -> Schedule:
    """Rabenseifner's, of a power of two of ranks: a reduce-scatter by recursive halving, and a gather."""
    here, steps = np.arange(ranks), ranks.bit_length() - 1
    halving = [_rows(k, here, here ^ (ranks >> (k + 1)), -(-size_bytes // (2 << k))) for k in range(steps)]
    return _after(_schedule(halving), _gather(_TREES["binomial"], ranks, root, -(-size_bytes // ranks)))


def _doubling_allgather(ranks: int, root: int, size_bytes: int) -> Schedule:
    here = np.arange(ranks)
    steps = ranks.bit_length() - 1
    return _schedule([_rows(k, here, here ^ (1 << k), size_bytes << k) for k in range(steps)])


def _bruck_allgather(ranks: int, root: int, size_bytes: int) -> Schedule:
    """In step k the blocks that a rank has, at most 2^k, go to the rank 2^k before it."""
    here = np.arange(ranks)
    return _schedule([
        _rows(k, here, (here - (1 << k)) % ranks, size_bytes * min(1 << k, ranks - (1 << k)))
        for k in range((ranks - 1).bit_length())
    ])  # fmt: skip


def _bruck_alltoall(ranks: int, root: int, size_bytes: int) -> Schedule:
    """In step k the blocks whose distance has bit k go 2^k further."""
    here = np.arange(ranks)
    return _schedule([
        _rows(k, here, (here + (1 << k)) % ranks, size_bytes * int(np.count_nonzero(here >> k & 1)))
        for k in range((ranks - 1).bit_length())
    ])  # fmt: skip


def _pairwise_alltoall(ranks: int, root: int, size_bytes: int) -> Schedule:
    here = np.arange(ranks)
    return _schedule([_rows(k - 1, here, (here + k) % ranks, size_bytes) for k in range(1, ranks)])


def _linear_alltoall(ranks: int, root: int, size_bytes: int) -> Schedule:
    here = np.arange(ranks)
    return _schedule([_rows(0, here, (here + k) % ranks, size_bytes) for k in range(1, ranks)])


def _dissemination(ranks: int, root: int, size_bytes: int) -> Schedule:
    here = np.arange(ranks)
    steps = (ranks - 1).bit_length()
    return _schedule([_rows(k, here, (here + (1 << k)) % ranks, 0) for k in range(steps)])


def _doubling_barrier(ranks: int, root: int, size_bytes: int) -> Schedule:
    return _doubling_allreduce(ranks, root, 0)


_Maker = Callable[[int, int, int], Schedule]
# By operation and by the name of the algorithm, of ranks, root and bytes as models count them.
_MAKERS: dict[tuple[str, str], _Maker] = {
    ("allreduce", "ring"): _ring_allreduce,
    ("allreduce", "recursive-doubling"): _doubling_allreduce,
    ("allreduce", "rabenseifner"): _halving_allreduce,
    ("allreduce", "linear"): _linear_allreduce,
    ("allreduce", "reduce-bcast"): _tree_allreduce,
    ("bcast", "scatter-ring-allgather"): _scatter_bcast,
    ("reduce", "rabenseifner"): _halving_reduce,
    ("allgather", "ring"): _ring_allgather,
    ("allgather", "recursive-doubling"): _doubling_allgather,
    ("allgather", "bruck"): _bruck_allgather,
    ("alltoall", "pairwise"): _pairwise_alltoall,
    ("alltoall", "linear"): _linear_alltoall,
    ("alltoall", "bruck"): _bruck_alltoall,
    ("barrier", "dissemination"): _dissemination,
    ("barrier", "recursive-doubling"): _doubling_barrier,
}
_OF_TREES: dict[str, Callable[[str, int, int, int], Schedule]] = {
    "bcast": _down, "reduce": _up, "gather": _gather, "scatter": _scatter,
}  # fmt: skip


def known_algorithms(operation: str) -> tuple[str, ...]:
    """Return the names of the algorithms of an operation whose messages are known."""
    trees = tuple(_TREES) if operation in _OF_TREES else ()
    return (*trees, *(name for of, name in _MAKERS if of == operation))


def schedule(
    operation: str, algorithm: str, ranks: int, root: int, size_bytes: int, tree: str | None = None
) -> Schedule:
    """Return the messages of a call of `operation` by `algorithm`, one of `known_algorithms`.

    Parameters
    ----------
    size_bytes : of the buffer, or of the block between two ranks, as models of collectives count it.
    tree : of operations with a root, instead of the usual one of the algorithm.
    """
    if ranks < 2:
        return _schedule([])
    if (operation, algorithm) not in _MAKERS:
        return _OF_TREES[operation](tree or _TREES[algorithm], ranks, root, size_bytes)
    return _MAKERS[operation, algorithm](ranks, root, size_bytes)
