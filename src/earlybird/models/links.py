"""Max-min fair sharing of any links: every message is a flow through the links that it passes."""

import numpy as np
from scipy.sparse import csr_array

# Completions within this part of the elapsed time are one step: errors of a percent, and some hundred steps.
STEP = 2e-2
_ROUNDING = 1e-9


def completion_times_s(
    passes: csr_array,
    bandwidth_bytes_per_s: np.ndarray,
    size_bytes: np.ndarray,
    most_bytes_per_s: np.ndarray,
    step: float = STEP,
) -> np.ndarray:
    """When each message is complete, without latency, if all start at 0.

    All rates rise together; a message stops at its own limit, or when a link that it passes is full; at the
    next completion all links are shared again (progressive filling).

    Parameters
    ----------
    passes : (L, M), 1 where a message passes a link. Every message passes one at least.
    bandwidth_bytes_per_s : (L,) of each link.
    size_bytes : (M,); a message of 0 bytes is complete at 0 and takes no share.
    most_bytes_per_s : (M,) of each message alone, infinity without a limit.
    step : completions within this fraction of the elapsed time are one step; 0 for none.

    Returns
    -------
    (M,) seconds.
    """
    left_bytes = size_bytes.astype(float)
    complete_s, now_s = np.zeros(len(left_bytes)), 0.0
    by_message = passes.T.tocsr()
    active = left_bytes > 0
    while active.any():
        rate = _rates(passes, by_message, bandwidth_bytes_per_s, most_bytes_per_s, active)
        ends_s = left_bytes[active] / rate[active]
        step_s = max(ends_s.min(), step * now_s)
        now_s += step_s
        ended = np.flatnonzero(active)[ends_s <= step_s * (1 + _ROUNDING)]
        left_bytes = np.maximum(left_bytes - rate * step_s, 0)
        complete_s[ended] = now_s
        active[ended] = False
    return complete_s


def _rates(
    passes: csr_array,
    by_message: csr_array,
    bandwidth_bytes_per_s: np.ndarray,
    most_bytes_per_s: np.ndarray,
    active: np.ndarray,
) -> np.ndarray:
    """(M,) bytes/s of the active messages."""
    rate, rising, free = np.zeros(len(active)), active.copy(), bandwidth_bytes_per_s.astype(float)
    while rising.any():
        count = passes @ rising.astype(float)
        share = np.full(len(free), np.inf)
        np.divide(free, count, out=share, where=count > 0)
        level = min(share.min(), most_bytes_per_s[rising].min())
        full = share <= level * (1 + _ROUNDING)
        stops = rising & (
            (by_message @ full.astype(float) > 0) | (most_bytes_per_s <= level * (1 + _ROUNDING))
        )
        rate[stops] = level
        free = np.maximum(free - passes @ np.where(stops, rate, 0.0), 0)
        rising &= ~stops
    return rate
