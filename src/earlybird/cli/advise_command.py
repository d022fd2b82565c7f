"""`earlybird advise`: recommended changes, ranked by predicted time, with the setting for each."""

from typing import Annotated, Any

import typer

from earlybird.advise.pipelined import advise_pipeline
from earlybird.cli.advice_output import show_advice
from earlybird.cli.advise_collective import collective
from earlybird.cli.common import FORMAT, JSON, Format, make_group, note, print_table
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
from earlybird.data.advice import Advice, Alternative, Stretch
from earlybird.data.units import format_bytes, format_seconds

_COLUMNS = ("method", "vcis", "partitions", "messages", "message_bytes", "time_s", "gain", "source", "do")


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
    """Recommend how to send a buffer that threads fill: method, number of partitions, and gain.

    Ranks every method in the profile at its fastest number of partitions, and lists the sizes from 512 B to
    1 GiB at which another method becomes the best. With --ai, --ci and --frequency the delay rate depends on
    the number of partitions by (9) of Gillis et al. 2023; --gamma is the same for all of them.
    """
    joined = load_profiles(profile)
    size_bytes = checked_size(size, threads, threads)
    rate = delay_rate(gamma, ai, ci, frequency, epsilon, delta)
    refuse_long_delay(rate(1), size_bytes // threads)
    options = {"--gamma": gamma, "--ai": ai, "--ci": ci, "--frequency": frequency, "--epsilon": epsilon,
               "--delta": delta}  # fmt: skip
    asked = {name.lstrip("-"): value for name, value in options.items() if value is not None}
    advice = advise_pipeline(joined, size_bytes, threads, rate, level=level, asked=asked)
    show_advice(advice, Format.json if json else format, _COLUMNS, _print)


def _print(advice: Advice) -> None:
    asked = advice.asked
    print_table(
        ["", "method", "partitions", "messages", "time", "gain", "95 %", "source"],
        [_row(k, one, advice.asked["size_bytes"]) for k, one in enumerate(advice.ranked, start=1)],
    )
    print()
    for k, one in enumerate(advice.ranked, start=1):
        print(f"{k}. {one.do}")
    print()
    print_table(
        ["from", "to", "best method", "partitions", ""], [_stretch_row(one) for one in advice.stretches]
    )
    threads = asked["threads"]
    note(
        f"{asked['level']}: {format_bytes(asked['size_bytes'])} of {threads} "
        f"thread{'' if threads == 1 else 's'}; gain: speed-up over one message after the last partition, "
        f"{advice.baseline}"
    )


def _messages(num: int, largest_bytes: int, size_bytes: int) -> str:
    """Messages of libearlybird may differ in size."""
    return f"{num} {'of' if num * largest_bytes <= size_bytes else 'up to'} {format_bytes(largest_bytes)}"


def _row(rank: int, one: Alternative, size_bytes: int) -> list[Any]:
    interval = one.gain_interval and " .. ".join(f"{bound:.2f}" for bound in one.gain_interval)
    return [
        rank,
        _name(one.method, one.extra),
        one.extra["partitions"],
        _messages(one.extra["messages"], one.extra["message_bytes"], size_bytes),
        format_seconds(one.time_s),
        "" if one.gain is None else f"{one.gain:.2f}",
        interval or "",
        one.extra["source"],
    ]


def _stretch_row(one: Stretch) -> list[Any]:
    return [
        format_bytes(one.from_bytes),
        format_bytes(one.to_bytes),
        _name(one.method, one.extra),
        one.extra["partitions"],
        "partly extrapolated" if one.extra.get("extrapolated") else "",
    ]


def _name(method: str, extra) -> str:
    return f"{method}, {extra['vcis']} contexts" if "vcis" in extra else method


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
