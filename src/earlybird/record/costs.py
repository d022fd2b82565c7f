"""The time of a phase with other communication: recorded times, less what the models predict as saved."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.data.schema import Estimate
from earlybird.predict.collective import Placed, forms_of, predict_collective
from earlybird.predict.exchange import Predictor
from earlybird.predict.ranges import interval
from earlybird.record.measured_phase import MeasuredPhase, PhaseExchange, RecordedCollective
from earlybird.record.thread_messages import ThreadMessageCost

# More than the slowest rank of an exchange is off in nine of ten on virtual clusters; see docs/results.
MODEL_ERROR = 0.16
# The same on another layout or MPI than that of the recording; see docs/results for how it was chosen.
MOVED_ERROR = 0.35


@dataclass(frozen=True)
class Placement:
    """A layout, with the text and mapping from which it was made."""

    layout: Layout
    text: str
    map_by: str = "core"


@dataclass(frozen=True, eq=False)
class Cost:
    """The predicted seconds of the communication of one epoch or call: by the profile, and by its replicates.

    Replicate k of two costs of one profile is the same draw; one of them may have fewer. Costs of collectives
    have `ends_s`, an interval, instead.
    """

    value_s: float
    drawn_s: np.ndarray
    ends_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class Communication:
    """The placement of the ranks, the costs of communication, and the model of their exchanges."""

    place: Placement
    profile: Profile
    model: str


def exchange_cost(exchange: PhaseExchange, how: Communication) -> Cost:
    """Predict the slowest rank of an exchange, as the mean over epochs. Raises InputError."""
    return _mean_cost(exchange, lambda pattern: _cost_of(pattern, how))


def early_cost(exchange: PhaseExchange, how: Communication, partitions: int, delay_s: float) -> Cost:
    """Return the mean over epochs of `_early_cost_of`."""
    return _mean_cost(exchange, lambda pattern: _early_cost_of(pattern, how, partitions, delay_s))


def _mean_cost(exchange: PhaseExchange, cost_of: Callable[[Pattern], Cost]) -> Cost:
    costs = [cost_of(pattern) for pattern in exchange.patterns]
    num = min(len(one.drawn_s) for one in costs)
    return Cost(
        sum(share * one.value_s for one, share in zip(costs, exchange.shares, strict=True)),
        np.sum(
            [share * one.drawn_s[:num] for one, share in zip(costs, exchange.shares, strict=True)], axis=0
        ),
    )


def _cost_of(pattern: Pattern, how: Communication) -> Cost:
    return Cost(*Predictor(pattern, how.place.layout).slowest_s(how.profile, how.model))


def _early_cost_of(pattern: Pattern, how: Communication, partitions: int, delay_s: float) -> Cost:
    """Return the time left after the last of equal partitions is ready, `delay_s` after the others.

    The partitions that are sent early take the time of their bytes, of which `delay_s` is hidden; the last
    partition of every message follows. One message after the last partition is never worse, and libearlybird
    sends it if its costs predict so.
    """
    last_bytes = -(-pattern.bytes // partitions)
    last, early, whole = (
        _cost_of(Pattern(pattern.src, pattern.dst, size), how)
        for size in (last_bytes, pattern.bytes - last_bytes, pattern.bytes)
    )

    def left(last_s, early_s, whole_s):
        return np.minimum(last_s + np.maximum(early_s - delay_s, 0.0), whole_s)

    num = min(len(one.drawn_s) for one in (last, early, whole))
    drawn_s = left(last.drawn_s[:num], early.drawn_s[:num], whole.drawn_s[:num])
    return Cost(float(left(last.value_s, early.value_s, whole.value_s)), drawn_s)


def collective_cost(
    one: RecordedCollective, place: Placement, profile: Profile, method: str = DEFAULT
) -> Cost:
    """Predict a call by the algorithm `method`, by default that of the MPI. Raises InputError."""
    placed = Placed(place.layout, one.ranks, place.map_by, 0, place.text)
    answer = predict_collective(forms_of(profile, one.operation), placed, one.size_bytes, method)
    found = answer.predictions[0]
    return Cost(found.time_s, np.empty(0), found.time_interval_s or (found.time_s, found.time_s))


def changed_exchange_s(
    phase: MeasuredPhase, now: Cost, changed: Cost, error: float = MODEL_ERROR
) -> Estimate:
    """Return the seconds of a phase in the run with `changed` communication.

    The models do not describe waiting for late ranks, so the predicted difference is subtracted from the
    recorded time. Where they predict more than the exchange can have taken, both predictions are scaled to
    that, and the interval contains the results of all limits.
    """
    return _hull(
        _changed(phase, phase.epochs, one_s, now, changed, error) for one_s in phase.exchange_limits_s
    )


def changed_collective_s(phase: MeasuredPhase, one: RecordedCollective, now: Cost, changed: Cost) -> Estimate:
    """Return the seconds of a phase in the run with another cost of each call of a collective."""
    return _hull(_changed(phase, one.calls, one_s, now, changed, MOVED_ERROR) for one_s in one.limits_s)


def sped_up_collective_s(
    phase: MeasuredPhase, one: RecordedCollective, default_s: float, speed_up: Estimate
) -> Estimate:
    """Return the seconds of a phase in the run with a speed-up of each call, whose interval contains the
    error of the models."""
    return _hull(_sped_up(phase, min(one.calls * default_s, one_s), speed_up) for one_s in one.limits_s)


def recorded_collective_s(phase: MeasuredPhase, one: RecordedCollective, each_s: Estimate) -> Estimate:
    """Return the seconds of a phase with calls of `each_s` instead of all the recorded time, any part of
    which may be waiting that remains."""
    estimates = []
    for limit_s in one.limits_s:
        value, _, most = (
            _left_s(phase, limit_s - one.calls * call_s) for call_s in (each_s.value, each_s.high, each_s.low)
        )
        value = min(value, phase.time_s)
        estimates.append(Estimate(value, min(most, value), max(phase.time_s, value)))
    return _hull(estimates)


def packed_exchange_s(phase: MeasuredPhase, now: Cost, packed: Cost) -> Estimate:
    """Return `changed_exchange_s` with fewer messages.

    The models count no processor time of messages where ranks share cores, and none beyond the measurement of
    a single pair. Packed messages may save all of it: at most all the time in the MPI except that of the
    remaining messages.
    """
    value, low, high = changed_exchange_s(phase, now, packed)
    most_s = max(phase.most_communication_s, phase.mpi_s) - phase.epochs * packed.value_s * (1 - MODEL_ERROR)
    return Estimate(value, min(low, _left_s(phase, most_s)), high)


def sped_up_messages_s(phase: MeasuredPhase, cost: ThreadMessageCost, messages: int) -> Estimate:
    """Return the seconds of a phase in the run with a speed-up of each of the `messages` that a thread sends
    and receives."""
    value, low, high = cost.speed_up
    wide = Estimate(
        value,
        max(value - math.hypot(value - low, MODEL_ERROR * value), 1e-3),
        value + math.hypot(high - value, MODEL_ERROR * value),
    )
    return _hull(
        _sped_up(phase, min(messages * cost.shared_s, one_s), wide) for one_s in phase.exchange_limits_s
    )


def _sped_up(phase: MeasuredPhase, cost_s: float, speed_up: Estimate) -> Estimate:
    ends = (cost_s * (1 - 1 / ratio) for ratio in (speed_up.value, speed_up.low, speed_up.high))
    value, least, most = (_left_s(phase, saved_s) for saved_s in ends)
    return Estimate(value, most, least)


def _hull(estimates: Iterable[Estimate]) -> Estimate:
    """Return the value of the first estimate, with an interval that contains those of all."""
    first, *others = estimates
    all_of = (first, *others)
    return Estimate(first.value, min(one.low for one in all_of), max(one.high for one in all_of))


def _changed(
    phase: MeasuredPhase, times: int, limit_s: float, now: Cost, changed: Cost, error: float
) -> Estimate:
    def saved(now_s, changed_s):
        scale = np.minimum(1.0, limit_s / np.maximum(times * now_s, 1e-300))
        return times * scale * (now_s - changed_s)

    value_s = float(saved(now.value_s, changed.value_s))
    low_s, high_s = value_s, value_s
    if num := min(len(now.drawn_s), len(changed.drawn_s)):
        low_s, high_s = interval(saved(now.drawn_s[:num], changed.drawn_s[:num]), value_s)
    elif now.ends_s and changed.ends_s:  # independent of each other
        ends_s = [saved(end_s, changed.value_s) - value_s for end_s in now.ends_s]
        ends_s += [saved(now.value_s, end_s) - value_s for end_s in reversed(changed.ends_s)]
        low_s = value_s - math.hypot(min(ends_s[0], 0), min(ends_s[2], 0))
        high_s = value_s + math.hypot(max(ends_s[1], 0), max(ends_s[3], 0))
    scale = min(1.0, limit_s / (times * now.value_s)) if now.value_s > 0 else 1.0
    error_s = times * scale * error * math.hypot(now.value_s, changed.value_s)
    # Independent sources of error.
    low_s = value_s - math.hypot(value_s - low_s, error_s)
    high_s = value_s + math.hypot(high_s - value_s, error_s)
    left_s = _left_s(phase, value_s)
    # What the changed communication takes does remain.
    most_s = min(limit_s, times * now.value_s * (1 + error)) - times * scale * changed.value_s * (1 - error)
    fastest_s = min(_left_s(phase, min(high_s, most_s)), left_s)
    return Estimate(left_s, fastest_s, _left_s(phase, low_s))


def sum_of_savings(phase: MeasuredPhase, times_s: Sequence[Estimate]) -> Estimate:
    """Return the time of the phase with several changes of different calls, each of which gives one of
    `times_s`.

    Their errors are independent.
    """
    value_s = phase.time_s - sum(phase.time_s - one.value for one in times_s)
    low_s = value_s - math.hypot(*(one.value - one.low for one in times_s))
    high_s = value_s + math.hypot(*(one.high - one.value for one in times_s))
    return Estimate(*(max(one_s, phase.least_s) for one_s in (value_s, low_s, high_s)))


def _left_s(phase: MeasuredPhase, saved_s: float) -> float:
    return max(phase.time_s - saved_s, phase.least_s)


def attempt(compute: Callable[[], Cost], notes: list[str]) -> Cost | None:
    """Return a cost, or None after adding a note on why there is none."""
    try:
        return compute()
    except InputError as error:
        notes.append(str(error))
        return None
