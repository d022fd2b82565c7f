"""A model of a sender and a receiver of partitioned transfers whose every interleaving can be explored.

It follows the steps of channel.c and matching.c over any MPI that keeps its matching rule; tags, segments and
ids come from the C functions. What the plans say is arbitrary (segments, a trial of others for some starts,
the starts with feedback, the start of the next plan): see PLANS. A step is one call of the program, or the
sending of one segment; a probe finds any number of the control messages that were sent, because messages may
be in flight for any time. What feedback says only influences which plan is chosen, and is left out of the
model; in which starts it is expected and sent is not.
"""

from collections import deque
from ctypes import byref
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from tests.core_library import Ids, canonical, from_ends

NUM_CHANNELS = 2
KIB = 1024
TOTAL_BYTES = 2 * 64 * KIB  # in two canonical segments
FIRST_DUE, NEVER = 2, -1


class Plan(NamedTuple):
    """The segments' ends from the next start on, but for those of a trial; the start of the next plan."""

    ends: tuple[int, ...]
    next_due: int
    tried: tuple[int, ...] = ()
    trial: tuple[int, int] = (0, 0)  # from the first of these starts to the one before the second
    feedback: tuple[int, int] = (0, 0)

    def ends_of(self, plan_start, start):
        """The ends that begin to apply in a start; none: the segments stay."""
        if self.tried and start == self.trial[0]:
            return self.tried
        return self.ends if start == plan_start + 1 or (self.tried and start == self.trial[1]) else ()


WHOLE, TWO, THREE = (TOTAL_BYTES,), (30 * KIB, TOTAL_BYTES), (10 * KIB, 100 * KIB, TOTAL_BYTES)
# By channel: the plan of a start. A plan that is due but not listed keeps the segments, and is the last.
PLANS = (
    {
        2: Plan(THREE, 3, feedback=(2, 3)),
        3: Plan(WHOLE, 6, TWO, (4, 5), (3, 5)),
        6: Plan(TWO, NEVER, feedback=(7, 8)),
    },
    {2: Plan(WHOLE, 5, THREE, (3, 4), (2, 4)), 5: Plan(TWO, NEVER)},
)
PLAN, FEEDBACK = "plan", "feedback"
BACKWARDS = 1 << 16  # added to the tags of messages from the receiver to the sender


class Violation(Exception):
    """The model reached a state that must never occur."""


class Channel(NamedTuple):
    """One side's state of a transfer."""

    base: int = -1
    first_id: int = 0  # 0: canonical
    segments: tuple[int, ...] = ()
    history: tuple[tuple[int, ...], ...] = ()  # the segments of every start
    unissued: frozenset[int] = frozenset()
    next_due: int = FIRST_DUE  # the start in which the next plan is sent
    plan: Plan | None = None  # the last one, sent or received
    plan_start: int = 0
    is_copying: bool = False
    is_deferred: bool = False
    is_freed: bool = False


class State(NamedTuple):
    sender_at: int = 0  # the next call of the program
    receiver_at: int = 0
    senders: tuple[Channel | None, ...] = (None,) * NUM_CHANNELS
    receivers: tuple[Channel | None, ...] = (None,) * NUM_CHANNELS
    # By tag, in order: messages without a posted receive, or receives without a message.
    wire: tuple[tuple[int, tuple], ...] = ()
    setups: tuple[tuple[int, int], ...] = ()  # in flight: (channel, first id)
    unexpected: tuple[tuple[int, int], ...] = ()  # the unexpected queue
    posted: tuple[int, ...] = ()
    releases: tuple[int, ...] = ()  # in flight
    released: tuple[bool, ...] = (False,) * NUM_CHANNELS  # by the receiver
    ids: tuple[tuple[int, int, int], ...] = ()  # (first, number, holders)
    num_messages: int = 0  # ordinary messages of the program, not yet received


class Message(NamedTuple):
    is_send: bool
    channel: int
    start: int
    piece: int | str  # a segment, PLAN or FEEDBACK
    bounds: tuple | None  # its bytes, or the plan
    is_copy: bool = False


