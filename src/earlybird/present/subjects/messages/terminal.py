"""Prints the parameters of a profile for `fit` and `show`."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.profile import Profile, Protocol
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.notation import percent_text, range_text
from earlybird.present.core.table import Column, Table, text_table
from earlybird.present.render.data import print_data
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.collectives.terminal import print_forms

_CSV = ("level", "protocol", "min_bytes", "latency_s", "latency_low_s", "latency_high_s", "n",
        "bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s",
        "held_out_error", "held_out_error_n", "sender_waits", "sender_waits_measured",
        "buffered_bytes")  # fmt: skip
_LEVEL = ("level", "protocol", "from", "sender waits", "latency", "95 %", "N", "bandwidth", "95 %",
          "held-out size", "held-out N")  # fmt: skip
_PIPELINE = (
    Column("pipelines", lambda form: form.level),
    Column("method", lambda form: form.method),
    Column("threads", lambda form: form.threads),
    Column("contexts", lambda form: form.vcis or ""),
    Column("messages", lambda form: _messages(form.parameters.messages)),
    Column("protocols", lambda form: len(form.parameters.protocols)),
    Column("error", lambda form: percent_text(form.extra.get("error"))),
    Column("held-out partitions", lambda form: percent_text(form.extra.get("held_out_error"))),
    Column("held-out size", lambda form: percent_text(form.extra.get("held_out_error_sizes"))),
)
_CHOICE = (
    Column("level", lambda choice: choice["level"]),
    Column("segments", lambda choice: choice["segments"]),
    Column("from", lambda choice: ", ".join(map(format_bytes, choice["min_bytes"]))),
    Column("parameters", lambda choice: choice["parameters"]),
    Column("criterion", lambda choice: f"{choice['criterion']:.1f}"),
    Column("in-sample error", lambda choice: percent_text(choice["in_sample_error"])),
    Column("held-out, same switches", lambda choice: percent_text(choice["kept_switches_error"])),
    Column("held-out size", lambda choice: percent_text(choice["held_out_error"])),
    Column("chosen", lambda choice: "yes" if choice["chosen"] else ""),
)


def print_profile(profile: Profile, format: str, choices: Sequence[Mapping[str, Any]] = ()) -> None:
    """Print a profile as JSON, or its parameters; `choices` are the protocols it was chosen from."""
    if print_data(format, profile.to_json(), _records(profile), _CSV):
        return
    if profile.levels:
        print_table(
            text_table("", _LEVEL, [row for name in profile.levels for row in _level_rows(profile, name)])
        )
        for columns, items in ((_PIPELINE, profile.pipelines), (_CHOICE, choices)):
            if items:
                print_line()
                print_table(Table("", columns, items))
    if collectives := profile.collectives:
        print_forms(collectives)


def _messages(messages: int | str) -> str:
    return f"up to {format_bytes(messages)}" if isinstance(messages, int) else messages


def _level_rows(profile: Profile, name: str) -> list[tuple]:
    level = profile.levels[name]
    errors = [percent_text(level.extra.get(key)) for key in ("held_out_error", "held_out_error_n")]
    rows = []
    for k, protocol in enumerate(level.protocols):
        if k and protocol.continues(level.protocols[k - 1]):
            rows.append(("", *_beginning(protocol), *("",) * 7))
            continue
        latency_bounds, bandwidth_bounds = _bounds(profile, name, protocol)
        for j, (n, bandwidth) in enumerate(sorted(protocol.bandwidth_bytes_per_s.items())):
            mark = "*" if n in protocol.extra.get("oversubscribed_n", ()) else ""
            head = ("",) * 6
            if j == 0:
                latency = format_seconds(protocol.latency_s), range_text(latency_bounds, format_seconds)
                head = ("" if k else name, *_beginning(protocol), *latency)
            bounds = range_text(bandwidth_bounds.get(str(n)), format_bandwidth)
            bound = " bound" if n in _bounded_n(protocol) else ""
            figure = format_bandwidth(bandwidth) + bound
            rows.append((*head, f"{n}{mark}", figure, bounds, *(("", "") if j or k else errors)))
    return rows


def _bounded_n(protocol: Protocol) -> set[int]:
    """The N whose bandwidth is a bound: their times do not determine it, or it exceeds that of the link."""
    return {n for key in ("bounded_n", "above_link_n") for n in protocol.extra.get(key, ())}


def _beginning(protocol: Protocol) -> tuple[str, str, str]:
    source = "measured" if protocol.extra.get("sender_waits_measured") else "assumed"
    waits = labels.sender_waits(protocol.sender_waits, protocol.buffered_bytes)
    return protocol.name, format_bytes(protocol.min_bytes), f"{waits}, {source}"


def _records(profile: Profile) -> list[dict[str, Any]]:
    """A row of CSV for every level, protocol and N."""
    records = []
    for name, level in profile.levels.items():
        for protocol in level.protocols:
            latency_bounds, bandwidth_bounds = _bounds(profile, name, protocol)
            for n, bandwidth in sorted(protocol.bandwidth_bytes_per_s.items()):
                latency = (protocol.latency_s, *(latency_bounds or ("", "")))
                rate = (bandwidth, *bandwidth_bounds.get(str(n), ("", "")))
                errors = [level.extra.get(key) for key in ("held_out_error", "held_out_error_n")]
                flags = protocol.sender_waits, bool(protocol.extra.get("sender_waits_measured"))
                buffered = "" if protocol.buffered_bytes is None else protocol.buffered_bytes
                waits = [*(str(flag).lower() for flag in flags), buffered]
                row = (name, protocol.name, protocol.min_bytes, *latency, n, *rate, *errors, *waits)
                records.append(dict(zip(_CSV, row, strict=True)))
    return records


def _bounds(
    profile: Profile, level: str, protocol: Protocol
) -> tuple[list[float] | None, dict[str, list[float]]]:
    """The intervals of the latency and of the bandwidth by N, where a file has them in the form of `fit`."""
    of_level = profile.intervals.get(level)
    intervals = of_level.get(protocol.name) if isinstance(of_level, dict) else None
    intervals = intervals if isinstance(intervals, dict) else {}
    latency, bandwidths = intervals.get("latency_s"), intervals.get("bandwidth_bytes_per_s")
    by_n = bandwidths if isinstance(bandwidths, dict) else {}
    return (
        latency if _is_interval(latency) else None,
        {n: bounds for n, bounds in by_n.items() if _is_interval(bounds)},
    )


def _is_interval(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and all(isinstance(end, int | float) and not isinstance(end, bool) for end in value)
