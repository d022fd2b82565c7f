"""Prints collectives: predictions, and for `fit` the forms, their comparison, and Insaghi's regressions."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.compare.collective_forms import forms_of
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.method_predictions import CollectivePrediction
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import percent_text, range_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.collectives.forms import forms_table

_CSV = ("method", "algorithm", "segment_bytes", "time_s", "time_low_s", "time_high_s", "form", "tree",
        "extrapolated")  # fmt: skip
_PREDICTION = (
    Column("algorithm", lambda item: item["algorithm"]),
    Column("segments", lambda item: format_bytes(item["segment_bytes"]) if item.get("segment_bytes") else ""),
    Column("time", lambda item: format_seconds(item["time_s"])),
    Column("95 %", lambda item: range_text(item.get("time_interval_s"), format_seconds)),
    Column("form", lambda item: f"{item['form']}, {item['tree']}" if "tree" in item else item["form"]),
    Column("held-out ranks", lambda item: percent_text(item.get("held_out_error"))),
    Column("extrapolated", lambda item: ", ".join(item["extrapolated"])),
)
_TERM = (
    Column("", lambda row: row.term, left=True),
    Column("Estimate", lambda row: _coefficient(row.estimate)),
    Column("Std. Error", lambda row: _coefficient(row.std_error)),
    Column("t value", lambda row: f"{row.t_value:.2f}"),
    Column("Pr(>|t|)", lambda row: f"{row.p_value:.4f}"),
)


def print_collective_prediction(
    prediction: CollectivePrediction, format: str, *, with_published: bool = False
) -> None:
    """Print the time of every algorithm, and of published regressions; notes on stderr."""
    value = prediction.to_json()
    for reservation in prediction.notes:
        note(f"warning: {reservation}")
    if not print_data(format, value, [_flat(item) for item in value["algorithms"]], _CSV):
        shown = sorted(value["algorithms"], key=lambda item: item["time_s"])
        published = [_published(item) for item in value["references"] if with_published]
        print_table(Table("", _PREDICTION, [*shown, *published]))
        note(
            f"{prediction.operation} of {format_bytes(prediction.size_bytes)} among {prediction.ranks} ranks "
            f"on {prediction.layout}, until the last rank is done"
        )


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


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    low, high = item.get("time_interval_s") or (None, None)
    return {**item, "time_low_s": low, "time_high_s": high}


def _published(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a published regression as an algorithm."""
    form = f"Insaghi (paper), {item['form']}, table {item['table']}"
    return {**item, "form": form, "extrapolated": ["two nodes of 128 cores"]}


def _coefficient(value: float) -> str:
    """Return a number as R prints it in Insaghi's paper: four decimals, or a power of ten."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.3e}"
