"""First-come-first-served queues against sums by hand, bounds, and a simulation written out."""

import heapq
from collections import defaultdict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.models.compiled import Connections
from earlybird.models.queue import SENDING_QUEUE_S, WINDOW_BYTES, Queues

NEVER = np.inf


def _complete(messages, nodes, bandwidth, buffered=(NEVER,)):
    """(received, sent) of (src, dst, bytes[, class]) rows; `bandwidth` is [n-1] or [n-1][class]."""
    columns = np.array([(*row, 0)[:4] for row in messages], dtype=np.int64).T
    table = np.atleast_2d(np.array(bandwidth, dtype=float).T).T
    return Queues(*columns, np.array(nodes)).completion_times_s(table, np.array(buffered, dtype=float))


def _simulate(messages, nodes, bandwidth, buffered, chunk_bytes=4096):
    """When each message is received and sent, as the docstring says it; one class."""
    connections = defaultdict(list)
    for k, (src, dst, size) in enumerate(messages):
        own = connections[src, dst]
        own.append((k, (own[-1][1] if own else 0) + size))
    total = {c: own[-1][1] for c, own in connections.items()}
    injected, left_end, delivered, acknowledged = (dict.fromkeys(total, 0) for _ in range(4))
    waiting, carried, events, now = defaultdict(deque), {}, [], 0.0
    received, sent = {}, {}

    def open_at(end):
        side, node = end
        return [c for c in total if nodes[c[side]] == node and delivered[c] < total[c]]

    def rate(end):
        return bandwidth[len({c[end[0]] for c in open_at(end)}) - 1]

    def complete():
        for c, own in connections.items():
            for k, end_byte in own:
                if end_byte <= delivered[c]:
                    received.setdefault(k, now)
                if end_byte - acknowledged[c] <= buffered:
                    sent.setdefault(k, now)

    def put(end, item):
        waiting[end].append(item)
        begin(end)

    def begin(end):
        while end not in carried and waiting[end]:
            kind, c, size, arrived = waiting[end].popleft()
            if kind == "acknowledgement" and end[0] == 0:
                put((1, nodes[c[0]]), (kind, c, size, 0.0))
            elif kind == "acknowledgement":
                acknowledged[c] += size
                inject(c, total[c])
                begin((0, nodes[c[0]]))
            else:
                until = max(arrived, now + size / rate(end))
                carried[end] = c, size
                heapq.heappush(events, (until, end))
                if end[0] == 0:
                    put((1, nodes[c[1]]), (kind, c, size, until))

    def inject(c, until):
        end = 0, nodes[c[0]]
        while injected[c] < until:
            size = min(chunk_bytes, until - injected[c])
            share = SENDING_QUEUE_S * rate(end) / len(open_at(end))
            queue = min(max(share, chunk_bytes), WINDOW_BYTES)
            if injected[c] + size > min(acknowledged[c] + WINDOW_BYTES, left_end[c] + int(queue)):
                return
            waiting[end].append(("data", c, size, 0.0))
            injected[c] += size

    count, posted = defaultdict(int), []
    for k, (src, _, _) in enumerate(messages):
        posted.append((nodes[src], count[src], k))
        count[src] += 1
    ends = {k: end_byte for own in connections.values() for k, end_byte in own}
    for _, _, k in sorted(posted):
        inject(messages[k][:2], ends[k])
    complete()
    for node in sorted(set(nodes)):
        begin((0, node))
    while events:
        now, end = heapq.heappop(events)
        c, size = carried.pop(end)
        if end[0] == 0:
            left_end[c] += size
            inject(c, total[c])
        else:
            delivered[c] += size
            put((0, nodes[c[1]]), ("acknowledgement", c, size, 0.0))
        begin(end)
        complete()
    every = range(len(messages))
    return [received[k] for k in every], [sent[k] for k in every]


