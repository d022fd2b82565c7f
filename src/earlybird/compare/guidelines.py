"""Guidelines of performance: a collective operation should not take longer than what can replace it.

After Träff, Gropp and Thakur, "Self-Consistent MPI Performance Guidelines", IEEE TPDS 21 (2010), and Hunold,
Carpen-Amarie, Lübbe and Träff, "Automatic Verification of Self-Consistent MPI Performance Guidelines",
Euro-Par 2016.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from earlybird.compare import changes
from earlybird.compare.sides import Side, more_launches
from earlybird.data.benchmark_parameters import PARAMETERS, parameter_texts
from earlybird.data.collective_algorithms import (
    COMPLETION,
    DEFAULT,
    MEAN_OVER_RANKS,
    REDUCE_LOCAL,
    parse_method,
)
from earlybird.data.errors import InputError
from earlybird.data.guidelines import (
    COMPOSITION,
    HOLDS,
    MONOTONY,
    SPLIT,
    UNDECIDED,
    VIOLATED,
    GuidelineCheck,
    GuidelineChecks,
    Kind,
    Outcome,
    Replacement,
    UncheckedSizes,
)
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.labels import counted, listed
from earlybird.data.parameters import Parameters
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds


def _same(size_bytes: int, ranks: int) -> int:
    return size_bytes


def _whole(size_bytes: int, ranks: int) -> int:
    """Return the bytes of the buffer that consists of a block for each rank."""
    return size_bytes * ranks


def _some(size_bytes: int, ranks: int) -> int:
    return max(size_bytes, 1)


def _share(size_bytes: int, ranks: int) -> int:
    """Return the bytes of the block of each rank in a buffer, rounded up."""
    return -(-size_bytes // ranks)


# Operation, and what does the same one after the other, of how many bytes.
_Bytes = Callable[[int, int], int]
COMPOSITIONS: tuple[tuple[str, tuple[tuple[str, _Bytes], ...]], ...] = (
    ("gather", (("allgather", _same),)),
    ("gather", (("reduce", _whole),)),
    ("scatter", (("bcast", _whole),)),
    ("allgather", (("gather", _same), ("bcast", _whole))),
    ("allgather", (("alltoall", _same),)),
    ("allgather", (("allreduce", _whole),)),
    ("bcast", (("scatter", _share), ("allgather", _share))),
    ("reduce", (("allreduce", _same),)),
    ("allreduce", (("reduce", _same), ("bcast", _same))),
    ("barrier", (("allreduce", _some),)),  # of the smallest size that moves data
)

# What identifies a point of these operations; one with further keys is another operation.
_KEYS = frozenset(("operation", "ranks", "layout", "map_by", "size_bytes", "root", "datatype"))

_OF_MEANS = (
    "; the means over ranks that it has say nothing of the slowest rank (of OSU's programs, import -f)"
)

Launches = Sequence[np.ndarray]  # for every launch its times, (I,) seconds


class Place(NamedTuple):
    """The ranks of an operation: only times of the same ranks are compared. `map_by` has the parameters of
    another benchmark, such as `unknown, procsync window`.
    """

    ranks: int
    layout: str
    map_by: str


@dataclass(frozen=True)
class Times:
    """The measurements of one operation at one size: launches by algorithm, and the datatype of a
    reduction.
    """

    by_method: Mapping[str, Launches]
    datatype: str | None

    @property
    def launches(self) -> Launches:
        """The launches of the MPI's own choice."""
        return self.by_method[DEFAULT]


# Place -> operation -> bytes -> times; sizes ascending.
Measured = Mapping[Place, Mapping[str, Mapping[int, Times]]]


@dataclass(frozen=True)
class Claim:
    """A claim that `operation` takes at most the time of `replacement`, whose launches are `bound`."""

    kind: Kind
    place: Place
    operation: str
    size_bytes: int
    times: Times
    replacement: tuple[Replacement, ...]
    bound: Launches


