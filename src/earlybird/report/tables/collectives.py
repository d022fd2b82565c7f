"""Tables of collectives: times, crossovers, and checks of the algorithms."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.collective_choices import setting_text
from earlybird.report.collectives import Collective, CollectivePoint
from earlybird.report.material import Proof
from earlybird.report.parts import Table, few
from earlybird.report.tables.pipelines import about

MAX_ROWS = 1200  # per table on the page
BRIEF_SIZES, BRIEF_SETTINGS = 4, 6


def times_tables(measured: Sequence[Collective]) -> list[Table]:
    """One table per operation, MPI and mapping, with a row per ranks and size and a column per algorithm."""
    return [_times_table(collective) for collective in measured]


def _times_table(collective: Collective) -> Table:
    methods = collective.methods()
    rows = [
        [
            str(point.ranks) + " *" * point.oversubscribed,
            format_bytes(point.size_bytes),
            str(point.num_launches),
            *(_cell(point, method) for method in methods),
        ]
        for point in collective.points[:MAX_ROWS]
    ]
    num_left = len(collective.points) - MAX_ROWS
    more = f"; {labels.counted(num_left, 'more row')} in the run folder" if num_left > 0 else ""
    caption = f"Times: {setting_text(collective)}{_star([collective])}{more}"
    return Table(caption, ["ranks", "size", "launches", *map(labels.method, methods)], rows)


def _cell(point: CollectivePoint, method: str) -> str:
    if method not in point.time_s:
        return "-"
    middle, low, high = point.time_s[method]
    launch_range = f" ({format_seconds(low)} to {format_seconds(high)})" if low < high else ""
    model = f"; model {format_seconds(point.fitted_s[method])}" if method in point.fitted_s else ""
    return format_seconds(middle) + launch_range + model


def brief_table(measured: Sequence[Collective]) -> Table:
    """The fastest algorithm of a few sizes at the most ranks, for the first settings."""
    rows = []
    for collective in measured[:BRIEF_SETTINGS]:
        points = collective.of_ranks(collective.ranks()[-1])
        best = collective.best_methods(points[0].ranks, collective.methods())
        for k in few(len(points), BRIEF_SIZES):
            point, method = points[k], best[k]
            if not method:  # the clock resolved no time
                continue
            gain = point.speed_up(method)
            rows.append(
                [
                    f"{labels.operation(collective.operation)}, {collective.label}"
                    + f", by {collective.map_by}" * bool(collective.map_by),
                    str(point.ranks) + " *" * point.oversubscribed,
                    format_bytes(point.size_bytes),
                    labels.method(method),
                    format_seconds(point.time_s[method][0]),
                    f"{gain:.2f}" if gain is not None else "-",
                ]
            )
    num_left = len(measured) - BRIEF_SETTINGS
    more = f"; {labels.counted(num_left, 'more setting')} on the page" if num_left > 0 else ""
    caption = f"The fastest algorithm, and its speed-up over the MPI's default{_star(measured)}{more}"
    return Table(caption, ["collective", "ranks", "size", "fastest", "time", "speed-up"], rows)


def crossovers_table(measured: Sequence[Collective]) -> Table:
    """A row for each size at which the fastest MPI algorithm changes."""
    rows = []
    for collective in measured:
        methods = collective.mpi_methods()
        for ranks in collective.ranks() if len(methods) > 1 and len(collective.sizes()) > 1 else []:
            best = [method for method in collective.best_methods(ranks, methods) if method]
            changes = collective.crossovers(ranks, methods)
            what = [
                labels.operation(collective.operation),
                collective.label,
                collective.map_by or "-",
                str(ranks),
            ]
            if not changes and best:
                rows.append([*what, labels.method(best[0]), "at every size", ""])
            for change in changes:
                if change.before and change.after:
                    low, high = map(format_bytes, change.between)
                    after = f"{about(change.size_bytes)}: {labels.method(change.after)}"
                    rows.append([*what, labels.method(change.before), after, f"{low} to {high}"])
    header = ["operation", "MPI", "mapped by", "ranks", "fastest", "until", "observed between"]
    return Table("Crossovers between the MPI's algorithms", header, rows[:MAX_ROWS])


def proofs_table(proofs: Sequence[Proof]) -> Table:
    rows = [
        [
            labels.operation(proof.operation),
            labels.flavour(proof.mpi),
            labels.method(proof.method),
            str(proof.ranks),
            proof.map_by or "-",
            proof.tree,
            proof.verdict,
            proof.seen or "-",
        ]
        for proof in proofs
    ]
    header = ["operation", "MPI", "algorithm", "ranks", "mapped by", "requested", "verdict", "observed"]
    return Table("Checks that each algorithm used the requested communication tree", header, rows)


def _star(measured: Sequence[Collective]) -> str:
    crowded = any(point.oversubscribed for collective in measured for point in collective.points)
    return " (*: more ranks than cores)" if crowded else ""
