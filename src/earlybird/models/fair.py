"""Max-min fair sharing: every message is a flow through the nodes of its sender and its receiver."""

import numpy as np

from earlybird.models.compiled import Flows

# Completions closer than this fraction of the elapsed time are ties separated by rounding.
_ROUNDING = 1e-12


def completion_times_s(
    src: np.ndarray,
    dst: np.ndarray,
    size_bytes: np.ndarray,
    group: np.ndarray,
    message_class: np.ndarray,
    bandwidth_bytes_per_s: np.ndarray,
    share: str = "message",
    *,
    sending_bytes_per_s: np.ndarray | None = None,
    batch_fraction: float = 0.0,
) -> np.ndarray:
    """Compute when each message is complete, without latency, if both ends have a limited capacity.

    All rates rise together; when a node's sending or receiving end is full, the messages through it keep
    their rate and the others continue to rise; at the next completion all capacities are shared again. The
    capacity of an end is BW(n) of Thune et al. 2023, n the number of processes with unfinished messages
    there: senders at a sending end, receivers at a receiving end.

    With `share` "process" the messages of a receiving process rise together as one message would, each by an
    equal part of it. If senders never limit, the last message of a receiver completes as in the staircase
    (7). The others complete when their bytes have arrived; (9) gives their fraction of the time instead,
    which is the same if the rate of the receiver is constant. With "message" every message has the same
    weight: this equals the staircase only if every receiver has one message.

    With several classes a share is scaled as in (12): at a receiving end with n receivers a message's weight
    is that of its class, BW_c(n), and with "process" the volume-weighted mean of BW_c(n) over all that its
    process receives, so that it equals (12)-(17) if senders never limit. The capacity of an end is the mean
    over its unfinished messages of their classes' bandwidth, each counted by its share.

    Parameters
    ----------
    src, dst, size_bytes, message_class : (M,) int64; a class is a protocol. A message of 0 bytes is complete
        at once and does not compete.
    group : (P,) the node of each rank.
    bandwidth_bytes_per_s : (R, N, C), BW(n) of class c at [:, n-1, c], N at least the largest n.
    sending_bytes_per_s : (R, N, C), BW(n) of the sending ends, if different.
    batch_fraction : see `Sharing.completion_times_s`.

    Returns
    -------
    (R, M) seconds. The model is not valid if the network between the nodes is the bottleneck, or if BW(1)
    limits a single process that could use the remaining capacity of its node.
    """
    sharing = Sharing(src, dst, size_bytes, group, message_class, bandwidth_bytes_per_s.shape[-1], share)
    sending = [None] * len(bandwidth_bytes_per_s) if sending_bytes_per_s is None else sending_bytes_per_s
    return np.array([
        sharing.completion_times_s(receiving, row, batch_fraction)
        for receiving, row in zip(bandwidth_bytes_per_s, sending, strict=True)
    ])  # fmt: skip


class Sharing:
    """The messages of `completion_times_s`, sorted once for any number of capacities."""

    def __init__(
        self,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        group: np.ndarray,
        message_class: np.ndarray,
        num_classes: int,
        share: str = "message",
    ) -> None:
        number = np.unique(group, return_inverse=True)[1].reshape(-1)
        self._flows = Flows(src, dst, size_bytes, message_class, num_classes, number, share == "process")

    @property
    def work(self) -> int:
        """The cost of a step, in units of some nanoseconds."""
        return self._flows.num_bundles

    @property
    def num_competing(self) -> int:
        return self._flows.num_competing

    def completion_times_s(
        self,
        receiving_bytes_per_s: np.ndarray,
        sending_bytes_per_s: np.ndarray | None = None,
        batch_fraction: float = 0.0,
    ) -> np.ndarray:
        """Compute (M,) seconds for capacities (N, C); see the function of the same name.

        `batch_fraction` : completions within this fraction of the elapsed time, or a tenth of it of the least
        time that the busiest end needs, are one step. The step ends at the mean of their times, weighted by
        rate, so that as many bytes are moved as in single steps. There are about 10/batch_fraction steps at
        most. Against a fifth of it, times change by up to a quarter of the fraction in the sum over the
        ranks, and by up to half of it for any rank, as part of the slowest one's
        (`python -m bench predictor`).
        """
        sending = receiving_bytes_per_s if sending_bytes_per_s is None else sending_bytes_per_s
        return self._flows.complete(sending, receiving_bytes_per_s, *_tolerances(batch_fraction))

    def last_times_s(
        self, bandwidth_bytes_per_s: np.ndarray, waits: np.ndarray, batch_fraction: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute (P,) seconds of the last message that each rank receives, and of the last one of a class
        with `waits`, (C,) bool, that it sends, 0 without any: those of `completion_times_s`, in less time."""
        both = bandwidth_bytes_per_s, bandwidth_bytes_per_s
        return self._flows.last_of_ranks(*both, *_tolerances(batch_fraction), waits=waits)


def _tolerances(batch_fraction: float) -> tuple[float, float]:
    """Return the tolerance of the elapsed time, and that of the least time of the busiest end."""
    return max(batch_fraction, _ROUNDING), batch_fraction / 10
