"""Figures of a recording with a bar for each call, phase, size class, thread or class of lead times."""

from collections.abc import Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.phases import ThreadArrivals
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.bars import SHAPES, bars, bars_layout, rounded, row_bars, rows_layout
from earlybird.present.core.lines import error_bars
from earlybird.present.core.parts import Figure
from earlybird.present.core.table import more_text
from earlybird.present.subjects.recording.answer import NO_TIME
from earlybird.present.subjects.recording.tables import size_text
from earlybird.present.subjects.recording.view import Recorded

MAX_CALLS, MAX_PHASES = 12, 16
MAX_REGIONS = 3  # parallel regions drawn, the most frequent ones of the phases with most time
_MAX_TICKS = 8  # of size classes and classes of lead times


def calls_figure(recorded: Recorded, id: str) -> Figure:
    """Draw a bar for each call: its share of the run, with the lowest and highest rank."""
    title, calls = "Time by call", recorded.calls
    drawn = [calls.totals[k] for k in calls.with_time[:MAX_CALLS]]
    if not drawn:
        return Figure(id, title, "", absence=NO_TIME, choice=recorded.choice)
    hover = [
        f"{axes.label(call.name)}<br><b>{labels.percent(call.share)}</b> of the run, "
        f"{format_seconds(call.time_s)} on all ranks<br>"
        f"rank {call.spread.low_rank}: {labels.percent(call.spread.low)}, "
        f"rank {call.spread.high_rank}: {labels.percent(call.spread.high)}"
        for call in drawn
    ]
    spreads = [Estimate(call.share, call.spread.low, call.spread.high) for call in drawn]
    whiskers = error_bars(spreads) | {"color": "var(--ink)"}
    shares = [rounded(call.share) for call in drawn]
    top = max(max(call.share, call.spread.high) for call in drawn)
    more = more_text(len(calls.with_time) - len(drawn), "call", "in the table")
    return Figure(
        id,
        title,
        "Time of all ranks in a call, divided by the time of their runs. Whiskers: lowest and highest "
        f"rank{more}.",
        [row_bars([call.name for call in drawn], shares, hover, error_x=whiskers)],
        rows_layout(axes.linear_share_axis(top, "share of the run"), len(drawn)),
        choice=recorded.choice,
    )


def phases_figure(recorded: Recorded, id: str) -> Figure:
    """Draw a bar for each phase, from the beginning of its first epoch to the end of its last one."""
    title, phases = "Phases", recorded.phases[:MAX_PHASES]
    if not phases:
        return Figure(id, title, "", absence="No epoch of a phase was recorded.", choice=recorded.choice)
    by_begin = sorted(phases, key=lambda phase: (phase.first_s, phase.number))
    names = [recorded.phase_name(phase) for phase in by_begin]
    shares = [labels.percent(phase.time_s / max(recorded.all_runs_s, 1e-9)) for phase in by_begin]
    hover = [
        f"{axes.label(name)}<br><b>{share}</b> of the run in {labels.counted(phase.epochs, 'epoch')}<br>"
        f"from {format_seconds(phase.first_s)} to {format_seconds(phase.last_s)}"
        for name, share, phase in zip(names, shares, by_begin, strict=True)
    ]
    lengths_s = [round(phase.last_s - phase.first_s, 6) for phase in by_begin]
    begins_s = [round(phase.first_s, 6) for phase in by_begin]
    more = more_text(len(recorded.phases) - len(phases), "phase", "in the table")
    return Figure(
        id,
        title,
        "From the first epoch of each phase to its last one, on any rank; the number is the share of the run "
        f"in its epochs. Bars overlap where epochs of several phases alternate{more}.",
        [row_bars(names, lengths_s, hover, base=begins_s, text=shares, textposition="auto")],
        rows_layout({"title": axes.titled("time since MPI_Init in s"), "rangemode": "tozero"}, len(phases)),
        choice=recorded.choice,
    )


def sizes_figure(recorded: Recorded, id: str) -> Figure:
    """Draw two bars for each size class: its share of all messages and of all bytes."""
    title, sizes = "Message sizes", recorded.sizes
    if not sizes:
        return Figure(id, title, "", absence="There are no messages.", choice=recorded.choice)
    hover = [
        f"{size_text(size)}<br><b>{labels.counted(size.messages, 'message')}, {format_bytes(size.bytes)}</b>"
        for size in sizes
    ]
    series = []
    for quantity in ("messages", "bytes"):
        values = [getattr(size, quantity) for size in sizes]
        shares = [round(value / max(sum(values), 1), 5) for value in values]
        series.append((f"share of {quantity}", shares, hover))
    return _classes_figure(
        recorded,
        id,
        title,
        "Each class ends below twice the size where it begins. Classes without messages are left out. "
        "Messages are point to point, and the blocks of MPI_Alltoallv, MPI_Alltoallw and neighbourhood "
        "collectives.",
        series,
        axes.band_axis([format_bytes(size.low_bytes) for size in sizes], "message size from", _MAX_TICKS),
        "share",
    )


