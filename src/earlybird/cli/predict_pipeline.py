"""`earlybird predict pipeline`: the time of every method to send a buffer in partitions."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

import typer

from earlybird.cli.common import FORMAT, JSON, Format, note, print_csv, print_json, print_table
from earlybird.cli.delay_rates import (
    AiOption,
    CiOption,
    DeltaOption,
    EpsilonOption,
    FrequencyOption,
    GammaOption,
    delay_rate,
    refuse_long_delay,
)
from earlybird.cli.options import LevelOption, ProfilesOption
from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.files import with_current_keys
from earlybird.data.profile import Profile, load_profile
from earlybird.data.units import format_bytes, format_seconds, parse_bytes
from earlybird.predict import merge_profiles
from earlybird.predict.pipelined import (
    MethodModel,
    MethodPrediction,
    method_models,
    pipeline_level,
    predict_methods,
    reservations,
)

SCHEMA = "earlybird.pipeline-prediction/1"
_COLUMNS = ("method", "vcis", "time_s", "time_low_s", "time_high_s", "speed_up", "speed_up_low",
            "speed_up_high", "messages", "message_bytes", "source")  # fmt: skip


def pipeline(
    size: Annotated[str, typer.Option("--size", help="Size of the buffer, such as 64MiB.")],
    profile: ProfilesOption = [],  # noqa: B006
    threads: Annotated[int, typer.Option("--threads", help="Threads that fill the buffer.")] = 1,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", help="Partitions of all threads together.  [default: one per thread]"),
    ] = None,
    gamma: GammaOption = None,
    ai: AiOption = None,
    ci: CiOption = None,
    frequency: FrequencyOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    method: Annotated[str | None, typer.Option("--method", help="Only this method, such as many.")] = None,
    level: LevelOption = None,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Predict the time of every method to send a buffer in partitions, and its speed-up over one message
    at the end.

    Uses the joined model of docs/models.md: messages leave one after another when they are ready, and the
    last partition is ready gamma times its size later than the others. Times run from then until the
    receiver has the whole buffer. Methods without measured pipelines in the profile are predicted from its
    latency and bandwidth.
    """
    joined = load_profiles(profile)
    num_partitions = threads if partitions is None else partitions
    size_bytes = checked_size(size, threads, num_partitions)
    rate = delay_rate(gamma, ai, ci, frequency, epsilon, delta)(num_partitions // threads)
    refuse_long_delay(rate, size_bytes // num_partitions)
    level = pipeline_level(joined, level)
    models = method_models(joined, level, threads)
    delay_s = rate * (size_bytes // num_partitions)
    chosen = _only(method, models, predict_methods(models, size_bytes, num_partitions, delay_s))
    notes = reservations([model for model, _ in chosen], size_bytes, num_partitions, rate, threads)
    value = {
        "schema": SCHEMA,
        "level": level,
        "threads": threads,
        "partitions": num_partitions,
        "size_bytes": size_bytes,
        "gamma_s_per_byte": rate,
        "delay_s": delay_s,
        "methods": [_to_json(prediction) for _, prediction in chosen],
        "profile_id": joined.id,
        "notes": notes,
    }
    print_methods(value, Format.json if json else format)


def print_methods(value: Mapping[str, Any], format: Format) -> None:
    """Print a prediction of pipelines from its JSON object."""
    for reservation in value.get("notes", ()):
        note(f"warning: {reservation}")
    methods = [with_current_keys(method) for method in value["methods"]]
    if format is Format.json:
        print_json(value)
    elif format is Format.csv:
        print_csv(_COLUMNS, [[row.get(name) for name in _COLUMNS] for row in map(_flat, methods)])
    else:
        print_table(
            ["method", "time", "95 %", "speed-up over single", "95 %", "messages", "largest", "source"],
            [_cells(MethodPrediction(**{key: row.get(key) for key in _FIELDS})) for row in methods],
        )
        note(
            f"{labels.level(value['level'])}: {format_bytes(value['size_bytes'])} in {value['partitions']} "
            f"partitions, {labels.counted(value['threads'], 'thread')}, the last partition "
            f"{format_seconds(value['delay_s'])} late"
        )


_FIELDS = tuple(field.name for field in fields(MethodPrediction))


def load_profiles(names: list[str]) -> Profile:
    """The profiles of `--profile`, merged."""
    if not names:
        raise InputError("no profile is given; add --profile, a file written by `earlybird fit`")
    return merge_profiles([load_profile(name) for name in names])


def checked_size(size: str, threads: int, partitions: int) -> int:
    """Bytes of the buffer; InputError if the threads or partitions do not divide it."""
    size_bytes = parse_bytes(size, "--size")
    if threads < 1:
        raise InputError(f"--threads is {threads}; give 1 or more")
    if partitions < 1 or partitions % threads:
        raise InputError(
            f"--partitions is {partitions} for all {threads} threads together; give a multiple of {threads}"
        )
    if size_bytes < 1 or size_bytes % partitions:
        raise InputError(
            f"--size is {size_bytes} bytes, which is not divisible into {partitions} partitions; give a "
            f"multiple of {partitions}"
        )
    return size_bytes


def _only(
    method: str | None, models: list[MethodModel], predictions: list[MethodPrediction]
) -> list[tuple[MethodModel, MethodPrediction]]:
    pairs = list(zip(models, predictions, strict=True))
    chosen = [pair for pair in pairs if method in (None, pair[0].method)]
    if not chosen:
        known = ", ".join(dict.fromkeys(model.method for model in models))
        raise InputError(f"--method is {method!r}, but the profile contains {known}; give one of these")
    return chosen


def _to_json(prediction: MethodPrediction) -> dict[str, Any]:
    value = {name: item for name, item in vars(prediction).items() if item is not None}
    return value | {"message_bytes": round(prediction.message_bytes), "speed_up": prediction.speed_up}


def _flat(method: dict[str, Any]) -> dict[str, Any]:
    row = dict(method)
    for name, columns in (
        ("time_interval_s", ("time_low_s", "time_high_s")),
        ("speed_up_interval", ("speed_up_low", "speed_up_high")),
    ):
        row |= dict(zip(columns, method.get(name, (None, None)), strict=True))
    return row


def _cells(prediction: MethodPrediction) -> list[str]:
    time_interval = prediction.time_interval_s and " .. ".join(
        map(format_seconds, prediction.time_interval_s)
    )
    speed_up_interval = prediction.speed_up_interval and " .. ".join(
        f"{bound:.2f}" for bound in prediction.speed_up_interval
    )
    return [
        prediction.method if prediction.vcis is None else f"{prediction.method}, {prediction.vcis} contexts",
        format_seconds(prediction.time_s),
        time_interval or "",
        "" if prediction.speed_up is None else f"{prediction.speed_up:.2f}",
        speed_up_interval or "",
        str(prediction.messages),
        format_bytes(prediction.message_bytes),
        prediction.source,
    ]
