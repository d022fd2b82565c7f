"""Max-min fair sharing of any links: every message is a flow through the links that it passes."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # which takes a third of the start of `earlybird predict`
    from scipy.sparse import csr_array

# Completions within this part of the elapsed time are one step, as in `fair`.
BATCH_FRACTION = 5e-3
_ROUNDING = 1e-9


def completion_times_s(
    passes: "csr_array",
    bandwidth_bytes_per_s: np.ndarray,
    size_bytes: np.ndarray,
    limit_bytes_per_s: np.ndarray,
    batch_fraction: float = BATCH_FRACTION,
) -> np.ndarray:
    """Compute when each message is complete, without latency, if all start at 0.

    All rates rise together; a message stops at its own limit, or when a link that it passes is full; at the
    next completion all links are shared again (progressive filling). The model is not valid where messages
    queue, or where a link prefers some of them.

    Parameters
    ----------
    passes : (L, M), 1 where a message passes a link; every message passes one at least.
    bandwidth_bytes_per_s : (L,) bandwidth of each link.
    size_bytes : (M,); a message of 0 bytes is complete at 0 and takes no share.
    limit_bytes_per_s : (M,) bandwidth of each message alone, infinity without a limit.
    batch_fraction : completions within this fraction of the elapsed time are one step, which ends at the mean
        of their times, weighted by rate, so that as many bytes are moved as in single steps; 0 for single
        steps.

    Returns
    -------
    (M,) seconds.
    """
    left_bytes = size_bytes.astype(float)
    complete_s, now_s = np.zeros(len(left_bytes)), 0.0
    by_message = passes.T.tocsr()
    active = left_bytes > 0
    while active.any():
        rate = _rates(passes, by_message, bandwidth_bytes_per_s, limit_bytes_per_s, active)
        here = np.flatnonzero(active)
        ends_s = left_bytes[here] / rate[here]
        ended = ends_s <= max(ends_s.min() * (1 + _ROUNDING), batch_fraction * now_s)
        complete_s[here[ended]] = now_s + ends_s[ended]
        active[here[ended]] = False
        step_s = np.average(ends_s[ended], weights=rate[here[ended]])
        left_bytes -= rate * step_s
        now_s += step_s
    return complete_s


def _rates(
    passes: "csr_array",
    by_message: "csr_array",
    bandwidth_bytes_per_s: np.ndarray,
    limit_bytes_per_s: np.ndarray,
    active: np.ndarray,
) -> np.ndarray:
    """Return (M,) bytes/s of the active messages."""
    rate, rising, free = np.zeros(len(active)), active.copy(), bandwidth_bytes_per_s.astype(float)
    while rising.any():
        count = passes @ rising.astype(float)
        share = np.full(len(free), np.inf)
        np.divide(free, count, out=share, where=count > 0)
        risen = min(share.min(), limit_bytes_per_s[rising].min())
        full = share <= risen * (1 + _ROUNDING)
        stops = rising & (
            (by_message @ full.astype(float) > 0) | (limit_bytes_per_s <= risen * (1 + _ROUNDING))
        )
        rate[stops] = risen
        free = np.maximum(free - passes @ np.where(stops, rate, 0.0), 0)
        rising &= ~stops
    return rate