def arrivals_figures(recorded: Recorded, id: str) -> list[Figure]:
    """Draw the mean time before the last thread by thread, and how many arrivals are how early; nothing
    without arrivals."""
    drawn = [
        (f"{arrivals.function} before phase {recorded.phase_name(phase)}", arrivals)
        for phase, arrivals in recorded.arrivals[:MAX_REGIONS]
    ]
    return (
        [_leads_by_thread(recorded, drawn, id), _lead_classes(recorded, drawn, f"{id}-leads")]
        if drawn
        else []
    )


def _leads_by_thread(recorded: Recorded, drawn: list[tuple[str, ThreadArrivals]], id: str) -> Figure:
    traces = []
    for k, (name, arrivals) in enumerate(drawn):
        leads_s = arrivals.lead_s.tolist()
        hover = [
            f"thread {thread}, {axes.label(name)}<br><b>{format_seconds(lead_s)}</b> before the last thread, "
            f"the mean of {labels.counted(arrivals.regions, 'region')}"
            for thread, lead_s in enumerate(leads_s)
        ]
        traces.append(bars(name, range(arrivals.threads), leads_s, hover, axes.series(k), SHAPES[k]))
    threads = range(max(arrivals.threads for _, arrivals in drawn))
    top_s = max(float(arrivals.lead_s.max()) for _, arrivals in drawn)
    return Figure(
        id,
        "Arrival of threads",
        "How long before the last thread each thread reaches the end of the parallel region that precedes "
        "the sends of a phase, in the mean. So much earlier it could send its part of a message.",
        traces,
        bars_layout(
            axes.number_axis(threads, "thread"),
            axes.linear_time_axis(top_s, "time before the last thread"),
            "group",
        ),
        choice=recorded.choice,
    )


def _lead_classes(recorded: Recorded, drawn: list[tuple[str, ThreadArrivals]], id: str) -> Figure:
    used = [k for _, arrivals in drawn for k, count in enumerate(arrivals.classes.tolist()) if count]
    classes = range(min(used, default=0), max(used, default=0) + 1)
    series = []
    for name, arrivals in drawn:
        counts = dict(enumerate(arrivals.classes.tolist()))
        total = max(sum(counts.values()), 1)
        shares = [counts.get(number, 0) / total for number in classes]
        hover = [
            f"{axes.label(name)}<br>{_lead_text(number)} before the last thread: "
            f"<b>{labels.percent(share)}</b> of {labels.counted(total, 'arrival')}"
            for number, share in zip(classes, shares, strict=True)
        ]
        series.append((name, shares, hover))
    begins = [format_seconds(_least_lead_s(number)) if number else "0" for number in classes]
    return _classes_figure(
        recorded,
        id,
        "How early threads arrive",
        "The share of arrivals in each class of time, which ends at twice the time where it begins. The last "
        "thread of each region has no time before itself.",
        series,
        axes.band_axis(begins, "time before the last thread, from", _MAX_TICKS),
        "share of arrivals",
    )


def _classes_figure(
    recorded: Recorded,
    id: str,
    title: str,
    caption: str,
    series: Sequence[tuple[str, Sequence[float], Sequence[str]]],
    classes: dict[str, Any],
    share: str,
) -> Figure:
    """Draw bars for each class: the shares of `series`, names and shares, with what these show on hover."""
    top = max(value for _, shares, _ in series for value in shares)
    traces = [
        bars(name, range(len(shares)), shares, hover, axes.series(k), SHAPES[k])
        for k, (name, shares, hover) in enumerate(series)
    ]
    layout = bars_layout(classes, axes.linear_share_axis(top, share), "group", bargap=0.2)
    return Figure(id, title, caption, traces, layout, choice=recorded.choice)


def _least_lead_s(number: int) -> float:
    """Return where a class begins: 2**(number - 1) ns."""
    return 1e-9 * 2 ** (number - 1) if number else 0.0


def _lead_text(number: int) -> str:
    least_s = _least_lead_s(number)
    return f"{format_seconds(least_s)} to {format_seconds(2 * least_s)}" if number else "0"
