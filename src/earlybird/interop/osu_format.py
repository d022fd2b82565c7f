"""Refuses, before anything is measured, what the one column of `measure --format osu` cannot show."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from earlybird.data import kernels
from earlybird.data.collective_algorithms import DEFAULT, REDUCE_LOCAL
from earlybird.data.errors import InputError
from earlybird.interop.osu_tables import ONE_COLUMN, is_osu_collective

_EACH_FILE = "; `earlybird export RUN --to osu` writes a file for each"


class Group(Protocol):
    """A group of points that are measured together, see `measure.groups`."""

    @property
    def kernel(self) -> str: ...
    @property
    def points(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def methods(self) -> Sequence[str]: ...


def check_one_column(groups: Sequence[Group]) -> None:
    """Raise InputError for points that do not fit into the one column of OSU."""
    points = [point for group in groups for point in group.points]
    if len({point["mpi"] for point in points}) > 1:
        raise InputError(f"--format osu prints one column: measure one --mpi{_EACH_FILE}")
    measured = list(dict.fromkeys(group.kernel for group in groups))
    if measured == [kernels.COLLECTIVE.name]:
        remote = [point for point in points if point["operation"] != REDUCE_LOCAL]
        names = ("operation", "map_by", "ranks", "topology", "skew")
        columns = {tuple(point.get(name) for name in names) for point in remote}
        methods = {method for group in groups for method in group.methods}
        if lacking := [
            point for point in remote for method in methods if not is_osu_collective(point, method)
        ]:
            raise InputError(
                f"--format osu has no table of this {lacking[0]['operation']}: OSU's counts are equal "
                "(--skew 1), its neighbours those of --topology ring or grid-9 with three ranks in each "
                "direction or more, never persistent; choose table, csv or json"
            )
        if len(columns) > 1 or len(methods - {DEFAULT}) > 1:
            raise InputError(
                "--format osu prints one column: measure one --op, one --map-by, one of --ranks, --topology "
                f"and --skew, and one --algorithm{_EACH_FILE}"
            )
        return
    others = [name for name in measured if name not in ONE_COLUMN] or measured[1:]
    if others:
        exported = kernels.KERNELS[others[0]].osu_export
        raise InputError(
            f"--format osu has no table for {others[0]} next to other suites, or at all; measure "
            f"{' or '.join(ONE_COLUMN)} alone, or choose table, csv or json"
            + (f"; `earlybird export RUN --to osu` has {exported}" if exported else "")
        )
    if len({point["level"] for point in points}) > 1:
        raise InputError(f"--format osu prints one column: measure one level{_EACH_FILE}")
