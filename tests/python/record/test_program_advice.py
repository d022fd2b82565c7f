"""Advice on a recorded program: changes are simulated alone and together, and what is not known is said."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.recording import load_recording
from earlybird.record import program_changes
from earlybird.record.advice import AS_RECORDED, ProgramQuestion, advise_program
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.operations import operations_of
from earlybird.record.placement import Placement, other_mappings, recorded_place
from earlybird.record.program_changes import COLLECTIVE, EVEN_WORK, Candidate, collective_cost_change
from earlybird.record.simulation import balance_change, computing_change, predict_program
from tests import recordings
from tests.python.record.summed_recordings import HALVES, collectives, place, profile
from tests.python.record.test_simulation import BANDWIDTH, END_S, PROFILE, level, recorded

__all__ = ["recorded"]
BIG = 50_000_000  # takes 50 ms


def _question(folder, waited=0.0, **more):
    recording = load_recording(folder)
    ranks = {
        rank: replace(one, core_wait_s=waited * one.run_s) for rank, one in recording.ranks.items()
    }  # fmt: skip
    recording = replace(recording, ranks=ranks)
    place = Placement(parse_layout("1x1x2"), "1x1x2")
    return ProgramQuestion(recording, operations_of(recording), PROFILE, place, **more)


def test_another_mpi_is_simulated_and_advised_if_clearly_faster(recorded):
    fast = replace(PROFILE, levels={"intra_socket": level("intra_socket", bandwidth=1e11)})
    slow = replace(PROFILE, levels={"intra_socket": level("intra_socket", bandwidth=9e8)})
    folder = recorded(BIG)
    found = advise_program(_question(folder, profiles={"fast.json": fast, "slow.json": slow}))
    assert [one.method for one in found.ranked][:2] == ["fast.json", AS_RECORDED]
    first = found.ranked[0]
    assert first.speed_up.value == pytest.approx(END_S / (END_S - 0.99 * BIG / BANDWIDTH), rel=1e-3)
    assert first.speed_up.low <= first.speed_up.value <= first.speed_up.high
    assert first.action == "use the MPI of fast.json"
    assert any(text.startswith("mpi: the two profiles") for text in found.extra["assumptions"])
    assert advise_program(_question(folder, profiles={"slow.json": slow})).ranked[0].method == AS_RECORDED


def test_changes_that_help_are_simulated_together_and_not_added(recorded, monkeypatch):
    """Half the computing of either rank before the sum they wait for, and both."""
    question = _question(recorded())
    operations = question.operations
    halves = [
        Candidate(kind, name, f"do {name}", computing_change(operations, name, 0.5))
        for kind, name in ((COLLECTIVE, "MPI_Isend"), (EVEN_WORK, "MPI_Allreduce"))
    ]
    monkeypatch.setattr(
        "earlybird.record.advice._candidates", lambda _: program_changes.Candidates(list(halves))
    )
    found = advise_program(question)
    times_s = {one.method: one.time_s.value for one in found.ranked}
    both = next(name for name in times_s if ", with " in name)
    assert set(times_s) == {AS_RECORDED, "MPI_Isend", "MPI_Allreduce", both}
    saved_s = {name: times_s[AS_RECORDED] - time_s for name, time_s in times_s.items()}
    assert saved_s[both] > max(saved_s["MPI_Isend"], saved_s["MPI_Allreduce"])
    assert saved_s[both] == pytest.approx(0.1, abs=1e-3)
    assert found.ranked[0].method == both and found.ranked[0].action.count("; ") == 1


def test_gain_of_a_change_is_not_known_where_ranks_waited_for_cores(recorded):
    slow = replace(PROFILE, levels={"intra_socket": level("intra_socket", bandwidth=9e8)})
    found = advise_program(_question(recorded(BIG), waited=0.4, profiles={"slow.json": slow}))
    assert [one.method for one in found.ranked] == [AS_RECORDED]
    assert any("slow.json: nothing can be said" in note and "40 %" in note for note in found.notes)
    assert "give every rank a core" in found.ranked[0].action


def test_cost_of_a_collective_is_scaled_after_those_it_waits_for(recorded):
    question = _question(recorded())
    operations = question.operations
    factor = [3.0 if call == "MPI_Allreduce" else 1.0 for call, _ in operations.sites]
    given = conditions_as_recorded(operations, PROFILE, question.place.layout)
    found = predict_program(operations, given, [collective_cost_change(operations, np.array(factor), "x")])
    assert found.simulated_s - found.as_recorded_s == pytest.approx(2 * 0.001, abs=1e-7)


def test_algorithms_that_are_not_in_the_profile_are_named_with_the_command(recorded):
    found = advise_program(_question(recorded()))
    (note,) = (one for one in found.notes if "other algorithms of allreduce" in one)
    assert "earlybird measure collective --op allreduce" in note


def test_messages_in_partitions_are_simulated_if_their_number_is_known(recorded):
    question = _question(recorded(BIG))
    assert not any("noise" in one.method for one in advise_program(question).ranked)
    found = advise_program(replace(question, partitions=4, noise_share=0.5))
    (row,) = [one for one in found.ranked if one.method == "4 partitions with 50 % noise"]
    # Half of what is computed before the send hides all but the last quarter of the message.
    assert row.speed_up.value == pytest.approx(END_S / (END_S - 0.75 * BIG / BANDWIDTH), rel=1e-2)
    assert "MPI_Psend_init with 4 partitions" in row.action


def test_even_work_is_simulated(recorded):
    question = _question(recorded())
    assert balance_change(question.operations, "all").text == "--balance all"
    assert advise_program(question).ranked[0].method in (AS_RECORDED, "even work")


def test_layouts_are_those_of_the_hosts_and_of_the_other_orders():
    here = recorded_place(HALVES)
    assert (here.text, here.map_by) == ("2x1x2", "core")
    assert [other.layout.text for other in other_mappings(here)] == ["2x1x2 by node"]
    missing = recordings.in_memory(3, recordings.ring(3), absent=(1,))
    with pytest.raises(InputError, match="give --layout"):
        recorded_place(missing)
    assert place("1x1x4").layout.num_ranks == 4 and profile().levels and collectives().size == 4
