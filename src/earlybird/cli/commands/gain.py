"""`earlybird gain`: the ideal speed-up of early sending over a single message."""

from typing import Annotated

import typer

from earlybird.cli.options.command import FORMAT, make_command
from earlybird.cli.options.delay_rate import DelayOptions
from earlybird.cli.options.values import BANDWIDTH, SIZE
from earlybird.models import pipelined
from earlybird.present.render.data import Format
from earlybird.present.subjects.pipelines.terminal import print_ideal


def gain(
    *,
    bandwidth: Annotated[
        float, typer.Option(help="Bandwidth of the network, such as 25GB/s or 200gbit."), BANDWIDTH
    ],
    threads: Annotated[int, typer.Option(min=1, help="Threads N that fill the buffer.")] = 1,
    theta: Annotated[int, typer.Option(min=1, help="Partitions per thread.")] = 1,
    delay: DelayOptions,
    size: Annotated[
        int | None, typer.Option(help="Size of the buffer, such as 64MiB: also print times."), SIZE
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Compute the ideal speed-up of early sending over a single message: each partition is sent when it is
    ready.

    It is eta of equation (4) of Gillis et al. 2023, for large messages: latency and the cost of a message are
    left out. Next to it are its bounds: at most the number of partitions, however late the last one is, and
    for small messages, where only latency counts, the loss of equation (5). Give the delay rate as --gamma,
    or let --ai, --ci and --frequency (with --epsilon and --delta)
    determine it; see docs/pipeline-models.md.
    """
    gamma = delay.rate()(theta)
    result = {
        "eta": pipelined.large_message_gain(threads, theta, gamma, bandwidth),
        "eta_max": float(threads * theta),
        "eta_small": pipelined.small_message_gain(threads, theta),
        "gamma_s_per_byte": gamma,
    }
    if size is not None:
        partitions = threads * theta
        partition_bytes = size / partitions
        result["bulk_s"] = pipelined.bulk_time_s(partitions, partition_bytes, bandwidth)
        result["pipelined_s"] = pipelined.pipelined_time_s(
            partitions, partition_bytes, bandwidth, gamma * partition_bytes
        )
    print_ideal(result, format)


command = make_command(
    gain,
    name="gain",
    long_tables=False,
    example="earlybird gain --threads 8 --theta 8 --bandwidth 25GB/s --gamma 1000us/MB --size 64MiB",
)
