"""The forms (models) of collectives in the profiles: how well each fits, and which one to use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.report.collectives import operation_order
from earlybird.report.curves import labelled_profiles, number_or_none
from earlybird.report.material import Material
from earlybird.report.parts import Table

# Display name of each form.
FORMS = {
    "alpha-beta": "latency and bytes per hop",
    "empirical": "terms in ranks and size",
    "report-1": "regression 1: piecewise linear in ranks",
    "report-2": "regression 2: linear in ranks",
    "report-3": "regression 3: log time in log ranks and size",
}
PUBLISHED, ALL = "report-", "all sizes"
_ERRORS = ("held_out_error", "held_out_error_sizes", "extrapolation_error")


@dataclass(frozen=True)
class Form:
    """One form of one algorithm and its fit to `points`.

    `ours` marks the forms per hop. `fitted_to` describes the data of the fit if it is more than these points.
    Errors are relative, None if unknown.
    """

    label: str
    operation: str
    algorithm: str
    points: str
    tree: str
    name: str
    ours: bool
    aicc: float | None
    held_out_error: float | None
    held_out_error_sizes: float | None
    extrapolation_error: float | None
    fitted_to: str = ""


def collective_forms(material: Material) -> list[Form]:
    """Every form of a collective in every profile, the main form of each algorithm first."""
    forms: list[Form] = []
    for profile, label in labelled_profiles(material):
        for value in profile.forms:
            what = value.get("what") if isinstance(value, Mapping) else None
            if isinstance(what, Mapping) and {"operation", "algorithm"} <= what.keys():
                forms += _of_algorithm(label, what, value)
    return sorted(
        forms,
        key=lambda form: (operation_order(form.operation), form.label, labels.method_order(form.algorithm)),
    )


def _of_algorithm(label: str, what: Mapping[str, Any], value: Mapping[str, Any]) -> list[Form]:
    """The form and its alternatives; only the alternatives if they include our form on the same points."""
    alternatives = value.get("alternatives")
    alternatives = (
        [form for form in alternatives if isinstance(form, Mapping)] if isinstance(alternatives, list) else []
    )
    rows = alternatives if any(_is_ours(form) for form in alternatives) else [value, *alternatives]
    return [
        Form(
            label,
            str(what["operation"]),
            str(what["algorithm"]),
            str(form.get("points", ALL)),
            str(value.get("tree") or "") if _is_ours(form) else "",
            str(form.get("form", "")),
            _is_ours(form),
            number_or_none(form.get("aicc")),
            *(number_or_none(form.get(key)) for key in _ERRORS),
            str(form.get("fitted_to", "")),
        )
        for form in rows
    ]


def _is_ours(form: Mapping[str, Any]) -> bool:
    return not str(form.get("form", "")).startswith(PUBLISHED)


def forms_table(forms: Sequence[Form]) -> Table:
    rows = [
        [
            labels.operation(form.operation),
            form.label,
            labels.method(form.algorithm),
            form.points,
            _name(form),
            "-" if form.aicc is None else f"{form.aicc:.0f}",
            *(_percent(getattr(form, key)) for key in _ERRORS),
        ]
        for form in forms
    ]
    header = [
        "operation",
        "MPI",
        "algorithm",
        "points",
        "form",
        "AICc",
        "other ranks",
        "other sizes",
        "beyond",
    ]
    caption = (
        "Forms of each algorithm: AICc (less is better), and the median relative error at rank counts and "
        "sizes left out of the fit, and beyond the fitted ranks"
    )
    return Table(caption, header, rows, wide=True)


def _name(form: Form) -> str:
    tree = f" ({form.tree})" if form.tree else ""
    return (
        FORMS.get(form.name, form.name) + tree + (f", fitted to {form.fitted_to}" if form.fitted_to else "")
    )


def _percent(error: float | None) -> str:
    return "-" if error is None else labels.percent(error)


def forms_sentence(forms: Sequence[Form]) -> str:
    """Which kind of form to use, by the errors on data left out of the fit."""
    groups: dict[tuple, list[Form]] = {}
    for form in forms:
        groups.setdefault((form.label, form.operation, form.algorithm, form.points), []).append(form)
    results = []
    for key, domain in (
        ("held_out_error", "at held-out rank counts"),
        ("extrapolation_error", "beyond the fitted ranks"),
    ):
        wins = [win for group in groups.values() if (win := _ours_wins(group, key)) is not None]
        if wins:
            errors_per_hop = [
                getattr(form, key) for form in forms if form.ours and getattr(form, key) is not None
            ]
            results.append((sum(wins), len(wins), domain, float(np.median(errors_per_hop))))
    if not results:
        return ""
    counts = labels.listed([f"in {won} of {total} comparisons {domain}" for won, total, domain, _ in results])
    mostly_better = all(2 * won > total for won, total, _, _ in results)
    advice = (
        "use the forms per hop" if mostly_better else "use the form with the smaller error in the table below"
    )
    errors = labels.listed([f"{labels.percent(error)} {domain}" for _, _, domain, error in results])
    return (
        f"The forms of latency and bytes per hop err less than the published regressions {counts}: "
        f"{advice}. Median errors of the forms per hop: {errors}."
    )


def brief_forms_table(forms: Sequence[Form]) -> Table:
    """The forms used for predictions, on all points."""
    rows = [
        [
            f"{labels.operation(form.operation)}, {labels.method(form.algorithm)}",
            form.label,
            *(_percent(getattr(form, key)) for key in _ERRORS),
        ]
        for form in forms
        if form.ours and form.points == ALL
    ]
    caption = (
        "Median relative errors of the fitted forms at held-out ranks and sizes, and beyond the fitted ranks"
    )
    return Table(caption, ["algorithm", "MPI", "other ranks", "other sizes", "beyond"], rows)


def _ours_wins(group: Sequence[Form], key: str) -> bool | None:
    """Whether the form used for predictions has the smaller error; None if there is nothing to compare."""
    used = [form for form in group if form.fitted_to] or [form for form in group if form.ours]
    ours = [getattr(form, key) for form in used if getattr(form, key) is not None]
    others = [getattr(form, key) for form in group if not form.ours and getattr(form, key) is not None]
    return min(ours) <= min(others) if ours and others else None
