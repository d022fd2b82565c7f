"""Profiles with some parameters changed, and how much each parameter matters to an exchange."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol, Replicate
from earlybird.data.tolerance import BANDWIDTH, LATENCY, Sensitivity, Tolerance, ToleranceCurve, Tolerated
from earlybird.data.units import MAX_BYTES_PER_S, is_plain_number, parse_bandwidth, parse_duration
from earlybird.predict.exchange import SHARES, Predictor, used_levels

# The factors of a tolerance curve, and the growths of the time whose factor is searched up to _MAX_SLOWER.
FACTORS = tuple(2 ** (k / 2) for k in range(-6, 7))
GROWTHS = (0.01, 0.05)
_MAX_SLOWER = 1000.0
_SETTING = re.compile(r"(\w+)(?:\.([\w-]+))?\.(bandwidth|latency)=(.+)")
_FACTOR = re.compile(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)x")
# Parameters that are set must not exceed this, and bandwidths not be below its inverse.
_MAX = MAX_BYTES_PER_S
# A change of a parameter that is small compared with all else, and large compared with rounding.
_STEP = 1e-3


def changed_profile(profile: Profile, settings: Sequence[str]) -> Profile:
    """Return the profile with `settings` such as `inter_node.bandwidth=2x`, applied one after the other.

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
        profile = scaled_profile(profile, level, parameter, factors)
        _check_values(profile, level, parameter, text)
    return profile


def unused_settings(settings: Sequence[str], pattern: Pattern, layouts: Iterable[Layout]) -> list[str]:
    """Return a sentence for each of `settings` whose level no message uses on any of the layouts."""
    used = used_levels(pattern, layouts) if settings else ()
    return [
        f"--set {text} changes nothing: no message of the exchange uses the level {level}"
        for text in settings
        if (level := text.strip().partition(".")[0]) not in used
    ]


def sensitivities(predictor: Predictor, profile: Profile, model: str, share: str) -> Iterator[Sensitivity]:
    """Yield the sensitivity to every parameter of the levels that the exchange uses, beginning with the first
    level.

    Protocols with the same name count as one: `fit` writes several entries for a line where `sender_waits`
    changes.
    """
    alone = Profile(profile.levels, profile.id)
    now_s = predictor.slowest_s(alone, model, share=share)[0]
    for level in predictor.levels:
        for name in dict.fromkeys(item.name for item in profile.level(level).protocols):
            for parameter, factor in ((LATENCY, 1 + _STEP), (BANDWIDTH, 1 / (1 + _STEP))):
                slower = scaled_profile(alone, level, parameter, {name: factor})
                then_s = predictor.slowest_s(slower, model, share=share)[0]
                growth = (then_s / now_s - 1) / _STEP if now_s else 0.0
                yield Sensitivity(level, name, parameter, growth)


def tolerance(predictor: Predictor, profile: Profile, model: str, share: str = SHARES[0]) -> Tolerance:
    """Compute the slowest rank's time with each latency and bandwidth of the used levels multiplied by
    FACTORS, and the factors at which it is longer by GROWTHS, as LLAMP (Shen et al. 2024) does for whole
    programs.

    A factor applies to all protocols of a level and to BW(N) of every N. Raises InputError if the time is 0.
    """
    alone = Profile(profile.levels, profile.id)
    now_s = predictor.slowest_s(alone, model, share=share)[0]
    if now_s == 0:
        raise InputError(f"{model} predicts 0 s for the exchange, which no latency or bandwidth changes")

    def time_s(level: str, parameter: str, factor: float) -> float:
        factors = {item.name: factor for item in alone.level(level).protocols}
        changed = scaled_profile(alone, level, parameter, factors)
        return predictor.slowest_s(changed, model, share=share)[0]

    curves = tuple(
        tolerance_curve(level, parameter, value, partial(time_s, level, parameter), now_s)
        for level, parameter, value in _parameters(predictor, alone)
    )
    return Tolerance(
        model, predictor.num_ranks, now_s, curves, predictor.layout.text, profile.id,
        predictor.pattern.sha256(),
    )  # fmt: skip


