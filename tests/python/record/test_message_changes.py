"""What-ifs that change messages, against closed forms: programs written as operations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.profile import Profile
from earlybird.models.program import Operation, Semantics
from earlybird.models.schedules import POWERS_ONLY, known_algorithms, schedule
from earlybird.record import simulation
from earlybird.record.conditions import conditions_as_recorded, simulate_run
from earlybird.record.message_changes import aggregated, by_messages, parse_algorithm, partitioned
from earlybird.record.operations import AS_PROTOCOL, Operations
from earlybird.record.rewriting import Rewriting
from tests.python.advise.test_collective import form, profile_of
from tests.python.models.program_texts import Written
from tests.python.record.test_simulated_traces import random_program
from tests.python.record.test_simulation import BANDWIDTH, OVERHEAD_S, level

EXACT = {"rel": 1e-9}
HOP_S = 3 * OVERHEAD_S


def operations_of(written, collective=(), size_bytes=0, is_blocking=False):
    """The operations of a written program whose calls are all of one site."""
    program = written.program()
    num = len(program.operation)
    sends = np.flatnonzero(program.operation == Operation.SEND)
    receives = np.flatnonzero(program.operation == Operation.RECEIVE)
    rank = np.repeat(program.thread_rank, np.diff(program.first))
    src, dst = np.zeros((2, len(program.message_bytes)), int)
    src[program.argument[sends]], dst[program.argument[receives]] = rank[sends], rank[receives]
    return Operations(
        program.num_ranks, 1.0, program.thread_rank, program.first, program.operation, program.argument,
        program.operation_s, program.set_first, program.set_requests, np.zeros(num, int),
        (("MPI_Send", "main"),), np.zeros(1), src, dst, program.message_bytes,
        np.full(len(src), AS_PROTOCOL), np.full(len(src), -1), np.full(len(src), is_blocking),
        program.semantics, program.root, {}, num, 0,
        tuple(collective) or ("MPI_Barrier",) * len(program.semantics),
        np.full(len(program.semantics), size_bytes), np.zeros(len(program.semantics), bool),
        event=np.full(num, -1), recorded_end_s=np.zeros(num),
    )  # fmt: skip


# Two nodes or more of one rank, so that messages do not share what receivers of a socket have.
PROFILE = Profile({"inter_node": level("inter_node")}, "p")


def end_s(operations, progress=False):
    layout = parse_layout(f"{operations.size}x1x1", "core")
    given = conditions_as_recorded(operations, PROFILE, layout)
    if progress:
        given = simulation.progress_change().apply(given)
    return simulate_run(operations, given)[1]


def collective(ranks, late, semantics=Semantics.ALL_WAIT, call="MPI_Allreduce", size_bytes=0, root=0):
    """One collective to which rank `late[0]` comes `late[1]` seconds after the others; it costs 5 s."""
    written = Written(range(ranks))
    k = written.collective(semantics, root)
    for rank in range(ranks):
        written.add(rank, "compute", late[1] if rank == late[0] else 0.0)
        written.add(rank, "wait", [written.add(rank, "enter", k, 5.0)], 0.0)
    return operations_of(written, [call], size_bytes)


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("late_s", [0.0, 0.02])
def test_allreduce_by_a_ring(ranks, late_s):
    """2 (P - 1) steps of a P-th of the bytes, after the last rank; all steps wait for the slowest."""
    size = 600_000 * ranks
    of = by_messages(collective(ranks, (0, late_s), size_bytes=size), "allreduce", "ring")
    # Each rank sends, and then completes what it receives.
    step_s = OVERHEAD_S + size / ranks / BANDWIDTH + 2 * OVERHEAD_S
    assert end_s(of).end_of_run_s == pytest.approx(late_s + 2 * (ranks - 1) * step_s, **EXACT)


def test_late_rank_delays_only_those_below_it_in_a_broadcast():
    """Ranks 0..7 by binomial halving: 0 sends to 4, 2 and 1, rank 4 to 6 and 5, and so on."""
    late_s = 1.0
    of = by_messages(collective(8, (4, late_s), Semantics.WAIT_FOR_ROOT, "MPI_Bcast", 8), "bcast", "binomial")
    run = end_s(of)
    ends_s = [run.end_s[of.first[rank + 1] - 1] for rank in range(8)]
    assert all(ends_s[rank] < 1e-3 for rank in (0, 1, 2, 3))
    assert all(ends_s[rank] >= late_s for rank in (4, 5, 6, 7))
    # Rank 4 completes what has arrived, and sends to 6; that one to 7.
    assert ends_s[7] == pytest.approx(late_s + OVERHEAD_S + 2 * (HOP_S + 8 / BANDWIDTH), **EXACT)
    assert sum(of.bytes) == 7 * 8


def test_forms_of_the_profile_say_what_collectives_cost_on_another_layout():
    """A broadcast, hop by hop: 7 of them between 8 nodes, or within one at a tenth of the cost."""
    hop = {"alpha_s": 2e-5, "beta_s_per_byte": 8e-9}
    inside = {name: value / 10 for name, value in hop.items()}
    of_default = form(
        "default", "linear", parameters={"protocols": [{"inter_node": hop, "intra_socket": inside}]}
    )
    profile = replace(PROFILE, forms=profile_of([of_default]).forms)
    layouts = [parse_layout(text, "core") for text in ("8x1x1", "1x1x8")]
    for call, costs_s in (("MPI_Bcast", 0.5), ("MPI_Barrier", 5.0)):
        of = collective(8, (0, 0.1), call=call, size_bytes=1000)
        given = conditions_as_recorded(of, profile, layouts[0])
        assert simulate_run(of, given)[1].end_of_run_s == pytest.approx(0.1 + 5.0, **EXACT)
        found = simulation.predict_program(of, given, [simulation.layout_change(layouts[1], "1x1x8")])
        assert found.simulated_s == pytest.approx(0.1 + costs_s, **EXACT)
        kept = [note for note in found.notes if "keep the recorded cost" in note]
        assert bool(kept) == (call == "MPI_Barrier")
        back = [simulation.layout_change(layout, "") for layout in layouts[::-1]]
        assert simulation.predict_program(of, given, back).simulated_s == pytest.approx(5.1, **EXACT)


ALL_OF = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter", "barrier")


@pytest.mark.parametrize("operation", ALL_OF)
def test_every_rank_gets_what_it_needs(operation):
    """Data of every rank that must reach another one has a way there through the messages, step by step."""
    size = 1200
    for algorithm in known_algorithms(operation):
        for ranks in (2, 4, 8) if (operation, algorithm) in POWERS_ONLY else (2, 3, 4, 7, 8):
            for root in (0, ranks - 1):
                messages = schedule(operation, algorithm, ranks, root, size)
                has = np.eye(ranks, dtype=bool)
                for step in np.unique(messages.step):
                    here = messages.step == step
                    before = has.copy()
                    for src, dst in zip(messages.src[here], messages.dst[here], strict=True):
                        has[dst] |= before[src]
                name = f"{operation} {algorithm} {ranks}"
                if operation in ("bcast", "scatter"):
                    assert has[:, root].all(), name
                elif operation in ("reduce", "gather"):
                    assert has[root].all(), name
                else:
                    assert has.all(), name
                least = {"gather": size, "scatter": size, "allgather": (ranks - 1) * size}.get(operation, 0)
                received = np.bincount(messages.dst, messages.bytes, ranks)
                assert (np.delete(received, root) if operation == "scatter" else received).max() >= least
                if operation == "allgather":
                    assert (received == least).all(), name


def producer(size, work_s, late_s=0.0, is_blocking=False):
    """Rank 0 computes and sends; rank 1 has posted its receive, and is late or waits."""
    written = Written(range(2))
    m = written.message(size)
    written.add(0, "compute", work_s)
    written.send(0, m)
    r = written.add(1, "receive", m, 0.0)
    if late_s:
        written.add(1, "compute", late_s)
    written.add(1, "wait", [r], 0.0)
    return operations_of(written, is_blocking=is_blocking)


@pytest.mark.parametrize("late_s", [0.0, 0.3])
@pytest.mark.parametrize("partitions", [2, 5])
def test_partitions_leave_while_the_sender_computes(late_s, partitions):
    """All but the last are ready 4 % before the end; the last one follows, and moves alone."""
    work_s, size = 0.1, 10_000_000
    of = partitioned(producer(size, work_s, late_s), partitions)
    assert len(of.bytes) == partitions and of.bytes.sum() == size
    assert end_s(producer(size, work_s)).end_of_run_s == pytest.approx(
        work_s + size / BANDWIDTH + HOP_S, **EXACT
    )
    run = end_s(of)
    # The early ones are posted at 96 ms, and share the link with the last one from 100 ms.
    early_s = 0.96 * work_s + OVERHEAD_S
    posted_s = work_s + partitions * OVERHEAD_S
    assert run.begun_s.min() == pytest.approx(early_s, **EXACT)
    assert run.begun_s.max() == pytest.approx(posted_s, **EXACT)
    moved_s = early_s + size / BANDWIDTH
    arrives_s = moved_s + OVERHEAD_S if moved_s > posted_s else posted_s + OVERHEAD_S
    if late_s:
        assert run.end_of_run_s == pytest.approx(late_s + partitions * OVERHEAD_S, **EXACT)
    else:
        assert arrives_s < run.end_of_run_s <= arrives_s + partitions * OVERHEAD_S + 1e-9


def test_pipeline_of_partitions_overlaps_computing_and_sending():
    """Half of the computing as noise: the first half of the bytes moves during the second half of it."""
    work_s, size = 0.02, 30_000_000
    of = partitioned(producer(size, work_s), 2, noise_share=0.5)
    # The link is busy from half of the computing on, until all bytes are over.
    ends_s = work_s / 2 + OVERHEAD_S + size / BANDWIDTH
    run = end_s(of)
    assert run.left_s.max() == pytest.approx(ends_s, **EXACT)
    assert run.end_of_run_s == pytest.approx(ends_s + 2 * OVERHEAD_S, **EXACT)


@pytest.mark.parametrize(
    ("partitions", "leads_s"), [(3, (0.01, 0.004)), (2, (0.004,)), (6, (0.01, 0.01, 0.004, 0.004, 0.0))]
)
def test_partitions_are_ready_as_threads_arrived(partitions, leads_s):
    work_s, size = 0.05, 600_000
    whole = replace(producer(size, work_s), leads_s={0: np.array([0.0, 0.01, 0.004])})
    run = end_s(partitioned(whole, partitions))
    begun_s = np.sort(run.begun_s)
    posts = [work_s - lead_s for lead_s in leads_s] + [work_s]
    expected_s = [post_s + (k + 1) * OVERHEAD_S for k, post_s in enumerate(posts)]
    assert begun_s == pytest.approx(expected_s, **EXACT)
    given_s = end_s(partitioned(whole, partitions, 0.5)).begun_s
    assert given_s.min() == pytest.approx(work_s / 2 + OVERHEAD_S, **EXACT)


def test_small_messages_stay_whole():
    of = partitioned(producer(1000, 0.1), 8)
    assert of.bytes.tolist() == [1000]
    assert end_s(of).end_of_run_s == pytest.approx(0.1 + HOP_S + 1e-6, **EXACT)


def burst(num, size, between_s=0.0, peers=1):
    """Rank 0 sends `num` messages to each other rank by turns; they wait for each of them in order."""
    written = Written(range(peers + 1))
    messages = [[written.message(size) for _ in range(peers)] for _ in range(num)]
    sends = []
    for row in messages:
        for m in row:
            if between_s:
                written.add(0, "compute", between_s)
            sends.append(written.add(0, "send", m, 0.0))
    written.add(0, "wait", sends, 0.0)
    for peer in range(peers):
        for row in messages:
            written.receive(peer + 1, row[peer])
    return operations_of(written)


@pytest.mark.parametrize("peers", [1, 3])
def test_messages_to_one_rank_become_one(peers):
    num, size = 6, 100
    before, after = burst(num, size, peers=peers), aggregated(burst(num, size, peers=peers))
    assert after.bytes.tolist() == [num * size] * peers
    assert end_s(before).end_of_run_s > end_s(after).end_of_run_s
    if peers == 1:
        whole_s = num * size / BANDWIDTH + HOP_S
        assert end_s(after).end_of_run_s == pytest.approx(whole_s, **EXACT)


def test_aggregated_message_leaves_with_its_last_part():
    after = aggregated(burst(3, 1000, between_s=0.01))
    assert end_s(after).end_of_run_s == pytest.approx(0.03 + 3000 / BANDWIDTH + HOP_S, **EXACT)


def test_messages_between_which_a_rank_waits_stay_apart():
    """A ping-pong: what answers another message cannot leave with the first."""
    written = Written(range(2))
    a, b, c = (written.message(8) for _ in range(3))
    written.send(0, a)
    written.receive(0, b)
    written.send(0, c)
    for m, back in ((a, b), (c, None)):
        written.receive(1, m)
        if back is not None:
            written.send(1, back)
    of = operations_of(written)
    assert aggregated(of).bytes.tolist() == [8, 8, 8]


def test_changes_are_simulated_together():
    of = burst(4, 500_000)
    both = partitioned(aggregated(of), 4)
    assert both.bytes.sum() == of.bytes.sum()
    assert end_s(both).end_of_run_s > 0


def test_tolerance_finds_the_latency_and_bandwidth_of_a_growth():
    """Computing, the bytes of a message, and its latency follow each other."""
    work_s, size = 0.01, 1_000_000
    of = producer(size, work_s)
    given = conditions_as_recorded(of, PROFILE, parse_layout("2x1x1", "core"))
    now_s, points = end_s(of).end_of_run_s, list(simulation.tolerance(of, given, end_s(of).end_of_run_s))
    assert now_s == pytest.approx(work_s + size / BANDWIDTH + HOP_S, **EXACT)
    searched = {(point.parameter, point.growth): point for point in points if point.growth is not None}
    assert set(searched) == {(of, by) for of in ("latency", "bandwidth") for by in (0.01, 0.05, 0.1)}
    for growth in (0.01, 0.05, 0.1):
        assert searched["latency", growth].latency_s == pytest.approx(HOP_S + growth * now_s, rel=2e-3)
        slower = size / (size / BANDWIDTH + growth * now_s)
        assert searched["bandwidth", growth].bandwidth_bytes_per_s == pytest.approx(slower, rel=2e-3)
    for point in points:
        moves_s = size / point.bandwidth_bytes_per_s + point.latency_s
        assert point.simulated_s == pytest.approx(work_s + moves_s, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("allreduce", "give OPERATION=NAME"), ("foo=ring", "give OPERATION=NAME"),
        ("allreduce=foo", "give one of ring, recursive-doubling, rabenseifner, linear, reduce-bcast"),
        ("bcast=linear", "has no bcast; it has allreduce"),
    ],
)  # fmt: skip
def test_algorithms_that_are_not_there_are_refused(text, reason):
    with pytest.raises(InputError, match=reason):
        parse_algorithm(collective(3, (0, 0.0)), text)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_changed_programs_stay_programs(seed):
    """Any program: nothing is lost or waits for ever, and a change of nothing changes nothing."""
    of = operations_of(random_program(np.random.default_rng(seed)))
    same = Rewriting(of).done()
    for name in ("first", "operation", "argument", "set_first", "bytes", "own_s"):
        assert np.array_equal(getattr(same, name), getattr(of, name)), name
    assert end_s(same).end_s == pytest.approx(end_s(of).end_s, **EXACT)
    for changed in (partitioned(of, 3), aggregated(of), partitioned(aggregated(of), 2, 0.5)):
        assert changed.bytes.sum() == of.bytes.sum()
        assert np.isfinite(end_s(changed).end_s).all()
        assert changed.size == of.size


def test_parts_within_a_node_cost_what_libearlybird_took_there_if_that_was_measured():
    """A quarter of what a message of the MPI does, from the end of the computation on."""
    work_s, faster = 0.1, 4
    protocol = {"latency_s": HOP_S / 8, "overhead_s": HOP_S / 8, "bandwidth_bytes_per_s": faster * BANDWIDTH}
    form_of_node = {
        "what": {"operation": "pipeline", "method": "earlybird", "level": "intra_socket"},
        "form": "joined",
        "parameters": {"messages": "planned", "protocols": [protocol]},
        "range": {key: [1, 8] for key in ("size_bytes", "partitions", "gamma_s_per_byte")},
    }
    of = producer(100_000, work_s)
    after_s, remarks = [], []
    for forms in ([], [form_of_node]):
        profile = Profile({"intra_socket": level("intra_socket")}, "p", forms=tuple(forms))
        given = conditions_as_recorded(of, profile, parse_layout("1x1x2", "core"))
        found = simulation.predict_program(of, given, [simulation.partitions_change(2)])
        after_s.append(found.simulated_s - work_s)
        remarks += [note for note in found.notes if "stay on a node" in note]
    assert after_s[1] == pytest.approx(after_s[0] / faster, **EXACT)
    assert ["not in this prediction" in remark for remark in remarks] == [True, False]
    assert "earlybird measure pipeline" in remarks[0] and "2 parts of messages" in remarks[1]
