"""The measurements for figures 4 to 8 of Gillis et al. 2023."""

from dataclasses import replace

from earlybird.data.errors import InputError
from earlybird.data.methods import (
    AGGREGATED,
    EARLYBIRD,
    MANY,
    OWN_CALLS,
    PER_PARTITION,
    SINGLE,
    THREADS_RECEIVE,
)
from earlybird.measure.groups import (
    MIB,
    MPICH_WHEEL_CONTEXTS,
    Options,
    Resources,
    carried_bytes,
    cores_per_rank,
    hangs_with_contexts,
    powers,
)
from earlybird.measure.library_methods import is_here
from earlybird.measure.options import LEVELS, threads_option
from earlybird.measure.pipeline import ALL_METHODS, PIPELINE_OPTIONS, default_gamma, pipeline_groups
from earlybird.papers.paper import Step
from earlybird.papers.place import outermost_level

PAPER_THREADS = 32  # of figures 5 and 6
PAPER_FEW_THREADS = 4  # of figures 7 and 8
_LARGEST_BYTES = 16 * MIB
_AGGREGATION_BYTES = (512, 1 << 10, 1 << 12, 1 << 14)
_COMPARED = (SINGLE, MANY, EARLYBIRD, PER_PARTITION, OWN_CALLS)
TAKES = (
    replace(threads_option(""), help="Threads of figures 5 and 6, a number.  [default: the cores of a rank, "
            f"at least 2 and at most {PAPER_THREADS}]"),
    *(
        replace(option, help="Which threads of rank 1 receive, one or threads.  [default: threads, "
                "as in the paper]")
        for option in PIPELINE_OPTIONS if option.name == "receivers"
    ),
    replace(LEVELS, help="intra_socket, inter_socket or inter_node.  [default: the outermost available]"),
)  # fmt: skip


def plan(options: Options, resources: Resources, mpi: str) -> list[Step]:
    """Return the measurements of all figures, as one run."""
    figures = _figures(options, resources).values()
    return [
        Step("pipeline", [group for figure in figures for group in pipeline_groups(figure, resources, mpi)])
    ]


def remarks(options: Options, resources: Resources) -> list[str]:
    """Return the differences from the paper's measurements, one sentence each."""
    level = outermost_level(options, resources)
    cores = cores_per_rank(level, resources)
    many, few = _threads(options, level, resources)
    notes = []
    if many != PAPER_THREADS or few != PAPER_FEW_THREADS:
        notes.append(
            f"figures 5 and 6 with {many} threads a rank (paper: {PAPER_THREADS}), 7 and 8 with {few} "
            f"(paper: {PAPER_FEW_THREADS}) but as many partitions as in the paper"
        )
    if many > cores:
        notes.append(
            f"a rank has {cores} of the cores for its {many} threads: their samples are marked "
            "oversubscribed and show the scheduler as much as the MPI"
        )
    if resources.family != "mpich":
        notes.append(
            "figure 6 needs contexts that a pipeline can request, and those only of MPICH (--mpi mpich)"
        )
    elif hangs_with_contexts(level, resources):
        notes.append(
            "no figure 6 and no streams: MPICH hangs in MPI_Init with several contexts between nodes of a "
            "virtual cluster"
        )
    return notes


def contention(options: Options, resources: Resources) -> Options:
    """Return the options of the suite for figure 5, threads with a partition each; figure 6 is the same with
    contexts."""
    level = outermost_level(options, resources)
    many, _ = _threads(options, level, resources)
    return _common(options, resources).changed(
        threads=(many,), partitions=(many,), sizes_bytes=_sizes(options, resources, 16 * many),
        gammas_s_per_byte=(0.0,),
        methods=_methods(resources, *_COMPARED, "rma-single-passive", "rma-many-passive"),
    )  # fmt: skip


def _common(options: Options, resources: Resources) -> Options:
    level, receivers = outermost_level(options, resources), options.receivers or THREADS_RECEIVE
    return options.changed(levels=(level,), threads=(1,), receivers=receivers)


def _sizes(options: Options, resources: Resources, first: int) -> tuple[int, ...]:
    last = carried_bytes(_LARGEST_BYTES, outermost_level(options, resources), resources)
    return powers(max(last, first), 16 if options.quick else 4, first)


def _methods(resources: Resources, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if is_here(name, resources))


def _figures(options: Options, resources: Resources) -> dict[int, Options]:
    """Return the options of the suite for each figure of the paper."""
    level = outermost_level(options, resources)
    many, few = _threads(options, level, resources)
    common, of_threads = _common(options, resources), contention(options, resources)
    gathered = tuple(size for size in _AGGREGATION_BYTES if is_here(f"{AGGREGATED}{size}", resources))
    # On a slow link the paper's gamma has no effect: the same gamma*beta is used instead.
    gamma = default_gamma(level, resources)
    figures = {
        4: common.changed(
            partitions=(1,), sizes_bytes=_sizes(options, resources, 16), gammas_s_per_byte=(0.0,),
            methods=(ALL_METHODS,),
        ),
        5: of_threads,
        7: common.changed(
            threads=(few,), partitions=(32 * PAPER_FEW_THREADS,),
            sizes_bytes=_sizes(options, resources, 512), gammas_s_per_byte=(0.0,),
            methods=_methods(resources, *_COMPARED), aggregation_bytes=gathered or None,
        ),
        8: common.changed(
            threads=(few,), partitions=(PAPER_FEW_THREADS,),
            sizes_bytes=_sizes(options, resources, 1 << 10), gammas_s_per_byte=(gamma,),
            methods=_methods(resources, *_COMPARED, "rma-single-passive"),
        ),
    }  # fmt: skip
    if resources.family == "mpich" and not hangs_with_contexts(level, resources):
        figures[6] = of_threads.changed(vcis=(min(many, MPICH_WHEEL_CONTEXTS),))
    return figures


def _threads(options: Options, level: str, resources: Resources) -> tuple[int, int]:
    """Return the threads of figures 5 and 6, at least two, or there is no contention; and of figures 7 and
    8."""
    if len(options.threads or ()) > 1:
        raise InputError(
            f"--threads has {len(options.threads)} numbers; give one, of the threads of figures 5 and 6"
        )
    cores = cores_per_rank(level, resources)
    many = options.threads[0] if options.threads else min(max(cores, 2), PAPER_THREADS)
    few = max(divisor for divisor in (1, 2, 4) if divisor <= max(cores, 1))
    return many, few
