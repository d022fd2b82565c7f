"""Figure of guidelines: the time of collectives over that of what can replace them, against message size."""

from collections.abc import Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.guidelines import HOLDS, UNDECIDED, VIOLATED, GuidelineCheck, GuidelineChecks
from earlybird.present.core import axes
from earlybird.present.core.lines import error_bars, line
from earlybird.present.core.notation import with_interval
from earlybird.present.core.parts import Figure, grouped, more_in_table

_MAX_LINES = 8
_SYMBOLS = {VIOLATED: "many", UNDECIDED: "other", HOLDS: "single"}


def guideline_figure(guidelines: GuidelineChecks, id: str) -> Figure:
    """Draw a line with intervals for each guideline on each number of ranks; those that are worst at some
    size."""
    has_several_ranks = len({check.ranks for check in guidelines.checks}) > 1

    def name_of(check: GuidelineCheck) -> str:
        ranks = f", {labels.counted(check.ranks, 'rank')}" if has_several_ranks else ""
        return check.rule() + ranks

    groups = grouped(guidelines.checks, name_of)
    drawn = sorted(groups, key=lambda name: -max(check.ratio.value for check in groups[name]))[:_MAX_LINES]
    checks = [check for name in drawn for check in groups[name]]
    ends = [end for check in checks for end in (check.ratio.low, check.ratio.high)]
    return Figure(
        id,
        f"Time over that of the replacement, by message size: {guidelines.run}",
        "Above 1: the operation takes longer than what can replace it; whiskers: 95 %."
        + more_in_table(len(groups) - len(drawn), "guideline"),
        [_line(name, groups[name], axes.color(axes.series(k))) for k, name in enumerate(drawn)],
        axes.layout(
            axes.size_axis([check.size_bytes for check in checks]),
            axes.ratio_axis(ends, "time over replacement"),
        ),
        wide=True,
    )


def _line(name: str, checks: Sequence[GuidelineCheck], color: str) -> dict[str, Any]:
    ordered = sorted(checks, key=lambda check: check.size_bytes)
    return line(
        axes.label(name),
        [check.size_bytes or axes.ZERO_BYTES_AT for check in ordered],
        [check.ratio.value for check in ordered],
        [_hover(check) for check in ordered],
        color,
        symbol=[axes.symbol(_SYMBOLS[check.outcome]) for check in ordered],
        error_y=error_bars([check.ratio for check in ordered]) | {"color": color},
    )


def _hover(check: GuidelineCheck) -> str:
    ratio = with_interval(check.ratio, lambda value: f"{value:.3g}")
    return f"{axes.label(check.text())}<br><b>{ratio}</b>, {check.outcome}"
