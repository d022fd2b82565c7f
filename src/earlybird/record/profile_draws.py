"""What a profile leaves open of a simulated run: draws of its parameters, one source of error at a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any
from zlib import crc32

import numpy as np

from earlybird.data.profile import REUSED, Level, Profile
from earlybird.models.statistics import student_t
from earlybird.record.conditions import Conditions
from earlybird.record.network import moves_alone

_QUANTILE = NormalDist().inv_cdf  # scipy.stats takes long to import
# The standard deviation of a normal distribution, as a multiple of the median of its absolute values.
_DEVIATION_OVER_MEDIAN = 1 / _QUANTILE(0.75)
_NINE_OF_TEN = _QUANTILE(0.95)
# The deviation of `fair` for the slowest rank where messages between nodes share links: nine of ten replays
# are within 12.3 % in docs/results/exchanges.md, and within 1.0 % in docs/results/simulation.md.
_SHARING_DEVIATION, _SIMULATED_SHARING_DEVIATION = 0.123 / _NINE_OF_TEN, 0.010 / _NINE_OF_TEN
# Of the time of a byte as fitted: what a draw leaves of it.
_MIN_TIME_OF_BYTE = 0.02
LAUNCHES, SIZES, CACHES, SHARING = (
    "launches of the profile", "sizes between those of the fit", "buffers in caches", "shared links",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A source of error in a profile.

    Attributes
    ----------
    name : one of LAUNCHES, SIZES, CACHES, SHARING.
    draw : returns the conditions with the k-th draw of it, the same one with and without parameters that are
        set.
    only_after : whether the run as recorded shares it with no other.
    most : number of draws that differ.
    is_widened : whether draws are as far apart as Student's t says for what they were made of.
    """

    name: str
    draw: Callable[[Conditions, int], Conditions]
    only_after: bool = False
    most: int | None = None
    is_widened: bool = False


def sources_of(before: Conditions, after: Conditions, ratio: float) -> list[Source]:
    """Return the sources in the profiles of a run as recorded and with changes, which takes `ratio` times as
    long."""
    profiles = before.profile, after.profile
    levels = [level for profile in profiles for level in profile.levels.values()]
    found = []
    if replicates := max(len(profile.replicates) for profile in profiles):
        found.append(Source(LAUNCHES, _with_levels(_other_launches), most=replicates, is_widened=True))
    if any(level.extra.get("held_out_error") for level in levels):
        found.append(Source(SIZES, _with_levels(_other_sizes)))
    if any(level.extra.get(REUSED) for level in levels):
        found.append(Source(CACHES, _with_caches))
    if after.layout.num_ranks > 2 and "inter_node" in after.profile.levels:
        # As recorded it is part of the known error, which a run shares less the more it changes.
        deviation = _sharing_deviation(after.measured) * (1 - min(ratio, 1 / ratio))
        found.append(Source(SHARING, _with_levels(_other_sharing(deviation)), only_after=True))
    return found


def _sharing_deviation(profile: Profile) -> float:
    errors = [replay.error["fair"] for replay in profile.replays if "fair" in replay.error]
    if errors:
        return _DEVIATION_OVER_MEDIAN * float(np.median(errors))
    return _SIMULATED_SHARING_DEVIATION if moves_alone(profile) else _SHARING_DEVIATION


_Drawn = Callable[[Profile, Level, str, int], Level]


def _with_levels(draw: _Drawn) -> Callable[[Conditions, int], Conditions]:
    def drawn(given: Conditions, k: int) -> Conditions:
        name = given.measured.id

        def of(profile: Profile) -> Profile:
            levels = {key: draw(profile, level, name, k) for key, level in profile.levels.items()}
            return replace(profile, levels=levels)

        profile, measured = of(given.profile), of(given.measured)
        return replace(given, profile=profile, measured=measured, fitted=given.measured, priced=None)

    return drawn


def _other_launches(profile: Profile, level: Level, name: str, k: int) -> Level:
    """Return a level with the launches of a replicate. Their spread is widened if they are few: the time of
    a message, which is what was measured, moves away from the fitted one in proportion."""
    replicates = profile.replicates
    drawn = replicates[k % len(replicates)].levels.get(level.name) if replicates else None
    if drawn is None or len(drawn.protocols) != len(level.protocols):
        return level
    widening = _widening(int(level.extra.get("launches") or 0))
    protocols = []
    for fitted, other in zip(level.protocols, drawn.protocols, strict=True):
        bandwidth = {}
        for n, rate in fitted.bandwidth_bytes_per_s.items():
            time_s = 1 / rate + widening * (1 / other.bandwidth_bytes_per_s.get(n, rate) - 1 / rate)
            bandwidth[n] = 1 / max(time_s, _MIN_TIME_OF_BYTE / rate)
        latency_s = fitted.latency_s + widening * (other.latency_s - fitted.latency_s)
        protocols.append(replace(fitted, latency_s=max(latency_s, 0.0), bandwidth_bytes_per_s=bandwidth))
    return replace(level, protocols=tuple(protocols))


def _widening(launches: int) -> float:
    """Return by how much the spread of medians of resampled launches is too narrow: the interval of Student's
    t for so many launches, over that of their resamples."""
    if launches < 2:
        return 1.0
    ratio = student_t(launches - 1) / _QUANTILE(0.975)
    return ratio * float(np.sqrt(launches / (launches - 1)))


def _normal(*seed: Any) -> float:
    return float(np.random.default_rng(crc32(repr(seed).encode())).standard_normal())


def _other_sizes(profile: Profile, level: Level, name: str, k: int) -> Level:
    """Return a level with a factor for each protocol, of the error at sizes that were left out of the fit."""
    error = _DEVIATION_OVER_MEDIAN * float(level.extra.get("held_out_error") or 0.0)
    factors = [
        float(np.exp(error * _normal(name, level.name, number, k))) for number in range(len(level.protocols))
    ]
    return _slower(level, factors, factors)


def _other_sharing(deviation: float) -> _Drawn:
    """Return draws of the bandwidth between nodes, where messages share links."""

    def drawn(profile: Profile, level: Level, name: str, k: int) -> Level:
        if level.name != "inter_node":
            return level
        num = len(level.protocols)
        return _slower(level, [1.0] * num, [float(np.exp(deviation * _normal(name, "shared", k)))] * num)

    return drawn


def _slower(level: Level, latency: list[float], byte: list[float]) -> Level:
    """Return a level whose protocols take this many times as long once, and for each byte."""
    protocols = tuple(
        replace(
            item,
            latency_s=once * item.latency_s,
            bandwidth_bytes_per_s={n: rate / each for n, rate in item.bandwidth_bytes_per_s.items()},
        )
        for item, once, each in zip(level.protocols, latency, byte, strict=True)
    )
    return replace(level, protocols=protocols)


def _with_caches(given: Conditions, k: int) -> Conditions:
    """Return the conditions with a random part of the buffers inside a node held by caches."""
    reuse = given.reuse * float(np.random.default_rng(k).random())
    return replace(given, fitted=given.measured, reuse=reuse, priced=None)
