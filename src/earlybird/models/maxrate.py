"""The max-rate models: pairs share a link with an upper limit."""

import numpy as np

# Up to this relative deviation, a bandwidth follows the ideal scaling.
FOLLOWS = 0.05


def maxrate_bandwidth(
    num_pairs: np.ndarray, single_bandwidth_bytes_per_s: float, max_bandwidth_bytes_per_s: float
) -> np.ndarray:
    """Compute BW(N) = min(N*BW_SP, BW_max), equation (3) of Thune et al. 2023: the ideal scaling."""
    return np.minimum(np.asarray(num_pairs) * single_bandwidth_bytes_per_s, max_bandwidth_bytes_per_s)


def maxrate_time_s(
    num_pairs: int, size_bytes: np.ndarray, latency_s: float, bandwidth_bytes_per_s: float
) -> np.ndarray:
    """Compute T = tau + N*s/BW(N), equation (2) of Thune et al. 2023, for N equal messages at once.

    `bandwidth_bytes_per_s` is BW(N) of the whole group, measured or from `maxrate_bandwidth`.
    """
    return latency_s + num_pairs * np.asarray(size_bytes) / bandwidth_bytes_per_s


def slowest_time_s(
    num_messages: int,
    total_bytes: int,
    largest_bytes: int,
    latency_s: float,
    single_bandwidth_bytes_per_s: float,
    max_bandwidth_bytes_per_s: float,
) -> float:
    """Compute T = M*tau + max(s_total/BW_max, s_max/BW_SP), equation (4) of Thune et al. 2023: the slowest
    process of a node.

    M is the largest number of messages of a process, `total_bytes` the volume of the node, `largest_bytes`
    that of the process with the largest volume.
    """
    shared_s = total_bytes / max_bandwidth_bytes_per_s
    return num_messages * latency_s + max(shared_s, largest_bytes / single_bandwidth_bytes_per_s)


def extended_time_s(
    volume_bytes: np.ndarray,
    single_bandwidth_bytes_per_s: np.ndarray,
    max_bandwidth_bytes_per_s: np.ndarray,
) -> np.ndarray:
    """Compute max(min(V_total, N*V_i)/BW_max, V_i/BW_SP) of one group: equation (10) of Thune et al. 2023
    without M_i*tau.

    Parameters
    ----------
    volume_bytes : (N, C) bytes received per process and protocol, each process with something to receive.
    single_bandwidth_bytes_per_s, max_bandwidth_bytes_per_s : (..., C) BW(1) and the largest BW of
        each protocol.

    Returns
    -------
    (..., N) seconds. The paper has one protocol; with several, each volume is divided by the bandwidth of its
    protocol before volumes are added or compared, which is (10) for one protocol.
    """
    alone_s = (1 / single_bandwidth_bytes_per_s) @ volume_bytes.T
    at_limit_s = (1 / max_bandwidth_bytes_per_s) @ volume_bytes.T
    total_s = at_limit_s.sum(axis=-1, keepdims=True)
    return np.maximum(np.minimum(total_s, len(volume_bytes) * at_limit_s), alone_s)
