"""Simulated programs against closed forms, the models of exchanges, and a plain simulation."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from earlybird.models import fair, staircase
from earlybird.models.program import Deadlock, Program, Semantics, simulate
from tests.python.models.program_texts import PlainSimulation, Written, network

BW, L, B = 1e9, 3e-6, 500_000
H = B / BW
EXACT = {"rel": 1e-9, "abs": 1e-15}


def _end_s(written, on):
    return simulate(written.program(), on).end_of_run_s


def _approx(value):
    return pytest.approx(value, **EXACT)


@pytest.mark.parametrize("waits", [False, True], ids=["eager", "rendezvous"])
@pytest.mark.parametrize("late_s", [0.0, 7e-3])
def test_ring(waits, late_s):
    """A token goes around; rank 3 computes before it receives."""
    ranks, o, r = 8, 0.4e-6, 0.9e-6
    ring = Written(range(ranks))
    tokens = [ring.message(B) for _ in range(ranks)]
    for rank in range(ranks):
        if rank == 3:
            ring.add(rank, "compute", late_s)
        if rank:
            ring.receive(rank, tokens[rank - 1])
        ring.send(rank, tokens[rank], o)
        if not rank:
            ring.receive(rank, tokens[-1])
    hop_s = o + H + L + r
    reaches_s = max(3 * hop_s, late_s + (o * 0 + H + L + r if waits else r))
    on = network(range(ranks), BW, L, r, waits=waits)
    assert _end_s(ring, on) == _approx(reaches_s + (ranks - 3) * hop_s)


def test_pipeline_of_segments():
    """Each rank passes on what it has received; a sender waits until a segment has left."""
    ranks, segments = 5, 12
    chain = Written(range(ranks))
    of_hop = [[chain.message(B) for _ in range(segments)] for _ in range(ranks - 1)]
    for rank in range(ranks):
        receives = [chain.add(rank, "receive", m, 0.0) for m in (of_hop[rank - 1] if rank else [])]
        for k in range(segments):
            if rank:
                chain.add(rank, "wait", [receives[k]], 0.0)
            if rank < ranks - 1:
                chain.send(rank, of_hop[rank][k])
    on = network(range(ranks), BW, L, waits=True)
    assert _end_s(chain, on) == _approx((ranks - 2 + segments) * H + (ranks - 1) * L)


@pytest.mark.parametrize("late_s", [0.0, 0.25])
def test_wavefront(late_s):
    """Sweeps over a grid from one corner; the rank in the middle of the first row is late."""
    columns, rows, sweeps, work_s = 5, 4, 3, 1e-2
    front = Written(range(columns * rows))
    for _ in range(sweeps):
        right, down = ([front.message(0) for _ in range(columns * rows)] for _ in range(2))
        for y in range(rows):
            for x in range(columns):
                rank = y * columns + x
                if x:
                    front.receive(rank, right[rank - 1])
                if y:
                    front.receive(rank, down[rank - columns])
                front.add(rank, "compute", work_s)
                if x < columns - 1:
                    front.send(rank, right[rank])
                if y < rows - 1:
                    front.send(rank, down[rank])
    # The borders send nowhere, so their messages are not part of the program.
    program = _without_unused_messages(front)
    on = network(range(columns * rows), BW, L)
    steps = columns + rows - 2
    assert simulate(program, on).end_of_run_s == _approx((steps + sweeps) * work_s + steps * L)
    delayed = Written(front.ranks)
    delayed.threads, delayed.messages = [list(rows) for rows in front.threads], front.messages
    delayed.threads[2] = [("compute", late_s), *[_shifted(row, 1) for row in front.threads[2]]]
    later_s = max(late_s - 2 * (work_s + L), 0.0)
    assert simulate(_without_unused_messages(delayed), on).end_of_run_s == _approx(
        (steps + sweeps) * work_s + steps * L + later_s
    )


def _shifted(row, by):
    return (row[0], [number + by for number in row[1]], *row[2:]) if row[0] == "wait" else row


def _without_unused_messages(written):
    used = sorted({row[1] for rows in written.threads for row in rows if row[0] in ("send", "receive")})
    number = {m: k for k, m in enumerate(used)}
    kept = Written(written.ranks)
    kept.messages = [written.messages[m] for m in used]
    kept.threads = [
        [(row[0], number[row[1]], *row[2:]) if row[0] in ("send", "receive") else row for row in rows]
        for rows in written.threads
    ]
    return kept.program()


@pytest.mark.parametrize("waits", [False, True], ids=["eager", "rendezvous"])
@pytest.mark.parametrize("late_s", [0.0, 0.03])
def test_halo(waits, late_s):
    """Every rank sends to both neighbours in a ring, so each end of a node has two messages."""
    ranks = 6
    halo = Written(range(ranks))
    out = {(rank, side): halo.message(B) for rank in range(ranks) for side in (-1, 1)}
    for rank in range(ranks):
        if rank == 2:
            halo.add(rank, "compute", late_s)
        requests = [halo.add(rank, "receive", out[(rank + side) % ranks, -side], 0.0) for side in (-1, 1)]
        requests += [halo.add(rank, "send", out[rank, side], 0.0) for side in (-1, 1)]
        halo.add(rank, "wait", requests, 0.0)
    on = network(range(ranks), BW, L, waits=waits)
    assert _end_s(halo, on) == _approx(late_s + 2 * H + L)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("waits", [False, True], ids=["eager", "rendezvous"])
def test_fan_in(waits, inside):
    """N messages to one rank share its end; each occupies its processor."""
    num, r, late_s = 9, 2e-6, 4e-3
    fan = Written(range(num + 1))
    messages = [fan.message(B) for _ in range(num)]
    fan.add(0, "compute", late_s)
    fan.add(0, "wait", [fan.add(0, "receive", m, 0.0) for m in messages], 0.0)
    for k, m in enumerate(messages):
        fan.send(k + 1, m)
    on = network([0] * (num + 1) if inside else range(num + 1), BW, L, r, between=not inside, waits=waits)
    arrives_s = num * H + L
    expected_s = late_s + arrives_s if waits else max(late_s, arrives_s)
    assert _end_s(fan, on) == _approx(expected_s + num * r)


def test_messages_that_begin_at_other_times_share_while_both_move():
    two = Written(range(3))
    messages = [two.message(B), two.message(B)]
    two.add(1, "compute", H / 2)
    for rank in (0, 1):
        two.send(rank, messages[rank])
        two.receive(2, messages[rank])
    run = simulate(two.program(), network(range(3), BW))
    assert run.left_s == pytest.approx([1.5 * H, 2 * H], **EXACT)


@pytest.mark.parametrize("ranks", [2, 5, 8, 13])
def test_binomial_trees(ranks):
    """A broadcast whose senders wait for each message, and a reduction of messages without bytes."""
    steps = (ranks - 1).bit_length()
    bcast, reduce = Written(range(ranks)), Written(range(ranks))
    ways = {(rank, rank + 2**k): (bcast.message(B), reduce.message(0))
            for k in range(steps) for rank in range(2**k) if rank + 2**k < ranks}  # fmt: skip
    for rank in range(ranks):
        for parent, child in ways:
            if child == rank:
                bcast.receive(rank, ways[parent, child][0])
        for parent, child in ways:
            if parent == rank:
                bcast.send(rank, ways[parent, child][0])
        for parent, child in reversed(ways):
            if parent == rank:
                reduce.receive(rank, ways[parent, child][1])
            if child == rank:
                reduce.send(rank, ways[parent, child][1])
    # A rank receives in the step of its highest bit, over a hop for each of its bits.
    expected_s = max(rank.bit_length() * H + bin(rank).count("1") * L for rank in range(1, ranks))
    assert _end_s(bcast, network(range(ranks), BW, L, waits=True)) == _approx(expected_s)
    most_hops = max(bin(rank).count("1") for rank in range(ranks))
    assert _end_s(reduce, network(range(ranks), BW, L)) == _approx(most_hops * L)


def test_send_is_complete_at_once_or_when_the_last_byte_has_left():
    for waits, sent_s in ((False, 1e-6), (True, 5e-3 + H)):
        pair = Written(range(2))
        m = pair.message(B)
        pair.send(0, m, 1e-6)
        pair.add(1, "compute", 5e-3)
        pair.receive(1, m)
        run = simulate(pair.program(), network(range(2), BW, L, waits=waits))
        assert run.end_s[1] == _approx(sent_s)


def test_sender_of_buffered_data_waits_until_its_receive_is_posted():
    pair = Written(range(2))
    m = pair.message(B)
    pair.send(0, m)
    pair.add(1, "compute", 5 * H)
    pair.receive(1, m)
    run = simulate(pair.program(), network(range(2), BW, L, awaits=True))
    assert run.end_s[1] == _approx(5 * H)  # the wait of rank 0
    assert run.end_s[-1] == _approx(6 * H + L)


@pytest.mark.parametrize("starts_inside", [False, True])
def test_rendezvous_needs_its_receiver_inside_the_mpi(starts_inside):
    """The receiver posts, computes with a poll in between, and waits."""
    work_s = 3e-3
    pair = Written(range(2))
    m = pair.message(B)
    pair.add(0, "compute", 1e-3)
    pair.send(0, m)
    request = pair.add(1, "receive", m, 0.0)
    pair.add(1, "compute", work_s)
    pair.add(1, "wait", [], 0.0)
    pair.add(1, "compute", work_s)
    pair.add(1, "wait", [request], 0.0)
    run = simulate(pair.program(), network(range(2), BW, L, waits=True, inside=starts_inside))
    assert run.begun_s[0] == _approx(work_s if starts_inside else 1e-3)
    assert run.end_of_run_s == _approx(2 * work_s)


@pytest.mark.parametrize(
    ("semantics", "ends"),
    [
        (Semantics.ALL_WAIT, [5, 5, 5, 5]), (Semantics.WAIT_FOR_ROOT, [3, 5, 3, 4]),
        (Semantics.ROOT_WAITS, [1, 5, 5, 4]), (Semantics.PREFIX, [1, 5, 5, 5]),
    ],
)  # fmt: skip
def test_collectives_wait_for_whom_they_must(semantics, ends):
    """The root, rank 2, comes after 3 s; what is entered costs 10 s."""
    group = Written(range(4))
    k = group.collective(semantics, root=2)
    for rank, late_s in enumerate((1, 5, 3, 4)):
        group.add(rank, "compute", float(late_s))
        group.add(rank, "wait", [group.add(rank, "enter", k, 10.0)], 0.0)
    assert simulate(group.program(), network(range(4), BW)).end_s[2::3] == pytest.approx(
        [10.0 + end_s for end_s in ends]
    )


def test_wait_any_ends_with_the_first_request():
    first = Written(range(3))
    messages = [first.message(4 * B), first.message(B)]
    first.add(1, "compute", H)
    for rank in (0, 1):
        first.send(rank, messages[rank])
    requests = [first.add(2, "receive", m, 0.0) for m in messages]
    first.add(2, "any", requests, 0.0)
    first.add(2, "wait", requests, 0.0)
    run = simulate(first.program(), network(range(3), BW))
    begin = len(first.threads[0]) + len(first.threads[1])
    assert run.end_s[begin + 2 :] == pytest.approx([3 * H, 5 * H], **EXACT)
    assert run.last_request[begin + 2 :].tolist() == [begin + 1, begin]


def _all_at_once(rng, ranks, nodes, messages, classes):
    """A program that posts all messages at 0, and the arrays of the exchange."""
    node = np.sort(rng.integers(0, nodes, ranks))
    written, rows = Written(range(ranks)), []
    pairs = [(src, dst) for src in range(ranks) for dst in range(ranks) if src != dst]
    for src, dst in rng.permutation(pairs)[:messages].tolist():
        rows.append((src, dst, int(rng.integers(1, 10**6)), int(rng.integers(classes))))
    for src, dst, size, kind in rows:
        m = written.message(size, kind)
        written.add(src, "send", m, 0.0)
        written.add(dst, "receive", m, 0.0)
    return written.program(), node, np.array(rows).T


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_messages_that_begin_together_are_those_of_fair(seed):
    rng = np.random.default_rng(seed)
    ranks, classes = int(rng.integers(2, 12)), int(rng.integers(1, 3))
    program, node, (src, dst, size, kind) = _all_at_once(
        rng, ranks, int(rng.integers(1, 6)), int(rng.integers(1, 40)), classes
    )
    table = rng.uniform(1e8, 1e9, (ranks, classes))
    # Here also messages inside a node share its ends, so the nodes of `fair` are those of the engine.
    left_s = simulate(program, network(node, table, between=True)).left_s
    expected_s = fair.completion_times_s(src, dst, size, node, kind, table[None])[0]
    assert left_s == pytest.approx(expected_s, rel=1e-9)


@pytest.fixture
def two_to_one_rank():
    """Two messages at once to rank 1, the second smaller, and one to rank 2."""
    sent = Written(range(3))
    for rank, size in ((1, 2 * B), (1, B), (2, B)):
        m = sent.message(size)
        sent.add(0, "send", m, 0.0)
        sent.add(rank, "receive", m, 0.0)
    return sent.program()


def test_messages_of_a_pair_follow_each_other_inside_a_node(two_to_one_rank):
    """With BW(2) for both receivers."""
    run = simulate(two_to_one_rank, network([0] * 3, [[BW], [2 * BW]], between=False))
    assert run.left_s == pytest.approx([2 * H, 3 * H, H], **EXACT)


def test_messages_of_a_pair_follow_each_other_between_nodes(two_to_one_rank):
    """The pairs share what leaves, not the messages."""
    left_s = simulate(two_to_one_rank, network(range(3), BW)).left_s
    assert left_s == pytest.approx([3 * H, 4 * H, 2 * H], **EXACT)


def test_message_without_data_does_not_overtake():
    sent = Written(range(2))
    for size in (2 * B, 0):
        m = sent.message(size)
        sent.add(0, "send", m, 0.0)
        sent.add(1, "receive", m, 0.0)
    assert simulate(sent.program(), network(range(2), BW)).left_s == pytest.approx([2 * H, 2 * H], **EXACT)


@pytest.mark.parametrize("late", [0, 1])
def test_messages_that_wait_for_a_rank_to_be_inside_go_in_their_order(late):
    """Rank `late` posts both and computes; the other one posts both and waits. Then the first one moves while
    rank 1, which has it, computes."""
    pair = Written(range(2))
    messages = [pair.message(B), pair.message(B)]
    requests = {}
    for rank, kind in enumerate(("send", "receive")):
        requests[rank] = [pair.add(rank, kind, m, 0.0) for m in messages]
        if rank == late:
            pair.add(rank, "compute", 5 * H)
        for request in requests[rank]:
            pair.add(rank, "wait", [request], 0.0)
    run = simulate(pair.program(), network(range(2), BW, waits=True, inside=True))
    assert run.left_s[0] < run.left_s[1]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_receivers_of_a_group_are_those_of_the_staircase(seed):
    rng = np.random.default_rng(seed)
    ranks = int(rng.integers(2, 12))
    program, node, (_, dst, size, _) = _all_at_once(rng, ranks, 3, int(rng.integers(1, 40)), 1)
    table = np.sort(rng.uniform(1e8, 1e9, ranks))
    run = simulate(program, network([0] * ranks, table[:, None], between=False, group=node))
    volume = np.bincount(dst, size, ranks).astype(int)
    receivers = np.flatnonzero(volume)
    first = np.append(np.flatnonzero(np.diff(node[receivers], prepend=-1)), len(receivers))
    expected_s = staircase.group_times_s(first, volume[receivers, None], table[None, :, None])[0]
    last_s = np.zeros(ranks)
    np.maximum.at(last_s, dst, run.left_s)
    assert last_s[receivers] == pytest.approx(expected_s, rel=1e-9)


def _random_program(rng):
    """Threads that send, receive, compute and wait, so that no wait is for what comes after it."""
    num_ranks, classes = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    ranks = sorted([*range(num_ranks), *rng.integers(0, num_ranks, rng.integers(0, 3)).tolist()])
    written = Written(ranks)
    open_requests = [[] for _ in ranks]

    def seconds(scale=1e-3):
        return float(rng.uniform(0, scale)) * bool(rng.random() < 0.7)

    for _ in range(int(rng.integers(5, 40))):
        t = int(rng.integers(len(ranks)))
        action = rng.random()
        if action < 0.5:
            other = int(rng.integers(len(ranks)))
            m = written.message(
                int(rng.integers(0, 10**6)) * bool(rng.random() < 0.9), int(rng.integers(classes))
            )
            open_requests[t].append(written.add(t, "send", m, seconds(1e-5)))
            open_requests[other].append(written.add(other, "receive", m, seconds(1e-5)))
        elif action < 0.6:
            k = written.collective(Semantics(int(rng.integers(4))), int(rng.integers(num_ranks)))
            for member in [ranks.index(rank) for rank in range(num_ranks)]:
                open_requests[member].append(written.add(member, "enter", k, seconds(1e-4)))
        elif action < 0.8:
            written.add(t, "compute", seconds())
        elif open_requests[t] and action < 0.95:
            chosen = rng.permutation(open_requests[t])[: rng.integers(1, 5)].tolist()
            written.add(t, "wait", chosen, seconds(1e-6))
            open_requests[t] = [k for k in open_requests[t] if k not in chosen]
        elif open_requests[t]:
            written.add(t, "any", list(open_requests[t]), 0.0)
        else:
            written.add(t, "wait", [], 0.0)
    for t, requests in enumerate(open_requests):
        written.add(t, "wait", requests, 0.0)
    node = np.sort(rng.integers(0, 3, num_ranks))
    group = 2 * node + rng.integers(0, 2, num_ranks)
    is_between = rng.random(classes) < 0.5
    return written.program(), network(
        node, rng.uniform(1e8, 1e9, (int(rng.integers(1, 5)), classes)), rng.uniform(0, 1e-4, classes),
        rng.uniform(0, 1e-4, classes), is_between, rng.random(classes) < 0.5,
        (rng.random(classes) < 0.5) & (rng.random() < 0.5), group, rng.random(classes) < 0.3,
    )  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_programs_take_the_time_of_the_plain_simulation(seed):
    program, on = _random_program(np.random.default_rng(seed))
    run = simulate(program, on)
    plain = PlainSimulation(program, on)
    end_s = plain.run()
    # Which of two messages of a pair goes first is open if both are ready at the same moment.
    pairs = [
        (plain.rank_of[plain.op_of[1, m]], plain.rank_of[plain.op_of[2, m]], begun_s)
        for m, begun_s in enumerate(run.begun_s.tolist())
    ]
    assume(len(set(pairs)) == len(pairs))
    assert run.end_s == pytest.approx(end_s, rel=1e-9)


def test_deadlock_names_an_operation():
    pair = Written(range(2))
    a, b = pair.message(B), pair.message(B)
    for rank, (out, into) in enumerate(((a, b), (b, a))):
        pair.send(rank, out)
        pair.receive(rank, into)
    with pytest.raises(Deadlock) as caught:
        simulate(pair.program(), network(range(2), BW, waits=True))
    assert caught.value.operation == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_wrong_arrays_are_refused_or_simulated_but_never_read_outside(seed):
    """One value of a program is replaced by any other."""
    rng = np.random.default_rng(seed)
    program, on = _random_program(rng)
    names = [field.name for field in fields(Program) if field.name != "num_ranks"]
    name = str(rng.choice(names))
    column = np.array(getattr(program, name))
    if len(column):
        wrong = rng.choice([-1, 0, 1, 2, 5, 7, 10**3, 2**31, 2**40, -(2**40)])
        column[rng.integers(len(column))] = wrong % 256 if name in ("operation", "semantics") else wrong
    try:
        simulate(replace(program, **{name: column}), on)
    except (ValueError, Deadlock) as error:
        assert str(error)
