"""Errors of a form of collectives outside its fit: at other process counts and sizes, and beyond them."""

from dataclasses import dataclass

import numpy as np

from earlybird.fit.collective_search import Fit, Points, search
from earlybird.fit.stepwise import errors_left_out, relative_errors


@dataclass(frozen=True, eq=False)
class Judgement:
    """A form and its errors: (n,) relative errors of the fit, at process counts and at sizes left out in
    turn, and above half of the largest process count, for a form fitted below; nan where undefined.
    """

    points: Points
    found: Fit
    error: np.ndarray
    held_out_error: np.ndarray
    held_out_error_sizes: np.ndarray
    extrapolation_error: np.ndarray

    def medians(self, chosen: np.ndarray | None = None) -> dict[str, float]:
        """Return the median of each error over the points `chosen`, by name; errors without a value are
        omitted.
        """
        names = ("error", "held_out_error", "held_out_error_sizes", "extrapolation_error")
        errors = {name: getattr(self, name) for name in names}
        errors = {name: error if chosen is None else error[chosen] for name, error in errors.items()}
        return {
            name: float(np.median(error[~np.isnan(error)]))
            for name, error in errors.items()
            if not np.isnan(error).all()
        }


def judge(points: Points, structure: str, gamma: float = 0.0) -> Judgement:
    """Search a form for all points, and another one without each part that is left out."""

    def errors_of(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        left_out = points.only(test)
        found = search(points.only(train), structure, gamma)
        return relative_errors(found.predict_s(left_out), left_out.time_s)

    found = search(points, structure, gamma)
    extrapolation_error = np.full(len(points.time_s), np.nan)
    if split := extrapolation_split(points.ranks):
        extrapolation_error[split[1]] = errors_of(*split)
    return Judgement(
        points,
        found,
        relative_errors(found.predict_s(points), points.time_s),
        errors_left_out(points.ranks, errors_of),
        errors_left_out(points.size_bytes, errors_of),
        extrapolation_error,
    )


def extrapolation_split(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the masks of the points to fit, with at most half of the largest process count, and of the
    points above; None if fewer than two process counts are left to fit.
    """
    small = ranks <= ranks.max() / 2
    return (small, ~small) if len(np.unique(ranks[small])) >= 2 else None
