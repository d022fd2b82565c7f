"""Collectives are predicted for the placement asked for, with what was not measured said."""

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import profile_from_json
from earlybird.models.trees import critical_path, edges
from earlybird.predict.collective import forms_of, place_ranks, predict_collective
from earlybird.predict.published_collectives import references

ALPHA, BETA = {"intra_socket": 1e-6, "inter_node": 2e-5}, {"intra_socket": 1e-10, "inter_node": 8e-9}


def form(algorithm, tree=None, *, operation="bcast", levels=("intra_socket", "inter_node"), **more):
    coefficients = {level: {"alpha_s": ALPHA[level], "beta_s_per_byte": BETA[level]} for level in levels}
    value = {
        "what": {"operation": operation, "algorithm": algorithm, "mpi": "openmpi"},
        "form": "alpha-beta" if tree else "empirical",
        "parameters": {"protocols": [{"min_bytes": 0, **coefficients}]},
        "range": {"ranks": [2, 8], "size_bytes": [1, 1 << 20], "segments_bytes": [0]},
        "map_by": ["node"],
        "levels": list(levels),
        "machine": {"nodes": 4, "sockets": 1, "cores": 2},
    }
    return value | ({"tree": tree} if tree else {}) | more


def profile(*forms):
    return profile_from_json({"schema": "earlybird.profile/1", "id": "p", "levels": {}, "forms": list(forms)})


def predictions(profile, ranks, size_bytes, only=None, **where):
    forms = forms_of(profile, "bcast")
    placed, notes = place_ranks(forms, ranks, **where)
    answer = predict_collective(forms, placed, size_bytes, only)
    return {one.method: one for one in answer.predictions}, [*notes, *answer.notes]


PIPELINE = form("pipeline", "chain", range={"ranks": [2, 8], "size_bytes": [1, 1 << 20],
                                            "segments_bytes": [0, 1024, 8192]})  # fmt: skip
BINOMIAL = form("binomial", "binomial-doubling")


def test_hops_are_counted_where_ranks_sit():
    found, notes = predictions(profile(BINOMIAL, PIPELINE), 8, 1000, map_by="node")
    parent, child = edges("binomial-doubling", 8)
    level = np.where(parent % 4 == child % 4, 0, 2)
    hops, _ = critical_path(parent, child, level, 3)
    assert hops.tolist() == [1, 0, 2]
    hop_s = [ALPHA[name] + BETA[name] * 1000 for name in ("intra_socket", "inter_node")]
    assert found["binomial"].time_s == pytest.approx(hop_s[0] + 2 * hop_s[1])
    assert found["pipeline"].time_s == pytest.approx(7 * hop_s[1])
    assert set(found) == {"binomial", "pipeline", "pipeline:1024", "pipeline:8192"}
    assert not notes and not found["binomial"].extrapolated


def test_an_algorithm_of_one_size_is_predicted_at_no_other():
    single = BINOMIAL | {"range": {"ranks": [2, 8], "size_bytes": [8, 8], "segments_bytes": [0]}}
    found, notes = predictions(profile(single, PIPELINE), 8, 1000, map_by="node")
    assert "binomial" not in found
    assert any(note.startswith("binomial is left out") and "8 B only" in note for note in notes)
    assert "binomial" in predictions(profile(single, PIPELINE), 8, 8, map_by="node")[0]


def test_what_an_mpi_chooses_by_itself_is_interpolated_where_it_was_measured():
    """It takes another algorithm from some size on, which no form has; trees keep to their form."""
    measured = [[8, 1024, 0, "node", 1e-3], [8, 4096, 0, "node", 4e-3], [4, 1024, 0, "node", 9.0]]
    both = profile(
        form("default", measured=measured), form("binomial", "binomial-doubling", measured=measured)
    )
    found, _ = predictions(both, 8, 2048, map_by="node")
    assert found["default"].time_s == pytest.approx(2e-3) and found["default"].form == "interpolated"
    assert found["binomial"].time_s != pytest.approx(2e-3, rel=0.2)
    by_form = predictions(profile(form("default")), 8, 2048, map_by="node")[0]["default"].time_s
    for size, where in (
        (512, {}),
        (2048, {"layout": "4x1x3"}),
        (2048, {"root": 1}),
        (2048, {"map_by": "core"}),
    ):
        other, _ = predictions(both, 8, size, **({"map_by": "node"} | where))
        assert other["default"].form == "empirical"
    assert predictions(both, 8, 2048, layout="4x1x3", map_by="node")[0]["default"].time_s == by_form
    # The machine of the profile is the same, whoever names it.
    same, _ = predictions(both, 8, 2048, layout="4x1x2", map_by="node")
    assert same["default"].form == "interpolated"


def test_a_layout_that_its_ranks_fill_is_one_that_was_measured_by_another_name():
    measured = [[4, 1024, 0, "node", 1e-3], [4, 4096, 0, "node", 4e-3]]
    known = profile(form("default", measured=measured))  # of 4x1x2
    found, notes = predictions(known, 4, 1024, layout="4x1x1", map_by="core")
    assert "these ranks of 4x1x1 were measured as 4 of 4x1x2 by node" in notes
    assert found["default"].form == "interpolated" and not found["default"].extrapolated
    for other in ({"layout": "2x1x2"}, {"layout": "4x1x1", "root": 1}):
        assert predictions(known, 4, 1024, **other)[0]["default"].form == "empirical"


def test_a_layout_is_named_that_has_the_hops_measured():
    near, far = (form(level, "linear", levels=(level,)) for level in ("intra_socket", "inter_node"))
    _, notes = predictions(profile(near, far, BINOMIAL), 8, 8, map_by="node")
    text = " ".join(notes)
    assert "intra_socket left out: no hops between nodes" in text and "such as 1x1x8" in text
    assert "inter_node left out: no hops on the same socket" in text and "such as 8x1x1" in text


