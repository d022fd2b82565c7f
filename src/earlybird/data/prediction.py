"""Prediction: predicted seconds per rank of an exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError

SCHEMA = "earlybird.prediction/1"


@dataclass(frozen=True, eq=False)
class Prediction:
    """Per-rank times of one model, all arrays of shape (P,) in seconds.

    time_s = intra_node_s + inter_node_s, both with their tau and send waits; receive_s is without tau.
    """

    model: str
    receive_s: np.ndarray
    intra_node_s: np.ndarray
    inter_node_s: np.ndarray
    profile_id: str = ""
    pattern_sha256: str = ""
    time_interval_s: np.ndarray | None = None  # (P, 2)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def time_s(self) -> np.ndarray:
        return self.intra_node_s + self.inter_node_s

    @property
    def slowest_rank(self) -> int:
        """The lowest rank with the largest predicted time."""
        return int(np.argmax(self.time_s))

    def to_json(self) -> dict[str, Any]:
        value = {
            "schema": SCHEMA,
            "model": self.model,
            "ranks": len(self.time_s),
            "time_s": self.time_s.tolist(),
            "receive_s": self.receive_s.tolist(),
            "intra_node_s": self.intra_node_s.tolist(),
            "inter_node_s": self.inter_node_s.tolist(),
            "slowest_rank": self.slowest_rank,
            "profile_id": self.profile_id,
            "pattern_sha256": self.pattern_sha256,
        }
        if self.time_interval_s is not None:
            value["time_interval_s"] = self.time_interval_s.tolist()
        return value | dict(self.extra)


def load_prediction(path: str | Path) -> Prediction:
    return prediction_from_json(files.read_json(path, "prediction", SCHEMA), f"the prediction {path}")


def prediction_from_json(value: Mapping[str, Any], where: str = "the prediction") -> Prediction:
    """Build a Prediction from its JSON object; raises InputError on a missing or uneven array."""
    try:
        arrays = {
            name: np.array(value[name], dtype=float) for name in ("receive_s", "intra_node_s", "inter_node_s")
        }
        model = str(value["model"])
        interval = value.get("time_interval_s")
        interval = None if interval is None else np.array(interval, dtype=float)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} is incomplete ({error}); make it again with `earlybird predict --json`"
        ) from error
    if len({array.shape for array in arrays.values()}) != 1 or arrays["receive_s"].ndim != 1:
        raise InputError(
            f"{where} has arrays of different lengths; make it again with `earlybird predict --json`"
        )
    if interval is not None and interval.shape != (len(arrays["receive_s"]), 2):
        raise InputError(
            f"{where} needs one [low, high] per rank; make it again with `earlybird predict --json`"
        )
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError(
            f"{where} has a time that is not a number; make it again with `earlybird predict --json`"
        )
    derived = {
        "schema",
        "model",
        "ranks",
        "time_s",
        "slowest_rank",
        "profile_id",
        "pattern_sha256",
        "time_interval_s",
    }
    return Prediction(
        model=model,
        **arrays,
        profile_id=value.get("profile_id", ""),
        pattern_sha256=value.get("pattern_sha256", ""),
        time_interval_s=interval,
        extra={key: item for key, item in value.items() if key not in derived and key not in arrays},
    )
