"""`earlybird gain`: the closed-form gain of pipelined communication."""

import typer

from earlybird.cli.common import FORMAT, JSON, Format, make_command, note, print_csv, print_json, print_table
from earlybird.cli.delay_rates import (
    AiOption,
    CiOption,
    DeltaOption,
    EpsilonOption,
    FrequencyOption,
    GammaOption,
    delay_rate,
)
from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.models import pipelined


def gain(
    bandwidth: str = typer.Option(
        ..., "--bandwidth", help="Bandwidth of the network, such as 25GB/s or 200gbit."
    ),
    threads: int = typer.Option(1, "--threads", help="Threads N that fill the buffer."),
    theta: int = typer.Option(1, "--theta", help="Partitions per thread."),
    gamma: GammaOption = None,
    ai: AiOption = None,
    ci: CiOption = None,
    frequency: FrequencyOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    size: str | None = typer.Option(
        None, "--size", help="Size of the buffer, such as 64MiB: also print times."
    ),
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Gain of sending each partition when it is ready over one message at the end.

    The gain eta is equation (4) of Gillis et al. 2023: large messages, no latency. Give the delay rate as
    --gamma, or --ai, --ci and --frequency (with --epsilon and --delta) to compute it by (6) and (9).
    """
    for name, count in (("--threads", threads), ("--theta", theta)):
        if count < 1:
            raise InputError(f"{name} is {count}; give 1 or more")
    bandwidth_bytes_per_s = units.parse_bandwidth(bandwidth, "--bandwidth")
    gamma_s_per_byte = delay_rate(gamma, ai, ci, frequency, epsilon, delta)(theta)
    result = {
        "eta": pipelined.large_message_gain(threads, theta, gamma_s_per_byte, bandwidth_bytes_per_s),
        "gamma_s_per_byte": gamma_s_per_byte,
    }
    if size is not None:
        result |= _times(
            units.parse_bytes(size, "--size"), threads * theta, bandwidth_bytes_per_s, gamma_s_per_byte
        )
    if json or format is Format.json:
        print_json(result)
    elif format is Format.csv:
        print_csv(list(result), [list(result.values())])
    else:
        _print_table(result)


def _times(
    size_bytes: int, num_partitions: int, bandwidth_bytes_per_s: float, gamma_s_per_byte: float
) -> dict:
    partition_bytes = size_bytes / num_partitions
    delay_s = gamma_s_per_byte * partition_bytes
    return {
        "bulk_s": pipelined.bulk_time_s(num_partitions, partition_bytes, bandwidth_bytes_per_s),
        "pipelined_s": pipelined.pipelined_time_s(
            num_partitions, partition_bytes, bandwidth_bytes_per_s, delay_s
        ),
    }


def _print_table(result: dict[str, float]) -> None:
    row = [f"{result['eta']:.4f}", f"{result['gamma_s_per_byte'] * 1e12:.6g} us/MB"]
    times = [name for name in ("bulk_s", "pipelined_s") if name in result]
    print_table(
        ["eta", "gamma", *(name.removesuffix("_s") for name in times)],
        [[*row, *(units.format_seconds(result[name]) for name in times)]],
    )
    note("eta: bulk time over pipelined time for large messages, without latency and cost per message")


command = make_command(
    gain,
    name="gain",
    long_tables=False,
    example="earlybird gain --threads 8 --theta 8 --bandwidth 25GB/s --gamma 1000us/MB --size 64MiB",
)
