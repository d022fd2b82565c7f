"""Tables of collectives: times, crossovers, and checks of the algorithms."""

from collections.abc import Callable, Sequence

from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import crossovers
from earlybird.present.core.notation import with_interval
from earlybird.present.core.parts import few
from earlybird.present.core.points import Point
from earlybird.present.core.table import Table, more_text, table_of
from earlybird.present.core.text import star
from earlybird.present.material import Verification
from earlybird.present.subjects.collectives.view import Collective

MAX_ROWS = 1200  # per table on the page
BRIEF_SIZES, BRIEF_SETTINGS = 4, 6


def times_tables(measured: Sequence[Collective]) -> list[Table]:
    """One table per operation, MPI and mapping, with a row per ranks and size and a column per algorithm."""
    return [_times_table(collective) for collective in measured]


def _times_table(collective: Collective) -> Table:
    columns: dict[str, Callable[[Point], str]] = {
        "ranks": _ranks,
        "size": lambda point: format_bytes(point.size_bytes),
        "launches": lambda point: str(point.num_launches),
    } | {
        labels.method(method): lambda point, method=method: _time(point, method)
        for method in collective.methods()
    }
    caption = f"Times: {collective.setting_text}{_star([collective])}"
    return table_of(caption, collective.points, columns).first(MAX_ROWS, where="in the run folder")


def _ranks(point: Point) -> str:
    return str(point.ranks) + " *" * point.oversubscribed


def _time(point: Point, method: str) -> str:
    model = f"; model {format_seconds(point.fitted_s[method])}" if method in point.fitted_s else ""
    return with_interval(point.time_s.get(method), format_seconds) + model


def brief_table(measured: Sequence[Collective]) -> Table:
    """The best algorithm of a few sizes at the most ranks, for the first settings."""
    rows = []
    for collective in measured[:BRIEF_SETTINGS]:
        points = collective.of_ranks(collective.ranks()[-1])
        best = collective.best_methods(points[0].ranks)
        rows += [(collective, points[k], best[k]) for k in few(len(points), BRIEF_SIZES)]
    more = more_text(len(measured) - BRIEF_SETTINGS, "setting")
    return table_of(
        f"The best algorithm, and its speed-up over the MPI's default{_star(measured)}{more}",
        [row for row in rows if row[2]],  # without those of which the clock resolved no time
        {
            "collective": lambda row: row[0].setting_text.replace("mapped by", "by"),
            "ranks": lambda row: _ranks(row[1]),
            "size": lambda row: format_bytes(row[1].size_bytes),
            "best": lambda row: labels.method(row[2]),
            "time": lambda row: format_seconds(row[1].time_s[row[2]].value),
            "speed-up": lambda row: (
                f"{row[1].speed_up[row[2]].value:.2f}" if row[2] in row[1].speed_up else "-"
            ),
        },
    )


def crossovers_table(measured: Sequence[Collective]) -> Table:
    """A row for each size at which the best MPI algorithm changes."""
    rows = []
    for collective in measured:
        of_mpi = collective.of_mpi()
        for ranks in of_mpi.ranks() if len(of_mpi.methods()) > 1 and len(of_mpi.sizes()) > 1 else []:
            best = [method for method in of_mpi.best_methods(ranks) if method]
            setting = collective.choice() | {"ranks": str(ranks)}
            changes = [change for change in of_mpi.crossovers(ranks) if change.before and change.after]
            rows += [(setting, of_mpi.sizes(), best[0], changes)] if best else []
    return crossovers.crossovers_table("Crossovers between the MPI's algorithms", rows).first(MAX_ROWS)


def verifications_table(verifications: Sequence[Verification]) -> Table:
    return table_of(
        "Checks that each algorithm used the requested communication tree",
        verifications,
        {
            "operation": lambda verification: labels.operation(verification.operation),
            "MPI": lambda verification: labels.flavour(verification.mpi),
            "algorithm": lambda verification: labels.method(verification.method),
            "ranks": lambda verification: str(verification.ranks),
            "mapped by": lambda verification: verification.map_by or "-",
            "requested": lambda verification: verification.tree,
            "verdict": lambda verification: verification.verdict,
            "observed": lambda verification: verification.seen or "-",
        },
    )


def _star(measured: Sequence[Collective]) -> str:
    return star(any(point.oversubscribed for collective in measured for point in collective.points), "ranks")
