"""The speed-up of the run by each projected change, with its interval."""

from collections.abc import Iterable

from earlybird.data import labels
from earlybird.data.projection import (
    AGGREGATION,
    COLLECTIVE,
    COMMUNICATORS,
    LAYOUT,
    OTHER_MPI,
    PARTITIONS,
    speed_up_text,
)
from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import whiskers
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.program.view import Gain, Projected

_MOST = 16  # changes that are drawn
_ROW_HEIGHT, _AROUND_ROWS = 28, 90  # pixels
# The looks of the kinds of change.
_LOOKS = {
    LAYOUT: "staircase",
    AGGREGATION: "single",
    PARTITIONS: "earlybird",
    COLLECTIVE: "binomial",
    OTHER_MPI: "openmpi",
    COMMUNICATORS: "per-thread",
}


def gains_figure(one: Projected, id: str) -> Figure:
    """A point with whiskers for each change, those that save most first."""
    known = [gain for gain in one.gains if gain.change.run_speed_up is not None]
    drawn = known[:_MOST]
    rows = [f"phase {gain.phase.number}, {gain.name}" for gain in drawn]
    left = len(one.gains) - len(drawn)
    more = f" {labels.counted(left, 'more change')} in the table." if left else ""
    caption = "Recorded time of the run divided by the projected time with this change alone. Whiskers: 95 %."
    traces = []
    for kind in dict.fromkeys(gain.change.kind for gain in drawn):
        of_kind = [(row, gain) for row, gain in zip(rows, drawn, strict=True) if gain.change.kind == kind]
        traces.append(_points(kind, of_kind))
    speed_ups = _speed_ups(drawn)
    return Figure(
        id,
        f"Speed-up of the run by each change: {one.title}",
        caption + more,
        traces,
        axes.layout(
            axes.ratio_axis([b for one in speed_ups for b in (one.low, one.high)], "speed-up of the run"),
            {
                "categoryorder": "array",
                "categoryarray": [axes.label(row) for row in reversed(rows)],
                "showgrid": False,
            },
            height=_AROUND_ROWS + _ROW_HEIGHT * max(len(drawn), 4),
        ),
        wide=True,
    )


def _points(kind: str, rows: list[tuple[str, Gain]]) -> dict:
    speed_ups = _speed_ups(gain for _, gain in rows)
    texts = [_hover(row, gain) for row, gain in rows]
    return whiskers(kind, _LOOKS[kind], speed_ups, [row for row, _ in rows], texts)


def _speed_ups(gains: Iterable[Gain]) -> list[Estimate]:
    return [gain.change.run_speed_up for gain in gains if gain.change.run_speed_up is not None]


def _hover(row: str, gain: Gain) -> str:
    change = gain.change
    interval = axes.label(interval_text(change.run_speed_up, ratio_text))
    projected = "an unknown time" if change.time_s is None else format_seconds(change.time_s.value)
    times = f"{format_seconds(gain.phase.time_s)} recorded, {projected} projected"
    return (
        f"{axes.label(row)}<br><b>{speed_up_text(change.run_speed_up, ratio_text)}</b> ({interval})<br>"
        f"phase: {times}<br>{axes.label(change.action)}"
    )
