"""Whether the messages of an exchange fit into memory, before they are taken apart."""

from pathlib import Path

from earlybird.data.pattern import Pattern, load_pattern

# Reading, preparing and predicting an exchange takes at most about this much for each message; the largest of
# `python -m bench predictor` takes 130 to 350.
BYTES_PER_MESSAGE = 400


def load_fitting_pattern(path: str | Path) -> Pattern:
    """`load_pattern`; InputError instead if what follows needs more memory than there is."""
    return load_pattern(path, BYTES_PER_MESSAGE)