def _parameters(predictor: Predictor, profile: Profile) -> Iterator[tuple[str, str, float]]:
    """Yield (level, parameter, value) of the used levels, without latencies of 0, which no factor changes:
    the latency of the protocol with the most messages, and BW(1) of the one with the most bytes.
    """
    pattern = predictor.pattern
    of_message = predictor.layout.level(pattern.src, pattern.dst)
    for level in predictor.levels:
        protocols = profile.level(level).protocols
        size_bytes = pattern.bytes[of_message == LEVELS.index(level)]
        starts = [item.min_bytes for item in protocols]
        index = np.searchsorted(starts, size_bytes, side="right") - 1
        if any(item.latency_s for item in protocols):
            yield level, LATENCY, protocols[np.bincount(index).argmax()].latency_s
        yield level, BANDWIDTH, protocols[np.bincount(index, size_bytes).argmax()].bandwidth_table()[1][0]


def tolerance_curve(
    level: str,
    parameter: str,
    value: float,
    time_s: Callable[[float], float],
    now_s: float,
    growths: Sequence[float] = GROWTHS,
    precision: float = 1e-5,
) -> ToleranceCurve:
    """Return the times with a parameter multiplied by FACTORS, and the factors, with this relative precision,
    at which the time is longer by `growths`; `time_s` computes the time with a factor."""
    time_s = cache(time_s)
    worse = [factor for factor in FACTORS if factor >= 1] + [_MAX_SLOWER]
    if parameter == BANDWIDTH:
        worse = [factor for factor in reversed(FACTORS) if factor <= 1] + [1 / _MAX_SLOWER]
    tolerated = [
        Tolerated(growth, _factor_at(time_s, worse, (1 + growth) * now_s, precision)) for growth in growths
    ]
    return ToleranceCurve(level, parameter, value, FACTORS, tuple(map(time_s, FACTORS)), tuple(tolerated))


def _factor_at(
    time_s: Callable[[float], float], worse: Sequence[float], goal_s: float, precision: float
) -> float | None:
    """Return the factor at which the time reaches `goal_s`, between two of the factors from 1 to the worst;
    None if there is none.
    """
    from scipy.optimize import brentq  # imported late: it is slow

    for near, far in pairwise(worse):
        if time_s(far) >= goal_s:
            return float(brentq(lambda factor: time_s(factor) - goal_s, *sorted((near, far)), rtol=precision))
    return None


def _parsed(profile: Profile, text: str) -> tuple[str, str, str, Callable[[Protocol], float]]:
    """Return the level, the protocol or "", the parameter, and the function that gives its factor."""
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
    example = "12GB/s" if parameter == BANDWIDTH else "5us"
    if is_plain_number(value):
        raise InputError(
            f"--set {text}: {value} has no unit; give a factor, such as 2x, or a {parameter}, such as "
            f"{example}"
        )
    if parameter == BANDWIDTH:
        bandwidth = _positive(parse_bandwidth(value, f"--set {text}", example), text)
        return level, protocol, parameter, lambda item: bandwidth / item.bandwidth_table()[1][0]
    latency_s = parse_duration(value, f"--set {text}", example)

    def factor_of(item: Protocol) -> float:
        if not item.latency_s:
            raise InputError(f"--set {text}: {item.name} has the latency 0, which no factor changes")
        return latency_s / item.latency_s

    return level, protocol, parameter, factor_of


def _positive(value: float, text: str) -> float:
    if not 0 < value < math.inf:
        raise InputError(f"--set {text}: the value is not above 0, or too large")
    return value


def _check_values(profile: Profile, level: str, parameter: str, text: str) -> None:
    """Refuse values for which the models would compute sums or quotients that are not finite."""
    for levels in (profile.levels, *(one.levels for one in profile.replicates)):
        for item in levels[level].protocols if level in levels else ():
            if parameter == LATENCY:
                values, least, unit = [item.latency_s], 0.0, "s"
            else:
                values, least, unit = [*item.bandwidth_bytes_per_s.values()], 1 / _MAX, "B/s"
            if wrong := [value for value in values if not least <= value <= _MAX]:
                raise InputError(
                    f"--set {text}: the {parameter} of {item.name} becomes {wrong[0]:g} {unit}; give a value "
                    f"that keeps it between {least:g} and {_MAX:g} {unit}"
                )


def scaled_profile(profile: Profile, level: str, parameter: str, factors: dict[str, float]) -> Profile:
    """Return the profile with LATENCY or BANDWIDTH of the protocols of a level multiplied by factors."""

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
