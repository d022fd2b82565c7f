"""The files that select MPICH's algorithms by size: what they decide, and that all else stays as it was."""

import json
from pathlib import Path

import pytest

from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.collective_configuration import Region, mpich_selects, selection_configuration
from earlybird.data.errors import InputError
from earlybird.data.mpich_selection import read_selection

OPERATIONS = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "barrier", "ibcast")
# Names that MPICH compares those of a file with.
NAMES = [
    "recv_pre_posted=",
    *(f"composition=MPIDI_{one}_intra_composition_beta" for one in ("Allreduce", "Allgather", "Alltoall")),
    *(f"composition=MPIDI_{one}_intra_composition_gamma" for one in ("Bcast", "Reduce")),
    "composition=MPIDI_Barrier_intra_composition_beta",
]
REGIONS = [
    Region("bcast", "binomial", 8, 64), Region("bcast", DEFAULT, 8, 1024),
    Region("bcast", "pipeline:512", 8, 4096, 8192),
]  # fmt: skip


def _tree(kind):
    return {f"collective={one}": {"comm_type=intra": {f"{kind}usual_{one}": {}}} for one in OPERATIONS}


def _read(folder, names=NAMES):
    trees = [_tree("algorithm=MPIDI_POSIX_"), _tree("composition=MPIDI_"), _tree("algorithm=MPIR_")]
    texts = [json.dumps(one, separators=(",", ":")) for one in trees]
    (folder / "libmpi.so").write_bytes("\0".join(["\x7fELF", '{"collective=%s', *texts, *names, ""]).encode())
    return read_selection(folder / "libmpi.so")


@pytest.fixture
def selection(tmp_path):
    return _read(tmp_path)


def decide(tree, operation, ranks=8, nodes=1, size=0, **call):
    """What MPICH's search finds: the first key that holds, at every level."""
    facts = {
        "comm_size": ranks, "comm_avg_ppn": ranks / nodes, "avg_msg_size": size,
        "total_msg_size": size * ranks, "count": size // 8,
    }  # fmt: skip
    texts = {"is_commutative": "yes", "is_op_built_in": "yes", "is_sendbuf_inplace": "no"} | call

    def holds(key):
        name, _, value = key.replace("<=", "=").partition("=")
        if key == "count<pow2":
            return facts["count"] < 1 << (ranks.bit_length() - 1)
        if value == "node_comm_size":
            return nodes == 1
        if "<=" in key:
            return facts[name] <= int(value)
        return value == "any" or key == "comm_type=intra" or texts.get(name) == value

    node = tree[f"collective={operation}"]
    while not next(iter(node)).startswith(("algorithm=", "composition=")):
        node = next(below for key, below in node.items() if holds(key))
    return next(iter(node)).split("_", 1)[1]


def _files(selection, regions, nodes=1):
    made = selection_configuration(selection, regions, nodes)
    assert 'MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE="FILE.json"' in made.text
    assert 'MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE="FILE.ch4.json"' in made.text
    return json.loads(made.files[".json"]), json.loads(made.files[".ch4.json"])


def test_rules_hold_for_their_sizes_ranks_and_nodes_only(selection):
    algorithms, compositions = _files(selection, REGIONS)
    binomial, pipeline = "Bcast_intra_binomial", "Bcast_intra_pipelined_tree"
    by_size = {8: "usual_bcast", 63: "usual_bcast", 64: binomial, 1023: binomial, 1024: "usual_bcast",
               4095: "usual_bcast", 4096: pipeline, 8192: pipeline, 8193: "usual_bcast"}  # fmt: skip
    for size, name in by_size.items():
        assert decide(algorithms, "bcast", size=size) == name
        flat = "usual_bcast" if name == "usual_bcast" else "Bcast_intra_composition_gamma"
        assert decide(compositions, "bcast", size=size) == flat
    for ranks, nodes in ((7, 1), (9, 1), (8, 2)):
        assert decide(algorithms, "bcast", ranks, nodes, 64) == "usual_bcast"
    assert decide(algorithms, "allreduce", size=64) == "usual_allreduce"
    assert list(algorithms) == list(selection.algorithms)


def test_nodes_with_another_number_of_ranks_keep_the_default(selection):
    algorithms, _ = _files(selection, REGIONS, nodes=4)
    decided = {nodes: decide(algorithms, "bcast", 8, nodes, 64) for nodes in (1, 2, 4, 8)}
    assert [nodes for nodes, name in decided.items() if name == "Bcast_intra_binomial"] == [4]


