"""Options of commands that divide a mesh: which mesh, and what its cells send."""

import re
from pathlib import Path
from typing import Annotated

import typer

from earlybird.data.errors import InputError
from earlybird.data.pattern import check_suffix

DEFAULT_CELLS = 100_000

CellsOption = Annotated[
    int | None,
    typer.Option(help=f"Cells of the generated mesh, within 10 %.  [default: {DEFAULT_CELLS}]"),
]
GraphOption = Annotated[
    Path | None,
    typer.Option(help="METIS .graph or Matrix Market adjacency to use instead.", metavar="FILE"),
]
ActnumOption = Annotated[
    Path | None, typer.Option(help="Eclipse ACTNUM mask to use instead; needs --dims.", metavar="FILE")
]
DimsOption = Annotated[
    str | None, typer.Option(help="Grid of the ACTNUM mask, x fastest.", metavar="NXxNYxNZ")
]
RefineOption = Annotated[
    int | None,
    typer.Option(help="Divide each cell of the ACTNUM mask into N x N x N cells.  [default: 1]", metavar="N"),
]
HaloWidth = Annotated[int, typer.Option(help="Layers of cells to send.")]
BytesPerCell = Annotated[str, typer.Option(help="Data of one cell, such as 8 or 1KiB.")]


def adjacency_of(
    cells: int | None,
    graph: Path | None,
    actnum: Path | None,
    dims: str | None,
    refine: int | None,
    seed: int,
):
    """The adjacency of the mesh that the options name; raises InputError."""
    if sum(source is not None for source in (cells, graph, actnum)) > 1:
        raise InputError("--cells, --graph and --actnum each specify a mesh; give one of them")
    if (actnum is None) != (dims is None):
        raise InputError("--actnum and --dims go together; give both, such as --actnum FILE --dims 46x112x22")
    if refine is not None and actnum is None:
        raise InputError("--refine divides the cells of an ACTNUM mask; give --actnum and --dims, too")
    if graph is not None:
        from earlybird.patterns.graph_files import read_graph

        return read_graph(graph)
    if actnum is not None:
        from earlybird.patterns.actnum import read_actnum_graph

        return read_actnum_graph(actnum, three_sides(dims, "--dims"), 1 if refine is None else refine)
    from earlybird.patterns.mesh import tetrahedral_mesh

    return tetrahedral_mesh(DEFAULT_CELLS if cells is None else cells, seed)


def three_sides(text: str, what: str) -> tuple[int, int, int]:
    """`4x4x2` of the option `what`; raises InputError."""
    match = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", text.strip())
    if not match or "0" in {side.lstrip("0") or "0" for side in match.groups()}:
        raise InputError(f"{what} is {text!r}; give three whole numbers above 0, such as 4x4x2")
    return int(match[1]), int(match[2]), int(match[3])


def check_output(output: Path) -> None:
    """Raise InputError, before the work, if `output` cannot be written."""
    if not output.parent.is_dir():
        raise InputError(f"cannot write {output}: the folder {output.parent} does not exist; create it first")
    if output.is_dir():
        raise InputError(f"cannot write {output}: it is a folder; give the name of a file")


def check_pattern_output(output: Path) -> None:
    """The same for a pattern, whose suffix selects the format."""
    check_suffix(output)
    check_output(output)
