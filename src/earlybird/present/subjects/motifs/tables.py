"""Tables of motifs: the results of every style, and how times scale with the ranks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from earlybird.compare.motifs import Scaling, cells_text, scaling
from earlybird.data import kernels, labels
from earlybird.data.methods import FUNNELLED
from earlybird.data.results import Result
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.parts import grouped
from earlybird.present.core.points import rows_of
from earlybird.present.core.table import MAX_BRIEF_ROWS, MAX_PAGE_ROWS, Column, Table
from earlybird.present.core.text import star
from earlybird.present.subjects.measured.columns import column_of
from earlybird.present.subjects.motifs.view import Motif, scalings

_BRIEF = ("ranks", "cells", "threads", "method", "time_s", "speed_up", "waiting_s")
# Heads of settings that one column of a brief table has together, and of those that are often others for
# other motifs, ranks or threads.
_FOLLOWING = {"grid", "variables", "planes per block", "partitions"}
_SETTINGS = _FOLLOWING | {"scaling", "mapped by", "stencil", "periodic", "buffers", "compute", "noise"}


class Row(NamedTuple):
    """A result and how it scales, if known; `motif` and `mpi` are "" in a table of a single one."""

    result: Result
    scaling: Scaling | None = None
    motif: str = ""
    mpi: str = ""

    @property
    def efficiency(self) -> float | None:
        return self.scaling.efficiency if self.scaling else None

    @property
    def scaled_speed_up(self) -> float | None:
        return self.scaling.speed_up if self.scaling else None

    @property
    def scaled_cells(self) -> str:
        """The cells that stay the same: `8x8x8 each` with weak scaling."""
        return cells_text(self.result.config) + " each" * bool(self.scaling and self.scaling.is_weak)


def _column(declared: kernels.Column, **changes: Any) -> Column:
    """Return a column of results as a column of rows, with `changes`."""
    column = column_of(declared)
    star_text = "*" if declared.key == "threads" else ""
    return replace(
        column,
        text_of=lambda row: f"{column.text(row.result)}{star_text * row.result.oversubscribed}",
        **changes,
    )


_DECLARED = {column.key: column for column in kernels.HALO3D.columns if not column.interval}
_WHAT = (
    Column("motif", lambda row: row.motif, common=True, optional=True, left=True),
    Column("MPI", lambda row: row.mpi, common=True, optional=True, left=True, folded=True),
)
_RESULTS = (
    *_WHAT,
    *(
        _column(
            declared,
            detail=declared.interval or declared.key not in _BRIEF,
            head=declared.head.removesuffix(f" over {FUNNELLED}"),
        )
        for declared in kernels.HALO3D.columns
    ),
)
_GRID = _column(_DECLARED["process_grid"], common=False, detail=True)


def _if_varying(*keys: str) -> list[Column]:
    return [_column(_DECLARED[key], optional=False, varying=True, detail=True) for key in keys]


_SCALING = (
    *_WHAT,
    Column("scaling", lambda row: row.result.config["scaling"], common=True, left=True, detail=True),
    *_if_varying("mapping"),
    Column("cells", lambda row: row.scaled_cells, common=True),
    *_if_varying("variables", "stencil", "periodic", "buffers", "planes_per_block"),
    _column(_DECLARED["compute_s"]),
    *_if_varying("noise"),
    _column(_DECLARED["threads"]),
    *_if_varying("partitions"),
    _column(_DECLARED["method"], common=True),
    _column(_DECLARED["ranks"], common=False),
    _column(_DECLARED["time_s"]),
    Column(
        "speed-up", lambda row: ratio_text(row.scaled_speed_up) if row.scaled_speed_up else "", detail=True
    ),
    Column("efficiency", lambda row: labels.percent(row.efficiency) if row.efficiency else ""),
    _column(_DECLARED["state"], detail=True),
)


def motifs_table(measured: Sequence[Motif]) -> Table:
    """Return a row for each style at each point."""
    rows = [
        Row(point.results[method], motif=motif.name, mpi=motif.label)
        for motif, point, method in rows_of(measured)
    ]
    crowded = star(any(motif.oversubscribed for motif in measured))
    caption = f"Motifs: time of an iteration, and speed-up over {labels.method(FUNNELLED)}{crowded}"
    return Table(caption, _RESULTS, rows)


def scaling_table(rows: Sequence[Row]) -> Table:
    """Return how times scale with the ranks; with the process grids if some ranks have several."""
    grids = {(row.result.config["ranks"], row.result.config["process_grid"]) for row in rows}
    columns = list(_SCALING)
    if len(grids) > len({ranks for ranks, _ in grids}):
        columns.insert([column.head for column in columns].index("P") + 1, _GRID)
    fewest = sorted({row.scaling.fewest.config["ranks"] for row in rows if row.scaling})
    crowded = star(any(row.result.oversubscribed for row in rows))
    caption = (
        f"Scaling, over P={', '.join(map(str, fewest))}: ratios of medians, because launches of different "
        f"ranks are not paired{crowded}"
    )
    return Table(caption, columns, rows)


def scaling_tables(results: Sequence[Result]) -> list[Table]:
    """Return how the times of motifs scale, if they were measured with several numbers of ranks."""
    rows = [Row(scaled.result, scaled) for scaled in scaling(results)]
    return [scaling_table(rows)] if rows else []


def all_tables(measured: Sequence[Motif]) -> list[Table]:
    """Return the tables of the page."""
    tables = [motifs_table(measured), *_scaling_of_motifs(measured)]
    return [table.first(MAX_PAGE_ROWS, where="in `earlybird show RUN`") for table in tables]


def brief_tables(measured: Sequence[Motif]) -> list[Table]:
    """Return the tables of the terminal; if there are many rows, those of the largest grids come first."""
    table = motifs_table(measured)
    if len(table.items) > MAX_BRIEF_ROWS:
        largest = {id(result) for motif in measured for result in motif.points[-1].results.values()}
        table = replace(table, items=sorted(table.items, key=lambda row: id(row.result) not in largest))
    return [_brief(table).first(MAX_BRIEF_ROWS) for table in (table, *_scaling_of_motifs(measured))]


def _scaling_of_motifs(measured: Sequence[Motif]) -> list[Table]:
    rows = [
        Row(scaled.result, scaled, group.first.name, group.first.label)
        for group in scalings(measured)
        for method in group.methods()
        for scaled in group.of(method)
    ]
    return [scaling_table(rows)] if rows else []


def _brief(table: Table) -> Table:
    """Return the table without its details, but with the settings among them that differ in one column."""
    settings = [
        column
        for column in table.columns
        if column.head in _SETTINGS and column.detail and _differs(column, table.items)
    ]
    columns = list(table.brief().columns)
    place = [column.head for column in columns].index("method")

    def setting(row: Row) -> str:
        texts = [(column.head, column.text(row)) for column in settings]
        return ", ".join(f"{head} {text}" for head, text in texts if text)

    columns.insert(place, Column("setting", setting, common=True, optional=True, left=True, folded=True))
    return replace(table, columns=columns)


def _differs(column: Column, rows: Sequence[Row]) -> bool:
    """Return whether a setting differs between rows of a motif, and is not one that always follows from its
    ranks and threads."""

    def alike(row: Row) -> tuple[Any, ...]:
        config = row.result.config
        return (row.motif, config["ranks"], config["threads"]) if column.head in _FOLLOWING else (row.motif,)

    return any(len({column.text(row) for row in same}) > 1 for same in grouped(rows, alike).values())
