"""Prints collectives for `fit`: the forms, their comparison with Insaghi's, and Insaghi's regressions."""

from collections.abc import Sequence
from typing import Any

from earlybird.compare.collective_forms import forms_of
from earlybird.data.collective_form import CollectiveForm
from earlybird.present.core.table import Column, Table
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.collectives.forms import forms_table, hops_table

_TERM = (
    Column("", lambda row: row.term, left=True),
    Column("Estimate", lambda row: _coefficient(row.estimate)),
    Column("Std. Error", lambda row: _coefficient(row.std_error)),
    Column("t value", lambda row: f"{row.t_value:.2f}"),
    Column("Pr(>|t|)", lambda row: f"{row.p_value:.4f}"),
)


def print_forms(forms: Sequence[CollectiveForm]) -> None:
    """Print latency (of the smallest messages) and bandwidth (of the largest) of each type of hop."""
    print_table(hops_table(forms))


def print_comparison(forms: Sequence[CollectiveForm]) -> None:
    """Print one table of all forms on the same points, lower AICc first."""
    compared = [
        alternative
        for form in forms
        if form.extra.get("alternatives")
        for alternative in forms_of("", form.what.to_json(), form.tree, form.extra)
    ]
    print_table(forms_table(compared))


def print_regressions(regressions: Sequence[Any]) -> None:
    """Print regressions in the layout of Insaghi (paper), with times in microseconds."""
    for fit in regressions:
        print_line()
        print_line(f"{fit.operation}, {fit.what}: form {fit.form} of Insaghi (paper), {fit.response} in us")
        print_table(Table("", _TERM, fit.rows))
        is_centred = fit.r_squared != fit.r_squared_centred
        about = f" ({fit.r_squared_centred:.4f} about the mean)" if is_centred else ""
        print_line(f"R^2: {fit.r_squared:.4f}{about}, {fit.points} points")


def _coefficient(value: float) -> str:
    """Return a number as R prints it in Insaghi's paper: four decimals, or a power of ten."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.3e}"
