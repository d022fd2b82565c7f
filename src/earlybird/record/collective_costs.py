"""What recorded collectives cost on another layout, network or MPI: by the forms of profiles that describe
them, else by the messages of the algorithms that may have made them."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from earlybird.analysis.events import row_numbers
from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.errors import InputError
from earlybird.data.mpi_calls import OPERATIONS
from earlybird.models.program import Deadlock, Operation, Semantics, simulate
from earlybird.models.schedules import POWERS_ONLY, known_algorithms
from earlybird.predict.collective import Placed, forms_of, measured_placement, predict_collective
from earlybird.record.message_changes import by_messages
from earlybird.record.network import Place, network_of, program_of
from earlybird.record.operations import NO_SITE, Operations

# An algorithm whose messages take longer or less than the recorded cost by this factor was not used.
_UNLIKE = 2.0
# Calls of different sizes, ranks and roots of which messages are simulated, those of most cost, and the most
# ranks of them.
MAX_KINDS, MAX_RANKS = 200, 256
_MIN_S = 1e-9
# Where nothing is known of the cost somewhere else.
UNKNOWN_RANGE = (0.0, 2.0)


@dataclass(frozen=True, eq=False)
class CostRatios:
    """By how much longer collectives take somewhere else, arrays (K,); NaN where that is not known.

    Attributes
    ----------
    value : the likely ratio.
    low, high : its range.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def set(self, collectives: np.ndarray, value: float, low: float, high: float) -> None:
        for column, one in ((self.value, value), (self.low, low), (self.high, high)):
            column[collectives] = one


@lru_cache(maxsize=2)
def cost_ratios(operations: Operations, before: Place, after: Place) -> CostRatios:
    """Return by how much longer each blocking collective takes with another profile or layout."""
    num = len(operations.collective)
    ratios = CostRatios(*(np.full(num, np.nan) for _ in range(3)))
    has_other_forms = before.measured.forms is not after.measured.forms or before.layout is not after.layout
    if not has_other_forms and before.profile is after.profile:
        return ratios
    is_as_measured = before.profile is before.measured and after.profile is after.measured
    known_forms: dict[tuple[str, int], float] = {}
    kinds: list[tuple[str, Calls]] = []
    for calls in kinds_of_calls(operations):
        operation = OPERATIONS.get(operations.collective[calls.numbers[0]], "")
        if has_other_forms and is_as_measured and len(calls.ranks) == operations.size:
            ratio = _ratio_by_forms(operation, calls.size_bytes, before, after, known_forms)
            if not math.isnan(ratio):
                ratios.set(calls.numbers, ratio, ratio, ratio)
                continue
        if operation:
            kinds.append((operation, calls))
    for operation, calls in kinds[:MAX_KINDS]:
        if found := _ratio_by_messages(operation, calls, before, after):
            ratios.set(calls.numbers, *found)
    return ratios


@lru_cache(maxsize=2)
def revealed_ratios(operations: Operations, place: Place) -> CostRatios:
    """Return by how much longer collectives may take if ranks come to them at other times: what they cost
    after the last rank had come may be a part of what the messages of the likely algorithm take."""
    num = len(operations.collective)
    ratios = CostRatios(*(np.ones(num) for _ in range(3)))
    for calls in kinds_of_calls(operations)[:MAX_KINDS]:
        operation = OPERATIONS.get(operations.collective[calls.numbers[0]], "")
        times_s = [before_s for _, before_s, _ in message_times_s(operation, calls, place, place)]
        if times_s:
            likely_s = min(times_s, key=lambda time_s: abs(math.log(time_s / calls.cost_s)))
            ratios.set(calls.numbers, 1.0, 1.0, max(1.0, likely_s / calls.cost_s))
    return ratios


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of one collective with the same ranks, root and bytes.

    Attributes
    ----------
    name : of the call.
    numbers : of the collectives.
    ranks : the ranks that enter.
    root, size_bytes : of `Operations`.
    cost_s : what it cost the rank that it cost most, the median of the calls.
    """

    name: str
    numbers: np.ndarray
    ranks: tuple[int, ...]
    root: int
    size_bytes: int
    cost_s: float


def kinds_of_calls(operations: Operations) -> list[Calls]:
    """Return the blocking collectives by kind, those that cost most first."""
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    of = operations.argument[enters]
    order = np.argsort(of, kind="stable")
    enters, of = enters[order], of[order]
    num = len(operations.collective)
    first = np.searchsorted(of, np.arange(num + 1))
    most_s = np.zeros(num)
    np.maximum.at(most_s, of, operations.own_s[enters])
    rank = operations.rank[enters]
    # Equal for collectives of the same ranks, and hardly for others.
    weight = np.random.default_rng(0).integers(1 << 62, size=operations.size)
    sums = np.zeros(num, np.int64)
    np.add.at(sums, of, weight[rank])
    chosen = np.flatnonzero(~operations.is_immediate & (np.diff(first) > 0))
    _, name = np.unique(np.array(operations.collective, str)[chosen], return_inverse=True)
    kind = row_numbers(
        name.reshape(-1), sums[chosen], np.asarray(operations.root)[chosen],
        np.asarray(operations.collective_bytes)[chosen],
    )  # fmt: skip
    by_kind = chosen[np.argsort(kind, kind="stable")]
    found = []
    for numbers in np.split(by_kind, np.cumsum(np.bincount(kind))[:-1]) if len(kind) else ():
        k = int(numbers[0])
        ranks = tuple(rank[first[k] : first[k + 1]].tolist())
        cost_s = float(np.median(most_s[numbers]))
        found.append(
            Calls(
                operations.collective[k],
                numbers,
                ranks,
                int(operations.root[k]),
                int(operations.collective_bytes[k]),
                cost_s,
            )
        )
    return sorted(found, key=lambda calls: -calls.cost_s * len(calls.numbers))


def _ratio_by_forms(
    operation: str, size_bytes: int, before: Place, after: Place, known: dict[tuple[str, int], float]
) -> float:
    key = operation, size_bytes
    if key not in known:
        try:
            times_s = [_predicted_s(*key, place) for place in (before, after)]
            known[key] = times_s[1] / times_s[0] if times_s[0] > 0 else math.nan
        except InputError:
            known[key] = math.nan
    return known[key]


def _predicted_s(operation: str, size_bytes: int, place: Place) -> float:
    """Return the time of a call among all ranks by the MPI's choice. Raises InputError if no form says it."""
    forms, layout = forms_of(place.measured, operation), place.layout
    named = measured_placement(forms, layout, layout.num_ranks) or (layout, layout.text, "core")
    placed = Placed(named[0], layout.num_ranks, named[2], 0, named[1])
    return predict_collective(forms, placed, size_bytes, DEFAULT).predictions[0].time_s


