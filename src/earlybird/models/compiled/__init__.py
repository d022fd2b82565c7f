"""Calls the loops of the models that are written in C, in the files next to this one; pip compiles them."""

import ctypes
from collections.abc import Sequence
from ctypes import c_bool, c_char_p, c_double, c_int, c_int64, c_uint, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

LIBRARY = "libearlybird_models.so"

_INTEGERS = _RANKS = _CLASSES = _LEVELS = _REALS = _FLAGS = c_void_p  # an array, see `_call`
MAX_CLASSES = 1 << 16


class _QueueCosts(ctypes.Structure):
    """The structure eb_queue_costs of models.h."""

    _fields_ = (
        ("window_bytes", c_int64),
        ("num_classes", c_int64),
        ("sending_queue_s", c_double),
        ("bandwidth_bytes_per_s", ctypes.POINTER(c_double)),
        ("buffered_bytes", ctypes.POINTER(c_double)),
    )


class _FlowTimes(ctypes.Structure):
    """The structure eb_flow_times of models.h."""

    _fields_ = tuple((name, c_void_p) for name in ("finished_s", "received_s", "sent_s", "waits"))


class _QueueTimes(ctypes.Structure):
    """The structure eb_queue_times of models.h."""

    _fields_ = tuple((name, c_void_p) for name in ("received_s", "sent_s", "last_received_s", "last_sent_s"))


class _Program(ctypes.Structure):
    """The structure eb_program of models.h."""

    _fields_ = (
        *((name, c_int64) for name in (
            "num_ranks", "num_threads", "num_operations", "num_sets", "num_set_requests", "num_messages",
            "num_collectives",
        )),
        *((name, c_void_p) for name in (
            "thread_rank", "first", "operation", "operation_s", "argument", "set_first", "set_requests",
            "message_bytes", "message_class", "collective_semantics", "collective_root",
        )),
    )  # fmt: skip


class _Network(ctypes.Structure):
    """The structure eb_network of models.h."""

    _fields_ = (
        *((name, c_int64) for name in ("num_nodes", "num_groups", "num_classes", "num_counts")),
        *((name, c_void_p) for name in (
            "node", "group", "bandwidth_bytes_per_s", "latency_s", "receive_s", "is_between", "waits",
            "starts_inside",
            "awaits_receive",
        )),
    )  # fmt: skip


class _Simulated(ctypes.Structure):
    """The structure eb_simulated of models.h."""

    _fields_ = tuple((name, c_void_p) for name in ("end_s", "last_request", "begun_s", "left_s"))


