"""How far the clocks of the hosts of a recording are apart, from the messages between them.

No message arrives before it was sent, and no rank leaves a collective in which all wait for all before the
last one has come. So the difference of two clocks has an upper bound in each direction, which is closest
where the latency is smallest; the middle of both is taken, as if the smallest latencies were equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.analysis.events import Collective, Events, Matches
from earlybird.data.recording import Recording

# Collectives that no rank leaves before all have come; of others, blocks may be empty.
_BARRIER, _ALLREDUCE = "MPI_Barrier", "MPI_Allreduce"
_MIN_WIDTH_S = 1e-12  # an edge of a graph must not be 0


@dataclass(frozen=True, eq=False)
class Clocks:
    """The relations between the clocks of ranks.

    Attributes
    ----------
    ahead_s : the clock of each rank minus that of the first rank; NaN if nothing connects them.
    uncertainty_s : by how much two clocks may be apart beyond that, without their drift; 0 if all ranks have
        one clock.
    """

    ahead_s: Mapping[int, float]
    uncertainty_s: float

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
    pairs, bounds_s = _upper_bounds(len(clocks), clock_of, events, matches, groups)
    ahead_s, uncertainty_s = _combined(len(clocks), pairs, bounds_s)
    return Clocks({rank: float(ahead_s[clock_of[rank]]) for rank in names}, uncertainty_s)


def _upper_bounds(
    num: int, clock_of: np.ndarray, events: Events, matches: Matches, groups: Sequence[Collective]
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs a * num + b of clocks, in order, and by how much clock b is at most ahead of clock a."""
    src, dst = (clock_of[events.rank[part]] for part in (matches.sent, matches.received))
    found = [(src * num + dst, events.end_s[matches.received] - events.begin_s[matches.sent])]
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
        found += [
            (own * num + here, first_s[here] - last_s[own]), (here * num + own, first_s[own] - last_s[here])
        ]  # fmt: skip
    all_pairs, all_s = (np.concatenate(parts) for parts in zip(*found, strict=True))
    is_between = all_pairs // num != all_pairs % num
    pairs, place = np.unique(all_pairs[is_between], return_inverse=True)
    bounds_s = np.full(len(pairs), np.inf)
    np.minimum.at(bounds_s, place.reshape(-1), all_s[is_between])
    return pairs, bounds_s


def _combined(num: int, pairs: np.ndarray, bounds_s: np.ndarray) -> tuple[np.ndarray, float]:
    """Return how far each clock is ahead of the first one, along the edges with the narrowest bounds."""
    # Imported late: most recordings have one clock, and the import takes as long as all else of `record`.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    a, b = pairs // num, pairs % num
    _, there, back = np.intersect1d(pairs, b * num + a, assume_unique=True, return_indices=True)
    middles_s, half_widths_s = (bounds_s[there] - bounds_s[back]) / 2, (bounds_s[there] + bounds_s[back]) / 2
    # Clocks that drift contradict themselves, by a negative width.
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
    return ahead_s, float(np.sort(uncertainty_s)[-2:].sum())
