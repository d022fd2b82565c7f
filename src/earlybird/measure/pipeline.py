"""The suite `pipeline`: a buffer in partitions that become ready on the threads of a rank, sent in several
methods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from earlybird.data import units
from earlybird.data.contexts import MAX_LANES
from earlybird.data.errors import InputError
from earlybird.data.kernels import PIPELINE
from earlybird.data.methods import (
    AGGREGATED,
    PER_PARTITION,
    RECEIVERS,
    SEGMENTED,
    SINGLE,
    THREADS_RECEIVE,
)
from earlybird.measure.groups import (
    MIB,
    MPICH_WHEEL_CONTEXTS,
    Group,
    Options,
    Resources,
    carried_bytes,
    hangs_with_contexts,
    levels_of,
    link_of,
    pair_layout,
    powers,
    refuse_hanging,
    refuse_large,
)
from earlybird.measure.library_methods import is_here, unavailable_reason
from earlybird.measure.noise import NOISE_OPTIONS
from earlybird.measure.options import (
    LEVELS,
    SuiteOption,
    byte_counts,
    counts,
    listed,
    sizes_option,
    threads_option,
)

# What all others are compared with, in every launch.

# Every method of native/kernels/methods but `earlybird-fresh`, which is only for bench/.
METHODS = (
    "single", "many", "earlybird", PER_PARTITION, "partitioned", "rma-single-passive", "rma-many-passive",
    "rma-single-active", "rma-many-active", "rma-fence", "stream",
)  # fmt: skip
ALL_METHODS = "all"
# The default: cheap, and the usual choices of programs.
DEFAULT_METHODS = ("single", "many", "earlybird", "partitioned")

_PARTITIONS = 4
_GAMMA_S_PER_BYTE = 100e-12  # that of figure 8 of Gillis et al. 2023
# The gamma*beta of that figure (beta = 25 GB/s): determines gamma if a link's beta is known.
_GAMMA_BETA = 2.5
# A thread's partitions have a tag each, of which MPI promises 32767 (MPI 4.1 section 9.1.2).
_MAX_PARTITIONS = 32_000
# Of a partitioned request, see native/partitioned/process/config.c.
_MAX_SEGMENTS = 1 << 20
# A computation beyond this is a slip of units: a bare 100 is 100 s/B.
_LONGEST_S = 1.0


def _method(text: str) -> str:
    """Return `earlybird:4096` for `earlybird:4KiB`; other names are unchanged."""
    if text.startswith(SEGMENTED):
        number = units.whole_number(text.removeprefix(SEGMENTED))
        if not number or number > _MAX_SEGMENTS:
            raise InputError(
                f"--methods has {units.shortened(text)}; give 1 to {_MAX_SEGMENTS} messages, such as "
                f"{SEGMENTED}4"
            )
        return f"{SEGMENTED}{number}"
    if not text.startswith(AGGREGATED):
        return text
    limit_bytes = units.parse_bytes(text.removeprefix(AGGREGATED), f"--methods has {text}, its limit")
    return f"{AGGREGATED}{limit_bytes}"


def _receivers(text: str, _: Mapping[str, Any]) -> str:
    if text not in RECEIVERS:
        raise InputError(f"--receivers is {units.shortened(text)}; give {' or '.join(RECEIVERS)}")
    return text


PIPELINE_OPTIONS = (
    sizes_option("1 KiB to 16 MiB", "whole buffers, which partitions must divide"), LEVELS,
    SuiteOption("partitions", "Partitions of all threads together, such as 4 or 1,4,16.  "
                f"[default: {_PARTITIONS}, or the next multiple of the threads]", "partitions",
                counts("--partitions", "numbers of partitions from 1 up, such as 4")),
    threads_option("1"),
    SuiteOption("methods", f"Send methods: all, or some of {', '.join(METHODS)}, earlybird:SIZE, "
                "earlybird-segments:N.  "
                f"[default: {','.join(DEFAULT_METHODS)}]", "methods",
                listed(_method)),
    SuiteOption("aggregation", "Add earlybird with these aggregation limits, such as 512,4KiB.",
                "aggregation_bytes", byte_counts("--aggregation")),
    SuiteOption("receivers", "Whether one thread of the receiving rank receives, or as many threads as send: "
                "each waits for its own messages, or calls MPI_Parrived.  [default: one]", "receivers",
                _receivers, values=RECEIVERS),
    SuiteOption("vcis", "Communication contexts of MPICH, such as 1,4.", "vcis",
                counts("--vcis", "numbers of contexts from 1 up, such as 1,4")),
    SuiteOption("gamma", "Delay rate: time from the first to the last ready partition, divided by the bytes "
                "of one partition, such as 100us/MB; several as 0,50us/kB.  "
                "[default: 100us/MB, or by the rate of the link]", "gammas_s_per_byte",
                listed(lambda item: units.parse_delay_rate(item, "--gamma"))),
    *NOISE_OPTIONS,
)  # fmt: skip


@dataclass(frozen=True)
class _Kind:
    """The methods of one launch: `partitioned` is the MPI's only if libearlybird is not loaded, and contexts
    that an MPI reserves for streams are not available to the other methods."""

    methods: tuple[str, ...]
    preload: bool = False
    streams: bool = False


def pipeline_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return the launches in which partitions of a buffer become ready on N threads, the last one late or all
    after a noisy computation (Gillis et al. 2023, figure 3), on every level.

    Sizes are those of whole buffers, numbers of partitions those of all threads together. Where the rate of a
    link is known, the delay is chosen for it: the delay of a fast network would have no effect on a slow one.
    """
    methods = methods_of(options, resources)
    _check_vcis(options, resources)
    result = []
    for level in levels_of(options, resources):
        if max(options.vcis or (1,)) > 1 and hangs_with_contexts(level, resources):
            refuse_hanging(f"--vcis has {max(options.vcis)}")
        layout, link = pair_layout(level, 1, resources), link_of(level, resources)
        for threads in options.threads or (options.launcher_threads,):
            for vcis in options.vcis or (None,):
                points = _points(options, level, resources, mpi, threads, vcis)
                for kind in _kinds(methods, options, resources, level, threads, vcis):
                    result.append(
                        Group(
                            PIPELINE.name, layout, points, methods=kind.methods, link_bytes_per_s=link,
                            threads=threads, vcis=vcis, streams=threads if kind.streams else 0,
                            preload=kind.preload,
                            environment=_lanes(vcis) if kind.preload else {},
                        )
                    )  # fmt: skip
    return result