# As in models.h: result and arguments.
_SIGNATURES = {
    "eb_staircase": (c_int, c_int64, _INTEGERS, c_int64, _INTEGERS, _REALS, _REALS),
    "eb_completion_fractions": (c_int, c_int64, _RANKS, c_int64, _INTEGERS, c_int64, _RANKS, _REALS),
    "eb_flows_create": (
        c_void_p, c_int64, _RANKS, _RANKS, _INTEGERS, _CLASSES, c_int64, c_int64, _INTEGERS, c_bool,
    ),
    "eb_messages_select": (
        c_int64, c_int64, _LEVELS, c_uint, _INTEGERS, _INTEGERS, _INTEGERS, _RANKS, _RANKS, _INTEGERS,
        _LEVELS,
    ),
    "eb_messages_ends": (None, c_int64, _RANKS, _RANKS, _INTEGERS, _FLAGS, _FLAGS),
    "eb_messages_classify": (
        None, c_int64, _LEVELS, _RANKS, _INTEGERS, _INTEGERS, _INTEGERS, c_int64, _CLASSES, _INTEGERS,
        _INTEGERS,
    ),
    "eb_messages_delivered": (
        None, c_int64, _RANKS, _REALS, _RANKS, _RANKS, _CLASSES, _FLAGS, _REALS, _REALS,
    ),
    "eb_flows_num_messages": (c_int64, c_void_p),
    "eb_flows_num_bundles": (c_int64, c_void_p),
    "eb_flows_complete": (
        c_int, c_void_p, c_int64, _REALS, _REALS, c_double, c_double, ctypes.POINTER(_FlowTimes),
    ),
    "eb_flows_destroy": (None, c_void_p),
    "eb_connections_create": (
        c_void_p, c_int64, _RANKS, _RANKS, _INTEGERS, _CLASSES, c_int64, _INTEGERS, c_int64,
    ),
    "eb_connections_complete": (
        c_int, c_void_p, ctypes.POINTER(_QueueCosts), ctypes.POINTER(_QueueTimes),
    ),
    "eb_connections_destroy": (None, c_void_p),
    "eb_exchange_create": (
        c_void_p, c_int64, _INTEGERS, _INTEGERS, c_int64, c_int64, c_int64, _INTEGERS, _INTEGERS, _INTEGERS,
        _INTEGERS, _INTEGERS, _INTEGERS, _REALS, _FLAGS, c_int64, _REALS, _REALS,
    ),
    "eb_exchange_move": (None, c_void_p, c_int64, _INTEGERS, _INTEGERS, _INTEGERS),
    "eb_exchange_resize": (None, c_void_p, c_int64, _INTEGERS, _INTEGERS),
    "eb_exchange_slowest_s": (c_double, c_void_p, ctypes.POINTER(c_int64)),
    "eb_exchange_num_messages": (c_int64, c_void_p, c_int),
    "eb_exchange_times": (None, c_void_p, _REALS, _REALS),
    "eb_exchange_destroy": (None, c_void_p),
    "eb_program_simulate": (
        c_int, ctypes.POINTER(_Program), ctypes.POINTER(_Network), ctypes.POINTER(_Simulated),
        ctypes.POINTER(c_int64), ctypes.POINTER(c_char_p),
    ),
}  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """Return the compiled functions; raise ImportError if they are missing."""
    path = Path(__file__).with_name(LIBRARY)
    if not path.exists():
        raise ImportError(f"{path} is missing; install Earlybird again: pip compiles it")
    loaded = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _call(name: str, *arguments: Any) -> Any:
    """Return the result of the function `name`, with arrays passed as addresses.

    ctypes would convert them by functions in Python, in which an interrupt becomes an ArgumentError or is
    lost.
    """
    given = [one.ctypes.data if isinstance(one, np.ndarray) else one for one in arguments]
    return getattr(library(), name)(*given)


def staircase(first: np.ndarray, volume_bytes: np.ndarray, bandwidth_bytes_per_s: np.ndarray) -> np.ndarray:
    """Compute (7) and (12)-(17) of Thune et al. 2023; see models.h.

    `first` has the shape (G+1,), `volume_bytes` (N, C) and `bandwidth_bytes_per_s` (n, C); the result is (N,)
    seconds.
    """
    finished_s = np.empty(len(volume_bytes))
    _check(
        _call(
            "eb_staircase", len(first) - 1, integers(first), volume_bytes.shape[1], integers(volume_bytes),
            reals(bandwidth_bytes_per_s), finished_s,
        )
    )  # fmt: skip
    return finished_s


