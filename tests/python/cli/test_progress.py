"""The line on stderr tells how far a session is, and the time of the point before."""

import numpy as np

from earlybird.cli.progress import ProgressLine
from earlybird.data.run import Sample


def sample(quantity):
    return Sample(
        "collective", quantity, {"ranks": 4, "size_bytes": 8}, "0", np.full(5, 0.1), method="linear"
    )


def test_the_time_of_the_point_before_is_told_but_not_of_a_proof(capsys):
    ProgressLine().update(1, 4, "collective 1x1x4 8 B", 3.0, sample("completion"))
    assert "(the one before: 100 ms" in capsys.readouterr().err
    ProgressLine().update(1, 4, "collective 1x1x4 8 B", 3.0, sample("delayed_completion"))
    told = capsys.readouterr().err
    assert "1 of 4 points" in told and "the one before" not in told
