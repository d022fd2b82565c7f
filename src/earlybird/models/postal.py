"""The postal model: latency and bandwidth of one pair, no contention."""

import numpy as np


def postal_time_s(size_bytes: np.ndarray, latency_s: float, bandwidth_bytes_per_s: float) -> np.ndarray:
    """Compute T = tau + s/BW_SP, equation (1) of Thune et al. 2023.

    `size_bytes` has any shape; `bandwidth_bytes_per_s` is that of a single pair, BW(1). The time of a process
    with several incoming messages is the sum over them. The model is not valid if two messages share a link
    or a memory bus.
    """
    return latency_s + np.asarray(size_bytes) / bandwidth_bytes_per_s


def uncontended_time_s(volume_bytes: np.ndarray, single_bandwidth_bytes_per_s: np.ndarray) -> np.ndarray:
    """Compute the seconds without latency that each process needs for all it receives, one message after the
    other.

    Parameters
    ----------
    volume_bytes : (P, C) bytes received per process and protocol.
    single_bandwidth_bytes_per_s : (..., C) BW(1) of each protocol.

    Returns
    -------
    (..., P): the sum of s/BW_SP of (1) over the incoming messages.
    """
    return (1 / single_bandwidth_bytes_per_s) @ volume_bytes.T
