"""The cost of one message by its size: the lines of the protocols of an MPI."""

import numpy as np


def message_cost_s(
    size_bytes: np.ndarray,
    min_bytes: np.ndarray,
    latency_s: np.ndarray,
    bandwidth_bytes_per_s: np.ndarray,
) -> np.ndarray:
    """Compute T = tau_p + s/BW_p, equation (1) of Thune et al. 2023 with the parameters of the protocol p of
    s bytes: the one with the largest `min_bytes` that is not above s.

    libearlybird uses this cost to choose segments (native/partitioned/segmentation/cost.c, EARLYBIRD_COSTS).

    Parameters
    ----------
    size_bytes : sizes of 0 or more, in an array of any shape.
    min_bytes : (C,) ascending from 0, where each protocol begins.
    latency_s, bandwidth_bytes_per_s : (C,), for a single pair.

    Returns
    -------
    Seconds, in the shape of `size_bytes`. Like the postal model, the result is not valid if messages share a
    link or a memory bus.
    """
    size_bytes = np.asarray(size_bytes)
    protocol = np.searchsorted(np.asarray(min_bytes), size_bytes, side="right") - 1
    return np.asarray(latency_s)[protocol] + size_bytes / np.asarray(bandwidth_bytes_per_s)[protocol]
