"""Matches the messages of a moment: which were sent and not received, and which open receives take one."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from earlybird.data.rank_states import ANY_TAG, RECEIVE, SEND, Awaited, Channel, RankState
from earlybird.data.recorded_rank import ANY_PEER


@dataclass(frozen=True)
class Unreceived:
    """Messages with the same tag that no receive takes: `num` of them from `src` to `dst`."""

    src: int
    dst: int
    communicator: object
    tag: int
    num: int
    bytes: int | None


@dataclass
class Messages:
    """What is known of the messages between all ranks.

    Attributes
    ----------
    unreceived : messages that no open receive takes, by receiver.
    matched : open sends and receives, by id(), whose message is known to be there, or may be.
    """

    unreceived: dict[int, list[Unreceived]] = field(default_factory=dict)
    matched: set[int] = field(default_factory=set)

    def is_matched(self, awaited: Awaited) -> bool:
        """Return whether the other side of a send or receive is there, or may be."""
        return id(awaited) in self.matched


def open_messages(state: RankState, kind: int) -> list[Awaited]:
    """Return the sends or receives that a rank has started and not completed, in their order: requests, and
    those of the calls that its threads are in."""
    is_request = {id(request) for request in state.requests}
    of_calls = [
        awaited for thread in state.threads for awaited in thread.awaited if id(awaited) not in is_request
    ]
    every = [awaited for awaited in (*state.requests, *of_calls) if awaited.kind == kind]
    return sorted(every, key=lambda awaited: awaited.posted_s)


def match(ranks: Mapping[int, RankState]) -> Messages:
    """Match the messages that ranks have sent and not received with the receives that are open."""
    result = Messages()
    num: dict[int, dict[Channel, int]] = {}
    sizes: dict[tuple[int, Channel], int | None] = {}
    sends: dict[tuple[int, Channel], list[Awaited]] = defaultdict(list)
    to_receiver: dict[int, list[tuple[int, Awaited]]] = defaultdict(list)
    among_several = {src: _among_several(state) for src, state in ranks.items()}
    for src, state in ranks.items():
        for awaited in open_messages(state, SEND):
            sends[src, (awaited.peer, awaited.communicator, awaited.tag)].append(awaited)
            to_receiver[awaited.peer].append((src, awaited))
        for channel, (count, size) in state.sent.items():
            # Of a thousand ranks there may be a million, most of which have all been received.
            num_left = count - _num_received(ranks, src, channel)
            if num_left or (src, channel) in sends:
                _add(num, sizes, src, channel, num_left, size)
        for awaited in _sent_in_calls(state):
            channel = (awaited.peer, awaited.communicator, awaited.tag)
            is_first = (src, *channel[1:]) not in num.get(awaited.peer, {})
            _add(num, sizes, src, channel, 1 - is_first * _num_received(ranks, src, channel), awaited.bytes)
    for dst, state in ranks.items():
        left = num.get(dst, {})
        receives = open_messages(state, RECEIVE)
        if not _counts_all(ranks, state, receives):
            _match_without_counts(result, to_receiver[dst], dst, receives, among_several)
            left = {}
        else:
            _take(result, dst, left, receives, sends)
        _unreceived(result, dst, left, sizes, sends)
    return result


def undelivered(ranks: Mapping[int, RankState]) -> dict[int, int]:
    """Return ranks that wait for nothing but a message which a rank of another node has sent: the sender by
    receiver."""
    senders = {}
    for rank, state in ranks.items():
        for thread in state.threads:
            if (
                not thread.is_inside
                or not thread.is_steady
                or len(thread.awaited) != 1
                or thread.num_left_out
            ):
                continue
            (awaited,) = thread.awaited
            sender = ranks.get(awaited.peer)
            if awaited.kind != RECEIVE or sender is None or not (state.counts_all and sender.counts_all):
                continue
            sent, _ = sender.sent.get((rank, awaited.communicator, awaited.tag), (0, 0))
            received = state.received.get((awaited.peer, awaited.communicator, awaited.tag), 0)
            is_elsewhere = "" not in (state.host, sender.host) and state.host != sender.host
            if is_elsewhere and awaited.tag != ANY_TAG and sent > received:
                senders[rank] = awaited.peer
    return senders


def _counts_all(ranks: Mapping[int, RankState], state: RankState, receives: list[Awaited]) -> bool:
    """Return whether all messages that the receives of a rank may take are counted. A receive of which the
    communicator is unknown may take any."""
    peers = {awaited.peer for awaited in receives}
    senders = ranks.keys() if ANY_PEER in peers else peers & ranks.keys()
    return (
        state.counts_all
        and all(ranks[rank].counts_all for rank in senders)
        and all(awaited.communicator is not None for awaited in receives)
    )


def _sent_in_calls(state: RankState) -> list[Awaited]:
    """Return the messages of calls that have not returned, which are not counted yet."""
    is_request = {id(request) for request in state.requests}
    return [
        awaited
        for thread in state.threads
        for awaited in thread.awaited
        if awaited.kind == SEND and id(awaited) not in is_request
    ]


def _num_received(ranks: Mapping[int, RankState], src: int, channel: Channel) -> int:
    """Return how many messages of a channel of `src` have been received."""
    dst, communicator, tag = channel
    return ranks[dst].received.get((src, communicator, tag), 0) if dst in ranks else 0


def _add(
    num: dict[int, dict[Channel, int]],
    sizes: dict[tuple[int, Channel], int | None],
    src: int,
    channel: Channel,
    count: int,
    size: int | None,
) -> None:
    """Count messages that `src` has sent by receiver, with the sender in place of it."""
    dst, communicator, tag = channel
    of_receiver = num.setdefault(dst, {})
    key = (src, communicator, tag)
    of_receiver[key] = of_receiver.get(key, 0) + count
    sizes[dst, key] = size


def _take(
    result: Messages,
    dst: int,
    left: dict[Channel, int],
    receives: list[Awaited],
    sends: Mapping[tuple[int, Channel], list[Awaited]],
) -> None:
    """Let the receives of a rank take messages in the order in which they were posted."""
    is_ambiguous = False
    uncertain: set[Channel] = set()
    for receive in receives:
        candidates = [channel for channel, count in _of(left, receive) if count > 0]
        if candidates or is_ambiguous:
            result.matched.add(id(receive))
        if candidates and receive.consumes:
            left[candidates[0]] -= 1
        # Which of them it takes is not known: whether a later receive has one, neither.
        if receive.consumes and (len(candidates) > 1 or is_ambiguous):
            is_ambiguous = True
            uncertain.update(candidates)
    for src, communicator, tag in uncertain:
        result.matched.update(id(send) for send in sends.get((src, (dst, communicator, tag)), ()))
        del left[src, communicator, tag]


def _of(left: Mapping[Channel, int], receive: Awaited) -> Iterator[tuple[Channel, int]]:
    """Yield the channels that a receive accepts, and how many messages these have."""
    channel = (receive.peer, receive.communicator, receive.tag)
    if receive.peer != ANY_PEER and receive.tag != ANY_TAG:
        yield channel, left.get(channel, 0)
        return
    for (src, communicator, tag), count in left.items():
        if accepts(receive, src, communicator, tag):
            yield (src, communicator, tag), count


def accepts(receive: Awaited, src: int, communicator: object, tag: int) -> bool:
    """Return whether a receive accepts a message."""
    return (
        receive.communicator == communicator
        and receive.peer in (src, ANY_PEER)
        and receive.tag in (tag, ANY_TAG)
    )


def _match_without_counts(
    result: Messages,
    sends: list[tuple[int, Awaited]],
    dst: int,
    receives: list[Awaited],
    among_several: Mapping[int, set[int]],
) -> None:
    """Match the receives of a rank with open sends to it alone; several requests may be complete."""
    for receive in receives:
        for src, send in sends:
            is_known = send.communicator is not None and receive.communicator is not None
            if not is_known or accepts(receive, src, send.communicator, send.tag):
                result.matched.update((id(receive), id(send)))
    result.matched.update(id(receive) for receive in receives if id(receive) in among_several[dst])
    # The rank may have received them.
    for src, send in sends:
        if id(send) in among_several[src]:
            result.matched.add(id(send))


def _among_several(state: RankState) -> set[int]:
    """Return what threads wait for in calls that wait for more than that: it may be complete, by id()."""
    return {
        id(awaited)
        for thread in state.threads
        if len(thread.awaited) > 1 or thread.num_left_out
        for awaited in thread.awaited
    }


def _unreceived(
    result: Messages,
    dst: int,
    left: Mapping[Channel, int],
    sizes: Mapping[tuple[int, Channel], int | None],
    sends: Mapping[tuple[int, Channel], list[Awaited]],
) -> None:
    """Note the messages to `dst` that are left; the earlier open sends of a channel have been received."""
    for (src, communicator, tag), count in left.items():
        opened = sends.get((src, (dst, communicator, tag)), [])
        done = opened[: max(len(opened) - max(count, 0), 0)]
        result.matched.update(id(send) for send in done)
        if count > 0:
            size = sizes[dst, (src, communicator, tag)]
            result.unreceived.setdefault(dst, []).append(Unreceived(src, dst, communicator, tag, count, size))
