"""Where the ranks of a running program are: the calls of their threads, and what these wait for."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from earlybird.data.recorded_rank import NO_PEER

# Kinds of Awaited, as in native/recorder/recording/awaited.h.
SEND, RECEIVE, COLLECTIVE, PARTITIONED_SEND, PARTITIONED_RECEIVE, LOCK, NOTHING = range(1, 8)
EXCLUSIVE_LOCK = 1  # the number of a lock that is not shared
ANY_TAG = -1
# Tags of what MPI_Win_post and MPI_Win_complete tell other ranks, as messages on the window.
POSTED_TAG, COMPLETED_TAG = -16, -17
# States of a process. FINALIZED has left MPI_Finalize; ENDED has ended without it; UNSEEN is on another node,
# or has not left MPI_Init.
RUNS, STOPPED, ENDED, FINALIZED, UNSEEN = "runs", "stopped", "ended", "finalized", "unseen"
SCHEMA = "earlybird.where/1"


@dataclass(frozen=True)
class Awaited:
    """A message, a collective or a partitioned transfer that a thread waits for, or an open request.

    Attributes
    ----------
    kind : SEND, RECEIVE, COLLECTIVE, PARTITIONED_SEND, PARTITIONED_RECEIVE or LOCK.
    call : function that started it.
    peer : rank of MPI_COMM_WORLD, ANY_PEER, or the root of a collective, else NO_PEER.
    tag : ANY_TAG for any.
    communicator : key of `RankState.communicators`, the same on all ranks; None if it is unknown.
    bytes : size of the buffer; None if it is unknown.
    number : number of the collective on its communicator, from 1; 0 if it is unknown; of a lock
        EXCLUSIVE_LOCK, or 0 if it is shared.
    posted_s : when it was started, on the clock of the rank: later ones are greater.
    partitions, num_ready : partitions of a partitioned send, and how many of these are ready.
    unready : partitions of it that are not, in order; of many partitions the recorder keeps the first alone.
    site : address of the place that started it, for `RankState.place_of`; 0 if it is unknown.
    consumes : whether it takes the message; false for a probe.
    """

    kind: int
    call: str
    peer: int = NO_PEER
    tag: int = ANY_TAG
    communicator: Hashable = None
    bytes: int | None = None
    number: int = 0
    posted_s: float = 0.0
    partitions: int = 0
    num_ready: int = 0
    unready: tuple[int, ...] = ()
    consumes: bool = True
    site: int = 0


@dataclass(frozen=True)
class ThreadState:
    """A thread that has called the MPI.

    Attributes
    ----------
    call : function that the thread is in, or that it called last.
    is_inside : whether it is in that call.
    since_s : for how many seconds it has been there, or has computed.
    place : place of the call in the program; empty if it is unknown.
    awaited : what the call waits for.
    num_left_out : number of requests that the call waits for, too, and of which nothing is known.
    is_polling : whether it polls without success, since `since_s`.
    progress : number that grows as the thread gets on.
    is_steady : whether it has not got on between two looks.
    is_idle : whether it is in no call and waits for another thread of its process, as in a barrier of OpenMP.
    """

    number: int
    call: str
    is_inside: bool
    since_s: float = 0.0
    place: str = ""
    awaited: tuple[Awaited, ...] = ()
    num_left_out: int = 0
    is_polling: bool = False
    progress: int = 0
    is_steady: bool = True
    is_idle: bool = False


@dataclass(frozen=True)
class Entered:
    """A collective that a rank has entered; root NO_PEER: it has none; bytes None: unknown; site: the address
    of the call."""

    call: str
    root: int = NO_PEER
    bytes: int | None = None
    site: int = field(default=0, compare=False)


@dataclass(frozen=True)
class CommunicatorState:
    """A communicator as a rank sees it, or what was created over one (`is_object`): a window, a file or a
    persistent collective, on which collectives have numbers of their own; `members`, of an inter-communicator
    those of the local group, None: unknown; `entered` has the latest collectives by number."""

    name: str
    members: Sequence[int] | None
    num_entered: int = 0
    entered: Mapping[int, Entered] = field(default_factory=dict)
    is_inter: bool = False
    is_window: bool = False
    is_object: bool = False


Channel = tuple[int, Hashable, int]  # peer, communicator, tag


@dataclass(frozen=True)
class RankState:
    """A rank at the moment of a look.

    Attributes
    ----------
    state : RUNS, STOPPED, ENDED, FINALIZED or UNSEEN.
    host : name of its node; empty if it is unknown.
    threads : threads that have called the MPI, the first one first.
    requests : open requests, also those that no thread waits for.
    sent : number of messages that were sent and the bytes of the latest, by receiver, communicator and tag.
    received : number of received messages by sender, communicator and tag.
    counts_all : whether no message is missing in `sent` and `received`.
    knows_communicators, knows_objects : whether `communicators` has all that it has used.
    is_concurrent : whether several threads may call the MPI.
    has_other_threads : whether threads that are not in `threads` may call the MPI.
    may_wake : whether a thread that counts as waiting for others may go on by itself: after a time, or when
        something comes from outside.
    locks : locks of windows that it has begun and not ended; peer: the rank whose window is locked.
    place_of : returns the text of a place from its address and the function that was called there.
    """

    rank: int
    state: str = RUNS
    host: str = ""
    threads: tuple[ThreadState, ...] = ()
    communicators: Mapping[Hashable, CommunicatorState] = field(default_factory=dict)
    requests: tuple[Awaited, ...] = ()
    sent: Mapping[Channel, tuple[int, int]] = field(default_factory=dict)
    received: Mapping[Channel, int] = field(default_factory=dict)
    counts_all: bool = True
    knows_communicators: bool = True
    knows_objects: bool = True
    is_concurrent: bool = False
    has_other_threads: bool = False
    may_wake: bool = False
    locks: tuple[Awaited, ...] = ()
    place_of: Callable[[int, str], str] = field(default=lambda address, call: "", compare=False)


@dataclass(frozen=True)
class Where:
    """The answer to who waits for whom.

    Attributes
    ----------
    verdict : deadlock, buffering, mismatch, missing, collective, one-sided, partitioned, finalize, computing,
        stopped, ended, unreachable, running or unknown.
    guilty : ranks that are likely to be the cause, the likeliest first.
    cycle : ranks that wait for each other in this order; empty without a cycle.
    ranks : states of all ranks.
    pending : what the call of a thread still waits for, by rank and number of the thread.
    """

    verdict: str
    sentence: str
    guilty: tuple[int, ...]
    cycle: tuple[int, ...]
    ranks: Mapping[int, RankState]
    pending: Mapping[tuple[int, int], tuple[Awaited, ...]] = field(default_factory=dict)
