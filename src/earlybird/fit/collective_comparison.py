"""Forms of collectives side by side: the physical ones and those of Insaghi's report, on the same points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from earlybird.data.units import format_bytes, format_seconds
from earlybird.fit import collective
from earlybird.fit.collective import PointReader, Points, extrapolation_split
from earlybird.fit.collective_samples import Collectives
from earlybird.fit.report_forms import US, Grid, ReportFit, fit_report_form, grid

ALL_SIZES = "all sizes"
COMPLETION, MEAN = "completion", "mean over ranks"
_COLUMNS = {COMPLETION: "time_s", MEAN: "mean_s"}
# A form is asked how it goes on at so many times the largest size, or number of ranks, that was measured.
FAR = 4
# Below this difference AICc does not tell two forms apart (Burnham and Anderson 2002, section 2.6).
CLEAR = 10.0


@dataclass(frozen=True, eq=False)
class _Case:
    """Points that forms are compared on: physical and regression's view of the same rows."""

    points: str
    physical: Points
    grid: Grid
    form: int


def compare(
    collectives: Collectives, operation: str, algorithm: str, mpi: str, times: str = COMPLETION
) -> list[dict[str, Any]]:
    """A row for each form and set of points of one algorithm: all sizes together (the report's form 3), the
    smallest size by each mapping (form 1 or 2), where that has three process counts.

    Every row: "points", "form", "times", "parameters", "aicc" (of the likelihood of T itself, in
    microseconds), "error", "held_out_error" (a process count left out), "held_out_error_sizes",
    "extrapolation_error" (trained on at most half of the processes), and "far", what the form says at FAR
    times the largest size or number of ranks; an error that the points do not allow is absent.
    """
    table = collectives.table
    rows = table[(table.operation == operation) & (table.algorithm == algorithm) & (table.mpi == mpi)]
    structure = collective.tree_of(mpi, operation, algorithm) or collective.EMPIRICAL
    gamma = collective.gamma_r_s_per_byte(collectives.reductions)
    found: list[dict[str, Any]] = []
    for case in _cases(collectives, rows, structure, _COLUMNS[times]):
        for row in (
            _physical(case, structure, gamma),
            _of_report(case, algorithm),
        ):
            found.append({"points": case.points, "times": times} | row)
    return found


