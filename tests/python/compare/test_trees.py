"""A run's verifications show whether each forced algorithm ran."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.compare.trees import verify
from earlybird.data.errors import InputError
from earlybird.data.run import Sample
from earlybird.models.trees import reaches

LAUNCHES = [{"id": "m", "library_version": "MPICH Version: 5.0.2"}]
DELAY_S = 0.1


def verification(method, ran, operation="bcast", ranks=5, root=0, launch="m", **more):
    below = reaches(ran, ranks, root)
    late = below.T if operation in ("reduce", "gather") else below
    config = {
        "mpi": "mpich", "operation": operation, "ranks": ranks, "layout": "1x1x5", "map_by": "core",
        "size_bytes": 8, "root": root, "delay_s": DELAY_S,
    }  # fmt: skip
    return Sample(
        "collective", "delayed_completion", config, launch, np.full(ranks, DELAY_S), method=method,
        rank_times_s=np.where(late, DELAY_S + 2e-5, 1e-5),
        extra={"delayed_ranks": list(range(ranks))} | more,
    )  # fmt: skip


def test_what_ran_is_compared_with_the_tree_of_that_mpi():
    found = verify(
        [verification("binomial", "binomial-halving"), verification("own-binomial", "binomial-doubling")],
        LAUNCHES,
    )
    assert {one.method: (one.verification.verdict, one.tree) for one in found.values()} == {
        "binomial": ("confirmed", "binomial-halving"),
        "own-binomial": ("confirmed", "binomial-doubling"),
    }
    assert not any(one.contradiction() for one in found.values())


def test_data_that_go_to_the_root_make_those_above_late():
    (found,) = verify([verification("pipeline:16", "chain", "reduce", root=2)], LAUNCHES).values()
    assert (found.verification.verdict, found.root) == ("confirmed", 2)


def test_a_contradiction_names_the_tree_that_ran():
    (found,) = verify([verification("linear", "binomial-halving")], LAUNCHES).values()
    assert found.verification.verdict == "contradicted"
    assert "along the tree linear but ran along binomial-halving" in found.contradiction()


def test_the_free_choice_contradicts_nothing():
    (found,) = verify([verification("default", "chain")], LAUNCHES).values()
    assert (found.verification.verdict, found.verification.seen, found.contradiction()) == (
        "not verified",
        "chain",
        None,
    )


def test_a_later_try_that_tells_something_counts():
    noisy = verification("linear", "linear")
    noisy.rank_times_s[2, 4] = DELAY_S
    conclusive = verification("linear", "linear")
    for order in ([noisy, conclusive], [conclusive, noisy]):
        (found,) = verify(order, LAUNCHES).values()
        assert found.verification.verdict == "confirmed"


def test_other_samples_are_ignored():
    other = Sample("pingpong", "half_round_trip", {"size_bytes": 8}, "m", np.ones(3))
    assert verify([other], LAUNCHES) == {}


def test_a_verification_without_its_ranks_is_refused():
    with pytest.raises(InputError, match="does not record which ranks were delayed"):
        verify([verification("linear", "linear", delayed_ranks=[0])], LAUNCHES)


@pytest.mark.parametrize("delayed", [[-1, 0, 1, 2, 3], [0, 1, 2, 3, 5]])
def test_delayed_ranks_are_of_the_operation(delayed):
    with pytest.raises(InputError, match="does not record which ranks were delayed"):
        verify([verification("linear", "linear", delayed_ranks=delayed)], LAUNCHES)


@pytest.mark.parametrize("key", ["ranks", "delay_s", "map_by", "root"])
def test_a_verification_that_lacks_a_parameter_shows_no_tree_or_that_of_the_default(key):
    sample = verification("linear", "linear")
    lacking = replace(sample, config={name: value for name, value in sample.config.items() if name != key})
    assert len(verify([lacking], [{"flavour": "mpich"}])) == (key in ("map_by", "root"))


def test_a_sample_without_a_method_is_refused():
    with pytest.raises(InputError, match="names no method"):
        verify([verification(None, "binomial-halving")], LAUNCHES)
