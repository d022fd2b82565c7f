"""The progress line on stderr shows completed points and the time of the previous point."""

import numpy as np

from earlybird.cli.session.progress import ProgressLine
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
    assert "1 of up to 4 samples" in output and "previous" not in output


def test_the_share_is_that_of_the_time_where_a_budget_ends_before_all_points(capsys, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    line = ProgressLine()
    now_s[0] += 90
    line.update(220, 720, "point", 10.0, None)
    assert capsys.readouterr().err.startswith(" 90 %  220 of up to 720 samples  about 10 s left")
    now_s[0] += 6
    line.update(700, 720, "point", 60.0, None)
    assert capsys.readouterr().err.startswith(" 97 %")


def test_a_search_is_silent_at_first_and_then_says_what_is_left(capsys, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    line = ProgressLine(silent_s=1.0)
    assert not line.is_due() and not ProgressLine(quiet=True).is_due()
    now_s[0] += 1
    assert line.is_due()
    line.search(0.25, "500 of up to 2000 swaps", 3.0, "slowest rank 2 ms")
    assert capsys.readouterr().err == (" 25 %  500 of up to 2000 swaps  about 3 s left  slowest rank 2 ms\n")
    assert not line.is_due()
