"""Advice: alternatives ranked by what was measured or predicted, and the sizes at which the best one
changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.results import Estimate

SCHEMA = "earlybird.advice/1"
# What the values of an alternative are based on: this point was measured, lies within the measured range, or
# outside of it.
MEASURED, MODEL, EXTRAPOLATED = "measured", "model", "extrapolated"
_ESTIMATES = ("time", "speed_up", "predicted_speed_up", "measured_time", "measured_speed_up")


@dataclass(frozen=True)
class Alternative:
    """One method for the requested operation.

    Attributes
    ----------
    method : its name.
    action : the setting, command or program change that selects it.
    time_s, speed_up : with 95 % intervals: the measured ones where this point was measured, else of the
        model, corrected by the measured points around it. `speed_up` is over `Advice.baseline`; None if
        unknown.
    basis : MEASURED, MODEL or EXTRAPOLATED.
    predicted_speed_up : by the model alone.
    measured_time_s, measured_speed_up : None if this point was not measured; `measured_state` tells whether
        the times converged.
    extra : further values, such as the number of partitions.
    """

    method: str
    time_s: Estimate
    speed_up: Estimate | None
    action: str
    basis: str = MODEL
    predicted_speed_up: Estimate | None = None
    measured_time_s: Estimate | None = None
    measured_speed_up: Estimate | None = None
    measured_state: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"method": self.method, "basis": self.basis}
        value |= _estimate_to_json("time", self.time_s, "_s")
        value |= _estimate_to_json("speed_up", self.speed_up)
        value |= _estimate_to_json("measured_time", self.measured_time_s, "_s")
        value |= _estimate_to_json("measured_speed_up", self.measured_speed_up)
        value |= {"measured_state": self.measured_state} if self.measured_state else {}
        value |= _estimate_to_json("predicted_speed_up", self.predicted_speed_up)
        return value | {"action": self.action} | dict(self.extra)


def _estimate_to_json(name: str, estimate: Estimate | None, unit: str = "") -> dict[str, Any]:
    if estimate is None:
        return {}
    interval = {f"{name}_interval{unit}": [estimate.low, estimate.high]}
    return {f"{name}{unit}": estimate.value} | (interval if estimate.low < estimate.high else {})


@dataclass(frozen=True)
class SizeRange:
    """Sizes from `from_bytes` to `to_bytes` for which one method is advised; a crossover lies between two."""

    from_bytes: int
    to_bytes: int
    method: str
    action: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        value = {name: getattr(self, name) for name in ("from_bytes", "to_bytes", "method", "action")}
        return value | dict(self.extra)


@dataclass(frozen=True)
class Advice:
    """The alternatives of an `operation`, best first, for what was `asked`."""

    operation: str
    asked: Mapping[str, Any]
    baseline: str
    ranked: tuple[Alternative, ...]
    size_ranges: tuple[SizeRange, ...] = ()
    profile_id: str = ""
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "operation": self.operation,
            "asked": dict(self.asked),
            "baseline": self.baseline,
            "ranked": [alternative.to_json() for alternative in self.ranked],
            "size_ranges": [size_range.to_json() for size_range in self.size_ranges],
            "profile_id": self.profile_id,
            "notes": list(self.notes),
        } | dict(self.extra)


def load_advice(path: str | Path) -> Advice:
    return advice_from_json(files.read_json(path, "advice", SCHEMA), f"the advice {path}")


def advice_from_json(value: Mapping[str, Any], where: str = "the advice") -> Advice:
    """Build an Advice from its JSON object; raises InputError when a part is missing."""
    try:
        value = files.with_current_keys(value)
        ranked = tuple(map(_alternative, value["ranked"]))
        size_ranges = tuple(map(_size_range, value.get("size_ranges", ())))
        operation, asked = str(value["operation"]), dict(value["asked"])
        baseline, notes = str(value.get("baseline", "")), tuple(map(str, value.get("notes", ())))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{where} is incomplete ({error!r}); make it again with `earlybird advise --json`"
        ) from error
    if not ranked:
        raise InputError(f"{where} has no ranked alternative; make it again with `earlybird advise --json`")
    known = {"schema", "operation", "asked", "baseline", "ranked", "size_ranges", "profile_id", "notes"}
    return Advice(
        operation,
        asked,
        baseline,
        ranked,
        size_ranges,
        value.get("profile_id", ""),
        notes,
        {key: item for key, item in value.items() if key not in known},
    )


def _alternative(value: Mapping[str, Any]) -> Alternative:
    value = files.with_current_keys(value)
    time_s = _estimate(value, "time", "_s")
    if time_s is None:
        raise KeyError("time_s")
    known = {"method", "action", "basis", "measured_state"}
    known |= {
        f"{name}{middle}{unit}" for name in _ESTIMATES for middle in ("", "_interval") for unit in ("", "_s")
    }
    return Alternative(
        str(value["method"]),
        time_s,
        _estimate(value, "speed_up"),
        str(value["action"]),
        str(value.get("basis", MODEL)),
        _estimate(value, "predicted_speed_up"),
        _estimate(value, "measured_time", "_s"),
        _estimate(value, "measured_speed_up"),
        str(value.get("measured_state", "")),
        {key: item for key, item in value.items() if key not in known},
    )


def _size_range(value: Mapping[str, Any]) -> SizeRange:
    value = files.with_current_keys(value)
    known = {"from_bytes", "to_bytes", "method", "action"}
    return SizeRange(
        int(value["from_bytes"]),
        int(value["to_bytes"]),
        str(value["method"]),
        str(value["action"]),
        {key: item for key, item in value.items() if key not in known},
    )


def _estimate(value: Mapping[str, Any], name: str, unit: str = "") -> Estimate | None:
    middle = value.get(f"{name}{unit}")
    if middle is None:
        return None
    low, high = value.get(f"{name}_interval{unit}") or (middle, middle)
    return Estimate(float(middle), float(low), float(high))
