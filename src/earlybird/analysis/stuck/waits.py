"""Says what each thread waits for: which ranks must act, all of them or any, before its call returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from earlybird.analysis.stuck.messages import Messages, match
from earlybird.data.rank_states import (
    COLLECTIVE,
    EXCLUSIVE_LOCK,
    FINALIZED,
    LOCK,
    PARTITIONED_RECEIVE,
    PARTITIONED_SEND,
    RECEIVE,
    RUNS,
    SEND,
    UNSEEN,
    Awaited,
    CommunicatorState,
    Entered,
    RankState,
    ThreadState,
)
from earlybird.data.recorded_rank import ANY_PEER, NO_PEER

FINALIZE = "MPI_Finalize"
# Sends that complete only when a receive has taken the message.
_SYNCHRONOUS = frozenset({"MPI_Ssend", "MPI_Issend", "MPI_Ssend_init"})
_BUFFERED = frozenset({"MPI_Bsend", "MPI_Ibsend", "MPI_Bsend_init"})
_OF_ANY = frozenset({"MPI_Waitany", "MPI_Waitsome"})
# By what follows `MPI_` or `MPI_I`: collectives that no rank leaves before all have entered, whatever the
# algorithm; those whose root alone is waited for; those in which the root waits for all.
_OF_ALL = frozenset(
    {
        "barrier", "allreduce", "allgather", "alltoall", "reduce_scatter", "reduce_scatter_block", "comm_dup",
        "comm_dup_with_info", "comm_split", "comm_split_type", "comm_create", "cart_create", "cart_sub",
        "graph_create", "dist_graph_create", "dist_graph_create_adjacent", "intercomm_create",
        "intercomm_merge", "win_create", "win_allocate", "win_allocate_shared", "win_create_dynamic",
        "win_free", "win_fence", "file_open",
    }
)  # fmt: skip
_FROM_ROOT = frozenset({"bcast", "scatter", "scatterv"})
_TO_ROOT = frozenset({"gather", "gatherv", "reduce"})
_FROM_LOWER = frozenset({"scan", "exscan"})
# Of a call on a file that starts a request.
_OPENS_ON_FILE = "MPI_File_i"


@dataclass(frozen=True)
class Condition:
    """What one of the requests of a call waits for.

    Attributes
    ----------
    ranks : that must act: all of them, or any unless `of_all`.
    awaited : message or collective; None for MPI_Finalize.
    is_buffered_elsewhere : whether it is a send that completes at once if the MPI buffers the message.
    others : for a collective, what other ranks have entered in place of it.
    """

    ranks: frozenset[int]
    of_all: bool = True
    awaited: Awaited | None = None
    is_buffered_elsewhere: bool = False
    others: Mapping[int, Entered] = field(default_factory=dict)

    def holds(self, live: Mapping[int, bool]) -> bool:
        """Return whether the ranks could still act."""
        return (all if self.of_all else any)(live[rank] for rank in self.ranks)


@dataclass(frozen=True)
class Wait:
    """A thread that waits until all of its conditions have come true, or any unless `of_all`."""

    thread: ThreadState
    conditions: tuple[Condition, ...]
    of_all: bool = True


class Waiting:
    """What the threads of all ranks wait for."""

    def __init__(self, ranks: Mapping[int, RankState]):
        self.ranks = ranks
        self.messages: Messages = match(ranks)
        self._collectives: dict[tuple[object, ...], Condition | None] = {}
        self._numbers: dict[object, dict[int, int]] = {}
        # The groups of inter-communicators, as far as a rank of each has used them.
        self._groups: dict[object, set[tuple[int, ...]]] = {}
        for state in ranks.values():
            for key, communicator in state.communicators.items():
                if communicator.is_inter and communicator.members:
                    self._groups.setdefault(key, set()).add(tuple(communicator.members))
        self._not_finalizing = frozenset(
            rank for rank, state in ranks.items() if state.state != FINALIZED and not finalizes(state)
        )

    def number_in(self, key: object, rank: int) -> int | None:
        """Return the number of a rank of MPI_COMM_WORLD in a communicator; None if that is not known."""
        if key not in self._numbers:
            every = (state.communicators.get(key) for state in self.ranks.values())
            known = next((each for each in every if each is not None and each.members), None)
            members = known.members if known is not None and not known.is_inter else None
            self._numbers[key] = {member: number for number, member in enumerate(members or ())}
        return self._numbers[key].get(rank)

    def wait_of(self, state: RankState, thread: ThreadState) -> Wait | None:
        """Return what a thread waits for; None if it may get on by itself, as far as is known."""
        if not thread.is_inside or thread.is_polling or not thread.is_steady:
            return None
        if thread.call == FINALIZE:
            condition = Condition(self._not_finalizing)
            return Wait(thread, (condition,)) if self._not_finalizing else None
        if not thread.awaited:
            return None
        is_single = len(thread.awaited) == 1 and thread.num_left_out == 0
        if thread.call in _OF_ANY and not is_single:
            every = [self._condition(state, awaited) for awaited in thread.awaited]
            if thread.num_left_out or None in every:
                return None
            return Wait(thread, tuple(filter(None, every)), of_all=False)
        certain: list[Condition] = []
        possible: list[Condition] = []
        for awaited in thread.awaited:
            waited = self._condition(state, awaited)
            if waited is not None:
                # Of several, an eager send is complete although nobody has received the message.
                is_certain = is_single or not waited.is_buffered_elsewhere
                (certain if is_certain else possible).append(waited)
        if certain:
            return Wait(thread, tuple(certain))
        if possible and not thread.num_left_out:
            return Wait(thread, tuple(possible), of_all=False)
        return None

    def _condition(self, state: RankState, awaited: Awaited) -> Condition | None:
        """Return what a request waits for; None if it is complete, or that is not known."""
        if awaited.kind == COLLECTIVE:
            return self._of_collective(state, awaited)
        if awaited.kind in (SEND, RECEIVE):
            if self.messages.is_matched(awaited) or awaited.call in _BUFFERED:
                return None
            sources = self._sources(state, awaited)
            is_eager = awaited.kind == SEND and awaited.call not in _SYNCHRONOUS
            return (
                Condition(sources, of_all=False, awaited=awaited, is_buffered_elsewhere=is_eager)
                if sources
                else None
            )
        if awaited.kind == LOCK:
            holders = self._holders(state, awaited)
            return Condition(holders, of_all=False, awaited=awaited) if holders else None
        if awaited.kind == PARTITIONED_SEND and awaited.num_ready < awaited.partitions:
            return Condition(frozenset({state.rank}), awaited=awaited)
        if awaited.kind == PARTITIONED_RECEIVE and awaited.peer in self.ranks:
            senders = partitioned_senders(self.ranks[awaited.peer], state.rank, awaited)
            if not senders:
                return Condition(frozenset({awaited.peer}), awaited=awaited)
            sender = senders[0]
            if sender.num_ready < sender.partitions:
                # What the sender has not made ready is what the receive waits for; of several sends, which is
                # its own is not known.
                unready = sender.unready if len(senders) == 1 else ()
                lacks = replace(
                    awaited, partitions=sender.partitions, num_ready=sender.num_ready, unready=unready
                )
                return Condition(frozenset({awaited.peer}), awaited=lacks)
        return None

    def _holders(self, state: RankState, awaited: Awaited) -> frozenset[int]:
        """Return the ranks that have locked the same part of a window against a rank, and are in no call that
        ends a lock: which of those is served first is up to the MPI."""
        own = [lock for lock in state.locks if is_same_window(lock, awaited)]
        is_exclusive = EXCLUSIVE_LOCK in {awaited.number, *(lock.number for lock in own)}
        return frozenset(
            rank
            for rank, other in self.ranks.items()
            if rank != state.rank
            and not any(is_same_window(each, awaited) for each in _lock_calls(other))
            and any(
                is_same_window(lock, awaited) and (is_exclusive or lock.number == EXCLUSIVE_LOCK)
                for lock in other.locks
            )
        )

    def _sources(self, state: RankState, awaited: Awaited) -> frozenset[int]:
        """Return the ranks that could match a message; none if they are unknown."""
        if awaited.peer != ANY_PEER:
            return frozenset({awaited.peer} & self.ranks.keys())
        communicator = state.communicators.get(awaited.communicator)
        if communicator is None:
            return frozenset()
        members = communicator.members
        if communicator.is_inter:
            members = self._remote_members(awaited.communicator, communicator)
        return frozenset(rank for rank in members or () if rank != state.rank and rank in self.ranks)

    def _remote_members(self, key: object, communicator: CommunicatorState) -> tuple[int, ...] | None:
        """Return the members of the remote group of an inter-communicator; None if none of them has used
        it."""
        others = self._groups.get(key, set()) - {tuple(communicator.members or ())}
        return next(iter(others)) if len(others) == 1 else None

    def _of_collective(self, state: RankState, awaited: Awaited) -> Condition | None:
        communicator = state.communicators.get(awaited.communicator)
        if communicator is None or not communicator.members or not awaited.number:
            return None
        kind = kind_of(awaited.call)
        if communicator.is_inter and kind not in _OF_ALL:
            return None
        is_of_rank = kind in _FROM_LOWER or awaited.peer == state.rank
        rank = state.rank if is_of_rank else NO_PEER
        key = (awaited.communicator, awaited.number, awaited.call, rank, awaited.peer, awaited.bytes)
        if key not in self._collectives:
            self._collectives[key] = self._entering(communicator, awaited, kind, rank)
        return self._collectives[key]

    def _entering(
        self, communicator: CommunicatorState, awaited: Awaited, kind: str, rank: int
    ) -> Condition | None:
        """Return which ranks have not entered a collective, or another one in place of it. `rank`: that
        waits, if that matters."""
        assert communicator.members is not None
        own = Entered(awaited.call, awaited.peer, awaited.bytes)
        every = tuple(communicator.members)
        if communicator.is_inter:
            remote = self._remote_members(awaited.communicator, communicator)
            if remote is None:
                return None
            every += remote
        missing: list[int] = []
        unseen: list[int] = []
        others: dict[int, Entered] = {}
        for member in every:
            state = self.ranks.get(member)
            if state is None:
                return None
            there = state.communicators.get(awaited.communicator)
            if state.state == UNSEEN and there is None:
                unseen.append(member)
            elif there is None and not (
                state.knows_objects if communicator.is_object else state.knows_communicators
            ):
                return None
            elif there is None or there.num_entered < awaited.number:
                missing.append(member)
            elif (entered := there.entered.get(awaited.number)) is not None and differs(
                own, entered, communicator.is_inter
            ):
                others[member] = entered
            elif kind not in _OF_ALL and is_nonblocking(awaited.call) and not _waits_for(state, awaited):
                # It may not have done its part yet, which it does in calls to the MPI.
                return None
        # What those do that cannot be seen matters where a rank waits for only some of the others.
        absent = (missing or unseen) if kind in _OF_ALL else [*missing, *unseen]
        # Ranks in different calls on a file may all read or write it, and need not wait for each other.
        if not absent and kind.startswith("file_") and kind not in _OF_ALL:
            return None
        if not absent:
            return (
                Condition(frozenset(others), of_all=False, awaited=awaited, others=others) if others else None
            )
        # Others than those of _OF_ALL may wait for some of the missing ranks alone.
        needed, of_all = absent, kind in _OF_ALL and not communicator.is_inter
        root = awaited.peer
        if kind in _FROM_ROOT and root != rank and root in absent:
            needed = [root]
        elif kind in _TO_ROOT and root == rank:
            of_all = True
        elif kind in _FROM_LOWER:
            members = list(communicator.members)
            lower = [member for member in absent if members.index(member) < members.index(rank)]
            needed, of_all = lower or absent, bool(lower)
        return Condition(frozenset(needed), of_all, awaited, others=others)


def kind_of(call: str) -> str:
    """Return the operation of a collective: `barrier` for MPI_Barrier, MPI_Ibarrier and MPI_Barrier_init."""
    if call.startswith(_OPENS_ON_FILE):
        return "file_" + call.removeprefix(_OPENS_ON_FILE)
    name = call.removeprefix("MPI_").removesuffix("_init")
    is_immediate = is_nonblocking(call) and not is_persistent(call)
    return (name[1:] if is_immediate else name).lower()


def is_persistent(call: str) -> bool:
    """Return whether a call creates a persistent request: MPI_Barrier_init."""
    return call.endswith("_init")


def is_nonblocking(call: str) -> bool:
    """Return whether a collective returns before it is complete: MPI_Ibarrier, MPI_Barrier_init,
    MPI_File_iwrite_all."""
    name = call.removeprefix("MPI_")
    is_immediate = name[:1] == "I" and name[1:2].islower() and not name.startswith("Intercomm_")
    return is_immediate or is_persistent(call) or call.startswith(_OPENS_ON_FILE)


def _waits_for(state: RankState, awaited: Awaited) -> bool:
    """Return whether a thread of a rank waits for the same collective."""
    return any(
        (each.kind, each.communicator, each.number) == (COLLECTIVE, awaited.communicator, awaited.number)
        for thread in state.threads
        if thread.is_inside
        for each in thread.awaited
    )


def differs(one: Entered, other: Entered, is_inter: bool = False) -> bool:
    """Return whether two ranks do not call the same collective: another function, root or size. The groups
    of an inter-communicator may have other roots and sizes."""
    if is_inter:
        return one.call != other.call
    is_other_size = None not in (one.bytes, other.bytes) and one.bytes != other.bytes
    return one.call != other.call or one.root != other.root or is_other_size


def partitioned_senders(state: RankState, receiver: int, awaited: Awaited) -> list[Awaited]:
    """Return the started partitioned sends that a partitioned receive may wait for."""
    key = (PARTITIONED_SEND, receiver, awaited.tag, awaited.communicator)
    return [each for each in state.requests if (each.kind, each.peer, each.tag, each.communicator) == key]


def is_same_window(one: Awaited, other: Awaited) -> bool:
    """Return whether two locks may be of the same rank's part of the same window."""
    is_same_rank = one.peer == other.peer or ANY_PEER in (one.peer, other.peer)
    return one.communicator == other.communicator and is_same_rank


def _lock_calls(state: RankState) -> list[Awaited]:
    return [
        each for thread in state.threads if thread.is_inside for each in thread.awaited if each.kind == LOCK
    ]


def finalizes(state: RankState) -> bool:
    """Return whether a rank runs and a thread of it is in MPI_Finalize."""
    return state.state == RUNS and any(
        thread.is_inside and thread.call == FINALIZE for thread in state.threads
    )