def test_a_single_pair_takes_the_time_of_the_postal_model():
    for size in (1, 4096, 10**6, 10**9):
        received, sent = _complete([(0, 1, size)], [0, 1], [1e10])
        assert received == pytest.approx([size / 1e10]) and sent.tolist() == [0]


def test_equal_messages_to_the_ranks_of_a_node_take_the_time_of_max_rate():
    """Equation (2) of Thune et al. 2023 for the last of them."""
    messages = [(4 + k, k, 10**6) for k in range(4)]
    received, _ = _complete(messages, [0, 0, 0, 0, 1, 2, 3, 4], [10e9, 16e9, 18e9, 20e9])
    assert received.max() == pytest.approx(4e6 / 20e9, rel=0.01)


def test_short_messages_arrive_in_the_order_of_posting():
    nodes = [0, 1, 2, 3]
    for order in ([1, 2, 3], [3, 1, 2]):
        received, _ = _complete([(0, dst, 10_000) for dst in order], nodes, [1e10])
        assert received == pytest.approx([1e-6, 2e-6, 3e-6])


def test_connections_share_what_long_messages_need_and_messages_of_one_follow_each_other():
    apart, _ = _complete([(0, 1, 10**7), (0, 2, 10**7)], [0, 1, 2], [1e10])
    assert apart == pytest.approx([2e-3, 2e-3], rel=0.01)
    together, _ = _complete([(0, 1, 10**7), (0, 1, 10**7)], [0, 1], [1e10])
    assert together == pytest.approx([1e-3, 2e-3], rel=0.01)


def test_a_send_is_complete_when_the_rest_is_buffered_and_one_that_waits_at_delivery():
    message = [(0, 1, 1 << 20)]
    delivered = (1 << 20) / 1e10
    for buffered, share in ((0, 1), (1 << 19, 0.5), (1 << 20, 0), (NEVER, 0)):
        received, sent = _complete(message, [0, 1], [1e10], [buffered])
        assert received == pytest.approx([delivered]) and sent == pytest.approx([share * delivered])


def test_a_message_of_no_bytes_is_complete_at_once():
    received, sent = _complete([(0, 1, 0), (0, 1, 10_000)], [0, 1], [1e10])
    assert received == pytest.approx([0, 1e-6]) and sent.tolist() == [0, 0]
    assert _complete([(0, 1, 0)], [0, 1], [1e10])[0].tolist() == [0]


def test_small_messages_before_a_long_one_take_only_their_bytes():
    received, _ = _complete([(0, 1, 1)] * 2000 + [(0, 1, 10**9)], [0, 1], [1e10])
    assert received[-1] == pytest.approx((2000 + 1e9) / 1e10)


def test_any_number_of_bytes_takes_a_bounded_number_of_chunks():
    received, _ = _complete([(0, 1, 10**15), (0, 2, 10**15)], [0, 1, 2], [1e10])
    assert received == pytest.approx([2e5, 2e5], rel=1e-3)


