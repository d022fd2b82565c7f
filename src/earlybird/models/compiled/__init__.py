"""Calls the loops of the models that are written in C, in the files next to this one; pip compiles them."""

import ctypes
from ctypes import c_bool, c_double, c_int, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

LIBRARY = "libearlybird_models.so"

_INTEGERS = _REALS = _FLAGS = c_void_p  # an array, see `_call`


class _QueueCosts(ctypes.Structure):
    """The structure eb_queue_costs of models.h."""

    _fields_ = (
        ("window_bytes", c_int64),
        ("chunk_bytes", c_int64),
        ("num_classes", c_int64),
        ("sending_queue_s", c_double),
        ("bandwidth_bytes_per_s", ctypes.POINTER(c_double)),
        ("buffered_bytes", ctypes.POINTER(c_double)),
    )


# As in models.h: result and arguments.
_SIGNATURES = {
    "eb_staircase": (c_int, c_int64, _INTEGERS, c_int64, _INTEGERS, _REALS, _REALS),
    "eb_completion_fractions": (c_int, c_int64, _INTEGERS, c_int64, _INTEGERS, _REALS),
    "eb_flows_create": (
        c_void_p, c_int64, _INTEGERS, _INTEGERS, _INTEGERS, _INTEGERS, c_int64, c_int64, _INTEGERS, c_bool,
    ),
    "eb_flows_num_bundles": (c_int64, c_void_p),
    "eb_flows_complete": (c_int, c_void_p, c_int64, _REALS, _REALS, c_double, c_double, _REALS),
    "eb_flows_destroy": (None, c_void_p),
    "eb_connections_create": (
        c_void_p, c_int64, _INTEGERS, _INTEGERS, _INTEGERS, _INTEGERS, c_int64, _INTEGERS,
    ),
    "eb_connections_complete": (c_int, c_void_p, ctypes.POINTER(_QueueCosts), _REALS, _REALS),
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

    `first` (G+1,), `volume_bytes` (N, C), `bandwidth_bytes_per_s` (n, C); returns (N,) seconds.
    """
    finished_s = np.empty(len(volume_bytes))
    _check(
        _call(
            "eb_staircase", len(first) - 1, integers(first), volume_bytes.shape[1], integers(volume_bytes),
            reals(bandwidth_bytes_per_s), finished_s,
        )
    )  # fmt: skip
    return finished_s


def completion_fractions(receiver: np.ndarray, num_receivers: int, size_bytes: np.ndarray) -> np.ndarray:
    """Compute (9) of Thune et al. 2023; see models.h. Both arrays, and the result, have the shape (M,)."""
    fractions = np.empty(len(size_bytes))
    _check(
        _call(
            "eb_completion_fractions",
            len(size_bytes),
            integers(receiver),
            num_receivers,
            integers(size_bytes),
            fractions,
        )
    )
    return fractions


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
        self._num_messages = len(src)
        self._flows = _call(
            "eb_flows_create", len(src), integers(src), integers(dst), integers(size_bytes),
            integers(message_class), num_classes, len(group), integers(group), by_process,
        )  # fmt: skip
        _check(self._flows is None)

    @property
    def num_bundles(self) -> int:
        """The number of sets of messages whose rates are always the same."""
        return int(_call("eb_flows_num_bundles", self._flows))

    def complete(
        self,
        sending_bytes_per_s: np.ndarray,
        receiving_bytes_per_s: np.ndarray,
        tolerance_of_elapsed: float,
        tolerance_of_bound: float,
    ) -> np.ndarray:
        """Return (M,) seconds; the tables are (n, C). Several threads may call it at once."""
        finished_s = np.empty(self._num_messages)
        _check(
            _call(
                "eb_flows_complete", self._flows, len(receiving_bytes_per_s), reals(sending_bytes_per_s),
                reals(receiving_bytes_per_s), tolerance_of_elapsed, tolerance_of_bound, finished_s,
            )
        )  # fmt: skip
        return finished_s

    def __del__(self) -> None:
        if getattr(self, "_flows", None):
            library().eb_flows_destroy(self._flows)


class Connections:
    """The messages through the queues of the ends of groups; see models.h.

    `src`, `dst`, `size_bytes` and `message_class` have the shape (M,), `group` (P,).
    """

    def __init__(
        self,
        src: np.ndarray,
        dst: np.ndarray,
        size_bytes: np.ndarray,
        message_class: np.ndarray,
        group: np.ndarray,
    ) -> None:
        self._num_messages = len(src)
        self._connections = _call(
            "eb_connections_create", len(src), integers(src), integers(dst), integers(size_bytes),
            integers(message_class), len(group), integers(group),
        )  # fmt: skip
        _check(self._connections is None)

    def complete(
        self,
        bandwidth_bytes_per_s: np.ndarray,
        buffered_bytes: np.ndarray,
        window_bytes: int,
        chunk_bytes: int,
        sending_queue_s: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (M,) seconds of receiving and of sending; the table is (n, C), `buffered_bytes` (C,).

        Several threads may call it at once.
        """
        table, buffered = reals(bandwidth_bytes_per_s), reals(buffered_bytes)
        pointer = ctypes.POINTER(c_double)
        costs = _QueueCosts(
            window_bytes, chunk_bytes, table.shape[1], sending_queue_s,
            table.ctypes.data_as(pointer), buffered.ctypes.data_as(pointer),
        )  # fmt: skip
        received_s, sent_s = np.empty(self._num_messages), np.empty(self._num_messages)
        _check(_call("eb_connections_complete", self._connections, ctypes.byref(costs), received_s, sent_s))
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
