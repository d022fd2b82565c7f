"""How far the clocks of the hosts of a recording are apart, from the messages between them.

No message arrives before it was sent, and no rank leaves a collective in which all wait for all before the
last one has come. So the difference of two clocks has an upper bound in each direction, which is closest
where the latency is smallest; the middle of both is taken, as if the smallest latencies were equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from earlybird.compare.recorded_events import Collective, Events, Matches
from earlybird.data.recording import Recording

# Collectives that no rank leaves before all have come; of others, blocks may be empty.
_BARRIER, _ALLREDUCE = "MPI_Barrier", "MPI_Allreduce"
_LEAST_WIDTH_S = 1e-12  # an edge of a graph must not be 0


@dataclass(frozen=True, eq=False)
class Clocks:
    """The clocks of ranks.

    Attributes
    ----------
    ahead_s : by rank, its clock minus that of the first rank; NaN if nothing connects them.
    uncertainty_s : the largest half width of the bounds; 0 if all ranks have one clock.
    """

    ahead_s: Mapping[int, float]
    uncertainty_s: float


def compare_clocks(
    recording: Recording, events: Events, matches: Matches, groups: Sequence[Collective]
) -> Clocks:
    """The clocks of the ranks in `events`; ranks that were started by the same boot of a host have one."""
    names = {rank: one.boot or one.host for rank, one in recording.ranks.items()}
    clocks = list(dict.fromkeys(names.values()))
    if len(clocks) < 2:
        return Clocks(dict.fromkeys(names, 0.0), 0.0)
    clock_of = np.zeros(max(names) + 1, np.int64)
    for rank, name in names.items():
        clock_of[rank] = clocks.index(name)
    bounds_s = _upper_bounds(len(clocks), clock_of, events, matches, groups)
    ahead_s, uncertainty_s = _combined(bounds_s)
    return Clocks({rank: float(ahead_s[clock_of[rank]]) for rank in names}, uncertainty_s)


def _upper_bounds(
    num: int, clock_of: np.ndarray, events: Events, matches: Matches, groups: Sequence[Collective]
) -> np.ndarray:
    """(num, num): clock b is ahead of clock a by at most [a, b]."""
    bounds_s = np.full((num, num), np.inf)
    src, dst = (clock_of[events.rank[part]] for part in (matches.sent, matches.received))
    later_s = events.end_s[matches.received] - events.begin_s[matches.sent]
    np.minimum.at(bounds_s, (src, dst), later_s)
    for group in groups:
        has_data = events.bytes[group.events].min() > 0
        if group.name != _BARRIER and not (group.name == _ALLREDUCE and has_data):
            continue
        clock = clock_of[group.ranks]
        last_s, first_s = np.full(num, -np.inf), np.full(num, np.inf)
        np.maximum.at(last_s, clock, events.begin_s[group.events])
        np.minimum.at(first_s, clock, events.end_s[group.events])
        bounds_s = np.minimum(bounds_s, first_s[None, :] - last_s[:, None])
    return bounds_s


def _combined(bounds_s: np.ndarray) -> tuple[np.ndarray, float]:
    """How far each clock is ahead of the first one, along the edges with the narrowest bounds."""
    half_widths_s = np.abs(bounds_s + bounds_s.T) / 2
    is_known = np.isfinite(half_widths_s)
    np.fill_diagonal(is_known, False)
    weights = np.where(is_known, np.maximum(half_widths_s, _LEAST_WIDTH_S), 0.0)
    tree = minimum_spanning_tree(csr_matrix(weights))
    order, before = breadth_first_order(tree, 0, directed=False)
    ahead_s, uncertainty_s = np.full(len(bounds_s), np.nan), np.zeros(len(bounds_s))
    ahead_s[0] = 0.0
    for clock in order[1:].tolist():
        a = int(before[clock])
        ahead_s[clock] = ahead_s[a] + (bounds_s[a, clock] - bounds_s[clock, a]) / 2
        uncertainty_s[clock] = uncertainty_s[a] + half_widths_s[a, clock]
    return ahead_s, float(uncertainty_s.max())
