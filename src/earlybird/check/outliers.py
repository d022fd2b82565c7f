"""Values that are larger than those of their like, by the median and the median absolute deviation (MAD), and
groups of nodes that differ, however many of them are slow."""

import numpy as np

from earlybird.data.covers import connected_nodes

# Of a normal distribution the standard deviation is 1.4826 MAD. Five of them: 3e-7 of values are beyond.
_DEVIATIONS, _MAD_TO_DEVIATION = 5.0, 1.4826
_MIN_LIKE = 3  # with fewer values of one kind nothing can be said
# Three values or fewer tell little of the noise: these deviations are then at most a fifth of the value.
_FEW, _MAX_OF_FEW = 3, 0.2
# Of the links of a group of nodes, so many must be alike: single links may be slow for themselves.
_MAX_LINKS = 0.75
_ADDED_SHARE = 0.5
# Messages between the switches of a network take longer, as a rule by less than this factor.
_MAX_DISTANCE = 2.0


def low_median(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Return the lower of the two middle values if their number is even, otherwise the median; NaN is
    ignored."""
    return np.nanquantile(values, 0.5, axis=axis, method="lower")


def outliers(values: np.ndarray, min_effect: float) -> tuple[np.ndarray, float]:
    """Return a boolean array (K,), true for values that are too large, and the expected value.

    A value is too large if it is more than `min_effect` above the median and beyond five standard deviations,
    estimated by the MAD. If the values are of several groups, the median is that of the smallest values. NaN
    is never too large.
    """
    if np.count_nonzero(~np.isnan(values)) < _MIN_LIKE:
        return np.zeros(values.shape, dtype=bool), float("nan")
    fast = _fast_nodes(values, min_effect)
    usual = values if fast is None else np.where(fast, values, np.nan)
    centre = float(low_median(usual))
    spread = float(low_median(np.abs(usual - centre)))
    if np.count_nonzero(~np.isnan(usual)) <= _FEW:
        spread = min(spread, centre * _MAX_OF_FEW / (_DEVIATIONS * _MAD_TO_DEVIATION))
    return values > _limit(centre, spread, min_effect), centre


def _fast_nodes(values: np.ndarray, min_effect: float) -> np.ndarray | None:
    """Return a boolean array (K,), true for values in the group of the smaller ones, if these are at most
    half of all, so that the median is none of them; None if there are no two groups."""
    known = ~np.isnan(values)
    for threshold in _gaps(values, min_effect):
        fast = values <= threshold
        slow = known & ~fast
        if np.count_nonzero(fast) > np.count_nonzero(slow):
            return None
        if np.log(values[slow].min() / threshold) > _noise(values[fast], values[slow]):
            return fast
    return None


def faster_node(values: np.ndarray, min_effect: float) -> int | None:
    """Return the single node that is faster than most others, which are alike; None if there is none."""
    known = ~np.isnan(values)
    if np.count_nonzero(known) < _MIN_LIKE:
        return None
    first = int(np.nanargmin(values))
    others = values[known & (np.arange(len(values)) != first)]
    gap = np.log(others.min() / values[first]) if values[first] > 0 else np.inf
    is_apart = gap > max(np.log1p(min_effect), _noise(values[first : first + 1], others))
    return first if is_apart and _has_majority(others, int(np.count_nonzero(known)), min_effect) else None


def _has_majority(values: np.ndarray, of: int, min_effect: float) -> bool:
    """Return whether more than half of `of` values are among these and near their median."""
    limit = max(np.log1p(min_effect), min(_DEVIATIONS * _log_spread(values), np.log1p(_MAX_OF_FEW)))
    return bool(2 * np.count_nonzero(np.abs(np.log(values / low_median(values))) <= limit) > of)


def minority(values: np.ndarray, least: float) -> tuple[np.ndarray, float]:
    """Return a boolean array (K,), true for values that are farther than `least` from that of the majority,
    and the median of the majority.

    The majority is more than half of all, or half of them if the others are alike, too. Without a majority,
    all values are named, and the median is that of all. NaN is never named.
    """
    known = ~np.isnan(values)
    if np.count_nonzero(known) < _MIN_LIKE:
        return np.zeros(values.shape, dtype=bool), float("nan")
    near = np.abs(values[:, None] - values) <= least
    numbers = near.sum(axis=1)
    # Of several with as many near them, that in the middle.
    candidates = np.where(numbers == numbers.max(), values, np.nan)
    majority = near[int(np.nanargmin(np.abs(candidates - low_median(candidates))))]
    others = known & ~majority
    balance = int(majority.sum()) - int(others.sum())
    if balance < 0 or (balance == 0 and np.ptp(values[others]) > least):
        return known, float(low_median(values))
    return others, float(low_median(values[majority]))


def _log_spread(values: np.ndarray) -> float:
    """Return the standard deviation of the logarithms, estimated by the MAD."""
    logs = np.log(values)
    return float(_MAD_TO_DEVIATION * np.median(np.abs(logs - np.median(logs))))


def link_outliers(
    values: np.ndarray, like: np.ndarray, min_effect: float, *, adds: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return a boolean array (N, N), true for links that are too slow by these `values`, and an array (N, N)
    of the median of comparable links.

    Where links are fast in several parts of the nodes and slow between them (see `within_parts`), the median
    is that of the links in the parts. Where nodes are of two groups (see `fast_links`), it is that of the
    faster group: links of slow nodes may be most of all. Otherwise it is the median of the medians of the
    nodes, for what they send and receive: one slow link of a node does not move it. Links with the same
    number in `like` are comparable. Where a node has fewer than two of them, those of kind 0, the fastest,
    are compared with all, and others with none: their median is NaN, as is that of links that all belong to
    slow nodes. `adds` : each node of a link adds to its value, as to a latency.
    """
    slow = np.zeros(values.shape, dtype=bool)
    expected = np.full(values.shape, np.nan)
    if len(values) < _MIN_LIKE:
        return slow, expected
    fastest = np.where(like == 0, values, np.nan)
    parts = within_parts(fastest, min_effect)
    if parts is None:
        fast = fast_links(fastest, min_effect, adds)
    elif adds and np.nanmedian(fastest[~parts]) < _MAX_DISTANCE * np.nanmedian(fastest[parts]):
        fast, like = None, np.where(parts, like, like + like.max() + 1)
    else:
        fast = parts
    for kind in np.unique(like):
        chosen = like == kind
        of_kind = np.where(chosen, values, np.nan)
        if _links_of_node(of_kind) < 2:
            if kind:
                continue
            of_kind = values
        usual = None if fast is None else of_kind[fast & ~np.isnan(of_kind)]
        if usual is not None and not usual.size:
            continue  # all of this kind are links of slow nodes
        if usual is not None:
            centre = float(low_median(usual))
            spread = float(low_median(np.abs(usual - centre)))
        else:
            centre = _median_of_nodes(of_kind)
            spread = _median_of_nodes(np.abs(of_kind - centre))
        expected[chosen] = centre
        slow |= chosen & (values > _limit(centre, spread, min_effect))
    return slow, expected


def fast_links(values: np.ndarray, min_effect: float, adds: bool = False) -> np.ndarray | None:
    """Return a boolean array (N, N), true for links from nodes that send as fast as the fastest to nodes that
    receive as fast, measured or not.

    Returns None if all nodes do, or if slow links are not explained by slow nodes.

    A message takes as long as the slower of its two nodes, so a node is as fast as its fastest link, if at
    least one other node is fast. This does not depend on how many are slow: the nodes are of two groups if
    there is a gap of more than `min_effect` between their fastest links, beyond five standard deviations. The
    links between nodes of the faster group must be fast themselves: where some of them are slow, distance
    divides the nodes, as two switches do, and no node is slow. If a value `adds` up, it must be largest
    between two slow nodes, or these may just be distant.
    """
    known = ~np.isnan(values)
    if (np.count_nonzero(known, axis=1) < 2).any() or (np.count_nonzero(known, axis=0) < 2).any():
        return None
    with np.errstate(divide="ignore"):  # of a clock that is too coarse
        logs = np.log(values)
    is_symmetric = np.array_equal(values, values.T, equal_nan=True)
    senders, receivers = np.nanmin(values, axis=1), np.nanmin(values, axis=0)
    nobody = [np.inf]
    groups = [
        (senders <= threshold, receivers <= other)
        for threshold in (*_gaps(senders, min_effect), *nobody)
        for other in ([threshold] if is_symmetric else (*_gaps(receivers, min_effect), *nobody))
    ]
    best: tuple[tuple[int, int], np.ndarray] | None = None
    for sends, receives in groups:
        fast = np.outer(sends, receives)
        if adds and not _slow_nodes_add(values, fast & known, sends):
            continue
        exceptions = _exceptions(logs, fast & known, known & ~fast, min_effect)
        if exceptions is None:
            continue
        # Of several, that with the fewest exceptions, and then the fewest nodes that are slow.
        cost = exceptions, -int(sends.sum() + receives.sum())
        if best is None or cost < best[0]:
            best = cost, fast
    return best[1] if best else None


def within_parts(values: np.ndarray, min_effect: float) -> np.ndarray | None:
    """Return a boolean array (N, N), true for links within parts of the nodes, if all links between these
    parts are slow and those within are fast, as where a trunk between two switches is slow; None if there are
    no such parts.

    A part has two nodes or more: a node without any fast link is slow itself. A link is as slow as its slower
    direction. Among several divisions, that with the largest gap is returned.
    """
    slower = np.fmax(values, values.T)
    best: tuple[float, np.ndarray] | None = None
    for threshold in _gaps(slower, min_effect):
        part = np.full(len(values), -1)
        parts = connected_nodes((int(i), int(j)) for i, j in np.argwhere(slower <= threshold) if i < j)
        for number, nodes in enumerate(parts):
            part[list(nodes)] = number
        in_parts = np.logical_and.outer(part >= 0, part >= 0)
        within = in_parts & np.equal.outer(part, part)
        inside, between = (slower[chosen & ~np.isnan(slower)] for chosen in (within, in_parts & ~within))
        if not between.size or np.mean(inside > threshold) > 1 - _MAX_LINKS:
            continue
        gap = float(np.log(between.min() / threshold))
        if gap > _noise(inside, between) and (best is None or gap > best[0]):
            best = gap, within
    return best[1] if best else None


def _noise(fast: np.ndarray, slow: np.ndarray) -> float:
    """Return the gap between the logarithms of two groups that may be chance.

    The slower values may belong to several groups, so that their distances say little about the noise: they
    count up to a limit, as do those of few values.
    """
    of_fast, of_slow = _DEVIATIONS * _log_spread(fast), _DEVIATIONS * _log_spread(slow)
    most = float(np.log1p(_MAX_OF_FEW))
    return max(min(of_fast, most) if fast.size <= _FEW else of_fast, min(of_slow, most))


def _gaps(values: np.ndarray, min_effect: float) -> list[float]:
    """Return the values above which the next larger value is more than `min_effect` away, from the
    smallest."""
    ordered = np.sort(values[~np.isnan(values)])
    above = ordered[1:] > ordered[:-1] * (1 + min_effect)
    return [float(one) for one in ordered[:-1][above]]


def _exceptions(logs: np.ndarray, fast: np.ndarray, slow: np.ndarray, min_effect: float) -> int | None:
    """Return how many links of the first kind are slow, plus those of the second kind that are fast; None if
    there are too many for two groups. A group may have a wide spread, but among several divisions one with a
    narrow spread has fewer exceptions."""
    if np.count_nonzero(fast) < 2 or not slow.any():
        return None
    centre = np.median(logs[fast])
    least = np.log1p(min_effect)
    limit = centre + max(least, _DEVIATIONS * _log_spread(np.exp(logs[fast])))
    if max(np.mean(logs[fast] > limit), np.mean(logs[slow] <= limit)) > 1 - _MAX_LINKS:
        return None
    return int(np.count_nonzero(np.abs(logs[fast] - centre) > least) + np.count_nonzero(logs[slow] <= limit))


def _slow_nodes_add(values: np.ndarray, fast: np.ndarray, is_fast: np.ndarray) -> bool:
    """Return whether links between two slow nodes take longer than links of one slow node, as if each added
    its own time."""
    if np.count_nonzero(is_fast) < _MIN_LIKE:
        return False
    if np.count_nonzero(~is_fast) < 2:
        return True
    of_fast = np.median(values[fast])
    of_one = np.nanmedian(values[np.ix_(is_fast, ~is_fast)])
    of_two = np.nanmedian(values[np.ix_(~is_fast, ~is_fast)])
    return bool(of_two - of_one > _ADDED_SHARE * (of_one - of_fast))


def _links_of_node(values: np.ndarray) -> int:
    return int(np.count_nonzero(~np.isnan(values), axis=1).min())


def _median_of_nodes(values: np.ndarray) -> float:
    both = np.concatenate([values, values.T], axis=1)
    both = both[~np.isnan(both).all(axis=1)]
    return float(low_median(low_median(both, axis=1)))


def _limit(centre: float, spread: float, min_effect: float) -> float:
    return max(centre * (1 + min_effect), centre + _DEVIATIONS * _MAD_TO_DEVIATION * spread)
