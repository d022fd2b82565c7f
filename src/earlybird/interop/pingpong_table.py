"""A table of ping-pong times that were measured elsewhere, as points of a run."""

from pathlib import Path

from earlybird.data.kernels import PINGPONG
from earlybird.data.tables import load_pingpong_table
from earlybird.interop.imported import Imported, ImportedPoint

# Half round trips while other pairs do the same: no quantity that is measured here.
PAIRS = "pingpong-of-pairs"


def read_pingpong_table(path: str | Path) -> list[Imported]:
    """Return the content of each placement of the table, in the order of their first lines; a placement is a
    launch.

    Raises InputError for a table that `load_pingpong_table` refuses.
    """
    table = load_pingpong_table(path)
    hidden = "all times of a placement are one launch; buffers are taken to be sent again and again"
    return [
        Imported("table", "", tuple(_points(of_placement)), hidden)
        for _, of_placement in table.groupby("launch", sort=False)
    ]


def _points(of_placement) -> list[ImportedPoint]:
    """Return the points of a placement; repeated times of a point are its iterations."""
    points = []
    for (level, pairs, size_bytes), rows in of_placement.groupby(["level", "n", "size_bytes"], sort=False):
        config = {"level": level, "size_bytes": int(size_bytes), "buffers": "reuse"}
        config |= {"pairs": int(pairs)} if pairs > 1 else {}
        kernel = PAIRS if pairs > 1 else PINGPONG.name
        points.append(ImportedPoint(kernel, "half_round_trip", rows.time_s.to_numpy(), config))
    return points
