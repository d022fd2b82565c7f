"""Remarks and warnings on stderr."""

import sys


def note(text: str) -> None:
    """Print a remark or warning on stderr."""
    # One write: print writes the newline separately, and another thread's output could come between.
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
