"""Histories of many points: no alarm where nothing changed, and the one point that changed is found."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from earlybird.compare.history import caveats, history
from earlybird.compare.sides import Side
from earlybird.data.errors import InputError

NIGHTS, POINTS, NOISE = 60, 20, 0.01


def nights(seed: int, slowdown: float = 1.0) -> list[tuple[str, Side]]:
    """Of NIGHTS runs with POINTS points each; the first point is slower from the night 45 on."""
    random = np.random.default_rng(seed)
    time_s = np.exp(NOISE * random.standard_normal((NIGHTS, POINTS)))
    time_s[45:, 0] *= slowdown
    first = datetime(2026, 9, 1, 3, tzinfo=UTC)
    return [
        (
            (first + timedelta(days=night)).isoformat(),
            Side(
                f"night {night}", "mpich",
                {("pingpong", "", "", (("size_bytes", k),)): [one] for k, one in enumerate(row)},
                {},
            ),
        )
        for night, row in enumerate(time_s[:, :, None])
    ]  # fmt: skip


@pytest.mark.thorough
def test_twenty_clean_histories_raise_no_alarm():
    found = [history(nights(seed)).changes() for seed in range(20)]
    assert found == [[]] * 20


@pytest.mark.parametrize("seed", range(3))
def test_one_point_of_many_that_changed_is_found(seed):
    ((point, change),) = history(nights(seed, slowdown=1.06)).changes()
    assert (point.config["size_bytes"], change.kind, change.first) == (0, "step", 45)
    assert change.ratio == pytest.approx(1.06, abs=0.015)


def test_a_change_from_means_to_medians_is_no_step():
    """Of iterations that end in a tail, the mean is larger than the median."""
    key = ("pingpong", "", "", (("size_bytes", 8),))
    tail_s = np.array([1.0, 1.0, 1.0, 5.0])

    def run(night: int, launches, statistic=None) -> tuple[str, Side]:
        statistics = {key: frozenset({statistic})} if statistic else {}
        return f"2026-09-{night:02}T03:00:00+00:00", Side(
            str(night), "mpich", {key: launches}, {}, statistics=statistics
        )

    own = [run(night, [tail_s]) for night in range(1, 11)]
    means = [run(night, [np.array([2.0])], "mean") for night in range(11, 21)]
    medians = [run(night, [np.array([1.0])], "median") for night in range(21, 31)]
    (series,) = history(own + means).series
    assert set(series.time_s) == {2.0} and not history(own + means).changes()
    with pytest.raises(InputError, match="means over iterations, others medians"):
        history(means + medians)
    other = {("pingpong", "", "", (("size_bytes", 16),)): [np.array([1.0])]}
    sides = [(start, replace(side, times_s={**side.times_s, **other})) for start, side in means + medians]
    assert "1 point left out: some runs have the mean" in caveats(sides, history(sides))[0]


def test_a_time_below_0_is_refused_with_the_clocks_as_the_reason():
    sides = nights(0)
    key = next(iter(sides[7][1].times_s))
    sides[7][1].times_s[key] = [np.array([-1e-9])]
    with pytest.raises(InputError, match="night 7 has a time of -1e-09 s of pingpong, below 0: the clocks"):
        history(sides)
