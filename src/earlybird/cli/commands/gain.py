"""`earlybird gain`: the ideal speed-up of early sending over a single message."""

from typing import Annotated

import typer

from earlybird.cli.options.command import FORMAT, make_command
from earlybird.cli.options.delay_rate import DelayOptions
from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.models import pipelined
from earlybird.present.render.data import Format
from earlybird.present.subjects.pipelines.terminal import print_ideal


def gain(
    *,
    bandwidth: Annotated[str, typer.Option(help="Bandwidth of the network, such as 25GB/s or 200gbit.")],
    threads: Annotated[int, typer.Option(help="Threads N that fill the buffer.")] = 1,
    theta: Annotated[int, typer.Option(help="Partitions per thread.")] = 1,
    delay: DelayOptions,
    size: Annotated[
        str | None, typer.Option(help="Size of the buffer, such as 64MiB: also print times.")
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Ideal speed-up of early sending over a single message: each partition is sent when it is ready.

    It is eta of equation (4) of Gillis et al. 2023, for large messages: latency and the cost of a message are
    left out. Give the delay rate as --gamma, or let --ai, --ci and --frequency (with --epsilon and --delta)
    determine it; see docs/pipeline-models.md.
    """
    for name, count in (("--threads", threads), ("--theta", theta)):
        if count < 1:
            raise InputError(f"{name} is {count}; give 1 or more")
    bytes_per_s = units.parse_bandwidth(bandwidth, "--bandwidth")
    gamma = delay.rate()(theta)
    result = {
        "eta": pipelined.large_message_gain(threads, theta, gamma, bytes_per_s),
        "gamma_s_per_byte": gamma,
    }
    if size is not None:
        partitions = threads * theta
        partition_bytes = units.parse_bytes(size, "--size") / partitions
        result["bulk_s"] = pipelined.bulk_time_s(partitions, partition_bytes, bytes_per_s)
        result["pipelined_s"] = pipelined.pipelined_time_s(
            partitions, partition_bytes, bytes_per_s, gamma * partition_bytes
        )
    print_ideal(result, format)


command = make_command(
    gain,
    name="gain",
    long_tables=False,
    example="earlybird gain --threads 8 --theta 8 --bandwidth 25GB/s --gamma 1000us/MB --size 64MiB",
)
