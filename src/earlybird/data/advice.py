"""Advice: alternatives ranked by predicted time, and the sizes at which the best one changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earlybird.data import files
from earlybird.data.errors import InputError

SCHEMA = "earlybird.advice/1"


@dataclass(frozen=True)
class Alternative:
    """One method for the requested operation.

    Attributes
    ----------
    method : its name.
    do : the setting, command or program change that selects it.
    gain : time of `Advice.baseline` / time of this alternative; None if unknown.
    time_interval_s, gain_interval : 95 % (low, high) from the parameters only; None if the profile has no
        replicates.
    extra : further values, such as the number of partitions.
    """

    method: str
    time_s: float
    gain: float | None
    do: str
    time_interval_s: tuple[float, float] | None = None
    gain_interval: tuple[float, float] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        value = {"method": self.method, "time_s": self.time_s, "gain": self.gain, "do": self.do}
        for name in ("time_interval_s", "gain_interval"):
            if (interval := getattr(self, name)) is not None:
                value[name] = list(interval)
        return value | dict(self.extra)


@dataclass(frozen=True)
class Stretch:
    """Sizes from `from_bytes` to `to_bytes` for which one method is advised; a crossover lies between two."""

    from_bytes: int
    to_bytes: int
    method: str
    do: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        value = {name: getattr(self, name) for name in ("from_bytes", "to_bytes", "method", "do")}
        return value | dict(self.extra)


@dataclass(frozen=True)
class Advice:
    """The alternatives of an `operation`, best first, for what was `asked`."""

    operation: str
    asked: Mapping[str, Any]
    baseline: str
    ranked: tuple[Alternative, ...]
    stretches: tuple[Stretch, ...] = ()
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
            "crossovers": [stretch.to_json() for stretch in self.stretches],
            "profile_id": self.profile_id,
            "notes": list(self.notes),
        } | dict(self.extra)


def load_advice(path: str | Path) -> Advice:
    return advice_from_json(files.read_json(path, "advice", SCHEMA), f"the advice {path}")


def advice_from_json(value: Mapping[str, Any], where: str = "the advice") -> Advice:
    """Build an Advice from its JSON object; raises InputError when a part is missing."""
    try:
        ranked = tuple(map(_alternative, value["ranked"]))
        stretches = tuple(map(_stretch, value.get("crossovers", ())))
        operation, asked = str(value["operation"]), dict(value["asked"])
        baseline, notes = str(value.get("baseline", "")), tuple(map(str, value.get("notes", ())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} is incomplete ({error!r}); make it again with `earlybird advise --json`"
        ) from error
    if not ranked:
        raise InputError(f"{where} has no ranked alternative; make it again with `earlybird advise --json`")
    known = {"schema", "operation", "asked", "baseline", "ranked", "crossovers", "profile_id", "notes"}
    return Advice(
        operation,
        asked,
        baseline,
        ranked,
        stretches,
        value.get("profile_id", ""),
        notes,
        {key: item for key, item in value.items() if key not in known},
    )


def _alternative(value: Mapping[str, Any]) -> Alternative:
    value = files.with_present_keys(value)
    known = {"method", "time_s", "gain", "do", "time_interval_s", "gain_interval"}
    gain = value.get("gain")
    return Alternative(
        str(value["method"]),
        float(value["time_s"]),
        None if gain is None else float(gain),
        str(value["do"]),
        _interval(value.get("time_interval_s")),
        _interval(value.get("gain_interval")),
        {key: item for key, item in value.items() if key not in known},
    )


def _stretch(value: Mapping[str, Any]) -> Stretch:
    value = files.with_present_keys(value)
    known = {"from_bytes", "to_bytes", "method", "do"}
    return Stretch(
        int(value["from_bytes"]),
        int(value["to_bytes"]),
        str(value["method"]),
        str(value["do"]),
        {key: item for key, item in value.items() if key not in known},
    )


def _interval(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    low, high = value
    return float(low), float(high)
