"""Noisy computation of partitions, equation (7) of Gillis et al. 2023, and the options that determine it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.measure.options import SuiteOption
from earlybird.models import pipelined

# Beyond these no program computes, and delay rates would not be finite.
_MAX_INTENSITY, _MAX_NOISE = 1e6, 100.0


@dataclass(frozen=True)
class Noise:
    """The computation time of every partition: its bytes * mu * Normal(1, (epsilon + delta)/2), equation (7)
    of Gillis et al. 2023."""

    mu_s_per_byte: float
    epsilon: float = 0.0
    delta: float = 0.0


def parse_noise(
    gamma: str | None,
    ai: str | None,
    ci: str | None,
    frequency: str | None,
    epsilon: float | None,
    delta: float | None,
) -> Noise | None:
    """Return mu by equation (6), epsilon and delta; None if none of the five is given.

    Raises InputError if `gamma` is given too, or if one of the first three is missing or out of range.
    """
    options = {"--ai": ai, "--ci": ci, "--frequency": frequency, "--epsilon": epsilon, "--delta": delta}
    given = [name for name, value in options.items() if value is not None]
    if not given:
        return None
    if gamma is not None:
        raise InputError(f"--gamma and {given[0]} both set the delay rate; give one of them")
    require_intensities(ai, ci, frequency)
    mu_s_per_byte = pipelined.compute_rate_s_per_byte(
        _ratio(ai, "--ai"), _ratio(ci, "--ci"), units.parse_frequency(frequency, "--frequency")
    )
    return Noise(mu_s_per_byte, _fraction(epsilon, "--epsilon"), _fraction(delta, "--delta"))


def require_intensities(ai: str | None, ci: str | None, frequency: str | None) -> None:
    needed = {"--ai": ai, "--ci": ci, "--frequency": frequency}
    missing = [name for name, value in needed.items() if value is None]
    if missing == list(needed):
        raise InputError("the delay rate is unknown; give --gamma, or --ai, --ci and --frequency")
    if missing:
        raise InputError(
            f"the delay rate needs {', '.join(missing)}; give --gamma, or --ai, --ci and --frequency"
        )


def _ratio(text: str, name: str) -> float:
    try:
        value = float(Fraction(units.require_plain_digits(text)))
    except (ValueError, ZeroDivisionError, OverflowError):
        value = 0.0
    if not 1 / _MAX_INTENSITY <= value <= _MAX_INTENSITY:
        raise InputError(
            f"{name} is {units.shortened(text)}; give a number above zero, such as 5 or 1/13, from "
            f"{1 / _MAX_INTENSITY:g} to {_MAX_INTENSITY:g}"
        )
    return value


def _fraction(value: float | None, name: str) -> float:
    if value is None:
        return 0.0
    if not 0 <= value <= _MAX_NOISE:
        raise InputError(f"{name} is {value}; give 0 or more, 0.04 for 4 %, at most {_MAX_NOISE:g}")
    return value


def _noise_of(_: Any, settings: Mapping[str, Any]) -> Noise | None:
    return parse_noise(*(settings.get(option) for option in ("gamma", *(one.name for one in NOISE_OPTIONS))))


AI, CI, FREQUENCY, EPSILON, DELTA = NOISE_OPTIONS = (
    SuiteOption("ai", "Arithmetic intensity, flop per byte, such as 5 or 1/13.", "noise", _noise_of),
    SuiteOption("ci", "Communication intensity: bytes sent per byte of memory.", "noise", _noise_of),
    SuiteOption("frequency", "Clock frequency of the CPU, such as 3.5GHz.", "noise", _noise_of),
    SuiteOption("epsilon", "Relative noise of the system.  [default: 0]", "noise", _noise_of, float),
    SuiteOption("delta", "Relative imbalance of the algorithm.  [default: 0]", "noise", _noise_of, float),
)
