"""Remarks and warnings on stderr."""

import sys

from earlybird.data.plain_text import plain_line


def note(text: str) -> None:
    """Print a remark or warning on stderr, in one line."""
    # One write: print writes the newline separately, and another thread's output could come between.
    sys.stderr.write(f"{plain_line(text)}\n")
    sys.stderr.flush()
