"""Options to choose from: the facts known about each, which one is clearly faster, and in which order they
rank.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from earlybird.compare.ranking import MIN_EFFECT, is_clearly_faster
from earlybird.data.advice import EXTRAPOLATED
from earlybird.data.results import Result
from earlybird.data.schema import Estimate

# Among options that take at most this share more time than the fastest, the one that is least work is
# advised.
WORTH = 0.05
# With fewer launches, a noisy result or one of shared cores does not decide.
ENOUGH_LAUNCHES = 5


@dataclass(frozen=True)
class Option:
    """A method for the requested operation.

    Attributes
    ----------
    work : sort key of the effort to use it; the reference has the least.
    speed_up : speed-up over the reference; None if there is no reference.
    predicted_speed_up : speed-up that the model alone predicts.
    measured_speed_up : measured speed-up with the interval over its launches, if this point was measured.
    is_reliable : False if most of the measured times of this method or of the reference are noisy or of
        shared cores, with too few launches to tell.
    is_significant : False if among all that was measured a speed-up like this one is to be expected by
        chance.
    launches : number of launches of this point; 0 if it was not measured.
    shares_cores : true if ranks or threads shared cores where it was measured: more launches do not help.
    is_selectable : False for an option that is ranked for comparison only, because the MPI cannot be set to
        use it.
    """

    name: str
    work: tuple
    time_s: Estimate
    speed_up: Estimate | None
    basis: str
    is_reference: bool = False
    predicted_speed_up: Estimate | None = None
    measured_speed_up: Estimate | None = None
    is_reliable: bool = True
    is_significant: bool = True
    launches: int = 0
    shares_cores: bool = False
    is_selectable: bool = True

    @property
    def speed(self) -> Estimate:
        """The speed-up, or 1/s without a reference."""
        if self.speed_up is not None:
            return self.speed_up
        return self.time_s.inverse() if self.time_s.low > 0 else Estimate.exact(math.inf)

    @property
    def cost(self) -> float:
        """The value by which options are compared, less is better: speed-ups differ less between launches
        than times.
        """
        return self.time_s.value if self.speed_up is None else 1 / self.speed_up.value

    @property
    def worst_cost(self) -> float:
        """The `cost` at the pessimistic end of the interval."""
        return self.time_s.high if self.speed_up is None else 1 / self.speed_up.low

    @property
    def is_clearly_faster(self) -> bool:
        """True if the option is faster than the reference beyond its interval and by more than MIN_EFFECT."""
        if self.speed_up is None or not self.is_reliable or not self.is_significant:
            return False
        return is_clearly_faster(self.speed_up, Estimate.exact(1.0))

    def contradicts(self) -> bool:
        """Return whether the interval of the model and that of a repeated measurement do not overlap."""
        if None in (self.measured_speed_up, self.predicted_speed_up, self.speed_up):
            return False
        predicted, measured = self.predicted_speed_up, self.speed_up
        apart = predicted.low > measured.high or predicted.high < measured.low
        return apart and abs(math.log(predicted.value / measured.value)) > math.log(1 + MIN_EFFECT)


def decides(results: Sequence[Result]) -> bool:
    """Return whether most of these results have enough launches, or are neither noisy nor of shared cores."""
    weak = [
        result
        for result in results
        if result.launches < ENOUGH_LAUNCHES and (2 * result.noisy > result.launches or result.oversubscribed)
    ]
    return 2 * len(weak) <= len(results)


def settles(results: Sequence[Result]) -> bool:
    """Return whether all of these results of one point have enough launches on cores of their own, so that
    few launches at other points do not count.
    """
    enough = [one.launches >= ENOUGH_LAUNCHES and not one.oversubscribed for one in results]
    return bool(enough) and all(enough)


def share_cores(results: Sequence[Result]) -> bool:
    """Return whether ranks or threads shared cores in most of these results."""
    return 2 * sum(result.oversubscribed for result in results) > len(results)


def choose(options: Sequence[Option]) -> int:
    """Return the index of the advised option.

    Options that cannot be selected, and those outside the measured range, are considered only if all are
    such. The reference is advised unless another option is clearly faster; of those that are, the one with
    the least work among the fastest (see WORTH). Without a reference, all options are considered in this way.
    """
    selectable = [k for k, option in enumerate(options) if option.is_selectable] or list(range(len(options)))
    considered = [k for k in selectable if options[k].basis != EXTRAPOLATED] or selectable
    reference = next((k for k, option in enumerate(options) if option.is_reference), None)
    if reference is not None:
        considered = [k for k in considered if options[k].is_clearly_faster]
        if not considered:
            return reference
    least = min(options[k].cost for k in considered)
    near = [k for k in considered if options[k].cost <= least / (1 - WORTH)]
    return min(near, key=lambda k: (options[k].work, options[k].cost))


def order(options: Sequence[Option]) -> list[int]:
    """Return the indices of all options: the advised one first, the others by time, those outside the
    measured range last.
    """
    first = choose(options)
    rest = [k for k in range(len(options)) if k != first]
    return [
        first,
        *sorted(rest, key=lambda k: (options[k].basis == EXTRAPOLATED, options[k].cost)),
    ]


def stays(current: Option, options: Sequence[Option]) -> bool:
    """Return whether `current` stays advised at the next size.

    It does if it still meets the condition for which it was chosen, and no other option that is clearly
    faster than the reference is also clearly faster than it. A program should not change its method for a
    difference that is not clear.
    """
    if not current.is_reference and current.speed_up is not None and not current.is_clearly_faster:
        return False
    if current.basis == EXTRAPOLATED and any(option.basis != EXTRAPOLATED for option in options):
        return False
    has_reference = any(option.is_reference for option in options)
    better = [
        option
        for option in options
        if option.basis != EXTRAPOLATED or current.basis == EXTRAPOLATED
        if option.is_clearly_faster or not has_reference
        if option.is_selectable
    ]
    return not any(is_clearly_faster(option.speed, current.speed) for option in better)


def notes(options: Sequence[Option], advised: Option, measure_again: str, sharing: str = "rank") -> list[str]:
    """Return the notes on this ranking for the reader, one sentence each.

    `measure_again` is the command; it is not asked for where `sharing`, ranks or threads, share cores.
    """
    own_core = f"{sharing}s share cores: more launches will not help; measure with a core for each {sharing}"
    texts = []
    for option in options:
        if option.contradicts():
            texts.append(
                f"THE MODEL DISAGREES WITH THE MEASUREMENT for {option.name}: predicted speed-up "
                f"{_spread(option.predicted_speed_up)}, measured {_spread(option.measured_speed_up)}; the "
                "measurement is used"
            )
    unclear = [
        option
        for option in options
        if option.basis != EXTRAPOLATED and option.speed_up is not None and not option.is_reference
        if option.speed_up.value > 1 + MIN_EFFECT and not option.is_clearly_faster and option.is_selectable
    ]
    by_chance = [option for option in unclear if option.is_reliable and not option.is_significant]
    if by_chance and advised.is_reference:
        more = (
            own_core if _any_shares(by_chance) else f"measure again with more launches, with {measure_again}"
        )
        texts.append(
            f"not advised, as among so many algorithms and sizes chance alone makes some as fast: "
            f"{_listed(by_chance)}; {more}"
        )
    unclear = [option for option in unclear if option not in by_chance]
    beyond_noise = [option for option in unclear if option.speed_up.low > 1 + MIN_EFFECT]
    if beyond_noise and advised.is_reference:
        listed = _listed(beyond_noise)
        texts.append(
            f"not advised, as times on shared cores are noisy: {listed}; {own_core}"
            if _any_shares(beyond_noise)
            else f"not advised, as most times, of {advised.name} or of the methods listed here, are noisy "
            f"and of fewer than {ENOUGH_LAUNCHES} launches: {listed}; measure again with {measure_again}"
        )
    unclear = [option for option in unclear if option not in beyond_noise]
    if unclear and advised.is_reference:
        is_noise = any(option.measured_speed_up is not None or not option.is_reliable for option in unclear)
        listed = _listed(unclear)
        more = own_core if _any_shares(unclear) else f"measure again with {measure_again}"
        texts.append(
            f"{'too noisy' if is_noise else 'the model is too uncertain'} to tell whether these are faster "
            f"than {advised.name}: {listed}; {more}"
        )
    if advised.basis == EXTRAPOLATED:
        texts.append(
            f"{advised.name} is advised outside the measured range; measure there before you rely on it: "
            f"{measure_again}"
        )
    return texts


def _any_shares(options: Sequence[Option]) -> bool:
    return any(option.shares_cores for option in options)


def _listed(options: Sequence[Option]) -> str:
    return ", ".join(
        f"{option.name}, speed-up {_spread(option.speed_up)}{_launches(option)}" for option in options
    )


def _launches(option: Option) -> str:
    if not option.launches:
        return ""
    return f" in {option.launches} launch{'es' if option.launches > 1 else ''}"


def _spread(estimate: Estimate) -> str:
    if estimate.low == estimate.high:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.low:.2f} .. {estimate.high:.2f})"
