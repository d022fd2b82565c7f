"""Options for the delay rate of pipelined communication: the rate, or the parameters that determine it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.measure import noise
from earlybird.models import pipelined

_LONGEST_DELAY_S = 3600.0


@dataclass(frozen=True)
class DelayOptions:
    """The delay rate gamma as given, or by (6) and (9) of Gillis et al. 2023."""

    gamma: Annotated[
        str | None,
        typer.Option(
            help="Delay rate: time from the first to the last ready partition, divided by the bytes of "
            "one partition, such as 100us/MB."
        ),
    ] = None
    ai: Annotated[str | None, typer.Option(help=noise.AI.help)] = None
    ci: Annotated[str | None, typer.Option(help=noise.CI.help)] = None
    frequency: Annotated[str | None, typer.Option(help=noise.FREQUENCY.help)] = None
    epsilon: Annotated[float | None, typer.Option(help=noise.EPSILON.help)] = None
    delta: Annotated[float | None, typer.Option(help=noise.DELTA.help)] = None

    def given(self) -> dict[str, str | float]:
        """Return the options that are given, by their names."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def rate(self) -> Callable[[int], float]:
        """Return gamma in s/B as a function of the partitions per thread."""
        computed = noise.parse_noise(**vars(self))
        if computed is not None:
            return lambda theta: pipelined.delay_rate_s_per_byte(
                computed.mu_s_per_byte, theta, computed.epsilon, computed.delta
            )
        if self.gamma is None:
            noise.require_intensities(self.ai, self.ci, self.frequency)
        fixed = units.parse_delay_rate(str(self.gamma), "--gamma")
        return lambda theta: fixed


def refuse_long_delay(rate_s_per_byte: float, partition_bytes: int) -> None:
    """Raise InputError for a delay that must be a unit mistake: a bare 100 is 100 s/B."""
    delay_s = rate_s_per_byte * partition_bytes
    if delay_s > _LONGEST_DELAY_S:
        raise InputError(
            f"a gamma of {rate_s_per_byte:g} s/B makes a partition of {partition_bytes} bytes {delay_s:g} s "
            f"late; give a delay of at most {_LONGEST_DELAY_S:g} s, such as --gamma 100us/MB"
        )
