"""Comparison: measured seconds per rank and the predictions of each model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import numpy as np

from earlybird.data import files
from earlybird.data.schema import OMIT_EMPTY, Extra, Ratio, Record, decode, require_not_negative

SCHEMA = "earlybird.comparison/1"


@dataclass(frozen=True, eq=False)
class EmptyExchange(Record):
    """The times of the same exchange with messages without data.

    Attributes
    ----------
    error, slowest_error : errors of `predicted_s`, as in a Comparison.
    measured_s : measured time per rank.
    predicted_s : predicted time of each model [over the empty exchange](../models.md#shared-cores).
    """

    measured_s: np.ndarray
    predicted_s: dict[str, np.ndarray]
    error: dict[str, Ratio]
    slowest_error: dict[str, Ratio]
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_not_negative(self, "measured_s", "predicted_s")


class ComparisonKeys(TypedDict, total=False):
    """The keys of a comparison that `replay` adds.

    Attributes
    ----------
    default_model, model_reason : the model that `predict` takes, and the reason.
    run_id : id of the replay.
    profile_id : id of the profile.
    pattern_sha256 : digest of the messages.
    layout : layout of the replay.
    oversubscribed : whether ranks shared cores.
    packing, packing_cache : layout of packed messages and the caches of the prediction, after `--packing`.
    packing_by : `mpi`, `loop` or `datatype`: what packed the messages.
    predicted_packing_by : `mpi` or `loop`: the packing whose costs are in the prediction.
    """

    notes: list[str]
    default_model: str | None
    model_reason: str | None
    run_id: Any
    profile_id: Any
    pattern_sha256: Any
    layout: Any
    oversubscribed: Any
    packing: str | None
    packing_cache: str | None
    packing_by: str | None
    predicted_packing_by: str | None


@dataclass(frozen=True, eq=False)
class Comparison(Record):
    """The measured and predicted times of an exchange.

    Attributes
    ----------
    empty : the exchange of empty messages, if it was replayed too.
    extra : further keys of the file; `replay` puts provenance here (pattern_sha256, layout, run_id, notes).
    measured_s : measured time per rank, the median over iterations, then over launches.
    predicted_s : predicted time per rank, by model.
    error : the relative error by model, see [models.md](../models.md#the-two-errors).
    slowest_error : the signed error of the slowest rank, by model.
    """

    schema: ClassVar[str] = SCHEMA
    key_types: ClassVar[Mapping[str, Any]] = {"extra": ComparisonKeys}

    measured_s: np.ndarray
    predicted_s: dict[str, np.ndarray]
    error: dict[str, Ratio]
    slowest_error: dict[str, Ratio]
    extra: Extra = field(default_factory=dict)
    empty: EmptyExchange | None = field(default=None, metadata=OMIT_EMPTY)

    def __post_init__(self) -> None:
        require_not_negative(self, "measured_s", "predicted_s")
        if not len(self.measured_s):
            raise ValueError("measured_s has no rank; give one time per rank")
        if any(times_s.shape != (len(self.measured_s),) for times_s in self.predicted_s.values()):
            raise ValueError("measured_s and predicted_s have different lengths")
        if not self.predicted_s.keys() == self.error.keys() == self.slowest_error.keys():
            raise ValueError("predicted_s, error and slowest_error have different models")
        if self.empty is not None and len(self.empty.measured_s) != len(self.measured_s):
            raise ValueError("measured_s and empty.measured_s have different lengths")

    def describe_empty(self) -> str:
        """Return a sentence about the part of its time that the exchange takes without data; "" if that is
        unknown."""
        if self.empty is None:
            return ""
        share = self.empty.measured_s.max() / self.measured_s.max()
        return (
            f"with empty messages the exchange takes {share:.0%} of its time: latencies and, where ranks "
            "share cores, the wait for one"
        )


def load_comparison(path: str | Path) -> Comparison:
    return comparison_from_json(files.read_json(path, "comparison", SCHEMA), f"the comparison {path}")


def comparison_from_json(value: Mapping[str, Any], where: str = "the comparison") -> Comparison:
    """Build a Comparison from its JSON object; raise InputError if a part is missing or lengths differ."""
    return decode(value, Comparison, where, "make it again with `earlybird replay --profile`")
