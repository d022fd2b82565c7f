"""`earlybird predict pipeline`: the time of every method to send a buffer in partitions."""

from typing import Annotated

import typer

from earlybird.cli.options.command import FORMAT
from earlybird.cli.options.delay_rate import DelayOptions, refuse_long_delay
from earlybird.cli.options.shared import BufferOptions, load_profiles
from earlybird.data.errors import InputError
from earlybird.data.measure_commands import LaunchOptions
from earlybird.data.method_predictions import PIPELINE_SCHEMA, pipeline_prediction_from_json
from earlybird.predict.pipelined import (
    measure_pipelines_command,
    method_models,
    pipeline_level,
    predict_methods,
    reservations,
)
from earlybird.present.render.data import Format
from earlybird.present.subjects.pipelines.terminal import print_pipeline_prediction


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
        "methods": [prediction.to_json() for _, prediction in chosen],
        "profile_id": joined.id,
        "notes": reservations(
            [model for model, _ in chosen], size_bytes, num_partitions, rate, command, level
        ),
    }
    print_pipeline_prediction(pipeline_prediction_from_json(value), format)
