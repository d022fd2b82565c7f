"""Projections of synthetic recordings come out at values that can be computed by hand."""

import json
import re
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from earlybird.analysis.balance import work_balance
from earlybird.data.advice import EXTRAPOLATED
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.data.projection import (
    AGGREGATION,
    LAYOUT,
    OTHER_MPI,
    PARTITIONS,
    is_bound,
    projection_from_json,
    speed_up_text,
)
from earlybird.data.schema import Estimate
from earlybird.patterns import recorded
from earlybird.patterns.recorded import heaviest_phase
from earlybird.record import projection
from earlybird.record.advice import AS_RECORDED, advise_program
from earlybird.record.costs import MODEL_ERROR, MOVED_ERROR, Communication, Cost, exchange_cost
from earlybird.record.measured_phase import MeasuredPhase, PhaseExchange
from earlybird.record.projection import Changes, EarlySending, other_mappings, project, recorded_place
from tests import recordings
from tests.python.record.projecting import (
    EACH,
    HALVES,
    NOW_S,
    changes_of,
    collectives,
    default_alone,
    place,
    polling,
    profile,
    with_calls,
)


def test_the_recorded_hosts_are_the_layout():
    assert (recorded_place(HALVES).text, recorded_place(HALVES).map_by) == ("2x1x2", "core")
    by_turns = recordings.in_memory(4, recordings.ring(4), host=lambda rank: f"n{rank % 2}")
    assert (recorded_place(by_turns).text, recorded_place(by_turns).map_by) == ("2x1x2", "node")
    uneven = recordings.in_memory(3, recordings.ring(3), host=lambda rank: f"n{min(rank, 1)}")
    assert recorded_place(uneven).layout.node.tolist() == [0, 1, 1]
    assert [one.map_by for one in other_mappings(place("2x1x2"))] == ["node"]
    assert other_mappings(recorded_place(uneven)) == []


def test_another_layout_changes_the_time_by_the_predicted_difference():
    found = project(HALVES, profile(), recorded_place(HALVES), Changes([place("2x1x2", "node")]))
    phase = found.phases[0]
    assert phase.time_s == pytest.approx(0.5)
    assert phase.model_s == pytest.approx(NOW_S)
    (change,) = changes_of(found, LAYOUT)
    time_s = 0.5 + 0.2 - NOW_S
    assert change.time_s.value == pytest.approx(time_s)
    assert change.speed_up.value == pytest.approx(0.5 / time_s)
    assert change.run_speed_up.value == pytest.approx(2.0 / (2.0 + 0.2 - NOW_S))
    error_s = MOVED_ERROR * (NOW_S**2 + 0.2**2) ** 0.5
    assert change.time_s.low == pytest.approx(time_s - error_s)
    assert change.time_s.high == pytest.approx(time_s + error_s)
    assert projection_from_json(found.to_json()) == found


def test_the_model_of_a_phase_is_that_of_predict_and_is_stated_with_its_reason():
    simulated = replace(profile(), context={"launcher": "simgrid"})
    for given, name in ((profile(), "queue"), (simulated, "fair")):
        found = project(HALVES, given, recorded_place(HALVES), Changes([place("2x1x2", "node")]))
        assert found.phases[0].model == name
        assert found.models() == [f"{name} ({found.phases[0].model_reason}), phase 1"]
        assert advise_program(found).extra["models"] == found.models()


def test_messages_of_ranks_with_different_numbers_of_epochs_are_not_projected():
    """Ranks 0 and 1 exchange 10 times, ranks 2 and 3 1000 times: no number of exchanges has all messages."""

    def projected(least, most):
        epochs = [
            [(rank, rank ^ 1, 1, 1000) for rank in range(4) if rank >= 2 or k < least] for k in range(most)
        ]
        epochs_of = lambda rank: range(most if rank >= 2 else least)  # noqa: E731
        recording = recordings.of_epochs(4, epochs, own_epochs=epochs_of, host=lambda rank: f"n{rank // 2}")
        return project(recording, profile(), recorded_place(recording), Changes(), only_phase=1).phases[0]

    phase = projected(10, 1000)
    assert phase.model_s is None and not phase.changes
    assert "its messages are not projected: ranks go through it 10 to 1000 times" in phase.notes
    assert projected(1000, 1000).model_s is not None


