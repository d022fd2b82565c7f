"""Phases of ranks that make the same calls are one phase of the program."""

from dataclasses import replace
from pathlib import Path
from string import ascii_letters, digits

import numpy as np

from earlybird.data.phases import find_phases
from earlybird.data.recorded_rank import RECEIVED, SENT, RankPhase, RankRecording, Step
from earlybird.data.recording import Recording
from tests.recordings import ENTRY


def phase(steps, *, region=1, epochs=10, time_s=1.0, first_s=0.0):
    """Steps such as `I12` or, with the function that contains it, `I12:receive`."""
    parts = [step.partition(":") for step in steps.split()]
    made = tuple(
        Step(f"MPI_{at.rstrip(digits)}", "/bin/app", int(at.lstrip(ascii_letters + "_")), name)
        for at, _, name in parts
    )
    return RankPhase(region, made, epochs, time_s, first_s, first_s + time_s)


def recording_of(*phases_of_ranks, messages=()):
    """`messages`: rows (sender, its phase, receiver, its phase, count)."""
    entries = [[] for _ in phases_of_ranks]
    for src, sent_in, dst, received_in, count in messages:
        for rank, role, peer, number in ((src, SENT, dst, sent_in), (dst, RECEIVED, src, received_in)):
            entries[rank].append((0, role, 4, 1, peer, 0, number, 0, count, count, 8 * count, 0))
    ranks = {
        rank: RankRecording(
            rank, len(phases_of_ranks), "n", "An MPI", "single", ("MPI_Send",),
            np.array(entries[rank], ENTRY), {}, "finalize", 2.0, False, dict(enumerate(phases, 1)),
        )
        for rank, phases in enumerate(phases_of_ranks)
    }  # fmt: skip
    return Recording(Path("rec"), (), ranks)


def found(*phases_of_ranks, messages=()):
    return [dict(one.of_ranks) for one in find_phases(recording_of(*phases_of_ranks, messages=messages))]


def test_the_same_steps_on_all_ranks_are_one_phase_whatever_their_numbers():
    exchange, total = phase("I1 S2 W3"), phase("A4", time_s=0.5)
    assert found([exchange, total], [total, exchange]) == [{0: (1,), 1: (2,)}, {0: (2,), 1: (1,)}]


def test_mpi_init_is_no_phase():
    begin, more = phase("Init1"), phase("Init_thread1 A4")
    assert found([begin, phase("A4")], [phase("A4"), phase("Init_thread1")]) == [{0: (2,), 1: (1,)}]
    assert found([more]) == [{0: (1,)}]


def test_a_rank_that_lacks_some_of_the_calls_has_the_same_phase():
    assert found([phase("I1 S2 I3 S4 W5")], [phase("I1 S2 W5")], [phase("I3 S4 W5")]) == [
        {0: (1,), 1: (1,), 2: (1,)}
    ]


def test_less_than_half_in_common_are_two_phases():
    assert len(found([phase("I1 W5")], [phase("I3 W5")])) == 2


def test_other_branches_of_the_same_functions_are_one_phase():
    """Ranks at the corners of a domain, of which each has its own branches in two phases."""
    corners = [
        [phase(f"I{k}1:recv S{k}2:send W{k}3:add"), phase(f"I{k}1:recv S{k}2:send W{k}4:copy", time_s=0.5)]
        for k in (1, 2, 3, 4)
    ]
    one, other = {rank: (1,) for rank in range(4)}, {rank: (2,) for rank in range(4)}
    assert found(*corners) == [one, other]
    assert len(found([phase("I1:recv W2:add")], [phase("I3:get W4:put")])) == 2


def test_ranks_at_the_border_that_only_send_or_receive_have_the_phase_of_their_messages():
    """A compiler has copied the call that waits; the phases of the two directions have the same calls."""
    up, down = "I1:main S2:main W3:main", "I5:main S6:main W7:main"
    first = [phase("S2:main W4:main", time_s=2), phase("I5:main W9:main")]
    middle = [phase(up, time_s=2), phase(down)]
    last = [phase("I1:main W8:main", time_s=2), phase("S6:main W7:main")]
    messages = [(0, 1, 1, 1, 10), (1, 1, 2, 1, 10), (2, 2, 1, 2, 10), (1, 2, 0, 2, 10)]
    assert found(first, middle, last, messages=messages) == [dict.fromkeys(range(3), (k,)) for k in (1, 2)]