def test_a_mapping_changes_the_hops_and_is_said_where_it_was_not_measured():
    found, notes = predictions(profile(PIPELINE), 8, 1, only="pipeline", map_by="core")
    assert found["pipeline"].time_s == pytest.approx(
        4 * ALPHA["intra_socket"] + 3 * ALPHA["inter_node"], rel=0.01
    )
    assert found["pipeline"].extrapolated == ("mapping",)
    assert "--map-by core was not measured" in notes[0]


def test_more_ranks_than_the_machine_holds_get_more_nodes():
    found, notes = predictions(profile(PIPELINE), 256, 1, only="pipeline:1024")
    assert found["pipeline:1024"].extrapolated == ("ranks",)
    assert "128 nodes of this kind are assumed" in notes[0] and "256 is extrapolated" in notes[1]
    found, notes = predictions(profile(PIPELINE), 256, 1, layout="2x2x64", only="pipeline")
    assert not any("nodes of this kind are assumed" in text for text in notes)


def test_segments_of_an_algorithm_that_cuts_nothing_are_refused():
    with pytest.raises(InputError, match="linear of bcast was measured without segments; give linear"):
        predictions(profile(form("linear", "linear")), 8, 1000, "linear:1024", map_by="node")


def test_any_size_of_segments_can_be_asked_for():
    found, _ = predictions(profile(PIPELINE), 4, 1 << 16, only="pipeline:4096")
    assert found["pipeline:4096"].extrapolated == ()
    hop_s = ALPHA["inter_node"] + BETA["inter_node"] * 4096
    assert found["pipeline:4096"].time_s == pytest.approx((4 + 16 - 2) * hop_s)
    found, _ = predictions(profile(PIPELINE), 4, 1 << 20, only="pipeline:65536")
    assert found["pipeline:65536"].extrapolated == ("segment",)


def test_algorithms_without_the_hops_needed_are_left_out_with_a_sentence():
    inside = form("linear", "linear", levels=("intra_socket",))
    found, notes = predictions(profile(inside, BINOMIAL), 8, 1)
    assert set(found) == {"binomial"}
    assert "linear left out: no hops between nodes were measured" in notes[0] and "--layout" in notes[0]
    with pytest.raises(InputError, match="nothing can be predicted: linear left out: no hops between nodes"):
        predictions(profile(inside), 8, 1)


def test_algorithms_that_the_mpi_would_not_take_are_left_out():
    awkward = form("recursive-doubling", operation="allgather")
    forms = forms_of(profile(awkward, form("ring", operation="allgather")), "allgather")
    answer = predict_collective(forms, place_ranks(forms, 6)[0], 64)
    assert [one.algorithm for one in answer.predictions] == ["ring"]
    assert "recursive-doubling is left out: it needs a power of two of ranks" in answer.notes[0]
    assert any(
        "no tree is known" in text for text in predict_collective(forms, place_ranks(forms, 16)[0], 64).notes
    )


def test_replicates_give_intervals():
    drawn = [{"protocols": [{"inter_node": {"alpha_s": alpha}}]} for alpha in (1e-5, 3e-5)]
    found, _ = predictions(profile(form("binomial", "binomial-doubling", replicates=drawn)), 2, 1)
    low, high = found["binomial"].time_interval_s
    assert 1e-5 <= low < found["binomial"].time_s < high <= 3e-5


def test_the_root_turns_the_tree():
    far = profile(form("linear", "linear"))
    at_edge, _ = predictions(far, 3, 1, layout="2x1x2", map_by="core", root=2)
    inside, _ = predictions(far, 3, 1, layout="2x1x2", map_by="core")
    assert at_edge["linear"].time_s > 1.5 * inside["linear"].time_s


def test_the_published_regressions_are_added():
    one_byte = {(one.form, one.algorithm): one.time_s for one in references("bcast", 256, 1, "node")}
    assert one_byte["insaghi-2", "linear"] == pytest.approx(61.1e-6, abs=1e-7)
    assert one_byte["insaghi-3", "linear"] == pytest.approx(93.4e-6, abs=1e-7)
    assert {one.form for one in references("reduce", 64, 1, "core")} == {"insaghi-1", "insaghi-3"}
    assert {one.form for one in references("bcast", 64, 1024, "node")} == {"insaghi-3"}
    assert references("alltoall", 64, 1, "node") == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"tree": "bush"}, "alpha-beta is 'bush'; give one of linear"),
        ({"range": {"ranks": [2]}}, "'range' must give ranks"),
        ({"levels": ["moon"]}, "levels is"),
        ({"map_by": ["moon"]}, "map_by is 'moon'; give one of core"),
        ({"machine": {"nodes": 0, "sockets": 1, "cores": 1}}, "machine.nodes is 0; give a whole number >= 1"),
        ({"parameters": {"protocols": [{"min_bytes": 4}]}}, "it must begin at 0"),
        ({"parameters": {"protocols": [{"inter_node": {"alpha_s": -1}}]}}, "alpha_s is -1"),
        ({"parameters": {"protocols": [{}], "shared": "cake"}}, "shared is 'cake'"),
        ({"what": {"operation": "bcast", "algorithm": 3}}, "what.algorithm is 3; give text"),
        ({"what": {"operation": "allgather", "algorithm": "ring"}}, "'allgather'; give one of bcast"),
    ],
)
def test_impossible_forms_are_refused_by_name(changed, text):
    with pytest.raises(InputError, match=text):
        forms_of(profile(form("binomial", "binomial-doubling") | changed), "bcast")
