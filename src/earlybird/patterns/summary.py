"""Sums up a pattern: how many messages of which sizes, and how many a rank sends and receives."""

from typing import Any

import numpy as np

from earlybird.data.pattern import Pattern
from earlybird.data.units import format_bytes


def summary_of(pattern: Pattern, num_ranks: int) -> dict[str, Any]:
    """Return the numbers and sizes of the messages of a pattern."""
    sizes = pattern.bytes if pattern.num_messages else np.zeros(1, dtype=np.int64)
    sent = np.bincount(pattern.src, minlength=num_ranks)
    received = np.bincount(pattern.dst, minlength=num_ranks)
    return {
        "ranks": num_ranks,
        "messages": pattern.num_messages,
        "total_bytes": pattern.total_bytes,
        "smallest_bytes": int(sizes.min()),
        "median_bytes": float(np.median(sizes)),
        "largest_bytes": int(sizes.max()),
        "fewest_sent_by_a_rank": int(sent.min(initial=pattern.num_messages)),
        "most_sent_by_a_rank": int(sent.max(initial=0)),
        "fewest_received_by_a_rank": int(received.min(initial=pattern.num_messages)),
        "most_received_by_a_rank": int(received.max(initial=0)),
        "pattern_sha256": pattern.sha256(),
    }


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """Return the summary, with the name of its `file`, as lines for the terminal."""
    smallest, median, largest, total = (
        format_bytes(summary[key])
        for key in ("smallest_bytes", "median_bytes", "largest_bytes", "total_bytes")
    )
    lines = [
        f"pattern   {summary['file']}: {summary['messages']} messages, {summary['ranks']} ranks, {total}",
        f"a message {smallest} to {largest}, median {median}",
        f"a rank    sends {summary['fewest_sent_by_a_rank']} to {summary['most_sent_by_a_rank']} messages, "
        f"receives {summary['fewest_received_by_a_rank']} to {summary['most_received_by_a_rank']}",
    ]
    if "cells" in summary:
        separated = f"{summary['edge_cut']} pairs of neighbours separated"
        lines.insert(0, f"mesh      {summary['cells']} cells, {separated}")
    return lines
