"""Remarks and warnings for the person, on stderr."""

import sys


def note(text: str) -> None:
    """A remark or warning for the person, on stderr."""
    # In one piece: print writes the end of a line apart, where another thread's words may come between.
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