def completion_fractions(
    receiver: np.ndarray, num_receivers: int, size_bytes: np.ndarray, least_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compute (9) of Thune et al. 2023; see models.h. Both arrays have the shape (M,); the results are
    the numbers of the messages of `least_bytes` or more, and their fractions, (K,)."""
    num = int(np.count_nonzero(size_bytes >= least_bytes))
    messages, fractions = np.empty(num, np.uint32), np.empty(num)
    _check(
        _call(
            "eb_completion_fractions",
            len(size_bytes),
            ranks(receiver),
            num_receivers,
            integers(size_bytes),
            least_bytes,
            messages,
            fractions,
        )
    )
    return messages, fractions


def select_messages(
    level: np.ndarray, levels: Sequence[int], src: np.ndarray, dst: np.ndarray, size_bytes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return src, dst, sizes and levels, counted among the ascending `levels`, of the messages of these
    levels; of one level None instead of zeros.

    `level` (M,) is uint8, the other arrays (M,) int64; the ranks of the result are uint32.
    """
    num = sum(np.count_nonzero(level == k) for k in levels)
    chosen_src, chosen_dst = np.empty(num, np.uint32), np.empty(num, np.uint32)
    chosen_bytes = np.empty(num, np.int64)
    chosen_level = np.empty(num, np.uint8) if len(levels) > 1 else None
    _call(
        "eb_messages_select", len(level), level, sum(1 << k for k in levels), integers(src), integers(dst),
        integers(size_bytes), chosen_src, chosen_dst, chosen_bytes, chosen_level,
    )  # fmt: skip
    return chosen_src, chosen_dst, chosen_bytes, chosen_level


def ends_of_messages(
    src: np.ndarray, dst: np.ndarray, size_bytes: np.ndarray, num_ranks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (P,) whether each rank sends a byte, and whether it receives one."""
    sends, receives = np.zeros(num_ranks, np.bool_), np.zeros(num_ranks, np.bool_)
    _call("eb_messages_ends", len(src), ranks(src), ranks(dst), integers(size_bytes), sends, receives)
    return sends, receives


def classify_messages(
    level: np.ndarray | None,
    dst: np.ndarray,
    size_bytes: np.ndarray,
    min_bytes: Sequence[Sequence[int]],
    num_ranks: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the class of each message, (M,) uint16, and the (P, C) messages and bytes that ranks receive.

    `min_bytes` has where the protocols of each level begin; `level` may be None if there is one.
    """
    first = np.cumsum([0, *map(len, min_bytes)])
    num_classes = int(first[-1])
    if num_classes > MAX_CLASSES:
        raise ValueError(f"a profile has {num_classes} protocols; at most {MAX_CLASSES} are supported")
    message_class = np.empty(len(dst), np.uint16)
    num_received, volume_bytes = (np.zeros((num_ranks, num_classes), np.int64) for _ in range(2))
    _call(
        "eb_messages_classify", len(dst), level, ranks(dst), integers(size_bytes), integers(first),
        integers([start for starts in min_bytes for start in starts]), num_classes, message_class,
        num_received, volume_bytes,
    )  # fmt: skip
    return message_class, num_received, volume_bytes


def delivered_s(
    messages: np.ndarray,
    fraction: np.ndarray,
    src: np.ndarray,
    dst: np.ndarray,
    message_class: np.ndarray,
    waits: np.ndarray,
    receive_s: np.ndarray,
) -> np.ndarray:
    """Return (P,) when the last message of each rank among `messages` (K,), and of a class with `waits`, (C,)
    bool, is delivered: `fraction` (K,) of the time `receive_s` (P,) of its receiver; 0 for a rank without
    such messages."""
    send_s = np.zeros(len(receive_s))
    _call(
        "eb_messages_delivered", len(messages), ranks(messages), reals(fraction), ranks(src), ranks(dst),
        classes(message_class), waits, reals(receive_s), send_s,
    )  # fmt: skip
    return send_s


def ranks(values: object) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.uint32)


def classes(values: object) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.uint16)


def integers(values: object) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.int64)


def reals(values: object) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float64)


_STALLED = -2  # EB_STALLED of models.h


def _check(failed: int) -> None:
    if failed == _STALLED:
        raise RuntimeError("the queues stopped before all messages were complete; please report this")
    if failed:
        raise MemoryError("not enough memory for the messages of the exchange")


