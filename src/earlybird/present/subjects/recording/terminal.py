"""Prints a recording: ranks, messages, the calls with most time and the pairs with most bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from earlybird.analysis.balance import work_balance
from earlybird.analysis.conditions import conditions
from earlybird.analysis.phase_names import distinctions
from earlybird.analysis.waits import NO_SEND, OTHER_COMMUNICATOR, OTHER_SENDS, traced, waits_of
from earlybird.data import units
from earlybird.data.phases import Phase, ThreadArrivals, arrivals_before, find_phases
from earlybird.data.recording import PairTotals, Recording
from earlybird.present.core.notation import percent_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.terminal import print_line, print_table, prints_all

_MOST_CALLS, _MOST_PHASES, _MOST_PAIRS, _MOST_PLACES = 12, 8, 12, 8
_MOST_NAMES, _MOST_SETTINGS = 3, 6
_LEAST_EXPLAINED = 0.01  # of all waiting: what is less is not worth a line
_WHY_UNMATCHED = {
    NO_SEND: "their sends are not in the traces",
    OTHER_COMMUNICATOR: "their communicators could not be matched",
    OTHER_SENDS: "the sends of their pair and tag have other sizes, or are more or less than they",
}

_THREADS = [
    Column("before phase", lambda one: one["phase"]),
    Column("in", lambda one: one["function"], left=True, folded=True),
    Column("threads", lambda one: one["threads"]),
    Column("regions", lambda one: one["regions"]),
    Column("before the last", lambda one: units.format_seconds(one["mean_lead_s"])),
    Column("first thread", lambda one: units.format_seconds(max(one["lead_s"]))),
]


def print_recording(recording: Recording, format: Format) -> None:
    """Print the sums of a recording; as CSV, the pairs of ranks."""
    heaviest, one_sided = _heaviest(recording.sent()), _heaviest(recording.one_sided())
    summary = _summary(recording, heaviest, one_sided)
    everything = summary | {"pairs": heaviest, "one_sided_pairs": one_sided}
    if print_data(format, everything, heaviest, ["src", "dst", "messages", "bytes"]):
        return
    count = f"{len(recording.ranks)} of {recording.size} ranks"
    run = [units.format_seconds(recording.run_s), summary["mpi"]] if recording.ranks else []
    print_line(f"recording {recording.path}: {', '.join([count, *run])}")
    if settings := conditions(recording, None if prints_all() else _MOST_SETTINGS):
        print_line(f"settings  {settings}")
    print_line(f"messages  {summary['messages']}, {units.format_bytes(summary['bytes'])}")
    if one_sided:
        print_line(f"one-sided {summary['one_sided']}, {units.format_bytes(summary['one_sided_bytes'])}")
    if summary["work"]:
        print_line(f"work      {summary['work']}")
    whole_s = sum(one.run_s for one in recording.ranks.values())
    _print_first(_call_columns(whole_s), summary["calls"], _MOST_CALLS, "calls")
    if summary["phases"]:
        _print_first(_phase_columns(whole_s), summary["phases"], _MOST_PHASES, "phases")
    if summary["calls"] and recording.size > 1:
        print_line("times are of all ranks together, and so is the run that they are shares of")
    threads = [one for phase in summary["phases"] for one in phase["threads"]]
    if threads:
        _print_first(_THREADS, threads, _MOST_PHASES, "parallel regions")
    if summary["waits"]:
        _print_waits(summary["waits"], bool(summary["ended_early"]), bool(summary["open_calls"]))
    if heaviest:
        _print_first(_pair_columns("messages"), heaviest, _MOST_PAIRS, "pairs")
    if one_sided:
        _print_first(_pair_columns("one-sided"), one_sided, _MOST_PAIRS, "pairs")


def _summary(
    recording: Recording, pairs: list[dict[str, int]], one_sided: list[dict[str, int]]
) -> dict[str, Any]:
    first = next(iter(recording.ranks.values()), None)
    balance = work_balance(recording)
    phases = find_phases(recording)
    names = distinctions(recording, phases)
    return {
        "recording": str(recording.path),
        "command": list(recording.command),
        "mpi": " ".join(first.mpi.split(",")[0].replace("Version:", "").split()) if first else "",
        "ranks": recording.size,
        "recorded_ranks": len(recording.ranks),
        "missing_ranks": recording.missing,
        "ended_early": recording.ended_early,
        "run_s": recording.run_s,
        "core_wait_share": recording.core_wait_share,
        "work": balance.sentence(recording.run_s) if balance else "",
        "messages": sum(pair["messages"] for pair in pairs),
        "bytes": sum(pair["bytes"] for pair in pairs),
        "one_sided": sum(pair["messages"] for pair in one_sided),
        "one_sided_bytes": sum(pair["bytes"] for pair in one_sided),
        "uses_sessions": recording.uses_sessions,
        "settings": [
            {"name": name, "value": value, "ranks": list(ranks)}
            for name, values in recording.settings.items()
            for value, ranks in values.items()
        ],
        "facts": dict(recording.facts),
        "open_calls": [
            {
                "rank": rank,
                "thread": opened.thread,
                "call": opened.call,
                "place": opened.site.place if opened.site else "",
                "since_s": opened.since_s,
                "seen_s": opened.seen_s,
                "peer": opened.peer,
                "tag": opened.tag,
            }
            for rank, one in recording.ranks.items()
            for opened in one.open_calls
        ],
        "calls": [vars(total) for total in recording.call_totals()],
        "phases": [_phase(recording, phase, names[phase.number]) for phase in phases],
        "waits": _waits(recording),
    }


def _waits(recording: Recording) -> dict[str, Any] | None:
    """From the traces of the ranks; None without any."""
    joined = traced(recording)
    if joined is None:
        return None
    waits = waits_of(recording, joined)
    by_rank = (
        "window_s", "in_mpi_s", "late_sender_s", "late_receiver_s", "peer_outside_s", "late_collective_s",
        "caused_s",
    )  # fmt: skip
    return {
        "is_whole": waits.is_whole,
        "reaches_back": waits.reaches_back,
        "cut": waits.cut,
        "cut_ranks": [{"rank": rank, "end_s": end_s} for rank, end_s in waits.cut_s.items()],
        "clock_uncertainty_s": waits.clock_uncertainty_s,
        "ranks_of_unknown_clock": waits.unconnected,
        "examined_s": waits.examined_s,
        "unexamined_calls": waits.unexamined,
        "unknown": waits.unknown,
        "has_identities": all(
            communicator.identity is not None
            for one in recording.ranks.values()
            for communicator in one.communicators.values()
        ),
        "received": waits.num_received,
        "matched": waits.num_matched,
        "unmatched": waits.unmatched,
        "ranks": [
            {"rank": rank} | {name: float(getattr(waits, name)[k]) for name in by_rank}
            for k, rank in enumerate(waits.ranks.tolist())
        ],
        "places": [vars(place) | {"waiting_s": place.waiting_s} for place in waits.places],
    }


def _print_waits(waits: dict[str, Any], ended_early: bool, is_hung: bool) -> None:
    """Where ranks wait for each other, and how far back the traces reach."""
    whole_s = sum(one["in_mpi_s"] for one in waits["ranks"])
    columns = [
        Column("call", lambda place: place["call"], left=True, folded=True),
        Column("in", lambda place: place["function"], left=True, folded=True),
        Column("calls", lambda place: place["calls"]),
        Column("time", lambda place: units.format_seconds(place["time_s"])),
        Column("waiting", lambda place: units.format_seconds(place["waiting_s"])),
        Column("of MPI", lambda place: percent_text(place["waiting_s"] / whole_s if whole_s else None)),
        Column("sender", lambda place: _time(place["late_sender_s"]), optional=True),
        Column("receiver", lambda place: _time(place["late_receiver_s"]), optional=True),
        Column("outside", lambda place: _time(place["peer_outside_s"]), optional=True),
        Column("collective", lambda place: _time(place["late_collective_s"]), optional=True),
        Column("for", lambda place: f"rank {place['late']}" if place["late"] is not None else ""),
    ]
    waiting = [place for place in waits["places"] if place["waiting_s"] > 0]
    if waiting:
        _print_first(columns, waiting, _MOST_PLACES, "places")
        print_line(
            "waiting for a late sender, a late receiver, a peer outside the MPI, or the last in a "
            "collective; for: mostly"
        )
    elif is_hung:
        print_line()
        print_line("no call that has returned has waited for another rank, as far as that is known")
    else:
        print_line()
        print_line("no call waits for another rank, as far as that is known")
    if waits["unknown"]:
        print_line(f"of {waits['unknown']}, it is not known how much is waiting")
    outside_s, all_s = (sum(place[name] for place in waiting) for name in ("peer_outside_s", "waiting_s"))
    if outside_s > _LEAST_EXPLAINED * all_s:
        print_line("outside: at most; the peer had begun to send or posted its receive, and then computed")
    reach_s = max(one["window_s"] for one in waits["ranks"])
    if waits["cut"]:
        print_line(waits["cut"])
    if not waits["reaches_back"]:
        print_line(f"waits are those of the last {units.format_seconds(reach_s)}; record more with --events")
    left = waits["received"] - waits["matched"]
    if left and ended_early and not waits["reaches_back"]:
        print_line(
            f"{left} of {waits['received']} receives have no known send: ranks ended early; record more with "
            "--events"
        )
    elif left:
        print_line(f"{left} of {waits['received']} receives have no known send: {_why_unmatched(waits)}")
    if waits["clock_uncertainty_s"]:
        by = units.format_seconds(waits["clock_uncertainty_s"])
        print_line(
            f"clocks of the nodes may be apart by {by} and their drift, and so may waits between nodes"
        )


def _why_unmatched(waits: dict[str, Any]) -> str:
    """Why receives have no send, as far as that is known, and what helps."""
    if waits["ranks_of_unknown_clock"]:
        return "the clocks of some nodes cannot be compared"
    if not waits["reaches_back"]:
        return "older records are overwritten; record more with --events"
    if not waits["has_identities"]:
        return "communicators with the same ranks are told apart by their names (MPI_Comm_set_name)"
    if waits["cut"]:
        return "they are of ranks whose traces end early"
    return _WHY_UNMATCHED[waits["unmatched"]]


def _time(value_s: float) -> str:
    return units.format_seconds(value_s) if value_s else ""


def _phase(recording: Recording, phase: Phase, distinction: str) -> dict[str, Any]:
    sent = phase.sent(recording)
    return {
        "number": phase.number,
        "region": phase.region,
        "calls": phase.calls,
        "functions": phase.functions,
        "distinction": distinction,
        "ranks": len(phase.of_ranks),
        "epochs": phase.epochs,
        "time_s": phase.time_s,
        "first_s": phase.first_s,
        "last_s": phase.last_s,
        "messages": int(sent.messages.sum()),
        "bytes": int(sent.bytes.sum()),
        "threads": [_threads(phase, one) for one in arrivals_before(recording, phase)],
    }


def _threads(phase: Phase, arrivals: ThreadArrivals) -> dict[str, Any]:
    return {
        "phase": phase.number,
        "function": arrivals.function,
        "threads": arrivals.threads,
        "regions": arrivals.regions,
        "mean_lead_s": arrivals.mean_lead_s,
        "lead_s": arrivals.lead_s.tolist(),
        "lead_classes": arrivals.classes.tolist(),
    }


def _heaviest(totals: PairTotals) -> list[dict[str, int]]:
    """The pairs, the one with most bytes first."""
    pairs = totals.by_pair()
    order = np.lexsort([pairs.dst, pairs.src, -pairs.bytes])
    names = ("src", "dst", "messages", "bytes")
    return [{name: int(getattr(pairs, name)[k]) for name in names} for k in order.tolist()]


def _share(total: dict[str, Any], whole_s: float) -> float | None:
    """Of the time from the end of MPI_Init to the end of all ranks; MPI_Init itself comes before."""
    return total["time_s"] / whole_s if whole_s and not total["name"].startswith("MPI_Init") else None


def _call_columns(whole_s: float) -> list[Column]:
    return [
        Column("call", lambda total: total["name"], left=True, folded=True),
        Column("calls", lambda total: total["calls"]),
        Column("messages", lambda total: total["messages"] or ""),
        Column("bytes", lambda total: units.format_bytes(total["bytes"]) if total["bytes"] else ""),
        Column("time", lambda total: units.format_seconds(total["time_s"])),
        Column("of the run", lambda total: percent_text(_share(total, whole_s))),
    ]


def _place_of_phase(phase: dict[str, Any]) -> str:
    return phase_place(phase["functions"], phase["distinction"])


def _phase_columns(whole_s: float) -> list[Column]:
    return [
        Column("phase", lambda phase: phase["number"]),
        Column("calls", lambda phase: first_names(phase["calls"]), left=True, folded=True),
        Column(
            "in", lambda phase: phase_place(phase["functions"], phase["distinction"]), left=True, folded=True
        ),
        Column("ranks", lambda phase: phase["ranks"]),
        Column("epochs", lambda phase: phase["epochs"]),
        Column("messages", lambda phase: phase["messages"] or ""),
        Column("bytes", lambda phase: units.format_bytes(phase["bytes"]) if phase["bytes"] else ""),
        Column("time", lambda phase: units.format_seconds(phase["time_s"])),
        Column("of the run", lambda phase: percent_text(phase["time_s"] / whole_s if whole_s else None)),
    ]


def first_names(names: Sequence[str]) -> str:
    """The first of the calls or functions of a phase, and how many more there are."""
    more = f" + {len(names) - _MOST_NAMES}" if len(names) > _MOST_NAMES else ""
    return ", ".join(name.removeprefix("MPI_") for name in names[:_MOST_NAMES]) + more


def phase_place(functions: Sequence[str], distinction: str) -> str:
    """The functions of a phase, and what tells it from others with the same calls in these."""
    return ", ".join(filter(None, (first_names(functions), distinction)))


def _pair_columns(what: str) -> list[Column]:
    return [
        Column("from", lambda pair: pair["src"]),
        Column("to", lambda pair: pair["dst"]),
        Column(what, lambda pair: pair["messages"]),
        Column("bytes", lambda pair: units.format_bytes(pair["bytes"])),
        Column("mean size", lambda pair: units.format_bytes(pair["bytes"] / pair["messages"])),
    ]


def _print_first(columns: Sequence[Column], items: Sequence[Any], most: int, what: str) -> None:
    shown = items if prints_all() else items[:most]
    print_line()
    print_table(Table("", columns, shown))
    if len(items) > len(shown):
        print_line(f"{len(items) - len(shown)} more {what}; `earlybird show --all` prints them")
