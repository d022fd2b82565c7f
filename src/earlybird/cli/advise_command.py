"""`earlybird advise`: recommended changes, ranked by predicted time, with the setting for each."""

from typing import Annotated

import typer

from earlybird.advise.pipelined import advise_pipeline
from earlybird.cli.advice_output import show_advice
from earlybird.cli.advise_collective import collective
from earlybird.cli.common import FORMAT, JSON, Format, make_group, note
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
from earlybird.cli.predict_pipeline import checked_size, load_profiles
from earlybird.data import labels
from earlybird.data.units import format_bytes

COLUMNS = {"partitions": "partitions", "messages": "messages", "message_bytes": "largest"}


def pipeline(
    size: Annotated[str, typer.Option("--size", help="Size of the buffer, such as 64MiB.")],
    profile: ProfilesOption = [],  # noqa: B006
    threads: Annotated[int, typer.Option("--threads", help="Threads that fill the buffer.")] = 1,
    gamma: GammaOption = None,
    ai: AiOption = None,
    ci: CiOption = None,
    frequency: FrequencyOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    level: LevelOption = None,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Recommend how to send a buffer that threads fill: method, number of partitions, and speed-up.

    Ranks every method in the profile at its fastest number of partitions, and lists the measured sizes at
    which another method becomes the best. Where the point was measured, the measurement stands. With --ai,
    --ci and --frequency the delay rate depends on the number of partitions by (9) of Gillis et al. 2023;
    --gamma is the same for all of them."""
    joined = load_profiles(profile)
    size_bytes = checked_size(size, threads, threads)
    rate = delay_rate(gamma, ai, ci, frequency, epsilon, delta)
    refuse_long_delay(rate(1), size_bytes // threads)
    options = {"--gamma": gamma, "--ai": ai, "--ci": ci, "--frequency": frequency, "--epsilon": epsilon,
               "--delta": delta}  # fmt: skip
    asked = {name.lstrip("-"): value for name, value in options.items() if value is not None}
    advice = advise_pipeline(joined, size_bytes, threads, rate, level=level, asked=asked)
    show_advice(advice, Format.json if json else format, COLUMNS)
    note(
        f"{labels.level(advice.asked['level'])}: {format_bytes(size_bytes)} of "
        f"{labels.counted(threads, 'thread')}; single is one message after the last partition"
    )


command = make_group(
    (
        (
            "pipeline",
            pipeline,
            "earlybird advise pipeline --threads 8 --size 64MiB --gamma 100us/MB --profile profile.json",
        ),
        (
            "collective",
            collective,
            "earlybird advise collective --op bcast --ranks 8 --size 64KiB --profile profile.json",
        ),
    ),
    name="advise",
    help="Recommend changes, ranked by predicted time, each with its setting or command.",
)
