"""Exchanges between near ranks have the density that is asked for, and go to near ranks."""

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.patterns.near_exchange import near_exchange


@pytest.mark.parametrize(("ranks", "per_rank"), [(2, 1), (3, 2), (50, 0.5), (400, 26), (100, 99)])
def test_there_are_as_many_messages_as_asked_for_in_both_directions(ranks, per_rank):
    pattern = near_exchange(ranks, per_rank, mean_size_bytes=1000)
    assert pattern.num_messages == pytest.approx(ranks * per_rank, abs=1)
    pairs = set(zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True))
    assert len(pairs) == pattern.num_messages and pairs == {(dst, src) for src, dst in pairs}
    assert pattern.bytes.min() >= 1


def test_sizes_have_the_mean_and_unevenness_is_of_messages_per_rank():
    even, uneven = (near_exchange(2000, 40, mean_size_bytes=5000, unevenness=u) for u in (1, 6))
    for pattern in (even, uneven):
        assert pattern.bytes.mean() == pytest.approx(5000, rel=0.03)
    most = [np.bincount(pattern.src).max() / 40 for pattern in (even, uneven)]
    assert most[0] < 2 and most[1] > 3


def test_ranks_of_a_block_are_near_each_other():
    """Of 64 blocks of 32 ranks, far more messages stay in the block than of ranks at random, 1 in 64."""
    pattern = near_exchange(2048, 26)
    assert (pattern.src // 32 == pattern.dst // 32).mean() > 0.25


def test_the_same_seed_gives_the_same_and_another_seed_another_pattern():
    one, same, other = (near_exchange(100, 10, seed=seed).sha256() for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((10, 10), "at most 9, one to each other rank"),
        ((10, 0), "give more than 0"),
        ((0, 1), "number of ranks is 0"),
        ((1, 1), "^one rank has no other rank to send to; give 2 ranks or more$"),
        ((10, float("nan")), "per rank is nan; give more than 0"),
        ((10, float("inf")), "per rank is inf; give more than 0"),
        ((10_000_000, 100), "which take about 102 GiB of memory; at most 50000000 are"),
    ],
)
def test_what_is_impossible_is_refused(arguments, says):
    with pytest.raises(InputError, match=says):
        near_exchange(*arguments)
    sizes = {"mean_size_bytes": 0}, {"mean_size_bytes": float("inf")}
    for wrong in (*sizes, {"unevenness": 9}, {"unevenness": 0.5}, {"seed": -1}):
        with pytest.raises(InputError):
            near_exchange(10, 3, **wrong)
