"""Histories of many points: no alarm where nothing changed, and the one point that changed is found."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from earlybird.compare.history import history
from earlybird.compare.sides import Side

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


def test_twenty_clean_histories_raise_no_alarm():
    found = [history(nights(seed)).changes() for seed in range(20)]
    assert found == [[]] * 20


@pytest.mark.parametrize("seed", range(3))
def test_one_point_of_many_that_changed_is_found(seed):
    ((point, change),) = history(nights(seed, slowdown=1.06)).changes()
    assert (point.config["size_bytes"], change.kind, change.first) == (0, "step", 45)
    assert change.ratio == pytest.approx(1.06, abs=0.015)
