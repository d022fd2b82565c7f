"""Comparison: measured seconds per rank and the predictions of each model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from earlybird.data import files
from earlybird.data.schema import Extra, Number, Record, decode

SCHEMA = "earlybird.comparison/1"


@dataclass(frozen=True, eq=False)
class Comparison(Record):
    """`error` is equation (11) of Thune et al. 2023, `slowest_error` its signed slowest-rank counterpart.

    Attributes
    ----------
    measured_s : (P,) median over iterations, then over launches.
    predicted_s : model name -> (P,).
    extra : further keys of the file; `replay` puts provenance here (pattern_sha256, layout, run_id, notes).
    """

    schema: ClassVar[str] = SCHEMA

    measured_s: np.ndarray
    predicted_s: dict[str, np.ndarray]
    error: dict[str, Number]
    slowest_error: dict[str, Number]
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(times_s.shape != (len(self.measured_s),) for times_s in self.predicted_s.values()):
            raise ValueError("measured_s and predicted_s have different lengths")
        if not self.predicted_s.keys() == self.error.keys() == self.slowest_error.keys():
            raise ValueError("predicted_s, error and slowest_error have different models")


def load_comparison(path: str | Path) -> Comparison:
    return comparison_from_json(files.read_json(path, "comparison", SCHEMA), f"the comparison {path}")


def comparison_from_json(value: Mapping[str, Any], where: str = "the comparison") -> Comparison:
    """Build a Comparison from its JSON object; raises InputError when a part is missing or uneven."""
    return decode(value, Comparison, where, "make it again with `earlybird replay --profile`")
