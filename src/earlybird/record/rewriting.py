"""Programs with other messages: operations and messages are inserted and left out, and all numbers follow."""

from dataclasses import replace

import numpy as np

from earlybird.models.program import Operation
from earlybird.record.operations import Operations

# The number of an order after all that is inserted before an operation.
_ITSELF = 1 << 62


class Rewriting:
    """A changed copy of operations.

    Operations and messages have a number that remains until `done`: those that were there their position,
    inserted ones the next numbers.
    """

    def __init__(self, operations: Operations):
        self._of, num = operations, len(operations.operation)
        self._num, self._inserted = num, 0
        self._rows: list[tuple[np.ndarray, ...]] = []
        self.own_s = np.array(operations.own_s, float)
        self._argument = np.array(operations.argument)
        self._is_dropped = np.zeros(num, bool)
        waits = np.flatnonzero(operations.operation == Operation.WAIT_ALL)
        wait_of_set = np.empty(len(waits), np.int64)
        wait_of_set[operations.argument[waits]] = waits
        of_request = np.repeat(np.arange(len(waits)), np.diff(operations.set_first))
        self._pairs = [(wait_of_set[of_request], np.asarray(operations.set_requests))]
        self._messages = [
            np.array(getattr(operations, name))
            for name in ("src", "dst", "bytes", "sender", "send_wait", "is_blocking")
        ]
        self._drops_message = np.zeros(len(operations.bytes), bool)

    def waits_of(self) -> np.ndarray:
        """Return the wait for the request of each operation that was there; -1 if none waits for it."""
        waits = np.full(self._num, -1)
        wait, request = self._pairs[0]
        waits[request] = wait
        return waits

    def insert(
        self, before: np.ndarray, order: np.ndarray | int, kind: int, seconds: np.ndarray | float = 0.0,
        argument: np.ndarray | int = 0,
    ) -> np.ndarray:  # fmt: skip
        """Insert an operation before each of those at `before`, in ascending `order`; return their
        numbers. `argument` is the message of a send or a receive."""
        num = len(before)
        columns = (
            np.broadcast_to(column, num) for column in (order, kind, seconds, argument)
        )  # fmt: skip
        self._rows.append((np.asarray(before, np.int64), *columns))
        self._inserted += num
        first = self._num + self._inserted - num
        return np.arange(first, first + num)

    def drop(self, numbers: np.ndarray) -> None:
        """Leave out operations that were there, and the waiting for their requests."""
        self._is_dropped[numbers] = True

    def wait(self, waits: np.ndarray, requests: np.ndarray) -> None:
        """Let operations that wait do so for more requests; negative ones do not wait."""
        is_there = waits >= 0
        self._pairs.append((waits[is_there], requests[is_there]))

    def add_messages(
        self, src: np.ndarray, dst: np.ndarray, size_bytes: np.ndarray, sender: int,
        send_wait: np.ndarray | int,
    ) -> np.ndarray:  # fmt: skip
        """Add messages that no blocking call sends; return their numbers."""
        num, first = len(src), len(self._messages[0])
        new = (src, dst, size_bytes, sender, send_wait, False)
        self._messages = [
            np.concatenate([column, np.broadcast_to(value, num)])
            for column, value in zip(self._messages, new, strict=True)
        ]
        self._drops_message = np.concatenate([self._drops_message, np.zeros(num, bool)])
        return np.arange(first, first + num)

    def change_messages(self, numbers: np.ndarray, *, size_bytes=None, sender=None) -> None:
        for column, value in ((2, size_bytes), (3, sender)):
            if value is not None:
                self._messages[column][numbers] = value

    def drop_messages(self, numbers: np.ndarray) -> None:
        """Leave out messages; their operations must be dropped, too."""
        self._drops_message[numbers] = True

    def receive_instead(self, receives: np.ndarray, messages: np.ndarray) -> None:
        """Let operations that receive take other messages."""
        self._argument[receives] = messages

    def done(self) -> Operations:
        """Return the changed operations."""
        of = self._of
        here = np.arange(self._num)
        own = (here, np.full(self._num, _ITSELF), of.operation, self.own_s, self._argument, of.site)
        rows = [own, *((*row, of.site[row[0]]) for row in self._rows)]
        before, order, kind, seconds, argument, site = (
            np.concatenate(column) for column in zip(*rows, strict=True)
        )
        is_kept = np.ones(len(before), bool)
        is_kept[: self._num] = ~self._is_dropped
        chosen = np.lexsort([order, before])
        chosen = chosen[is_kept[chosen]]
        event = of.event
        if len(event):
            event = np.concatenate([event, np.full(len(before) - self._num, -1)])[chosen]
        recorded_end_s = of.recorded_end_s
        if len(recorded_end_s):  # what is inserted ends with what follows it
            recorded_end_s = recorded_end_s[before[chosen]]
        position = np.full(len(before), -1)
        position[chosen] = np.arange(len(chosen))
        kind, seconds, argument, site = (column[chosen] for column in (kind, seconds, argument, site))
        first = np.searchsorted(before[chosen], of.first)
        keeps = ~self._drops_message
        number = np.cumsum(keeps) - 1
        is_message = (kind == Operation.SEND) | (kind == Operation.RECEIVE)
        of_message, argument = argument, np.where(is_message, 0, argument)
        argument[is_message] = number[of_message[is_message]]
        wait, request = (np.concatenate(column) for column in zip(*self._pairs, strict=True))
        is_there = is_kept[wait] & is_kept[request]
        wait, request = position[wait[is_there]], position[request[is_there]]
        is_wait = kind == Operation.WAIT_ALL
        set_of = np.cumsum(is_wait) - 1
        argument[is_wait] = set_of[is_wait]
        by_set = np.lexsort([request, wait])
        src, dst, size_bytes, sender, send_wait, is_blocking = (column[keeps] for column in self._messages)
        return replace(
            of, event=event, recorded_end_s=recorded_end_s, first=first, operation=kind, argument=argument,
            own_s=seconds, site=site,
            set_first=np.searchsorted(set_of[wait[by_set]], np.arange(int(is_wait.sum()) + 1)),
            set_requests=request[by_set], src=src, dst=dst, bytes=size_bytes, sender=sender,
            send_wait=np.where(send_wait >= 0, position[send_wait], -1), is_blocking=is_blocking,
        )  # fmt: skip