def test_of_another_layout_nothing_can_be_said_where_ranks_wait_for_cores():
    """It may end all time in the MPI, or double the waiting for cores."""

    def projected(share):
        ranks = {
            rank: replace(one, core_wait_s=None if share is None else share * one.run_s)
            for rank, one in HALVES.ranks.items()
        }
        recording, changes = replace(HALVES, ranks=ranks), Changes([place("2x1x2", "node")])
        return project(recording, profile(), recorded_place(HALVES), changes)

    unknown, little, half = projected(None), projected(0.01), projected(0.5)
    ((before,), (slightly,), (after,)) = (changes_of(one, LAYOUT) for one in (unknown, little, half))
    assert (after.time_s, after.speed_up) == (None, None)
    # 0.2 s of 0.5 s were inside the MPI.
    least, most = 0.5 / (1.5 * before.time_s.high), 1 / (0.5 * 0.6)
    assert (
        f"from {least:.3g} to {most:.3g} agrees with what is known: ranks waited for a core" in after.reason
    )
    assert slightly == before and not before.reason
    assert (half.run_changes()[0].run_speed_up is None) == bool(half.run_changes()[0].reason)
    encoded = half.to_json()
    (stated,) = encoded["phases"][0]["changes"]
    assert stated["time_s"] is None and stated["speed_up"] is None and "time_low_s" not in stated
    assert projection_from_json(json.loads(json.dumps(encoded))) == half
    assert "waited for a core in 50 %" in " ".join(half.notes)
    ranks = {rank: replace(one, core_wait_s=0.5 * one.run_s) for rank, one in HALVES.ranks.items()}
    alone = project(replace(HALVES, ranks=ranks), profile(), recorded_place(HALVES), Changes())
    assert "waited for a core in 50 %" in " ".join(alone.notes)
    assert "core" not in " ".join([*unknown.notes, *little.notes])


def test_waiting_for_cores_widens_a_change_of_several_parts_once(monkeypatch):
    costs = cycle([Cost(0.1, np.empty(0)), Cost(0.01, np.empty(0))])
    monkeypatch.setattr(projection, "collective_cost", lambda *_: next(costs))
    monkeypatch.setattr(projection, "advise_collective", lambda *_, **__: (default_alone(), None))
    recording = collectives()
    ranks = {}
    for rank, one in recording.ranks.items():
        entries = one.entries.copy()
        entries["phase"][entries["phase"] == 2] = 1
        ranks[rank] = replace(one, entries=entries, core_wait_s=0.5 * one.run_s)
    waiting = replace(recording, ranks=ranks)
    unknown = replace(waiting, ranks={rank: replace(one, core_wait_s=None) for rank, one in ranks.items()})
    changes = Changes([place("2x1x2", "node")])
    (after,), (before,) = (
        changes_of(project(one, profile(), recorded_place(one), changes), LAYOUT)
        for one in (waiting, unknown)
    )
    # 0.2 s and 0.1 s of 0.5 s were inside the MPI.
    least, most = map(float, re.search(r"from (\S+) to (\S+)", after.reason).groups())
    assert most == pytest.approx(1 / (0.5 * 0.4), rel=0.02)
    assert least == pytest.approx(before.speed_up.low / 1.5, rel=0.05)


def test_a_faster_mpi_saves_no_more_than_the_time_inside_the_mpi():
    found = project(
        HALVES, profile(), recorded_place(HALVES), Changes(profiles={"fast": profile(network=1e12)})
    )
    (change,) = changes_of(found, OTHER_MPI)
    # What remains is in memory: 0.01 s.
    assert change.time_s.value == pytest.approx(0.5 - NOW_S + 0.01, rel=1e-3)
    slow = project(
        HALVES, profile(network=1e7), recorded_place(HALVES), Changes(profiles={"fast": profile()})
    )
    # 1.01 s are predicted and 0.2 s were recorded inside the MPI.
    (change,) = changes_of(slow, OTHER_MPI)
    assert change.time_s.value == pytest.approx(0.5 - 0.2 * (1 - NOW_S / 1.01), rel=1e-3)
    assert change.time_s.low >= 0.5 - 0.2 - 1e-3
    assert "not that of the recording" in slow.phases[0].notes[0]


