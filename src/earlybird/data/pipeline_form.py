"""The fitted model of one method to send a buffer in partitions: an entry of a profile's `forms`."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.files import with_present_keys
from earlybird.data.layout import LEVELS
from earlybird.data.profile import Profile
from earlybird.data.units import MAX_BYTES

FORM = "joined"
RANGES = ("size_bytes", "partitions", "gamma_s_per_byte")


@dataclass(frozen=True)
class JoinedProtocol:
    """What messages of `min_bytes` and more cost: seconds once, seconds each, bytes per second."""

    min_bytes: int
    latency_s: float
    overhead_s: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class JoinedParameters:
    """Parameters of the joined model, see `models.pipelined.PipelineCosts`.

    Attributes
    ----------
    messages : "one", "each", "planned", or the bytes that whole partitions are aggregated up to.
    burst_bytes, post_burst_s_per_byte : None and 0 if every byte of a buffer costs the same.
    """

    messages: str | int
    protocols: tuple[JoinedProtocol, ...]
    per_partition_s: float = 0.0
    overlap: float = 1.0
    burst_bytes: float | None = None
    post_burst_s_per_byte: float = 0.0

    def columns(self) -> dict[str, Any]:
        """The parameters as arrays over protocols and as numbers, by their names in
        `models.pipelined.PipelineCosts`."""
        return {
            "min_bytes": np.array([one.min_bytes for one in self.protocols]),
            "latency_s": np.array([one.latency_s for one in self.protocols]),
            "overhead_s": np.array([one.overhead_s for one in self.protocols]),
            "s_per_byte": np.array([1 / one.bandwidth_bytes_per_s for one in self.protocols]),
            "per_partition_s": self.per_partition_s,
            "overlap": self.overlap,
            "burst_bytes": math.inf if self.burst_bytes is None else self.burst_bytes,
            "post_burst_s_per_byte": self.post_burst_s_per_byte,
        }

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "messages": self.messages,
            "protocols": [vars(protocol).copy() for protocol in self.protocols],
            "per_partition_s": self.per_partition_s,
            "overlap": self.overlap,
        }
        if self.burst_bytes is not None:
            value |= {"burst_bytes": self.burst_bytes, "post_burst_s_per_byte": self.post_burst_s_per_byte}
        return value


@dataclass(frozen=True)
class PipelineForm:
    """One method's parameters and their range of validity.

    Attributes
    ----------
    vcis : communication contexts requested from the MPI; None for its default.
    range : each of RANGES to the lowest and highest measured.
    replicates : parameters fitted to resampled launches; replicate k of every method of a profile uses the
        same draw.
    extra : keys beside these, such as `held_out_error`; they are preserved.
    """

    method: str
    level: str
    threads: int
    parameters: JoinedParameters
    vcis: int | None = None
    range: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    replicates: tuple[JoinedParameters, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        what: dict[str, Any] = {
            "operation": "pipeline",
            "method": self.method,
            "level": self.level,
            "threads": self.threads,
        }
        value = {
            "what": what if self.vcis is None else what | {"vcis": self.vcis},
            "form": FORM,
            "parameters": self.parameters.to_json(),
            "range": {name: list(bounds) for name, bounds in self.range.items()},
        } | dict(self.extra)
        if self.replicates:
            value["replicates"] = [one.to_json() for one in self.replicates]
        return value


def pipeline_forms(profile: Profile) -> list[PipelineForm]:
    """The joined forms of a profile; InputError if one is incomplete or has an invalid number."""
    where = f"the profile {profile.id or '(no id)'}"
    return [
        pipeline_form_from_json(form, f"{where}, form {k}")
        for k, form in enumerate(profile.forms)
        if _is_pipeline(form)
    ]


def pipeline_form_from_json(value: Mapping[str, Any], where: str = "the form") -> PipelineForm:
    """Build a PipelineForm from its JSON object, checking every number."""
    what = with_present_keys(value["what"])
    method, level, threads, vcis = (what.get(key) for key in ("method", "level", "threads", "vcis"))
    if not isinstance(method, str) or level not in LEVELS:
        raise InputError(
            f"{where} is of method {method!r} and level {level!r}; levels are {', '.join(LEVELS)}"
        )
    for name, count in (
        ("threads", 1 if threads is None else threads),
        ("vcis", 1 if vcis is None else vcis),
    ):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{where}: {name} is {count!r}; give 1 or more")
    replicates = value.get("replicates", [])
    if not isinstance(replicates, list):
        raise InputError(f"{where}: 'replicates' must be a JSON list")
    ranges = value.get("range", {})
    for name in RANGES:
        if not isinstance(ranges, dict) or not _is_pair(ranges.get(name)):
            raise InputError(f"{where}: 'range' must give {name} as [lowest, highest]")
    known = {"what", "form", "parameters", "range", "replicates"}
    return PipelineForm(
        method,
        level,
        1 if threads is None else threads,
        _parameters(value.get("parameters"), where),
        vcis,
        {name: tuple(bounds) for name, bounds in ranges.items()},
        tuple(_parameters(one, f"{where}, replicate {k}") for k, one in enumerate(replicates)),
        {key: item for key, item in value.items() if key not in known},
    )


def _is_pipeline(form: Any) -> bool:
    what = form.get("what") if isinstance(form, dict) else None
    return isinstance(what, dict) and what.get("operation") == "pipeline" and form.get("form") == FORM


def _parameters(value: Any, where: str) -> JoinedParameters:
    if not isinstance(value, dict) or not isinstance(value.get("protocols"), list) or not value["protocols"]:
        raise InputError(f"{where}: 'parameters' must hold 'messages' and a list 'protocols'")
    value = with_present_keys(value)
    messages = value.get("messages")
    if messages not in ("one", "each", "planned") and not _is_count(messages):
        raise InputError(
            f"{where}: messages is {messages!r}; give one, each, planned or the bytes to aggregate up to"
        )
    protocols = tuple(_protocol(one, f"{where}, protocol {k}") for k, one in enumerate(value["protocols"]))
    starts = [protocol.min_bytes for protocol in protocols]
    if starts[0] != 0 or starts != sorted(set(starts)):
        raise InputError(f"{where}: min_bytes is {starts}; it must begin at 0 and ascend")
    cached = value.get("burst_bytes")
    overlap = _number(value, "overlap", where, 1.0)
    if overlap > 1:
        raise InputError(f"{where}: overlap is {overlap}; give 0 to 1")
    return JoinedParameters(
        messages,
        protocols,
        _number(value, "per_partition_s", where, 0.0),
        overlap,
        None if cached is None else _number(value, "burst_bytes", where),
        _number(value, "post_burst_s_per_byte", where, 0.0),
    )


def _protocol(value: Any, where: str) -> JoinedProtocol:
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object; give latency_s and bandwidth_bytes_per_s")
    min_bytes = value.get("min_bytes", 0)
    if isinstance(min_bytes, bool) or not isinstance(min_bytes, int) or not 0 <= min_bytes <= MAX_BYTES:
        raise InputError(f"{where}: min_bytes is {min_bytes!r}; give whole bytes, 0 to {MAX_BYTES}")
    bandwidth = _number(value, "bandwidth_bytes_per_s", where)
    if bandwidth == 0:
        raise InputError(f"{where}: bandwidth_bytes_per_s is 0; give a rate above 0")
    return JoinedProtocol(
        min_bytes,
        _number(value, "latency_s", where),
        _number(value, "overhead_s", where, 0.0),
        bandwidth,
    )


def _number(value: Mapping[str, Any], name: str, where: str, default: float | None = None) -> float:
    number = value.get(name, default)
    sound = isinstance(number, int | float) and not isinstance(number, bool)
    if not sound or not 0 <= number <= sys.float_info.max or math.isnan(number):
        raise InputError(f"{where}: {name} is {number!r}; give a number, 0 or more")
    return float(number)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in value)
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_BYTES
