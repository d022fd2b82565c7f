"""`earlybird predict pipeline`: the time of every method to send a buffer in partitions."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT
from earlybird.cli.options.delay_rate import DelayOptions, refuse_long_delay
from earlybird.cli.options.shared import BufferOptions, load_profiles
from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.measure_commands import LaunchOptions
from earlybird.data.method_predictions import PIPELINE_SCHEMA
from earlybird.data.units import format_bytes, format_seconds
from earlybird.predict.pipelined import (
    MethodPrediction,
    measure_pipelines_command,
    method_models,
    pipeline_level,
    predict_methods,
    reservations,
)
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import Column, Format, print_data, print_table, range_text, table

_CSV = ("method", "vcis", "time_s", "time_low_s", "time_high_s", "speed_up", "speed_up_low", "speed_up_high",
        "messages", "message_bytes", "source")  # fmt: skip
_COLUMNS = (
    Column("method", lambda one: one["method"] + (f", {one['vcis']} contexts" if "vcis" in one else "")),
    Column("time", lambda one: format_seconds(one["time_s"])),
    Column("95 %", lambda one: range_text(one.get("time_interval_s"), format_seconds)),
    Column("speed-up over single", lambda one: f"{one['speed_up']:.2f}" if one.get("speed_up") else ""),
    Column("95 %", lambda one: range_text(one.get("speed_up_interval"), "{:.2f}".format)),
    Column("messages", lambda one: one["messages"]),
    Column("largest", lambda one: format_bytes(one["message_bytes"])),
    Column("source", lambda one: one["source"]),
)


def pipeline(
    buffer: BufferOptions,
    delay: DelayOptions,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions of all threads together.  [default: one per thread]")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Only this method, such as many.")] = None,
    format: Format = FORMAT,
) -> None:
    """Predict the time of every method to send a buffer in partitions.

    Speed-ups are over a single message after the last partition. Uses the joined model of
    docs/pipeline-models.md: messages leave one after another when they are ready, and the last partition is
    ready gamma times its size later than the others. Times run from then until the receiver has the whole
    buffer. Methods without measured pipelines in the profile are predicted from its latency and bandwidth.
    """
    joined = load_profiles(buffer.profile)
    threads = buffer.threads
    num_partitions = threads if partitions is None else partitions
    size_bytes = buffer.size_bytes(num_partitions)
    rate = delay.rate()(num_partitions // threads)
    refuse_long_delay(rate, size_bytes // num_partitions)
    level = pipeline_level(joined, buffer.level)
    models = method_models(joined, level, threads)
    delay_s = rate * (size_bytes // num_partitions)
    predicted = zip(models, predict_methods(models, size_bytes, num_partitions, delay_s), strict=True)
    chosen = [pair for pair in predicted if method in (None, pair[0].method)]
    if not chosen:
        known = ", ".join(dict.fromkeys(model.method for model in models))
        raise InputError(f"--method is {method!r}, but the profile contains {known}; give one of these")
    launch = LaunchOptions.of(joined)
    command = measure_pipelines_command(threads, size_bytes, {num_partitions: rate}, level, launch=launch)
    value = {
        "schema": PIPELINE_SCHEMA,
        "level": level,
        "threads": threads,
        "partitions": num_partitions,
        "size_bytes": size_bytes,
        "gamma_s_per_byte": rate,
        "delay_s": delay_s,
        "methods": [_to_json(prediction) for _, prediction in chosen],
        "profile_id": joined.id,
        "notes": reservations([model for model, _ in chosen], size_bytes, num_partitions, rate, command),
    }
    print_methods(value, format)


def print_methods(value: Mapping[str, Any], format: str) -> None:
    """Print a prediction of pipelines from its JSON object."""
    for reservation in value.get("notes", ()):
        note(f"warning: {reservation}")
    methods = value["methods"]
    if not print_data(format, value, [_flat(method) for method in methods], _CSV):
        print_table(*table(_COLUMNS, methods))
        note(
            f"{labels.level(value['level'])}: {format_bytes(value['size_bytes'])} in {value['partitions']} "
            f"partitions, {labels.counted(value['threads'], 'thread')}, the last partition "
            f"{format_seconds(value['delay_s'])} late"
        )


def _to_json(prediction: MethodPrediction) -> dict[str, Any]:
    value = {name: item for name, item in vars(prediction).items() if item is not None}
    return value | {"message_bytes": round(prediction.message_bytes), "speed_up": prediction.speed_up}


def _flat(method: Mapping[str, Any]) -> dict[str, Any]:
    times = method.get("time_interval_s", (None, None))
    speed_ups = method.get("speed_up_interval", (None, None))
    return {
        **method,
        **dict(zip(("time_low_s", "time_high_s"), times, strict=True)),
        **dict(zip(("speed_up_low", "speed_up_high"), speed_ups, strict=True)),
    }
