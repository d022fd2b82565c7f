"""Pipelined (partitioned) communication: the closed forms of Gillis et al. 2023, and a model that joins them.

N threads with theta partitions each: N*theta partitions of `partition_bytes`; D is the delay between the
first and the last partition being ready. The closed forms exclude latency and the cost of a message, so
(2)-(4) are valid for large partitions only; (5) is the opposite extreme, with latency only. The joined model
(`joined_time_s`) is valid for both and in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Candidate numbers of equal messages of a segmentation by libearlybird, which has at most 32 messages.
_PLANNED_MESSAGES = (1, 2, 4, 8, 16, 32)


def bulk_time_s(num_partitions: int, partition_bytes: float, bandwidth_bytes_per_s: float) -> float:
    """Compute T_b = N_part*S_part/beta, equation (2): one message after all partitions are ready."""
    return num_partitions * partition_bytes / bandwidth_bytes_per_s


def pipelined_time_s(
    num_partitions: int, partition_bytes: float, bandwidth_bytes_per_s: float, delay_s: float
) -> float:
    """Compute T_p = max((N_part - 1)*S_part/beta - D, 0) + S_part/beta, equation (3): partitions leave when
    ready.
    """
    one_s = partition_bytes / bandwidth_bytes_per_s
    return max((num_partitions - 1) * one_s - delay_s, 0.0) + one_s


def large_message_gain(
    num_threads: int, partitions_per_thread: int, delay_rate_s_per_byte: float, bandwidth_bytes_per_s: float
) -> float:
    """Compute eta = N*theta/max(N*theta - gamma*beta, 1), equation (4): between 1 and N*theta,
    dimensionless.
    """
    num_partitions = num_threads * partitions_per_thread
    return num_partitions / max(num_partitions - delay_rate_s_per_byte * bandwidth_bytes_per_s, 1.0)


def small_message_gain(num_threads: int, partitions_per_thread: int) -> float:
    """Compute eta = 1/(N*theta), equation (5): each partition has the latency that one message has once."""
    return 1 / (num_threads * partitions_per_thread)


def compute_rate_s_per_byte(
    arithmetic_intensity: float, communication_intensity: float, frequency_hz: float
) -> float:
    """Compute mu = (AI/CI)/(8*F), equation (6).

    `arithmetic_intensity` is in flop per byte of memory, `communication_intensity` is the bytes sent per byte
    of memory; the paper assumes 8 flops per cycle.
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
    """Draw `count` times of S_part*mu*Normal(1, (epsilon + delta)/2), equation (7): seconds to compute a
    partition.

    `epsilon` is the relative noise of the system, `delta` the relative imbalance of the algorithm.
    """
    return partition_bytes * mu_s_per_byte * generator.normal(1.0, (epsilon + delta) / 2, count)


def delay_rate_s_per_byte(
    mu_s_per_byte: float, partitions_per_thread: int, epsilon: float, delta: float
) -> float:
    """Compute gamma_theta = mu*(theta + (epsilon + delta)/2*(sqrt(theta) + 1) - 1), equation (9)."""
    sigma = (epsilon + delta) / 2
    root = partitions_per_thread**0.5
    return mu_s_per_byte * (partitions_per_thread + sigma * (root + 1) - 1)


@dataclass(frozen=True, eq=False)
class PipelineCosts:
    """The parameters of the joined model, for one method of sending.

    Attributes
    ----------
    min_bytes : (C,) message sizes at which the protocols begin, ascending from 0.
    latency_s : (C,) tau, from the departure of the last message until the receiver has everything.
    overhead_s : (C,) o, the time for which a message delays others, in addition to its bytes.
    s_per_byte : (C,) 1/beta.
    per_partition_s : cost of the calls for one partition, independent of its message.
    overlap : useful share of an early message's head start: 0 if nothing is sent before the last partition is
        ready.
    burst_bytes, post_burst_s_per_byte : additional time per byte in the part of a buffer beyond the first
        `burst_bytes`, the size of a cache or of the token bucket of a link.
    """

    min_bytes: np.ndarray
    latency_s: np.ndarray
    overhead_s: np.ndarray
    s_per_byte: np.ndarray
    per_partition_s: float | np.ndarray = 0.0
    overlap: float | np.ndarray = 1.0
    burst_bytes: float | np.ndarray = np.inf
    post_burst_s_per_byte: float | np.ndarray = 0.0


def stacked(costs: Sequence[PipelineCosts]) -> PipelineCosts | None:
    """Combine R costs into one, which makes `joined_time_s` of one point return (R,); None if their protocols
    begin at different sizes.
    """
    starts = costs[0].min_bytes
    if not all(np.array_equal(one.min_bytes, starts) for one in costs):
        return None

    def rows(name: str) -> np.ndarray:
        return np.array([getattr(one, name) for one in costs])

    tables = {name: rows(name) for name in ("latency_s", "overhead_s", "s_per_byte")}
    columns = {name: rows(name)[:, None] for name in ("overlap", "burst_bytes", "post_burst_s_per_byte")}
    return PipelineCosts(starts, **tables, per_partition_s=rows("per_partition_s"), **columns)