@dataclass(frozen=True)
class Scenario:
    sender: tuple[tuple, ...]
    receiver: tuple[tuple, ...]
    rendezvous: bool
    user_tag: int = 3
    orders: tuple[int, int] = (0, 1)
    mutation: str = ""
    checks_ids: bool = True


def iterations(num, channels=(0, 1), waits=None):
    """The calls of several starts: all channels, then everything ready, then all waited for."""
    calls = []
    for _ in range(num):
        calls += [("start", c) for c in channels]
        calls.append(("ready", *channels))
        calls += [("wait", c) for c in (waits or channels)]
    return calls


def made(calls, frees=()):
    """A program that creates both channels first, in order, and frees some at its end."""
    return (("make", 0), ("make", 1), *calls, *(("free", c) for c in frees))


@dataclass
class Core:
    """The C functions, of a tag space of 15 bits, remembered."""

    library: object
    tags: object = field(init=False)

    def __post_init__(self):
        self.tags = self.library.eb_tags_layout((1 << 15) - 1)
        tags = ("segment_tag", "plan_tag", "feedback_tag")
        for name in (*tags, "canonical", "from_ends", "take_id", "release_id"):
            setattr(self, name, cache(getattr(self, name)))

    def canonical(self):
        return tuple(canonical(self.library, TOTAL_BYTES, 2))

    def from_ends(self, ends):
        return tuple(from_ends(self.library, list(ends)))

    def is_canonical(self, user_tag, order):
        return self.library.eb_tags_is_canonical(byref(self.tags), 0, user_tag, order)

    def canonical_base(self, user_tag, order):
        return self.library.eb_tags_canonical_base(byref(self.tags), 0, user_tag, order)

    def channel_base(self, first_id):
        return self.library.eb_tags_channel_base(byref(self.tags), first_id)

    def segment_tag(self, base, segment):
        return self.library.eb_tags_segment(byref(self.tags), base, segment)

    def plan_tag(self, base):
        return self.library.eb_tags_segmentation(byref(self.tags), base, 1)

    def feedback_tag(self, base):
        return BACKWARDS + self.library.eb_tags_feedback(byref(self.tags), base, 1)

    def _with_ids(self, ranges, change):
        """Rebuilds the pool that gave out these ranges, changes it, and returns its new ranges."""
        ids, end, gaps = Ids(), 1, []
        self.library.eb_ids_begin(byref(ids), 1, self.library.eb_tags_num_ids(byref(self.tags)))
        for first, num, _ in ranges:
            if first > end:
                gaps.append(self.library.eb_ids_take(byref(ids), first - end, None))
            assert self.library.eb_ids_take(byref(ids), num, None) == first
            end = first + num
        for first in [*gaps, *gaps, *(first for first, _, holders in ranges if holders == 1)]:
            self.library.eb_ids_release(byref(ids), first)
        result = change(ids)
        left = tuple((r.first, r.num, r.holders) for r in ids.ranges[: ids.num_ranges])
        self.library.eb_ids_end(byref(ids))
        return left, result

    def take_id(self, ranges):
        return self._with_ids(ranges, lambda ids: self.library.eb_ids_take(byref(ids), 1, None))

    def release_id(self, ranges, first):
        return self._with_ids(ranges, lambda ids: self.library.eb_ids_release(byref(ids), first))[0]


def put(items, place, value):
    return (*items[:place], value, *items[place + 1 :])


def check_pair(send, receive):
    same = (send.channel, send.start, send.piece) == (receive.channel, receive.start, receive.piece)
    if not same or (send.piece != PLAN and send.bounds != receive.bounds):
        raise Violation(f"mismatch: {send} was received by {receive}")


