"""Max-min fair sharing against sums by hand, the staircase it reduces to, and a simulation written out."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.exchange_models import SHARES
from earlybird.models import fair, staircase

UNLIMITED = 1e30


def _complete(messages, nodes, bandwidth, share="message", **options):
    """(M,) of (src, dst, bytes[, class]) rows; `bandwidth` is [n-1] or [n-1][class]."""
    columns = np.array([(*row, 0)[:4] for row in messages], dtype=np.int64).T
    table = np.atleast_2d(np.array(bandwidth, dtype=float).T).T[None]
    return fair.completion_times_s(*columns[:3], np.array(nodes), columns[3], table, share, **options)[0]


def _simulate(messages, nodes, bandwidth, share):
    """Every message alone, every end filled one after the other, as the docstring says it."""
    left = {k: float(size) for k, (_, _, size, _) in enumerate(messages) if size > 0}
    finished, now = [0.0] * len(messages), 0.0
    process_bytes = {}
    for _, dst, size, kind in messages:
        process_bytes.setdefault(dst, [0] * len(bandwidth[0]))[kind] += size
    while left:
        ends = {}
        for k in left:
            src, dst, _, _ = messages[k]
            ends.setdefault(("out", nodes[src]), []).append(k)
            ends.setdefault(("in", nodes[dst]), []).append(k)
        part = dict.fromkeys(left, 1.0)
        if share == "process":
            part = {k: 1 / sum(messages[j][1] == messages[k][1] for j in left) for k in left}
        room, weight = {}, {}
        for end, through in ends.items():
            n = len({messages[k][0 if end[0] == "out" else 1] for k in through})
            worth = {}
            for k in through:
                _, dst, _, kind = messages[k]
                if share == "process" and end[0] == "in":
                    volume = process_bytes[dst]
                    worth[k] = sum(b * v for b, v in zip(bandwidth[n - 1], volume, strict=True)) / sum(volume)
                else:
                    worth[k] = bandwidth[n - 1][kind]
            room[end] = sum(worth[k] * part[k] for k in through) / sum(part[k] for k in through)
            if end[0] == "in":
                weight |= {k: part[k] * worth[k] / room[end] for k in through}
        rate, rising = {}, dict(ends)
        while rising:
            level, full = min(
                (
                    (room[end] - sum(rate.get(k, 0) for k in through))
                    / sum(weight[k] for k in through if k not in rate),
                    end,
                )
                for end, through in rising.items()
            )
            rate |= {k: level * weight[k] for k in rising[full] if k not in rate}
            rising = {e: through for e, through in rising.items() if any(k not in rate for k in through)}
        step = min(left[k] / rate[k] for k in left)
        now += step
        done = [k for k in left if left[k] / rate[k] <= step * (1 + 1e-9)]
        for k in left:
            left[k] -= step * rate[k]
        for k in done:
            finished[k] = now
            del left[k]
    return finished


@st.composite
def _exchanges(draw, max_messages=14, classes=2):
    num_ranks = draw(st.integers(2, 8))
    nodes = draw(st.lists(st.integers(0, 3), min_size=num_ranks, max_size=num_ranks))
    nodes[0], nodes[1] = 0, 1
    rank = st.integers(0, num_ranks - 1)
    message = st.tuples(rank, rank, st.integers(0, 10**6), st.integers(0, classes - 1)).filter(
        lambda m: nodes[m[0]] != nodes[m[1]]
    )
    messages = draw(st.lists(message, min_size=1, max_size=max_messages))
    rates = st.lists(st.floats(1e8, 1e11), min_size=classes, max_size=classes)
    return messages, nodes, draw(st.lists(rates, min_size=num_ranks, max_size=num_ranks))


@settings(deadline=None)
@given(_exchanges(), st.sampled_from(SHARES))
def test_completions_equal_a_message_by_message_simulation(exchange, share):
    messages, nodes, bandwidth = exchange
    expected = pytest.approx(_simulate(messages, nodes, bandwidth, share), rel=1e-7)
    assert _complete(messages, nodes, bandwidth, share) == expected


@settings(deadline=None)
@given(_exchanges(max_messages=30), st.sampled_from(SHARES))
def test_parameter_sets_side_by_side_give_what_each_gives_alone(exchange, share):
    messages, nodes, bandwidth = exchange
    columns = np.array(messages, dtype=np.int64).T
    tables = np.array(bandwidth) * np.array([1.0, 0.3, 2.0])[:, None, None]
    group = np.array(nodes)
    together = fair.completion_times_s(*columns[:3], group, columns[3], tables, share)
    for row, alone in zip(together, tables, strict=True):
        assert row == pytest.approx(_complete(messages, nodes, alone, share), rel=1e-9)


@settings(deadline=None)
@given(_exchanges())
def test_by_process_it_is_the_staircase_where_senders_never_limit(exchange):
    messages, nodes, bandwidth = exchange
    _, dst, size, kind = np.array(messages, dtype=np.int64).T
    table = np.array(bandwidth)
    got = _complete(
        messages, nodes, bandwidth, "process", sending_bytes_per_s=np.full((1, *table.shape), UNLIMITED)
    )
    volume = np.zeros((len(nodes), table.shape[1]), dtype=np.int64)
    np.add.at(volume, (dst, kind), size)
    receive_s = np.zeros(len(nodes))
    for node in set(nodes):
        members = np.flatnonzero((np.array(nodes) == node) & volume.any(axis=1))
        if len(members):
            receive_s[members] = staircase.receive_times_s(volume[members], table[: len(members)])
    last_s = np.zeros(len(nodes))
    np.maximum.at(last_s, dst, got)
    assert last_s == pytest.approx(receive_s, rel=1e-7)


def test_the_messages_of_a_lone_receiver_complete_as_in_equation_9():
    sizes = np.array([10_000, 40_000, 40_000, 70_000])
    messages = [(k + 1, 0, size) for k, size in enumerate(sizes)]
    numbers, fractions = staircase.completion_fractions(np.zeros(4, dtype=int), sizes)
    expected = fractions[np.argsort(numbers)] * sizes.sum() / 12e9
    for share in SHARES:
        assert _complete(messages, [0, 1, 2, 3, 4], [12e9], share) == pytest.approx(expected)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 1)), min_size=1, max_size=8),
    st.lists(st.tuples(st.floats(1e8, 1e11), st.floats(1e8, 1e11)), min_size=8, max_size=8),
)
def test_by_message_it_is_the_staircase_where_every_receiver_has_one_and_senders_never_limit(rows, bandwidth):
    messages = [(0, k + 1, size, kind) for k, (size, kind) in enumerate(rows)]
    volume = np.zeros((len(rows), 2), dtype=np.int64)
    volume[np.arange(len(rows)), [kind for _, kind in rows]] = [size for size, _ in rows]
    got = _complete(
        messages, [0] + [1] * len(rows), bandwidth, sending_bytes_per_s=np.full((1, 8, 2), UNLIMITED)
    )
    expected = staircase.receive_times_s(volume, np.array(bandwidth)[: len(rows)])
    assert got == pytest.approx(expected, rel=1e-7)


def test_a_sender_to_two_nodes_is_the_bottleneck():
    times_s = _complete([(0, 1, 100_000), (0, 2, 300_000)], [0, 1, 2], [10e9])
    # 5 GB/s each for 20 us, then the 200 kB left at 10 GB/s.
    assert times_s == pytest.approx([20e-6, 40e-6], rel=1e-9)


def test_what_a_full_end_leaves_unused_goes_to_others():
    messages = [(0, 3, 50_000), (1, 3, 50_000), (2, 3, 50_000), (0, 4, 100_000)]
    times_s = _complete(messages, [0, 1, 2, 3, 4], [12e9])
    # A third of 12 GB/s into rank 3 each; rank 0's node has 8 GB/s left for rank 4.
    assert times_s == pytest.approx([12.5e-6] * 4, rel=1e-9)


def test_the_capacity_of_an_end_follows_the_processes_still_busy_there():
    # Two senders of node 0 have 16 GB/s together, 8 each; when the first is done, the second has 10.
    times_s = _complete([(0, 2, 80_000), (1, 3, 180_000)], [0, 0, 1, 2], [10e9, 16e9])
    assert times_s == pytest.approx([10e-6, 20e-6], rel=1e-9)


def test_shares_go_per_message_or_per_receiving_process():
    # Rank 1 receives two messages, rank 2 one, from nodes of their own, into one node of 12 GB/s.
    messages = [(0, 1, 40_000), (3, 1, 40_000), (4, 2, 40_000)]
    nodes, bandwidth = [0, 1, 1, 2, 3], [12e9, 12e9]
    assert _complete(messages, nodes, bandwidth) == pytest.approx([10e-6] * 3)
    # 3 GB/s for each message of rank 1, 6 for rank 2 until 6.67 us; then 6 each for rank 1.
    by_process = _complete(messages, nodes, bandwidth, "process")
    assert by_process == pytest.approx([10e-6, 10e-6, 20e-6 / 3])


def test_empty_messages_are_complete_at_once_and_do_not_compete():
    times_s = _complete([(0, 1, 0), (0, 2, 100_000), (2, 1, 0)], [0, 1, 2], [10e9])
    assert times_s == pytest.approx([0, 10e-6, 0])
    assert _complete([(0, 1, 0)], [0, 1], [10e9]).tolist() == [0]


@settings(deadline=None)
@given(_exchanges(), st.randoms(), st.sampled_from(SHARES))
def test_a_completion_goes_with_its_message_not_its_place(exchange, random, share):
    messages, nodes, bandwidth = exchange
    order = list(range(len(messages)))
    random.shuffle(order)
    shuffled = _complete([messages[k] for k in order], nodes, bandwidth, share)
    assert shuffled == pytest.approx(_complete(messages, nodes, bandwidth, share)[order], rel=1e-9)


def _mesh_like(seed, num_nodes=12, per_node=4, num_messages=1500):
    random = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(num_nodes), per_node)
    src, dst = random.integers(0, len(nodes), (2, num_messages))
    apart = nodes[src] != nodes[dst]
    size = random.lognormal(9, 1.5, num_messages).astype(np.int64)
    return (src[apart], dst[apart], size[apart], nodes, np.zeros(apart.sum(), dtype=np.int64))


def test_a_message_completed_in_the_step_of_another_keeps_its_rate():
    messages, nodes = [(0, 1, 500), (0, 1, 1000), (0, 1, 1010)], [0, 1]
    assert _complete(messages, nodes, [1000.0]) == pytest.approx([1.5, 2.5, 2.51])
    # The third needs 1.02 s more at the 500 B/s of two, within the tenth of 2.5 s after the second.
    together_s = _complete(messages, nodes, [1000.0], batch_fraction=0.1)
    assert together_s == pytest.approx([1.5, 2.5, 2.52])


@pytest.mark.parametrize("bandwidth", [np.inf, 0.0, np.nan])
def test_capacities_that_are_no_numbers_end(bandwidth):
    """`times` refuses them; a caller in C may have them."""
    assert len(_complete([(0, 1, 500), (0, 1, 1000), (1, 0, 5)], [0, 1], [bandwidth])) == 3


@pytest.mark.parametrize("share", SHARES)
def test_completions_taken_together_change_times_by_little(share):
    exchange = _mesh_like(1)
    bandwidth = np.array([10e9, 16e9, 18e9, 20e9])[None, :, None]
    exact = fair.completion_times_s(*exchange, bandwidth, share)
    together = fair.completion_times_s(*exchange, bandwidth, share, batch_fraction=1e-3)
    assert (together != exact).any()
    assert together == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("step", [0.0, 5e-3])
def test_the_last_times_of_ranks_are_those_of_their_messages(share, step):
    src, dst, size, nodes, _ = _mesh_like(3)
    kind = (size > np.median(size)).astype(int)
    table, waits = np.array([[10e9, 5e9], [16e9, 6e9], [18e9, 7e9], [20e9, 8e9]]), np.array([False, True])
    sharing = fair.Sharing(src, dst, size, nodes, kind, 2, share)
    times_s = sharing.completion_times_s(table, batch_fraction=step)
    received_s, sent_s = np.zeros(len(nodes)), np.zeros(len(nodes))
    np.maximum.at(received_s, dst, times_s)
    np.maximum.at(sent_s, src, np.where(waits[kind], times_s, 0))
    of_ranks = sharing.last_times_s(table, waits, step)
    assert [row.tolist() for row in of_ranks] == [received_s.tolist(), sent_s.tolist()]


@pytest.mark.parametrize("share", SHARES)
def test_no_end_moves_more_than_its_capacity(share):
    src, dst, size, nodes, kind = _mesh_like(2)
    bandwidth = np.array([10e9, 16e9, 18e9, 20e9])
    (times_s,) = fair.completion_times_s(src, dst, size, nodes, kind, bandwidth[None, :, None], share)
    for end in (src, dst):
        for node in range(12):
            here = nodes[end] == node
            order = np.argsort(times_s[here])
            moved = np.cumsum(size[here][order])
            assert (moved <= 20e9 * times_s[here][order] * (1 + 1e-9)).all()
    # Something is always full, so no time is wasted either: the last is done before the volumes at full rate.
    assert times_s.max() <= size.sum() / 10e9


@pytest.mark.parametrize("share", SHARES)
def test_a_second_thread_changes_no_bit(share):
    """Nodes of one rank, with more bundles than those from which on two threads share a step."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    num, rng = 512, np.random.default_rng(5)
    src, dst = np.divmod(np.flatnonzero(~np.eye(num, dtype=bool).reshape(-1)), num)
    size = np.maximum(rng.lognormal(8, 1, len(src)), 1).astype(np.int64)
    sharing = fair.Sharing(src, dst, size, np.arange(num), (size > 3000).astype(int), 2, share)
    assert sharing.work > 1 << 17  # MIN_HALVED of fair.c
    table = np.array([[10e9, 5e9]])
    by_two_s = sharing.completion_times_s(table, batch_fraction=0.05)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        by_one_s = sharing.completion_times_s(table, batch_fraction=0.05)
    finally:
        os.sched_setaffinity(0, allowed)
    assert by_two_s.tolist() == by_one_s.tolist()
