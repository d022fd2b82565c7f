"""Clocks that are apart leave in doubt what is not long against that, and nothing else."""

import numpy as np
import pytest

from earlybird.data.clocks import doubt, residual_s
from earlybird.data.run import Sample


def sample(time_s, kernel="pipeline", size_bytes=8, **extra) -> Sample:
    config = {"mpi": "mpich", "level": "inter_node"} | ({"size_bytes": size_bytes} if size_bytes else {})
    return Sample(kernel, kernel, config, "0", np.full(5, time_s), extra=extra)


def test_figures_that_the_clocks_leave_in_doubt_are_named():
    samples = [
        sample(2e-5, size_bytes=8, clock_residual_s=2e-6),
        sample(3e-5, size_bytes=4096, clock_residual_s=3e-6),
        sample(1e-3, size_bytes=1 << 20, clock_residual_s=2e-6),
        sample(1e-5, kernel="exchange", size_bytes=None, clock_residual_s=2e-6),
        sample(1e-6, kernel="completion", clock="one"),
    ]
    output = doubt(samples)
    assert "differ by up to 3 us" in output and "3 samples" in output
    assert "pipeline up to 4 KiB and exchange are doubtful" in output and "completion" not in output


@pytest.mark.parametrize(
    "extra", [{}, {"clock": "one"}, {"clock_residual_s": 1e-7}, {"clock_residual_s": None}]
)
def test_nothing_is_in_doubt_where_clocks_agree(extra):
    assert doubt([sample(1e-5, **extra)]) is None
    assert residual_s(sample(1e-5, **extra)) == extra.get("clock_residual_s")


def test_a_time_of_nothing_or_less_is_in_doubt():
    """A clock that is wrong by more than a message takes lets it arrive before it was sent."""
    assert "pipeline up to 8 B" in doubt([sample(-1e-6, clock_residual_s=5e-6)])
