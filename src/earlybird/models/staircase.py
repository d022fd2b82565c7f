"""The staircase model: processes share a measured bandwidth, and a process that finishes frees its share."""

import numpy as np

from earlybird.models import compiled


def bandwidth_at(
    num_receivers: np.ndarray, table_counts: np.ndarray, table_bytes_per_s: np.ndarray
) -> np.ndarray:
    """Return BW(N) in bytes/s of the whole group, linear in N between measured nodes and constant beyond the
    last.

    A table need not be monotone and is not changed.
    """
    return np.interp(num_receivers, table_counts, table_bytes_per_s)


def receive_times_s(volume_bytes: np.ndarray, bandwidth_bytes_per_s: np.ndarray) -> np.ndarray:
    """Compute when each process of a group has received everything, without latency.

    Parameters
    ----------
    volume_bytes : (N, C) int64, bytes received per process and class; a class is a protocol (of a level).
        Each process receives something: leave out processes that receive nothing, since they do not compete.
    bandwidth_bytes_per_s : (..., N, C), at [..., n-1, c] BW(n) of class c for the whole group.

    Returns
    -------
    (..., N) seconds. With one class this is equation (7) of Thune et al. 2023, with one message each this is
    (5); with several classes, the steps (13)-(17) with the volume-weighted rate of (12). The model is not
    valid if senders, not receivers, are the bottleneck.
    """
    rows = bandwidth_bytes_per_s.reshape(-1, *bandwidth_bytes_per_s.shape[-2:])
    first = np.array([0, len(volume_bytes)])
    times_s = [compiled.staircase(first, volume_bytes, row) for row in rows]
    return np.array(times_s).reshape(*bandwidth_bytes_per_s.shape[:-2], len(volume_bytes))


def group_times_s(
    first: np.ndarray, volume_bytes: np.ndarray, bandwidth_bytes_per_s: np.ndarray
) -> np.ndarray:
    """Compute `receive_times_s` of many groups: the processes of group g are first[g] .. first[g+1]-1 of
    `volume_bytes` (N, C). `bandwidth_bytes_per_s` has the shape (R, n, C), n at least the processes of the
    largest group; the result is (R, N).
    """
    return np.array([compiled.staircase(first, volume_bytes, row) for row in bandwidth_bytes_per_s])


def completion_fractions(
    receiver: np.ndarray, size_bytes: np.ndarray, least_bytes: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Compute when each message is complete, as a fraction of its receiver's t_recv: equation (9) of Thune et
    al. 2023.

    The formula is the closed form of the recursion: with the M messages of a receiver sorted by size, message
    j (from 0) is complete at c_j*t_recv, c_j = (s_0 + ... + s_j + (M-1-j)*s_j)/V. It depends on the messages
    alone, not on the machine.

    Parameters
    ----------
    receiver, size_bytes : (M,) int64, the messages of one level in any order.
    least_bytes : smaller messages count, but their own fractions are not computed, which takes less time.

    Returns
    -------
    The numbers (K,) of the messages of `least_bytes` or more, by receiver, and their fractions (K,) between 0
    and 1; 0 for a message of 0 bytes.
    """
    num_receivers = int(receiver.max()) + 1 if len(receiver) else 0
    return compiled.completion_fractions(receiver, num_receivers, size_bytes, least_bytes)
