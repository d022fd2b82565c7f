"""What of a measurement is slower than its like: links, nodes, computation, clocks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.check.measured import Measured
from earlybird.check.outliers import faster_node, link_outliers, low_median, minority, outliers
from earlybird.data.check import (
    BANDWIDTH,
    BOTH,
    CLOCK,
    COMPUTATION,
    DRIFT,
    INCAST,
    LATENCY,
    LOSS,
    OUTCAST,
)
from earlybird.data.units import format_seconds

# Segments are also sent again where none was lost, when an acknowledgement is late.
_MIN_LOST, _MIN_LOST_SHARE = 4, 2e-3
_USUAL_LOSS = 0.1  # the quantile of links that lose as few as any
# The least effects between nodes that share cores: times depend on which rank runs, and on whose turn it is
# to compute when another process runs.
_SHARED_EFFECT, _SHARED_LATENCY_EFFECT = 0.3, 1.0
# NTP keeps clocks of a cluster within a millisecond, of a wide area within tens.
_MIN_OFFSET_S, _MIN_DRIFT = 10e-3, 200e-6

MIN_EFFECT = 0.1
Item = tuple[str, int, int]  # measure, sender, receiver; of a node its number twice


@dataclass(frozen=True)
class Suspicion:
    """A value that differs from comparable ones: that of node `first`, which is then also `second`, or that
    of the link from `first` to `second`."""

    measure: str
    first: int
    second: int
    value: float
    expected: float

    @property
    def item(self) -> Item:
        return self.measure, self.first, self.second

    @property
    def is_link(self) -> bool:
        return self.first != self.second


def find_suspicions(measured: Measured, like: np.ndarray, min_effect: float) -> list[Suspicion]:
    """Return every value that differs from comparable ones; `like` (N, N) has equal numbers for comparable
    links."""
    found: list[Suspicion] = []
    effect, latency_effect = least_effects(measured, min_effect)
    for measure, values, least_effect in (
        (BANDWIDTH, measured.send_s, effect),
        # Whether both messages are under way at once depends on who of the two runs.
        *([] if measured.shares_cores else [(BOTH, measured.both_s, effect)]),
        (LATENCY, measured.latency_s, latency_effect),
    ):
        slow, expected = link_outliers(values, like, least_effect, adds=measure == LATENCY)
        found += _links(measure, slow, values, expected)
    found += _links(LOSS, _losing(measured), measured.lost_share, np.zeros_like(measured.lost_share))
    for measure, of_nodes in (
        (COMPUTATION, measured.compute_s), (INCAST, measured.incast_s), (OUTCAST, measured.outcast_s)
    ):  # fmt: skip
        # A single node that computes faster than a majority that is alike is the one that differs. Of
        # messages, all other nodes may be slow: no link shows what a single fast node can do.
        faster = faster_node(of_nodes, effect) if measure == COMPUTATION else None
        usual = of_nodes if faster is None else np.where(np.arange(len(of_nodes)) == faster, np.nan, of_nodes)
        slow_nodes, centre = outliers(usual, effect)
        found += _nodes(measure, slow_nodes, of_nodes, centre)
    return found + _clocks(measured)


def faster_remarks(measured: Measured, hosts: Sequence[str], min_effect: float) -> list[str]:
    """Return a sentence if one node computes faster than all others."""
    times_s = measured.compute_s
    node = faster_node(times_s, least_effects(measured, min_effect)[0])
    if node is None:
        return []
    time, of_most = format_seconds(float(times_s[node])), format_seconds(float(low_median(times_s)))
    return [
        f"{hosts[node]} computes faster than all others, {time} against {of_most}; none of these is called "
        "slow for it, so give --expect if all nodes should be as fast"
    ]


def least_effects(measured: Measured, min_effect: float) -> tuple[float, float]:
    """Return the minimum differences that count, of times and of latencies."""
    if not measured.shares_cores:
        return min_effect, min_effect
    return max(min_effect, _SHARED_EFFECT), max(min_effect, _SHARED_LATENCY_EFFECT)


def unjudged_links(
    measured: Measured, like: np.ndarray, min_effect: float = MIN_EFFECT
) -> list[tuple[int, int]]:
    """Return the links that have too few comparable links for a median of bandwidth."""
    _, expected = link_outliers(measured.send_s, like, least_effects(measured, min_effect)[0])
    unknown = np.isnan(expected) & ~np.isnan(measured.send_s)
    return [(int(i), int(j)) for i, j in np.argwhere(unknown) if i < j]


def _links(measure: str, slow: np.ndarray, values: np.ndarray, expected: np.ndarray) -> list[Suspicion]:
    return [
        Suspicion(measure, int(i), int(j), float(values[i, j]), float(expected[i, j]))
        for i, j in np.argwhere(slow)
    ]


def _nodes(measure: str, slow: np.ndarray, values: np.ndarray, expected: float) -> list[Suspicion]:
    return [Suspicion(measure, int(i), int(i), float(values[i]), expected) for i in np.flatnonzero(slow)]


def _losing(measured: Measured) -> np.ndarray:
    """Return a boolean array (N, N), true for links whose messages lost more segments than chance or a busy
    node explains."""
    enough = (measured.sent_again >= _MIN_LOST) & (measured.lost_share > _MIN_LOST_SHARE)
    if not enough.any():
        return enough
    known = measured.lost_share[~np.isnan(measured.lost_share)]
    # Not the median: most links may lose segments.
    return enough & (measured.lost_share > 5 * float(np.quantile(known, _USUAL_LOSS, method="lower")))


def _clocks(measured: Measured) -> list[Suspicion]:
    found: list[Suspicion] = []
    for measure, values, least in (
        (CLOCK, measured.clock_offset_s, _MIN_OFFSET_S + measured.clock_error_s),
        (DRIFT, measured.clock_drift, _MIN_DRIFT + measured.clock_drift_error),
    ):
        wrong, centre = minority(values, least)
        found += _nodes(measure, wrong, values - centre, 0.0)
    return found


def confirmed(again: Iterable[Suspicion], before: Iterable[Suspicion]) -> list[Suspicion]:
    """Return the suspicions that a second measurement confirms, with the values of the second measurement."""
    items = {one.item for one in before}
    return [one for one in again if one.item in items]
