"""Tables of a recording: calls, phases, waits, threads, sizes, pairs, ranks and communicators."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from earlybird.analysis.calls import CallTotal, Spread
from earlybird.analysis.communicators import topology_text
from earlybird.analysis.messages import Pair, SizeClass, bytes_by_rank
from earlybird.analysis.waits import (
    CAUSES,
    LATE_COLLECTIVE,
    LATE_RECEIVER,
    LATE_SENDER,
    PEER_OUTSIDE,
    PlaceWaits,
    Waits,
)
from earlybird.data import labels
from earlybird.data.phases import Phase
from earlybird.data.recorded_rank import Communicator
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.recording.view import Recorded, first_names
from earlybird.present.subjects.where.kept import kept_table

# Rows on the page, and of those in a terminal; the others are counted.
MAX_PHASES, MAX_PAIRS, MAX_RANKS, MAX_COMMUNICATORS, MAX_PLACES = 40, 50, 64, 40, 40
BRIEF_CALLS, BRIEF_PHASES, BRIEF_PAIRS, BRIEF_PLACES = 12, 8, 12, 8
_NOT_LISTED = "not listed"
# What is waited for: in a sentence or the name of bars, and at the head of a narrow column.
CAUSE_NAMES = {
    LATE_SENDER: "late senders",
    LATE_RECEIVER: "late receivers",
    PEER_OUTSIDE: "peers outside the MPI",
    LATE_COLLECTIVE: "late ranks in collectives",
}
_CAUSE_HEADS = {
    LATE_SENDER: "sender",
    LATE_RECEIVER: "receiver",
    PEER_OUTSIDE: "outside",
    LATE_COLLECTIVE: "collective",
}


def all_tables(recorded: Recorded) -> list[Table]:
    """Return the tables of the page; none if no rank was recorded."""
    if not recorded.recording.ranks:
        return []
    waits, where = recorded.waits, where_tables(recorded)
    if recorded.recording.is_watched:
        return where
    return [
        *where,
        calls_table(recorded),
        *([waits_table(recorded, waits).first(MAX_PLACES, "place", _NOT_LISTED)] if waits else []),
        *([waiting_ranks_table(recorded, waits)] if waits else []),
        *([phases_table(recorded).first(MAX_PHASES, "phase", _NOT_LISTED)] if recorded.phases else []),
        *([arrivals_table(recorded)] if recorded.arrivals else []),
        *([sizes_table(recorded)] if recorded.sizes else []),
        *(table.first(MAX_PAIRS, "pair", "in `earlybird show --all`") for table in pairs_tables(recorded)),
        ranks_table(recorded),
        communicators_table(recorded),
    ]


def brief_tables(recorded: Recorded, where_more: str, is_whole: bool = False) -> list[Table]:
    """Return the tables for a terminal; `where_more` says where further rows are, if not `is_whole`."""
    if not recorded.recording.ranks:
        return []
    where = [(table, BRIEF_CALLS, "place") for table in where_tables(recorded)]
    tables = where if recorded.recording.is_watched else [*where, *_brief_counts(recorded)]
    return [
        table.brief() if is_whole else table.brief().first(most, noun, where_more)
        for table, most, noun in tables
    ]


def _brief_counts(recorded: Recorded) -> list[tuple[Table, int, str]]:
    """Return the tables of what was counted, with the most rows and their noun."""
    waiting = recorded.waits and waits_table(recorded, recorded.waits, is_waiting=True)
    return [
        (calls_table(recorded), BRIEF_CALLS, "call"),
        *([(phases_table(recorded), BRIEF_PHASES, "phase")] if recorded.phases else []),
        *([(arrivals_table(recorded), BRIEF_PHASES, "parallel region")] if recorded.arrivals else []),
        *([(waiting, BRIEF_PLACES, "place")] if waiting and waiting.items else []),
        *((table, BRIEF_PAIRS, "pair") for table in pairs_tables(recorded)),
    ]


def where_tables(recorded: Recorded) -> list[Table]:
    """Return the table of where the ranks were when they were stuck or ended, if that is known."""
    kept = recorded.recording.where
    table = kept_table(kept) if kept is not None else None
    return [replace(table, caption=recorded.named(table.caption))] if table and table.items else []


def calls_table(recorded: Recorded) -> Table:
    """Return every function that was called, the one with most time first, and their sum."""

    def in_run(text: Callable[[CallTotal], str]) -> Callable[[CallTotal], str]:
        return lambda total: text(total) if total.is_in_run else ""

    columns = [
        Column("call", lambda total: total.name, left=True, folded=True),
        Column("calls", lambda total: total.calls),
        Column("messages", lambda total: _count(total.messages)),
        Column("bytes", lambda total: _bytes(total.bytes)),
        Column("time", lambda total: format_seconds(total.time_s)),
        Column("of the run", in_run(lambda total: labels.percent(total.share))),
        Column("lowest (rank)", in_run(lambda total: _end(total.spread, "low"))),
        Column("median", in_run(lambda total: labels.percent(total.spread.median)), detail=True),
        Column("highest (rank)", in_run(lambda total: _end(total.spread, "high"))),
    ]
    caption = (
        "Time by call, of all ranks together and as a share of the run after MPI_Init; a message counts in "
        "the call that sends it and in the one that receives it"
    )
    if recorded.calls.num_threads > 1:
        caption += "; times of several threads of a rank add up, to more than the run where they overlap"
    table = Table(recorded.named(caption), columns, recorded.calls.totals)
    return table.summed(recorded.calls.whole) if table.items else table


def phases_table(recorded: Recorded) -> Table:
    """Return every phase, the one with most time first."""
    sent = recorded.sent_in_phase

    def in_epoch(phase: Phase, total: int) -> int:
        return round(total / max(sum(phase.epochs_of.values()) / len(phase.of_ranks), 1))

    columns = [
        Column("phase", lambda phase: phase.number),
        Column("calls", lambda phase: first_names(phase.calls), left=True, folded=True),
        Column("in", recorded.place_of, left=True, folded=True),
        Column("ranks", lambda phase: len(phase.of_ranks)),
        Column("epochs", lambda phase: phase.epochs),
        Column("messages", lambda phase: _count(sent[phase.number][0])),
        Column("bytes", lambda phase: _bytes(sent[phase.number][1])),
        Column(
            "messages per epoch", lambda phase: _count(in_epoch(phase, sent[phase.number][0])), detail=True
        ),
        Column("bytes per epoch", lambda phase: _bytes(in_epoch(phase, sent[phase.number][1])), detail=True),
        Column("time", lambda phase: format_seconds(phase.time_s)),
        Column("of the run", lambda phase: labels.percent(phase.time_s / max(recorded.all_runs_s, 1e-9))),
        Column("from", lambda phase: format_seconds(phase.first_s), detail=True),
        Column("to", lambda phase: format_seconds(phase.last_s), detail=True),
    ]
    caption = "Phases, by the time of all ranks together: functions of the program, and their calls"
    return Table(recorded.named(caption), columns, recorded.phases)


def waits_table(recorded: Recorded, waits: Waits, is_waiting: bool = False) -> Table:
    """Return the calls from each place of the program, the one with most waiting first; all of them, or those
    that wait."""
    in_mpi_s = max(float(waits.in_mpi_s.sum()), 1e-12)

    def waiting_for(cause: str) -> Callable[[PlaceWaits], str]:
        return lambda place: _time(getattr(place, f"{cause}_s"))

    columns = [
        Column("call", lambda place: place.call, left=True, folded=True),
        Column("in", lambda place: place.function, left=True, folded=True),
        Column("calls", lambda place: place.calls),
        Column("time", lambda place: format_seconds(place.time_s)),
        Column("waiting", lambda place: _time(place.waiting_s)),
        Column("of MPI", lambda place: labels.percent(place.waiting_s / in_mpi_s)),
        *(Column(_CAUSE_HEADS[cause], waiting_for(cause), optional=True) for cause in CAUSES),
        Column("mostly for", lambda place: f"rank {place.late}" if place.late is not None else ""),
    ]
    caption = (
        "Waiting by place of the program, in the traces: for a late sender, a late receiver, a peer outside "
        "the MPI, or the last rank in a collective"
    )
    places = [place for place in waits.places if place.waiting_s > 0 or not is_waiting]
    return Table(recorded.named(caption), columns, places)


def waiting_ranks_table(recorded: Recorded, waits: Waits) -> Table:
    """Return the waiting of each rank, and for it; of many, those that others wait for most."""
    places, order = _places_of_ranks(waits.ranks, waits.caused_s, "those that others wait for most")

    def time_of(times_s: np.ndarray) -> Callable[[int], str]:
        return lambda place: format_seconds(float(times_s[place]))

    columns = [
        Column("rank", lambda place: waits.ranks[place]),
        Column("traced", time_of(waits.window_s)),
        Column("in MPI", time_of(waits.in_mpi_s)),
        *(Column(name, time_of(waits.by_cause_s(cause))) for cause, name in CAUSE_NAMES.items()),
        Column("others wait for it", time_of(waits.caused_s)),
    ]
    caption = recorded.named(f"Waiting of each rank, in the traces{order}")
    return Table(caption, columns, places).first(MAX_RANKS, "rank", _NOT_LISTED)


def arrivals_table(recorded: Recorded) -> Table:
    """Return the parallel regions that sends follow, with when their threads arrive."""
    columns = [
        Column("before phase", lambda row: row[0].number),
        Column("in", lambda row: row[1].function, left=True, folded=True),
        Column("threads", lambda row: row[1].threads),
        Column("regions", lambda row: row[1].regions),
        Column("before the last", lambda row: format_seconds(row[1].mean_lead_s)),
        Column("first thread", lambda row: format_seconds(float(row[1].lead_s.max()))),
    ]
    caption = "Arrival of threads in the parallel regions before the sends of a phase"
    return Table(recorded.named(caption), columns, recorded.arrivals)


def sizes_table(recorded: Recorded) -> Table:
    """Return the messages and bytes of each size class, and their sums."""
    sizes = recorded.sizes
    messages, num_bytes = sum(size.messages for size in sizes), sum(size.bytes for size in sizes)
    columns = [
        Column("message size", lambda size: "all sizes" if size is whole else size_text(size)),
        Column("messages", lambda size: size.messages),
        Column("of messages", lambda size: labels.percent(size.messages / max(messages, 1))),
        Column("bytes", lambda size: format_bytes(size.bytes)),
        Column("of bytes", lambda size: labels.percent(size.bytes / max(num_bytes, 1))),
    ]
    whole = SizeClass(0, 0, messages, num_bytes)
    return Table(recorded.named("Message sizes"), columns, sizes).summed(whole)


def pairs_tables(recorded: Recorded) -> list[Table]:
    """Return the pairs of ranks, those with most bytes first: of messages, and of one-sided communication."""
    kinds = (
        ("Pairs of ranks with most bytes", "messages", recorded.heaviest),
        ("Pairs of ranks with most one-sided bytes", "one-sided", recorded.one_sided),
    )
    return [_pairs_table(recorded.named(caption), what, pairs) for caption, what, pairs in kinds if pairs]


def _pairs_table(caption: str, what: str, pairs: Sequence[Pair]) -> Table:
    total = max(sum(pair.bytes for pair in pairs), 1)
    columns = [
        Column("from", lambda pair: pair.src),
        Column("to", lambda pair: pair.dst),
        Column(what, lambda pair: pair.messages),
        Column("bytes", lambda pair: format_bytes(pair.bytes)),
        Column("of all bytes", lambda pair: labels.percent(pair.bytes / total)),
        Column("mean size", lambda pair: format_bytes(pair.bytes / pair.messages) if pair.messages else ""),
    ]
    return Table(caption, columns, pairs)


def ranks_table(recorded: Recorded) -> Table:
    """Return the time in MPI and the bytes of each rank; of many, those with the largest share in MPI."""
    calls, known = recorded.calls, recorded.recording.ranks
    places, order = _places_of_ranks(calls.ranks, calls.in_mpi, "the largest share first")
    sent, received = bytes_by_rank(recorded.pairs, recorded.recording.size)
    columns = [
        Column("rank", lambda place: calls.ranks[place]),
        Column("node", lambda place: known[int(calls.ranks[place])].host),
        Column("run", lambda place: format_seconds(float(calls.run_s[place]))),
        Column("in MPI", lambda place: labels.percent(float(calls.in_mpi[place]))),
        Column("calls", lambda place: calls.calls[:, place].sum()),
        Column("sent", lambda place: format_bytes(int(sent[calls.ranks[place]]))),
        Column("received", lambda place: format_bytes(int(received[calls.ranks[place]]))),
    ]
    caption = recorded.named(f"Time in MPI and bytes of each rank{order}")
    return Table(caption, columns, places).first(MAX_RANKS, "rank", _NOT_LISTED)


def communicators_table(recorded: Recorded) -> Table:
    """Return the distinct communicators, the one with most time first."""
    columns = [
        Column("communicator", lambda total: total.communicator.name or "(no name)"),
        Column("ranks", lambda total: _ranks(total.communicator)),
        Column("topology", lambda total: topology_text(total.communicator)),
        Column("known by", lambda total: labels.counted(total.known_by, "rank")),
        Column("calls", lambda total: total.calls),
        Column("bytes", lambda total: _bytes(total.bytes)),
        Column("time", lambda total: format_seconds(total.time_s)),
        Column("count", lambda total: _count(total.alike - 1) and total.alike, optional=True, default="1"),
    ]
    table = Table(recorded.named("Communicators"), columns, recorded.communicators)
    return table.first(MAX_COMMUNICATORS, "communicator", _NOT_LISTED)


def size_text(size: SizeClass) -> str:
    """Return `1 KiB to below 2 KiB`; `1 B` for a single size."""
    if size.low_bytes == size.high_bytes:
        return format_bytes(size.low_bytes)
    return f"{format_bytes(size.low_bytes)} to below {format_bytes(size.high_bytes + 1)}"


def _places_of_ranks(ranks: np.ndarray, values: np.ndarray, order: str) -> tuple[list[int], str]:
    """Return the places of ranks, of many those with the largest values first, and how they are ordered."""
    places = list(range(len(ranks)))
    if len(places) <= MAX_RANKS:
        return places, ""
    return sorted(places, key=lambda place: (-values[place], ranks[place])), f", {order}"


def _ranks(communicator: Communicator) -> str:
    own, remote = len(communicator.members), len(communicator.remote_members)
    return f"{own} + {remote}" if remote else str(own)


def _end(spread: Spread, end: str) -> str:
    """Return the share at an end, "low" or "high", and its rank; no rank if all are alike."""
    low, high = labels.percent(spread.low), labels.percent(spread.high)
    share, rank = (low, spread.low_rank) if end == "low" else (high, spread.high_rank)
    return share if low == high else f"{share} ({rank})"


def _time(time_s: float) -> str:
    return format_seconds(time_s) if time_s else ""


def _count(number: int) -> str:
    return str(number) if number else ""


def _bytes(num_bytes: int) -> str:
    return format_bytes(int(num_bytes)) if num_bytes else ""
