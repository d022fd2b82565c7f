"""Tables of collectives: times, crossovers, and checks of the algorithms."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import crossovers
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import few
from earlybird.present.core.points import Point
from earlybird.present.core.table import Column, Table, more_text
from earlybird.present.core.text import star
from earlybird.present.material import Verification
from earlybird.present.subjects.collectives.view import Collective

MAX_TABLE_ROWS = 1200  # on the page
BRIEF_SIZES, BRIEF_SETTINGS = 4, 6
_VERIFICATION = (
    Column("operation", lambda check: labels.operation(check.operation)),
    Column("MPI", lambda check: labels.flavour(check.mpi)),
    Column("algorithm", lambda check: labels.method(check.method)),
    Column("ranks", lambda check: check.ranks),
    Column("mapped by", lambda check: check.map_by),
    Column("requested", lambda check: check.tree),
    Column("verdict", lambda check: check.verdict),
    Column("observed", lambda check: check.seen),
)


def times_table(collective: Collective) -> Table:
    """Return a row for each number of ranks and size, with a column for each algorithm."""

    def time_column(method: str) -> Column:
        return Column(labels.method(method), lambda point: _time(point, method))

    columns = [
        Column("ranks", _ranks),
        Column("size", lambda point: format_bytes(point.size_bytes)),
        Column("launches", lambda point: point.num_launches),
        *map(time_column, collective.methods()),
    ]
    caption = f"Times: {collective.setting_text}{_star([collective])}"
    return Table(caption, columns, collective.points).first(MAX_TABLE_ROWS, where="in the run folder")


def best_table(measured: Sequence[Collective]) -> Table:
    """Return the best algorithm of a few sizes at the most ranks, for the first settings."""
    rows = []
    for collective in measured[:BRIEF_SETTINGS]:
        points = collective.of_ranks(collective.ranks()[-1])
        best = collective.best_methods(points[0].ranks)
        # Without those of which the clock resolved no time.
        rows += [(collective, points[k], best[k]) for k in few(len(points), BRIEF_SIZES) if best[k]]
    columns = [
        Column("collective", lambda row: row[0].setting_text.replace("mapped by", "by"), left=True),
        Column("ranks", lambda row: _ranks(row[1])),
        Column("size", lambda row: format_bytes(row[1].size_bytes)),
        Column("best", lambda row: labels.method(row[2]), left=True),
        Column("time", lambda row: format_seconds(row[1].time_s[row[2]].value)),
        Column("speed-up", lambda row: _speed_up(row[1], row[2])),
    ]
    more = more_text(len(measured) - BRIEF_SETTINGS, "setting")
    caption = f"The best algorithm, and its speed-up over the MPI's default{_star(measured)}{more}"
    return Table(caption, columns, rows)


def crossovers_table(measured: Sequence[Collective]) -> Table:
    """Return a row for each size at which the best MPI algorithm changes."""
    rows = [
        (collective.choice() | {"ranks": str(ranks)}, of_mpi.of_ranks(ranks))
        for collective in measured
        if len((of_mpi := collective.of_mpi()).methods()) > 1
        for ranks in of_mpi.ranks()
    ]
    table = crossovers.crossovers_table("Crossovers between the MPI's algorithms", rows, DEFAULT)
    return table.first(MAX_TABLE_ROWS)


def verifications_table(verifications: Sequence[Verification]) -> Table:
    """Return a row for each check of an algorithm."""
    caption = "Checks that each algorithm used the requested communication tree"
    return Table(caption, _VERIFICATION, verifications)


def _ranks(point: Point) -> str:
    return str(point.ranks) + " *" * point.oversubscribed


def _time(point: Point, method: str) -> str:
    model = f"; model {format_seconds(point.fitted_s[method])}" if method in point.fitted_s else ""
    return with_interval(point.time_s.get(method), format_seconds) + model


def _speed_up(point: Point, method: str) -> str:
    return ratio_text(point.speed_up[method].value) if method in point.speed_up else ""


def _star(measured: Sequence[Collective]) -> str:
    return star(any(point.oversubscribed for collective in measured for point in collective.points), "ranks")