class Flows:
    """The messages through the sending ends of groups and the receiving ends of others; see models.h.

    `src`, `dst`, `size_bytes` and `message_class` have the shape (M,), `group` (P,).
    """

    def __init__(
        self,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        message_class: np.ndarray,
        num_classes: int,
        group: np.ndarray,
        by_process: bool,
    ) -> None:
        self._num_messages, self._num_ranks = len(src), len(group)
        self._flows = _call(
            "eb_flows_create", len(src), ranks(src), ranks(dst), integers(size_bytes),
            classes(message_class), num_classes, len(group), integers(group), by_process,
        )  # fmt: skip
        _check(self._flows is None)

    @property
    def num_competing(self) -> int:
        """The number of messages with bytes."""
        return int(_call("eb_flows_num_messages", self._flows))

    @property
    def num_bundles(self) -> int:
        """The number of sets of messages whose rates are always the same."""
        return int(_call("eb_flows_num_bundles", self._flows))

    def complete(self, *given: Any) -> np.ndarray:
        """Return (M,) seconds, 0 for a message of 0 bytes; for `given` see `_complete`.

        Several threads may call it at once.
        """
        finished_s = np.zeros(self._num_messages)
        self._complete(_FlowTimes(finished_s=finished_s.ctypes.data), *given)
        return finished_s

    def last_of_ranks(self, *given: Any, waits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (P,) seconds of the last message that each rank receives, and of the last one of a class
        with `waits`, (C,) bool, that it sends, as `complete` computes them; 0 without any."""
        received_s, sent_s = np.zeros(self._num_ranks), np.zeros(self._num_ranks)
        addresses = received_s.ctypes.data, sent_s.ctypes.data, waits.ctypes.data
        self._complete(_FlowTimes(None, *addresses), *given)
        return received_s, sent_s

    def _complete(
        self,
        times: _FlowTimes,
        sending_bytes_per_s: np.ndarray,
        receiving_bytes_per_s: np.ndarray,
        tolerance_of_elapsed: float,
        tolerance_of_bound: float,
    ) -> None:
        """Fill `times`; the tables are (n, C)."""
        _check(
            _call(
                "eb_flows_complete", self._flows, len(receiving_bytes_per_s), reals(sending_bytes_per_s),
                reals(receiving_bytes_per_s), tolerance_of_elapsed, tolerance_of_bound, ctypes.byref(times),
            )
        )  # fmt: skip

    def __del__(self) -> None:
        if getattr(self, "_flows", None):
            library().eb_flows_destroy(self._flows)


class Connections:
    """The messages through the queues of the ends of groups, which carry `chunk_bytes` at a time; see
    models.h.

    `src`, `dst`, `size_bytes` and `message_class` have the shape (M,), `group` (P,).
    """

    def __init__(
        self,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        message_class: np.ndarray,
        group: np.ndarray,
        chunk_bytes: int,
    ) -> None:
        self._num_messages, self._num_ranks = len(src), len(group)
        # What C reads until the end.
        self._arrays = ranks(src), ranks(dst), integers(size_bytes), classes(message_class)
        self._connections = _call(
            "eb_connections_create", len(src), *self._arrays, len(group), integers(group), chunk_bytes
        )
        _check(self._connections is None)

    def complete(
        self,
        bandwidth_bytes_per_s: np.ndarray,
        buffered_bytes: np.ndarray,
        window_bytes: int,
        sending_queue_s: float,
        *,
        of_ranks: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (M,) seconds of receiving and of sending, or `of_ranks` (P,) the last ones of each rank, 0
        without any; the table is (n, C), `buffered_bytes` (C,).

        Several threads may call it at once.
        """
        table, buffered = reals(bandwidth_bytes_per_s), reals(buffered_bytes)
        pointer = ctypes.POINTER(c_double)
        costs = _QueueCosts(
            window_bytes, table.shape[1], sending_queue_s,
            table.ctypes.data_as(pointer), buffered.ctypes.data_as(pointer),
        )  # fmt: skip
        num = self._num_ranks if of_ranks else self._num_messages
        received_s, sent_s = np.zeros(num), np.zeros(num)
        addresses = received_s.ctypes.data, sent_s.ctypes.data
        times = _QueueTimes(None, None, *addresses) if of_ranks else _QueueTimes(*addresses)
        given = ctypes.byref(costs), ctypes.byref(times)
        _check(_call("eb_connections_complete", self._connections, *given))
        return received_s, sent_s

    def __del__(self) -> None:
        if getattr(self, "_connections", None):
            library().eb_connections_destroy(self._connections)


class ChangingExchange:
    """An exchange whose times by the staircase model are kept while ranks move and messages change; see
    models.h.

    Parameters
    ----------
    node, socket : (P,), below `num_nodes` and `num_sockets`.
    src, dst, size_bytes : (M,).
    level_first : (4,), index of the first class of each level, and the number C of classes.
    min_bytes, latency_s, waits : (C,).
    inside_bytes_per_s, outside_bytes_per_s : (n, classes inside a node), (n, classes between nodes).
    """

    def __init__(
        self,
        node: np.ndarray,
        socket: np.ndarray,
        num_nodes: int,
        num_sockets: int,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        level_first: np.ndarray,
        min_bytes: np.ndarray,
        latency_s: np.ndarray,
        waits: np.ndarray,
        inside_bytes_per_s: np.ndarray,
        outside_bytes_per_s: np.ndarray,
    ) -> None:
        self._num_ranks = len(node)
        self._room = np.array([num_nodes, num_sockets])
        self._exchange = _call(
            "eb_exchange_create", len(node), integers(node), integers(socket), num_nodes, num_sockets,
            len(src), integers(src), integers(dst), integers(size_bytes),
            integers(np.argsort(size_bytes, kind="stable")), integers(level_first), integers(min_bytes),
            reals(latency_s), np.ascontiguousarray(waits, dtype=np.bool_), len(inside_bytes_per_s),
            reals(inside_bytes_per_s), reals(outside_bytes_per_s),
        )  # fmt: skip
        _check(self._exchange is None)

    def has(self, places: np.ndarray) -> bool:
        """Return whether the exchange has capacity for all places, (K, 2) of node and socket."""
        return bool((places.max(axis=0) < self._room).all())

    def move(self, ranks: np.ndarray, nodes: np.ndarray, sockets: np.ndarray) -> None:
        """Move ranks to nodes and sockets; the arguments are int64 arrays of one length, with each rank
        once.
        """
        _call("eb_exchange_move", self._exchange, len(ranks), ranks, nodes, sockets)

    def resize(self, messages: np.ndarray, size_bytes: np.ndarray) -> None:
        """Change the sizes of messages; the arguments are int64 arrays of one length."""
        _call("eb_exchange_resize", self._exchange, len(messages), messages, size_bytes)

    def slowest(self) -> tuple[float, int]:
        """Return the seconds of the slowest rank, and its number."""
        rank = c_int64()
        time_s = _call("eb_exchange_slowest_s", self._exchange, ctypes.byref(rank))
        return float(time_s), rank.value

    def num_messages(self, level: int) -> int:
        """Return the number of messages of a level, which is given by its index in LEVELS."""
        return int(_call("eb_exchange_num_messages", self._exchange, level))

    def times_s(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (P,) seconds inside a node and between nodes, which add up."""
        intra_s, inter_s = np.empty(self._num_ranks), np.empty(self._num_ranks)
        _call("eb_exchange_times", self._exchange, intra_s, inter_s)
        return intra_s, inter_s

    def __del__(self) -> None:
        if getattr(self, "_exchange", None):
            library().eb_exchange_destroy(self._exchange)


class BadProgram(Exception):
    """The arrays of a program do not fit each other."""


_BAD_PROGRAM, _DEADLOCK = -3, -4  # EB_BAD_PROGRAM, EB_DEADLOCK of models.h


def simulate_program(
    program: tuple[Any, ...], network: tuple[Any, ...]
) -> tuple[int | None, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Simulate a program; see models.h, and `models.program` for the arguments, in the order of its classes.

    Return the operation at which a thread waits for what never happens, or None; and the arrays of
    eb_simulated. Raise BadProgram for arrays that do not fit each other.
    """
    num_ranks, *columns = program
    kinds = ("q", "q", "B", "d", "q", "q", "q", "q", "q", "B", "q")
    arrays = [np.ascontiguousarray(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    (
        thread_rank,
        first,
        operation,
        operation_s,
        argument,
        set_first,
        requests,
        size,
        of_class,
        meaning,
        root,
    ) = arrays
    rates = reals(network[2])
    network_kinds = ("q", "q", "d", "d", "d", "B", "B", "B", "B")
    costs = [np.ascontiguousarray(column, kind) for column, kind in zip(network, network_kinds, strict=True)]
    num_operations, num_messages = len(operation), len(size)
    lengths = {
        "first": (first, len(thread_rank) + 1), "operation_s": (operation_s, num_operations),
        "argument": (argument, num_operations), "message_class": (of_class, num_messages),
        "root": (root, len(meaning)), "node": (costs[0], num_ranks), "group": (costs[1], num_ranks),
        **{f"class column {k}": (column, rates.shape[1]) for k, column in enumerate(costs[3:])},
    }  # fmt: skip
    for name, (array, length) in lengths.items():
        if array.shape != (length,):
            raise BadProgram(f"{name} has the shape {array.shape}, not ({length},)")
    if not len(set_first):
        raise BadProgram("set_first has no element")
    given = _Program(
        num_ranks, len(thread_rank), num_operations, len(set_first) - 1, len(requests), num_messages,
        len(meaning), *(array.ctypes.data for array in arrays),
    )  # fmt: skip
    on = _Network(
        int(costs[0].max(initial=0)) + 1, int(costs[1].max(initial=0)) + 1, rates.shape[1], len(rates),
        *(array.ctypes.data for array in costs),
    )  # fmt: skip
    end_s, last = np.empty(num_operations), np.empty(num_operations, np.int64)
    begun_s, left_s = np.empty((2, num_messages))
    into = _Simulated(*(array.ctypes.data for array in (end_s, last, begun_s, left_s)))
    place, reason = c_int64(), c_char_p()
    status = library().eb_program_simulate(
        ctypes.byref(given), ctypes.byref(on), ctypes.byref(into), ctypes.byref(place), ctypes.byref(reason)
    )
    if status == _BAD_PROGRAM:
        raise BadProgram(f"{(reason.value or b'').decode()} (number {place.value})")
    if status != _DEADLOCK:
        _check(status)
    return place.value if status == _DEADLOCK else None, end_s, last, begun_s, left_s
