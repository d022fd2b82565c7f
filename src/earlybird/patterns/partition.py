"""Partitions into parts of equal size: of an adjacency graph, with few cut edges (METIS), or of a hypergraph
(Mt-KaHyPar)."""

import importlib.util
import os
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from earlybird.data.errors import InputError
from earlybird.patterns.checks import require_range, require_ranks

MAX_PARTS_BISECTED = (
    8  # up to here recursive bisection cuts fewer edges, beyond it k-way is faster and as good
)
MAX_SEED = 2**31 - 1
_MIN_VOLUME = 1  # METIS_OBJTYPE_VOL


def partition_cells(
    graph: csr_array,
    num_parts: int,
    seed: int = 1,
    *,
    recursive: bool | None = None,
    imbalance: float | None = None,
    least_volume: bool = False,
) -> np.ndarray:
    """Return the part of each cell, (n,) int64 in 0..num_parts-1; no part is empty.

    `recursive` selects bisection or k-way partitioning, by default as suits `num_parts`; `imbalance` is the
    share by which the largest part may exceed the mean, by default METIS's; `least_volume` minimizes the
    cells to send instead of the edges that are cut, only k-way. If one method leaves a part empty, the other
    is tried.

    The same graph, number of parts and seed give the same partition with the same METIS. Raises InputError
    for fewer cells than parts, and where METIS leaves a part without cells.
    """
    num_cells = graph.shape[0]
    require_ranks(num_parts, "the number of parts")
    require_range(seed, "the seed", 0, MAX_SEED)
    if num_parts > num_cells:
        raise InputError(
            f"{num_parts} parts of a mesh with {num_cells} cells would leave some empty; "
            f"ask for at most {num_cells}"
        )
    if num_parts == num_cells:
        return np.arange(num_cells)
    first = num_parts <= MAX_PARTS_BISECTED if recursive is None else recursive
    for bisected in (first, not first):
        part = _metis_parts(graph, num_parts, seed, bisected, imbalance, least_volume and not bisected)
        empty = np.flatnonzero(np.bincount(part, minlength=num_parts) == 0)
        if not len(empty):
            return part
    raise InputError(
        f"METIS left {len(empty)} of {num_parts} parts without cells (the first is part {empty[0]}); "
        "ask for fewer parts or more cells"
    )


def has_hypergraphs() -> bool:
    """Return whether the optional package mtkahypar is installed."""
    return importlib.util.find_spec("mtkahypar") is not None


def partition_neighbourhoods(
    graph: csr_array, num_parts: int, seed: int = 1, *, imbalance: float = 0.03
) -> np.ndarray:
    """Return the part of each cell as `partition_cells` does, for the fewest cells to send: a net of the
    hypergraph is a cell with its neighbours, and one that lies in n parts is sent to n - 1 (objective KM1 of
    Mt-KaHyPar).

    It needs the package mtkahypar, whose partitions may differ from call to call. Raises InputError if the
    package is missing, and for a part without cells.
    """
    if not has_hypergraphs():
        raise InputError("partitions of hypergraphs need the package mtkahypar; pip install mtkahypar")
    import mtkahypar
    from scipy.sparse import eye_array

    num_cells = graph.shape[0]
    joined = (graph != 0).astype(np.int8) + eye_array(num_cells, dtype=np.int8, format="csr")
    nets = [net.tolist() for net in np.split(joined.indices, joined.indptr[1:-1])]
    library = _hypergraph_library()
    context = library.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.set_partitioning_parameters(num_parts, imbalance, mtkahypar.Objective.KM1)
    context.logging = False
    mtkahypar.set_seed(seed)
    hypergraph = library.create_hypergraph(context, num_cells, num_cells, nets)
    part = np.asarray(hypergraph.partition(context).get_partition(), dtype=np.int64)
    empty = np.flatnonzero(np.bincount(part, minlength=num_parts) == 0)
    if len(empty):
        raise InputError(f"Mt-KaHyPar left part {empty[0]} of {num_parts} without cells; ask for fewer parts")
    return part


@cache
def _hypergraph_library() -> Any:
    import mtkahypar

    return mtkahypar.initialize(len(os.sched_getaffinity(0)))


def edge_cut(graph: csr_array, part: np.ndarray) -> int:
    """Return the number of pairs of neighbours that lie in different parts."""
    row_part = np.repeat(part, np.diff(graph.indptr))
    return int(np.count_nonzero(row_part != part[graph.indices])) // 2


def _metis_parts(
    graph: csr_array, num_parts: int, seed: int, recursive: bool, imbalance: float | None, least_volume: bool
) -> np.ndarray:
    import pymetis

    chosen = {} if imbalance is None else {"ufactor": max(1, round(1000 * imbalance))}
    chosen |= {"objtype": _MIN_VOLUME} if least_volume else {}
    result = pymetis.part_graph(
        num_parts,
        adjacency=pymetis.CSRAdjacency(adj_starts=graph.indptr, adjacent=graph.indices),
        recursive=recursive,
        options=pymetis.Options(seed=seed, **chosen),
    )
    return np.asarray(result[1], dtype=np.int64)
