"""Prints the parameters of a profile for `fit` and `show`."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes
from earlybird.present.core.notation import percent_text
from earlybird.present.core.table import Column, Table
from earlybird.present.material import Material
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table
from earlybird.present.subjects.collectives.forms import hops_table
from earlybird.present.subjects.messages.tables import bandwidth_table, packings_table, protocols_table
from earlybird.present.subjects.messages.view import contentions

_CSV = ("level", "protocol", "min_bytes", "latency_s", "latency_low_s", "latency_high_s", "n",
        "bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s",
        "held_out_error", "held_out_error_n", "sender_waits", "sender_waits_measured",
        "buffered_bytes")  # fmt: skip
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
    profile, remark = profile.readable()
    if remark:
        note(remark)
    tables = [
        protocols_table([(profile, "")]),
        bandwidth_table(contentions(Material(profiles=(profile,)))),
        Table("", _PIPELINE, profile.pipelines),
        packings_table([(profile, "")]),
        Table("", _CHOICE, choices),
        hops_table(profile.collectives),
    ]
    for k, table in enumerate(table for table in tables if table.items):
        if k:
            print_line()
        print_table(table)


def _messages(messages: int | str) -> str:
    return f"up to {format_bytes(messages)}" if isinstance(messages, int) else messages


def _records(profile: Profile) -> list[dict[str, Any]]:
    """Return a row of CSV for every level, protocol and N."""
    records = []
    for name, level in profile.levels.items():
        for protocol in level.protocols:
            latency_bounds = profile.interval(name, protocol.name, "latency_s")
            for n, bandwidth in sorted(protocol.bandwidth_bytes_per_s.items()):
                latency = (protocol.latency_s, *(latency_bounds or ("", "")))
                rate = (
                    bandwidth,
                    *(profile.interval(name, protocol.name, "bandwidth_bytes_per_s", n) or ("", "")),
                )
                errors = [level.extra.get(key) for key in ("held_out_error", "held_out_error_n")]
                flags = protocol.sender_waits, bool(protocol.extra.get("sender_waits_measured"))
                buffered = "" if protocol.buffered_bytes is None else protocol.buffered_bytes
                waits = [*(str(flag).lower() for flag in flags), buffered]
                row = (name, protocol.name, protocol.min_bytes, *latency, n, *rate, *errors, *waits)
                records.append(dict(zip(_CSV, row, strict=True)))
    return records