class Model:
    def __init__(self, core, scenario):
        self.core = core
        self.scenario = scenario

    # The MPI: the first message of a tag goes to the first receive of that tag.

    def exchange(self, state, tag, message):
        wire = dict(state.wire)
        waiting = wire.pop(tag, ())
        if waiting and waiting[0].is_send != message.is_send:
            other, rest = waiting[0], waiting[1:]
            send, receive = (message, other) if message.is_send else (other, message)
            check_pair(send, receive)
            if send.piece == PLAN:
                receiver = state.receivers[receive.channel]._replace(plan=send.bounds, plan_start=send.start)
                state = state._replace(receivers=put(state.receivers, receive.channel, receiver))
        else:
            rest = (*waiting, message)
        if rest:
            wire[tag] = rest
        return state._replace(wire=tuple(sorted(wire.items())))

    def has_waiting(self, state, channel, is_send):
        """Are messages (that are not copies), or receives, of a channel on the wire?"""
        return any(
            m.channel == channel and m.is_send == is_send and not m.is_copy and m.piece != FEEDBACK
            for _, waiting in state.wire
            for m in waiting
        )

    # Both sides.

    def is_canonical(self, channel):
        scenario = self.scenario
        if scenario.mutation == "wrapping order":
            return True
        return self.core.is_canonical(scenario.user_tag, scenario.orders[channel])

    def canonical_base(self, channel):
        order = self.scenario.orders[channel]
        if self.scenario.mutation == "wrapping order":
            order %= 1 << self.core.tags.order_bits
        return self.core.canonical_base(self.scenario.user_tag, order)

    def adopt(self, side, early_segments=()):
        ends = side.plan.ends_of(side.plan_start, len(side.history) + 1) if side.plan else ()
        segments = early_segments or (self.core.from_ends(ends) if ends else side.segments)
        return side._replace(segments=segments, history=(*side.history, segments))

    @staticmethod
    def has_feedback(side):
        begin, end = side.plan.feedback if side.plan else (0, 0)
        return begin <= len(side.history) < end

    @staticmethod
    def check_history(state, channel):
        sender, receiver = state.senders[channel], state.receivers[channel]
        if sender and receiver:
            num = min(len(sender.history), len(receiver.history))
            if sender.history[:num] != receiver.history[:num]:
                raise Violation(f"segments differ: {sender.history} and {receiver.history}")

    # The sender.

    def sender_steps(self, state):
        if state.sender_at == len(self.scenario.sender):
            return
        call, *arguments = self.scenario.sender[state.sender_at]
        after = state._replace(sender_at=state.sender_at + 1)
        if call == "ready":
            yield from self.issues(state, after, arguments)
        elif call == "send":
            yield after._replace(num_messages=state.num_messages + 1)
        elif call == "sent":
            if not self.scenario.rendezvous or state.num_messages == 0:
                yield after
        else:
            yield from getattr(self, f"sender_{call}")(after, arguments[0])

    def sender_make(self, state, channel):
        side = Channel(segments=self.core.canonical())
        if self.is_canonical(channel):
            side = side._replace(base=self.canonical_base(channel))
            yield state._replace(senders=put(state.senders, channel, side))
            return
        for num in range(len(state.releases) + 1):
            ids = state.ids
            for first_id in state.releases[:num]:
                ids = self.core.release_id(ids, first_id)
            ids, first_id = self.core.take_id(ids)
            if self.scenario.checks_ids:
                self.check_id(state, channel, first_id)
            is_copying = self.scenario.mutation != "no copying"
            side = side._replace(
                base=self.core.channel_base(first_id), first_id=first_id, is_copying=is_copying
            )
            yield state._replace(
                senders=put(state.senders, channel, side),
                ids=ids,
                releases=state.releases[num:],
                setups=(*state.setups, (channel, first_id)),
            )

    @staticmethod
    def check_id(state, channel, first_id):
        for other, old in enumerate(state.senders):
            if old and old.first_id == first_id and not (old.is_freed and state.released[other]):
                raise Violation(f"id {first_id} is shared by channels {other} and {channel}")

    def sender_start(self, state, channel):
        side = self.adopt(state.senders[channel])
        start = len(side.history)
        if start == 2:
            side = side._replace(is_copying=False)
        elif side.is_copying and self.is_accepted(state, channel):
            # The answer may have arrived or not.
            uncopied = state.senders[channel]._replace(is_copying=False)
            yield from self.sender_start(
                state._replace(senders=put(state.senders, channel, uncopied)), channel
            )
        is_due = start == side.next_due
        if is_due:
            plan = PLANS[channel].get(start, Plan(side.segments[1:], NEVER))
            side = side._replace(plan=plan, plan_start=start, next_due=plan.next_due)
        side = side._replace(unissued=frozenset(range(len(side.segments) - 1)))
        state = state._replace(senders=put(state.senders, channel, side))
        if is_due:
            message = Message(True, channel, start, PLAN, side.plan, is_copy=True)
            state = self.exchange(state, self.core.plan_tag(side.base), message)
        if self.has_feedback(side):
            message = Message(False, channel, start, FEEDBACK, ())
            state = self.exchange(state, self.core.feedback_tag(side.base), message)
        self.check_history(state, channel)
        yield state

    def is_accepted(self, state, channel):
        """Has the receiver processed the setup, and posted the segments of its starts?"""
        receiver = state.receivers[channel]
        known = receiver is not None and receiver.base >= 0 and not receiver.is_freed
        early = self.scenario.mutation == "early acceptance"
        return known and (early or not receiver.is_deferred)

    def issues(self, state, after, channels):
        left = sum(len(state.senders[c].unissued) for c in channels)
        for channel in channels:
            side = state.senders[channel]
            for segment in side.unissued:
                issued = side._replace(unissued=side.unissued - {segment})
                reached = (after if left == 1 else state)._replace(
                    senders=put(state.senders, channel, issued)
                )
                message = Message(
                    True, channel, len(side.history), segment, side.segments[segment : segment + 2],
                    side.is_copying or not self.scenario.rendezvous,
                )  # fmt: skip
                yield self.exchange(reached, self.core.segment_tag(side.base, segment), message)
                if side.is_copying and self.is_accepted(state, channel):
                    # The answer may have arrived before a large copy was made, or not.
                    uncopied = put(reached.senders, channel, issued._replace(is_copying=False))
                    sent = message._replace(is_copy=not self.scenario.rendezvous)
                    yield self.exchange(
                        reached._replace(senders=uncopied), self.core.segment_tag(side.base, segment), sent
                    )

    def sender_wait(self, state, channel):
        if not self.has_waiting(state, channel, is_send=True):
            yield state

    def sender_free(self, state, channel):
        side = state.senders[channel]
        ids = state.ids
        for _ in range((2 if self.scenario.mutation == "early recycling" else 1) if side.first_id else 0):
            ids = self.core.release_id(ids, side.first_id)
        freed = side._replace(is_freed=True)
        yield state._replace(senders=put(state.senders, channel, freed), ids=ids)

    # The receiver.

    def receiver_steps(self, state):
        if state.receiver_at == len(self.scenario.receiver):
            return
        call, *arguments = self.scenario.receiver[state.receiver_at]
        after = state._replace(receiver_at=state.receiver_at + 1)
        if call == "ready":
            yield after
        elif call == "receive":
            if state.num_messages:
                yield after._replace(num_messages=state.num_messages - 1)
        elif call == "wait":
            yield from self.receiver_wait(state, after, arguments[0])
        else:
            yield from getattr(self, f"receiver_{call}")(after, arguments[0])

    def take_setup(self, state, channel, setup):
        of_channel, first_id = setup
        if of_channel != channel:
            raise Violation(f"the setup of channel {of_channel} went to channel {channel}")
        side = state.receivers[channel]._replace(first_id=first_id, base=self.core.channel_base(first_id))
        state = state._replace(receivers=put(state.receivers, channel, side))
        return self.release(state, channel) if side.is_freed else state

    @staticmethod
    def release(state, channel):
        return state._replace(
            releases=(*state.releases, state.receivers[channel].first_id),
            released=put(state.released, channel, True),
        )

    def progress(self, state, least=0):
        """eb_matching_progress: it finds any number of the setups in flight."""
        for num in range(least, len(state.setups) + 1):
            reached = state._replace(setups=state.setups[num:])
            for setup in state.setups[:num]:
                if reached.posted:
                    channel, *others = reached.posted
                    reached = self.take_setup(reached._replace(posted=tuple(others)), channel, setup)
                else:
                    reached = reached._replace(unexpected=(*reached.unexpected, setup))
            yield reached

    def receiver_make(self, state, channel):
        side = Channel(segments=self.core.canonical())
        if self.is_canonical(channel):
            side = side._replace(base=self.canonical_base(channel))
            yield state._replace(receivers=put(state.receivers, channel, side))
            return
        for reached in self.progress(state):
            reached = reached._replace(receivers=put(reached.receivers, channel, side))
            if reached.unexpected:
                setup, *others = reached.unexpected
                yield self.take_setup(reached._replace(unexpected=tuple(others)), channel, setup)
            else:
                yield reached._replace(posted=(*reached.posted, channel))

    def post(self, state, channel):
        side = state.receivers[channel]
        for segment in range(len(side.segments) - 1):
            message = Message(
                False, channel, len(side.history), segment, side.segments[segment : segment + 2]
            )
            state = self.exchange(state, self.core.segment_tag(side.base, segment), message)
        return state

    def post_deferred(self, state, channel, least):
        for reached in self.progress(state, least):
            side = reached.receivers[channel]
            side = side._replace(is_deferred=side.base < 0)
            reached = reached._replace(receivers=put(reached.receivers, channel, side))
            yield reached if side.is_deferred else self.post(reached, channel)

    def receiver_start(self, state, channel):
        before = state.receivers[channel]
        side = self.adopt(before)
        start = len(side.history)
        state = state._replace(receivers=put(state.receivers, channel, side))
        if start == side.next_due:
            message = Message(False, channel, start, PLAN, ())
            state = self.exchange(state, self.core.plan_tag(side.base), message)
            side = state.receivers[channel]
            if self.scenario.mutation == "early adoption" and side.plan_start == start:
                early = self.adopt(before, self.core.from_ends(side.plan.ends))
                side = early._replace(plan=side.plan, plan_start=start)
                state = state._replace(receivers=put(state.receivers, channel, side))
        self.check_history(state, channel)
        if side.base < 0:
            yield from self.post_deferred(state, channel, least=0)
        else:
            yield self.post(state, channel)

    def receiver_wait(self, state, after, channel):
        side = state.receivers[channel]
        if side.is_deferred:
            if side.base >= 0:  # another call has processed its setup
                side = side._replace(is_deferred=False)
                yield self.post(state._replace(receivers=put(state.receivers, channel, side)), channel)
            else:
                yield from self.post_deferred(state, channel, least=1)
        elif not self.has_waiting(state, channel, is_send=False):
            start = len(side.history)
            if start == side.next_due:
                side = side._replace(next_due=side.plan.next_due)
            reached = after._replace(receivers=put(after.receivers, channel, side))
            is_forgotten = self.scenario.mutation == "forgotten feedback" and start == 4
            if self.has_feedback(side) and not is_forgotten:
                message = Message(True, channel, start, FEEDBACK, (), is_copy=True)
                reached = self.exchange(reached, self.core.feedback_tag(side.base), message)
            yield reached

    def receiver_free(self, state, channel):
        side = state.receivers[channel]._replace(is_freed=True)
        state = state._replace(receivers=put(state.receivers, channel, side))
        if side.base < 0:
            yield from self.progress(state)
        else:
            yield self.release(state, channel) if side.first_id else state

    # Everything.

    def check_end(self, state):
        if (state.sender_at, state.receiver_at) != (len(self.scenario.sender), len(self.scenario.receiver)):
            at = (
                self.scenario.sender[state.sender_at :][:1],
                self.scenario.receiver[state.receiver_at :][:1],
            )
            raise Violation(f"deadlock: sender and receiver wait in {at}")
        if state.wire or state.num_messages:
            raise Violation(f"left on the wire: {state.wire}")

    def explore(self):
        """Visits every state that can be reached; returns how many, or raises the first Violation."""
        seen, queue = {State()}, deque([State()])
        while queue:
            state = queue.popleft()
            num = 0
            for steps in (self.sender_steps, self.receiver_steps):
                for reached in steps(state):
                    num += 1
                    if reached not in seen:
                        seen.add(reached)
                        queue.append(reached)
            if num == 0:
                self.check_end(state)
        return len(seen)
