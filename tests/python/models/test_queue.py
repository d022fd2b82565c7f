"""First-come-first-served queues against sums by hand, bounds, and a simulation written out."""

import heapq
from collections import defaultdict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.models.queue import WINDOW_BYTES, Queues

NEVER = np.inf


def _complete(messages, nodes, bandwidth, buffered=(NEVER,)):
    """(received, sent) of (src, dst, bytes[, class]) rows; `bandwidth` is [n-1] or [n-1][class]."""
    columns = np.array([(*row, 0)[:4] for row in messages], dtype=np.int64).T
    table = np.atleast_2d(np.array(bandwidth, dtype=float).T).T
    return Queues(*columns, np.array(nodes)).completion_times_s(table, np.array(buffered, dtype=float))


def _simulate(messages, nodes, bandwidth, chunk_bytes):
    """When each message is received, as the docstring says it; one class."""
    connections = defaultdict(list)
    for k, (src, dst, size) in enumerate(messages):
        connections[src, dst].append((k, size))
    total = {c: sum(size for _, size in own) for c, own in connections.items()}
    delivered, injected, received = dict.fromkeys(total, 0), dict.fromkeys(total, 0), {}
    waiting, carried, events, now = defaultdict(deque), {}, [], 0.0

    def active(end):
        side, node = end
        return len({
            c[side] for c in total if nodes[c[side]] == node and delivered[c] < total[c]
        })  # fmt: skip

    def begin(end):
        if end in carried or not waiting[end]:
            return
        c, size, arrived = waiting[end].popleft()
        until = max(arrived, now + size / bandwidth[active(end) - 1])
        carried[end] = c, size
        heapq.heappush(events, (until, end))
        if end[0] == 0:
            after = 1, nodes[c[1]]
            waiting[after].append((c, size, until))
            begin(after)

    def inject(c, until):
        while injected[c] < min(until, total[c]):
            size = min(chunk_bytes, min(until, total[c]) - injected[c])
            waiting[0, nodes[c[0]]].append((c, size, 0.0))
            injected[c] += size

    count, posted = defaultdict(int), []
    for k, (src, _, _) in enumerate(messages):
        posted.append((nodes[src], count[src], k))
        count[src] += 1
    written = dict.fromkeys(total, 0)
    for _, _, k in sorted(posted):
        src, dst, size = messages[k]
        written[src, dst] += size
        inject((src, dst), min(written[src, dst], WINDOW_BYTES))
    for node in sorted(set(nodes)):
        begin((0, node))
    while events:
        now, end = heapq.heappop(events)
        c, size = carried.pop(end)
        if end[0] == 1:
            delivered[c] += size
            arrived = 0
            for k, own in connections[c]:
                arrived += own
                if arrived <= delivered[c]:
                    received.setdefault(k, now)
            fits = delivered[c] + WINDOW_BYTES - injected[c]
            if delivered[c] < total[c] and fits >= min(chunk_bytes, total[c] - injected[c]):
                inject(c, delivered[c] + WINDOW_BYTES)
                begin((0, nodes[c[0]]))
        begin(end)
    return [received[k] for k in range(len(messages))]


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


def test_every_message_has_the_bandwidth_of_its_class():
    received, _ = _complete([(0, 1, 10_000, 0), (0, 1, 10_000, 1)], [0, 1], [[1e10, 1e9]], [NEVER, NEVER])
    assert received == pytest.approx([1e-6, 1.1e-5])


_exchanges = st.integers(2, 6).flatmap(
    lambda num: st.tuples(
        st.lists(st.integers(0, 3), min_size=num, max_size=num),
        st.lists(
            st.tuples(st.integers(0, num - 1), st.integers(0, num - 1), st.integers(1, 100_000)),
            min_size=1, max_size=12,
        ),
    )
)  # fmt: skip
_tables = st.lists(st.floats(1e8, 1e11), min_size=6, max_size=6)


@settings(max_examples=40, deadline=None)
@given(_exchanges, _tables)
def test_it_is_the_simulation_written_out_and_no_end_is_faster_than_its_capacity(exchange, bandwidth):
    nodes, messages = exchange
    messages = [row for row in messages if nodes[row[0]] != nodes[row[1]]]
    if not messages:
        return
    received, _ = _complete(messages, nodes, bandwidth)
    assert received == pytest.approx(_simulate(messages, nodes, bandwidth, 4096))
    for side in (0, 1):
        for node in set(nodes):
            volume = sum(row[2] for row in messages if nodes[row[side]] == node)
            last = max(
                (t for t, row in zip(received, messages, strict=True) if nodes[row[side]] == node), default=0
            )
            assert last >= volume / max(bandwidth) * (1 - 1e-9)
