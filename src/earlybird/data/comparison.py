"""Comparison: measured seconds per rank and the predictions of each model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError

SCHEMA = "earlybird.comparison/1"


@dataclass(frozen=True, eq=False)
class Comparison:
    """`error` is equation (11) of Thune et al. 2023, `slowest_error` its signed slowest-rank counterpart.

    Attributes
    ----------
    measured_s : (P,) median over iterations, then over launches.
    predicted_s : model name -> (P,).
    extra : further keys of the file; `replay` puts provenance here (pattern_sha256, layout, run_id, notes).
    """

    measured_s: np.ndarray
    predicted_s: Mapping[str, np.ndarray]
    error: Mapping[str, float]
    slowest_error: Mapping[str, float]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "measured_s": self.measured_s.tolist(),
            "predicted_s": {model: times.tolist() for model, times in self.predicted_s.items()},
            "error": dict(self.error),
            "slowest_error": dict(self.slowest_error),
        } | dict(self.extra)


def load_comparison(path: str | Path) -> Comparison:
    return comparison_from_json(files.read_json(path, "comparison", SCHEMA), f"the comparison {path}")


def comparison_from_json(value: Mapping[str, Any], where: str = "the comparison") -> Comparison:
    """Build a Comparison from its JSON object; raises InputError when a part is missing or uneven."""
    try:
        measured_s = np.array(value["measured_s"], dtype=float)
        predicted_s = {model: np.array(times, dtype=float) for model, times in value["predicted_s"].items()}
        error = {model: float(value["error"][model]) for model in predicted_s}
        slowest_error = {model: float(value["slowest_error"][model]) for model in predicted_s}
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(
            f"{where} is incomplete ({problem}); make it again with `earlybird replay --profile`"
        ) from problem
    if measured_s.ndim != 1 or any(times.shape != measured_s.shape for times in predicted_s.values()):
        raise InputError(
            f"{where} has arrays of different lengths; make it again with `earlybird replay --profile`"
        )
    if not all(np.isfinite(times).all() for times in (measured_s, *predicted_s.values())):
        raise InputError(
            f"{where} has a time that is not a number; make it again with `earlybird replay --profile`"
        )
    known = {"schema", "measured_s", "predicted_s", "error", "slowest_error"}
    return Comparison(
        measured_s,
        predicted_s,
        error,
        slowest_error,
        {key: item for key, item in value.items() if key not in known},
    )