def verdicts(operation: str, algorithm: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which form to believe and why, a sentence for each set of points of `compare`."""
    texts = []
    for points in dict.fromkeys(row["points"] for row in rows):
        ours, theirs = (row for row in rows if row["points"] == points)
        texts.append(f"{operation} {algorithm}, {points}: {_verdict(ours, theirs)}")
    return texts


def _cases(collectives: Collectives, rows: pandas.DataFrame, structure: str, column: str) -> Iterable[_Case]:
    reader = PointReader(collectives, structure)
    cores = collectives.machine.get("sockets", 1) * collectives.machine.get("cores", 1)

    def case(words: str, chosen: pandas.DataFrame, form: int) -> _Case:
        return _Case(words, reader.points(chosen, column), grid(chosen, cores, column), form)

    sized = rows[rows.size_bytes > 0]
    if sized.size_bytes.nunique() > 1 and sized.ranks.nunique() > 1:
        yield case(ALL_SIZES, sized, 3)
    smallest = rows.size_bytes.min()
    for map_by, mapped in rows[rows.size_bytes == smallest].groupby("map_by", sort=False):
        if mapped.ranks.nunique() >= 3:
            form = 2 if map_by == "node" else 1
            yield case(f"{format_bytes(int(smallest))} by {map_by}", mapped, form)


def _physical(case: _Case, structure: str, gamma: float) -> dict[str, Any]:
    points = case.physical
    found = collective.search(points, structure, gamma)
    row: dict[str, Any] = {
        "form": "empirical" if structure == collective.EMPIRICAL else "alpha-beta",
        "parameters": found.num_parameters,
        "aicc": found.aicc,
        "error": float(np.median(collective.relative_errors(found.predict_s(points), points))),
        "held_out_error": collective.held_out_error(points, points.ranks, found, structure),
        "held_out_error_sizes": collective.held_out_error(points, points.size_bytes, found, structure),
        "extrapolation_error": collective.extrapolation_error(points, structure, gamma),
    }
    return _without_missing(row)


def _of_report(case: _Case, algorithm: str) -> dict[str, Any]:
    points, form = case.grid, case.form

    def error_of(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        fitted = fit_report_form(points.only(train), form, algorithm)
        return _errors(fitted, points.only(test))

    def left_out(values: np.ndarray) -> float | None:
        distinct = np.unique(values)
        if len(distinct) < 3:
            return None
        return float(np.median(np.concatenate([error_of(values != v, values == v) for v in distinct])))

    found = fit_report_form(points, form, algorithm)
    split = extrapolation_split(points.ranks)
    return _without_missing(
        {
            "form": f"report-{form}",
            "parameters": found.num_parameters,
            "aicc": found.aicc,
            "error": float(np.median(_errors(found, points))),
            "held_out_error": left_out(points.ranks),
            "held_out_error_sizes": left_out(points.size_bytes),
            "extrapolation_error": None if split is None else float(np.median(error_of(*split))),
            "far": _far(found, points),
        }
    )


def _errors(fitted: ReportFit, points: Grid) -> np.ndarray:
    return np.abs(fitted.predict_us(points) / points.time_us - 1)


def _far(found: ReportFit, points: Grid) -> dict[str, Any] | None:
    """What the form says beyond the points, where its logarithm makes that grow exponentially."""
    if found.form == 3:
        most = int(np.lexsort((points.ranks, points.size_bytes))[-1])
        beyond = points.only(np.arange(len(points.ranks)) == most)
        size_bytes = FAR * int(beyond.size_bytes[0])
        moved = Grid(**(vars(beyond) | {"size_bytes": np.array([size_bytes])}))
        told = {"size_bytes": size_bytes, "ranks": int(beyond.ranks[0])}
    elif found.algorithm.endswith("binomial"):
        most = int(np.argmax(points.ranks))
        beyond = points.only(np.arange(len(points.ranks)) == most)
        ranks = FAR * int(beyond.ranks[0])
        moved = Grid(**(vars(beyond) | {"ranks": np.array([ranks])}))
        told = {"size_bytes": int(beyond.size_bytes[0]), "ranks": ranks}
    else:
        return None
    time_s = float(found.predict_us(moved)[0]) / US
    at_edge_s = float(found.predict_us(beyond)[0]) / US
    if not np.isfinite(time_s):
        return told | {"measured_s": float(beyond.time_us[0]) / US}
    return told | {"time_s": time_s, "at_edge_s": at_edge_s, "measured_s": float(beyond.time_us[0]) / US}


def _without_missing(row: dict[str, Any]) -> dict[str, Any]:
    row = {name: item for name, item in row.items() if item is not None}
    # An AICc of too few points, and an error of a prediction beyond all numbers, have no JSON.
    return {name: item for name, item in row.items() if not isinstance(item, float) or np.isfinite(item)}


def _verdict(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    if "aicc" not in ours or "aicc" not in theirs:
        return "too few points to tell which form to believe; measure more --ranks or --sizes"
    difference = theirs["aicc"] - ours["aicc"]
    first, second = (ours, theirs) if difference >= 0 else (theirs, ours)
    errors = _both(first, second, "held_out_error", "at process counts left out")
    beyond = _both(first, second, "extrapolation_error", "beyond half of the processes")
    if abs(difference) < CLEAR:
        told = f"AICc tells {first['form']} and {second['form']} apart by {abs(difference):.1f} only"
    else:
        told = (
            f"believe {first['form']}, whose AICc is lower by {abs(difference):.0f} than {second['form']}'s"
        )
    reasons = [told, *errors, *beyond]
    if told.startswith("believe") and _errs_less(second, first):
        reasons.append(f"beyond the processes measured trust {second['form']} more")
    if "far" in theirs:
        reasons.append(_exponential(theirs))
    return "; ".join(reasons)


def _both(first: Mapping[str, Any], second: Mapping[str, Any], key: str, where: str) -> list[str]:
    if key not in first or key not in second:
        return []
    return [f"{where} it errs by {_per_cent(first[key])}, {second['form']} by {_per_cent(second[key])}"]


def _errs_less(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    key = "extrapolation_error"
    return key in one and key in other and one[key] < other[key]


def _exponential(row: Mapping[str, Any]) -> str:
    far, form = row["far"], row["form"]
    what = "the size" if form == "report-3" else "the number of processes"
    where = f"{format_bytes(far['size_bytes'])}" if form == "report-3" else f"{far['ranks']} processes"
    said = (
        f"{format_seconds(far['time_s'])}, {far['time_s'] / far['measured_s']:.3g} times what a quarter of "
        "it took"
        if "time_s" in far
        else "more than any number"
    )
    return f"{form} grows exponentially in {what}: for {where} it says {said}"


def _per_cent(error: float) -> str:
    return f"{100 * error:.3g} %"
