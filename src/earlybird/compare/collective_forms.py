"""The forms of collectives in profiles, and which kind of form errs less at data left out of the fit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.data.units import number_or_none

PUBLISHED, ALL = "insaghi-", "all sizes"
# Median relative errors that decide which form to use, by their keys in a profile.
DECIDING = {
    "held_out_error": "at held-out rank counts",
    "extrapolation_error": "with more ranks than were fitted",
}


@dataclass(frozen=True)
class Form:
    """A form of an algorithm of a profile, and its fit to `points`. Only forms per hop have a `tree`."""

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
    def is_published(self) -> bool:
        """True for a published regression that predictions do not use."""
        return _is_published(self.values)

    @property
    def name(self) -> str:
        """The name of the form and its fit, such as `alpha-beta (linear), fitted to all sizes`."""
        name, fitted_to = str(self.values.get("form", "")), self.values.get("fitted_to")
        tree = f" ({self.tree})" if self.tree else ""
        return name + tree + (f", fitted to {fitted_to}" if fitted_to else "")

    @property
    def criterion(self) -> str:
        """The AICc; `too few points` for forms of a comparison that have none."""
        aicc = self.number("aicc")
        if aicc is not None:
            return f"{aicc:.1f}"
        is_compared = "points" in self.values and "fitted_to" not in self.values
        return "too few points" if is_compared else ""

    def number(self, key: str) -> float | None:
        return number_or_none(self.values.get(key))


def forms_of(label: str, what: Any, tree: str | None, values: Mapping[str, Any]) -> list[Form]:
    """Return the form of an algorithm and those that it was compared with, by points and AICc; without the
    first if there is one of its kind that was fitted to the same points as the others."""
    if not isinstance(what, Mapping) or not {"operation", "algorithm"} <= what.keys():
        return []
    listed = values.get("alternatives")
    others = (
        [_current(form) for form in listed if isinstance(form, Mapping)] if isinstance(listed, list) else []
    )
    points = [form.get("points") for form in others]
    others.sort(
        key=lambda form: (points.index(form.get("points")), number_or_none(form.get("aicc")) or np.inf)
    )
    return [
        Form(
            label,
            str(what["operation"]),
            str(what["algorithm"]),
            "" if _is_published(form) else tree or "",
            form,
        )
        for form in (others if not all(map(_is_published, others)) else [values, *others])
    ]


def _current(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form with its current name; Insaghi's were called `report-1` to `report-3`."""
    return {**form, "form": str(form.get("form", "")).replace("report-", PUBLISHED)}


def _is_published(values: Mapping[str, Any]) -> bool:
    return str(values.get("form", "")).startswith(PUBLISHED)


@dataclass(frozen=True)
class FormComparison:
    """The number of cases in which the forms per hop err less than published regressions `where`, and their
    median error.
    """

    where: str
    wins: int
    total: int
    median_error: float

    @property
    def is_mostly_better(self) -> bool:
        return 2 * self.wins > self.total


def compare_forms(forms: Iterable[Form]) -> list[FormComparison]:
    """Compare the forms of each algorithm by the errors that decide."""
    groups: dict[tuple[str, ...], list[Form]] = {}
    for form in forms:
        groups.setdefault((form.label, form.operation, form.algorithm, form.points), []).append(form)
    comparisons = []
    for key, where in DECIDING.items():
        wins = [win for group in groups.values() if (win := _wins(group, key)) is not None]
        if wins:
            known = [
                error
                for group in groups.values()
                for form in group
                if not form.is_published and (error := form.number(key)) is not None
            ]
            comparisons.append(FormComparison(where, sum(wins), len(wins), float(np.median(known))))
    return comparisons


def _wins(group: Sequence[Form], key: str) -> bool | None:
    """Return whether the form used for predictions has the smaller error; None if nothing can be compared."""
    used = [form for form in group if form.values.get("fitted_to")]
    used = used or [form for form in group if not form.is_published]
    ours = [error for form in used if (error := form.number(key)) is not None]
    others = [error for form in group if form.is_published and (error := form.number(key)) is not None]
    return min(ours) <= min(others) if ours and others else None
