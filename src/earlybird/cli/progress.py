"""One line that says what is being measured and how long it will take; plain lines where there is no
terminal."""

import sys
import time

from earlybird.data.units import format_seconds


class ProgressLine:
    """Implements measure.session.Progress on stderr; `quiet` says nothing at all."""

    def __init__(self, quiet: bool = False):
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._last_what = ""
        self._last_s = 0.0

    def update(self, done: int, total: int, what: str, left_s: float) -> None:
        if self._quiet:
            return
        left = f"about {format_seconds(round(left_s))} left" if left_s >= 1 else "nearly done"
        text = f"{100 * done // max(total, 1):3d} %  {done} of {total} points  {what}  {left}"
        now_s = time.monotonic()
        if self._terminal:
            if now_s - self._last_s > 0.1 or done == total:
                sys.stderr.write(f"\r\033[K{text}")
                self._last_s = now_s
        elif what != self._last_what or now_s - self._last_s > 10:
            sys.stderr.write(text + "\n")
            self._last_s = now_s
        self._last_what = what
        sys.stderr.flush()

    def close(self) -> None:
        if self._terminal and not self._quiet and self._last_what:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
