"""The cost models (forms) of collectives in profiles: how well each fits, and which to use."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.compare.collective_forms import ALL, Form, compare_forms, forms_of
from earlybird.data import labels
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.levels import LEVEL_LABELS, LEVELS
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds, number_or_none
from earlybird.present.core.notation import percent_text, range_text
from earlybird.present.core.table import Column, Table
from earlybird.present.material import Material, labelled_profiles
from earlybird.present.subjects.collectives.view import operation_order

# What each form is; `insaghi-1` to `insaghi-3` are the published regressions of Insaghi (paper).
_MEANINGS = {
    "alpha-beta": "latency and bytes per hop",
    "empirical": "terms in ranks and size",
    "insaghi-1": "Insaghi (paper) 1: piecewise linear in ranks",
    "insaghi-2": "Insaghi (paper) 2: linear in ranks",
    "insaghi-3": "Insaghi (paper) 3: log time in log ranks and size",
}


def _error(head: str, key: str, **look: Any) -> Column:
    """Return the column of an error; rows are mappings, or forms with `values` or `extra`."""

    def text(row: Any) -> str:
        values: Mapping[str, Any] = row.values if isinstance(row, Form) else row[0].extra
        return percent_text(number_or_none(values.get(key)))

    return Column(head, text, **look)


def _errors(**look: Any) -> tuple[Column, ...]:
    """Return the columns of median relative errors at data left out of the fit."""
    return (
        _error("held-out ranks", "held_out_error", **look),
        _error("held-out size", "held_out_error_sizes", **look),
        _error("beyond half the ranks", "extrapolation_error", **look),
    )


_FORMS = (
    Column("collective", lambda form: form.operation, common=True),
    Column("MPI", lambda form: form.label, common=True, optional=True),
    Column("algorithm", lambda form: form.algorithm, common=True),
    Column("points", lambda form: form.points, common=True, detail=True),
    Column("form", lambda form: form.name, left=True, detail=True),
    Column("parameters", lambda form: _number(form.number("parameters")), optional=True, detail=True),
    Column("AICc", lambda form: form.criterion, detail=True),
    _error("error", "error", detail=True, optional=True),
    *_errors(),
)
# Of rows of a form and a level, or None.
_HOPS = (
    Column("collective", lambda row: row[0].operation, common=True),
    Column("algorithm", lambda row: row[0].algorithm, common=True),
    Column("form", lambda row: row[0].tree or row[0].form, common=True),
    Column("ranks", lambda row: range_text(row[0].range["ranks"], str), common=True),
    Column(
        "protocols",
        lambda row: f"from {', '.join(map(format_bytes, row[0].parameters.min_bytes))}",
        common=True,
    ),
    Column("hop", lambda row: LEVEL_LABELS[row[1]] if row[1] else ""),
    Column("latency", lambda row: _latency(*row)),
    Column("bandwidth", lambda row: _bandwidth(*row)),
    _error("error", "error", common=True),
    *_errors(common=True),
)


def collective_forms(material: Material) -> list[Form]:
    """Return every form of a collective in every profile, the main form of each algorithm first."""
    forms = [
        form
        for profile, label in labelled_profiles(material)
        for value in profile.forms
        if isinstance(value, Mapping)
        for form in forms_of(label, value.get("what"), value.get("tree"), value)
    ]
    return sorted(
        forms,
        key=lambda form: (operation_order(form.operation), form.label, labels.method_order(form.algorithm)),
    )


def forms_table(forms: Sequence[Form]) -> Table:
    """Return how well each form fits."""
    caption = (
        "Cost models of each algorithm: AICc (less is better), and the median relative error at rank counts "
        "and sizes left out of the fit, and beyond half the ranks if only those are fitted"
    )
    return Table(caption, _FORMS, forms, wide=True)


def brief_forms_table(forms: Sequence[Form]) -> Table:
    """Return the forms used for predictions, on all points."""
    caption = "Cost models: median relative error at held-out ranks and sizes, and beyond half the ranks"
    used = [form for form in forms if not form.is_published and form.points == ALL]
    return Table(caption, _FORMS, used).brief()


def hops_table(forms: Sequence[CollectiveForm]) -> Table:
    """Return the latency of the smallest messages and the bandwidth of the largest, of each type of hop."""
    rows: list[tuple[CollectiveForm, str | None]] = []
    for form in forms:
        levels: list[str | None] = [level for level in LEVELS if level in (form.levels or ())]
        # An interpolation has no coefficient that is a latency or a bandwidth.
        rows += [(form, level) for level in levels] if form.tree else [(form, None)] * bool(levels)
    return Table("", _HOPS, rows)


def form_meanings(forms: Sequence[Form]) -> list[str]:
    """Return the meaning of the forms, as a line; none without forms."""
    names = dict.fromkeys(str(form.values.get("form", "")) for form in forms)
    texts = [f"{name} ({meaning})" for name, meaning in _MEANINGS.items() if name in names]
    return [f"Forms of cost models: {labels.listed(texts)}."] if texts else []


def forms_sentence(forms: Sequence[Form]) -> str:
    """Return which kind of form to use, by errors at data left out of the fit; "" without a comparison."""
    comparisons = compare_forms(forms)
    if not comparisons:
        return ""
    counts = [f"in {item.wins} of {item.total} comparisons {item.where}" for item in comparisons]
    errors = [f"{labels.percent(item.median_error)} {item.where}" for item in comparisons]
    is_better = all(item.is_mostly_better for item in comparisons)
    advice = "use these" if is_better else "use the one with the smaller error in the table below"
    return (
        f"The cost models of latency and bytes per hop err less than the regressions of Insaghi (paper) "
        f"{labels.listed(counts)}: {advice}. Their median errors: {labels.listed(errors)}."
    )


def _latency(form: CollectiveForm, level: str | None) -> str:
    return format_seconds(form.parameters.alpha_s[0, 0, LEVELS.index(level)]) if level else ""


def _bandwidth(form: CollectiveForm, level: str | None) -> str:
    slope = form.parameters.beta_s_per_byte[-1, 0, LEVELS.index(level)] if level else 0.0
    return format_bandwidth(1 / slope) if slope > 0 else ""


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:g}"
