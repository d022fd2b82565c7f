"""The staircase model: processes share a measured bandwidth, and a process that finishes frees its share."""

import numpy as np


def bandwidth_at(
    num_receivers: np.ndarray, table_counts: np.ndarray, table_bytes_per_s: np.ndarray
) -> np.ndarray:
    """BW(N) in bytes/s of the whole group, linear in N between measured nodes and constant beyond the last.

    A table need not be monotone and is not changed.
    """
    return np.interp(num_receivers, table_counts, table_bytes_per_s)


def receive_times_s(volume_bytes: np.ndarray, bandwidth_bytes_per_s: np.ndarray) -> np.ndarray:
    """When each process of a group has received everything, without latency.

    Parameters
    ----------
    volume_bytes : (N, C) int64, bytes received per process and class; a class is a protocol (of a level).
        Each process receives something: leave out processes that receive nothing, since they do not compete.
    bandwidth_bytes_per_s : (..., N, C), at [..., n-1, c] BW(n) of class c for the whole group.

    Returns
    -------
    (..., N) seconds. With one class equation (7) of Thune et al. 2023, else the steps (13)-(17) with the
    volume-weighted rate of (12). Not valid if senders, not receivers, are the bottleneck.
    """
    used = np.flatnonzero(volume_bytes.any(axis=0))
    bandwidth = bandwidth_bytes_per_s[..., used]
    if len(used) == 1:
        return one_class_times_s(volume_bytes[:, used[0]], bandwidth[..., 0])
    return mixed_times_s(volume_bytes[:, used], bandwidth)


def one_class_times_s(volume_bytes: np.ndarray, bandwidth_bytes_per_s: np.ndarray) -> np.ndarray:
    """Equation (7), with one message each (5), of Thune et al. 2023.

    t_0 = N*V_0/BW(N), t_i = t_{i-1} + (N-i)*(V_i - V_{i-1})/BW(N-i), V sorted, ties by order.
    `volume_bytes` (N,), `bandwidth_bytes_per_s` (..., N) with BW(n) at n-1; returns (..., N) in the order
    given.
    """
    order = np.argsort(volume_bytes, kind="stable")
    steps_bytes = np.diff(volume_bytes[order], prepend=0)
    unfinished = np.arange(len(order), 0, -1)
    finished_s = np.cumsum(unfinished * steps_bytes / bandwidth_bytes_per_s[..., ::-1], axis=-1)
    result = np.empty_like(finished_s)
    result[..., order] = finished_s
    return result


def mixed_times_s(volume_bytes: np.ndarray, bandwidth_bytes_per_s: np.ndarray) -> np.ndarray:
    """Equations (12)-(17) of Thune et al. 2023 for any number of classes; shapes as in `receive_times_s`.

    A process with the fraction theta_c of its volume in class c receives sum_c theta_c*BW_c(n)/n while n
    processes are unfinished. What it has received is therefore sum_c theta_c*A_c, where A_c, one number per
    class for the whole group, grows by dt*BW_c(n)/n. The state therefore has one number per class, none per
    process.
    """
    num_processes, num_classes = volume_bytes.shape
    batch = bandwidth_bytes_per_s.shape[:-2]
    bandwidth = bandwidth_bytes_per_s.reshape(-1, num_processes, num_classes)
    rows = np.arange(len(bandwidth))
    volume = volume_bytes.sum(axis=1)
    fraction = share_by_volume(volume_bytes).T
    served = np.zeros((len(bandwidth), num_classes))
    now_s = np.zeros(len(bandwidth))
    finished_s = np.full((len(bandwidth), num_processes), np.nan)
    unfinished = np.ones(finished_s.shape, dtype=bool)
    for n in range(num_processes, 0, -1):
        growth = bandwidth[:, n - 1] / n
        left_s = np.where(unfinished, (volume - served @ fraction) / (growth @ fraction), np.inf)
        following = np.argmin(left_s, axis=1)
        # Rounding can leave a process that ends together with the last one a hair below zero.
        step_s = np.maximum(left_s[rows, following], 0.0)
        now_s += step_s
        served += step_s[:, None] * growth
        finished_s[rows, following] = now_s
        unfinished[rows, following] = False
    return finished_s.reshape(*batch, num_processes)


def share_by_volume(volume_bytes: np.ndarray) -> np.ndarray:
    """theta of (12) in Thune et al. 2023, (N, C): the share of each class in the bytes of a process."""
    return volume_bytes / volume_bytes.sum(axis=1, keepdims=True)


def completion_fractions(receiver: np.ndarray, size_bytes: np.ndarray) -> np.ndarray:
    """When each message is complete, as a fraction of its receiver's t_recv: equation (9) of Thune et al.
    2023.

    The recursion in closed form: with the M messages of a receiver sorted by size, message j (from 0) is
    complete at c_j*t_recv, c_j = (s_0 + ... + s_j + (M-1-j)*s_j)/V. It depends on the messages alone, not on
    the machine.

    Parameters
    ----------
    receiver, size_bytes : (M,) int64, the messages of one level in any order.

    Returns
    -------
    (M,) between 0 and 1; 0 for a message of 0 bytes.
    """
    order = np.lexsort((size_bytes, receiver))
    size = size_bytes[order]
    starts = np.flatnonzero(np.diff(receiver[order], prepend=-1))
    counts = np.diff(starts, append=len(order))
    running = np.cumsum(size)
    before = np.repeat(running[starts] - size[starts], counts)
    volume = np.repeat(running[starts + counts - 1], counts) - before
    larger = np.repeat(starts + counts - 1, counts) - np.arange(len(order))
    fractions = np.empty(len(order))
    fractions[order] = (running - before + larger * size) / np.maximum(volume, 1)
    return fractions


def send_waits_s(sender: np.ndarray, completed_s: np.ndarray, num_ranks: int) -> np.ndarray:
    """t_send of (8) in Thune et al. 2023: when the last of each rank's waited-for sends is complete, 0
    without any.

    Parameters
    ----------
    sender : (M,) rank that sent each message; only messages with a protocol that makes the sender wait.
    completed_s : (M,) when each is complete at its receiver, without the receiver's latency.

    Returns
    -------
    (num_ranks,) seconds.
    """
    waits_s = np.zeros(num_ranks)
    np.maximum.at(waits_s, sender, completed_s)
    return waits_s
