"""Compare two runs point by point: the launch is the sample, not the iteration."""

from collections.abc import Mapping, Sequence

import numpy as np

from earlybird.compare import changes
from earlybird.compare.sides import (
    Key,
    Side,
    common_statistic,
    differences,
    first_difference,
    more_launches,
    point_of,
)
from earlybird.data.errors import InputError
from earlybird.data.labels import counted, listed, percent
from earlybird.data.run_comparison import (
    FASTER,
    INCONCLUSIVE,
    SAME,
    SLOWER,
    Change,
    RunComparison,
    Verdict,
)
from earlybird.data.schema import Estimate
from earlybird.data.shell_commands import quoted
from earlybird.data.statistics import MEAN, MEDIAN, SLOWEST_RANK_MEAN, STATISTICS, Statistic

# All points of a launch share its luck, so a false alarm is one of many points. With 3 %, at most 1 % of the
# points of runs in which nothing changed are called changed.
LEVEL = 0.03
MIN_EFFECT = 0.05


def compare_sides(
    before: Side,
    after: Side,
    *,
    level: float = LEVEL,
    min_effect: float = MIN_EFFECT,
    anyway: bool = False,
    seed: int = 1,
) -> RunComparison:
    """Compare every point that both sides measured, and give each a verdict.

    A launch is represented by the median of its iterations, or by their mean where the other side has means
    only. A point is slower or faster if these values differ significantly (Mann-Whitney U, adjusted for the
    number of points by Benjamini and Hochberg, at most `level`) and by more than `min_effect`, and if the
    interval of the ratio excludes 1; the same if the interval lies within `min_effect`; otherwise
    inconclusive. Fewer than `changes.MIN_LAUNCHES` launches on a side do not decide, and are not counted
    among the points.

    Parameters
    ----------
    min_effect : smallest change that counts, as a fraction, 0.05 for 5 %: a ratio between 1/1.05 and 1.05 is
        no change.
    anyway : also compare other hosts, networks and placements.

    Raises
    ------
    InputError if the sides have no point in common, or if the host, network or placement differs.
    """
    different = differences(before, after)
    if preventing := [one for one in different if one.prevents_comparison and not anyway]:
        what = listed(["{} ({}; {})".format(one.what, *one.shortened()) for one in preventing])
        reason = "times then differ for that reason alone; measure both in one place"
        for side, other in ((before, after), (after, before)):
            host = other.circumstances.get("host")
            if side.is_host_unnamed and host and not other.is_host_unnamed:
                reason = (
                    f"{side.name} was imported without --host; if it was measured on {host}, import it again "
                    f"with --host {quoted(host)}"
                )
        raise InputError(
            f"{before.name} and {after.name} differ in {what}: {reason}, or compare them with --anyway"
        )
    common = [key for key in before.times_s if key in after.times_s]
    if not common:
        raise InputError(
            f"{before.name} and {after.name} have no point in common: {first_difference(before, after)}; "
            "measure the same suite with the same options"
        )
    shared = [key for key in common if _is_positive(key, before, after)]
    if not shared:
        raise InputError(
            f"{before.name} and {after.name} have times of 0 at every point, which have no ratio; measure "
            "larger messages"
        )
    statistics = [common_statistic((before, after), key) for key in shared]
    pairs = [
        _launches(key, statistic, before, after) for key, statistic in zip(shared, statistics, strict=True)
    ]
    tested = changes.tested(pairs, [statistic or MEDIAN for statistic in statistics])
    random = np.random.default_rng(seed)
    found = []
    for key, statistic, pair, p in zip(shared, statistics, pairs, tested, strict=True):
        estimate = changes.ratio(*pair, random, statistic or MEDIAN)
        rounding = 1 - (1 - before.rounding.get(key, 0.0)) * (1 - after.rounding.get(key, 0.0))
        found.append(_change(key, statistic, pair, estimate, p, rounding, level, min_effect))
    ratios = np.array([one.ratio.value for one in found])
    return RunComparison(
        before.name,
        after.name,
        level,
        min_effect,
        float(np.exp(np.log(ratios).mean())),
        tuple(found),
        tuple(point_of(key) for key in before.times_s if key not in after.times_s),
        tuple(point_of(key) for key in after.times_s if key not in before.times_s),
        tuple(different),
        (
            *_statistic_notes(dict(zip(shared, statistics, strict=True)), (before, after)),
            *_notes(found, (before, after), len(common) - len(found), level),
        ),
    )


