"""The forms that profiles hold of collectives: how well each fits, and which of them to believe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
_ERRORS = ("held_out_error", "held_out_error_sizes", "extrapolation_error")


@dataclass(frozen=True)
class Form:
    """One form of one algorithm, `main` the one that predictions use; errors are relative, None where they
    are not told."""

    label: str
    operation: str
    algorithm: str
    mapped: str
    tree: str
    name: str
    main: bool
    aicc: float | None
    held_out_error: float | None
    held_out_error_sizes: float | None
    extrapolation_error: float | None


def collective_forms(material: Material) -> list[Form]:
    """Every form of every profile that is one of a collective, the main one of an algorithm first."""
    found: list[Form] = []
    for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True):
        for value in profile.forms:
            what = value.get("what") if isinstance(value, Mapping) else None
            if isinstance(what, Mapping) and {"operation", "algorithm"} <= what.keys():
                found += _of_algorithm(label, what, value)
    return sorted(
        found, key=lambda form: (operation_order(form.operation), form.label, words.way_order(form.algorithm))
    )


def _of_algorithm(label: str, what: Mapping[str, Any], value: Mapping[str, Any]) -> list[Form]:
    mapped = value.get("map_by")
    mapped = words.listed([str(one) for one in mapped]) if isinstance(mapped, list) else str(mapped or "")
    others = value.get("alternatives")
    others = [one for one in others if isinstance(one, Mapping)] if isinstance(others, list) else []
    return [
        Form(
            label,
            str(what["operation"]),
            str(what["algorithm"]),
            mapped,
            str(value.get("tree") or "") if one is value else "",
            str(one.get("form", "")),
            one is value,
            number_or_none(one.get("aicc")),
            *(number_or_none(one.get(key)) for key in _ERRORS),
        )
        for one in (value, *others)
    ]


def forms_table(forms: Sequence[Form]) -> Table:
    rows = [
        [
            words.operation(form.operation),
            form.label,
            words.way(form.algorithm),
            FORMS.get(form.name, form.name) + (f" ({form.tree})" if form.tree else ""),
            form.mapped or "-",
            "-" if form.aicc is None else f"{form.aicc:.0f}",
            *(_percent(getattr(form, key)) for key in _ERRORS),
        ]
        for form in forms
    ]
    header = [
        "operation",
        "MPI",
        "algorithm",
        "form",
        "mapped by",
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


def _percent(error: float | None) -> str:
    return "-" if error is None else words.percent(error)


def forms_sentence(forms: Sequence[Form]) -> str:
    """Which kind of form to believe, by the errors at what was left out."""
    groups: dict[tuple, list[Form]] = {}
    for form in forms:
        groups.setdefault((form.label, form.operation, form.algorithm), []).append(form)
    told = []
    for key, where in (
        ("held_out_error", "at ranks left out"),
        ("extrapolation_error", "beyond the ranks fitted to"),
    ):
        wins = [_main_wins(group, key) for group in groups.values()]
        wins = [win for win in wins if win is not None]
        if wins:
            told.append((sum(wins), len(wins), where))
    if not told:
        return ""
    name = FORMS.get(next(form.name for form in forms if form.main), "our form")
    counts = [f"for {won} of {of} algorithms {where}" for won, of, where in told]
    believe = (
        "believe it" if all(2 * won > of for won, of, _ in told) else "believe the one with the smaller error"
    )
    return f"The form of {name} errs less than the published regressions {words.listed(counts)}: {believe}."


def _main_wins(group: Sequence[Form], key: str) -> bool | None:
    """None where there is nothing to compare with."""
    mine = [getattr(form, key) for form in group if form.main and getattr(form, key) is not None]
    others = [getattr(form, key) for form in group if not form.main and getattr(form, key) is not None]
    return min(mine) <= min(others) if mine and others else None
