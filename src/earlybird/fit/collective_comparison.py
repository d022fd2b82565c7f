"""Compare forms of collectives on the same points: the physical forms and those of Insaghi (paper)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas

from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.units import format_bytes, format_seconds
from earlybird.fit import collective
from earlybird.fit.collective import PointReader
from earlybird.fit.collective_judgement import Judgement, extrapolation_split, judge
from earlybird.fit.collective_samples import Collectives
from earlybird.fit.collective_search import Points
from earlybird.fit.insaghi_forms import (
    US,
    Grid,
    InsaghiFit,
    Regression,
    fit_insaghi_form,
    grid,
    regressions,
)
from earlybird.fit.stepwise import errors_left_out, relative_errors

ALL_SIZES, ALL_MAPPINGS = "all sizes", "all mappings"
COMPLETION, MEAN = "completion", "mean over ranks"
_COLUMNS = {COMPLETION: "time_s", MEAN: "mean_s"}
# Each form is extrapolated to this multiple of the largest measured size, or number of ranks.
FAR = 4
# Below this difference AICc does not distinguish two forms (Burnham and Anderson 2002, section 2.6).
CLEAR = 10.0
# A form with larger errors at left-out process counts is of no use.
POOR = 0.5


@dataclass(frozen=True, eq=False)
class _Case:
    """The points on which forms are compared: the same rows for the physical form and for the regression, and
    the mask of these points among all.
    """

    points: str
    physical: Points
    grid: Grid
    form: int
    of_all: np.ndarray


def compare(
    collectives: Collectives,
    operation: str,
    algorithm: str,
    mpi: str,
    times: str = COMPLETION,
    whole: Judgement | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each form and set of points of one algorithm: all sizes together (Insaghi's form 3),
    and the smallest size by each mapping (form 1 or 2), if it has three process counts.

    Every row has the keys "points", "form", "times", "parameters", "aicc" (of the likelihood of T itself, in
    microseconds), "error", "held_out_error" (a process count left out), "held_out_error_sizes",
    "extrapolation_error" (fitted to at most half of the processes), and "far", the prediction of the form at
    FAR times the largest size or number of ranks. An error that the points do not define is absent.

    A row with "fitted_to" describes the form that predictions use, fitted to all sizes and mappings, with its
    errors at these points only. It has no "aicc", which compares forms fitted to the same points. `whole` is
    that form, for the same `times`, if it is already known.

    Raises InputError if no sample has such times: a mean over ranks needs the times of every rank.
    """
    table = collectives.table
    rows = table[(table.operation == operation) & (table.algorithm == algorithm) & (table.mpi == mpi)]
    rows = collective.proper_rows(collectives, rows.dropna(subset=[_COLUMNS[times]]))
    if rows.empty:
        raise InputError(
            f"{operation} {algorithm}: no sample has the times of every rank, which the {times} needs; omit "
            "--mean-over-ranks, or measure again"
        )
    structure = collective.structure_of(rows.family.iloc[0], operation, algorithm)
    gamma = collective.gamma_r_s_per_byte(collectives.reductions)
    reader = PointReader(collectives, structure)
    whole = whole or judge(reader.points(rows, _COLUMNS[times]), structure, gamma)
    found: list[dict[str, Any]] = []
    for case in _cases(collectives, rows, reader, whole.points, _COLUMNS[times]):
        if case.of_all.all():
            ours = [_physical(whole)]
        else:
            ours = [_physical(judge(case.physical, structure, gamma)), _fitted_to_all(whole, case.of_all)]
        name = {"form": "empirical" if structure == collective.EMPIRICAL else "alpha-beta"}
        for row in (*(name | one for one in ours), _of_insaghi(case, algorithm)):
            found.append({"points": case.points, "times": times} | row)
    return found


