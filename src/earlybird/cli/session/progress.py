"""Progress on stderr: a bar with the current point, last interval and remaining time on a terminal, otherwise
plain lines."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from earlybird.data.collective_algorithms import VERIFICATION
from earlybird.data.plain_text import plain_line
from earlybird.data.run import Sample
from earlybird.data.units import format_seconds
from earlybird.models.statistics import relative_half_width
from earlybird.present.render.notes import note
from earlybird.present.render.streams import drawing

_REDRAW_S = 0.1
_PLAIN_LINE_S = 5.0


class ProgressLine:
    """A line on stderr that implements measure.session.Progress; with `quiet` it prints nothing, and nothing
    during the first `silent_s`."""

    def __init__(self, quiet: bool = False, silent_s: float = 0.0):
        self._quiet, self._silent_s = quiet, silent_s
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._drawn_s = -_PLAIN_LINE_S
        self._begin_s = time.monotonic()

    def update(self, done: int, total: int, what: str, left_s: float, last: Sample | None) -> None:
        """Show the current measurement; `last` is the sample before it."""
        if not self.is_due():
            return
        # A budget may end before all points are measured.
        spent_s = time.monotonic() - self._begin_s
        share = max(done / max(total, 1), spent_s / max(spent_s + left_s, 1e-9))
        more = [what]
        # The time of a verification is the injected delay.
        if last is not None and last.quantity != VERIFICATION:
            half_width = relative_half_width(last.steady_times_s())
            more.append(f"(previous: {format_seconds(last.median_s())} +- {half_width:.1%})")
        self._show(share, f"{done} of up to {total} samples", left_s, more)

    def search(self, share: float, done: str, left_s: float, result: str) -> None:
        """Show how much of a search is complete (`done`), and its `result` so far; to be called if it
        `is_due`."""
        self._show(share, done, left_s, [result])

    def is_due(self) -> bool:
        """Return whether the line is old enough to be printed again."""
        now_s = time.monotonic()
        if self._quiet or now_s - self._begin_s < self._silent_s:
            return False
        return now_s - self._drawn_s >= (_REDRAW_S if self._terminal else _PLAIN_LINE_S)

    def _show(self, share: float, done: str, left_s: float, more: list[str]) -> None:
        self._drawn_s = time.monotonic()
        left = f"about {format_seconds(round(left_s))} left" if left_s >= 1 else "nearly done"
        text = plain_line("  ".join([f"{math.floor(100 * share):3d} %", done, left, *more]))
        if self._terminal:
            self._draw(share, text)
        else:
            note(text)

    def _draw(self, share: float, text: str) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._task = self._bar.add_task(text, total=1)
            self._bar.start()
        self._bar.update(self._task, completed=share, description=text, refresh=True)

    def step(self, done: int, total: int, what: str, left_s: float) -> None:
        """Show the number of completed steps out of `total`; `what` names the current measurement."""
        self.update(done, total, what, left_s, None)

    def say(self, text: str) -> None:
        """Print a remark between the lines of progress."""
        self.close()
        note(text)

    def close(self) -> None:
        """Clear the line for the next output."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def shown_progress(quiet: bool = False, silent_s: float = 0.0) -> Iterator[ProgressLine]:
    """Show progress during the block, and clear its line afterwards."""
    progress = ProgressLine(quiet, silent_s)
    try:
        yield progress
    finally:
        progress.close()


def _new_bar() -> Any:
    # Only here: importing rich takes longer than many commands.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    text = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    # Without a thread of its own, which would disturb the ranks.
    return Progress(
        BarColumn(bar_width=20), TextColumn("{task.description}", markup=False, table_column=text),
        console=Console(file=drawing(sys.stderr)), auto_refresh=False, transient=True, expand=True,
        redirect_stdout=False,
    )  # fmt: skip