def _lanes(vcis: int | None) -> dict[str, str]:
    """Return the variables that let libearlybird send over as many communicators as the MPI has contexts for
    them."""
    return {"EARLYBIRD_LANES": str(min(vcis, MAX_LANES))} if vcis is not None and vcis > 1 else {}


def methods_of(options: Options, resources: Resources) -> tuple[str, ...]:
    """Return the methods to compare, `single` first; raise InputError for a method that is unknown or that
    the MPI lacks."""
    asked = (*(options.methods or ()), *(f"{AGGREGATED}{size}" for size in options.aggregation_bytes or ()))
    if options.methods is None:
        asked = (*(method for method in DEFAULT_METHODS if is_here(method, resources)), *asked)
    chosen = [SINGLE]
    for method in asked:
        if method == ALL_METHODS:
            chosen += [method for method in METHODS if is_here(method, resources)]
            continue
        if method not in METHODS and not method.startswith((AGGREGATED, SEGMENTED)):
            raise InputError(
                f"--methods has {method!r}; the methods are {', '.join(METHODS)}, {AGGREGATED}BYTES, "
                f"{SEGMENTED}NUMBER and {ALL_METHODS}"
            )
        if not is_here(method, resources):
            raise InputError(f"--methods has {method} and {unavailable_reason(method, resources)}")
        chosen.append(method)
    return tuple(dict.fromkeys(chosen))


def _kinds(
    methods: Iterable[str], options: Options, resources: Resources, level: str, threads: int, vcis: int | None
) -> list[_Kind]:
    """Return the launches that `methods` need, each with `single` as the reference."""
    interposed = tuple(method for method in methods if method.startswith("earlybird"))
    common = tuple(method for method in methods if method not in (*interposed, "partitioned", "stream"))
    own = tuple(method for method in methods if method == "partitioned")
    kinds = []
    if own or not interposed:
        kinds.append(_Kind((*common, *own)))
    if interposed:
        kinds.append(_Kind((*common, *interposed), preload=True))
    if "stream" in methods and _streams_fit(options, resources, level, threads, vcis):
        kinds.append(_Kind((SINGLE, "stream"), streams=True))
    # A launch with only `single` adds no information.
    return [kind for kind in kinds if kind.methods != (SINGLE,)] or kinds[:1]


def _streams_fit(options: Options, resources: Resources, level: str, threads: int, vcis: int | None) -> bool:
    """Return whether the MPI has contexts for a stream per thread; raise InputError if it has not and streams
    were requested."""
    asked = options.methods is not None and "stream" in options.methods
    if hangs_with_contexts(level, resources):
        if asked:
            refuse_hanging("--methods has stream")
        return False
    contexts = (vcis or 1) + threads
    if resources.library is None or resources.library.name != "mpich" or contexts <= MPICH_WHEEL_CONTEXTS:
        return True
    if not asked:
        return False
    raise InputError(
        f"--methods has stream, which takes {threads} contexts in addition to the {vcis or 1} of --vcis, and "
        f"the MPICH of PyPI has {MPICH_WHEEL_CONTEXTS} in all; give fewer --threads or --vcis"
    )