@pytest.mark.parametrize("tests", [3, 100])
def test_ranks_that_poll_wait_between_the_calls_too(tests):
    """1.01 s are predicted, in a phase of 0.5 s, 0.2 s of it inside the MPI."""
    found = project(
        polling(HALVES, tests),
        profile(network=1e7),
        recorded_place(HALVES),
        Changes(profiles={"fast": profile()}),
    )
    (change,) = changes_of(found, OTHER_MPI)
    assert len(found.phases[0].notes) == 1
    if tests == 3:  # one for each message and epoch
        assert change.time_s.value == pytest.approx(0.5 - 0.2 * (1 - NOW_S / 1.01), rel=1e-3)
    else:
        assert change.time_s.value == pytest.approx(0.5 * NOW_S / 1.01, rel=1e-3)
        assert change.time_s.high >= 0.5 - 0.2 * (1 - NOW_S / 1.01)


def test_many_small_messages_may_gain_more_than_the_models_know():
    """Of 0.5 s, 0.45 s are in MPI_Waitall; 0.05 s are predicted, and 0.01 s for packed messages."""
    recording = recordings.in_memory(2, [(0, 1, 5, 1000), (1, 0, 5, 1000)], lambda rank: 0.45)
    found = project(recording, profile(latency_s=0.01), recorded_place(recording), Changes())
    (change,) = changes_of(found, AGGREGATION)
    assert change.time_s.value == pytest.approx(0.5 - 4 * 0.01, rel=1e-3)
    assert change.time_s.low == pytest.approx(0.5 - 0.45 + 0.01 * (1 - MODEL_ERROR), rel=1e-3)
    assert change.speed_up.low > 1 and is_bound(change.speed_up)
    assert "how much more is not known, since the models describe 50 ms of the 450 ms in the MPI" in (
        change.reason
    )
    text = speed_up_text(change.speed_up)
    assert text == f"at least {change.speed_up.low:.2f}"
    assert "none of these changes ends it" not in " ".join(found.phases[0].notes)
    # Where the models describe what was recorded, the interval is as narrow as they are.
    described = recordings.in_memory(2, [(0, 1, 5, 1000), (1, 0, 5, 1000)], lambda rank: 0.051)
    found = project(described, profile(latency_s=0.01), recorded_place(described), Changes())
    (change,) = changes_of(found, AGGREGATION)
    assert not change.reason and change.speed_up.high < 1.15


def test_packed_messages_may_also_end_waiting_for_cores():
    recording = recordings.in_memory(2, [(0, 1, 5, 1000), (1, 0, 5, 1000)], lambda rank: 0.3)
    ranks = {rank: replace(one, core_wait_s=0.5 * one.run_s) for rank, one in recording.ranks.items()}
    found = project(
        replace(recording, ranks=ranks), profile(latency_s=0.01), recorded_place(recording), Changes()
    )
    (change,) = changes_of(found, AGGREGATION)
    assert change.time_s.low == pytest.approx(0.5 * 0.2 + 0.01 * (1 - MODEL_ERROR), rel=1e-3)
    assert speed_up_text(change.speed_up).startswith("at least 1.0")


@pytest.mark.parametrize(
    ("speed_up", "text"),
    [
        ((1.43, 0.54, 100.0), "unknown"),
        ((1.0, 0.97, 3.5), "unknown"),  # hardly slower, and perhaps much faster
        ((1.05, 0.82, 1.3), "unknown"),
        ((1.4, 0.88, 2.14), "1.40"),
        ((0.98, 0.7, 1.15), "0.98"),
        ((1.3, 1.07, 3.0), "1.30"),
        ((1.3, 1.07, 3.3), "at least 1.07"),
        ((0.5, 0.2, 0.9), "at most 0.90"),
    ],
)
def test_a_speed_up_is_given_as_far_as_it_is_known(speed_up, text):
    assert speed_up_text(Estimate(*speed_up)) == text


def test_one_message_per_pair_saves_the_latency_of_the_others():
    recording = recordings.in_memory(2, [(0, 1, 5, 1000), (1, 0, 5, 1000)])
    found = project(recording, profile(latency_s=0.01), recorded_place(recording), Changes())
    (change,) = changes_of(found, AGGREGATION)
    assert change.change == "10 to 2 messages"
    assert change.time_s.value == pytest.approx(0.5 - 4 * 0.01)


@pytest.mark.parametrize(("delay_s", "left_s"), [(0.0, NOW_S), (0.03, NOW_S - 0.03), (1.0, NOW_S / 4)])
def test_partitions_hide_what_is_sent_before_the_last_one(delay_s, left_s):
    early = EarlySending(4, delay_s)
    found = project(HALVES, profile(), recorded_place(HALVES), Changes(early=early))
    (change,) = changes_of(found, PARTITIONS)
    assert change.time_s.value == pytest.approx(0.5 - NOW_S + left_s)
    assert change.change.startswith("4 partitions, delay")


