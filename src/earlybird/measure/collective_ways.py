"""Which ways of a collective operation are compared, and which of them one launch can hold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data.collective_algorithms import (
    DEFAULT,
    FAMILY_NAMES,
    OWN,
    REDUCTIONS,
    STAYS_FREE,
    Way,
    forcing,
    is_segmented,
    mpi_algorithms,
    own_algorithms,
    parse_way,
    why_not,
)
from earlybird.data.errors import InputError
from earlybird.measure.groups import Options, Place

DEFAULT_OPERATIONS = ("bcast", "reduce")
# Words for many algorithms at once.
ALL, ALL_OWN = "all", "own"

_ALGORITHMS = ("own-linear", "own-pipeline", "own-binomial", "linear", "pipeline", "binomial")
_SEGMENT_BYTES = 8192  # of `pipeline` where nothing else is said
# The common measure of launches that cannot hold `default`.
_REFERENCES = ("own-binomial", "own-linear")


def ways_of(operation: str, options: Options, place: Place) -> tuple[Way, ...]:
    """What is to be compared, `default` first; InputError for an algorithm that nobody here has."""
    here = (*own_algorithms(operation), *mpi_algorithms(place.family, operation))
    asked = options.algorithms
    if asked is None:
        asked = _ALGORITHMS if operation in DEFAULT_OPERATIONS else (ALL,)
    chosen = [Way(DEFAULT)]
    for word in asked:
        if word == ALL:
            names: Iterable[str] = here
        elif word == ALL_OWN:
            names = own_algorithms(operation)
        else:
            names = (word,)
        for name in names:
            way = parse_way(name)
            if way.name not in (*here, DEFAULT):
                _refuse_unknown(way.name, options, place)
                continue  # another operation has it
            chosen += _segmented(way, word, operation, options, place)
    return tuple(dict.fromkeys(chosen))


def applies(way: Way, ways: Sequence[Way], point: dict[str, Any], family: str | None) -> bool:
    """Whether the MPI takes `way` at this point, and whether another way is not the very same there."""
    same_here = replace(way, segment_bytes=0)
    if way.segment_bytes >= point["size_bytes"] and same_here != way and same_here in ways:
        return False
    return why_not(family, point["operation"], way, point["ranks"], point["size_bytes"]) is None


def launches(
    operation: str, ways: Sequence[Way], ranks: int, family: str | None
) -> list[tuple[tuple[Way, ...], dict[str, str]]]:
    """Ways that one launch can hold, by the environment that they need."""
    free = dict(forcing(family, operation, Way(DEFAULT), ranks).environment)
    by_environment: dict[tuple, list[Way]] = {tuple(free.items()): []}
    for way in ways:
        needed = dict(forcing(family, operation, way, ranks).environment) if way.is_forced else free
        key = tuple(needed.items())
        # Settings of the launch are those of one way where the MPI is told of it there.
        by_environment.setdefault(key, []).append(way)
    apart = len(by_environment) > 1
    result = []
    for key, together in by_environment.items():
        is_free = dict(key) == free
        if apart and not (is_free and family in STAYS_FREE):
            beside = _beside(operation, family)
            together = [*together, *beside] if is_free else [*beside, *together]
        if together:
            result.append((tuple(dict.fromkeys(together)), dict(key)))
    return result


def _segmented(way: Way, word: str, operation: str, options: Options, place: Place) -> Iterator[Way]:
    """`way` with its own segments, those of --segments, or those that `all` and the default give."""
    can = way.name != DEFAULT and is_segmented(place.family, operation, way.name)
    if way.segment_bytes and not can:
        raise InputError(
            f"--algorithm has {way.text} and {way.name} of {operation} has no segments; give {way.name}"
        )
    segments: tuple[int, ...] = (way.segment_bytes,)
    if can and ":" not in word:
        given_freely = options.algorithms is None or word in (ALL, ALL_OWN)
        usual = _SEGMENT_BYTES if given_freely and way.name.endswith("pipeline") else 0
        segments = (usual,) if options.segments_bytes is None else options.segments_bytes
    for segment in segments:
        if operation in REDUCTIONS and segment % 8:
            raise InputError(
                f"a segment of {operation} has {segment} bytes, which is no whole number of doubles; give "
                "multiples of 8"
            )
        yield replace(way, segment_bytes=segment)


def _refuse_unknown(name: str, options: Options, place: Place) -> None:
    """Raise InputError where no operation that is measured has the algorithm `name`."""
    operations = options.operations or DEFAULT_OPERATIONS
    known = [
        (*mpi_algorithms(place.family, operation), *own_algorithms(operation)) for operation in operations
    ]
    if any(name in names for names in known):
        return
    ours = "" if name.startswith(OWN) else f" that {FAMILY_NAMES[place.family]} can be made to take"
    here = "; ".join(
        f"of {operation} {', '.join(names)}" for operation, names in zip(operations, known, strict=True)
    )
    raise InputError(
        f"--algorithm has {name!r}, which is no algorithm of {' or '.join(operations)}{ours}; there are "
        f"{here}, beside {DEFAULT}, {ALL_OWN} and {ALL}"
    )


def _beside(operation: str, family: str | None) -> tuple[Way, ...]:
    """What is in each launch where ways are in several, to compare them by."""
    if family in STAYS_FREE:
        return (Way(DEFAULT),)
    own = own_algorithms(operation)
    return tuple(Way(name) for name in _REFERENCES if name in own)[:1]
