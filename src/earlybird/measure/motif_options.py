"""The motifs that suites measure, with their defaults and options."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from earlybird.data import kernels
from earlybird.data.levels import MAPPINGS
from earlybird.data.methods import STYLES
from earlybird.data.units import parse_triple
from earlybird.measure import computing
from earlybird.measure.motif_shapes import Triple, triple_text
from earlybird.measure.options import Parser, SuiteOption, counts, listed, number, threads_option

STRONG, WEAK = SCALINGS = ("strong", "weak")
YES, NO = "yes", "no"
PACKED, DERIVED = "packed", "derived"
CELLS, MORE_CELLS = (32, 32, 32), (64, 64, 64)
PARTITIONS = 4
BLOCKS = 8  # of planes, in each of the four sweeps
DEFAULT_RANKS = 8


@dataclass(frozen=True)
class MotifKind:
    """The differences between motifs: the defaults, and the dimensions of their process grids."""

    kernel: str
    dimensions: int
    variables: int
    stencil: int = 0
    buffers: tuple[str, ...] = (PACKED,)
    computes_s: tuple[float, ...] = (0.0, 1e-3)

    @property
    def sweeps(self) -> bool:
        return self.stencil == 0


HALO3D = MotifKind(kernels.HALO3D.name, 3, variables=1, stencil=7)
COMB = MotifKind(kernels.COMB.name, 3, variables=3, stencil=27, buffers=(PACKED, DERIVED))
SWEEP3D = MotifKind(kernels.SWEEP3D.name, 2, variables=8, computes_s=(0.0, 1e-4))


def _triples(option: str, example: str) -> Parser:
    parse: Callable[[str], Triple] = lambda text: parse_triple(text, option, example)  # noqa: E731
    return listed(parse)


def _grid_options(kind: MotifKind) -> tuple[SuiteOption, ...]:
    shape = "square" if kind.dimensions == 2 else "cube"
    what = "angles of each sweep" if kind.sweeps else "variables of each cell"
    default_cells = f"{triple_text(CELLS)},{triple_text(MORE_CELLS)}"
    return (
        SuiteOption(
            "ranks", f"Rank counts, such as 2,4,8.  [default: 2, 4 .. all cores, at most {DEFAULT_RANKS}]",
            "ranks", counts("--ranks", "rank counts from 1 up, such as 2,4,8"),
        ),
        SuiteOption(
            "cells", "Cells along x, y and z, such as 32x32x32: of all ranks together or, with "
            f"--scaling weak, of each rank.  [default: {default_cells}]",
            "cells", _triples("--cells", "32x32x32"),
        ),
        SuiteOption(
            "scaling", "strong, weak or both (strong,weak).  [default: strong]",
            "scalings", choices=SCALINGS,
        ),
        SuiteOption(
            "process-grid", f"Ranks along x, y and z, such as 2x2x1.  [default: near a {shape}]",
            "process_grids", _triples("--process-grid", "2x2x1"),
        ),
        SuiteOption(
            "map-by", "core, socket or node; several separated by commas.  [default: core]",
            "map_by", choices=MAPPINGS,
        ),
        SuiteOption(
            "variables", f"Numbers of {what}, such as 1,4.  [default: {kind.variables}]",
            "variables", counts("--variables", "numbers of variables from 1 up, such as 4"),
        ),
    )  # fmt: skip


def _exchange_options(kind: MotifKind) -> tuple[SuiteOption, ...]:
    if kind.sweeps:
        planes = SuiteOption(
            "planes-per-block", f"Planes along z computed and sent at a time.  [default: {BLOCKS} blocks]",
            "planes_per_block", number("--planes-per-block", "a number of planes, such as 4"),
        )  # fmt: skip
        return (planes,)
    return (
        SuiteOption(
            "stencil", f"Points of the stencil: 7, 27 or both (7,27).  [default: {kind.stencil}]",
            "stencils", choices=("7", "27"),
        ),
        SuiteOption(
            "periodic", "yes, no or both (yes,no): the grid continues at its opposite side.  [default: no]",
            "periodic", choices=(YES, NO),
        ),
        SuiteOption(
            "buffers", "packed, or derived: sent straight from the cells by derived datatypes.  "
            f"[default: {','.join(kind.buffers)}]",
            "cell_buffers", choices=(PACKED, DERIVED),
        ),
    )  # fmt: skip


def options_of(kind: MotifKind) -> tuple[SuiteOption, ...]:
    """Return the options of the suite that measures `kind`."""
    computes = ",".join("0" if compute_s == 0 else f"{compute_s * 1e3:g}ms" for compute_s in kind.computes_s)
    when = "each block of planes" if kind.sweeps else "each step"
    compute = f"How long a thread computes in {when} at least, such as 0,1ms.  [default: {computes}]"
    return (
        *_grid_options(kind),
        *_exchange_options(kind),
        SuiteOption(
            "partitions", "Partitions of a message, of all threads together, such as 1,4.  "
            f"[default: {PARTITIONS}, or the next multiple of the threads]",
            "partitions", counts("--partitions", "numbers of partitions from 1 up, such as 4"),
        ),
        threads_option("one per core of a rank, at most one per plane or angle"),
        replace(computing.COMPUTE, help=compute),
        computing.NOISE,
        computing.NOISE_PERCENT,
        SuiteOption(
            "methods", f"Styles: some of {', '.join(STYLES)}.  [default: all available]",
            "methods", choices=STYLES,
        ),
    )  # fmt: skip
