"""Insaghi's paper: regressions of the latency of broadcast and reduce."""

from collections.abc import Sequence
from dataclasses import replace

from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.insaghi import load_insaghi
from earlybird.data.methods import OWN
from earlybird.measure.collective import collective_groups
from earlybird.measure.groups import MIB, Group, Options, Resources, powers
from earlybird.measure.suites import SUITES
from earlybird.papers.insaghi.figures import paper_figures
from earlybird.papers.insaghi.measured import ALGORITHMS, NAME, OPENMPI, OPERATIONS, latencies
from earlybird.papers.insaghi.tables import table_rows
from earlybird.papers.page import chapter_of
from earlybird.papers.paper import Paper, Row, Step
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material

_SETUP = (
    "Paper: osu_bcast and osu_reduce with the algorithms of Open MPI on two nodes of ORFEO (2 x 64 cores of "
    "AMD EPYC 7H12 each); its latency is the mean over ranks. Times in microseconds; form 1 (by socket) and "
    "2 (by node) are for 1 byte, form 3 for all sizes."
)
_MIN_RANKS, _MAX_RANKS, _QUICK_COUNTS = 8, 256, 8
_HELP = {
    "ranks": "Numbers of ranks of 1-byte latencies, such as 2..16.  [default: 2 to the cores, at least 8]",
    "sizes": "Sizes of the surfaces.  [default: 1 B to 1 MiB]",
}
_TAKES = tuple(
    replace(option, help=_HELP[option.name]) for option in SUITES["collective"].takes if option.name in _HELP
)


def _plan(options: Options, resources: Resources, mpi: str) -> list[Step]:
    """Return the latencies of one byte at all numbers of ranks, and a grid of ranks and sizes."""
    ranks = options.ranks or _ranks(options, resources)
    sizes = options.sizes_bytes or powers(MIB, 16 if options.quick else 4)
    prefix = "" if resources.family == OPENMPI else OWN
    common = options.changed(
        operations=OPERATIONS,
        algorithms=tuple(prefix + name for name in ALGORITHMS),
        map_by=("core", "node") if resources.nodes > 1 else ("core",),
        verify="none",
    )
    doubled = tuple(count for count in ranks if count & (count - 1) == 0) or ranks[-1:]
    of_one_byte = common.changed(ranks=ranks, sizes_bytes=(1,))
    grid = common.changed(ranks=doubled, sizes_bytes=sizes)
    return [
        Step("one-byte", _of_paper(collective_groups(of_one_byte, resources, mpi))),
        Step("sizes", _of_paper(collective_groups(grid, resources, mpi)), share=2.0),
    ]


def _of_paper(groups: Sequence[Group]) -> list[Group]:
    """Return the groups with the algorithms of the paper alone. The MPI's choice is left out, which takes a
    second for a large message where many ranks share few cores."""
    algorithms = (
        replace(group, methods=tuple(name for name in group.methods if name != DEFAULT)) for group in groups
    )
    return [group for group in algorithms if group.methods]


def _ranks(options: Options, resources: Resources) -> tuple[int, ...]:
    """Return 2 to all cores, at least 8 and at most the paper's 256; few of them with --quick."""
    cores = (resources.cores_per_socket or 1) * resources.sockets * resources.nodes
    most = min(max(cores, _MIN_RANKS), _MAX_RANKS)
    step = max(1, most // _QUICK_COUNTS) if options.quick else 1
    return tuple(sorted({*range(2, most + 1, step), *powers(most, 2, 2), most}))


def _remarks(options: Options, resources: Resources) -> list[str]:
    notes = []
    if resources.nodes == 1:
        notes.append("one node: no ranks mapped by node, and no break at a second node; give --hosts")
    if resources.family != OPENMPI:
        notes.append(
            "the algorithms of Earlybird are measured: those of the paper can be chosen in Open MPI only"
        )
    steps = _plan(options, resources, resources.family or "")
    if any(resources.shares_cores(group.layout) for step in steps for group in step.groups):
        notes.append("some points have more ranks than cores: they show the scheduler")
    return notes


def _rows(material: Material) -> list[Row]:
    return table_rows(latencies(material))


def _chapter(material: Material) -> Chapter:
    measured = latencies(material)
    return chapter_of(PAPER, table_rows(measured), lines=[_SETUP], figures=paper_figures(measured))


PAPER = Paper(
    NAME,
    load_insaghi().source.split(" (")[0].partition(", ")[2],
    "Insaghi",
    0,
    {
        "figures 1 to 4": "broadcast of 1 byte: three algorithms against ranks",
        "figures 5 to 8": "reduce of 1 byte",
        "tables 1 to 6": "regressions of figures 2 to 4 and 6 to 8, by socket and by node",
        "tables 7 and 8": "regressions over ranks and size",
        "section 3": "surfaces over ranks and size",
    },
    _TAKES,
    (600.0, 120.0),
    _plan,
    _remarks,
    _rows,
    _chapter,
    "Values of a coefficient: estimate, standard error, t value and Pr(>|t|), as R prints them.",
)
