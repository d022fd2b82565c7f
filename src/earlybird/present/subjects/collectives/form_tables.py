"""The forms (models) of collectives in the profiles: how well each fits, and which one to use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.present.core.parts import grouped
from earlybird.present.core.table import Columns, Table, table_of
from earlybird.present.material import Material, labelled_profiles, number_or_none
from earlybird.present.subjects.collectives.view import operation_order

# Display name of each form; `insaghi-1` to `insaghi-3` are the published regressions of Insaghi (paper).
FORMS = {
    "alpha-beta": "latency and bytes per hop",
    "empirical": "terms in ranks and size",
    "insaghi-1": "Insaghi (paper) 1: piecewise linear in ranks",
    "insaghi-2": "Insaghi (paper) 2: linear in ranks",
    "insaghi-3": "Insaghi (paper) 3: log time in log ranks and size",
}
PUBLISHED, ALL = "insaghi-", "all sizes"
# Median relative errors at data left out of the fit: column, key in the profile, place in a sentence.
_ERRORS = {
    "held-out ranks": ("held_out_error", "at held-out rank counts"),
    "held-out size": ("held_out_error_sizes", ""),
    "beyond half the ranks": ("extrapolation_error", "with more ranks than were fitted"),
}


@dataclass(frozen=True)
class Form:
    """One form of one algorithm of a profile, and its fit to `points`. Only forms per hop have a `tree`."""

    label: str
    operation: str
    algorithm: str
    tree: str
    values: Mapping[str, Any]

    @property
    def points(self) -> str:
        """The points of the fit; a file may hold their number instead of a text."""
        points = self.values.get("points")
        return points if isinstance(points, str) else ALL

    @property
    def is_ours(self) -> bool:
        """Whether it is a form per hop."""
        return _is_ours(self.values)

    @property
    def name(self) -> str:
        name, fitted_to = str(self.values.get("form", "")), self.values.get("fitted_to")
        tree = f" ({self.tree})" if self.tree else ""
        return FORMS.get(name, name) + tree + (f", fitted to {fitted_to}" if fitted_to else "")

    def number(self, key: str) -> float | None:
        return number_or_none(self.values.get(key))

    def percent(self, key: str) -> str:
        error = self.number(key)
        return "-" if error is None else labels.percent(error)


_ERROR_COLUMNS: Columns = {
    title: lambda form, key=key: form.percent(key) for title, (key, _) in _ERRORS.items()
}


def collective_forms(material: Material) -> list[Form]:
    """Every form of a collective in every profile, the main form of each algorithm first."""
    forms = [
        form
        for profile, label in labelled_profiles(material)
        for value in profile.forms
        if isinstance(value, Mapping)
        for form in _of_algorithm(label, value.get("what"), value)
    ]
    return sorted(
        forms,
        key=lambda form: (operation_order(form.operation), form.label, labels.method_order(form.algorithm)),
    )


def _of_algorithm(label: str, what: Any, value: Mapping[str, Any]) -> list[Form]:
    """The form and its alternatives; only the alternatives if they include our form on the same points."""
    if not isinstance(what, Mapping) or not {"operation", "algorithm"} <= what.keys():
        return []
    listed = value.get("alternatives")
    others = (
        [_current(form) for form in listed if isinstance(form, Mapping)] if isinstance(listed, list) else []
    )
    tree = str(value.get("tree") or "")
    return [
        Form(label, str(what["operation"]), str(what["algorithm"]), tree if _is_ours(form) else "", form)
        for form in (others if any(map(_is_ours, others)) else [value, *others])
    ]


def _current(form: Mapping[str, Any]) -> dict[str, Any]:
    """An alternative with the current name of its form; Insaghi's were called `report-1` to `report-3`."""
    return {**form, "form": str(form.get("form", "")).replace("report-", PUBLISHED)}


def _is_ours(values: Mapping[str, Any]) -> bool:
    return not str(values.get("form", "")).startswith(PUBLISHED)


def forms_table(forms: Sequence[Form]) -> Table:
    columns: Columns = {
        "operation": lambda form: labels.operation(form.operation),
        "MPI": lambda form: form.label,
        "algorithm": lambda form: labels.method(form.algorithm),
        "points": lambda form: form.points,
        "cost model": lambda form: form.name,
        "AICc": lambda form: "-" if form.number("aicc") is None else f"{form.number('aicc'):.0f}",
    }
    caption = (
        "Cost models of each algorithm: AICc (less is better), and the median relative error at rank counts "
        "and sizes left out of the fit, and beyond half the ranks if only those are fitted"
    )
    return table_of(caption, forms, columns | _ERROR_COLUMNS, wide=True)


def brief_forms_table(forms: Sequence[Form]) -> Table:
    """The forms used for predictions, on all points."""
    columns: Columns = {
        "algorithm": lambda form: f"{labels.operation(form.operation)}, {labels.method(form.algorithm)}",
        "MPI": lambda form: form.label,
    }
    caption = "Cost models: median relative error at held-out ranks and sizes, and beyond half the ranks"
    used = [form for form in forms if form.is_ours and form.points == ALL]
    return table_of(caption, used, columns | _ERROR_COLUMNS)


def forms_sentence(forms: Sequence[Form]) -> str:
    """Which kind of form to use, by the errors on data left out of the fit."""
    groups = grouped(forms, lambda form: (form.label, form.operation, form.algorithm, form.points))
    counts, errors, mostly_better = [], [], True
    for key, domain in _ERRORS.values():
        wins = [win for group in groups.values() if (win := _ours_wins(group, key)) is not None]
        if domain and wins:
            known = [error for form in forms if form.is_ours and (error := form.number(key)) is not None]
            counts.append(f"in {sum(wins)} of {len(wins)} comparisons {domain}")
            errors.append(f"{labels.percent(float(np.median(known)))} {domain}")
            mostly_better &= 2 * sum(wins) > len(wins)
    if not counts:
        return ""
    advice = "use these" if mostly_better else "use the one with the smaller error in the table below"
    return (
        f"The cost models of latency and bytes per hop err less than the regressions of Insaghi (paper) "
        f"{labels.listed(counts)}: {advice}. Their median errors: {labels.listed(errors)}."
    )


def _ours_wins(group: Sequence[Form], key: str) -> bool | None:
    """Whether the form used for predictions has the smaller error; None if there is nothing to compare."""
    used = [form for form in group if form.values.get("fitted_to")] or [
        form for form in group if form.is_ours
    ]
    ours = [error for form in used if (error := form.number(key)) is not None]
    others = [error for form in group if not form.is_ours and (error := form.number(key)) is not None]
    return min(ours) <= min(others) if ours and others else None
