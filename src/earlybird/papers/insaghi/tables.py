"""Tables 1 to 8 of Insaghi's paper next to the same regressions through latencies measured here."""

import re
from collections.abc import Iterator, Sequence

from earlybird.data import labels
from earlybird.data.insaghi import Regression as Published
from earlybird.data.insaghi import load_insaghi
from earlybird.fit.insaghi_forms import Regression
from earlybird.fit.insaghi_forms import Row as Coefficient
from earlybird.papers.insaghi.measured import STATISTICS, Latencies
from earlybird.papers.paper import NOT_MEASURED, Row

_BREAK = re.compile(r"MPI_Processes > [0-9]+")


def table_rows(measured: Sequence[Latencies]) -> list[Row]:
    """Return a row for each coefficient of each table, and for the R squared that the paper prints."""
    fitted = [(one, one.regressions()) for one in measured]
    rows = []
    for published in load_insaghi().regressions:
        for k in range(len(published.terms)):
            rows += _coefficient_rows(published, k, fitted)
    for table, printed in load_insaghi().r_squared.items():
        operation = {"7": "bcast", "8": "reduce"}[table]
        rows += _r_squared_rows(table, operation, printed, fitted)
    return sorted(rows, key=lambda row: row.figure)


Fitted = Sequence[tuple[Latencies, list[Regression]]]


def _coefficient_rows(published: Published, k: int, fitted: Fitted) -> list[Row]:
    term = published.terms[k]
    what = f"{published.operation} {published.algorithm} by {published.map_by}, {term}"
    printed = _text(
        published.estimates[k], published.std_errors[k], published.t_values[k], published.p_values[k]
    )
    figure = f"Table {published.table}"
    rows = []
    for one, regressions in fitted:
        regression = _like(published, regressions)
        coefficient = _coefficient(published, term, regression) if regression else None
        if regression is not None and coefficient is not None:
            here = _text(
                coefficient.estimate, coefficient.std_error, coefficient.t_value, coefficient.p_value
            )
            note = _note(one, regression)
            rows.append(Row(figure, what, printed, here, note, one.label))
    return rows or [Row(figure, what, printed, note=_without(published, term, fitted))]


def _like(published: Published, regressions: Sequence[Regression]) -> Regression | None:
    """Return the regression of the same latencies; for tables 7 and 8, the regression of all sizes."""
    what = "all sizes" if published.form == 3 else f"{published.algorithm} by {published.map_by}"
    like = (one for one in regressions if (one.operation, one.what) == (published.operation, what))
    return next(like, None)


def _coefficient(published: Published, term: str, regression: Regression) -> Coefficient | None:
    """Return the coefficient of a term; the break is at another number of ranks here."""
    if published.form == 3:
        name = f"Algorithm_Allocation{published.algorithm.capitalize()}-{published.map_by}"
        term = f"{term}:{name}" if term.startswith("log2") else f"{name}:{term}"
    same = (row for row in regression.rows if _BREAK.sub("break", row.term) == _BREAK.sub("break", term))
    return next(same, None)


def _without(published: Published, term: str, fitted: Fitted) -> str:
    if not fitted:
        return NOT_MEASURED
    if published.map_by == "node":
        return f"{NOT_MEASURED}: ranks mapped by node need two nodes"
    if term.endswith("TRUE"):
        return f"{NOT_MEASURED}: needs ranks on a second node"
    return f"{NOT_MEASURED}: needs more rank counts than coefficients"


def _note(one: Latencies, regression: Regression) -> str:
    """Return which statistic the latencies have, and how they differ from the paper."""
    notes = [f"{STATISTICS[one.statistic]}, {labels.counted(regression.points, 'point')}"]
    notes.append(f"R2 {regression.r_squared:.3f}")
    if one.own:
        notes.append("algorithms of Earlybird")
    if one.crowded:
        notes.append(f"partly {one.crowded}")
    return "; ".join(notes)


def _r_squared_rows(table: str, operation: str, printed: float, fitted: Fitted) -> Iterator[Row]:
    what = f"{operation}, all sizes: R squared"
    found = [
        Row(f"Table {table}", what, f"{printed:g}", f"{one.r_squared:.4f}", _note(of_mpi, one), of_mpi.label)
        for of_mpi, regressions in fitted
        for one in regressions
        if (one.operation, one.form) == (operation, 3)
    ]
    missing = f"{NOT_MEASURED}: needs several sizes and rank counts"
    yield from found or [Row(f"Table {table}", what, f"{printed:g}", note=missing)]


def _text(estimate: float, std_error: float, t_value: float, p_value: float) -> str:
    """Return the values of a coefficient as the paper prints them."""
    return f"{_number(estimate)} {_number(std_error)} {t_value:.2f} {p_value:.4f}"


def _number(value: float) -> str:
    """Return four decimals, or a power of ten where these are zeros."""
    return f"{value:.4f}" if abs(value) >= 5e-5 or value == 0 else f"{value:.3e}"
