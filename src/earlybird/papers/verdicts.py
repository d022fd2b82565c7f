"""The verdict on a finding of a paper: whether values measured here, with their intervals, show it."""

from collections.abc import Callable, Sequence
from itertools import permutations

from earlybird.data.schema import Estimate
from earlybird.present.core.notation import with_interval

AGREES, DIFFERS, UNCLEAR = "agrees", "differs", "unclear"
# Each verdict as it is said of one value and of several.
VERDICTS = {
    AGREES: ("agrees", "agree"),
    DIFFERS: ("differs", "differ"),
    UNCLEAR: ("is unclear", "are unclear"),
}
# A smaller relative difference is none, nor is a smaller difference of shares.
SAME, _SAME_SHARE = 0.05, 0.02

LEGEND = (
    "A finding of the paper agrees if every value inside the intervals here shows it, differs if none does, "
    f"and is unclear otherwise; a ratio that differs by less than {100 * SAME:g} % is the same."
)

# None: the intervals allow both.
Truth = bool | None
Judgement = Callable[[Sequence[Estimate]], Truth]


def verdict(holds: Truth) -> str:
    """Return the verdict: that all values inside the intervals show the finding, that none do, or neither."""
    return UNCLEAR if holds is None else AGREES if holds else DIFFERS


def value_text(value: Estimate, outcome: str, text_of: Callable[[float], str]) -> str:
    """Return the text of a value, with its interval where that leaves the verdict open."""
    return with_interval(value, text_of) if outcome == UNCLEAR else text_of(value.value)


def exceeds(value: Estimate, other: Estimate | float, by: float = 0.0) -> Truth:
    """Return whether `value` is more than `other` by more than `by`."""
    least, most = (other.low, other.high) if isinstance(other, Estimate) else (other, other)
    if value.low - most > by:
        return True
    return None if value.high - least > by else False


def every(truths: Sequence[Truth]) -> Truth:
    """Return whether all of `truths` hold."""
    return at_least(len(truths), truths)


def at_least(count: float, truths: Sequence[Truth]) -> Truth:
    """Return whether at least `count` of `truths` hold."""
    if sum(truth is True for truth in truths) >= count:
        return True
    return None if sum(truth is not False for truth in truths) >= count else False


def no(truth: Truth) -> Truth:
    """Return whether `truth` does not hold."""
    return None if truth is None else not truth


def quotient(value: Estimate, by: Estimate) -> Estimate:
    """Return the quotient of two values of different launches, with an interval that contains it at least as
    often as both intervals contain theirs."""
    return Estimate(value.value / by.value, value.low / by.high, value.high / by.low)


def is_close(value: Estimate, to: float) -> Truth:
    """Return whether a ratio is that of the paper."""
    return every([no(exceeds(value, to * (1 + SAME))), no(exceeds(Estimate.exact(to / (1 + SAME)), value))])


def rises(values: Sequence[Estimate]) -> Truth:
    """Return whether the last value exceeds the first."""
    return exceeds(values[-1], values[0], _least_difference(values))


def falls(values: Sequence[Estimate]) -> Truth:
    return rises(values[::-1])


def differ(values: Sequence[Estimate]) -> Truth:
    """Return whether one of the values exceeds another."""
    least = _least_difference(values)
    return at_least(1, [exceeds(value, other, least) for value, other in permutations(values, 2)])


def are_same(values: Sequence[Estimate]) -> Truth:
    return no(differ(values))


def peaks_inside(values: Sequence[Estimate]) -> Truth:
    """Return whether the value in the middle of three exceeds those at both ends."""
    return every([exceeds(values[1], values[0]), exceeds(values[1], values[-1])])


def mostly(holds: Callable[[Estimate], Truth]) -> Judgement:
    """Return a function that says whether `holds` is true of more than half of the values."""
    return lambda values: at_least(len(values) // 2 + 1, [holds(value) for value in values])


def _least_difference(values: Sequence[Estimate]) -> float:
    return max(SAME * max(abs(estimate.value) for estimate in values), _SAME_SHARE)
