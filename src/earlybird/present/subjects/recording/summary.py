"""The sums of a recording as JSON."""

from typing import Any

from earlybird.analysis.wait_remarks import has_identities
from earlybird.analysis.waits import CAUSES, Waits
from earlybird.data.phases import Phase, ThreadArrivals
from earlybird.data.recording import Recording
from earlybird.present.subjects.recording.view import Recorded

_BY_RANK = ("window_s", "in_mpi_s", *(f"{cause}_s" for cause in CAUSES), "caused_s")


def summary_of(recorded: Recorded) -> dict[str, Any]:
    """Return the sums: of calls, phases, waits and pairs of ranks."""
    recording = recorded.recording
    messages, one_sided = recorded.heaviest, recorded.one_sided
    return {
        "recording": str(recording.path),
        "command": list(recording.command),
        "mpi": recorded.mpi,
        "ranks": recording.size,
        "recorded_ranks": len(recording.ranks),
        "missing_ranks": recording.missing,
        **_values(recording, "ended_early", "run_s", "core_wait_share"),
        "work": recorded.uneven_work,
        "messages": sum(pair.messages for pair in messages),
        "bytes": sum(pair.bytes for pair in messages),
        "one_sided": sum(pair.messages for pair in one_sided),
        "one_sided_bytes": sum(pair.bytes for pair in one_sided),
        "uses_sessions": recording.uses_sessions,
        "settings": [
            {"name": name, "value": value, "ranks": list(ranks)}
            for name, values in recording.settings.items()
            for value, ranks in values.items()
        ],
        "facts": dict(recording.facts),
        "where": recording.where and dict(recording.where.value),
        "open_calls": _open_calls(recording),
        "calls": [vars(total) for total in recording.call_totals()],
        "phases": [_phase(recorded, phase) for phase in recorded.phases],
        "waits": _waits(recording, recorded.waits) if recorded.waits else None,
        "pairs": [vars(pair) for pair in messages],
        "one_sided_pairs": [vars(pair) for pair in one_sided],
    }


def _values(item: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names}


def _open_calls(recording: Recording) -> list[dict[str, Any]]:
    return [
        {
            "rank": number,
            **_values(opened, "thread", "call"),
            "place": opened.site.place if opened.site else "",
            "entered_s": opened.since_s,
            "since_s": opened.open_s,
            **_values(opened, "seen_s", "peer", "tag"),
        }
        for number, rank in recording.ranks.items()
        for opened in rank.open_calls
    ]


def _phase(recorded: Recorded, phase: Phase) -> dict[str, Any]:
    messages, num_bytes = recorded.sent_in_phase[phase.number]
    return {
        **_values(phase, "number", "region", "calls", "functions"),
        "distinction": recorded.distinctions[phase.number],
        "ranks": len(phase.of_ranks),
        **_values(phase, "epochs", "time_s", "first_s", "last_s"),
        "messages": messages,
        "bytes": num_bytes,
        "threads": [
            _threads(phase, arrivals)
            for before, arrivals in recorded.arrivals
            if before.number == phase.number
        ],
    }


def _threads(phase: Phase, arrivals: ThreadArrivals) -> dict[str, Any]:
    return {
        "phase": phase.number,
        **_values(arrivals, "function", "threads", "regions", "mean_lead_s"),
        "lead_s": arrivals.lead_s.tolist(),
        "lead_classes": arrivals.classes.tolist(),
    }


def _waits(recording: Recording, waits: Waits) -> dict[str, Any]:
    return {
        **_values(waits, "is_whole", "reaches_back", "cut"),
        "cut_ranks": [{"rank": rank, "end_s": end_s} for rank, end_s in waits.cut_s.items()],
        "clock_uncertainty_s": waits.clock_uncertainty_s,
        "ranks_of_unknown_clock": waits.unconnected,
        "examined_s": waits.examined_s,
        "unexamined_calls": waits.unexamined,
        "unknown": waits.unknown,
        "has_identities": has_identities(recording),
        "received": waits.num_received,
        "matched": waits.num_matched,
        "unmatched": waits.unmatched,
        "ranks": [
            {"rank": rank} | {name: float(getattr(waits, name)[k]) for name in _BY_RANK}
            for k, rank in enumerate(waits.ranks.tolist())
        ],
        "places": [vars(place) | {"waiting_s": place.waiting_s} for place in waits.places],
    }
