"""How far a simulated time may be off: the interval of a run with changes, and what it consists of."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.recording import MIN_CORE_WAIT
from earlybird.data.simulated_program import IntervalPart
from earlybird.models.program import Operation, Program, SimulatedRun
from earlybird.models.statistics import student_t
from earlybird.record.collective_costs import UNKNOWN_RANGE, CostRatios, revealed_ratios
from earlybird.record.conditions import Conditions, changed_costs, ideal_s, once_rewritten, simulate_run
from earlybird.record.operations import Operations
from earlybird.record.profile_draws import Source, sources_of
from earlybird.record.run_variation import num_pairs, other_run_s, unexplained_deviation_s

# Draws of each source, of programs of up to so many operations, and the largest program of which more is
# simulated than the run as recorded and with the changes.
DRAWS = ((200_000, 12), (1_000_000, 6))
MAX_REPLICATED_OPERATIONS = DRAWS[-1][0]
# Of the run: collectives that cost less need no interval of their own.
MIN_COLLECTIVE_SHARE = 0.05
# Of what messages take.
_MAX_NETWORK_ERROR = 0.5
AS_RECORDED, RUNS, MESSAGES = "difference as recorded", "runs of the program", "messages of the recording"
COLLECTIVES, EARLY = "cost of collectives", "algorithm of early broadcasts"
_SEED_AFTER = 1 << 16
_MIN_S = 1e-12
_NORMAL = NormalDist().inv_cdf(0.975)
# An end of an interval farther off than this factor says no more, and its powers must not overflow.
_MAX_LOGARITHM = math.log(1e3)


@dataclass(frozen=True)
class Interval:
    """The interval of a simulated time, and its sources, the largest first."""

    low_s: float
    high_s: float
    parts: tuple[IntervalPart, ...] = field(default=())


@dataclass(frozen=True, eq=False)
class Question:
    """What an interval is of.

    Attributes
    ----------
    operations, before, before_s : the run as recorded, and its simulated time.
    changed : the conditions with the changes.
    simulated, after, after_s : what is simulated with the changes, as `once_rewritten` returns it, and its
        time.
    """

    operations: Operations
    before: Conditions
    before_s: float
    changed: Conditions
    simulated: Operations
    after: Conditions
    after_s: float

    @property
    def is_changed(self) -> bool:
        return self.before_s > 0 and self.after_s > 0 and self.changed is not self.before

    @property
    def has_other_network(self) -> bool:
        return has_other_network(self.before, self.after)


def has_other_network(before: Conditions, after: Conditions) -> bool:
    return after.profile is not before.profile or after.layout is not before.layout


def _num_draws(operations: Operations) -> int:
    num = len(operations.operation)
    return next((draws for most, draws in DRAWS if num <= most), 0)


def _times_s(
    operations: Operations, given: Conditions, draw: Callable[[Conditions, int], Conditions], num: int
) -> np.ndarray:
    return np.array([simulate_run(operations, draw(given, k))[1].end_of_run_s for k in range(num)])


@lru_cache(maxsize=8)  # several changes of one program are compared with the same run
def _times_before_s(operations: Operations, before: Conditions, source: str, num: int) -> np.ndarray:
    (of_name,) = (of for of in sources_of(before, before, 1.0) if of.name == source)
    return _times_s(operations, before, of_name.draw, num)


@lru_cache(maxsize=2)
def _other_runs_s(operations: Operations, given: Conditions, seed: int, num: int) -> np.ndarray:
    def other(given: Conditions, k: int) -> Conditions:
        return replace(given, compute_s=other_run_s(operations, np.asarray(given.compute_s), seed + k))

    return _times_s(operations, given, other, num)


@lru_cache(maxsize=2)
def _messages_before(operations: Operations, before: Conditions) -> tuple[float, float, int]:
    """Return the `network_share` of the run as recorded, and its `unexplained_deviation_s`."""
    program, run = simulate_run(operations, before)
    return network_share(operations, program, run), *unexplained_deviation_s(operations, run.end_s)


def _part(name: str, down: float, up: float) -> IntervalPart:
    """Return the part of an interval that reaches from exp(-down) to exp(up) times the simulated time."""
    down, up = (min(max(end, 0.0), _MAX_LOGARITHM) for end in (down, up))
    return IntervalPart(name, math.exp(-down), math.exp(up))


def _spread(source: Source, logarithms: np.ndarray) -> IntervalPart:
    """Return the interval of another value like these, by Student's t, if that is not in the draws."""
    num, centre = len(logarithms), float(logarithms.mean())
    quantile = _NORMAL if source.is_widened else student_t(num - 1)
    half = quantile * math.sqrt(1 + 1 / num) * float(logarithms.std(ddof=1))
    return _part(source.name, half - centre, half + centre)


