"""Prediction: predicted seconds per rank of an exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.schema import OMIT_EMPTY, Extra, Record, decode, require_not_negative
from earlybird.data.units import MAX_S

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "earlybird.prediction/1"


class PredictionKeys(TypedDict, total=False):
    """The keys of a prediction that options of `predict` add.

    Attributes
    ----------
    share : `message` or `process`, if the option made a difference.
    mixed : `per-level` or `union`, if the option made a difference.
    combine : `overlap`, if the option made a difference.
    packing : layout of the data of packed messages, after `--packing`.
    packing_cache : `hot` or `cold`: the state of the caches, after `--packing`.
    packing_by : `mpi` or `loop`: what packs the messages, after `--packing`.
    machine : the description that `--machine` gave; then `model` is `links`, `profile_id` is empty, and one
        of the two parts of a rank's time is 0.
    """

    notes: list[str]
    model_reason: str | None
    share: str | None
    mixed: str | None
    combine: str | None
    packing: str | None
    packing_cache: str | None
    packing_by: str | None
    machine: Any


@dataclass(frozen=True, eq=False)
class Prediction(Record):
    """The times of the ranks by one model. The file also has values that are derived when it is read:
    `ranks`, `time_s` (`intra_node_s` + `inter_node_s` - `overlap_s` + `packing_s`) and `slowest_rank`, the
    lowest rank with the largest time.

    Attributes
    ----------
    receive_s : time to receive, without latencies.
    intra_node_s, inter_node_s : the parts of the time, with latencies and waiting for sends.
    time_interval_s : a pair per rank, if the profile has replicates.
    overlap_s : the overlap of the two parts, after `--combine overlap`.
    packing_s : time of packing and unpacking, after `--packing`.
    """

    schema: ClassVar[str] = SCHEMA
    key_types: ClassVar[Mapping[str, Any]] = {"extra": PredictionKeys}

    model: str
    receive_s: np.ndarray
    intra_node_s: np.ndarray
    inter_node_s: np.ndarray
    profile_id: str = ""
    pattern_sha256: str = ""
    time_interval_s: np.ndarray | None = None  # (P, 2)
    extra: Extra = field(default_factory=dict)
    layout: str = field(default="", metadata=OMIT_EMPTY)  # `Layout.text`
    overlap_s: np.ndarray | None = None
    packing_s: np.ndarray | None = None

    def __post_init__(self) -> None:
        require_not_negative(
            self, "receive_s", "intra_node_s", "inter_node_s", "overlap_s", "packing_s", "time_interval_s"
        )
        shape = (len(self.receive_s),)
        if not len(self.receive_s):
            raise ValueError("receive_s has no rank; give one time per rank")
        if not self.receive_s.shape == self.intra_node_s.shape == self.inter_node_s.shape == shape:
            raise ValueError("receive_s, intra_node_s and inter_node_s have different lengths")
        for name in ("overlap_s", "packing_s"):
            part_s = getattr(self, name)
            if part_s is not None and part_s.shape != shape:
                raise ValueError(f"{name} must give one time per rank")
        if self.time_interval_s is not None and self.time_interval_s.shape != (*shape, 2):
            raise ValueError("time_interval_s must give one [low, high] per rank")

    def require_possible(self) -> "Prediction":
        """Return the prediction; raise InputError if a rank would take longer than any program runs, or no
        time at all."""
        times_s = np.concatenate([self.receive_s, self.intra_node_s, self.inter_node_s, self.time_s])
        # Not the largest: a comparison with what is no number is false.
        if not (times_s <= MAX_S).all():
            raise InputError(
                f"a rank would take longer than a century ({MAX_S:g} s); the latencies are too large, or "
                "the bandwidths too small, for messages of these sizes: give those of a machine that exists"
            )
        return self

    @property
    def time_s(self) -> np.ndarray:
        both_s = self.intra_node_s + self.inter_node_s
        if self.overlap_s is not None:
            both_s = both_s - self.overlap_s
        return both_s if self.packing_s is None else both_s + self.packing_s

    @property
    def notes(self) -> list[str]:
        """Remarks on where the prediction is outside the measured range, a sentence each."""
        return list(self.extra.get("notes", ()))

    @property
    def slowest_rank(self) -> int:
        """The lowest rank with the largest predicted time."""
        return int(np.argmax(self.time_s))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the arrays of shape (P,) by name: time_s, receive_s, intra_node_s, inter_node_s, and
        overlap_s, packing_s, time_low_s and time_high_s if they exist."""
        columns = {
            name: getattr(self, name) for name in ("time_s", "receive_s", "intra_node_s", "inter_node_s")
        }
        parts = {"overlap_s": self.overlap_s, "packing_s": self.packing_s}
        columns |= {name: part_s for name, part_s in parts.items() if part_s is not None}
        if self.time_interval_s is not None:
            columns |= {"time_low_s": self.time_interval_s[:, 0], "time_high_s": self.time_interval_s[:, 1]}
        return columns

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each rank with `columns`."""
        import pandas as pd

        return pd.DataFrame(self.columns()).rename_axis("rank")

    def to_json(self) -> dict[str, Any]:
        derived = {
            "ranks": len(self.time_s),
            "time_s": self.time_s.tolist(),
            "slowest_rank": self.slowest_rank,
        }
        return super().to_json() | derived


def load_prediction(path: str | Path) -> Prediction:
    return prediction_from_json(files.read_json(path, "prediction", SCHEMA), f"the prediction {path}")


def prediction_from_json(value: Mapping[str, Any], where: str = "the prediction") -> Prediction:
    """Build a Prediction from its JSON object; raise InputError for a missing or uneven array."""
    given = {key: item for key, item in value.items() if key not in ("ranks", "time_s", "slowest_rank")}
    return decode(given, Prediction, where, "make it again with `earlybird predict --json`")
