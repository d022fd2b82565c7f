"""What a comparison of runs and a history say in a sentence, and their lines of the first screen."""

from collections.abc import Sequence

from earlybird.data.history import History
from earlybird.data.labels import capital, counted, listed_briefly
from earlybird.data.points import texts_by_id
from earlybird.data.run_comparison import FASTER, SLOWER, VERDICTS, Change, Difference, RunComparison
from earlybird.present.core.notation import change_text, interval_text
from earlybird.present.core.parts import Answer
from earlybird.present.core.text import NOTHING


def sides_text(comparison: RunComparison) -> str:
    """Return `after against before`, by the names of the sides."""
    return f"{comparison.after} against {comparison.before}"


def summary(comparison: RunComparison) -> str:
    """Return `3 slower, 0 faster, 9 same, 2 inconclusive of 14 points; geometric mean of the ratios 1.02`."""
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in VERDICTS)
    number = counted(len(comparison.changes), "point")
    return f"{counts} of {number}; geometric mean of the ratios {comparison.geometric_mean:.3f}"


def point_names(comparison: RunComparison) -> dict[int, str]:
    """Return the name of each point by its id: names of some points alone would lack what these have in
    common."""
    return texts_by_id([*comparison.changes, *comparison.only_before, *comparison.only_after])


def named_changes(comparison: RunComparison) -> list[tuple[Change, str]]:
    """Return the points that both sides have, with their names."""
    names = point_names(comparison)
    return [(change, names[id(change)]) for change in comparison.changes]


def comparison_answer(comparison: RunComparison) -> Answer:
    """Return the change of the point that became slower most, or of all points in the mean."""
    title, slower = sides_text(comparison), comparison.count(SLOWER)
    if not slower:
        faster = comparison.count(FASTER)
        sentence = f"No point is slower{f', {faster} faster' if faster else ''}."
        return Answer(title, change_text(comparison.geometric_mean), "", sentence, NOTHING)
    worst = comparison.slower_first()[0]
    return Answer(
        title,
        change_text(worst.ratio.value),
        interval_text(worst.ratio, change_text),
        f"{counted(slower, 'point')} slower, {point_names(comparison)[id(worst)]} most.",
        _to_check("check what differs", comparison.differences),
    )


def start_of(history: History, run: int) -> str:
    """Return the date and minute at which a run was started."""
    return history.runs[run].started[:16].replace("T", " ")


def runs_text(history: History) -> str:
    """Return `12 runs from 2026-11-01 03:00 to 2026-11-12 03:00`."""
    return f"{counted(len(history.runs), 'run')} from {start_of(history, 0)} to {start_of(history, -1)}"


def history_summary(history: History) -> str:
    """Return the runs, and how many changes of how many points they have."""
    number = counted(len(history.changes()), "change")
    return f"{runs_text(history)}: {number} of {counted(len(history.series), 'point')}"


def history_answer(history: History) -> Answer:
    """Return the largest change to slower of any point."""
    slower = [(series, change) for series, change in history.changes() if change.ratio > 1]
    if not slower:
        return Answer(runs_text(history), "", "", "No point became slower.", NOTHING)
    series, change = max(slower, key=lambda pair: pair[1].ratio)
    name = capital(texts_by_id(history.series)[id(series)])
    sentence = f"{name} became slower from {start_of(history, change.first)} on, by a {change.kind}."
    do = _to_check("check what differs since then", history.differences.get(str(change.first), ()))
    return Answer(runs_text(history), change_text(change.ratio), "", sentence, do)


def difference_text(difference: Difference) -> str:
    """Return `version: 5.0.1 -> 5.0.2`."""
    return "{}: {} -> {}".format(difference.what, *difference.shortened())


def _to_check(verb: str, differences: Sequence[Difference]) -> str:
    return f"{verb}: {listed_briefly([item.what for item in differences])}" if differences else ""
