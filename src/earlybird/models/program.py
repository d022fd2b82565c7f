"""Simulates programs: ranks that compute, send, receive and wait for each other, and messages that share
bandwidth."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from earlybird.models.compiled import BadProgram, simulate_program


class Operation(IntEnum):
    """The kinds of operations, see `eb_program` in compiled/models.h."""

    COMPUTE = 0
    SEND = 1
    RECEIVE = 2
    WAIT_ALL = 3
    WAIT_ANY = 4
    ENTER = 5


class Semantics(IntEnum):
    """Who waits for whom in a collective: all for all, all for the root, the root for all, each rank for
    those with smaller numbers; and without the MPI all threads for all, all threads for one."""

    ALL_WAIT = 0
    WAIT_FOR_ROOT = 1
    ROOT_WAITS = 2
    PREFIX = 3
    THREADS_WAIT = 4
    WAIT_FOR_THREAD = 5


@dataclass(frozen=True, eq=False)
class Program:
    """The operations of the threads of all ranks, in order.

    Attributes
    ----------
    num_ranks : P.
    thread_rank : (T,) rank of each thread, ascending.
    first : (T+1,) position of the first operation of each thread, and the number N of operations.
    operation : (N,) an `Operation` each.
    operation_s : (N,) seconds: of a computation; that a post occupies the processor before it takes effect;
        that a wait or a collective costs after what it waits for.
    argument : (N,) number of the message of a SEND or RECEIVE, of the set of a wait, of the collective of an
        ENTER.
    set_first : (S+1,) position in `set_requests` at which each set begins.
    set_requests : positions of the operations that posted the requests of the sets. A collective that is
        entered is a request. WAIT_ANY ends when the first request of its set is complete.
    message_bytes, message_class : (M,).
    semantics, root : (K,) `Semantics` and rank of the root of each collective; of WAIT_FOR_THREAD the number
        of the thread that all others wait for.
    """

    num_ranks: int
    thread_rank: np.ndarray
    first: np.ndarray
    operation: np.ndarray
    operation_s: np.ndarray
    argument: np.ndarray
    set_first: np.ndarray
    set_requests: np.ndarray
    message_bytes: np.ndarray
    message_class: np.ndarray
    semantics: np.ndarray
    root: np.ndarray


@dataclass(frozen=True, eq=False)
class Network:
    """The cost of messages, by class: a protocol of a level.

    Attributes
    ----------
    node : (P,) node of each rank.
    group : (P,) group of receivers of each rank: its socket, numbered over all nodes.
    bandwidth_bytes_per_s : (n, C), BW(N) of class c at [N-1, c]; beyond n it remains.
    latency_s : (C,) from the last byte that leaves to the arrival.
    receive_s : (C,) time for which a message occupies its receiver's processor.
    is_between : (C,) messages between nodes share both ends as in `models.fair`; others share what the
        receivers of a group have as in `models.staircase`. Those from one rank to another follow each other.
    waits : (C,) a message begins when it is sent and its receive is posted, and the send is complete when the
        last byte has left (rendezvous). Otherwise it begins at once, and the send is complete (eager).
    awaits_receive : (C,) a message begins when it is sent and its receive is posted, and the send is complete
        at that moment, unless it waits: a rendezvous whose data is buffered.
    starts_inside : (C,) a message begins only when, after that, its receiver and then its sender is inside
        the MPI.
    """

    node: np.ndarray
    group: np.ndarray
    bandwidth_bytes_per_s: np.ndarray
    latency_s: np.ndarray
    receive_s: np.ndarray
    is_between: np.ndarray
    waits: np.ndarray
    starts_inside: np.ndarray
    awaits_receive: np.ndarray


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """The times of a simulated program, from 0, at which all threads begin.

    Attributes
    ----------
    end_s : (N,) end of each operation.
    last_request : (N,) for a wait, the position of the operation whose request it waited for last; -1 if it
        did not wait, and for other operations.
    begun_s, left_s : (M,) when each message could begin, and when its last byte left.
    """

    end_s: np.ndarray
    last_request: np.ndarray
    begun_s: np.ndarray
    left_s: np.ndarray

    @property
    def end_of_run_s(self) -> float:
        return float(self.end_s.max(initial=0.0))


class Deadlock(Exception):
    """Threads wait for what never happens; `operation` is the position of a wait of one of them."""

    def __init__(self, operation: int):
        super().__init__(f"operation {operation} waits for what never happens")
        self.operation = operation


def simulate(program: Program, network: Network) -> SimulatedRun:
    """Simulate a program.

    Every thread executes its operations in order; messages begin when they are sent, or later as `Network`
    says, and share bandwidth with all that are under way at that moment. The result does not depend on
    anything but the arguments. Raises ValueError if the arrays do not fit each other, and Deadlock.
    """
    try:
        deadlocked, *results = simulate_program(
            (
                program.num_ranks, program.thread_rank, program.first, program.operation, program.operation_s,
                program.argument, program.set_first, program.set_requests, program.message_bytes,
                program.message_class, program.semantics, program.root,
            ),
            (
                network.node, network.group, network.bandwidth_bytes_per_s, network.latency_s,
                network.receive_s, network.is_between, network.waits, network.starts_inside,
                network.awaits_receive,
            ),
        )  # fmt: skip
    except BadProgram as error:
        raise ValueError(str(error)) from None
    if deadlocked is not None:
        raise Deadlock(deadlocked)
    return SimulatedRun(*results)
