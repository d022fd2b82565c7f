"""The speed-up of the run by each projected change, with its interval."""

from typing import Any

from earlybird.data.projection import (
    AGGREGATION,
    COLLECTIVE,
    COMMUNICATORS,
    LAYOUT,
    OTHER_MPI,
    PARTITIONS,
)
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import whiskers
from earlybird.present.core.parts import Figure, grouped
from earlybird.present.core.table import more_text
from earlybird.present.subjects.program.tables import speed_up_cell
from earlybird.present.subjects.program.view import Gain, Projected

_MAX = 16  # changes that are drawn
# The looks of the kinds of change.
_LOOKS = {
    LAYOUT: axes.series(0),
    AGGREGATION: "single",
    PARTITIONS: "earlybird",
    COLLECTIVE: "binomial",
    OTHER_MPI: "openmpi",
    COMMUNICATORS: "per-thread",
}


def gains_figure(projected: Projected, id: str) -> Figure:
    """Draw a point with whiskers for each change, those that save most first."""
    known = [
        (gain, gain.change.run_speed_up) for gain in projected.gains if gain.change.run_speed_up is not None
    ][:_MAX]
    more = more_text(len(projected.gains) - len(known), "change", "in the table")
    rows = [axes.label(_row_name(gain)) for gain, _ in known]
    bounds = [bound for _, speed_up in known for bound in (speed_up.low, speed_up.high)]
    return Figure(
        id,
        projected.named("Speed-up of the run by each change"),
        "Recorded time of the run divided by the projected time with this change alone. Whiskers: 95 %"
        f"{more}.",
        [_points(kind, gains) for kind, gains in grouped(known, lambda pair: pair[0].change.kind).items()],
        axes.layout(
            axes.ratio_axis(bounds, "speed-up of the run"),
            {"categoryorder": "array", "categoryarray": rows[::-1], "showgrid": False},
            height=axes.height_of_rows(len(known)),
        ),
        wide=True,
    )


def _points(kind: str, known: list[tuple[Gain, Estimate]]) -> dict[str, Any]:
    speed_ups = [speed_up for _, speed_up in known]
    names = [_row_name(gain) for gain, _ in known]
    return whiskers(kind, _LOOKS[kind], speed_ups, names, [_hover(gain) for gain, _ in known])


def _row_name(gain: Gain) -> str:
    return f"phase {gain.phase.number}, {gain.name}"


def _hover(gain: Gain) -> str:
    change = gain.change
    projected = "an unknown time" if change.time_s is None else format_seconds(change.time_s.value)
    times = f"{format_seconds(gain.phase.time_s)} recorded, {projected} projected"
    return (
        f"{axes.label(_row_name(gain))}<br><b>{axes.label(speed_up_cell(change.run_speed_up))}</b><br>"
        f"phase: {times}<br>{axes.label(change.action)}"
    )
