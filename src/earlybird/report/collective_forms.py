"""The forms that profiles hold of collectives: how well each fits, and which of them to believe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.report import words
from earlybird.report.collectives import operation_order
from earlybird.report.curves import number_or_none, profile_labels
from earlybird.report.material import Material
from earlybird.report.parts import Table

# What the file calls a form, in words.
FORMS = {
    "alpha-beta": "latency and bytes by hop",
    "empirical": "terms in ranks and size",
    "report-1": "regression 1: straight line in ranks, broken",
    "report-2": "regression 2: straight line in ranks",
    "report-3": "regression 3: log time in log ranks and size",
}
PUBLISHED, ALL = "report-", "all sizes"
_ERRORS = ("held_out_error", "held_out_error_sizes", "extrapolation_error")


@dataclass(frozen=True)
class Form:
    """One form of one algorithm and how it fits to `points`; `ours` are those by hops, `fitted_to` what the
    form was fitted to where that is more than these points. Errors are relative, None where not told."""

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
    """Every form of every profile that is one of a collective, the main one of an algorithm first."""
    found: list[Form] = []
    for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True):
        for value in profile.forms:
            what = value.get("what") if isinstance(value, Mapping) else None
            if isinstance(what, Mapping) and {"operation", "algorithm"} <= what.keys():
                found += _of_algorithm(label, what, value)
    return sorted(
        found,
        key=lambda form: (operation_order(form.operation), form.label, words.method_order(form.algorithm)),
    )


def _of_algorithm(label: str, what: Mapping[str, Any], value: Mapping[str, Any]) -> list[Form]:
    """The form itself and its alternatives; where those have ours among them, on the same points, they alone
    compare."""
    others = value.get("alternatives")
    others = [one for one in others if isinstance(one, Mapping)] if isinstance(others, list) else []
    rows = others if any(_is_ours(one) for one in others) else [value, *others]
    return [
        Form(
            label,
            str(what["operation"]),
            str(what["algorithm"]),
            str(one.get("points", ALL)),
            str(value.get("tree") or "") if _is_ours(one) else "",
            str(one.get("form", "")),
            _is_ours(one),
            number_or_none(one.get("aicc")),
            *(number_or_none(one.get(key)) for key in _ERRORS),
            str(one.get("fitted_to", "")),
        )
        for one in rows
    ]


def _is_ours(form: Mapping[str, Any]) -> bool:
    return not str(form.get("form", "")).startswith(PUBLISHED)


def forms_table(forms: Sequence[Form]) -> Table:
    rows = [
        [
            words.operation(form.operation),
            form.label,
            words.method(form.algorithm),
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
        "Forms of each algorithm: AICc (less is better), and the median relative error at numbers of ranks "
        "and at sizes left out of the fit, and beyond the ranks fitted to"
    )
    return Table(caption, header, rows, wide=True)


def _name(form: Form) -> str:
    tree = f" ({form.tree})" if form.tree else ""
    return (
        FORMS.get(form.name, form.name) + tree + (f", fitted to {form.fitted_to}" if form.fitted_to else "")
    )


def _percent(error: float | None) -> str:
    return "-" if error is None else words.percent(error)


def forms_sentence(forms: Sequence[Form]) -> str:
    """Which kind of form to believe, by the errors at what was left out."""
    groups: dict[tuple, list[Form]] = {}
    for form in forms:
        groups.setdefault((form.label, form.operation, form.algorithm, form.points), []).append(form)
    told = []
    for key, where in (
        ("held_out_error", "at ranks left out"),
        ("extrapolation_error", "beyond the ranks fitted to"),
    ):
        wins = [win for group in groups.values() if (win := _ours_wins(group, key)) is not None]
        if wins:
            own = [getattr(form, key) for form in forms if form.ours and getattr(form, key) is not None]
            told.append((sum(wins), len(wins), where, float(np.median(own))))
    if not told:
        return ""
    counts = words.listed([f"in {won} of {of} comparisons {where}" for won, of, where, _ in told])
    more = all(2 * won > of for won, of, _, _ in told)
    believe = "believe the forms by hop" if more else "believe what errs less in the table below"
    errors = words.listed([f"{words.percent(error)} {where}" for _, _, where, error in told])
    return (
        f"Forms of latency and bytes by hop err less than the published regressions {counts}: {believe}. "
        f"Their own errors: {errors}, in the median."
    )


def brief_forms_table(forms: Sequence[Form]) -> Table:
    """The forms that predictions use, on all points."""
    rows = [
        [
            f"{words.operation(form.operation)}, {words.method(form.algorithm)}",
            form.label,
            *(_percent(getattr(form, key)) for key in _ERRORS),
        ]
        for form in forms
        if form.ours and form.points == ALL
    ]
    caption = "Median relative errors of the fitted forms at ranks and sizes left out, and beyond the ranks"
    return Table(caption, ["algorithm", "MPI", "other ranks", "other sizes", "beyond"], rows)


def _ours_wins(group: Sequence[Form], key: str) -> bool | None:
    """Whether the form that predictions use errs less; None where there is nothing to compare with."""
    used = [form for form in group if form.fitted_to] or [form for form in group if form.ours]
    ours = [getattr(form, key) for form in used if getattr(form, key) is not None]
    others = [getattr(form, key) for form in group if not form.ours and getattr(form, key) is not None]
    return min(ours) <= min(others) if ours and others else None
