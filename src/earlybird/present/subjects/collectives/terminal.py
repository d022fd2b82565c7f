"""Prints collectives for `fit`: the forms, their comparison with Insaghi's, and Insaghi's regressions."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.collective_form import CollectiveForm
from earlybird.data.levels import LEVEL_LABELS, LEVELS
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.notation import percent_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.terminal import print_line, print_rows, print_table

# The keys of errors, and their column heads.
_ERRORS = {
    "error": "error",
    "held_out_error": "held-out ranks",
    "held_out_error_sizes": "held-out size",
    "extrapolation_error": "beyond half the ranks",
}
_FORM = ("collective", "algorithm", "form", "ranks", "protocols", "hop", "latency", "bandwidth",
         *_ERRORS.values())  # fmt: skip
_ALTERNATIVE = ("collective", "algorithm", "points", "form", "parameters", "AICc", *_ERRORS.values())
_TERM = (
    Column("", lambda row: row.term, left=True),
    Column("Estimate", lambda row: _four(row.estimate)),
    Column("Std. Error", lambda row: _four(row.std_error)),
    Column("t value", lambda row: f"{row.t_value:.2f}"),
    Column("Pr(>|t|)", lambda row: f"{row.p_value:.4f}"),
)


def print_forms(forms: Sequence[CollectiveForm]) -> None:
    """Print latency (of the smallest messages) and bandwidth (of the largest) of each type of hop."""
    print_rows(_FORM, [row for form in forms for row in _form_rows(form)])


def print_comparison(forms: Sequence[CollectiveForm]) -> None:
    """Print one table of all forms on the same points, lower AICc first."""
    rows = []
    for form in forms:
        alternatives = form.extra.get("alternatives", ())
        for points in dict.fromkeys(row["points"] for row in alternatives):
            of_points = [row for row in alternatives if row["points"] == points]
            for k, row in enumerate(sorted(of_points, key=lambda one: one.get("aicc", float("inf")))):
                head = ("", "", "") if k else (form.operation, form.algorithm, points)
                rows.append((*head, _name(row), row["parameters"], _criterion(row), *_errors(row)))
    print_rows(_ALTERNATIVE, rows)


def print_regressions(regressions: Sequence[Any]) -> None:
    """Print regressions in the layout of Insaghi (paper), with times in microseconds."""
    for one in regressions:
        print_line()
        print_line(f"{one.operation}, {one.what}: form {one.form} of Insaghi (paper), {one.response} in us")
        print_table(Table("", _TERM, one.rows))
        is_centred = one.r_squared != one.r_squared_centred
        about = f" ({one.r_squared_centred:.4f} about the mean)" if is_centred else ""
        print_line(f"R^2: {one.r_squared:.4f}{about}, {one.points} points")


def _form_rows(form: CollectiveForm) -> list[tuple]:
    parameters = form.parameters
    starts = ", ".join(format_bytes(start) for start in parameters.min_bytes)
    ranks = "..".join(str(one) for one in form.range["ranks"])
    head = (form.operation, form.algorithm, form.tree or "empirical", ranks, f"from {starts}")
    errors = _errors(form.extra)
    if not form.tree:  # an interpolation has no coefficient that is a latency or a bandwidth
        return [(*head, "", "", "", *errors)] if form.levels else []
    rows = []
    for k, level in enumerate(LEVELS):
        if level in form.levels:
            latency, slope = parameters.alpha_s[0, 0, k], parameters.beta_s_per_byte[-1, 0, k]
            bandwidth = format_bandwidth(1 / slope) if slope > 0 else ""
            hop = (LEVEL_LABELS[level], format_seconds(latency), bandwidth)
            rows.append((*("",) * 5, *hop, *("",) * 4) if rows else (*head, *hop, *errors))
    return rows


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['form']}, fitted to {row['fitted_to']}" if "fitted_to" in row else row["form"]


def _criterion(row: Mapping[str, Any]) -> str:
    if "fitted_to" in row:
        return ""
    return f"{row['aicc']:.1f}" if "aicc" in row else "too few points"


def _errors(row: Mapping[str, Any]) -> list[str]:
    return [percent_text(row.get(key)) for key in _ERRORS]


def _four(value: float) -> str:
    """As R prints it in Insaghi's paper: four decimals, or a power of ten."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.3e}"