def verdict(estimate: Estimate, adjusted_p: float | None, level: float, min_effect: float) -> Verdict:
    """Return the verdict on a ratio after over before; a ratio whose interval includes 1 is not called a
    change.
    """
    most = 1 + min_effect
    if adjusted_p is not None and adjusted_p <= level:
        if estimate.value > most and estimate.low > 1:
            return SLOWER
        if estimate.value < 1 / most and estimate.high < 1:
            return FASTER
    if adjusted_p is not None and 1 / most <= estimate.low and estimate.high <= most:
        return SAME
    return INCONCLUSIVE


def _is_positive(key: Key, *sides: Side) -> bool:
    """Return whether ratios exist: a clock may be too coarse for the shortest times."""
    return all(np.median(launch) > 0 for side in sides for launch in side.times_s[key])


def _launches(
    key: Key, statistic: Statistic | None, before: Side, after: Side
) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Return the times of every launch on both sides from which `statistic` is computed, or all that they
    have if it is None.
    """
    if statistic is None:
        return before.times_s[key], after.times_s[key]
    return before.launches_by_statistic(key)[statistic], after.launches_by_statistic(key)[statistic]


def _change(
    key: Key,
    statistic: Statistic | None,
    pair: tuple[Sequence[np.ndarray], Sequence[np.ndarray]],
    estimate: Estimate,
    p: tuple[float, float] | None,
    rounding: float,
    level: float,
    min_effect: float,
) -> Change:
    """Judge the change of one point.

    Parameters
    ----------
    rounding : share by which the ratio may be off because values were printed with one digit: the interval
        includes it, and a difference that it can explain is no change.
    """
    point = point_of(key)
    p_value, adjusted_p = p or (None, None)
    before_s, after_s = (changes.median_of_launches(one, statistic or MEDIAN) for one in pair)
    exact = 1 - rounding
    widened = Estimate(estimate.value, estimate.low * exact, estimate.high / exact)
    outcome = verdict(widened, adjusted_p, level, min_effect)
    is_rounded_away = exact <= estimate.value <= 1 / exact
    if statistic is None or (rounding and is_rounded_away):
        outcome = INCONCLUSIVE
    return Change(
        point.kernel, point.quantity, point.method, point.config, before_s, after_s, widened, p_value,
        adjusted_p, len(pair[0]), len(pair[1]), outcome, statistic,
    )  # fmt: skip


def _notes(found: Sequence[Change], sides: tuple[Side, Side], zeros: int, level: float) -> list[str]:
    notes = []
    if all(side.is_host_unnamed for side in sides):
        notes.append(
            f"{sides[0].name} and {sides[1].name} were imported without --host, so whether both are of one "
            "machine is not known"
        )
    if zeros:
        notes.append(f"{counted(zeros, 'point')} left out: a time there is 0")
    if few := sum(one.p_value is None for one in found):
        fewest = [min(one.launches_before for one in found), min(one.launches_after for one in found)]
        lacking = [side for side, count in zip(sides, fewest, strict=True) if count < changes.MIN_LAUNCHES]
        notes.append(
            f"{few} of {counted(len(found), 'point')} {'has' if few == 1 else 'have'} too few launches to "
            f"decide ({min(fewest)}; at least {changes.MIN_LAUNCHES} on each side): {more_launches(*lacking)}"
        )
    decided = [one for one in found if one.p_value is not None]
    if decided:
        before = min(one.launches_before for one in decided)
        after = min(one.launches_after for one in decided)
        needed = changes.fewest_changes(before, after, len(decided), level)
        if needed > 1:
            notes.append(
                f"with {before} and {after} launches a change is significant only if at least {needed} of "
                f"{len(decided)} points changed; {changes.launches_for(len(decided), level)} launches on "
                "each side show a single one"
            )
    return notes


def _statistic_notes(statistics: Mapping[Key, Statistic | None], sides: tuple[Side, Side]) -> list[str]:
    """Return notes on points that are not compared by the medians of iterations, and on those that cannot be
    compared.
    """
    before, after = sides
    converted = [
        statistic
        for key, statistic in statistics.items()
        if before.statistics.get(key) != after.statistics.get(key)
    ]
    notes = [
        f"{counted(number, 'point')} compared by the {STATISTICS[statistic]} on both sides, as one was "
        "imported without iterations"
        for statistic in (MEAN, SLOWEST_RANK_MEAN)
        if (number := converted.count(statistic))
    ]
    if number := list(statistics.values()).count(None):
        notes.append(
            f"{counted(number, 'point')} not decided: the values are other statistics on both sides, as "
            "'differs' says; import outputs of one kind"
        )
    if shares := [share for side in sides for key in statistics if (share := side.rounding.get(key))]:
        notes.append(
            f"values printed with one digit are rounded by up to {percent(max(shares))}, as intervals say"
        )
    return notes
