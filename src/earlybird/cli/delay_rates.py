"""Options for the delay rate of pipelined communication: the rate, or the parameters that determine it."""

from collections.abc import Callable
from typing import Annotated

import typer

from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.measure import noise as noise_options
from earlybird.measure.noise import parse_noise, require_intensities
from earlybird.models import pipelined

_LONGEST_DELAY_S = 3600.0

GammaOption = Annotated[
    str | None,
    typer.Option(
        "--gamma",
        help="Delay rate: time from the first to the last ready partition per byte, such as 100us/MB.",
    ),
]
AiOption = Annotated[str | None, typer.Option("--ai", help=noise_options.AI.help)]
CiOption = Annotated[str | None, typer.Option("--ci", help=noise_options.CI.help)]
FrequencyOption = Annotated[str | None, typer.Option("--frequency", help=noise_options.FREQUENCY.help)]
EpsilonOption = Annotated[float | None, typer.Option("--epsilon", help=noise_options.EPSILON.help)]
DeltaOption = Annotated[float | None, typer.Option("--delta", help=noise_options.DELTA.help)]


def delay_rate(
    gamma: str | None,
    ai: str | None,
    ci: str | None,
    frequency: str | None,
    epsilon: float | None,
    delta: float | None,
) -> Callable[[int], float]:
    """gamma in s/B as a function of the partitions per thread: as given, or by (6) and (9) of Gillis et
    al. 2023."""
    noise = parse_noise(gamma, ai, ci, frequency, epsilon, delta)
    if noise is None:
        if gamma is None:
            require_intensities(ai, ci, frequency)
        fixed = units.parse_delay_rate(gamma, "--gamma")
        return lambda theta: fixed
    return lambda theta: pipelined.delay_rate_s_per_byte(
        noise.mu_s_per_byte, theta, noise.epsilon, noise.delta
    )


def refuse_long_delay(rate_s_per_byte: float, partition_bytes: int) -> None:
    """Raise InputError for a delay that must be a unit mistake: a bare 100 is 100 s/B."""
    delay_s = rate_s_per_byte * partition_bytes
    if delay_s > _LONGEST_DELAY_S:
        raise InputError(
            f"a gamma of {rate_s_per_byte:g} s/B makes a partition of {partition_bytes} bytes {delay_s:g} s "
            f"late; give a delay of at most {_LONGEST_DELAY_S:g} s, such as --gamma 100us/MB"
        )
