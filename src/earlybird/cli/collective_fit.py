"""Prints collectives for `fit`: the forms, their comparison with Insaghi's, and Insaghi's regressions."""

from collections.abc import Sequence
from typing import Any

from earlybird.cli.common import print_table
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.layout import LEVEL_LABELS, LEVELS
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds


def print_forms(forms: Sequence[CollectiveForm]) -> None:
    """Print latency (of the smallest messages) and bandwidth (of the largest) of each type of hop."""
    print_table(
        ("collective", "algorithm", "form", "ranks", "protocols", "hop", "latency", "bandwidth", "error",
         "held-out ranks", "held-out size", "beyond half the ranks"),
        [row for form in forms for row in _form_rows(form)],
    )  # fmt: skip


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
    print_table(
        ("collective", "algorithm", "points", "form", "parameters", "AICc", "error", "held-out ranks",
         "held-out size", "beyond half the ranks"),
        rows,
    )  # fmt: skip


def print_regressions(regressions: Sequence[Any]) -> None:
    """Print regressions in the layout of Insaghi (paper), with times in microseconds."""
    for one in regressions:
        print(f"\n{one.operation}, {one.what}: form {one.form} of Insaghi (paper), {one.response} in us")
        print_table(
            ("", "Estimate", "Std. Error", "t value", "Pr(>|t|)"),
            [
                (
                    row.term,
                    _four(row.estimate),
                    _four(row.std_error),
                    f"{row.t_value:.2f}",
                    f"{row.p_value:.4f}",
                )
                for row in one.rows
            ],
            left=("",),
        )
        about = (
            "" if one.r_squared == one.r_squared_centred else f" ({one.r_squared_centred:.4f} about the mean)"
        )
        print(f"R^2: {one.r_squared:.4f}{about}, {one.points} points")


def _form_rows(form: CollectiveForm) -> list[tuple]:
    parameters = form.parameters
    errors = (form.extra.get(key) for key in ("error", "held_out_error", "held_out_error_sizes",
                                              "extrapolation_error"))  # fmt: skip
    starts = ", ".join(format_bytes(start) for start in parameters.min_bytes)
    ranks = "..".join(str(one) for one in form.range["ranks"])
    head = (form.operation, form.algorithm, form.tree or "empirical", ranks, f"from {starts}")
    rows = []
    for k, level in enumerate(LEVELS):
        if level not in form.levels:
            continue
        latency, slope = parameters.alpha_s[0, 0, k], parameters.beta_s_per_byte[-1, 0, k]
        # An interpolation has no coefficient that is a latency or a bandwidth.
        hop = (LEVEL_LABELS[level], format_seconds(latency), _rate(slope)) if form.tree else ("", "", "")
        rows.append((*head, *hop, *map(_per_cent, errors)) if not rows else (*("",) * 5, *hop, *("",) * 4))
        if not form.tree:
            break
    return rows


def _rate(s_per_byte: float) -> str:
    return format_bandwidth(1 / s_per_byte) if s_per_byte > 0 else ""


def _name(row) -> str:
    return f"{row['form']}, fitted to {row['fitted_to']}" if "fitted_to" in row else row["form"]


def _criterion(row) -> str:
    if "fitted_to" in row:
        return ""
    return f"{row['aicc']:.1f}" if "aicc" in row else "too few points"


def _errors(row) -> list[str]:
    keys = ("error", "held_out_error", "held_out_error_sizes", "extrapolation_error")
    return [_per_cent(row.get(key)) for key in keys]


def _per_cent(error: float | None) -> str:
    if error is None:
        return ""
    return f"{100 * error:.1f} %" if error < 100 else f"{100 * error:.2g} %"


def _four(value: float) -> str:
    """As R prints it in the report: four decimals, or a power of ten."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.3e}"
