"""The formula of each model of exchanges, for messages that compete with each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.exchange_models import MODELS
from earlybird.data.profile import Level
from earlybird.data.threads import in_threads
from earlybird.models import fair, maxrate, postal, staircase
from earlybird.models.queue import Queues
from earlybird.predict.parts import Classes, Part, bandwidth_tables, bandwidth_up_to

# Parameter sets, a tuple of levels each, that differ only in latencies and bandwidths.
ParameterSets = Sequence[tuple[Level, ...]]
# (R, P) each for R parameter sets, without latencies: when a rank has received everything, and when the last
# send that it waits for is delivered; None if no model of senders is part of the formula.
Ends = tuple[np.ndarray, np.ndarray | None]

# What `fair` may cost, in steps times what a step costs (`fair.Sharing.work`), about 20 ns each, with a step
# for each message; a message costs as much as three such units. Otherwise completions within 0.5 % of the
# elapsed time are one step, of which there are about 700. Where steps cost more than FAIR_BATCHED_WORK, they
# are larger by as much, up to 5 %.
FAIR_EXACT_WORK = 2 * 10**7
FAIR_BATCH_FRACTION, FAIR_BATCHED_STEPS = 5e-3, 700
FAIR_BATCHED_WORK, FAIR_MAX_BATCHED = 50_000, 10
FAIR_MESSAGE_WORK = 3
# What a chunk of `queue` costs in the same units.
QUEUE_CHUNK_WORK = 25


@dataclass(frozen=True)
class Solver:
    """The formula of a model.

    Attributes
    ----------
    ends_s : computes the times from the messages by class, the parameter sets, and the recipient of equal
        shares.
    work : the cost of one parameter set, in units of about 20 ns; None if it is small.
    """

    ends_s: Callable[[Classes, ParameterSets, str], Ends]
    work: Callable[[Classes, str], int] | None = None


def times_s(
    part: Part, levels: ParameterSets, model: str, share: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return receive_s, transfer_s and latency_s, (R, P) each; a transfer includes the sends for which the
    sender waits.
    """
    classes = part.classes(levels[0])
    latencies_s = [[item.latency_s for level in row for item in level.protocols] for row in levels]
    latency_s = np.array(latencies_s) @ classes.num_received.T
    receive_s, send_s = SOLVERS[model].ends_s(classes, levels, share)
    return receive_s, receive_s if send_s is None else np.maximum(receive_s, send_s), latency_s


def _postal_s(classes: Classes, levels: ParameterSets, share: str) -> Ends:
    return postal.uncontended_time_s(classes.volume_bytes, _single_and_largest(levels)[0]), None


def _max_rate_s(classes: Classes, levels: ParameterSets, share: str) -> Ends:
    part, rates = classes.part, _single_and_largest(levels)
    receive_s = np.zeros((len(levels), len(part.group)))
    for begin, end in zip(part.first[:-1], part.first[1:], strict=True):
        group = part.receivers[begin:end]
        receive_s[:, group] = maxrate.extended_time_s(classes.volume_bytes[group], *rates)
    return receive_s, None


def _single_and_largest(levels: ParameterSets) -> tuple[np.ndarray, np.ndarray]:
    """Return (R, C) each: BW(1), and the largest BW(N) of the table."""
    tables = bandwidth_tables(levels)
    return (
        np.array([[rates[0] for _, rates in row] for row in tables]),
        np.array([[rates.max() for _, rates in row] for row in tables]),
    )


def _staircase_s(classes: Classes, levels: ParameterSets, share: str) -> Ends:
    part = classes.part
    receive_s = np.zeros((len(levels), len(part.group)))
    bandwidth = bandwidth_up_to(bandwidth_tables(levels), part.most_receivers)
    volume_bytes = classes.volume_bytes[part.receivers]
    receive_s[:, part.receivers] = staircase.group_times_s(part.first, volume_bytes, bandwidth)
    return receive_s, classes.send_s(receive_s)


def _fair_s(classes: Classes, levels: ParameterSets, share: str) -> Ends:
    sharing, step = classes.keep(_sharing, share), batch_fraction(classes, share)

    def last_s(capacity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return sharing.last_times_s(capacity, classes.waits, step)

    return _of_each_capacity(last_s, _bandwidth_of_both_ends(classes.part, levels))


def _queue_s(classes: Classes, levels: ParameterSets, share: str) -> Ends:
    """Compute the times by `queue`, with a BW(n) that does not fall: a link that carries a rate for few
    processes carries it for more, and a measured decrease is what connections cost each other.
    """
    queues = classes.keep(_queues)
    capacities = np.maximum.accumulate(_bandwidth_of_both_ends(classes.part, levels), axis=1)
    buffered = np.array([item.buffered for level in levels[0] for item in level.protocols])

    def last_s(capacity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return queues.last_times_s(capacity, buffered)

    return _of_each_capacity(last_s, capacities)


def _bandwidth_of_both_ends(part: Part, levels: ParameterSets) -> np.ndarray:
    return bandwidth_up_to(bandwidth_tables(levels), max(part.most_receivers, part.most_senders, 1))


def _of_each_capacity(
    last_s: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], capacities: np.ndarray
) -> Ends:
    rows = in_threads(last_s, list(capacities))
    return np.array([receive_s for receive_s, _ in rows]), np.array([send_s for _, send_s in rows])


def _sharing(classes: Classes, share: str) -> fair.Sharing:
    part = classes.part
    return fair.Sharing(
        part.src, part.dst, part.bytes, part.group, classes.message_class, len(classes.is_used), share
    )


def _queues(classes: Classes) -> Queues:
    part = classes.part
    return Queues(part.src, part.dst, part.bytes, classes.message_class, part.group)


def batch_fraction(classes: Classes, share: str) -> float:
    """Return the fraction of the elapsed time within which `fair` takes completions together."""
    sharing = classes.keep(_sharing, share)
    if sharing.num_competing * sharing.work <= FAIR_EXACT_WORK:
        return 0.0
    return FAIR_BATCH_FRACTION * _larger_step(sharing.work)


def _larger_step(work: int) -> float:
    return min(max(work / FAIR_BATCHED_WORK, 1), FAIR_MAX_BATCHED)


def _fair_work(classes: Classes, share: str) -> int:
    """Return the work of all steps, and of every message once."""
    sharing = classes.keep(_sharing, share)
    steps = sharing.num_competing
    if batch_fraction(classes, share):
        steps = min(steps, int(FAIR_BATCHED_STEPS / _larger_step(sharing.work)))
    return sharing.work * steps + FAIR_MESSAGE_WORK * sharing.num_competing


def _queue_work(classes: Classes, share: str) -> int:
    return QUEUE_CHUNK_WORK * classes.keep(_queues).num_chunks


SOLVERS = {
    "staircase": Solver(_staircase_s),
    "fair": Solver(_fair_s, _fair_work),
    "queue": Solver(_queue_s, _queue_work),
    "max-rate": Solver(_max_rate_s),
    "postal": Solver(_postal_s),
}
if SOLVERS.keys() != MODELS.keys():
    raise ValueError(f"models without a solver, or without a record: {SOLVERS.keys() ^ MODELS.keys()}")
