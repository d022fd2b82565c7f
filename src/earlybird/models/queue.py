"""First-come-first-served queues: the messages of a pair of ranks follow each other on a connection, and a
node's connections share its two ends in the order in which their bytes come."""

import numpy as np

from earlybird.models.compiled import Connections

# The bytes of a connection that are in flight at most, in exchanges up to 8.2 GB: half of the receive buffer
# of a virtual node's connection, as Linux advertises. On other networks connections may have more.
WINDOW_BYTES = 1 << 17
# What the connections of a node together have in its sending queue, as the time that this takes there. Linux
# (TCP small queues) lets each have what it sends in 1 ms at twice its rate or more; 3 ms was chosen with
# exchanges of MPICH and Open MPI at 200 and 1000 Mbit/s, which from 2 to 4 ms are predicted about as well.
SENDING_QUEUE_S = 3e-3
# What is carried at a time: fine for few bytes, and 500,000 chunks and the ends of messages for many. With
# fewer chunks in a window connections would stand still between them, so above 8.2 GB the window grows, too.
_MIN_CHUNK_BYTES, _MAX_CHUNKS, _CHUNKS_OF_A_WINDOW = 4096, 500_000, 8


class Queues:
    """The messages of an exchange, sorted into connections once for any number of capacities.

    Parameters
    ----------
    src, dst, size_bytes, message_class : (M,) int64, in the order in which each rank posts them; a class is a
        protocol. A message of 0 bytes is complete at once.
    group : (P,) the node of each rank.
    """

    def __init__(
        self,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        message_class: np.ndarray,
        group: np.ndarray,
    ) -> None:
        self._num_messages = len(size_bytes)
        has_bytes = size_bytes > 0
        self._num_competing = int(np.count_nonzero(has_bytes))
        # Where all have bytes, nothing is copied.
        is_all = self._num_competing == self._num_messages
        self._here = here = slice(None) if is_all else np.flatnonzero(has_bytes)
        number = np.unique(group, return_inverse=True)[1].reshape(-1)
        self._total_bytes = int(size_bytes.sum())
        self._chunk_bytes = max(_MIN_CHUNK_BYTES, self._total_bytes // _MAX_CHUNKS)
        self._connections = Connections(
            src[here], dst[here], size_bytes[here], message_class[here], number, self._chunk_bytes
        )
        self._window_bytes = max(WINDOW_BYTES, _CHUNKS_OF_A_WINDOW * self._chunk_bytes)

    @property
    def num_chunks(self) -> int:
        """The approximate number of chunks, to which the cost of a prediction is proportional."""
        return self._num_competing + self._total_bytes // self._chunk_bytes

    def completion_times_s(
        self, bandwidth_bytes_per_s: np.ndarray, buffered_bytes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute when each message is received and when each send is complete, (M,) seconds without latency.

        Every node has a server for what it sends and one for what it receives. A server carries one chunk at
        a time, first come, first served, at BW(n) of Thune et al. 2023, n the number of processes with
        unfinished messages there. A chunk passes on while it is still sent, so that two idle servers take the
        time of one, and a single pair that of the postal model. Each chunk is acknowledged; acknowledgements
        take no time, but wait in the queues of the opposite direction. A connection has at most
        `WINDOW_BYTES` or eight chunks in flight, whichever is more, and at the sending end its part of what
        this end carries in `SENDING_QUEUE_S`. A send is complete when no more than `buffered_bytes` of its
        class, on its connection and up to its end, are not acknowledged yet, and those before it are
        complete.

        Parameters
        ----------
        bandwidth_bytes_per_s : (N, C), BW(n) of class c at [n-1, c], N at least the largest n.
        buffered_bytes : (C,), 0 for a class whose senders wait, infinity if they never do.
        """
        of_competing = self._complete(bandwidth_bytes_per_s, buffered_bytes)
        if self._num_competing == self._num_messages:
            return of_competing
        received_s, sent_s = np.zeros(self._num_messages), np.zeros(self._num_messages)
        received_s[self._here], sent_s[self._here] = of_competing
        return received_s, sent_s

    def last_times_s(
        self, bandwidth_bytes_per_s: np.ndarray, buffered_bytes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute (P,) seconds of the last message that each rank receives and of its last send, 0 without
        any: those of `completion_times_s`, in less time."""
        return self._complete(bandwidth_bytes_per_s, buffered_bytes, of_ranks=True)

    def _complete(
        self, bandwidth_bytes_per_s: np.ndarray, buffered_bytes: np.ndarray, **options: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._connections.complete(
            bandwidth_bytes_per_s, buffered_bytes, self._window_bytes, SENDING_QUEUE_S, **options
        )
