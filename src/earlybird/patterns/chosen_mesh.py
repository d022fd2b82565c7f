"""Reads or generates the mesh that is to be divided: a graph, the mask of an Eclipse deck, or tetrahedra."""

from pathlib import Path
from typing import TYPE_CHECKING

from earlybird.data import files, memory
from earlybird.data.errors import InputError
from earlybird.data.units import parse_triple

if TYPE_CHECKING:  # scipy would be imported for every help text
    from scipy.sparse import csr_array

DEFAULT_CELLS = 100_000


def adjacency_of(
    mesh: Path | None, cells: int | None, dims: str | None, refine: int | None, seed: int
) -> "tuple[csr_array, str]":
    """Return the adjacency of the mesh that the options name, and a remark on it, "" without one.

    Raises InputError for options that do not apply to such a mesh.
    """
    for option, value, what in (("--refine", refine, "divides the cells"), ("--dims", dims, "is the grid")):
        if value is not None and mesh is None:
            remedy = "give MESH" if option == "--refine" else f"give MESH, or omit {option}"
            raise InputError(f"{option} {what} of an ACTNUM mask, which is missing; {remedy}")
    if mesh is None:
        from earlybird.patterns.mesh import tetrahedral_mesh

        num_cells = DEFAULT_CELLS if cells is None else cells
        return tetrahedral_mesh(num_cells, seed, available_bytes=memory.available_memory_bytes()), ""
    if cells is not None:
        raise InputError(f"--cells is of the generated mesh, but {mesh} is given; give one of them")
    from earlybird.patterns.graph_files import begins_as_graph, parse_graph

    text = files.read_text(mesh, "mesh")  # once: it may be a pipe
    if not begins_as_graph(text):
        return _graph_of_deck(text, mesh, dims, 1 if refine is None else refine)
    for option, value, what in (("--refine", refine, "divides the cells"), ("--dims", dims, "is the grid")):
        if value is not None:
            raise InputError(f"{option} {what} of an ACTNUM mask, but {mesh} is a graph; omit {option}")
    return parse_graph(text, mesh), ""


def _graph_of_deck(text: str, mesh: Path, dims: str | None, refine: int) -> "tuple[csr_array, str]":
    from earlybird.patterns.actnum import cell_graph, check_refine
    from earlybird.patterns.deck import read_deck

    sides = None if dims is None else parse_triple(dims, "--dims")
    if sides is not None:
        check_refine(sides, refine)  # before the text is taken apart
    deck = read_deck(text, mesh)
    if not deck.changes and deck.dims is None and sides is None:
        raise InputError(
            f"{mesh} is no METIS graph and no Matrix Market file, and has no Eclipse keyword ACTNUM; "
            "give one of these"
        )
    graph = cell_graph(deck, mesh, sides, refine)
    if not deck.beyond_actnum:
        return graph, ""
    return graph, (
        f"a simulator may also deactivate or join cells by {', '.join(deck.beyond_actnum)}; the mesh is that "
        "of ACTNUM alone"
    )
