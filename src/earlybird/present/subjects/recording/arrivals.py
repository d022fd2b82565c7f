"""Arrivals of threads before the sends of a recording: how much earlier than the last one each thread is."""

from typing import Any

from earlybird.data import labels
from earlybird.data.phases import Phase, ThreadArrivals
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import Recorded

MAX_REGIONS = 3  # parallel regions drawn, the most frequent ones of the phases with most time
_LOOKS = (("staircase", ""), ("max-rate", "/"), ("postal", "x"))


def arrivals_figures(recorded: Recorded, id: str) -> list[Figure]:
    """By thread, the mean time before the last one; and how many arrivals are how early. None without
    arrivals."""
    drawn = recorded.arrivals[:MAX_REGIONS]
    return [_by_thread(recorded, drawn, id), _by_lead(recorded, drawn, f"{id}-leads")] if drawn else []


def _by_thread(recorded: Recorded, drawn: list[tuple[Phase, ThreadArrivals]], id: str) -> Figure:
    traces = []
    for (phase, one), look in zip(drawn, _LOOKS, strict=False):
        hover = [
            f"thread {thread}, {axes.label(_name(recorded, phase, one))}<br><b>{format_seconds(lead_s)}</b> "
            f"before the last thread, the mean of {labels.counted(one.regions, 'region')}"
            for thread, lead_s in enumerate(one.lead_s.tolist())
        ]
        bars = {
            "x": list(range(one.threads)),
            "y": [float(f"{lead_s:.4g}") for lead_s in one.lead_s.tolist()],
        }
        traces.append(_bars(_name(recorded, phase, one), look) | bars | {"hovertext": hover})
    most = max(one.threads for _, one in drawn)
    axis: dict[str, Any] = {"title": axes.titled("thread"), "showgrid": False}
    if most <= 16:
        axis["tickvals"] = list(range(most))
    top_s = max(float(one.lead_s.max()) for _, one in drawn)
    return Figure(
        id,
        "Arrival of threads",
        "How long before the last thread each thread reaches the end of the parallel region that precedes "
        "the sends of a phase, in the mean. So much earlier it could send its part of a message.",
        traces,
        axes.layout(
            axis, axes.linear_time_axis(top_s, "time before the last thread"), barmode="group",
            legend=axes.LEGEND | {"traceorder": "normal"},
        ),
        choice=recorded.choice,
    )  # fmt: skip


def _by_lead(recorded: Recorded, drawn: list[tuple[Phase, ThreadArrivals]], id: str) -> Figure:
    used = [
        k for k in range(max(len(one.classes) for _, one in drawn)) if any(_at(one, k) for _, one in drawn)
    ]
    classes = list(range(min(used, default=0), max(used, default=0) + 1))
    traces, top = [], 0.0
    for (phase, one), look in zip(drawn, _LOOKS, strict=False):
        total = max(int(one.classes.sum()), 1)
        shares = [_at(one, k) / total for k in classes]
        top = max(top, *shares)
        hover = [
            f"{axes.label(_name(recorded, phase, one))}<br>{_lead_text(k)} before the last thread: "
            f"<b>{labels.percent(share)}</b> of {labels.counted(total, 'arrival')}"
            for k, share in zip(classes, shares, strict=True)
        ]
        bars = {"x": list(range(len(classes))), "y": [float(f"{share:.4g}") for share in shares]}
        traces.append(_bars(_name(recorded, phase, one), look) | bars | {"hovertext": hover})
    shown = range(0, len(classes), -(-len(classes) // 8))
    axis = {
        "title": axes.titled("time before the last thread, from"),
        "showgrid": False,
        "tickvals": list(shown),
        "ticktext": [format_seconds(_low_s(classes[k])) if classes[k] else "0" for k in shown],
        "tickangle": 0,
    }
    return Figure(
        id,
        "How early threads arrive",
        "The share of arrivals in each class of time, which ends at twice the time where it begins. The last "
        "thread of each region has no time before itself.",
        traces,
        axes.layout(
            axis, axes.linear_share_axis(top, "share of arrivals"), barmode="group", bargap=0.2,
            legend=axes.LEGEND | {"traceorder": "normal"},
        ),
        choice=recorded.choice,
    )  # fmt: skip


def _bars(name: str, look: tuple[str, str]) -> dict[str, Any]:
    color, shape = look
    pattern = axes.bar_pattern(shape)
    marker = {"color": axes.color(color)} | pattern
    return {"type": "bar", "name": axes.label(name), "marker": marker, "hoverinfo": "text"}


def _name(recorded: Recorded, phase: Phase, one: ThreadArrivals) -> str:
    return f"{one.function} before phase {recorded.phase_name(phase)}"


def _at(one: ThreadArrivals, k: int) -> int:
    return int(one.classes[k]) if k < len(one.classes) else 0


def _low_s(k: int) -> float:
    """Where class k begins: 2**(k-1) ns."""
    return 1e-9 * 2 ** (k - 1) if k else 0.0


def _lead_text(k: int) -> str:
    return f"{format_seconds(_low_s(k))} to {format_seconds(2 * _low_s(k))}" if k else "0"