def _part_of_profile(of: Question, source: Source, num: int) -> IntervalPart:
    before_s: np.ndarray | float = of.before_s
    num = max(min(num, source.most or num), 2)
    if not source.only_after and any(
        known.name == source.name for known in sources_of(of.before, of.before, 1.0)
    ):
        before_s = _times_before_s(of.operations, of.before, source.name, num)
    after_s = _times_s(of.simulated, of.after, source.draw, num)
    ratios = np.maximum(after_s, _MIN_S) / np.maximum(before_s, _MIN_S)
    return _spread(source, np.log(ratios * of.before_s / of.after_s))


def _part_of_runs(of: Question, num: int) -> IntervalPart:
    """Return what two runs, one with the changes, differ by in what ranks compute and collectives cost."""
    deviations = [
        float(np.log(np.maximum(times_s, _MIN_S) / time_s).std(ddof=1))
        for times_s, time_s in (
            (_other_runs_s(of.operations, of.before, 0, num), of.before_s),
            (_other_runs_s(of.simulated, of.after, _SEED_AFTER, num), of.after_s),
        )
    ]
    # Both runs vary as the recorded one did, and so many draws tell the deviation of theirs.
    pairs = min(
        num_pairs(each, np.asarray(given.compute_s))
        for each, given in ((of.operations, of.before), (of.simulated, of.after))
    )
    half = student_t(max(1 / (1 / pairs + 1 / (num - 1)), 1.0)) * math.hypot(*deviations)
    return _part(RUNS, half, half)


def _part_of_messages(of: Question, shares: tuple[float, float]) -> IntervalPart:
    """Return what two runs differ by in their messages: as much as those of the recording did from the
    simulation in one part of the run more than in the next, in proportion to what messages take."""
    _, deviation_s, pairs = _messages_before(of.operations, of.before)
    relative = deviation_s / of.before_s
    # Of what messages take: where ranks nearly always compute, it may be the noise of the computing.
    changed = min(relative / shares[0], _MAX_NETWORK_ERROR) * shares[1] if shares[0] else relative
    half = student_t(pairs) * math.hypot(relative, changed)
    return _part(MESSAGES, half, half)


def _part_of_error(of: Question, shares: tuple[float, float] | None) -> IntervalPart:
    """Return the difference of the simulation as recorded. It may be that of messages: it grows with their
    part of the run."""
    error = error_of(of.operations, of.before_s)
    if shares and error and shares[0]:
        error = max(error, min(error / shares[0], _MAX_NETWORK_ERROR) * shares[1])
    return IntervalPart(AS_RECORDED, max(1 - error, 0.0), 1 + error)


def collective_cost_share(operations: Operations, chosen: np.ndarray) -> float:
    """Return the cost of the collectives that are chosen, without their waiting, as a part of the run
    of all ranks."""
    is_collective = np.array([bool(name) for name in operations.collective], bool) & chosen
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    enters = enters[is_collective[operations.argument[enters]]]
    run_s = operations.recorded_s * operations.size
    return float(operations.own_s[enters].sum()) / run_s if run_s else 0.0


def _part_of_costs(of: Question, ratios: CostRatios) -> IntervalPart:
    """Return what collectives that take a part of the run leave open: they may cost what the ends of their
    ratios say, and those of which nothing is known nothing or twice as much."""
    nothing = IntervalPart(COLLECTIVES, 1.0, 1.0)
    if not of.has_other_network:
        if not _computes_otherwise(of.operations, of.simulated):
            return nothing
        ratios = revealed_ratios(of.operations, of.before)
    is_exact = (ratios.low == ratios.value) & (ratios.high == ratios.value)
    shares = [collective_cost_share(each, ~is_exact) for each in (of.operations, of.simulated)]
    if not of.after_s or max(shares) < MIN_COLLECTIVE_SHARE:
        return nothing
    enters = np.flatnonzero(of.simulated.operation == Operation.ENTER)
    number = of.simulated.argument[enters]
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = (
            np.nan_to_num(ratios.low / ratios.value, nan=UNKNOWN_RANGE[0]),
            np.nan_to_num(ratios.high / ratios.value, nan=UNKNOWN_RANGE[1]),
        )
    times_s = []
    for end in ends:
        seconds = np.array(of.after.compute_s, float)
        seconds[enters] *= end[number]
        _, run = simulate_run(of.simulated, replace(of.after, compute_s=seconds))
        times_s.append(run.end_of_run_s / of.after_s)
    return IntervalPart(COLLECTIVES, min(*times_s, 1.0), max(*times_s, 1.0))


