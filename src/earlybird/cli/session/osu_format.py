"""Refuses, before anything is measured, what the one column of `measure --format osu` cannot show."""

from collections.abc import Sequence

from earlybird.data.collective_algorithms import DEFAULT, REDUCE_LOCAL
from earlybird.data.errors import InputError
from earlybird.interop.osu_tables import is_osu_collective
from earlybird.measure.groups import Group

_EACH_FILE = "; `earlybird export RUN --to osu` writes a file for each"


def check_one_column(groups: Sequence[Group]) -> None:
    """Raise InputError for what does not fit into the one column of OSU."""
    points = [point for group in groups for point in group.points]
    if len({point["mpi"] for point in points}) > 1:
        raise InputError(f"--format osu prints one column: measure one --mpi{_EACH_FILE}")
    if {group.kernel for group in groups} == {"collective"}:
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
    for group in groups:
        if group.kernel != "pingpong":
            export = "; `earlybird export RUN --to osu` has tables of processes"
            raise InputError(
                f"--format osu has no table for {group.kernel} next to other suites, or at all; measure "
                "pingpong or collective alone, or choose table, csv or json"
                + (export if group.kernel == "msgrate" else "")
            )
    if len({point["level"] for point in points}) > 1:
        raise InputError(f"--format osu prints one column: measure one level{_EACH_FILE}")