def test_only_calls_like_those_measured_take_the_algorithm(selection):
    algorithms, _ = _files(selection, [Region("allreduce", "rabenseifner", 8, 8, 4096)])
    assert decide(algorithms, "allreduce", size=64) == "Allreduce_intra_reduce_scatter_allgather"
    assert decide(algorithms, "allreduce", size=56) == "usual_allreduce"  # fewer elements than ranks
    for other in ({"is_commutative": "no"}, {"is_op_built_in": "no"}):
        assert decide(algorithms, "allreduce", size=64, **other) == "usual_allreduce"
    algorithms, _ = _files(selection, [Region("alltoall", "bruck", 8, 8, 64)])
    assert decide(algorithms, "alltoall", size=64) == "Alltoall_intra_brucks"
    assert decide(algorithms, "alltoall", size=64, is_sendbuf_inplace="yes") == "usual_alltoall"


def test_rules_of_several_operations_are_in_the_same_files(selection):
    ring = Region("allreduce", "ring", 8, 64, 4096)
    algorithms, compositions = _files(selection, [*REGIONS, ring, Region("reduce", DEFAULT, 8)])
    assert decide(algorithms, "bcast", size=64) == "Bcast_intra_binomial"
    assert decide(algorithms, "allreduce", size=64) == "Allreduce_intra_ring"
    assert decide(compositions, "bcast", size=64) == "Bcast_intra_composition_gamma"
    assert decide(compositions, "allreduce", size=64) == "Allreduce_intra_composition_beta"
    assert decide(algorithms, "reduce", size=64) == "usual_reduce"
    # Each as without the other.
    for alone in (REGIONS, [ring]):
        key = f"collective={alone[0].operation}"
        assert [tree[key] for tree in _files(selection, alone)] == [algorithms[key], compositions[key]]


def test_sizes_of_an_allgather_count_all_blocks(selection):
    algorithms, _ = _files(selection, [Region("allgather", "ring", 8, 8, 64)])
    assert decide(algorithms, "allgather", size=64) == "Allgather_intra_ring"
    assert "total_msg_size<=512" in json.dumps(algorithms)


def test_sizes_beyond_an_int_keep_the_default(selection):
    """MPICH would read another number."""
    million = 1 << 20
    regions = [
        Region("allgather", "ring", 2048, 1024, million - 1),
        Region("allgather", "bruck", 2048, million, 4 * million),
    ]
    text = json.dumps(_files(selection, regions)[0])
    assert f"total_msg_size<={(1 << 31) - 2048}" in text and "brucks" not in text
    regions = [Region("allgather", "ring", 2048, 1024, 4 * million)]
    assert f"total_msg_size<={(1 << 31) - 1}" in json.dumps(_files(selection, regions)[0])


def test_what_a_file_cannot_select_by_size_is_known():
    assert mpich_selects("bcast", "pipeline:8192", 8) and mpich_selects("bcast", DEFAULT, 8)
    # The first would change MPI_Ireduce, too; sizes of the second are not the same on all ranks.
    assert not mpich_selects("reduce", "linear", 8) and not mpich_selects("scatter", "binomial", 8)


def test_a_file_never_fills_its_last_page(selection):
    """MPICH would read beyond it."""
    lengths = []
    for more_digits in range(120):
        digits = [1 + min(max(more_digits - 17 * k, 0), 17) for k in range(13)]
        regions = [
            Region("bcast", f"pipeline:{'9' * count}", 8, 100 * k, 100 * k + 100)
            for k, count in enumerate(digits)
        ]
        lengths.append(len(selection_configuration(selection, regions, 1).files[".json"]))
    assert min(lengths) < 4096 < max(lengths) and len(set(lengths)) > 100
    assert 4096 not in lengths


def test_a_library_without_trees_has_no_selection(tmp_path):
    (tmp_path / "libmpi.so").write_bytes(b"INPUT(libmpi.so.12)")
    assert read_selection(tmp_path / "libmpi.so") is None


@pytest.mark.parametrize("missing", [NAMES[0], NAMES[3]])
def test_a_library_that_does_not_know_a_name_has_no_selection(tmp_path, missing):
    """As MPICH 4.0.3, whose MPI_Init aborts at the name."""
    assert _read(tmp_path, [name for name in NAMES if name != missing]) is None


def test_a_library_is_read_within_the_bounds_of_every_file():
    with pytest.raises(InputError, match="is a device"):
        read_selection(Path("/dev/zero"))