def _part_of_early(of: Question) -> IntervalPart:
    """Return what the change would do if early broadcasts used the other algorithms that explain the recorded
    time, or none."""
    ratios = [1.0]
    for other in of.operations.early_others:
        before, changed = (_transferred(given, of.operations, other) for given in (of.before, of.changed))
        try:
            before_s = simulate_run(other, before)[1].end_of_run_s
            simulated, after = once_rewritten(other, changed)
            after_s = simulate_run(simulated, after)[1].end_of_run_s
        except InputError:  # ranks would wait for each other for ever, so this algorithm was not used
            continue
        if before_s and after_s:
            ratios.append(after_s / before_s * of.before_s / of.after_s)
    return IntervalPart(EARLY, min(ratios), max(ratios))


def _transferred(given: Conditions, operations: Operations, other: Operations) -> Conditions:
    """Return the conditions for operations that compute the same, but communicate in another way."""
    compute_s = np.array(other.own_s, float)
    here, there = (np.flatnonzero(each.operation == Operation.COMPUTE) for each in (operations, other))
    compute_s[there] = np.asarray(given.compute_s)[here]
    return replace(given, compute_s=compute_s)


def _computes_otherwise(operations: Operations, simulated: Operations) -> bool:
    """Return whether ranks compute for another time between the same operations."""
    if len(operations.operation) != len(simulated.operation):
        return False
    is_compute = operations.operation == Operation.COMPUTE
    return not np.array_equal(operations.own_s[is_compute], simulated.own_s[is_compute])


def interval_of(of: Question, core_wait_share: float | None) -> Interval:
    """Return the interval of a simulated time with changes, and its sources. These are independent of each
    other: the distances of their ends add as squares.

    `core_wait_share` is the part of the recorded run in which ranks waited for cores.
    """
    parts: list[IntervalPart] = []
    num = min(_num_draws(of.operations), _num_draws(of.simulated))
    shares = None
    if of.is_changed:
        ratios = changed_costs(of.operations, of.changed)
        parts.append(_part_of_costs(of, ratios))
        parts.append(_part_of_early(of))
        if num:
            sources = sources_of(of.before, of.after, of.after_s / of.before_s)
            parts += [_part_of_profile(of, source, num) for source in sources]
        if of.after_s == of.before_s and all(part.low == part.high for part in parts):
            return Interval(of.after_s, of.after_s)  # the changes change nothing
        if num:
            share_before, *_ = _messages_before(of.operations, of.before)
            shares = share_before, network_share(of.simulated, *simulate_run(of.simulated, of.after))
            parts.append(_part_of_runs(of, num))
            parts.append(_part_of_messages(of, shares))
    elif of.changed is not of.before and of.after_s == of.before_s:
        return Interval(of.after_s, of.after_s)
    parts.append(_part_of_error(of, shares))
    low_s, high_s = (of.after_s * end for end in _combined(parts))
    share = core_wait_share or 0.0
    if share >= MIN_CORE_WAIT:  # a change may end all of that, or double it
        low_s, high_s = low_s * (1 - share), high_s * (1 + share)
        parts.append(IntervalPart("waiting for cores", 1 - share, 1 + share))
    parts = [part for part in parts if part.low < part.high]
    return Interval(low_s, high_s, tuple(sorted(parts, key=lambda part: part.low - part.high)))


def _combined(parts: list[IntervalPart]) -> tuple[float, float]:
    """Return the ends of the interval of independent sources, as parts of the simulated time."""
    if any(part.low <= 0 for part in parts):
        low = math.inf
    else:
        low = min(math.sqrt(sum(math.log(part.low) ** 2 for part in parts)), _MAX_LOGARITHM)
    high = math.sqrt(sum(math.log(part.high) ** 2 for part in parts))
    return math.exp(-low), math.exp(min(high, _MAX_LOGARITHM))


def network_share(operations: Operations, program: Program, run: SimulatedRun) -> float:
    """Return the part of the simulated run that it would not take on an ideal network."""
    run_s = run.end_of_run_s
    return max(1 - ideal_s(operations, program) / run_s, 0.0) if run_s else 0.0


def error_of(operations: Operations, as_recorded_s: float) -> float:
    return abs(as_recorded_s / operations.recorded_s - 1) if operations.recorded_s else 0.0
