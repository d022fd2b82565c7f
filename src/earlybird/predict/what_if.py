"""Profiles with some parameters changed, and how much each parameter matters to an exchange."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS
from earlybird.data.profile import Level, Profile, Protocol, Replicate
from earlybird.data.units import parse_bandwidth, parse_duration
from earlybird.predict.exchange import Predictor

BANDWIDTH, LATENCY = "bandwidth", "latency"
_SETTING = re.compile(r"(\w+)(?:\.([\w-]+))?\.(bandwidth|latency)=(.+)")
_FACTOR = re.compile(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)x")
# A change of a parameter that is small beside all else, and large beside rounding.
_STEP = 1e-3


@dataclass(frozen=True)
class Sensitivity:
    """How much the slowest rank's time grows if a parameter makes communication 1 % slower, in percent.

    Of a latency that is 1 % more, of a bandwidth 1 % more time for each byte.
    """

    level: str
    protocol: str
    parameter: str
    value: float


def changed_profile(profile: Profile, settings: Sequence[str]) -> Profile:
    """The profile with `settings` such as `inter_node.bandwidth=2x`, applied one after the other.

    A setting is LEVEL.PARAMETER=VALUE for all protocols of a level, or LEVEL.PROTOCOL.PARAMETER=VALUE.
    `bandwidth` is that of every N; its value is a factor such as 0.5x, or BW(1), such as 12GB/s, to which the
    others keep their ratio. `latency` is a factor or a time. Replicates change by the same factors. Raises
    InputError.
    """
    for text in settings:
        level, protocol, parameter, factor_of = _parsed(profile, text)
        names = [item.name for item in profile.levels[level].protocols]
        if protocol and protocol not in names:
            raise InputError(f"--set {text}: {level} has the protocols {', '.join(names)}, not {protocol}")
        factors = {
            item.name: factor_of(item)
            for item in profile.levels[level].protocols
            if protocol in ("", item.name)
        }
        profile = _scaled(profile, level, parameter, factors)
    return profile


def sensitivities(predictor: Predictor, profile: Profile, model: str, share: str) -> Iterator[Sensitivity]:
    """Of every parameter of the levels that the exchange uses, the first one's first.

    Protocols of one name are one: `fit` writes a line in several entries where `sender_waits` changes in it.
    """
    alone = Profile(profile.levels, profile.id)
    now_s = predictor.slowest_s(alone, model, share=share)[0]
    for level in predictor.levels:
        for name in dict.fromkeys(item.name for item in profile.level(level).protocols):
            for parameter, factor in ((LATENCY, 1 + _STEP), (BANDWIDTH, 1 / (1 + _STEP))):
                slower = _scaled(alone, level, parameter, {name: factor})
                then_s = predictor.slowest_s(slower, model, share=share)[0]
                growth = (then_s / now_s - 1) / _STEP if now_s else 0.0
                yield Sensitivity(level, name, parameter, growth)


def _parsed(profile: Profile, text: str) -> tuple[str, str, str, Callable[[Protocol], float]]:
    """Level, protocol or "", parameter, and the factor by which it changes."""
    found = _SETTING.fullmatch(text.strip())
    if not found:
        raise InputError(
            f"--set is {text!r}; give LEVEL.bandwidth=VALUE or LEVEL.latency=VALUE, such as "
            "inter_node.bandwidth=2x, or LEVEL.PROTOCOL.latency=2us"
        )
    level, protocol, parameter, value = found[1], found[2] or "", found[3], found[4]
    if level not in LEVELS:
        raise InputError(f"--set {text}: the level is {level}; choose one of {', '.join(LEVELS)}")
    profile.level(level)  # raises if it is absent
    if factor := _FACTOR.fullmatch(value):
        return level, protocol, parameter, lambda _: _positive(float(factor[1]), text)
    if parameter == BANDWIDTH:
        bandwidth = _positive(parse_bandwidth(value, f"--set {text}"), text)
        return level, protocol, parameter, lambda item: bandwidth / item.bandwidth_table()[1][0]
    latency_s = parse_duration(value, f"--set {text}")

    def factor_of(item: Protocol) -> float:
        if not item.latency_s:
            raise InputError(f"--set {text}: {item.name} has the latency 0, which no factor changes")
        return latency_s / item.latency_s

    return level, protocol, parameter, factor_of


def _positive(value: float, text: str) -> float:
    if not 0 < value < math.inf:
        raise InputError(f"--set {text}: the value is not above 0, or too large")
    return value


def _scaled(profile: Profile, level: str, parameter: str, factors: dict[str, float]) -> Profile:
    def of(levels: dict[str, Level]) -> dict[str, Level]:
        if level not in levels:
            return levels
        protocols = tuple(
            _scaled_protocol(item, parameter, factors[item.name]) if item.name in factors else item
            for item in levels[level].protocols
        )
        return levels | {level: replace(levels[level], protocols=protocols)}

    replicates = tuple(Replicate(of(one.levels), one.extra) for one in profile.replicates)
    return replace(profile, levels=of(profile.levels), replicates=replicates)


def _scaled_protocol(item: Protocol, parameter: str, factor: float) -> Protocol:
    if parameter == LATENCY:
        return replace(item, latency_s=item.latency_s * factor)
    table = {n: rate * factor for n, rate in item.bandwidth_bytes_per_s.items()}
    return replace(item, bandwidth_bytes_per_s=table)