def check_guidelines(side: Side, *, level: float, min_effect: float, seed: int = 1) -> GuidelineChecks:
    """Check every guideline for which `side` has the collectives, by the MPI's own choice of algorithms.

    A guideline is violated if the medians of launches of the operation and of its replacement differ
    significantly (Mann-Whitney U, adjusted for the number of checks by Benjamini and Hochberg, at most
    `level`), and the operation takes more than `min_effect` longer; it holds if the interval of the ratio
    ends below that; otherwise it is inconclusive. Fewer than `changes.MIN_LAUNCHES` launches do not decide.

    Raises
    ------
    InputError if nothing can be checked.
    """
    measured = measured_collectives(side)
    claims = list(claims_of(measured))
    if not claims:
        raise InputError(
            f"{side.name} has no guideline to check: no two sizes of a collective operation, nor operations "
            "that can replace each other, were measured by the MPI's own choice; run `earlybird measure "
            "collective --op bcast,scatter,allgather,gather,reduce,allreduce`"
            + _OF_MEANS
            * any(key[1] == MEAN_OVER_RANKS for key in side.times_s)
        )
    tested = changes.tested([(claim.bound, claim.times.launches) for claim in claims])
    random = np.random.default_rng(seed)
    checks = []
    for claim, p in zip(claims, tested, strict=True):
        estimate = changes.ratio(claim.bound, claim.times.launches, random)
        found = outcome(estimate, p and p[1], level, min_effect)
        checks.append(_check(claim, estimate, p, found))
    return GuidelineChecks(
        side.name, side.mpi, level, min_effect, tuple(checks), tuple(_unchecked(measured)),
        tuple(_notes(checks, side, level)), tuple(_unchecked_sizes(measured)),
    )  # fmt: skip


def outcome(estimate: Estimate, adjusted_p: float | None, level: float, min_effect: float) -> Outcome:
    """Return the outcome of a ratio of an operation over its replacement."""
    if adjusted_p is None:
        return UNDECIDED
    if adjusted_p <= level and estimate.value > 1 + min_effect and estimate.low > 1:
        return VIOLATED
    return HOLDS if estimate.high <= 1 + min_effect else UNDECIDED


def measured_collectives(side: Side) -> Measured:
    """Return the completion times of collectives whose algorithm the MPI was free to choose."""
    found: dict[Place, dict[str, dict[int, tuple[dict[str, Launches], Any]]]] = {}
    for (kernel, quantity, method, items), launches in side.times_s.items():
        config = Parameters(kernel, dict(items))
        if (kernel, quantity) != (COLLECTIVE.name, COMPLETION) or config["operation"] == REDUCE_LOCAL:
            continue
        if not config.keys() <= _KEYS | set(PARAMETERS):
            continue
        if _has_zero(launches):
            continue
        if "ranks" not in config:
            continue
        map_by = ", ".join([str(config["map_by"]), *parameter_texts(config)])
        place = Place(int(config["ranks"]), str(config["layout"]), map_by)
        sizes = found.setdefault(place, {}).setdefault(str(config["operation"]), {})
        by_method, _ = sizes.setdefault(int(config["size_bytes"]), ({}, config.get("datatype")))
        by_method[method] = launches
    return {
        place: {
            operation: {
                size: Times(by_method, datatype)
                for size, (by_method, datatype) in sorted(sizes.items())
                if DEFAULT in by_method
            }
            for operation, sizes in operations.items()
        }
        for place, operations in found.items()
    }


def _has_zero(launches: Launches) -> bool:
    """Return whether the clock was too coarse for a ratio."""
    return any(np.median(one) <= 0 for one in launches)


def claims_of(measured: Measured) -> Iterator[Claim]:
    """Yield every guideline at every size at which the operations that it needs were measured."""
    for place, operations in measured.items():
        for operation, parts in COMPOSITIONS:
            for size, times in operations.get(operation, {}).items():
                yield from _composition(place, operations, operation, size, times, parts)
        for operation, sizes in operations.items():
            for (size, times), (larger, times_of_larger) in _steps(sizes):
                if times.datatype == times_of_larger.datatype:  # else the operation is another one
                    yield from _sizes(place, operation, (size, times), (larger, times_of_larger))


def _steps(sizes: Mapping[int, Times]) -> list[tuple[tuple[int, Times], tuple[int, Times]]]:
    """Return each size and the next one, without 0 bytes, at which a call may return at once."""
    return list(pairwise((size, times) for size, times in sizes.items() if size))