def verdict(operation: str, algorithm: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one sentence, from the rows of `compare`: which form of an algorithm to trust, and why."""
    cases = list(dict.fromkeys(row["points"] for row in rows))
    if not cases:
        return f"{operation} {algorithm}: too few points to compare forms; measure more --ranks, --sizes"
    first, *others = (_Verdict.of([row for row in rows if row["points"] == points]) for points in cases)
    parts = [f"{operation} {algorithm}, {cases[0]}: {first.text()}"]
    for points, other in zip(cases[1:], others, strict=True):
        parts.append(f"{points}: {other.short()}")
    return "; ".join(parts)


@dataclass(frozen=True)
class _Verdict:
    """Two forms fitted to the same points, the form with the lower AICc first, and the difference (None if
    there are too few points for one form); and the form of all sizes, if it is another form.
    """

    better: Mapping[str, Any]
    worse: Mapping[str, Any]
    difference: float | None
    whole: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> "_Verdict":
        ours, theirs = (row for row in rows if "fitted_to" not in row)
        whole = next((row for row in rows if "fitted_to" in row), None)
        if "aicc" not in ours or "aicc" not in theirs:
            return cls(ours, theirs, None, whole)
        difference = theirs["aicc"] - ours["aicc"]
        if difference >= 0:
            return cls(ours, theirs, difference, whole)
        return cls(theirs, ours, -difference, whole)

    def short(self) -> str:
        if self.difference is None:
            summary = "too few points"
        elif self.difference < CLEAR:
            summary = f"no clear difference, AICc differs by {self.difference:.1f}"
        else:
            summary = f"{self.better['form']}, AICc lower by {self.difference:.0f}"
        insaghi = next(row for row in (self.better, self.worse) if row["form"].startswith("insaghi"))
        key = "extrapolation_error"
        if self.whole is None or key not in self.whole or key not in insaghi:
            return summary
        return (
            f"{summary}; beyond half of the processes {self.whole['form']} "
            f"fitted to {self.whole['fitted_to']} has an error of {_per_cent(self.whole[key])}, "
            f"{insaghi['form']} of {_per_cent(insaghi[key])}"
        )

    def text(self) -> str:
        if self.difference is None:
            return "too few points to compare forms; measure more --ranks or --sizes"
        better, worse = self.better["form"], self.worse["form"]
        if self.difference < CLEAR:
            parts = [f"{better} and {worse} do not differ clearly, AICc differs by {self.difference:.1f}"]
        else:
            parts = [f"trust {better}: its AICc is lower than that of {worse} by {self.difference:.0f}"]
        for key, where in (
            ("held_out_error", "at left-out process counts"),
            ("extrapolation_error", "beyond half of the processes"),
        ):
            if key in self.better and key in self.worse:
                errors = _per_cent(self.better[key]), _per_cent(self.worse[key])
                parts.append(f"{where} its error is {errors[0]}, that of {worse} {errors[1]}")
        if self._errs_less_beyond():
            parts.append(f"beyond the measured process counts trust {worse} more")
        if min(row.get("held_out_error", 0.0) for row in (self.better, self.worse)) > POOR:
            parts.append("neither is good")
        parts += [_exponential(row) for row in (self.better, self.worse) if "far" in row]
        return ", ".join(parts)

    def _errs_less_beyond(self) -> bool:
        """Return whether the form with the higher AICc extrapolates clearly better."""
        errors = [row.get("extrapolation_error") for row in (self.worse, self.better)]
        return None not in errors and errors[0] < 0.8 * errors[1]


def cores_per_node(collectives: Collectives) -> int:
    """Return the number of ranks at which form 1 of Insaghi has its break."""
    return collectives.machine.get("sockets", 1) * collectives.machine.get("cores", 1)


def time_column(times: str) -> str:
    """Return the column of `collective_samples.COLUMNS` with the times `completion` or `mean over ranks`."""
    return _COLUMNS[times]


def _cases(
    collectives: Collectives, rows: pandas.DataFrame, reader: PointReader, whole: Points, column: str
) -> Iterable[_Case]:
    cores = cores_per_node(collectives)

    def case(label: str, chosen: pandas.DataFrame, form: int, of_all: np.ndarray) -> _Case:
        return _Case(label, reader.points(chosen, column), grid(chosen, cores, column), form, of_all)

    sized = rows[rows.size_bytes > 0]
    if sized.size_bytes.nunique() > 1 and sized.ranks.nunique() > 1:
        yield case(ALL_SIZES, sized, 3, whole.size_bytes > 0)
    smallest = rows.size_bytes.min()
    for map_by, mapped in rows[rows.size_bytes == smallest].groupby("map_by", sort=False):
        if mapped.ranks.nunique() >= 3:
            form = 2 if map_by == "node" else 1
            label = f"{format_bytes(int(smallest))} by {map_by}"
            yield case(label, mapped, form, (whole.size_bytes == smallest) & (whole.map_by == map_by))


def _physical(judged: Judgement) -> dict[str, Any]:
    found = judged.found
    return _without_missing({"parameters": found.num_parameters, "aicc": found.criterion} | judged.medians())


def _fitted_to_all(judged: Judgement, chosen: np.ndarray) -> dict[str, Any]:
    several = len(np.unique(judged.points.size_bytes)) > 1
    row = {
        "fitted_to": ALL_SIZES if several else ALL_MAPPINGS,
        "parameters": judged.found.num_parameters,
    }
    return _without_missing(row | judged.medians(chosen))


def _of_insaghi(case: _Case, algorithm: str) -> dict[str, Any]:
    points, form = case.grid, case.form

    def errors_of(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        left_out = points.only(test)
        fitted = fit_insaghi_form(points.only(train), form, algorithm)
        return relative_errors(fitted.predict_us(left_out), left_out.time_us)

    found = fit_insaghi_form(points, form, algorithm)
    split = extrapolation_split(points.ranks)
    return _without_missing(
        {
            "form": f"insaghi-{form}",
            "parameters": found.num_parameters,
            "aicc": found.aicc,
            "error": float(np.median(relative_errors(found.predict_us(points), points.time_us))),
            "held_out_error": float(np.median(errors_left_out(points.ranks, errors_of))),
            "held_out_error_sizes": float(np.median(errors_left_out(points.size_bytes, errors_of))),
            "extrapolation_error": None if split is None else float(np.median(errors_of(*split))),
            "far": _far(found, points),
        }
    )


def _far(found: InsaghiFit, points: Grid) -> dict[str, Any] | None:
    """Return the prediction of the form far beyond the points, or None unless the form grows
    exponentially.
    """
    if found.form != 3 and not found.algorithm.endswith("binomial"):
        return None
    grows = "size_bytes" if found.form == 3 else "ranks"
    most = int(np.lexsort((points.ranks, getattr(points, grows)))[-1])
    beyond = points.only(np.arange(len(points.ranks)) == most)
    moved = replace(beyond, **{grows: FAR * getattr(beyond, grows)})
    point = {name: int(getattr(moved, name)[0]) for name in ("size_bytes", "ranks")}
    time_s = float(found.predict_us(moved)[0]) / US
    at_edge_s = float(found.predict_us(beyond)[0]) / US
    if not np.isfinite(time_s):
        return point | {"measured_s": float(beyond.time_us[0]) / US}
    return point | {"time_s": time_s, "at_edge_s": at_edge_s, "measured_s": float(beyond.time_us[0]) / US}


def _without_missing(row: dict[str, Any]) -> dict[str, Any]:
    row = {name: item for name, item in row.items() if item is not None}
    # An undefined AICc and an infinite error have no JSON.
    return {name: item for name, item in row.items() if not isinstance(item, float) or np.isfinite(item)}


def _exponential(row: Mapping[str, Any]) -> str:
    far, form = row["far"], row["form"]
    what = "the size" if form == "insaghi-3" else "the number of processes"
    where = f"{format_bytes(far['size_bytes'])}" if form == "insaghi-3" else f"{far['ranks']} processes"
    said = (
        f"{format_seconds(far['time_s'])}, {far['time_s'] / far['measured_s']:.3g} times the measured "
        "time of a quarter of it"
        if "time_s" in far
        else "an infinite time"
    )
    return f"{form} grows exponentially in {what} (for {where} it predicts {said})"


def _per_cent(error: float) -> str:
    return f"{100 * error:.3g} %"


def compare_forms(
    collectives: Collectives, forms: Sequence[CollectiveForm], times: str
) -> tuple[list[Regression], list[str]]:
    """Return Insaghi's regressions, and a verdict on the forms of every algorithm."""
    results = regressions(collectives.table, cores_per_node(collectives), time_column(times))
    verdicts = [verdict(form.operation, form.algorithm, form.extra.get("alternatives", ())) for form in forms]
    return results, verdicts
