"""Which methods of a collective operation are compared, and which of them one launch can hold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data.collective_algorithms import (
    DEFAULT,
    FAMILY_NAMES,
    OWN,
    PERSISTENT,
    REDUCTIONS,
    STAYS_FREE,
    Method,
    forcing,
    is_segmented,
    mpi_algorithms,
    own_algorithms,
    parse_method,
    persistent_algorithms,
    unmet_requirement,
)
from earlybird.data.errors import InputError
from earlybird.data.mpi_algorithms import FAULTY_PERSISTENT
from earlybird.measure.groups import Options, Resources

DEFAULT_OPERATIONS = ("bcast", "reduce")
# Names that stand for several algorithms.
ALL, ALL_OWN, ALL_PERSISTENT = ALGORITHM_SETS = "all", "own", "all-persistent"

DEFAULT_ALGORITHMS = ("own-linear", "own-pipeline", "own-binomial", "linear", "pipeline", "binomial")
_SEGMENT_BYTES = 8192  # default of `pipeline`
# The common method of launches that cannot include `default`.
_REFERENCES = ("own-binomial", "own-linear")


def methods_of(operation: str, options: Options, resources: Resources) -> tuple[Method, ...]:
    """Return the methods to compare, `default` first; raise InputError for an unknown algorithm."""
    here = _names(operation, resources)
    persistent = (PERSISTENT, *persistent_algorithms(resources.family, operation))
    asked = options.algorithms
    if asked is None:
        asked = DEFAULT_ALGORITHMS if operation in DEFAULT_OPERATIONS else (ALL,)
    chosen = [Method(DEFAULT)]
    for given in asked:
        if given == ALL:
            names: Iterable[str] = here
        elif given == ALL_OWN:
            names = own_algorithms(operation)
        elif given == ALL_PERSISTENT:
            names = persistent
        else:
            names = (given,)
        for name in names:
            method = parse_method(name)
            if method.name not in (*here, *persistent, DEFAULT):
                _refuse_unknown(method.name, options, resources)
                continue  # another operation has it
            if method.is_persistent:
                _require_persistent(given, operation, resources)
            chosen += _segmented(method, given, operation, options, resources)
    return tuple(dict.fromkeys(chosen))


def _names(operation: str, resources: Resources) -> tuple[str, ...]:
    """Return the algorithms that `all` stands for: Earlybird's, and those of the MPI's blocking operation."""
    return (*own_algorithms(operation), *mpi_algorithms(resources.family, operation))


def _require_persistent(given: str, operation: str, resources: Resources) -> None:
    library = resources.library
    family = resources.family or ""
    if operation in FAULTY_PERSISTENT.get(family, ()):
        raise InputError(
            f"--algorithm has {given} and the persistent {operation} of {FAMILY_NAMES[family]} "
            "delivers wrong data or ends the program; leave it out, or measure another --op or --mpi"
        )
    if library is not None and not library.persistent_collectives:
        raise InputError(
            f"--algorithm has {given} and {library.name} has no persistent collectives, which MPI 4.0 "
            "brought; leave it out, or measure another --mpi"
        )


def applies(method: Method, methods: Sequence[Method], point: dict[str, Any], family: str | None) -> bool:
    """Return whether the MPI uses `method` at this point, and no other method is identical to it there."""
    same_here = replace(method, segment_bytes=0)
    if method.segment_bytes >= point["size_bytes"] and same_here != method and same_here in methods:
        return False
    return unmet_requirement(family, point["operation"], method, point["ranks"], point["size_bytes"]) is None


def launches(
    operation: str, methods: Sequence[Method], ranks: int, family: str | None
) -> list[tuple[tuple[Method, ...], dict[str, str]]]:
    """Return the methods that one launch can hold, by the environment that they need."""
    free = dict(forcing(family, operation, Method(DEFAULT), ranks).environment)
    by_environment: dict[tuple, list[Method]] = {tuple(free.items()): []}
    for method in methods:
        needed = dict(forcing(family, operation, method, ranks).environment) if method.is_forced else free
        key = tuple(needed.items())
        # If the MPI reads the method at launch, the settings of the launch are those of one method.
        by_environment.setdefault(key, []).append(method)
    apart = len(by_environment) > 1
    result = []
    for key, together in by_environment.items():
        is_free = dict(key) == free
        if apart and not (is_free and family in STAYS_FREE):
            compared = _for_comparison(operation, family)
            together = [*together, *compared] if is_free else [*compared, *together]
        if together:
            result.append((tuple(dict.fromkeys(together)), dict(key)))
    return result


def _segmented(
    method: Method, given: str, operation: str, options: Options, resources: Resources
) -> Iterator[Method]:
    """Yield `method` with its own segments, with those of --segments, or with those that `all` and the
    default imply."""
    can = is_segmented(resources.family, operation, method.name)
    if method.segment_bytes and not can:
        raise InputError(
            f"--algorithm has {method.text} and {method.name} of {operation} has no segments; give "
            f"{method.name}"
        )
    segments: tuple[int, ...] = (method.segment_bytes,)
    if can and ":" not in given:
        given_freely = options.algorithms is None or given in ALGORITHM_SETS
        usual = _SEGMENT_BYTES if given_freely and method.name.endswith("pipeline") else 0
        segments = (usual,) if options.segments_bytes is None else options.segments_bytes
    for segment in segments:
        if operation in REDUCTIONS and segment % 8:
            raise InputError(
                f"a segment of {operation} has {segment} bytes, which is not a whole number of doubles; give "
                "multiples of 8"
            )
        yield replace(method, segment_bytes=segment)


def _refuse_unknown(name: str, options: Options, resources: Resources) -> None:
    """Raise InputError if no measured operation has the algorithm `name`."""
    operations = options.operations or DEFAULT_OPERATIONS
    known = [_names(operation, resources) for operation in operations]
    persistent = [persistent_algorithms(resources.family, operation) for operation in operations]
    if any(name in names for names in (*known, *persistent)):
        return
    ours = "" if name.startswith(OWN) else f" that {FAMILY_NAMES[resources.family]} can be forced to use"
    named = persistent if name.startswith(PERSISTENT) else known
    here = "; ".join(
        f"of {operation} {', '.join(names) or 'none'}"
        for operation, names in zip(operations, named, strict=True)
    )
    raise InputError(
        f"--algorithm has {name!r}, which is not an algorithm of {' or '.join(operations)}{ours}; there are "
        f"{here}, and also {DEFAULT}, {PERSISTENT}, {', '.join(ALGORITHM_SETS)}"
    )


def _for_comparison(operation: str, family: str | None) -> tuple[Method, ...]:
    """Return the method that is part of each of several launches, as their common reference."""
    if family in STAYS_FREE:
        return (Method(DEFAULT),)
    own = own_algorithms(operation)
    return tuple(Method(name) for name in _REFERENCES if name in own)[:1]
