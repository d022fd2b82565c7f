"""The suite `partitioned`: overhead, perceived bandwidth, availability and early-bird share of partitioned
communication (Temucin et al. 2022)."""

from dataclasses import replace
from typing import Any

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.kernels import PARTITIONED
from earlybird.data.methods import CACHES, EARLYBIRD, MANY, OWN_CALLS, SINGLE
from earlybird.data.run_keys import MAX_THREADS
from earlybird.measure import computing
from earlybird.measure.groups import (
    MIB,
    Group,
    Options,
    Resources,
    carried_bytes,
    cores_per_rank,
    levels_of,
    link_of,
    pair_layout,
    powers,
    refuse_large,
)
from earlybird.measure.library_methods import (
    is_here,
    launches_of,
    remark_without_own_calls,
    unavailable_reason,
)
from earlybird.measure.options import (
    LEVELS,
    SuiteOption,
    counts,
    sizes_option,
    threads_option,
)

PARTITIONED_METHODS = (SINGLE, MANY, EARLYBIRD, OWN_CALLS)
BUDGET_S, QUICK_BUDGET_S = 240.0, 60.0

_COMPUTE_S = 10e-3
_NOISE_MODELS = ("none", "single")
_PARTITIONS, _QUICK_PARTITIONS = (1, 4, 16), (1, 4)
_MAX_PARTITIONS = 32_000  # as in the suite pipeline: `many` has a tag for each


PARTITIONED_OPTIONS = (
    sizes_option("1 KiB to 4 MiB", "whole buffers, rounded down to multiples of the partitions"), LEVELS,
    SuiteOption("partitions", "Partitions of all threads together, such as 1,4,16.  [default: 1,4,16]",
                "partitions", counts("--partitions", "numbers of partitions from 1 up, such as 4")),
    threads_option("one per partition"),
    replace(computing.COMPUTE, help="How long each thread computes, such as 1ms,100ms.  [default: 10ms]"),
    replace(computing.NOISE, help="Noise of the computation: none, single, uniform, gaussian.  "
            "[default: none,single]"),
    computing.NOISE_PERCENT,
    SuiteOption("cache", "hot, or cold: all caches of the CPUs in use are emptied before each iteration.  "
                "[default: hot]", "caches", choices=CACHES),
    SuiteOption("methods", f"Send methods: some of {', '.join(PARTITIONED_METHODS)}.  "
                "[default: all available]", "methods", choices=PARTITIONED_METHODS),
)  # fmt: skip


def partitioned_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return the launches in which partitions become ready on threads after a computation with noise, on
    every level; with and without libearlybird, each with a single message as the reference."""
    methods = _methods(options, resources)
    result = []
    for level in levels_of(options, resources):
        points = _points(options, level, resources, mpi)
        for threads in dict.fromkeys(point["threads"] for point in points):
            of_threads = tuple(point for point in points if point["threads"] == threads)
            for chosen, preload in launches_of(methods):
                result.append(
                    Group(
                        PARTITIONED.name, pair_layout(level, 1, resources), of_threads, methods=chosen,
                        link_bytes_per_s=link_of(level, resources), threads=threads, preload=preload,
                        flush_s=resources.flush_s,
                    )
                )  # fmt: skip
    return result


def remarks(options: Options, resources: Resources) -> list[str]:
    """Return a sentence for each way in which these options measure differently from what a user might
    expect."""
    library = resources.library
    found = []
    if library is not None and not library.partitioned and options.methods is None:
        found.append(remark_without_own_calls(library))
    points = [p for level in levels_of(options, resources) for p in _points(options, level, resources, "")]
    rounded = {p["size_bytes"] for p in points} - set(options.sizes_bytes or ())
    if options.sizes_bytes and rounded:
        found.append(
            "the partitions of MPI have equal sizes: sizes are rounded down to multiples of the partitions, "
            f"such as {min(rounded)} bytes"
        )
    shared = [point for point in points if point["partitions"] < point["threads"]]
    if shared:
        most_shared = max(shared, key=lambda point: point["threads"] / point["partitions"])
        found.append(
            f"{labels.counted(most_shared['partitions'], 'partition')} of {most_shared['threads']} threads: "
            "threads share a partition, which is ready when the last of them has finished its computation"
        )
    cores = min(cores_per_rank(level, resources) for level in levels_of(options, resources))
    most = max(point["threads"] for point in points)
    if library is not None and most > cores:
        found.append(
            f"a rank has {labels.counted(cores, 'core')} and up to {most} threads: where cores are short, "
            "threads sleep instead of computing, and samples are marked oversubscribed"
        )
    return found


def _methods(options: Options, resources: Resources) -> tuple[str, ...]:
    if options.methods is None:
        if resources.library is None:  # the launcher synthetic draws all of them
            return PARTITIONED_METHODS
        found = [method for method in PARTITIONED_METHODS if is_here(method, resources)]
        if EARLYBIRD in found or OWN_CALLS in found:
            return tuple(found)
        raise InputError(
            f"{resources.library.name} has no partitioned communication, and libearlybird is not built for "
            "it; run `earlybird build`, or give another --mpi"
        )
    for method in options.methods:
        if resources.library is not None and not is_here(method, resources):
            raise InputError(f"--methods has {method} and {unavailable_reason(method, resources)}")
    return tuple(dict.fromkeys((SINGLE, *options.methods)))


def _points(options: Options, level: str, resources: Resources, mpi: str) -> list[dict[str, Any]]:
    found = []
    first, last = (1 << 16, MIB) if options.quick else (1 << 10, 4 * MIB)
    sizes = options.sizes_bytes or powers(max(carried_bytes(last, level, resources), first), 8, first)
    for partitions in options.partitions or (_QUICK_PARTITIONS if options.quick else _PARTITIONS):
        if partitions > _MAX_PARTITIONS:
            raise InputError(f"--partitions has {partitions}; give {_MAX_PARTITIONS} at most")
        if options.threads is None and partitions > MAX_THREADS:
            raise InputError(
                f"--partitions has {partitions}, each by default with a thread, and a rank has at most "
                f"{MAX_THREADS} threads; give --threads, such as --threads 4"
            )
        for size in sizes:
            if size < partitions:
                raise InputError(
                    f"--sizes has {size} bytes and --partitions {partitions}: a partition has at least 1 "
                    f"byte; give sizes from {labels.counted(partitions, 'byte')} up, or fewer --partitions"
                )
            for threads in options.threads or (partitions,):
                for computation in computing.computations(_with_defaults(options)):
                    for cache in options.caches or CACHES[:1]:
                        found.append(
                            {
                                "mpi": mpi, "level": level, "size_bytes": size - size % partitions,
                                "partitions": partitions, "threads": threads, **computation.config(),
                                "cache": cache,
                            }
                        )  # fmt: skip
    refuse_large([point["size_bytes"] for point in found])
    return list({tuple(point.items()): point for point in found}.values())


def _with_defaults(options: Options) -> Options:
    return options.changed(
        computes_s=options.computes_s or (_COMPUTE_S,),
        noise_models=options.noise_models or _NOISE_MODELS,
    )
