"""Reads the pattern of an exchange that a command predicts, replays or advises on."""

from pathlib import Path

from earlybird.data.pattern import Pattern, load_fitting_pattern
from earlybird.present.render.notes import note


def load_exchange(path: str | Path) -> Pattern:
    """Read a pattern as `load_fitting_pattern` does; say so if it has no messages, as that of one rank."""
    pattern = load_fitting_pattern(path)
    if not pattern.num_messages:
        note(f"warning: the pattern {path} has no messages")
    return pattern
