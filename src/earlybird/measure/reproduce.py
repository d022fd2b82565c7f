"""The measurements for a paper's figures: `measure pipeline --reproduce gillis`."""

from earlybird.data.errors import InputError
from earlybird.measure.groups import (
    MIB,
    MPICH_WHEEL_CONTEXTS,
    Group,
    Options,
    Resources,
    carried_bytes,
    cores_per_rank,
    hangs_with_contexts,
    levels_of,
    powers,
)
from earlybird.measure.library_methods import is_here
from earlybird.measure.pipeline import (
    AGGREGATED,
    ALL_METHODS,
    PIPELINE_OPTIONS,
    default_gamma,
    pipeline_groups,
)

PAPERS = ("gillis",)
# Default time for one MPI, without and with --quick, by paper.
BUDGETS_S = {"gillis": (300.0, 60.0), "temucin": (1500.0, 240.0)}
PAPER_THREADS = 32  # of figures 5 and 6
PAPER_FEW_THREADS = 4  # of figures 7 and 8
_LARGEST_BYTES = 16 * MIB
_AGGREGATION_BYTES = (512, 1 << 10, 1 << 12, 1 << 14)
_COMPARED = ("single", "many", "earlybird", "partitioned")
# What the set decides itself.
_DECIDED = ("sizes_bytes", "partitions", "gammas_s_per_byte", "noise", "methods", "aggregation_bytes", "vcis")


def groups_of_pipeline(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """The measurements of the suite `pipeline`: a paper's figures if requested, otherwise those of the
    options."""
    if options.reproduce is None:
        return pipeline_groups(options, resources, mpi)
    _check(options)
    figures = _figures(options, resources).values()
    return [group for figure in figures for group in pipeline_groups(figure, resources, mpi)]


def remarks(options: Options, resources: Resources) -> list[str]:
    """Differences from the paper's measurements, one sentence each."""
    if options.reproduce is None:
        return []
    level, cores = _level(options, resources), cores_per_rank(_level(options, resources), resources)
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
        notes.append("figure 6 needs communication contexts that can be requested, which only MPICH has")
    elif hangs_with_contexts(level, resources):
        notes.append(
            "no figure 6 and no streams: MPICH hangs in MPI_Init with several contexts between nodes of a "
            "virtual cluster"
        )
    return notes


def _figures(options: Options, resources: Resources) -> dict[int, Options]:
    """The options of the suite for each figure of the paper."""
    level = _level(options, resources)
    many, few = _threads(options, level, resources)
    last = carried_bytes(_LARGEST_BYTES, level, resources)

    def sizes(first: int) -> tuple[int, ...]:
        return powers(max(last, first), 16 if options.quick else 4, first)

    def methods(*names: str) -> tuple[str, ...]:
        return tuple(name for name in names if is_here(name, resources))

    common = options.changed(reproduce=None, levels=(level,), threads=(1,))
    contention = common.changed(
        threads=(many,), partitions=(many,), sizes_bytes=sizes(16 * many), gammas_s_per_byte=(0.0,),
        methods=methods(*_COMPARED, "rma-single-passive", "rma-many-passive"),
    )  # fmt: skip
    gathered = tuple(size for size in _AGGREGATION_BYTES if is_here(f"{AGGREGATED}{size}", resources))
    # On a slow link the paper's gamma has no effect: the same gamma*beta is used instead.
    gamma = default_gamma(level, resources)
    figures = {
        4: common.changed(
            partitions=(1,), sizes_bytes=sizes(16), gammas_s_per_byte=(0.0,), methods=(ALL_METHODS,)
        ),
        5: contention,
        7: common.changed(
            threads=(few,), partitions=(32 * PAPER_FEW_THREADS,), sizes_bytes=sizes(512),
            gammas_s_per_byte=(0.0,), methods=methods(*_COMPARED), aggregation_bytes=gathered or None,
        ),
        8: common.changed(
            threads=(few,), partitions=(PAPER_FEW_THREADS,), sizes_bytes=sizes(1 << 10),
            gammas_s_per_byte=(gamma,), methods=methods(*_COMPARED, "rma-single-passive"),
        ),
    }  # fmt: skip
    if resources.family == "mpich" and not hangs_with_contexts(level, resources):
        figures[6] = contention.changed(vcis=(min(many, MPICH_WHEEL_CONTEXTS),))
    return figures


def _check(options: Options) -> None:
    if options.reproduce not in PAPERS:
        raise InputError(f"--reproduce is {options.reproduce!r}; the papers are {', '.join(PAPERS)}")
    for name in _DECIDED:
        if getattr(options, name) is not None:
            option = next(one.option for one in PIPELINE_OPTIONS if one.field == name)
            raise InputError(
                f"--reproduce {options.reproduce} chooses {option} itself; leave {option} out, or --reproduce"
            )
    if len(options.threads or ()) > 1:
        raise InputError("--reproduce takes one number of --threads, that of figures 5 and 6")


def _level(options: Options, resources: Resources) -> str:
    """The requested level, or the outermost; the paper's is between nodes."""
    levels = levels_of(options, resources)
    if options.levels is not None and len(levels) > 1:
        raise InputError("--reproduce measures at one level; give one of --levels")
    return levels[-1]


def _threads(options: Options, level: str, resources: Resources) -> tuple[int, int]:
    """Of figures 5 and 6, at least two, or there is no contention; and of figures 7 and 8."""
    cores = cores_per_rank(level, resources)
    many = options.threads[0] if options.threads else min(max(cores, 2), PAPER_THREADS)
    few = max(divisor for divisor in (1, 2, 4) if divisor <= max(cores, 1))
    return many, few
