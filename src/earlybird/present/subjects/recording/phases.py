"""Phases of a recording by time: when each begins and ends, and how much of the run it takes."""

from earlybird.data import labels
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.recording.view import Recorded

MAX_PHASES = 16
_ROW_HEIGHT, _AROUND_ROWS = 28, 90  # pixels


def phases_figure(recorded: Recorded, id: str) -> Figure:
    """A bar for each phase, from the beginning of its first epoch to the end of its last one."""
    title, phases = "Phases", recorded.phases[:MAX_PHASES]
    if not phases:
        return Figure(id, title, "", absence="No epoch of a phase was recorded.", choice=recorded.choice)
    by_begin = sorted(phases, key=lambda phase: (phase.first_s, phase.number))
    shares = [phase.time_s / max(recorded.all_runs_s, 1e-9) for phase in by_begin]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [axes.label(recorded.phase_name(phase)) for phase in by_begin],
        "base": [round(phase.first_s, 6) for phase in by_begin],
        "x": [round(phase.last_s - phase.first_s, 6) for phase in by_begin],
        "text": [labels.percent(share) for share in shares],
        "textposition": "auto",
        "marker": {"color": axes.color("staircase")},
        "hoverinfo": "text",
        "hovertext": [
            f"{axes.label(recorded.phase_name(phase))}<br><b>{labels.percent(share)}</b> of the run in "
            f"{labels.counted(phase.epochs, 'epoch')}<br>from {format_seconds(phase.first_s)} to "
            f"{format_seconds(phase.last_s)}"
            for phase, share in zip(by_begin, shares, strict=True)
        ],
        "showlegend": False,
    }
    left = len(recorded.phases) - len(phases)
    more = f" {labels.counted(left, 'more phase')} in the table." if left else ""
    return Figure(
        id,
        title,
        "From the first epoch of each phase to its last one, on any rank; the number is the share of the run "
        f"in its epochs. Bars overlap where epochs of several phases alternate.{more}",
        [bars],
        axes.layout(
            {"title": axes.titled("time since MPI_Init in s"), "rangemode": "tozero"},
            {"autorange": "reversed", "showgrid": False, "automargin": True},
            height=_AROUND_ROWS + _ROW_HEIGHT * max(len(phases), 4),
        ),
        choice=recorded.choice,
    )
