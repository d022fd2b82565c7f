"""The algorithms of each MPI's collective operations: their numbers, and the control variables that go with
them.

Determined for MPICH 5.0.2, Open MPI 5.0.11 and Intel MPI 2021.18.1 from their lists of variables and by
delaying one rank and observing which ranks wait for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_LINEAR, _CHAIN, _DOUBLING, _HALVING = "linear", "chain", "binomial-doubling", "binomial-halving"


@dataclass(frozen=True)
class Algorithm:
    """An algorithm that an MPI can be forced to use.

    `choice` is its number in the MPI's variable. `tree` is its tree (models/trees.py), None if it is none of
    those. `needs` is the key of its requirement in NEEDS; if it is not met, the MPI silently uses another
    algorithm. `more` are further variables; `segmented` are those for segmentation, None if unsupported, and
    `launch` those of the launch in that case. {segment}, {ranks} and {children} (P-1) are filled in.
    `preset` is the equivalent number of Intel MPI without segments, if `choice` is 0. `fan_out` is the value
    that a file of rules of Open MPI must state, where 0 means one chain.
    """

    choice: int
    tree: str | None = None
    needs: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)
    segmented: Mapping[str, str] | None = None
    launch: Mapping[str, str] = field(default_factory=dict)
    preset: int | None = None
    fan_out: int = 0


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


@dataclass(frozen=True)
class Asked:
    """A requested call; `elements` is the element count of a reduction of these bytes."""

    ranks: int
    elements: int
    size_bytes: int
    segment_bytes: int


# What a reduction adds up; 1 byte of an exclusive or.
_ELEMENT = "an element (8 bytes where 8 divides the size, else 1)"
NEEDS: dict[str, tuple[str, Callable[[Asked], bool]]] = {
    "power": ("a power of two of ranks", lambda asked: _is_power(asked.ranks)),
    "even": ("an even number of ranks", lambda asked: asked.ranks % 2 == 0),
    "two": ("two ranks", lambda asked: asked.ranks == 2),
    "halves": (
        f"{_ELEMENT} for each rank of the largest power of two",
        lambda asked: asked.elements >= 1 << (asked.ranks.bit_length() - 1),
    ),
    "segment": (
        "at most 1 KiB, or 8 KiB of doubles, one segment",
        lambda asked: asked.elements <= 1 << 10,
    ),
    "each": (f"{_ELEMENT} for each rank", lambda asked: asked.elements >= asked.ranks),
    # Open MPI's split binary tree is one chain if half of the message is shorter than a segment.
    "split": (
        "a byte and a segment in each half of the message",
        lambda asked: asked.size_bytes // 2 >= max(asked.segment_bytes, 1),
    ),
}

# The segment must be written each time: it stays with the variable. Chains of `chain` are four.
_CUT = {"segmentsize": "{segment}"}
_OPENMPI = {
    "bcast": {
        "linear": Algorithm(1, _LINEAR),
        "chain": Algorithm(2, segmented=_CUT, fan_out=4),
        "pipeline": Algorithm(3, _CHAIN, segmented=_CUT),
        "split-binary": Algorithm(4, needs="split", segmented=_CUT),
        "binary": Algorithm(5, segmented=_CUT),
        "binomial": Algorithm(6, _DOUBLING, segmented=_CUT),
        "knomial": Algorithm(7, segmented=_CUT),
        "scatter-allgather": Algorithm(8),
        "scatter-ring-allgather": Algorithm(9),
    },
    "reduce": {
        "linear": Algorithm(1, _LINEAR),
        "chain": Algorithm(2, segmented=_CUT, fan_out=4),
        "pipeline": Algorithm(3, _CHAIN, segmented=_CUT),
        "binary": Algorithm(4, segmented=_CUT),
        "binomial": Algorithm(5, _HALVING, segmented=_CUT),
        "in-order-binary": Algorithm(6, segmented=_CUT),
        "rabenseifner": Algorithm(7, needs="halves"),
    },
    "allreduce": {
        "linear": Algorithm(1),
        "reduce-bcast": Algorithm(2),
        "recursive-doubling": Algorithm(3),
        "ring": Algorithm(4, needs="each"),
        "segmented-ring": Algorithm(5, needs="each", segmented=_CUT),
        "rabenseifner": Algorithm(6, needs="halves"),
    },
    "allgather": {
        "linear": Algorithm(1),
        "bruck": Algorithm(2),
        "recursive-doubling": Algorithm(3, needs="power"),
        "ring": Algorithm(4),
        "neighbor-exchange": Algorithm(5, needs="even"),
        "two-ranks": Algorithm(6, needs="two"),
        "sparbit": Algorithm(7),
    },
    # allgatherv has none: its control variable cannot be written while a program runs (5.0.11).
    "alltoallv": {"linear": Algorithm(1), "pairwise": Algorithm(2)},
    "alltoall": {
        "linear": Algorithm(1),
        "pairwise": Algorithm(2),
        "bruck": Algorithm(3),
        "linear-sync": Algorithm(4),
        "two-ranks": Algorithm(5, needs="two"),
    },
    "gather": {
        "linear": Algorithm(1, _LINEAR),
        "binomial": Algorithm(2, _HALVING),
        "linear-sync": Algorithm(3),
    },
    "scatter": {
        "linear": Algorithm(1, _LINEAR),
        "binomial": Algorithm(2, _HALVING),
        "linear-nonblocking": Algorithm(3, _LINEAR),
    },
    "barrier": {
        "linear": Algorithm(1),
        "double-ring": Algorithm(2),
        "recursive-doubling": Algorithm(3),
        "dissemination": Algorithm(4),
        "two-ranks": Algorithm(5, needs="two"),
        "tree": Algorithm(6),
    },
}

# What MPICH calls the numbers of its variables, in order: at run time it takes numbers, at launch labels.
MPICH_LABELS = {
    "BCAST_INTRA_ALGORITHM": (
        "auto", "binomial", "nb", "smp", "scatter_recursive_doubling_allgather", "scatter_ring_allgather",
        "pipelined_tree", "tree",
    ),
    "REDUCE_INTRA_ALGORITHM": ("auto", "binomial", "nb", "smp", "reduce_scatter_gather"),
    "IREDUCE_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_smp", "sched_binomial", "sched_reduce_scatter_gather", "tsp_tree",
    ),
    "ALLREDUCE_INTRA_ALGORITHM": (
        "auto", "nb", "smp", "recursive_doubling", "recursive_multiplying", "reduce_scatter_allgather",
        "tree", "recexch", "ring",
    ),
    "ALLGATHER_INTRA_ALGORITHM": ("auto", "brucks", "k_brucks", "nb", "recursive_doubling", "ring"),
    "ALLTOALL_INTRA_ALGORITHM": (
        "auto", "brucks", "k_brucks", "nb", "pairwise", "pairwise_sendrecv_replace", "scattered",
    ),
    "GATHER_INTRA_ALGORITHM": ("auto", "binomial", "nb"),
    "IGATHER_INTRA_ALGORITHM": ("auto", "sched_auto", "sched_binomial", "tsp_tree"),
    "SCATTER_INTRA_ALGORITHM": ("auto", "binomial", "nb"),
    "ISCATTER_INTRA_ALGORITHM": ("auto", "sched_auto", "sched_binomial", "tsp_tree"),
    "BARRIER_INTRA_ALGORITHM": ("auto", "nb", "smp", "k_dissemination", "recexch"),
    "ALLGATHERV_INTRA_ALGORITHM": ("auto", "brucks", "nb", "recursive_doubling", "ring"),
    "ALLTOALLV_INTRA_ALGORITHM": ("auto", "nb", "pairwise_sendrecv_replace", "scattered"),
    "IALLTOALLV_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_blocked", "sched_inplace", "tsp_scattered", "tsp_blocked", "tsp_inplace",
    ),
    "NEIGHBOR_ALLGATHER_INTRA_ALGORITHM": ("auto", "nb"),
    "NEIGHBOR_ALLTOALL_INTRA_ALGORITHM": ("auto", "nb"),
    "NEIGHBOR_ALLTOALLV_INTRA_ALGORITHM": ("auto", "nb"),
    "INEIGHBOR_ALLGATHER_INTRA_ALGORITHM": ("auto", "sched_auto", "sched_linear", "tsp_linear"),
    "INEIGHBOR_ALLTOALL_INTRA_ALGORITHM": ("auto", "sched_auto", "sched_linear", "tsp_linear"),
    "INEIGHBOR_ALLTOALLV_INTRA_ALGORITHM": ("auto", "sched_auto", "sched_linear", "tsp_linear"),
    "IBCAST_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_binomial", "sched_smp", "sched_scatter_recursive_doubling_allgather",
        "sched_scatter_ring_allgather", "tsp_tree", "tsp_scatterv_recexch_allgatherv",
        "tsp_scatterv_ring_allgatherv", "tsp_ring",
    ),
    "IALLREDUCE_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_naive", "sched_smp", "sched_recursive_doubling",
        "sched_reduce_scatter_allgather", "tsp_recexch_single_buffer", "tsp_recexch_multiple_buffer",
        "tsp_tree", "tsp_ring", "tsp_recexch_reduce_scatter_recexch_allgatherv",
    ),
    "IALLGATHER_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_ring", "sched_brucks", "sched_recursive_doubling", "tsp_ring",
        "tsp_brucks", "tsp_recexch_doubling", "tsp_recexch_halving",
    ),
    "IALLGATHERV_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_brucks", "sched_recursive_doubling", "sched_ring",
        "tsp_recexch_doubling", "tsp_recexch_halving", "tsp_ring", "tsp_brucks",
    ),
    "IALLTOALL_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_brucks", "sched_inplace", "sched_pairwise", "sched_permuted_sendrecv",
        "tsp_ring", "tsp_brucks", "tsp_scattered",
    ),
    "IBARRIER_INTRA_ALGORITHM": (
        "auto", "sched_auto", "sched_recursive_doubling", "tsp_recexch", "tsp_k_dissemination",
    ),
}  # fmt: skip

# k-ary with k = P-1 is linear, with k = 1 a chain. Reduce has trees only among those of Ireduce (5), which
# `nb` (2) takes. What type a tree is of is read once, when MPI starts.
_BINOMIAL_TREE = "knomial_2"
_MPICH = {
    "bcast": {
        "linear": Algorithm(7, _LINEAR, more={"BCAST_TREE_KVAL": "{children}"}),
        "pipeline": Algorithm(
            7, _CHAIN, more={"BCAST_TREE_KVAL": "1"},
            segmented={"BCAST_INTRA_ALGORITHM": "6", "BCAST_TREE_PIPELINE_CHUNK_SIZE": "{segment}"},
        ),
        "binomial": Algorithm(
            1, _HALVING,
            segmented={
                "BCAST_INTRA_ALGORITHM": "6", "BCAST_TREE_KVAL": "2",
                "BCAST_TREE_PIPELINE_CHUNK_SIZE": "{segment}",
            },
            launch={"BCAST_TREE_TYPE": _BINOMIAL_TREE},
        ),
        "scatter-allgather": Algorithm(4, needs="power"),
        "scatter-ring-allgather": Algorithm(5),
    },
    "reduce": {
        "linear": Algorithm(
            2, _LINEAR,
            more={
                "IREDUCE_INTRA_ALGORITHM": "5", "IREDUCE_TREE_KVAL": "{children}",
                "IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "0",
            },
        ),
        "pipeline": Algorithm(
            2, _CHAIN,
            more={
                "IREDUCE_INTRA_ALGORITHM": "5", "IREDUCE_TREE_KVAL": "1",
                "IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "0",
            },
            segmented={"IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "{segment}"},
        ),
        "binomial": Algorithm(
            1, _HALVING,
            segmented={
                "REDUCE_INTRA_ALGORITHM": "2", "IREDUCE_INTRA_ALGORITHM": "5", "IREDUCE_TREE_KVAL": "2",
                "IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "{segment}",
            },
            launch={"IREDUCE_TREE_TYPE": _BINOMIAL_TREE},
        ),
        "rabenseifner": Algorithm(4, needs="halves"),
    },
    "allreduce": {
        "recursive-doubling": Algorithm(3),
        "rabenseifner": Algorithm(5, needs="halves"),
        "ring": Algorithm(8),
    },
    "allgather": {
        "bruck": Algorithm(1),
        "recursive-doubling": Algorithm(4, needs="power"),
        "ring": Algorithm(5),
    },
    "alltoall": {"bruck": Algorithm(1), "pairwise": Algorithm(4), "linear": Algorithm(6)},
    "gather": {
        "linear": Algorithm(
            2, _LINEAR, more={"IGATHER_INTRA_ALGORITHM": "3", "IGATHER_TREE_KVAL": "{ranks}"}
        ),
        "binomial": Algorithm(1, _HALVING),
    },
    "scatter": {
        "linear": Algorithm(
            2, _LINEAR, more={"ISCATTER_INTRA_ALGORITHM": "3", "ISCATTER_TREE_KVAL": "{ranks}"}
        ),
        "binomial": Algorithm(1, _HALVING),
    },
    "barrier": {"dissemination": Algorithm(3), "recursive-doubling": Algorithm(4)},
    "allgatherv": {
        "bruck": Algorithm(1),
        "recursive-doubling": Algorithm(3, needs="power"),
        "ring": Algorithm(4),
    },
    # `nb` (1) takes those of the nonblocking operation; `tsp` is MPICH's generic transport, its other engine.
    "alltoallv": {
        "linear": Algorithm(3),
        "blocked": Algorithm(1, more={"IALLTOALLV_INTRA_ALGORITHM": "2"}),
        "linear-tsp": Algorithm(1, more={"IALLTOALLV_INTRA_ALGORITHM": "4"}),
        "blocked-tsp": Algorithm(1, more={"IALLTOALLV_INTRA_ALGORITHM": "5"}),
    },
    **{
        operation: {
            "linear": Algorithm(1, more={f"I{operation.upper()}_INTRA_ALGORITHM": "2"}),
            "linear-tsp": Algorithm(1, more={f"I{operation.upper()}_INTRA_ALGORITHM": "3"}),
        }
        for operation in ("neighbor_allgather", "neighbor_alltoall", "neighbor_alltoallv")
    },
}  # fmt: skip

# A preset where `choice` is not 0, else a composition that ignores nodes, with an algorithm of its
# own list: k-ary 2, binomial 3.
_FLAT_BCAST = {"BCAST_COMPOSITION": "3"}
_FLAT_REDUCE = {"REDUCE_COMPOSITION": "2"}
_INTEL = {
    "bcast": {
        "linear": Algorithm(
            0, _LINEAR, more=_FLAT_BCAST | {"BCAST_NETWORK": "2", "BCAST_NETWORK_KARY_RADIX": "{children}"}
        ),
        "pipeline": Algorithm(
            0, _CHAIN, more=_FLAT_BCAST | {"BCAST_NETWORK": "2", "BCAST_NETWORK_KARY_RADIX": "1"},
            segmented={"BCAST_NETWORK_KARY_SEGSIZE": "{segment}"},
        ),
        "binomial": Algorithm(0, _HALVING, more=_FLAT_BCAST | {"BCAST_NETWORK": "3"}, preset=1),
        "scatter-ring-allgather": Algorithm(3),
    },
    "reduce": {
        "linear": Algorithm(
            0, _LINEAR, more=_FLAT_REDUCE | {"REDUCE_NETWORK": "2", "REDUCE_NETWORK_KARY_RADIX": "{children}"}
        ),
        "pipeline": Algorithm(
            0, _CHAIN, more=_FLAT_REDUCE | {"REDUCE_NETWORK": "2", "REDUCE_NETWORK_KARY_RADIX": "1"},
            segmented={"REDUCE_NETWORK_KARY_SEGSIZE": "{segment}"},
        ),
        "binomial": Algorithm(0, _HALVING, more=_FLAT_REDUCE | {"REDUCE_NETWORK": "3"}, preset=2),
        "rabenseifner": Algorithm(5, needs="halves"),
    },
    "allreduce": {
        "recursive-doubling": Algorithm(1),
        "rabenseifner": Algorithm(2, needs="halves"),
        "ring": Algorithm(8, needs="each"),
    },
    "allgather": {
        "recursive-doubling": Algorithm(1, needs="power"),
        "bruck": Algorithm(2),
        "ring": Algorithm(3),
    },
    "alltoall": {"bruck": Algorithm(1), "linear": Algorithm(2), "pairwise": Algorithm(3)},
    "gather": {"binomial": Algorithm(1, _HALVING), "linear": Algorithm(3, _LINEAR)},
    "scatter": {"binomial": Algorithm(1, _HALVING), "linear": Algorithm(3, _LINEAR)},
    "barrier": {"dissemination": Algorithm(1), "recursive-doubling": Algorithm(2)},
    # By Intel's reference: what of the MPI can be observed does not distinguish them.
    "allgatherv": {
        "recursive-doubling": Algorithm(1, needs="power"),
        "bruck": Algorithm(2),
        "ring": Algorithm(3),
    },
    "alltoallv": {"linear": Algorithm(1), "plum": Algorithm(2)},
}  # fmt: skip

# By name, when the simulation starts. NTSL cuts segments of its own size: as long as one holds the message
# there are none.
_SIMGRID = {
    "bcast": {
        "linear": Algorithm(0, _LINEAR, more={"bcast": "flattree"}),
        "pipeline": Algorithm(0, _CHAIN, needs="segment", more={"bcast": "NTSL"}),
        "binomial": Algorithm(0, _HALVING, more={"bcast": "binomial_tree"}),
    },
    "reduce": {
        "linear": Algorithm(0, _LINEAR, more={"reduce": "ompi_basic_linear"}),
        "pipeline": Algorithm(0, _CHAIN, needs="segment", more={"reduce": "NTSL"}),
        "binomial": Algorithm(0, _HALVING, more={"reduce": "binomial"}),
    },
    "gather": {
        "linear": Algorithm(0, _LINEAR, more={"gather": "ompi_basic_linear"}),
        "binomial": Algorithm(0, _HALVING, more={"gather": "ompi_binomial"}),
    },
    "scatter": {
        "linear": Algorithm(0, _LINEAR, more={"scatter": "ompi_basic_linear"}),
        "binomial": Algorithm(0, _HALVING, more={"scatter": "ompi_binomial"}),
    },
}

FAMILIES = {"mpich": _MPICH, "openmpi": _OPENMPI, "intel": _INTEL, "simgrid": _SIMGRID}

# The algorithms of persistent operations. They are those of the nonblocking operation, chosen when the
# operation is initialised: by I..._INTRA_ALGORITHM of MPICH, and by coll_libnbc_i..._algorithm of Open MPI.
_OPENMPI_PERSISTENT = {
    "bcast": {
        "linear": Algorithm(1, _LINEAR),
        "binomial": Algorithm(2, _DOUBLING),
        "pipeline": Algorithm(3, _CHAIN),
        "knomial": Algorithm(4),
    },
    "reduce": {
        "pipeline": Algorithm(1),
        "binomial": Algorithm(2),
        "rabenseifner": Algorithm(3, needs="halves"),
    },
    "allreduce": {
        "ring": Algorithm(1, needs="each"),
        "reduce-bcast": Algorithm(2),
        "rabenseifner": Algorithm(3, needs="halves"),
        "recursive-doubling": Algorithm(4),
    },
    "allgather": {"linear": Algorithm(1), "recursive-doubling": Algorithm(2, needs="power")},
}
_NEIGHBOURS = {"linear": Algorithm(2), "linear-tsp": Algorithm(3)}
_MPICH_PERSISTENT = {
    "bcast": {
        "linear": Algorithm(
            6, _LINEAR, more={"IBCAST_TREE_KVAL": "{children}", "IBCAST_TREE_PIPELINE_CHUNK_SIZE": "0"}
        ),
        "pipeline": Algorithm(
            6, _CHAIN, more={"IBCAST_TREE_KVAL": "1", "IBCAST_TREE_PIPELINE_CHUNK_SIZE": "0"},
            segmented={"IBCAST_TREE_PIPELINE_CHUNK_SIZE": "{segment}"},
        ),
        "binomial": Algorithm(2, _HALVING),
        "scatter-allgather": Algorithm(4, needs="power"),
        "scatter-ring-allgather": Algorithm(5),
        "scatter-ring-allgather-tsp": Algorithm(8),
    },
    "reduce": {
        "linear": Algorithm(
            5, _LINEAR, more={"IREDUCE_TREE_KVAL": "{children}", "IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "0"}
        ),
        "pipeline": Algorithm(
            5, _CHAIN, more={"IREDUCE_TREE_KVAL": "1", "IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "0"},
            segmented={"IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "{segment}"},
        ),
        "binomial": Algorithm(3, _HALVING),
        "rabenseifner": Algorithm(4, needs="halves"),
    },
    "allreduce": {
        "reduce-bcast": Algorithm(2),
        "recursive-doubling": Algorithm(4),
        "rabenseifner": Algorithm(5, needs="halves"),
        "recursive-exchange-tsp": Algorithm(7),
        "ring-tsp": Algorithm(9),
    },
    "allgather": {
        "ring": Algorithm(2),
        "bruck": Algorithm(3),
        "recursive-doubling": Algorithm(4, needs="power"),
        "ring-tsp": Algorithm(5),
        "bruck-tsp": Algorithm(6),
        "recursive-exchange-tsp": Algorithm(7),
    },
    "allgatherv": {
        "bruck": Algorithm(2),
        "recursive-doubling": Algorithm(3, needs="power"),
        "ring": Algorithm(4),
        "recursive-exchange-tsp": Algorithm(5),
        "ring-tsp": Algorithm(7),
        "bruck-tsp": Algorithm(8),
    },
    "alltoall": {
        "bruck": Algorithm(2),
        "pairwise": Algorithm(4),
        "linear": Algorithm(5),
        "ring-tsp": Algorithm(6),
        "bruck-tsp": Algorithm(7),
        "linear-tsp": Algorithm(8),
    },
    "alltoallv": {"blocked": Algorithm(2), "linear-tsp": Algorithm(4), "blocked-tsp": Algorithm(5)},
    "barrier": {
        "recursive-doubling": Algorithm(2),
        "recursive-exchange-tsp": Algorithm(3),
        "dissemination-tsp": Algorithm(4),
    },
    "gather": {
        "binomial": Algorithm(2, _HALVING),
        "linear": Algorithm(3, _LINEAR, more={"IGATHER_TREE_KVAL": "{ranks}"}),
    },
    "scatter": {
        "binomial": Algorithm(2, _HALVING),
        "linear": Algorithm(3, _LINEAR, more={"ISCATTER_TREE_KVAL": "{ranks}"}),
    },
    "neighbor_allgather": _NEIGHBOURS,
    "neighbor_alltoall": _NEIGHBOURS,
    "neighbor_alltoallv": _NEIGHBOURS,
}  # fmt: skip

PERSISTENT_FAMILIES = {"mpich": _MPICH_PERSISTENT, "openmpi": _OPENMPI_PERSISTENT}
# Of Intel MPI 2021.18.1, MPI_Gather_init delivers nothing, MPI_Scatter_init ends the program in MPI_Wait, and
# MPI_Allgather_init does so, or delivers wrong data, at four ranks.
FAULTY_PERSISTENT = {"intel": ("allgather", "gather", "scatter")}
