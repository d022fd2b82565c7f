"""Options for the delay rate of pipelined communication: the rate, or the parameters that determine it."""

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

import typer

from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.measure.groups import Noise
from earlybird.models import pipelined

_LONGEST_DELAY_S = 3600.0

GammaOption = Annotated[
    str | None,
    typer.Option(
        "--gamma",
        help="Delay rate: time from the first to the last ready partition per byte, such as 100us/MB.",
    ),
]
AiOption = Annotated[
    str | None, typer.Option("--ai", help="Arithmetic intensity, flop per byte, such as 5 or 1/13.")
]
CiOption = Annotated[
    str | None, typer.Option("--ci", help="Communication intensity: bytes sent per byte of memory.")
]
FrequencyOption = Annotated[
    str | None, typer.Option("--frequency", help="Clock frequency of the CPU, such as 3.5GHz.")
]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", help="Relative noise of the system.  [default: 0]")
]
DeltaOption = Annotated[
    float | None, typer.Option("--delta", help="Relative imbalance of the algorithm.  [default: 0]")
]


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
            _require_intensities(ai, ci, frequency)
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


def parse_noise(
    gamma: str | None,
    ai: str | None,
    ci: str | None,
    frequency: str | None,
    epsilon: float | None,
    delta: float | None,
) -> Noise | None:
    """mu by equation (6), epsilon and delta; None if none of the five is given.

    InputError if `gamma` is given too, or if one of the first three is missing or out of range.
    """
    options = {"--ai": ai, "--ci": ci, "--frequency": frequency, "--epsilon": epsilon, "--delta": delta}
    given = [name for name, value in options.items() if value is not None]
    if not given:
        return None
    if gamma is not None:
        raise InputError(f"--gamma and {given[0]} both set the delay rate; give one of them")
    _require_intensities(ai, ci, frequency)
    mu_s_per_byte = pipelined.compute_rate_s_per_byte(
        _ratio(ai, "--ai"), _ratio(ci, "--ci"), units.parse_frequency(frequency, "--frequency")
    )
    return Noise(mu_s_per_byte, _fraction(epsilon, "--epsilon"), _fraction(delta, "--delta"))


def _require_intensities(ai: str | None, ci: str | None, frequency: str | None) -> None:
    needed = {"--ai": ai, "--ci": ci, "--frequency": frequency}
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise InputError(
            f"the delay rate needs {', '.join(missing)}; give --gamma, or --ai, --ci and --frequency"
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
