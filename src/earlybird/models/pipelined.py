"""The closed-form model of pipelined (partitioned) communication of Gillis et al. 2023.

N threads with theta partitions each: N*theta partitions of `partition_bytes`; D is the delay between the
first and the last partition being ready. Latency and the cost of a message are left out, so (2)-(4) hold for
large partitions only; (5) is the opposite end, where latency is all there is.
"""

import numpy as np


def bulk_time_s(num_partitions: int, partition_bytes: float, bandwidth_bytes_per_s: float) -> float:
    """T_b = N_part*S_part/beta, equation (2): one message after all partitions are ready."""
    return num_partitions * partition_bytes / bandwidth_bytes_per_s


def pipelined_time_s(
    num_partitions: int, partition_bytes: float, bandwidth_bytes_per_s: float, delay_s: float
) -> float:
    """T_p = max((N_part - 1)*S_part/beta - D, 0) + S_part/beta, equation (3): partitions leave when ready."""
    one_s = partition_bytes / bandwidth_bytes_per_s
    return max((num_partitions - 1) * one_s - delay_s, 0.0) + one_s


def large_message_gain(
    num_threads: int, partitions_per_thread: int, delay_rate_s_per_byte: float, bandwidth_bytes_per_s: float
) -> float:
    """eta = N*theta/max(N*theta - gamma*beta, 1), equation (4): between 1 and N*theta, dimensionless."""
    num_partitions = num_threads * partitions_per_thread
    return num_partitions / max(num_partitions - delay_rate_s_per_byte * bandwidth_bytes_per_s, 1.0)


def small_message_gain(num_threads: int, partitions_per_thread: int) -> float:
    """eta = 1/(N*theta), equation (5): each partition pays the latency that one message would pay once."""
    return 1 / (num_threads * partitions_per_thread)


def compute_rate_s_per_byte(
    arithmetic_intensity: float, communication_intensity: float, frequency_hz: float
) -> float:
    """mu = (AI/CI)/(8*F), equation (6).

    `arithmetic_intensity` in flop per byte of memory, `communication_intensity` the bytes sent per byte of
    memory, 8 flops per cycle as the paper assumes.
    """
    return arithmetic_intensity / communication_intensity / (8 * frequency_hz)


def partition_compute_times_s(
    generator: np.random.Generator,
    count: int,
    partition_bytes: float,
    mu_s_per_byte: float,
    epsilon: float,
    delta: float,
) -> np.ndarray:
    """`count` draws of S_part*mu*Normal(1, (epsilon + delta)/2), equation (7): seconds to compute a
    partition.

    `epsilon` is the relative noise of the system, `delta` the relative imbalance of the algorithm.
    """
    return partition_bytes * mu_s_per_byte * generator.normal(1.0, (epsilon + delta) / 2, count)


def delay_rate_s_per_byte(
    mu_s_per_byte: float, partitions_per_thread: int, epsilon: float, delta: float
) -> float:
    """gamma_theta = mu*(theta + (epsilon + delta)/2*(sqrt(theta) + 1) - 1), equation (9)."""
    sigma = (epsilon + delta) / 2
    root = partitions_per_thread**0.5
    return mu_s_per_byte * (partitions_per_thread + sigma * (root + 1) - 1)