def test_noise_is_a_share_of_the_computation_of_an_epoch():
    """1.5 s of 2 s are inside no MPI call (0.2 s in MPI_Waitall, 0.1 s in MPI_Allreduce, 1 us in others)."""
    found = project(HALVES, profile(), recorded_place(HALVES), Changes(early=EarlySending(4, None, 0.02)))
    (change,) = changes_of(found, PARTITIONS)
    assert change.time_s.value == pytest.approx(0.5 - 0.02 * 1.7, rel=1e-4)


def uneven(waiting_s=(0.2, 0.2, 0.2, 1.0), **changes):
    """Ranks that are outside the MPI for 2 s less `waiting_s` and 0.1 s, and a recording of them."""
    found = recordings.in_memory(4, recordings.ring(4, 1, EACH), dict(enumerate(waiting_s)).get, **changes)
    return project(found, profile(), place("1x1x4"), Changes())


def test_uneven_work_is_named_with_what_it_costs_at_most():
    found = uneven()
    assert found.balance.most_s == pytest.approx(1.7, abs=1e-3)
    assert found.balance.mean_s == pytest.approx(1.5, abs=1e-3)
    assert "1.7 s and ranks on average for 1.5 s: with even work the run could be 200 ms shorter, 10 %" in (
        found.uneven_work()
    )
    assert projection_from_json(found.to_json()) == found
    assert found.uneven_work() in advise_program(found).ranked[0].action
    even = uneven((0.01, 0.01, 0.01, 0.02))
    assert even.balance is not None and even.uneven_work() == ""
    assert advise_program(even).ranked[0].action == "leave the program as it is"


def test_of_ranks_that_left_no_file_or_ended_early_no_balance_is_known():
    assert uneven(absent=(1,)).balance is None
    assert uneven(end=lambda rank: None if rank == 2 else "finalize").balance is None


def test_nothing_is_said_of_a_recording_that_was_cut_before_its_messages_were_known(monkeypatch):
    recording = replace(HALVES, path=Path("rec"))
    cut = replace(
        recording,
        ranks={rank: replace(one, end=None, is_cut=True, phases={}) for rank, one in recording.ranks.items()},
    )
    again = "nothing can be said; record the program again, until all ranks have ended"
    found = project(cut, profile(), place("1x1x4"), Changes())
    assert found.is_cut and projection_from_json(found.to_json()) == found
    assert advise_program(found).ranked[0].action.startswith(again)
    # Phases are known, and what they communicate is not.
    monkeypatch.setattr(MeasuredPhase, "exchange", property(_refuse))
    cut = replace(cut, ranks={rank: replace(one, end=None) for rank, one in recording.ranks.items()})
    found = project(cut, profile(), place("1x1x4"), Changes())
    assert "not projected" in found.phases[0].notes[0]
    assert advise_program(found).ranked[0].action.startswith(again)
    # A whole one, of which the reason stands in the notes.
    found = project(recording, profile(), place("1x1x4"), Changes())
    assert advise_program(found).ranked[0].action == "nothing can be said; the notes say why"


def _refuse(measured):
    raise InputError("its messages cannot be known")


def waiting_for_cores(waiting_s, core_wait_s):
    """Ranks that are outside the MPI for 1.9 s less `waiting_s`, and wait for cores for `core_wait_s`."""
    recording = recordings.in_memory(4, recordings.ring(4, 1, EACH), dict(enumerate(waiting_s)).get)
    ranks = {rank: replace(one, core_wait_s=core_wait_s[rank]) for rank, one in recording.ranks.items()}
    return project(replace(recording, ranks=ranks), profile(), place("1x1x4"), Changes())


def test_what_even_work_saves_lies_between_bounds_where_ranks_waited_little_for_cores():
    """Rank 2 computes for 1.7 s, 0.1 s of which may be waiting; the others for 0.9 s, or 0.8 s."""
    found = waiting_for_cores((1.0, 1.0, 0.2, 1.0), (0.1,) * 4)
    assert found.balance.rank == 2
    assert found.balance.saved_s() == pytest.approx(
        (1.6 - (1.6 + 3 * 0.9) / 4, 1.7 - (1.7 + 3 * 0.8) / 4), abs=1e-3
    )
    assert "could be 525 ms to 675 ms shorter, 26 % to 34 %" in found.uneven_work()
    assert projection_from_json(found.to_json()) == found
    assert "distribute the work evenly" in advise_program(found).ranked[0].action


