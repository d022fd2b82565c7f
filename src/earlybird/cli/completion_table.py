"""The table of the suite `completion`: when a send completes and when its message is received."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.data import units
from earlybird.data.run import Sample, rank_medians_of_launches

HEADER = (
    "level",
    "size",
    "receiver",
    "send complete after",
    "received after",
    "fraction",
    "launches",
    "state",
)


def completion_values(samples: Sequence[Sample]) -> dict[str, Any]:
    """Values of one point: its receiver, and the medians over iterations, then launches, of both ranks'
    times and of their ratio."""
    send_s, receive_s = rank_medians_of_launches(samples).tolist()
    fractions = [np.median(np.divide(*sample.rank_times_s[sample.warmup :].T)) for sample in samples]
    return {
        "receiver": samples[0].config["receiver"],
        "send_complete_s": send_s,
        "received_s": receive_s,
        "fraction": float(np.median(fractions)),
    }


def completion_cells(row: dict[str, Any], state: str) -> list[Any]:
    """A line of the table, in the order of HEADER."""
    return [
        row["level"],
        units.format_bytes(row["size_bytes"]),
        row["receiver"],
        units.format_seconds(row["send_complete_s"]),
        units.format_seconds(row["received_s"]),
        f"{row['fraction']:.2f}",
        row["launches"],
        state,
    ]
