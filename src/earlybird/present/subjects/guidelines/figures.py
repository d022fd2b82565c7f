"""Figure of guidelines: the time of collectives over that of what can replace them, against message size."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.guidelines import HOLDS, UNDECIDED, VIOLATED, GuidelineCheck, GuidelineChecks
from earlybird.present.core import axes
from earlybird.present.core.lines import line
from earlybird.present.core.parts import Figure, grouped

_MOST_LINES = 8
_SYMBOLS = {VIOLATED: "many", UNDECIDED: "other", HOLDS: "single"}
_LINES = ("staircase", "max-rate", "queue", "postal", "fair", "openmpi", "stream", "system")


def guideline_figure(one: GuidelineChecks, id: str) -> Figure:
    """A line with intervals for each guideline on each number of ranks; those that are worst at some size."""
    several_ranks = len({check.ranks for check in one.checks}) > 1
    groups = grouped(
        one.checks,
        lambda check: check.rule() + (f", {labels.counted(check.ranks, 'rank')}" if several_ranks else ""),
    )
    worst = sorted(groups, key=lambda name: -max(check.ratio.value for check in groups[name]))
    drawn = worst[:_MOST_LINES]
    left = len(worst) - len(drawn)
    more = f" {labels.counted(left, 'other guideline')} only in the table." if left else ""
    shown = [check for name in drawn for check in groups[name]]
    return Figure(
        id,
        f"Time over that of the replacement, by message size: {one.run}",
        f"Above 1: the operation takes longer than what can replace it; whiskers: 95 %.{more}",
        [_line(name, groups[name], k) for k, name in enumerate(drawn)],
        axes.layout(
            axes.size_axis([check.size_bytes for check in shown]),
            axes.ratio_axis(
                [end for check in shown for end in (check.ratio.low, check.ratio.high)],
                "time over replacement",
            ),
        ),
        wide=True,
    )


def _line(name: str, checks: Sequence[GuidelineCheck], k: int) -> dict:
    ordered = sorted(checks, key=lambda check: check.size_bytes)
    color = axes.color(_LINES[k % len(_LINES)])
    return line(
        axes.label(name),
        [check.size_bytes or axes.ZERO_BYTES_AT for check in ordered],
        [check.ratio.value for check in ordered],
        [_hover(check) for check in ordered],
        color,
        symbol=[axes.symbol(_SYMBOLS[check.outcome]) for check in ordered],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [check.ratio.high - check.ratio.value for check in ordered],
            "arrayminus": [check.ratio.value - check.ratio.low for check in ordered],
            "thickness": 1.2,
            "width": 4,
            "color": color,
        },
    )


def _hover(check: GuidelineCheck) -> str:
    low, high = (f"{end:.3g}" for end in (check.ratio.low, check.ratio.high))
    return f"{axes.label(check.text())}<br><b>{check.ratio.value:.3g}</b> ({low} to {high}), {check.outcome}"
