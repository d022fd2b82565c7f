"""The numbers behind the figures of collectives, the forms fitted to them, and the proofs, as text."""

from collections.abc import Sequence

from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import words
from earlybird.report.collectives import Collective, CollectivePoint
from earlybird.report.material import Proof
from earlybird.report.parts import Table
from earlybird.report.pipeline_tables import about

MAX_ROWS = 1200  # of one table on the page
BRIEF_SIZES, BRIEF_SETTINGS = 4, 6


def times_tables(found: Sequence[Collective]) -> list[Table]:
    """One for each operation, MPI and mapping: a row per ranks and size, a column per algorithm."""
    return [_times_table(one) for one in found]


def _times_table(one: Collective) -> Table:
    methods = one.methods()
    rows = [
        [
            str(point.ranks) + " *" * point.oversubscribed,
            format_bytes(point.size_bytes),
            str(point.num_launches),
            *(_cell(point, method) for method in methods),
        ]
        for point in one.points[:MAX_ROWS]
    ]
    left = len(one.points) - MAX_ROWS
    more = f"; {words.counted(left, 'more row')} in the run folder" if left > 0 else ""
    caption = f"Times: {_what(one)}{_star([one])}{more}"
    return Table(caption, ["ranks", "size", "launches", *map(words.method, methods)], rows)


def _what(one: Collective) -> str:
    mapped = f", mapped by {one.map_by}" if one.map_by else ""
    return f"{words.operation(one.operation)}, {one.label}{mapped}"


def _cell(point: CollectivePoint, method: str) -> str:
    if method not in point.time_s:
        return "-"
    middle, low, high = point.time_s[method]
    between = f" ({format_seconds(low)} to {format_seconds(high)})" if low < high else ""
    model = f"; model {format_seconds(point.fitted_s[method])}" if method in point.fitted_s else ""
    return format_seconds(middle) + between + model


def brief_table(found: Sequence[Collective]) -> Table:
    """At the most ranks of the first settings, the fastest of few sizes beside the MPI's own choice."""
    rows = []
    for one in found[:BRIEF_SETTINGS]:
        points = one.of_ranks(one.ranks()[-1])
        best = one.best_methods(points[0].ranks, one.methods())
        last = len(points) - 1
        for k in sorted({round(last * j / (BRIEF_SIZES - 1)) for j in range(BRIEF_SIZES)}):
            point, method = points[k], best[k]
            if not method:  # nothing that the clock resolved
                continue
            gain = point.gain(method)
            rows.append(
                [
                    f"{words.operation(one.operation)}, {one.label}"
                    + f", by {one.map_by}" * bool(one.map_by),
                    str(point.ranks) + " *" * point.oversubscribed,
                    format_bytes(point.size_bytes),
                    words.method(method),
                    format_seconds(point.time_s[method][0]),
                    f"{gain:.2f}" if gain is not None else "-",
                ]
            )
    left = len(found) - BRIEF_SETTINGS
    more = f"; {words.counted(left, 'more setting')} on the page" if left > 0 else ""
    caption = f"The fastest algorithm, and its gain over the MPI's own choice{_star(found)}{more}"
    return Table(caption, ["collective", "ranks", "size", "fastest", "time", "gain"], rows)


def crossovers_table(found: Sequence[Collective]) -> Table:
    """A row for each size at which the fastest of the MPI's algorithms changes."""
    rows = []
    for one in found:
        methods = one.mpi_methods()
        for ranks in one.ranks() if len(methods) > 1 and len(one.sizes()) > 1 else []:
            best = [method for method in one.best_methods(ranks, methods) if method]
            changes = one.crossovers(ranks, methods)
            what = [words.operation(one.operation), one.label, one.map_by or "-", str(ranks)]
            if not changes and best:
                rows.append([*what, words.method(best[0]), "at every size", ""])
            for change in changes:
                if change.before and change.after:
                    low, high = map(format_bytes, change.between)
                    after = f"{about(change.size_bytes)}: {words.method(change.after)}"
                    rows.append([*what, words.method(change.before), after, f"{low} to {high}"])
    header = ["operation", "MPI", "mapped by", "ranks", "fastest", "until", "seen between"]
    return Table("Where the fastest of the MPI's algorithms changes", header, rows[:MAX_ROWS])


def proofs_table(proofs: Sequence[Proof]) -> Table:
    rows = [
        [
            words.operation(one.operation),
            words.flavour(one.mpi),
            words.method(one.method),
            str(one.ranks),
            one.map_by or "-",
            one.tree,
            one.verdict,
            one.seen or "-",
        ]
        for one in proofs
    ]
    header = ["operation", "MPI", "algorithm", "ranks", "mapped by", "asked for", "verdict", "seen"]
    return Table("Did each algorithm run along the tree asked for?", header, rows)


def _star(found: Sequence[Collective]) -> str:
    crowded = any(point.oversubscribed for one in found for point in one.points)
    return " (*: more ranks than cores)" if crowded else ""