def _composition(
    place: Place,
    operations: Mapping[str, Mapping[int, Times]],
    operation: str,
    size_bytes: int,
    times: Times,
    parts: Sequence[tuple[str, _Bytes]],
) -> Iterator[Claim]:
    """Yield the claims of a composition. Sizes that were not measured are replaced by the next larger one: it
    contains the data.
    """
    replacement: list[Replacement] = []
    bound: list[Launches] = []
    for part, bytes_of in parts:
        measured = _measured_size(operations, part, bytes_of(size_bytes, place.ranks))
        if measured is None:
            return
        replacement.append(Replacement(part, measured))
        bound.append(operations[part][measured].launches)
    yield Claim(COMPOSITION, place, operation, size_bytes, times, tuple(replacement), _sums(bound))


def _measured_size(
    operations: Mapping[str, Mapping[int, Times]], operation: str, needed_bytes: int
) -> int | None:
    return min((size for size in operations.get(operation, {}) if size >= needed_bytes), default=None)


def _sizes(
    place: Place, operation: str, small: tuple[int, Times], large: tuple[int, Times]
) -> Iterator[Claim]:
    """Yield the claims that the smaller message takes at most as long as the larger one, and the larger one
    at most as long as its parts.
    """
    (size, times), (larger, times_of_larger) = small, large
    one = (Replacement(operation, larger),)
    yield Claim(MONOTONY, place, operation, size, times, one, times_of_larger.launches)
    if larger % size == 0:
        calls = larger // size
        bound: list[np.ndarray] = [calls * launch for launch in times.launches]
        parts = (Replacement(operation, size, calls),)
        yield Claim(SPLIT, place, operation, larger, times_of_larger, parts, bound)


def _sums(parts: Sequence[Launches]) -> Launches:
    """Return, launch by launch, the sum of one call of each part: as many launches, and calls in each, as all
    parts have.
    """
    sums: list[np.ndarray] = []
    for launches in zip(*parts, strict=False):
        shortest = min(map(len, launches))
        sums.append(np.sum([launch[:shortest] for launch in launches], axis=0))
    return sums


def _check(claim: Claim, estimate: Estimate, p: tuple[float, float] | None, found: Outcome) -> GuidelineCheck:
    bound_s = changes.median_of_launches(claim.bound)
    p_value, adjusted_p = p or (None, None)
    return GuidelineCheck(
        claim.kind, claim.operation, claim.size_bytes, *claim.place, claim.replacement,
        changes.median_of_launches(claim.times.launches), bound_s, estimate, p_value, adjusted_p,
        len(claim.times.launches), len(claim.bound), found,
        remedy(claim, bound_s) if found == VIOLATED else "",
    )  # fmt: skip


def remedy(claim: Claim, bound_s: float) -> str:
    """Return the remedy for a violation: the MPI's algorithm that was measured to be faster than the
    replacement, or the replacement.
    """
    medians = {
        method: changes.median_of_launches(launches)
        for method, launches in claim.times.by_method.items()
        if _can_be_forced(method)
    }
    fastest = min(medians, key=lambda method: medians[method], default=None)
    if fastest is not None and medians[fastest] < bound_s:
        return (
            f"force the algorithm {fastest}, which takes {format_seconds(medians[fastest])} here "
            "(`earlybird advise collective`)"
        )
    (first, *_) = claim.replacement
    instead = {
        COMPOSITION: f"call {' and '.join(one.operation for one in claim.replacement)} instead",
        MONOTONY: f"send {format_bytes(first.size_bytes)} instead",
        SPLIT: f"call it {first.calls} times with {format_bytes(first.size_bytes)} instead",
    }[claim.kind]
    if medians:
        return f"{instead}: no algorithm that was measured is faster"
    return f"{instead}, or find a faster algorithm: measure with --algorithm all"


def _can_be_forced(method: str) -> bool:
    """Return whether the MPI can be set to use `method` for the same call: a persistent operation is another
    one.
    """
    parsed = parse_method(method)
    return parsed.is_forced and not parsed.is_persistent


