"""The metrics of partitioned communication of Temucin et al. 2022, and what two known behaviours give.

Symbols: m bytes in n partitions. Partition i is in flight over [a_i, b_i]: a_i when its MPI_Pready is called,
b_i when the receiver has it. The call itself counts. U is the union of these intervals, J when the computing
threads join, t_pt2pt the time of one message of the same m bytes. Arrays have shapes (I, n) and (I,).
"""

import numpy as np


def union_length_s(begin_s: np.ndarray, end_s: np.ndarray) -> np.ndarray:
    """Return the (I,) length of the union of the n intervals of an iteration, which may overlap and contain
    each other.

    An interval whose end is before its begin, because of the error of two clocks, has no length.
    """
    order = np.argsort(begin_s, axis=1, kind="stable")
    begin_s, end_s = np.take_along_axis(begin_s, order, 1), np.take_along_axis(end_s, order, 1)
    # Up to where the intervals before each one have covered the time.
    covered_s = np.maximum.accumulate(end_s, axis=1)
    before_s = np.concatenate([begin_s[:, :1], covered_s[:, :-1]], axis=1)
    return np.maximum(end_s - np.maximum(begin_s, before_s), 0.0).sum(axis=1)


def length_before_s(begin_s: np.ndarray, end_s: np.ndarray, join_s: np.ndarray) -> np.ndarray:
    """Return the (I,) length of U before J."""
    join_s = join_s[:, np.newaxis]
    return union_length_s(np.minimum(begin_s, join_s), np.minimum(end_s, join_s))


def length_after_s(begin_s: np.ndarray, end_s: np.ndarray, join_s: np.ndarray) -> np.ndarray:
    """Return the (I,) length of U after J."""
    join_s = join_s[:, np.newaxis]
    return union_length_s(np.maximum(begin_s, join_s), np.maximum(end_s, join_s))


def overhead(in_flight_s: np.ndarray, single_s: np.ndarray) -> np.ndarray:
    """Compute t_part / t_pt2pt with t_part = |U|: the cost of partitioned calls."""
    return in_flight_s / single_s


def perceived_bandwidth_bytes_per_s(
    size_bytes: int, ready_s: np.ndarray, completed_s: np.ndarray
) -> np.ndarray:
    """Compute m / t_part_last, where t_part_last is the time from the last MPI_Pready until the receiver has
    everything.
    """
    return size_bytes / np.maximum(completed_s - ready_s.max(axis=1), 1e-12)


def application_availability(after_join_s: np.ndarray, single_s: np.ndarray) -> np.ndarray:
    """Compute (t_pt2pt - |U after J|) / t_pt2pt: the share of a single message's time that the application
    gains.

    It is negative if more time is in flight after the join than a single message takes.
    """
    return (single_s - after_join_s) / single_s


def early_bird_share(begin_s: np.ndarray, end_s: np.ndarray, join_s: np.ndarray) -> np.ndarray:
    """Compute |U before J| / |U|: the share of communication that the computation hides.

    A partition that waits inside the MPI is in flight too: an MPI that sends all at the last MPI_Pready has a
    large share and a large overhead. `delivered_share` tells the two apart.
    """
    whole_s = union_length_s(begin_s, end_s)
    return length_before_s(begin_s, end_s, join_s) / np.maximum(whole_s, 1e-12)


def delivered_share(end_s: np.ndarray, join_s: np.ndarray) -> np.ndarray:
    """Compute the share of the partitions, and so of the bytes, that the receiver has when the threads join.

    The paper does not define it: it counts the partitions that have arrived, not the time in flight.
    """
    return (end_s <= join_s[:, np.newaxis]).mean(axis=1)


def arrivals_when_ready(
    ready_s: np.ndarray, partition_bytes: float, latency_s: float, bandwidth_bytes_per_s: float
) -> np.ndarray:
    """Return (I, n) arrivals if each partition is sent when ready, over one link that carries one at a
    time.
    """
    order = np.argsort(ready_s, axis=1, kind="stable")
    arrived_s = np.empty_like(ready_s)
    free_s = np.full(len(ready_s), -np.inf)
    rows = np.arange(len(ready_s))
    for column in order.T:
        free_s = np.maximum(free_s, ready_s[rows, column]) + partition_bytes / bandwidth_bytes_per_s
        arrived_s[rows, column] = free_s + latency_s
    return arrived_s


def arrivals_together(
    ready_s: np.ndarray, partition_bytes: float, latency_s: float, bandwidth_bytes_per_s: float
) -> np.ndarray:
    """Return (I, n) arrivals if everything is sent as one message after the last partition is ready."""
    size_bytes = partition_bytes * ready_s.shape[1]
    last_s = ready_s.max(axis=1) + latency_s + size_bytes / bandwidth_bytes_per_s
    return np.repeat(last_s[:, np.newaxis], ready_s.shape[1], axis=1)
