"""Alternatives of an exchange, ranked by the predicted time of its slowest rank."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data.advice import Alternative
from earlybird.data.schema import Estimate
from earlybird.predict.ranges import interval

# Ratios take shorter times as this: an exchange within one rank takes none.
LEAST_S = 1e-9


def ranked(
    drawn: Mapping[str, tuple[float, np.ndarray]],
    reference: str,
    actions: Mapping[str, str],
    work: Mapping[str, tuple],
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Alternative, ...]:
    """Name -> (seconds, (R,) seconds by each replicate) as alternatives, the advised one first.

    `work` is the sort key of the effort of each, the least for `reference`; see `options.choose`. Of a large
    exchange fewer replicates are predicted: those count that all alternatives have.
    """
    drawn = common_replicates(drawn)
    now_s, replicates_now_s = drawn[reference]
    choices, alternatives = [], []
    for name, (time_s, replicates_s) in drawn.items():
        times = _estimate(replicates_s, time_s)
        ratios = _estimate(_ratio(replicates_now_s, replicates_s), float(_ratio(now_s, time_s)))
        alternatives.append(
            Alternative(name, times, ratios, actions[name], extra=dict((extra or {}).get(name, {})))
        )
        choices.append(Option(name, work[name], times, ratios, "model", is_reference=name == reference))
    order: Sequence[int] = options.order(choices)
    return tuple(alternatives[k] for k in order)


def common_replicates(drawn: Mapping[str, tuple[float, np.ndarray]]) -> dict[str, tuple[float, np.ndarray]]:
    """`drawn` with as many replicates for each as the one with the fewest; all begin with the same ones."""
    fewest = min(len(replicates_s) for _, replicates_s in drawn.values())
    return {name: (time_s, replicates_s[:fewest]) for name, (time_s, replicates_s) in drawn.items()}


def _ratio(now_s, then_s):
    return np.maximum(now_s, LEAST_S) / np.maximum(then_s, LEAST_S)


def _estimate(drawn: np.ndarray, found: float) -> Estimate:
    return Estimate(found, *interval(drawn, found)) if len(drawn) else Estimate.exact(found)
