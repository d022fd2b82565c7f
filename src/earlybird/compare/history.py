"""Find when points changed over many runs, such as those of every night."""

from collections.abc import Sequence
from datetime import datetime
from itertools import count

import numpy as np

from earlybird.compare import changes
from earlybird.compare.sides import Key, Side, common_statistic, differences, point_of, require_times
from earlybird.data.errors import InputError
from earlybird.data.history import History, HistoryRun, Series, SeriesChange
from earlybird.data.labels import counted, listed
from earlybird.data.statistics import MEDIAN, Statistic
from earlybird.models.change_points import MIN_VALUES, find_changes, least_distance

LEVEL = 0.01
MIN_EFFECT = 0.03
MIN_RUNS = 2 * MIN_VALUES


def history(
    sides: Sequence[tuple[str, Side]],
    *,
    level: float = LEVEL,
    min_effect: float = MIN_EFFECT,
    seed: int = 1,
) -> History:
    """Find the steps and drifts of every point that at least MIN_RUNS of the runs have.

    The value of a run is the median over its launches; a change is found in the logarithms of these values,
    see `models.change_points`. `level` is shared by all points, so that a history without a change shows one
    with that probability.

    Parameters
    ----------
    sides : (start of the run in ISO 8601, its side), in any order.
    min_effect : smallest change that counts, as a fraction; smaller changes are left out.

    Raises
    ------
    InputError for fewer than MIN_RUNS runs, for a start that is no time, and if no point was measured in
    enough runs.
    """
    if len(sides) < MIN_RUNS:
        verb = "is" if len(sides) == 1 else "are"
        raise InputError(f"{counted(len(sides), 'run')} {verb} no history; give at least {MIN_RUNS}")
    ordered = sorted(sides, key=lambda one: _time(*one))
    keys = list(dict.fromkeys(key for _, side in ordered for key in side.times_s))
    keys = [key for key in keys if sum(key in side.times_s for _, side in ordered) >= MIN_RUNS]
    if not keys:
        raise InputError(
            f"no point is in {MIN_RUNS} of the {len(ordered)} runs; give runs of one suite with the same "
            "options"
        )
    statistics = {key: _statistic(ordered, key) for key in keys}
    keys = [key for key in keys if statistics[key]]
    if not keys:
        raise InputError(
            "some runs have means over iterations, others medians, at every point; give runs of one kind"
        )
    random = np.random.default_rng(seed)
    series = []
    for key in keys:
        statistic = statistics[key] or MEDIAN
        time_s = np.array([
            changes.median_of_launches(side.launches_by_statistic(key)[statistic], statistic)
            if key in side.times_s else 0.0
            for _, side in ordered
        ])  # fmt: skip
        for (_, side), value_s in zip(ordered, time_s, strict=True):
            require_times(value_s, key[0], side.name)
        found = _changes(time_s, level / len(keys), min_effect, random)
        point = point_of(key)
        series.append(Series(point.kernel, point.quantity, point.method, point.config, time_s, found))
    changed = sorted({change.first for one in series for change in one.changes if change.first})
    different = {k: tuple(differences(ordered[k - 1][1], ordered[k][1])) for k in changed}
    return History(
        tuple(HistoryRun(side.name, started) for started, side in ordered),
        level,
        min_effect,
        tuple(series),
        {str(k): found for k, found in different.items() if found},
    )


def _statistic(sides: Sequence[tuple[str, Side]], key: Key) -> Statistic | None:
    """Return the statistic that all runs with a point have of it; a point of means and medians has no
    history.
    """
    return common_statistic([side for _, side in sides if key in side.times_s], key)


def caveats(sides: Sequence[tuple[str, Side]], found: History) -> list[str]:
    """Return the caveats of `found`, the history of `sides`, for its reader."""
    notes = []
    for what in ("MPI", "host"):
        held = list(dict.fromkeys(side.circumstances.get(what, "(none)") for _, side in sides))
        if len(held) > 1:
            notes.append(f"the runs have several {what}s, {listed(held)}: a change may be due to that alone")
    keys = {key for _, side in sides for key in side.times_s}
    if mixed := sum(_statistic(sides, key) is None for key in keys):
        notes.append(
            f"{counted(mixed, 'point')} left out: some runs have the mean over iterations there, others the "
            "median"
        )
    return notes + ([too_few] if (too_few := _too_few(found)) else [])


def _too_few(found: History) -> str:
    """Return what `found` cannot show because it has few runs for its points; "" if it can show any step."""
    runs, points, level = len(found.runs), len(found.series), found.level / len(found.series)
    distance = least_distance(runs, level)
    if distance is None:
        fewest = next(n for n in count(runs + 1) if least_distance(n, level))
        return f"{runs} runs of {counted(points, 'point')} cannot show a change; at least {fewest} runs can"
    if distance > MIN_VALUES:
        return (
            f"{runs} runs of {counted(points, 'point')} show a step only with at least {distance} runs on "
            "each side of it"
        )
    return ""


def _changes(
    time_s: np.ndarray, level: float, min_effect: float, random: np.random.Generator
) -> tuple[SeriesChange, ...]:
    runs = np.flatnonzero(time_s > 0)
    if len(runs) < MIN_RUNS:
        return ()
    return tuple(
        SeriesChange(
            one.kind, int(runs[one.first]), int(runs[one.last]), float(np.exp(one.height)), one.p_value
        )
        for one in find_changes(np.log(time_s[runs]), level=level, random=random)
        if abs(one.height) >= np.log1p(min_effect)
    )


def _time(started: str, side: Side) -> datetime:
    try:
        return datetime.fromisoformat(started).astimezone()
    except (ValueError, OverflowError) as error:
        raise InputError(f"the run {side.name} was started at {started!r}, which is no time") from error
