"""Writes the messages of a recording or a pattern: as a matrix, as a schedule, or as a timeline."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern, load_pattern
from earlybird.data.recording import PairTotals, load_counted
from earlybird.data.units import format_seconds
from earlybird.interop.exports import Exported


@dataclass(frozen=True)
class _Messages:
    """The sums of messages, the number of ranks, the pattern if they follow one, and remarks."""

    totals: PairTotals
    num_ranks: int
    pattern: Pattern | None = None
    remarks: tuple[str, ...] = ()


def write_goal(source: Path, output: Path, *, combined: bool = False) -> Exported:
    """Write a schedule in which every rank posts all of its receives and sends at once."""
    from earlybird.interop.goal import goal_schedule
    from earlybird.patterns.recorded import exchange_of

    messages = _load(source)
    pattern, remarks = messages.pattern, messages.remarks
    if pattern is None or combined:
        pattern, left_out = exchange_of(messages.totals, combined=combined)
        if left_out:
            remarks += (f"left out {left_out} messages from a rank to itself",)
    files.write_text(output, goal_schedule(pattern, messages.num_ranks))
    return _exported(messages.num_ranks, pattern.num_messages, "messages", remarks)


def write_matrix(source: Path, output: Path, *, quantity: str = "bytes") -> Exported:
    """Write the communication matrix."""
    from earlybird.interop.matrix_market import save_matrix

    messages = _load(source)
    pairs = messages.totals.by_pair()
    save_matrix(output, pairs.src, pairs.dst, getattr(pairs, quantity), messages.num_ranks, quantity)
    return _exported(messages.num_ranks, len(pairs.src), "entries", messages.remarks)


def write_chrome_trace(source: Path, output: Path) -> Exported:
    """Write a timeline of the calls and messages that a recording kept."""
    from earlybird.analysis.waits import traced
    from earlybird.interop.chrome_trace import chrome_trace

    recording = load_counted(source)
    joined = traced(recording)
    if joined is None:
        raise InputError(
            f"{source} has no events; record the program again with `earlybird record --events 10000`"
        )
    remarks = []
    if joined.clocks.uncertainty_s:
        by = format_seconds(joined.clocks.uncertainty_s)
        remarks.append(
            f"warning: times of different nodes may be apart by {by} and the drift of their clocks"
        )
    if unconnected := joined.clocks.unconnected:
        remarks.append(
            f"warning: no messages in both directions connect the clocks of {len(unconnected)} ranks with "
            f"that of the first one, such as of rank {unconnected[0]}: they have times of their own"
        )
    events = joined.all_events
    with files.replace_when_complete(output) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        stream.writelines(chrome_trace(events, joined.matches, recording))
    return _exported(len(recording.ranks), len(events), "events", tuple(remarks))


def _exported(num_ranks: int, count: int, what: str, remarks: tuple[str, ...]) -> Exported:
    return Exported({"ranks": num_ranks, what: count}, f"{num_ranks} ranks, {count} {what}", remarks)


def _load(source: Path) -> _Messages:
    from earlybird.analysis.gaps import lost_parts

    if source.is_dir():
        recording = load_counted(source)
        remarks = [f"warning: {lost}" for lost in lost_parts(recording)]
        if not recording.ranks:
            raise InputError(f"{source} has no messages, as nothing was recorded; record the program again")
        if one_sided := int(recording.one_sided().messages.sum()):
            remarks.append(
                f"left out {one_sided} transfers of MPI_Put, MPI_Get and the like; `earlybird pattern "
                "recording --one-sided` includes them in a pattern, which export takes, too"
            )
        return _Messages(recording.sent(), recording.size, remarks=tuple(remarks))
    if not source.exists():
        raise InputError(f"the recording or pattern {source} does not exist; check the path")
    pattern = load_pattern(source)
    if not pattern.num_messages:
        raise InputError(f"{source} has no messages; give a pattern with at least one")
    ones = np.ones_like(pattern.src)
    totals = PairTotals(pattern.src, pattern.dst, -ones, ones, pattern.bytes)
    return _Messages(totals, pattern.num_ranks_named, pattern)
