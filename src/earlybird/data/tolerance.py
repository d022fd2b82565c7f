"""Tolerance: the time of an exchange against latency and bandwidth, and the tolerated changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data.layout import level_phrase
from earlybird.data.levels import LEVELS
from earlybird.data.schema import (
    OMIT_EMPTY,
    Extra,
    NotNegative,
    Positive,
    Ranks,
    Record,
    decode,
    require_one_of,
)
from earlybird.data.units import format_bandwidth, format_seconds

SCHEMA = "earlybird.tolerance/1"
LATENCY, BANDWIDTH = "latency", "bandwidth"


def growth_text(growth: float) -> str:
    """Return a fraction in percent: 0.05 -> `5 %`."""
    return f"{100 * growth:g} %"


@dataclass(frozen=True)
class Tolerated(Record):
    """The factor of a parameter at which the slowest rank takes longer by a fraction.

    Attributes
    ----------
    growth : fraction by which the slowest rank takes longer.
    factor : factor of the parameter; null if none up to 1000 times slower does it.
    """

    growth: Positive
    factor: Positive | None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class ToleranceCurve(Record):
    """The time of the slowest rank if one parameter of a level is multiplied by a factor.

    Attributes
    ----------
    value : present value, in seconds or bytes/s: of the protocol with the most messages (latency) or bytes
        (bandwidth, BW(1)) of the level.
    level, parameter : `latency` or `bandwidth` of a level.
    factors, time_s : the time of the slowest rank if the parameter is multiplied by each factor.
    tolerated : one Tolerated for each growth.
    """

    level: str
    parameter: str
    value: NotNegative
    factors: tuple[Positive, ...]
    time_s: tuple[NotNegative, ...]
    tolerated: tuple[Tolerated, ...]
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("level", self.level, LEVELS)
        require_one_of("parameter", self.parameter, (LATENCY, BANDWIDTH))
        if len(self.factors) != len(self.time_s) or not self.factors:
            raise ValueError("factors and time_s have different lengths, or none")
        if list(self.factors) != sorted(set(self.factors)):
            raise ValueError("factors do not ascend")

    @property
    def name(self) -> str:
        """`latency between nodes`, `bandwidth on the same socket`."""
        return f"{self.parameter} {level_phrase(self.level)}"

    def value_text(self, factor: float = 1.0) -> str:
        """Return the parameter multiplied by `factor`, with its unit."""
        text = format_seconds if self.parameter == LATENCY else format_bandwidth
        return text(self.value * factor)

    def factor_at(self, growth: float) -> float | None:
        """Return the factor at the tolerated growth; None if it is unknown or not reached."""
        return next((one.factor for one in self.tolerated if one.growth == growth), None)

    def value_at(self, growth: float) -> str:
        """Return the parameter at which the tolerated growth is reached, with its unit."""
        return self.value_text(self.factor_at(growth) or 1.0)

    def tolerated_text(self, growth: float) -> str:
        """Return the tolerated value and factor: `2.4 us (2.4x)`; `any` if the growth is not reached."""
        factor = self.factor_at(growth)
        return "any" if factor is None else f"{self.value_text(factor)} ({factor:.3g}x)"

    def slowdown_at(self, growth: float) -> float:
        """Return how many times slower the parameter makes communication there; infinite if the growth is not
        reached."""
        factor = self.factor_at(growth)
        if factor is None:
            return float("inf")
        return factor if self.parameter == LATENCY else 1 / factor


@dataclass(frozen=True)
class Tolerance(Record):
    """The changes of latency and bandwidth that an exchange tolerates before it takes longer.

    Attributes
    ----------
    time_s : present time of the slowest rank.
    curves : one ToleranceCurve for each parameter of a level.
    """

    schema: ClassVar[str] = SCHEMA

    model: str
    ranks: Ranks
    time_s: Positive
    curves: tuple[ToleranceCurve, ...]
    layout: str = field(default="", metadata=OMIT_EMPTY)  # `Layout.text`
    profile_id: str = ""
    pattern_sha256: str = ""
    extra: Extra = field(default_factory=dict)

    @property
    def growths(self) -> list[float]:
        """All tolerated growths, ascending."""
        return sorted({one.growth for curve in self.curves for one in curve.tolerated})

    def most_critical(self, growth: float) -> ToleranceCurve | None:
        """Return the curve whose parameter may become slower by the smallest factor; None if none matters."""
        reached = [curve for curve in self.curves if curve.factor_at(growth) is not None]
        return min(reached, key=lambda curve: curve.slowdown_at(growth), default=None)


def tolerance_from_json(value: Mapping[str, Any], where: str = "the tolerance") -> Tolerance:
    """Build a Tolerance from its JSON object; raise InputError if a part is missing."""
    return decode(value, Tolerance, where, "make it again with `earlybird predict --tolerance --json`")


@dataclass(frozen=True)
class Sensitivity:
    """The growth of the slowest rank's time if a parameter makes communication 1 % slower, in percent.

    A latency increases by 1 %; for a bandwidth, the time for each byte increases by 1 %.
    """

    level: str
    protocol: str
    parameter: str
    value: float
