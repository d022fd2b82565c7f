"""Writes results of a run as OpenMetrics text, for Prometheus: its node exporter reads it from a file."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from earlybird.data.plain_text import plain
from earlybird.data.results import Result


@dataclass(frozen=True)
class _Gauge:
    """A metric: its description, and the function that returns its value in a result, or None."""

    name: str
    unit: str
    help: str
    value: Callable[[Result], float | None]


_GAUGES = (
    _Gauge(
        "earlybird_time_seconds", "seconds", "Median over iterations, then over launches.",
        lambda result: result.time_s.value,
    ),
    _Gauge(
        "earlybird_time_low_seconds", "seconds", "Lower end of the interval of the time.",
        lambda result: result.time_s.low,
    ),
    _Gauge(
        "earlybird_time_high_seconds", "seconds", "Upper end of the interval of the time.",
        lambda result: result.time_s.high,
    ),
    _Gauge(
        "earlybird_bandwidth_bytes_per_second", "bytes_per_second",
        "Bytes per second that all receivers together receive.",
        lambda result: result.figures.get("bandwidth_bytes_per_s"),
    ),
    _Gauge(
        "earlybird_rate_messages_per_second", "messages_per_second",
        "Messages per second of all threads or processes.",
        lambda result: result.figures.get("rate_per_s"),
    ),
    _Gauge("earlybird_launches", "", "Launches with this point.", lambda result: result.launches),
    _Gauge(
        "earlybird_noisy_launches", "", "Launches in which the time did not converge.",
        lambda result: result.noisy,
    ),
)  # fmt: skip


def openmetrics_text(results: Sequence[Result], header: Mapping[str, Any]) -> str:
    """Return a gauge for each quantity, with a sample for each result; its configuration is in the labels.

    The text is also valid in the older text format of Prometheus, which the node exporter expects: it has no
    types but gauges and no timestamps. Instead `earlybird_run_start_time_seconds` states when the run began.

    Parameters
    ----------
    header : the `run.json` of the run.
    """
    lines = _family("earlybird_run_start_time_seconds", "seconds", "When the run began, in Unix time.")
    lines += [f"earlybird_run_start_time_seconds{_labels(_of_run(header))} {_started(header)}"]
    for gauge in _GAUGES:
        values = [(result, gauge.value(result)) for result in results]
        samples = [f"{gauge.name}{_labels(_of(one))} {value!r}" for one, value in values if value is not None]
        lines += [*_family(gauge.name, gauge.unit, gauge.help), *samples] if samples else []
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(name: str, unit: str, help: str) -> list[str]:
    return [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {help}"]


def _of_run(header: Mapping[str, Any]) -> dict[str, Any]:
    host = (header.get("machine") or {}).get("host")
    return {"run": header.get("id"), "host": host, "earlybird": header.get("earlybird")}


def _started(header: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(header.get("started"))).timestamp()
    except ValueError:
        return 0.0


def _of(result: Result) -> dict[str, Any]:
    return {
        "kernel": result.kernel, "quantity": result.quantity, "method": result.method, **result.config,
    }  # fmt: skip


def _labels(values: Mapping[str, Any]) -> str:
    """Return `{a="b",...}`: an empty value is the same as no label."""
    labels: dict[str, str] = {}
    for name, value in values.items():
        if value not in (None, ""):
            text = plain(str(value)).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            labels[_label_name(name, labels)] = text
    return "{" + ",".join(f'{name}="{text}"' for name, text in labels.items()) + "}"


def _label_name(name: str, taken: Collection[str]) -> str:
    """Return a name that the format allows, and that no other label has."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    name = name if re.match("[a-zA-Z]", name) else f"label_{name}"  # names with __ first are Prometheus' own
    while name in taken:
        name += "_"
    return name
