"""Options of commands that divide a mesh: which mesh, and what its cells send."""

import re
from pathlib import Path
from typing import Annotated

import typer

from earlybird.data import files, memory
from earlybird.data.errors import InputError
from earlybird.data.pattern import check_suffix
from earlybird.present.render.notes import note

DEFAULT_CELLS = 100_000

MeshArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="MESH",
        help="METIS .graph, Matrix Market adjacency, or Eclipse file with the keyword ACTNUM; if it has "
        "neither SPECGRID nor DIMENS, it needs --dims.  [default: a generated mesh]",
    ),
]
CellsOption = Annotated[
    int | None,
    typer.Option(help=f"Cells of the generated mesh, within 10 %.  [default: {DEFAULT_CELLS}]"),
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


def adjacency_of(mesh: Path | None, cells: int | None, dims: str | None, refine: int | None, seed: int):
    """The adjacency of the mesh that the options name; raises InputError."""
    if mesh is None:
        if refine is not None:
            raise InputError("--refine divides the cells of an ACTNUM mask, which is missing; give MESH")
        if dims is not None:
            raise InputError(
                "--dims is the grid of an ACTNUM mask, which is missing; give MESH, or omit --dims"
            )
        from earlybird.patterns.mesh import tetrahedral_mesh

        return tetrahedral_mesh(
            DEFAULT_CELLS if cells is None else cells, seed, available_bytes=memory.available_memory_bytes()
        )
    if cells is not None:
        raise InputError(f"--cells is of the generated mesh, but {mesh} is given; give one of them")
    from earlybird.patterns.graph_files import begins_as_graph, parse_graph

    text = files.read_text(mesh, "mesh")  # once: it may be a pipe
    if begins_as_graph(text):
        if refine is not None:
            raise InputError(
                f"--refine divides the cells of an ACTNUM mask, but {mesh} is a graph; omit --refine"
            )
        if dims is not None:
            raise InputError(f"--dims is the grid of an ACTNUM mask, but {mesh} is a graph; omit --dims")
        return parse_graph(text, mesh)
    return _graph_of_deck(text, mesh, dims, 1 if refine is None else refine)


def _graph_of_deck(text: str, mesh: Path, dims: str | None, refine: int):
    from earlybird.patterns.actnum import cell_graph, check_refine
    from earlybird.patterns.deck import read_deck

    sides = None if dims is None else three_sides(dims, "--dims")
    if sides is not None:
        check_refine(sides, refine)  # before the text is taken apart
    deck = read_deck(text, mesh)
    if not deck.changes and deck.dims is None and sides is None:
        raise InputError(
            f"{mesh} is no METIS graph and no Matrix Market file, and has no Eclipse keyword ACTNUM; "
            "give one of these"
        )
    graph = cell_graph(deck, mesh, sides, refine)
    if deck.beyond_actnum:
        note(
            f"a simulator may also deactivate or join cells by {', '.join(deck.beyond_actnum)}; the mesh "
            "is that of ACTNUM alone"
        )
    return graph


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
