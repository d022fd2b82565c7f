"""Tables of recordings: calls, size classes, pairs, ranks and communicators."""

from dataclasses import replace

from earlybird.analysis.calls import Spread
from earlybird.analysis.communicators import CommunicatorTotal
from earlybird.analysis.messages import SizeClass, bytes_by_rank
from earlybird.analysis.waits import Waits
from earlybird.data import labels
from earlybird.data.phases import Phase
from earlybird.data.recorded_rank import Communicator
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.table import Table, table_of
from earlybird.present.subjects.recording.sizes import size_text
from earlybird.present.subjects.recording.view import Recorded

_CALLS = (
    "Time by call on all ranks; shares are those of the run, which begins after MPI_Init; a message counts "
    "in the call that sends it and in another one that receives it"
)
_PHASES = (
    "Phases: functions of the program, and their calls; messages and bytes are of all ranks in one epoch"
)
# Rows; the heaviest are kept.
MAX_PHASES, MAX_PAIRS, MAX_RANKS, MAX_COMMUNICATORS, MAX_PLACES = 40, 50, 64, 40, 40


def calls_table(recorded: Recorded) -> Table:
    """Every function that was called, the one with most time first, and their sum."""
    calls = recorded.calls
    spreads = {call: calls.spread(call) for call in calls.in_run}

    def of(call: int, text) -> str:
        return text(spreads[call]) if call in spreads else "-"

    table = table_of(
        recorded.named(_CALLS),
        range(len(calls.names)),
        {
            "call": lambda call: calls.names[call],
            "calls": lambda call: str(calls.calls[call].sum()),
            "messages": lambda call: _count(int(calls.messages[call].sum())),
            "bytes": lambda call: _bytes(int(calls.bytes[call].sum())),
            "time": lambda call: format_seconds(float(calls.time_s[call].sum())),
            "of the run": lambda call: of(call, lambda _: labels.percent(calls.share(call))),
            "lowest rank": lambda call: of(call, _low),
            "median": lambda call: of(call, lambda one: labels.percent(one.median)),
            "highest rank": lambda call: of(call, _high),
        },
    )
    if not calls.names:
        return table
    whole, time_s = calls.spread_of(calls.in_mpi), float(calls.time_s.sum())
    last = [
        "all calls", str(calls.calls.sum()), _count(int(calls.messages.sum())),
        _bytes(int(calls.bytes.sum())), format_seconds(time_s), labels.percent(calls.share_in_mpi),
        _low(whole), labels.percent(whole.median), _high(whole),
    ]  # fmt: skip
    return replace(table, last=last)


def phases_table(recorded: Recorded) -> Table:
    """Every phase, the one with most time first."""
    sums = {phase.number: phase.sent(recorded.recording) for phase in recorded.phases}

    def per_epoch(phase: Phase, total: int) -> float:
        return total / max(sum(phase.epochs_of.values()) / len(phase.of_ranks), 1)

    return table_of(
        recorded.named(_PHASES),
        recorded.phases[:MAX_PHASES],
        {
            "phase": recorded.phase_name,
            "ranks": lambda phase: str(len(phase.of_ranks)),
            "epochs": lambda phase: str(phase.epochs),
            "time": lambda phase: format_seconds(phase.time_s),
            "of the run": lambda phase: labels.percent(phase.time_s / max(recorded.all_runs_s, 1e-9)),
            "messages": lambda phase: _count(round(per_epoch(phase, int(sums[phase.number].messages.sum())))),
            "bytes": lambda phase: _bytes(round(per_epoch(phase, int(sums[phase.number].bytes.sum())))),
            "from": lambda phase: format_seconds(phase.first_s),
            "to": lambda phase: format_seconds(phase.last_s),
        },
    )