@pytest.mark.parametrize("total_bytes", [3 * 10**9, 10**10, 3 * 10**10, 3 * 10**13])
def test_a_ring_in_which_every_node_sends_and_receives_loses_nothing_whatever_a_chunk_is(total_bytes):
    ring = [(rank, (rank + 1) % 3, total_bytes // 3) for rank in range(3)]
    received, _ = _complete(ring, [0, 1, 2], [1e10])
    assert received == pytest.approx([total_bytes / 3 / 1e10] * 3, rel=0.02)


def test_queues_that_stop_before_the_end_are_reported():
    """A chunk larger than the window never leaves; `Queues` makes none."""
    one = [np.array([value], dtype=np.int64) for value in (0, 1, 10**6, 0)]
    connections = Connections(*one, np.array([0, 1]), 4096)
    with pytest.raises(RuntimeError, match="stopped"):
        connections.complete(np.array([[1e9]]), np.array([0.0]), 1000, SENDING_QUEUE_S)


def test_every_message_has_the_bandwidth_of_its_class():
    received, _ = _complete([(0, 1, 10_000, 0), (0, 1, 10_000, 1)], [0, 1], [[1e10, 1e9]], [NEVER, NEVER])
    assert received == pytest.approx([1e-6, 1.1e-5])


_exchanges = st.integers(2, 6).flatmap(
    lambda num: st.tuples(
        st.lists(st.integers(0, 3), min_size=num, max_size=num),
        st.lists(
            st.tuples(st.integers(0, num - 1), st.integers(0, num - 1), st.integers(1, 600_000)),
            min_size=1, max_size=12,
        ),
    )
)  # fmt: skip
# From a rate at which a connection gets a chunk of the sending queue to one at which it gets all it needs.
_tables = st.lists(st.floats(3e6, 1e9), min_size=6, max_size=6)


@settings(max_examples=40, deadline=None)
@given(_exchanges, _tables, st.sampled_from([0, 100_000, NEVER]))
def test_it_is_the_simulation_written_out_and_no_end_is_faster_than_its_capacity(
    exchange, bandwidth, buffered
):
    nodes, messages = exchange
    messages = [row for row in messages if nodes[row[0]] != nodes[row[1]]]
    if not messages:
        return
    received, sent = _complete(messages, nodes, bandwidth, [buffered])
    expected_received, expected_sent = _simulate(messages, nodes, bandwidth, buffered)
    assert received == pytest.approx(expected_received)
    assert sent == pytest.approx(expected_sent)
    for side in (0, 1):
        for node in set(nodes):
            volume = sum(row[2] for row in messages if nodes[row[side]] == node)
            last = max(
                (t for t, row in zip(received, messages, strict=True) if nodes[row[side]] == node), default=0
            )
            assert last >= volume / max(bandwidth) * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(_exchanges, _tables, st.sampled_from([0, 100_000, NEVER]))
def test_the_last_times_of_ranks_are_those_of_their_messages(exchange, bandwidth, buffered):
    nodes, messages = exchange
    messages = [row for row in messages if nodes[row[0]] != nodes[row[1]]]
    columns = np.array([(*row, 0) for row in messages], dtype=np.int64).reshape(-1, 4).T
    queues = Queues(*columns, np.array(nodes))
    capacities = np.array(bandwidth)[:, None], np.array([buffered], dtype=float)
    last_s = np.zeros((2, len(nodes)))
    for of, rank, time_s in zip(
        last_s, (columns[1], columns[0]), queues.completion_times_s(*capacities), strict=True
    ):
        np.maximum.at(of, rank, time_s)
    assert [row.tolist() for row in queues.last_times_s(*capacities)] == last_s.tolist()


def test_a_long_message_waits_for_its_acknowledgements_among_what_its_sender_receives():
    """Rank 0 of node 0 sends to node 1 alone, and five other nodes send to node 0 what fills its link."""
    nodes, rate = [0, 1, 2, 3, 4, 5, 6], 1e8
    alone = 4 * WINDOW_BYTES / rate
    received, _ = _complete([(0, 1, 4 * WINDOW_BYTES)], nodes, [rate] * 6)
    assert received == pytest.approx([alone])
    others = [(src, 0, 16 * WINDOW_BYTES) for src in range(2, 7)]
    received, _ = _complete([(0, 1, 4 * WINDOW_BYTES), *others], nodes, [rate] * 6)
    # Of four windows, each but the last waits for the five that are in the queue of node 0.
    assert 2.5 * 5 * alone / 4 < received[0] < 3.5 * 5 * alone / 4


def test_short_messages_of_many_connections_share_the_queue_of_their_node():
    """With so many connections that each has one chunk there, equal messages finish together."""
    receivers = 40
    received, _ = _complete(
        [(0, dst, 40_960) for dst in range(1, receivers + 1)], range(receivers + 1), [1e7] * 41
    )
    assert received.min() > 0.85 * received.max()
