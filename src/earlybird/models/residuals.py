"""Correct a model near measured points by its residuals, and say how far corrected predictions are off."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of one model, interpolated between the points by inverse squared distance.

    At a measured point the corrected prediction is the measured value (Shepard's interpolation). Far from all
    points it is that of the model: the correction is weighed against a correction of 0 at twice the typical
    distance of neighbouring points, which is at least 1.

    Attributes
    ----------
    where : (n, d) coordinates of the measured points, in octaves of sizes and counts.
    log_ratio : (n,) logarithms of measured value / prediction of the model.
    """

    where: np.ndarray
    log_ratio: np.ndarray

    def correction(self, where: np.ndarray) -> float:
        """Return the logarithm by which a prediction at `where`, (d,), is corrected."""
        squared = ((self.where - where) ** 2).sum(axis=1)
        return _interpolated(squared, self.log_ratio, self._spacing)

    def left_out_errors(self) -> np.ndarray:
        """Return (n,) log(measured / corrected prediction) of every point, corrected by the other points
        only.
        """
        others = ~np.eye(len(self.where), dtype=bool)
        return np.array(
            [
                value - _interpolated(self._squared[k, others[k]], self.log_ratio[others[k]], self._spacing)
                for k, value in enumerate(self.log_ratio)
            ]
        )

    @cached_property
    def _squared(self) -> np.ndarray:
        """The (n, n) squared distances."""
        return ((self.where[:, None] - self.where[None]) ** 2).sum(axis=-1)

    @cached_property
    def _spacing(self) -> float:
        """The median distance of a point to its nearest neighbour, squared; at least 1."""
        apart = np.where(self._squared > 0, self._squared, np.inf)
        nearest = apart.min(axis=1, initial=np.inf)
        nearest = nearest[np.isfinite(nearest)]
        return max(float(np.median(nearest)), 1.0) if len(nearest) else 1.0


def _interpolated(squared: np.ndarray, log_ratio: np.ndarray, spacing: float) -> float:
    if (at := squared == 0).any():
        return float(log_ratio[at].mean())
    weights = 1 / squared
    return float(weights @ log_ratio / (weights.sum() + 1 / (4 * spacing)))


def prediction_bound(errors: np.ndarray, confidence: float = 0.95) -> float:
    """Return the bound below which the absolute error of a further prediction stays with probability
    `confidence`.

    From 19 errors on (at 0.95) it is the quantile of conformal prediction, the k-th smallest of n absolute
    errors with k = ceil((n + 1)*confidence); with fewer errors this quantile does not exist, and the bound is
    the largest error, or the root mean square times the quantile of Student's t with n degrees of freedom if
    that is larger. Errors are those of points that were left out of the prediction; the bound is inf if there
    are none."""
    absolute = np.sort(np.abs(np.asarray(errors, dtype=float)))
    n = len(absolute)
    if n == 0:
        return math.inf
    k = math.ceil((n + 1) * confidence)
    if k <= n:
        return float(absolute[k - 1])
    from scipy.special import stdtrit  # late, and of scipy.special: scipy.stats takes a second to import

    spread = float(np.sqrt((absolute**2).mean())) * float(stdtrit(n, (1 + confidence) / 2))
    return max(float(absolute[-1]), spread)
