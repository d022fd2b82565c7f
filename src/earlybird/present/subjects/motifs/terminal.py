"""Tables of the motifs: where libearlybird is slower, and how times scale."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from earlybird.compare.motifs import SLOWER, Scaling, cells_text, over_best, scaling
from earlybird.data import kernels, labels
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.measured.columns import column_of


def _of_result(key: str) -> Column:
    """Return a column of results, for their scaling."""
    declared = next(column for column in kernels.HALO3D.columns if column.key == key)
    column = column_of(declared)
    return replace(column, text_of=lambda one: column.text(one.result))


def _if_varying(key: str) -> Column:
    return replace(_of_result(key), optional=False, varying=True)


_SCALING = (
    Column("scaling", lambda one: one.result.config["scaling"], common=True, left=True),
    _if_varying("mapping"),
    Column("cells", lambda one: f"{cells_text(one.result.config)}{' each' * one.is_weak}", common=True),
    *map(_if_varying, ("variables", "stencil", "periodic", "buffers", "planes_per_block")),
    _of_result("compute_s"),
    _if_varying("noise"),
    _of_result("threads"),
    _if_varying("partitions"),
    replace(_of_result("method"), common=True),
    Column("P", lambda one: one.result.config["ranks"]),
    _of_result("time_s"),
    Column("speed-up", lambda one: ratio_text(one.speed_up) if one.speed_up else ""),
    Column("efficiency", lambda one: labels.percent(one.efficiency) if one.efficiency else ""),
    _of_result("state"),
)


def slower_text(samples: Iterable[Sample]) -> str:
    """At how many points libearlybird is slower than the best other style; "" without its style."""
    points = over_best(samples)
    if not points:
        return ""
    slower = [one for one in points if one.is_slower]
    clearly = sum(one.is_clearly_slower for one in slower)
    whole = f", clearly (the whole interval) at {clearly} of them" if slower else ""
    return (
        f"libearlybird is more than {100 * (SLOWER - 1):.0f} % slower than the best other style "
        f"at {len(slower)} of {labels.counted(len(points), 'point')}{whole}"
    )


def print_scaling(results: Sequence[Result]) -> None:
    """Print how the times of motifs scale, if they were measured with several numbers of ranks."""
    rows: list[Scaling] = scaling(results)
    if not rows:
        return
    fewest = ", ".join(map(str, sorted({one.fewest.config["ranks"] for one in rows})))
    print_line()
    print_line(
        f"scaling, over P={fewest}: ratios of medians, because launches of different ranks are not paired"
    )
    print_table(Table("", scaling_columns(rows), rows))


def scaling_columns(rows: Sequence[Scaling]) -> list[Column]:
    """The columns of a table of scaling; with the process grids if there are several of the same ranks."""
    grids = {(one.result.config["ranks"], one.result.config["process_grid"]) for one in rows}
    columns = list(_SCALING)
    if len(grids) > len({ranks for ranks, _ in grids}):
        position = [column.head for column in columns].index("P") + 1
        columns.insert(position, Column("grid", lambda one: one.result.config["process_grid"]))
    return columns