@dataclass(frozen=True, eq=False)
class Trains:
    """The messages in trains, (..., M): `count` messages of `size_bytes` that are ready at `ready_s`.

    In every row the train that is ready last has a message; others may be empty.
    """

    ready_s: np.ndarray
    size_bytes: np.ndarray
    count: np.ndarray

    def in_order(self) -> "Trains":
        """Sort each row by ascending `ready_s`: messages leave in the order in which they are ready."""
        ready_s, size_bytes, count = np.broadcast_arrays(self.ready_s, self.size_bytes, self.count)
        order = np.argsort(ready_s, axis=-1, kind="stable")
        return Trains(*(np.take_along_axis(one, order, axis=-1) for one in (ready_s, size_bytes, count)))


def joined_time_s(trains: Trains, num_partitions: np.ndarray, costs: PipelineCosts) -> np.ndarray:
    """Compute T = max over messages i of (r_i + sum over j >= i of (o_j + s_j/beta_j)) + tau - r_last, which
    joins (2)-(5).

    Messages leave one after another, each when it is ready and the previous one has left. r_i is when
    message i is ready; if the overlap is below 1, r_last - overlap*(r_last - r_i) replaces it. tau is
    that of the message that is ready last, and c*num_partitions is added for the calls. Without latency and
    overhead this is (2) for one message, (3) for one per partition, (4) their ratio; with overhead alone the
    ratio is (5).

    Parameters
    ----------
    trains : (..., M).
    num_partitions : (...), number of partitions of the whole buffer.

    Returns
    -------
    (...) seconds from when the last message is ready until the receiver has everything: time-to-solution
    minus the delay. The model is not valid if threads or messages disturb each other in other ways than by
    waiting in order.
    """
    trains = trains.in_order()
    protocol = np.searchsorted(costs.min_bytes, trains.size_bytes, side="right") - 1
    buffer_bytes = (trains.count * trains.size_bytes).sum(axis=-1, keepdims=True)
    s_per_byte = costs.s_per_byte[..., protocol] + costs.post_burst_s_per_byte * share_beyond(
        buffer_bytes, costs.burst_bytes
    )
    busy_s = trains.count * (costs.overhead_s[..., protocol] + trains.size_bytes * s_per_byte)
    left_s = np.cumsum(busy_s[..., ::-1], axis=-1)[..., ::-1]
    head_start_s = costs.overlap * (trains.ready_s[..., -1:] - trains.ready_s)
    path_s = (left_s - head_start_s).max(axis=-1)
    return (
        path_s + costs.latency_s[..., protocol[..., -1]] + costs.per_partition_s * np.asarray(num_partitions)
    )


def share_beyond(buffer_bytes: np.ndarray, burst_bytes: float | np.ndarray) -> np.ndarray:
    """Return the share of a buffer that lies beyond `burst_bytes`; 0 for an empty buffer."""
    return np.maximum(0.0, 1 - burst_bytes / np.maximum(buffer_bytes, 1))


def late_last(
    num_partitions: np.ndarray,
    partition_bytes: np.ndarray,
    delay_s: np.ndarray,
    per_message: np.ndarray,
    *,
    alone: bool = False,
) -> Trains:
    """Return the messages of partitions that are all ready at 0 except the last, `delay_s` later: (..., 2).

    Parameters
    ----------
    per_message : number of neighbouring partitions that leave together; the last message may have fewer.
    alone : the last partition leaves alone, the others `per_message` together.
    """
    count, size, delay, each = np.broadcast_arrays(
        *(np.asarray(one, dtype=float) for one in (num_partitions, partition_bytes, delay_s, per_message))
    )
    if alone:
        early = np.ceil((count - 1) / each)
        early_bytes = size * (count - 1) / np.maximum(early, 1)
        last_bytes = size
    else:
        early = np.ceil(count / each) - 1
        early_bytes = size * each
        last_bytes = size * (count - early * each)
    return Trains(
        np.stack([np.zeros_like(delay), delay], axis=-1),
        np.stack([early_bytes, last_bytes], axis=-1),
        np.stack([early, np.ones_like(early)], axis=-1),
    )


def possible_messages(
    messages: str | int, num_partitions: np.ndarray, partition_bytes: np.ndarray, delay_s: np.ndarray
) -> list[Trains]:
    """Return the messages that a method may send; it uses the fastest alternative.

    `messages` is "one" for all partitions together, "each" for one message per partition, a number of bytes
    for as many whole partitions per message as fit them (at least one), "planned" for the segmentation of
    libearlybird: 1 to 32 equal messages, of all partitions, or of all except the last, which is sent alone.
    (The library also uses uneven groupings; with one late partition they gain little.)
    """
    count = np.asarray(num_partitions, dtype=float)
    if messages == "planned":
        each = [np.ceil(count / np.minimum(count, number)) for number in _PLANNED_MESSAGES]
        return [
            late_last(count, partition_bytes, delay_s, per_message, alone=alone)
            for alone in (False, True)
            for per_message in each
        ]
    if messages == "one":
        per_message = count
    elif messages == "each":
        per_message = np.ones_like(count)
    else:
        per_message = np.clip(np.floor(messages / np.maximum(partition_bytes, 1e-9)), 1, count)
    return [late_last(count, partition_bytes, delay_s, per_message)]


def pipeline_time_s(
    messages: str | int,
    num_partitions: np.ndarray,
    partition_bytes: np.ndarray,
    delay_s: np.ndarray,
    costs: PipelineCosts,
) -> np.ndarray:
    """Return `joined_time_s` of the best of `possible_messages`, (...) seconds; the last one is `delay_s`
    late.
    """
    times_s = [
        joined_time_s(trains, num_partitions, costs)
        for trains in possible_messages(messages, num_partitions, partition_bytes, delay_s)
    ]
    return np.min(times_s, axis=0)
