"""Alternatives of an exchange, ranked by the predicted time of its slowest rank.

(18) adds the times of a rank's messages inside its node and between nodes. Where both proceed at once, the
longer one counts. A profile does not say which holds, so the smaller of the two speed-ups counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data.advice import Alternative
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.data.schema import Estimate
from earlybird.predict.exchange import Predictor
from earlybird.predict.ranges import interval

# Ratios take shorter times as this: an exchange within one rank takes none.
MIN_S = 1e-9
# Tables show a speed-up that differs from 1 by this.
_SHOWN = 0.005


@dataclass(frozen=True)
class SlowestRank:
    """The predicted time of the slowest rank.

    Attributes
    ----------
    time_s, replicates_s : time by (18), and (R,) times by each replicate of the profile.
    at_once_s : time if messages inside nodes and between nodes proceed at once.
    """

    time_s: float
    replicates_s: np.ndarray
    at_once_s: float

    @classmethod
    def of(cls, pattern: Pattern, layout: Layout, profile: Profile, model: str) -> "SlowestRank":
        """Predict the time of the slowest rank of `pattern`; raise InputError as `Predictor` does."""
        predictor = Predictor(pattern, layout)
        return cls(*predictor.slowest_s(profile, model), predictor.slowest_at_once_s(profile, model))

    @classmethod
    def after_each_other(cls, parts: Sequence["SlowestRank"]) -> "SlowestRank":
        """Return the time of exchanges that follow each other."""
        fewest = min(len(one.replicates_s) for one in parts)
        replicates_s = np.sum([one.replicates_s[:fewest] for one in parts], axis=0)
        return cls(sum(one.time_s for one in parts), replicates_s, sum(one.at_once_s for one in parts))


def ranked(
    drawn: Mapping[str, SlowestRank],
    reference: str,
    actions: Mapping[str, str],
    work: Mapping[str, tuple],
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Alternative, ...]:
    """Return the alternatives, the advised one first.

    `work` is the sort key of the effort of each, the least for `reference`; see `options.choose`. A large
    exchange is predicted with fewer replicates: only those that all alternatives have count.
    """
    now = drawn[reference]
    fewest = min(len(one.replicates_s) for one in drawn.values())
    choices, alternatives = [], []
    for name, one in drawn.items():
        times = _estimate(one.replicates_s[:fewest], one.time_s)
        ratios = _estimate(
            np.minimum(_ratio(now.replicates_s[:fewest], one.replicates_s[:fewest]), _at_once(now, one)),
            min(_added(now, one), _at_once(now, one)),
        )
        alternatives.append(
            Alternative(name, times, ratios, actions[name], extra=dict((extra or {}).get(name, {})))
        )
        choices.append(Option(name, work[name], times, ratios, "model", is_reference=name == reference))
    order: Sequence[int] = options.order(choices)
    return tuple(alternatives[k] for k in order)


def uncertain_gains(drawn: Mapping[str, SlowestRank], reference: str) -> list[str]:
    """Return the alternatives that would only be faster if (18) held, one sentence each."""
    now = drawn[reference]
    return [
        f"{name} would be {_added(now, one):.2f} times as fast if the messages of a rank inside its node and "
        f"between nodes take turns, and {_at_once(now, one):.2f} times if they proceed at once; the smaller "
        "counts"
        for name, one in drawn.items()
        if _at_once(now, one) < 1 - _SHOWN and _added(now, one) > 1 + _SHOWN
    ]


def _added(now: SlowestRank, then: SlowestRank) -> float:
    return float(_ratio(now.time_s, then.time_s))


def _at_once(now: SlowestRank, then: SlowestRank) -> float:
    return float(_ratio(now.at_once_s, then.at_once_s))


def _ratio(now_s, then_s):
    return np.maximum(now_s, MIN_S) / np.maximum(then_s, MIN_S)


def _estimate(drawn: np.ndarray, found: float) -> Estimate:
    return Estimate(found, *interval(drawn, found)) if len(drawn) else Estimate.exact(found)
