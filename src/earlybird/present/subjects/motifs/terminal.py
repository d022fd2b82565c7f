"""Prints what follows the results of motifs: where libearlybird is slower, and how times scale."""

from collections.abc import Sequence

from earlybird.compare.motifs import scaling
from earlybird.data.results import Result
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.motifs.tables import Row, scaling_table


def print_scaling(results: Sequence[Result]) -> None:
    """Print how the times of motifs scale, if they were measured with several numbers of ranks."""
    rows = [Row(scaled.result, scaled) for scaled in scaling(results)]
    if rows:
        table = scaling_table(rows)
        print_line()
        print_line(table.caption)
        print_table(table)