def _ratio_by_messages(
    operation: str, calls: Calls, before: Place, after: Place
) -> tuple[float, float, float] | None:
    """Return the likely ratio of the costs and its range, by the messages of the algorithms.

    The likely algorithm is that whose messages take nearest to the recorded cost; the range is that of all
    that do not differ much from it, and from nothing to twice the cost if all do. What messages do not
    explain of the cost changes in proportion if it becomes less, and else remains; the range has both.
    """
    rows: list[tuple[float, float, float]] = []
    for _, before_s, after_s in message_times_s(operation, calls, before, after):
        in_proportion = after_s / before_s
        # Messages that take longer than recorded leave nothing to explain.
        unexplained_s = max(calls.cost_s - before_s, 0.0)
        remaining = (unexplained_s + after_s) / (unexplained_s + before_s)
        rows.append((abs(math.log(before_s / calls.cost_s)), in_proportion, remaining))
    if not rows:
        return None
    rows.sort()
    mismatch, in_proportion, remaining = rows[0]
    likely = [row for row in rows if row[0] <= math.log(_UNLIKE)]
    ratios = [ratio for _, *pair in likely or rows for ratio in pair]
    if not likely:
        ratios += UNKNOWN_RANGE
    value = in_proportion if in_proportion < 1 else remaining
    # What changes may be off as much as the messages are from the recorded cost, if these explain it at all.
    off = math.exp(min(mismatch, math.log(_UNLIKE)) * min(abs(math.log(value)), 1.0))
    return value, min(*ratios, value / off), max(*ratios, value * off)


def message_times_s(
    operation: str, calls: Calls, before: Place, after: Place
) -> list[tuple[str, float, float]]:
    """Return each algorithm with how long its messages take in both places, if all ranks come at once."""
    num = len(calls.ranks)
    if not operation or num < 2 or num > MAX_RANKS or calls.cost_s <= 0:
        return []
    found = []
    for name in known_algorithms(operation):
        if (operation, name) in POWERS_ONLY and num & (num - 1):
            continue
        call = by_messages(_one_call(operation, calls, before.layout.num_ranks), operation, name)
        try:
            before_s, after_s = (max(_call_s(call, place), _MIN_S) for place in (before, after))
        except (InputError, Deadlock):
            continue
        found.append((name, before_s, after_s))
    return found


def _one_call(operation: str, calls: Calls, num_ranks: int) -> Operations:
    """Return a program in which the ranks make one call."""
    enters = np.isin(np.arange(num_ranks), calls.ranks)
    first = np.append(0, np.cumsum(2 * enters))
    num = len(calls.ranks)
    kinds = np.tile([Operation.ENTER, Operation.WAIT_ALL], num)
    none = np.empty(0, np.int64)
    name = next(call for call, of in OPERATIONS.items() if of == operation)
    return Operations(
        size=num_ranks, recorded_s=0.0, thread_rank=np.arange(num_ranks), first=first, operation=kinds,
        argument=np.where(kinds == Operation.ENTER, 0, np.arange(2 * num) // 2), own_s=np.zeros(2 * num),
        set_first=np.arange(num + 1), set_requests=2 * np.arange(num), site=np.full(2 * num, NO_SITE),
        sites=(), in_calls_s=np.empty(0), src=none, dst=none, bytes=none, sender=none, send_wait=none,
        is_blocking=np.empty(0, bool), semantics=np.array([Semantics.ALL_WAIT]),
        root=np.array([calls.root]), kept_s={}, num_calls=1, num_unmatched=0, collective=(name,),
        collective_bytes=np.array([calls.size_bytes]), is_immediate=np.array([False]),
    )  # fmt: skip


def _call_s(call: Operations, place: Place) -> float:
    network, message_class, send_s = network_of(call, place)
    return simulate(program_of(call, network, message_class, send_s), network).end_of_run_s


def scaled(operations: Operations, ratios: np.ndarray) -> np.ndarray:
    """Return the seconds of the operations with the cost of collectives multiplied by known ratios."""
    own_s = np.array(operations.own_s, float)
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    own_s[enters] *= np.nan_to_num(ratios[operations.argument[enters]], nan=1.0)
    return own_s
