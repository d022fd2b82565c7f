"""`earlybird gain`: the closed-form gain of pipelined communication."""

from fractions import Fraction

import typer

from earlybird.cli.common import FORMAT, JSON, Format, make_command, note, print_csv, print_json, print_table
from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.models import pipelined


def gain(
    bandwidth: str = typer.Option(
        ..., "--bandwidth", help="Bandwidth of the network, such as 25GB/s or 200gbit."
    ),
    threads: int = typer.Option(1, "--threads", help="Threads N that fill the buffer."),
    theta: int = typer.Option(1, "--theta", help="Partitions per thread."),
    gamma: str | None = typer.Option(
        None,
        "--gamma",
        help="Delay rate: seconds from first to last ready partition, per byte of a partition.",
    ),
    ai: str | None = typer.Option(
        None, "--ai", help="Arithmetic intensity, flop per byte, such as 5 or 1/13."
    ),
    ci: str | None = typer.Option(
        None, "--ci", help="Communication intensity: bytes sent per byte of memory."
    ),
    frequency: str | None = typer.Option(None, "--frequency", help="Clock of the CPU, such as 3.5GHz."),
    epsilon: float | None = typer.Option(None, "--epsilon", help="Relative noise of the system (default 0)."),
    delta: float | None = typer.Option(
        None, "--delta", help="Relative imbalance of the algorithm (default 0)."
    ),
    size: str | None = typer.Option(
        None, "--size", help="The whole buffer, such as 64MiB: adds times in seconds."
    ),
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """How much faster partitions that leave when ready are than one message at the end.

    The gain eta is equation (4) of Gillis et al. 2023: large messages, no latency. Give the delay rate as
    --gamma, or --ai, --ci and --frequency (with --epsilon and --delta) to compute it by (6) and (9).
    """
    for name, count in (("--threads", threads), ("--theta", theta)):
        if count < 1:
            raise InputError(f"{name} is {count}; give 1 or more")
    bandwidth_bytes_per_s = units.parse_bandwidth(bandwidth, "--bandwidth")
    gamma_s_per_byte = _delay_rate(gamma, ai, ci, frequency, epsilon, delta, theta)
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


def _delay_rate(gamma, ai, ci, frequency, epsilon, delta, theta: int) -> float:
    """gamma in s/B, given or from the five parameters of the computation."""
    computation = {"--ai": ai, "--ci": ci, "--frequency": frequency, "--epsilon": epsilon, "--delta": delta}
    given = [name for name, value in computation.items() if value is not None]
    if gamma is not None:
        if given:
            raise InputError(
                f"--gamma and {given[0]} are both given; the delay rate comes from one; drop the other"
            )
        return units.parse_delay_rate(gamma, "--gamma")
    missing = [name for name in ("--ai", "--ci", "--frequency") if computation[name] is None]
    if missing:
        raise InputError(
            f"{', '.join(missing)} missing for the delay rate; give --gamma, or --ai, --ci and --frequency"
        )
    mu_s_per_byte = pipelined.compute_rate_s_per_byte(
        _ratio(ai, "--ai"), _ratio(ci, "--ci"), units.parse_frequency(frequency, "--frequency")
    )
    return pipelined.delay_rate_s_per_byte(
        mu_s_per_byte, theta, _fraction(epsilon, "--epsilon"), _fraction(delta, "--delta")
    )


def _ratio(text: str, name: str) -> float:
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        value = 0.0
    if value <= 0:
        raise InputError(f"{name} is {text!r}; give a number above zero, such as 5 or 1/13")
    return value


def _fraction(value: float | None, name: str) -> float:
    if value is None:
        return 0.0
    if not 0 <= value < float("inf"):
        raise InputError(f"{name} is {value}; give 0 or more, 0.04 for 4 %")
    return value


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
    note("bulk time over pipelined time for large messages; latency and the cost of a message are left out")


command = make_command(
    gain,
    name="gain",
    example="earlybird gain --threads 8 --theta 8 --bandwidth 25GB/s --gamma 1000us/MB --size 64MiB",
)
