"""Options of commands that divide a mesh: which mesh, and what its cells send."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earlybird.cli.options.values import SIZE, as_written
from earlybird.patterns.chosen_mesh import DEFAULT_CELLS, adjacency_of
from earlybird.present.render.notes import note

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HaloWidth = Annotated[int, typer.Option(help="Layers of cells to send.")]
BytesPerCell = Annotated[int, typer.Option(help="Data of one cell, such as 8 or 1KiB."), SIZE]


@dataclass(frozen=True)
class MeshOptions:
    """The options of a mesh, and of the messages of its cells."""

    mesh: Annotated[
        Path | None,
        typer.Argument(
            metavar="MESH",
            help="METIS .graph, Matrix Market adjacency, or Eclipse file with the keyword ACTNUM; if it has "
            "neither SPECGRID nor DIMENS, it needs --dims.  [default: a generated mesh]",
        ),
    ] = None
    cells: Annotated[
        int | None,
        typer.Option(help=f"Cells of the generated mesh, within 10 %.  [default: {DEFAULT_CELLS}]"),
    ] = None
    dims: Annotated[
        str | None, typer.Option(help="Grid of the ACTNUM mask, x fastest.", metavar="NXxNYxNZ")
    ] = None
    refine: Annotated[
        int | None,
        typer.Option(
            help="Divide each cell of the ACTNUM mask into N x N x N cells.  [default: 1]", metavar="N"
        ),
    ] = None
    halo_width: HaloWidth = 1
    bytes_per_cell: BytesPerCell = as_written("8")

    def adjacency(self, seed: int) -> "csr_array":
        """Read or generate the mesh, and return its adjacency; raise InputError."""
        adjacency, remark = adjacency_of(self.mesh, self.cells, self.dims, self.refine, seed)
        if remark:
            note(remark)
        return adjacency