def _check_vcis(options: Options, resources: Resources) -> None:
    if options.vcis is None:
        return
    library = resources.library
    if library is None or resources.family not in (None, "mpich"):
        name = "the launcher synthetic draws its times" if library is None else f"this is {library.name}"
        raise InputError(
            f"--vcis requests communication contexts of MPICH (MPIR_CVAR_CH4_NUM_VCIS), and {name}; "
            "leave it out, or give --mpi mpich"
        )
    if library.name == "mpich" and max(options.vcis) > MPICH_WHEEL_CONTEXTS:
        raise InputError(
            f"--vcis has {max(options.vcis)} and the MPICH of PyPI takes {MPICH_WHEEL_CONTEXTS} at most; "
            f"give 1 to {MPICH_WHEEL_CONTEXTS}, or the --mpi /path/to/mpicc of an MPICH with more"
        )


def _points(
    options: Options, level: str, resources: Resources, mpi: str, threads: int, vcis: int | None
) -> tuple[dict[str, Any], ...]:
    points = []
    for partitions in options.partitions or (threads * -(-_PARTITIONS // threads),):
        if partitions % threads:
            raise InputError(
                f"--partitions has {partitions}, which {threads} threads do not share evenly; give multiples "
                f"of {threads}, such as {-(-partitions // threads) * threads}"
            )
        if partitions > _MAX_PARTITIONS:
            raise InputError(
                f"--partitions has {partitions}; give {_MAX_PARTITIONS} at most, of all threads together"
            )
        for size in options.sizes_bytes or _default_buffers(options, level, resources, partitions):
            if size % partitions:
                raise InputError(
                    f"--sizes has {size} bytes, which {partitions} partitions do not share evenly; "
                    f"give multiples of {partitions}, such as {max(size // partitions, 1) * partitions}"
                )
            for computation in _computations(options, level, resources):
                _refuse_long(computation, size // partitions, partitions // threads)
                point = {
                    "mpi": mpi, "level": level, "size_bytes": size, "partitions": partitions,
                    "threads": threads, **computation,
                }  # fmt: skip
                # Absent if one thread receives, so that points have the keys of earlier runs.
                receivers = {"receivers": THREADS_RECEIVE} if options.receivers == THREADS_RECEIVE else {}
                points.append(point | receivers | ({} if vcis is None else {"vcis": vcis}))
    refuse_large([point["size_bytes"] for point in points])
    return tuple(points)


def _computations(options: Options, level: str, resources: Resources) -> list[dict[str, float]]:
    noise = options.noise
    if noise is not None:
        return [
            {"compute_s_per_byte": noise.mu_s_per_byte, "epsilon": noise.epsilon, "delta": noise.delta},
        ]
    gammas = options.gammas_s_per_byte or (default_gamma(level, resources),)
    return [{"gamma_s_per_byte": gamma} for gamma in gammas]


def _default_buffers(options: Options, level: str, resources: Resources, partitions: int) -> tuple[int, ...]:
    """Return the sizes from 1 KiB to 16 MiB, each cut to a multiple of `partitions`."""
    first, last, factor = (1 << 12, MIB, 16) if options.quick else (1 << 10, 16 * MIB, 4)
    sizes = powers(carried_bytes(last, level, resources), factor, first)
    return tuple(dict.fromkeys(max(size // partitions, 1) * partitions for size in sizes))


def default_gamma(level: str, resources: Resources) -> float:
    """Return the gamma of figure 8 of Gillis et al. 2023; if the rate of a link is known, the gamma with the
    same gamma*beta."""
    link = link_of(level, resources)
    return _GAMMA_S_PER_BYTE if link is None else _GAMMA_BETA / link


def _refuse_long(computation: dict[str, float], partition_bytes: int, partitions_per_thread: int) -> None:
    if "gamma_s_per_byte" in computation:
        gamma = computation["gamma_s_per_byte"]
        if gamma * partition_bytes > _LONGEST_S:
            raise InputError(
                f"a gamma of {gamma:g} s/B makes a partition of {partition_bytes} bytes "
                f"{gamma * partition_bytes:g} s late; give a --gamma that makes it {_LONGEST_S:g} s at most, "
                "such as 100us/MB"
            )
        return
    thread_s = computation["compute_s_per_byte"] * partition_bytes * partitions_per_thread
    if thread_s > _LONGEST_S:
        raise InputError(
            f"--ai, --ci and --frequency make a thread compute {thread_s:g} s for its "
            f"{partitions_per_thread} partitions of {partition_bytes} bytes; give smaller --sizes, or what "
            f"makes it {_LONGEST_S:g} s at most"
        )