def test_the_rank_that_computes_longest_is_named_also_where_nobody_knows_what_that_costs():
    found = waiting_for_cores((1.0, 1.0, 0.7, 1.0), (1.0,) * 4)
    action = advise_program(found).ranked[0].action
    assert found.balance.saved_s() is None
    assert action.startswith(
        "change no setting; distribute the work of rank 2: rank 2 is outside the MPI for"
    )
    assert "is not known, since ranks waited for a core in 50 % of the run" in action
    assert projection_from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("waiting_s", "core_wait_s"),
    [
        ((1.0, 1.0, 0.95, 1.0), (1.0, 1.0, 1.0, 1.0)),  # alike
        ((1.0, 1.0, 0.7, 1.0), (0.2, 0.2, 0.9, 0.2)),  # rank 2 had no core
    ],
)
def test_ranks_that_may_compute_alike_are_not_called_uneven(waiting_s, core_wait_s):
    found = waiting_for_cores(waiting_s, core_wait_s)
    assert found.balance is None
    action = advise_program(found).ranked[0].action
    assert "leave the program as it is" not in action
    assert "whether the ranks compute alike is not known, since they waited for a core in" in action


def test_time_in_the_mpi_that_no_model_describes_is_named():
    """0.11 s are predicted of 0.2 s in MPI_Waitall, then of 0.4 s: most of these."""
    for waiting_s, is_named in ((0.2, False), (0.4, True)):
        recording = recordings.in_memory(
            4, recordings.ring(4, 1, EACH), lambda rank, s=waiting_s: s, host=lambda rank: f"n{rank // 2}"
        )
        found = project(recording, profile(), recorded_place(recording), Changes())
        notes = " ".join(found.phases[0].notes)
        assert ("110 ms of the 400 ms in the MPI; the rest is waiting for other ranks" in notes) is is_named
        action = advise_program(found).ranked[0].action
        assert ("find out what ranks do in the 290 ms of phase 1 in the MPI" in action) is is_named
        assert ("leave the program as it is" in action) is not is_named


def test_a_profile_of_another_mpi_is_named():
    notes = {}
    for library in ("MPICH Version: 5", "Open MPI v5", ""):
        fitted = replace(profile(), context={"library_version": library})
        ranks = {rank: replace(one, mpi="MPICH Version: 4") for rank, one in HALVES.ranks.items()}
        found = project(replace(HALVES, ranks=ranks), fitted, recorded_place(HALVES), Changes())
        notes[library] = " ".join(found.notes)
    assert "the recording is of MPICH and the profile of Open MPI" in notes["Open MPI v5"]
    assert (
        "`earlybird measure pingpong contention completion --hosts n0,n1 --mpi mpich -o RUN`"
        in (notes["Open MPI v5"])
    )
    assert "recording is of" not in notes["MPICH Version: 5"] + notes[""]


def test_advice_is_the_clear_change_or_none():
    slower = Changes([place("2x1x2", "node")])
    advice = advise_program(project(HALVES, profile(), recorded_place(HALVES), slower))
    assert [one.method for one in advice.ranked] == [AS_RECORDED, "2x1x2 by node"]
    faster = Changes([place("1x1x4")], early=EarlySending(4, 1.0))
    larger = recordings.in_memory(4, recordings.ring(4, 1, 18 * 10**6), host=lambda rank: f"n{rank // 2}")
    advice = advise_program(project(larger, profile(), recorded_place(larger), faster))
    # Four ranks receive from one memory at once. A setting is less work than partitions, and nearly as fast.
    assert advice.ranked[0].method == "1x1x4"
    assert advice.ranked[0].speed_up.value == pytest.approx(2.0 / (2.0 - 1.8 * (NOW_S - 0.04)), rel=1e-3)
    assert advice.ranked[0].speed_up.low > 1