def waits_table(recorded: Recorded, waits: Waits, most: int = MAX_PLACES) -> Table:
    """Calls from each place of the program, the one with most waiting first."""
    whole_s = max(float(waits.in_mpi_s.sum()), 1e-12)
    return table_of(
        recorded.named("Waiting by place of the program, in the traces"),
        waits.places[:most],
        {
            "call": lambda one: one.call,
            "in": lambda one: one.function,
            "calls": lambda one: str(one.calls),
            "time": lambda one: format_seconds(one.time_s),
            "waiting, of the time in MPI": lambda one: labels.percent(one.waiting_s / whole_s),
            "late senders": lambda one: _time(one.late_sender_s),
            "late receivers": lambda one: _time(one.late_receiver_s),
            "peers outside MPI": lambda one: _time(one.peer_outside_s),
            "late in collectives": lambda one: _time(one.late_collective_s),
            "mostly for": lambda one: f"rank {one.late}" if one.late is not None else "",
        },
    )


def arrivals_table(recorded: Recorded) -> Table:
    """Parallel regions that sends follow, with when their threads arrive."""
    return table_of(
        recorded.named("Arrival of threads in the parallel regions before the sends of a phase"),
        recorded.arrivals,
        {
            "before phase": lambda found: recorded.phase_name(found[0]),
            "in": lambda found: found[1].function,
            "threads": lambda found: str(found[1].threads),
            "regions": lambda found: str(found[1].regions),
            "before the last": lambda found: format_seconds(found[1].mean_lead_s),
            "first thread": lambda found: format_seconds(float(found[1].lead_s.max())),
        },
    )


def waiting_ranks_table(recorded: Recorded, waits: Waits, most: int = MAX_RANKS) -> Table:
    """Waiting of each rank, and for it; of many, those that others wait for most."""
    places = list(range(len(waits.ranks)))
    if len(places) > most:
        places = sorted(places, key=lambda place: (-waits.caused_s[place], waits.ranks[place]))[:most]
    more = f", the {most} of {len(waits.ranks)} that others wait for most" if len(waits.ranks) > most else ""
    return table_of(
        recorded.named(f"Waiting of each rank, in the traces{more}"),
        places,
        {
            "rank": lambda place: str(waits.ranks[place]),
            "traced": lambda place: format_seconds(float(waits.window_s[place])),
            "in MPI": lambda place: format_seconds(float(waits.in_mpi_s[place])),
            "late senders": lambda place: format_seconds(float(waits.late_sender_s[place])),
            "late receivers": lambda place: format_seconds(float(waits.late_receiver_s[place])),
            "peers outside MPI": lambda place: format_seconds(float(waits.peer_outside_s[place])),
            "late in collectives": lambda place: format_seconds(float(waits.late_collective_s[place])),
            "others wait for it": lambda place: format_seconds(float(waits.caused_s[place])),
        },
    )


def sizes_table(recorded: Recorded) -> Table:
    """Messages and bytes of each size class, and their sums."""
    messages = sum(one.messages for one in recorded.sizes)
    num_bytes = sum(one.bytes for one in recorded.sizes)

    def size(one: SizeClass | None) -> str:
        return size_text(one.low_bytes, one.high_bytes) if one else "all sizes"

    table = table_of(
        recorded.named("Message sizes"),
        recorded.sizes,
        {
            "message size": size,
            "messages": lambda one: str(one.messages),
            "of messages": lambda one: labels.percent(one.messages / max(messages, 1)),
            "bytes": lambda one: format_bytes(one.bytes),
            "of bytes": lambda one: labels.percent(one.bytes / max(num_bytes, 1)),
        },
    )
    last = [size(None), str(messages), labels.percent(1), format_bytes(num_bytes), labels.percent(1)]
    return replace(table, last=last)


def pairs_table(recorded: Recorded, most: int = MAX_PAIRS) -> Table:
    """The pairs of ranks with most bytes."""
    total = max(int(recorded.pairs.bytes.sum()), 1)
    left = len(recorded.heaviest) - most
    more = f", the {most} heaviest of {len(recorded.heaviest)}" if left > 0 else ""
    return table_of(
        recorded.named(f"Pairs of ranks with most bytes{more}"),
        recorded.heaviest[:most],
        {
            "from": lambda pair: str(pair.src),
            "to": lambda pair: str(pair.dst),
            "messages": lambda pair: str(pair.messages),
            "bytes": lambda pair: format_bytes(pair.bytes),
            "of all bytes": lambda pair: labels.percent(pair.bytes / total),
            "mean size": lambda pair: format_bytes(pair.bytes / pair.messages) if pair.messages else "-",
        },
    )


