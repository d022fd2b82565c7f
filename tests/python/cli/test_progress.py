"""The progress line on stderr shows completed points and the time of the previous point."""

import numpy as np

from earlybird.cli.output.progress import ProgressLine
from earlybird.data.run import Sample


def sample(quantity):
    return Sample(
        "collective", quantity, {"ranks": 4, "size_bytes": 8}, "0", np.full(5, 0.1), method="linear"
    )


def test_the_time_of_the_previous_point_is_shown_unless_it_is_a_verification(capsys):
    ProgressLine().update(1, 4, "collective 1x1x4 8 B", 3.0, sample("completion"))
    assert "(previous: 100 ms" in capsys.readouterr().err
    ProgressLine().update(1, 4, "collective 1x1x4 8 B", 3.0, sample("delayed_completion"))
    output = capsys.readouterr().err
    assert "1 of 4 points" in output and "previous" not in output