def test_what_is_extrapolated_is_not_advised():
    faster = Changes(early=EarlySending(4, 1.0))
    larger = recordings.in_memory(4, recordings.ring(4, 1, 18 * 10**6), host=lambda rank: f"n{rank // 2}")
    found = project(larger, profile(), recorded_place(larger), faster)
    assert advise_program(found).ranked[0].method != AS_RECORDED
    (phase,) = (one for one in found.phases if one.changes)
    outside = tuple(replace(one, basis=EXTRAPOLATED) for one in phase.changes)
    advice = advise_program(replace(found, phases=(replace(phase, changes=outside),)))
    assert advice.ranked[0].method == AS_RECORDED


@pytest.mark.parametrize("each", [0, 1])
def test_messages_of_no_byte_or_one_are_projected(each):
    tiny = recordings.in_memory(3, recordings.ring(3, 1, each))
    slower = profile(latency_s=2e-3)
    found = project(tiny, profile(latency_s=1e-3), recorded_place(tiny), Changes(profiles={"slow": slower}))
    (change,) = changes_of(found, OTHER_MPI)
    assert change.time_s.value == pytest.approx(0.5 + 1e-3)


def test_messages_of_a_few_bytes_are_not_partitioned():
    early = Changes(early=EarlySending(4, 0.0))
    for each, is_projected in ((1000, False), (2000, True)):
        recording = recordings.in_memory(3, recordings.ring(3, 1, each))
        found = project(recording, profile(latency_s=1e-3), recorded_place(recording), early)
        assert bool(changes_of(found, PARTITIONS)) is is_projected


@pytest.mark.parametrize(
    ("names", "is_projected"),
    [
        ({}, True),
        ({"MPI_Isend": "MPI_Send"}, True),  # receives are posted before
        ({"MPI_Isend": "MPI_Send", "MPI_Irecv": "MPI_Recv"}, False),
        ({"MPI_Irecv": "MPI_Recv"}, False),  # a message may depend on the one received before
        ({"MPI_Isend": "MPI_Send", "MPI_Irecv": "MPI_Probe", "MPI_Waitall": "MPI_Recv"}, False),
    ],
)
def test_messages_that_may_depend_on_each_other_are_not_packed(names, is_projected):
    recording = with_calls(recordings.in_memory(2, [(0, 1, 5, 1000), (1, 0, 5, 1000)]), names)
    found = project(recording, profile(latency_s=0.01), recorded_place(recording), Changes())
    assert bool(changes_of(found, AGGREGATION)) is is_projected


def test_of_ranks_that_poll_or_have_several_threads_no_balance_is_known():
    recording = recordings.in_memory(4, recordings.ring(4, 1, EACH), lambda rank: 1.0 if rank else 0.2)
    assert work_balance(recording).rank == 0
    assert work_balance(polling(recording, 100)) is None
    ranks = {}
    for rank, one in recording.ranks.items():
        entries = one.entries.copy()
        entries["thread"][0] = 1
        ranks[rank] = replace(one, entries=entries, thread_level="multiple")
    assert work_balance(replace(recording, ranks=ranks)) is None


def test_phases_too_small_to_project_are_named_if_nothing_else_is_projected():
    recording = recordings.in_memory(2, recordings.ring(2, 1, EACH))
    ranks = {
        rank: replace(
            one, phases={k: replace(p, time_s=1e-3 if k == 1 else 0.1) for k, p in one.phases.items()}
        )
        for rank, one in recording.ranks.items()
    }
    found = project(replace(recording, ranks=ranks), profile(), place("1x1x2"), Changes())
    assert any("`--phase 2` projects one" in note for note in found.notes)
    assert not any(
        "--phase" in note
        for note in project(
            recording, profile(), place("1x1x2"), Changes(profiles={"other": profile()})
        ).notes
    )


def test_a_recording_that_ended_early_is_named():
    recording = recordings.in_memory(2, recordings.ring(2), end=lambda rank: None if rank else "finalize")
    found = project(recording, profile(), place("1x1x2"), Changes())
    assert any("rank 1 did not reach the end of MPI_Finalize" in note for note in found.notes)


def test_small_gains_are_counted_and_not_listed():
    recording = recordings.in_memory(2, [(0, 1, 5, 1000), (1, 0, 5, 1000)], lambda rank: 0.01)
    found = project(recording, profile(latency_s=1e-4), place("1x1x2"), Changes())
    assert changes_of(found, AGGREGATION)
    advice = advise_program(found)
    assert [one.method for one in advice.ranked] == [AS_RECORDED]
    assert any("1 change of less than 1 % of the run is left out" in note for note in advice.notes)