def ranks_table(recorded: Recorded, most: int = MAX_RANKS) -> Table:
    """Time in MPI and bytes of each rank; of many, those with the largest share in MPI."""
    calls, known = recorded.calls, recorded.recording.ranks
    places = list(range(len(calls.ranks)))
    if len(places) > most:
        places = sorted(places, key=lambda place: (-calls.in_mpi[place], calls.ranks[place]))[:most]
    more = f", the {most} of {len(calls.ranks)} with the largest share" if len(calls.ranks) > most else ""
    sent, received = bytes_by_rank(recorded.pairs, recorded.recording.size)
    return table_of(
        recorded.named(f"Time in MPI and bytes of each rank{more}"),
        places,
        {
            "rank": lambda place: str(calls.ranks[place]),
            "node": lambda place: known[int(calls.ranks[place])].host,
            "run": lambda place: format_seconds(float(calls.run_s[place])),
            "in MPI": lambda place: labels.percent(float(calls.in_mpi[place])),
            "calls": lambda place: str(calls.calls[:, place].sum()),
            "sent": lambda place: format_bytes(int(sent[calls.ranks[place]])),
            "received": lambda place: format_bytes(int(received[calls.ranks[place]])),
        },
    )


def communicators_table(recorded: Recorded) -> Table:
    """Distinct communicators, the one with most time first."""
    found = recorded.communicators
    more = f", the first {MAX_COMMUNICATORS} of {len(found)}" if len(found) > MAX_COMMUNICATORS else ""
    columns = {
        "communicator": lambda total: total.communicator.name or "(no name)",
        "ranks": lambda total: _ranks(total.communicator),
        "topology": lambda total: topology_text(total.communicator),
        "known by": lambda total: labels.counted(total.known_by, "rank"),
        "calls": lambda total: str(total.calls),
        "bytes": lambda total: _bytes(total.bytes),
        "time": lambda total: format_seconds(total.time_s),
    }
    if any(total.alike > 1 for total in found):
        columns["count"] = lambda total: str(total.alike)
    return table_of(recorded.named(f"Communicators{more}"), _shown(found), columns)


def _shown(found: list[CommunicatorTotal]) -> list[CommunicatorTotal]:
    return found[:MAX_COMMUNICATORS]


def topology_text(communicator: Communicator) -> str:
    """`Cartesian, 4x2, periodic in 0`, `graph`, `distributed graph` or `none`."""
    if communicator.topology != "cart":
        return {"dist_graph": "distributed graph"}.get(communicator.topology, communicator.topology)
    dims = "x".join(map(str, communicator.dims)) or "no dimensions"
    periodic = [str(k) for k, period in enumerate(communicator.periods) if period]
    return f"Cartesian, {dims}" + (f", periodic in dimension {labels.listed(periodic)}" if periodic else "")


def _ranks(communicator: Communicator) -> str:
    own, remote = len(communicator.members), len(communicator.remote_members)
    return f"{own} + {remote}" if remote else str(own)


def _low(one: Spread) -> str:
    return _end(one, one.low, one.low_rank)


def _high(one: Spread) -> str:
    return _end(one, one.high, one.high_rank)


def _end(one: Spread, share: float, rank: int) -> str:
    """The rank is not named if all ranks are alike."""
    text = labels.percent(share)
    return text if labels.percent(one.low) == labels.percent(one.high) else f"{text} (rank {rank})"


def _time(value_s: float) -> str:
    return format_seconds(value_s) if value_s else ""


def _count(value: int) -> str:
    return str(value) if value else ""


def _bytes(value: int) -> str:
    return format_bytes(value) if value else ""