def test_a_function_for_both_directions_is_one_phase_on_ranks_that_send_in_one_and_receive_in_the_other():
    sends, receives, both = phase("S2 W3"), phase("I1 W3"), phase("I1 S2 W3", epochs=20)
    messages = [(0, 1, 1, 1, 10), (1, 1, 2, 2, 10), (2, 1, 1, 1, 10), (1, 1, 0, 2, 10)]
    (made,) = find_phases(recording_of([sends, receives], [both], [sends, receives], messages=messages))
    assert {rank: sorted(numbers) for rank, numbers in made.of_ranks.items()} == {
        0: [1, 2],
        1: [1],
        2: [1, 2],
    }
    assert made.epochs_of == {0: 20, 1: 20, 2: 20}


def test_sends_and_receives_of_different_places_of_one_rank_stay_two_phases():
    """Each rank sends to the next one, and then receives."""
    ranks = [[phase("S1:main W2:main", time_s=2), phase("I3:main W4:main")]] * 2
    messages = [(0, 1, 1, 2, 10), (1, 1, 0, 2, 10)]
    assert found(*ranks, messages=messages) == [{0: (1,), 1: (1,)}, {0: (2,), 1: (2,)}]


def test_a_sender_and_receivers_in_other_functions_stay_two_phases():
    ranks = [[phase("S1:give", time_s=2)], [phase("R2:take")], [phase("R2:take")]]
    assert len(found(*ranks, messages=[(0, 1, 1, 1, 10), (0, 1, 2, 1, 10)])) == 2


def test_two_phases_of_one_rank_stay_two():
    both = [phase("I1 S2 I3 S4 W5"), phase("I1 S2 W5", time_s=0.5)]
    assert found(both, both) == [{0: (1,), 1: (1,)}, {0: (2,), 1: (2,)}]


def test_regions_separate_phases():
    assert len(found([phase("I1 W2"), phase("I1 W2", region=2)])) == 2


def test_the_order_is_that_of_time_and_times_are_sums():
    first, second = find_phases(
        recording_of(
            [phase("A1", time_s=1, epochs=3), phase("B2", time_s=3, first_s=1.0, epochs=7)],
            [phase("B2", time_s=2, first_s=0.5, epochs=9)],
        )
    )
    assert (first.number, first.calls, first.time_s, first.epochs) == (1, ["MPI_B"], 5, 7)
    assert (first.first_s, first.last_s, dict(first.epochs_of)) == (0.5, 4.0, {0: 7, 1: 9})
    assert (second.number, second.functions, second.time_s) == (2, ["app+0x1"], 1)


def test_a_thread_that_only_marks_partitions_does_not_lead():
    """Its epochs have no end, and last as long as the program computes."""
    exchange, mark = phase("Startall1 Waitall2", time_s=0.2), phase("Pready3", epochs=3, time_s=1.9)
    recording = recording_of([mark, exchange])
    # Threads 1 and 2 are in MPI_Pready for 1 and 2 ms.
    rows = [(0, 0, 0, 0, -1, thread, 1, 0, 5, 0, 0, thread * 10**6) for thread in (1, 2)]
    for level, time_s in (("multiple", 2e-3), ("serialized", 3e-3)):
        one = replace(recording.ranks[0], entries=np.array(rows, ENTRY), thread_level=level)
        first, second = find_phases(replace(recording, ranks={0: one}))
        assert (first.calls, first.time_s) == (["MPI_Startall", "MPI_Waitall"], 0.2)
        assert (second.calls, round(second.time_s, 9)) == (["MPI_Pready"], time_s)


def test_the_calls_of_both_sides_are_named():
    master = phase("Recv1:master Waitall4:master Send2:master")
    sides = [phase("Recv1:sweep")], [phase("Send2:sweep")], [phase("Send8:sweep"), phase("A4")]
    messages = [(1, 1, 0, 1, 5), (2, 1, 0, 1, 5)]
    one, _ = find_phases(recording_of(*sides, messages=messages))
    assert sorted(one.calls) == ["MPI_Recv", "MPI_Send"] and one.functions == ["sweep"]
    assert set(one.of_ranks) == {0, 1, 2}
    (two,) = find_phases(recording_of([master], [phase("Recv1:master Waitall4:master Send3:work")]))
    assert two.calls == ["MPI_Recv", "MPI_Waitall", "MPI_Send"] and two.functions == ["master", "work"]