def test_what_is_unknown_is_left_out_with_a_note():
    bare = replace(profile(), levels={"inter_node": profile().levels["inter_node"]})
    found = project(HALVES, bare, recorded_place(HALVES), Changes([place("2x1x2", "node")]))
    assert found.phases[0].model_s is None
    assert found.phases[0].changes == ()
    assert "no level intra_socket" in found.phases[0].notes[0]
    (note,) = (note for note in found.notes if "allreduce is not projected" in note)
    assert "measure collective --op allreduce --layout 2x1x2 --sizes" in note
    assert "--hosts n0,n1 -o RUN" in note and "--profile allreduce.json" in note
    assert "ranks shared cores" not in note


def test_where_ranks_shared_cores_a_core_for_each_is_asked_for_before_measuring(monkeypatch):
    bare = replace(profile(), levels={"inter_node": profile().levels["inter_node"]})
    monkeypatch.setattr(type(HALVES), "core_wait_share", 0.4)
    found = project(HALVES, bare, recorded_place(HALVES), Changes())
    (note,) = (note for note in found.notes if "allreduce is not projected" in note)
    assert note.index("measure with a core for each rank") < note.index("`earlybird measure")


def test_a_layout_of_other_ranks_is_refused():
    with pytest.raises(InputError, match=r"4 ranks and the layout 1x1x8 has 8"):
        project(HALVES, profile(), place("1x1x8"), Changes())
    with pytest.raises(InputError, match="phases 1 to 2"):
        project(HALVES, profile(), recorded_place(HALVES), Changes(), only_phase=3)
    gone = recordings.in_memory(4, recordings.ring(4), absent=(2,))
    with pytest.raises(InputError, match="give --layout"):
        recorded_place(gone)


def test_what_the_changed_communication_takes_remains():
    """Ranks whose times in the MPI differ, in a phase that is nearly all communication."""
    waiting_s = {0: 0.499, 1: 0.1, 2: 0.499, 3: 0.499}
    recording = recordings.in_memory(
        4, recordings.ring(4, 1, EACH), waiting_s.get, host=lambda rank: f"n{rank // 2}"
    )
    slow = profile(network=2e7)
    found = project(
        recording, slow, recorded_place(recording), Changes(profiles={"fast": profile(network=1e10)})
    )
    (change,) = changes_of(found, OTHER_MPI)
    outside_s = 0.5 - sum(waiting_s.values()) / 4
    assert outside_s < change.time_s.low <= change.time_s.value < change.time_s.high
    assert change.speed_up.high < 10


def turns(size):
    """Each rank sends to every other one in turn."""
    return [[(rank, (rank + by) % size, 1, EACH) for rank in range(size)] for by in range(1, size)]


def test_a_shift_by_turns_costs_the_mean_of_its_turns_and_never_an_incast():
    recording = recordings.of_epochs(4, turns(4) * 2)
    measured = MeasuredPhase(recording, heaviest_phase(recording))
    patterns = [Pattern(*np.array(messages).T[[0, 1, 3]]) for messages in turns(4)]
    how = Communication(place("4x1x1"), profile(), "fair")
    each_s = [exchange_cost(PhaseExchange((pattern,), (1.0,)), how) for pattern in patterns]
    cost = exchange_cost(measured.exchange, how)
    assert cost.value_s == pytest.approx(np.mean([one.value_s for one in each_s]))
    assert (measured.exchange.num_messages, measured.exchange.mean_bytes) == (4, EACH)


def test_where_single_epochs_are_not_known_the_recording_is_named_and_not_the_profile():
    recording = recordings.of_epochs(4, turns(4) * 2)
    ranks = {rank: replace(one, epoch_samples={}) for rank, one in recording.ranks.items()}
    changes = Changes([place("2x1x2", "node")])
    found = project(replace(recording, ranks=ranks), profile(), place("4x1x1"), changes)
    assert not changes_of(found, LAYOUT)
    (note,) = found.phases[0].notes
    assert "differ between its epochs, and this recording keeps only their sums; record" in note


def test_an_exchange_of_too_many_messages_is_left_out_with_a_note(monkeypatch):
    monkeypatch.setattr(recorded, "MAX_MESSAGES", 3)
    found = project(HALVES, profile(), recorded_place(HALVES), Changes([place("2x1x2", "node")]))
    assert not changes_of(found, LAYOUT)
    assert "its messages are not projected: there are 4 messages" in found.phases[0].notes[0]