def _unchecked(measured: Measured) -> Iterator[str]:
    """Yield the guidelines for which an operation was not measured."""
    held = _held(measured)
    for operation, parts in COMPOSITIONS:
        names = [name for name, _ in parts]
        if missing := [name for name in dict.fromkeys((operation, *names)) if name not in held]:
            yield f"{_rule(operation, names)} (needs {listed(missing)})"


def _held(measured: Measured) -> set[str]:
    return {operation for operations in measured.values() for operation, sizes in operations.items() if sizes}


def _rule(operation: str, parts: Sequence[str]) -> str:
    return f"{operation} <= {' + '.join(parts)}"


def _unchecked_sizes(measured: Measured) -> Iterator[UncheckedSizes]:
    """Yield the sizes for which `claims_of` has no claim, although the operations of the guideline were
    measured.
    """
    held = _held(measured)
    for place, operations in measured.items():
        for operation, parts in COMPOSITIONS:
            if not {name for name, _ in parts} <= held:
                continue
            needed: dict[str, int] = {}
            lacking: list[int] = []
            for size in operations.get(operation, {}):
                missing = {
                    part: bytes_of(size, place.ranks)
                    for part, bytes_of in parts
                    if _measured_size(operations, part, bytes_of(size, place.ranks)) is None
                }
                needed |= missing
                lacking += [size] if missing else []
            if lacking:
                needs = listed([f"{part} of {format_bytes(size)}" for part, size in needed.items()])
                rule = _rule(operation, [name for name, _ in parts])
                yield UncheckedSizes(rule, *place, tuple(lacking), f"needs {needs}")
        for operation, sizes in operations.items():
            moving = [size for size in sizes if size]
            if len(moving) == 1:
                for kind in (MONOTONY, SPLIT):
                    rule = f"{kind} of {operation}"
                    yield UncheckedSizes(rule, *place, tuple(moving), "needs a second size")
            steps = list(pairwise(moving))
            other = [small for small, large in steps if sizes[small].datatype != sizes[large].datatype]
            if other:
                rule = f"{MONOTONY} of {operation}"
                yield UncheckedSizes(rule, *place, tuple(other), "the next size has another datatype")
            uneven = [large for small, large in steps if large % small and small not in other]
            if uneven:
                rule, reason = f"{SPLIT} of {operation}", "no multiple of the next smaller size"
                yield UncheckedSizes(rule, *place, tuple(uneven), reason)


def _notes(checks: Sequence[GuidelineCheck], side: Side, level: float) -> Iterator[str]:
    if "true" in side.circumstances.get("oversubscribed", ""):
        yield (
            "some launches had more ranks than cores (oversubscribed), so times include "
            "waits for a core; measure with a core for each rank before you change anything"
        )
    zeros = sum(key[1] == COMPLETION and _has_zero(launches) for key, launches in side.times_s.items())
    if zeros:
        yield f"{counted(zeros, 'point')} left out: a time there is 0"
    few = [one for one in checks if one.p_value is None]
    if few:
        least = min(min(one.launches, one.bound_launches) for one in few)
        yield (
            f"{len(few)} of {counted(len(checks), 'check')} {'has' if len(few) == 1 else 'have'} too few "
            f"launches to decide ({least}; at least {changes.MIN_LAUNCHES}): {more_launches(side)}"
        )
    unclear = sum(one.outcome == UNDECIDED and one.p_value is not None for one in checks)
    if unclear:
        yield (
            f"{unclear} of {counted(len(checks), 'check')} {'has' if unclear == 1 else 'have'} an interval "
            f"too wide to decide: {more_launches(side)}"
        )
    decided = [one for one in checks if one.p_value is not None]
    if decided:
        counts = [min(one.launches for one in decided), min(one.bound_launches for one in decided)]
        fewest = changes.fewest_changes(counts[0], counts[1], len(decided), level)
        # Most guidelines hold clearly, and every clear difference helps the others to be significant.
        if sum(one.adjusted_p_value <= level for one in decided if one.adjusted_p_value is not None) < fewest:
            yield (
                f"with {min(counts)} launches a difference is significant only if at least {fewest} of "
                f"{len(decided)} checks show one; {changes.launches_for(len(decided), level)} launches show "
                "a single one"
            )
