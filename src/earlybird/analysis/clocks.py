"""Computes the differences between the clocks of a recording's hosts from the messages between them.

No message arrives before it was sent, and no rank leaves a collective in which all wait for all before the
last one has arrived. The difference of two clocks therefore has an upper bound in each direction, which is
closest where the latency is smallest; the middle of both is used, as if the smallest latencies were equal.
Clocks that drift contradict themselves: then the run is divided as it makes the bounds narrowest, and the
difference is interpolated between the middles of its parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from earlybird.analysis.events import Collective, Events, Matches
from earlybird.data.recording import Recording

# Collectives that no rank leaves before all have come; of others, blocks may be empty.
_BARRIER, _ALLREDUCE = "MPI_Barrier", "MPI_Allreduce"
_MIN_WIDTH_S = 1e-12  # an edge of a graph must not be 0
_MAX_PARTS = 256
_MIN_DRIFT_S = 1e-7  # less does not matter to any wait


@dataclass(frozen=True, eq=False)
class Clocks:
    """The relations between the clocks of ranks.

    Attributes
    ----------
    ahead_s : the clock of each rank minus that of the first rank; NaN if nothing connects them.
    uncertainty_s : by how much two clocks may be apart beyond that; 0 if all ranks have one clock.
    moments_s, drift_s : of clocks that drift: moments by the first clock, ascending, and by rank how far its
        clock is ahead then, beyond `ahead_s`. No moments: none drifts.
    """

    ahead_s: Mapping[int, float]
    uncertainty_s: float
    moments_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    drift_s: Mapping[int, np.ndarray] = field(default_factory=dict)

    def common(self, events: Events) -> Events:
        """Return the events with times by the clock of the first rank, of ranks whose clock is known."""
        shifted = events.shifted({rank: float(np.nan_to_num(by_s)) for rank, by_s in self.ahead_s.items()})
        if not len(self.moments_s):
            return shifted
        times = {name: getattr(shifted, name).copy() for name in ("begin_s", "end_s", "posted_s")}
        for rank, by_s in self.drift_s.items():
            here = shifted.rank == rank
            for name, column in times.items():
                column[here] -= np.interp(getattr(shifted, name)[here], self.moments_s, by_s)
        return replace(shifted, **times)

    @property
    def unconnected(self) -> list[int]:
        """The ranks whose clock has an unknown offset from that of the first rank."""
        return [rank for rank, by_s in self.ahead_s.items() if np.isnan(by_s)]


def compare_clocks(
    recording: Recording, events: Events, matches: Matches, groups: Sequence[Collective]
) -> Clocks:
    """Return the clocks of the ranks in `events`; ranks that were started by the same boot of a host share a
    clock."""
    names = {rank: one.boot or one.host for rank, one in recording.ranks.items()}
    clocks = {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
    if len(clocks) < 2:
        return Clocks(dict.fromkeys(names, 0.0), 0.0)
    clock_of = np.zeros(max(names) + 1, np.int64)
    for rank, name in names.items():
        clock_of[rank] = clocks[name]
    bounds = _upper_bounds(len(clocks), clock_of, events, matches, groups)
    compared = _combined(len(clocks), bounds)
    known_s = np.nan_to_num(compared.ahead_s)
    at_s = bounds.at_s - known_s[bounds.at_clock]
    moments_s, drift_s = np.empty(0), np.empty((0, len(clocks)))
    uncertainty_s, num, parts = compared.uncertainty_s, 1, [compared]
    while any(part.contradicts for part in parts) and num < _MAX_PARTS:
        num *= 2
        edges_s = np.linspace(at_s.min(), at_s.max(), num + 1)
        place = np.clip(np.searchsorted(edges_s, at_s, side="right") - 1, 0, num - 1)
        order = np.argsort(place, kind="stable")
        each = np.split(order, np.searchsorted(place[order], np.arange(1, num)))
        parts = [_combined(len(clocks), bounds.only(chosen)) for chosen in each]
        of_parts_s = np.array([part.ahead_s for part in parts])
        if np.isnan(of_parts_s).any(axis=0)[np.isfinite(compared.ahead_s)].any():
            break  # a part without messages from and to a clock says nothing of it
        if (apart_s := max(part.uncertainty_s for part in parts)) < uncertainty_s:
            uncertainty_s = apart_s
            moments_s, drift_s = _drift(edges_s, of_parts_s - known_s)
    ahead_s = {rank: float(compared.ahead_s[clock_of[rank]]) for rank in names}
    if not len(moments_s):
        return Clocks(ahead_s, uncertainty_s)
    return Clocks(ahead_s, uncertainty_s, moments_s, {rank: drift_s[:, clock_of[rank]] for rank in names})


def _drift(edges_s: np.ndarray, ahead_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return moments, and how far each clock is ahead then: from the parts of the run between the edges, two
    or more."""
    middles_s = (edges_s[1:] + edges_s[:-1]) / 2
    moments_s = np.concatenate([edges_s[:1], middles_s, edges_s[-1:]])
    # The first and the last half of a part go on as the clocks did.
    first, last = (ahead_s[end] + (ahead_s[end] - ahead_s[inner]) / 2 for end, inner in ((0, 1), (-1, -2)))
    return moments_s, np.nan_to_num(np.vstack([first, ahead_s, last]))


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Upper bounds, arrays (N,): pairs a * num + b of clocks, by how much clock b is at most ahead of clock
    a, and when that was, by which clock."""

    pair: np.ndarray
    bound_s: np.ndarray
    at_s: np.ndarray
    at_clock: np.ndarray

    def only(self, chosen: np.ndarray) -> "_Bounds":
        return _Bounds(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def _upper_bounds(
    num: int, clock_of: np.ndarray, events: Events, matches: Matches, groups: Sequence[Collective]
) -> _Bounds:
    src, dst = (clock_of[events.rank[part]] for part in (matches.sent, matches.received))
    sent_s = events.begin_s[matches.sent]
    found = [(src * num + dst, events.end_s[matches.received] - sent_s, sent_s, src)]
    for group in groups:
        has_data = events.bytes[group.events].min() > 0
        if group.name != _BARRIER and not (group.name == _ALLREDUCE and has_data):
            continue
        clock = clock_of[group.ranks]
        last_s, first_s = np.full(num, -np.inf), np.full(num, np.inf)
        np.maximum.at(last_s, clock, events.begin_s[group.events])
        np.minimum.at(first_s, clock, events.end_s[group.events])
        # Between one of the clocks and each other one: all pairs would be many.
        own, here = int(clock.min()), np.unique(clock)
        at_s, at_clock = np.full(len(here), last_s[own]), np.full(len(here), own)
        found += [
            (own * num + here, first_s[here] - last_s[own], at_s, at_clock),
            (here * num + own, first_s[own] - last_s[here], at_s, at_clock),
        ]  # fmt: skip
    bounds = _Bounds(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return bounds.only(bounds.pair // num != bounds.pair % num)


@dataclass(frozen=True, eq=False)
class _Compared:
    """How far each clock is ahead of the first one, NaN if nothing connects it; by how much two may be apart
    beyond that; and whether their bounds contradict each other."""

    ahead_s: np.ndarray
    uncertainty_s: float
    contradicts: bool


def _combined(num: int, bounds: _Bounds) -> _Compared:
    """Combine bounds along the edges with the narrowest ones."""
    pairs, place = np.unique(bounds.pair, return_inverse=True)
    bounds_s = np.full(len(pairs), np.inf)
    np.minimum.at(bounds_s, place.reshape(-1), bounds.bound_s)
    # Imported late: most recordings have one clock, and the import takes as long as all else of `record`.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    a, b = pairs // num, pairs % num
    _, there, back = np.intersect1d(pairs, b * num + a, assume_unique=True, return_indices=True)
    middles_s, half_widths_s = (bounds_s[there] - bounds_s[back]) / 2, (bounds_s[there] + bounds_s[back]) / 2
    # Clocks that drift contradict themselves, by a negative width, beyond what is due to rounding.
    weights = np.maximum(np.abs(half_widths_s), _MIN_WIDTH_S)
    edges = a[there], b[there]
    tree = minimum_spanning_tree(csr_matrix((weights, edges), shape=(num, num)))
    order, before = breadth_first_order(tree, 0, directed=False)
    of_edge = {edge: k for k, edge in enumerate(zip(*(side.tolist() for side in edges), strict=True))}
    ahead_s, uncertainty_s = np.full(num, np.nan), np.zeros(num)
    ahead_s[0] = 0.0
    for clock in order[1:].tolist():
        from_clock = int(before[clock])
        edge = of_edge[from_clock, clock]
        ahead_s[clock] = ahead_s[from_clock] + middles_s[edge]
        uncertainty_s[clock] = uncertainty_s[from_clock] + weights[edge]
    contradicts = bool((half_widths_s < -_MIN_DRIFT_S).any())
    return _Compared(ahead_s, float(np.sort(uncertainty_s)[-2:].sum()), contradicts)
