"""Simulated programs on the page: before and after, the critical path, and what to do."""

from dataclasses import replace
from pathlib import Path

import pytest

from earlybird.data.files import write_json
from earlybird.data.recording import load_recording
from earlybird.data.simulated_program import (
    AS_RECORDED,
    CHANGED,
    COMPUTING,
    RECORDED,
    WAITING,
    simulated_program_from_json,
)
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.present.subjects.program.tables import phases_table
from earlybird.record import simulation
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.operations import operations_of
from earlybird.record.sites import with_recording, with_sleep
from earlybird.record.window import parse_window
from tests.python.record.test_simulation import END_S, LAYOUT, MEET_S, PROFILE, SENT_S, recorded
from tests.recordings import in_memory, ring

__all__ = ["recorded"]


@pytest.fixture
def simulated(recorded):
    """simulated(change) is the simulation with half the computing before MPI_Allreduce, or as recorded."""
    recording = load_recording(recorded())
    operations = operations_of(recording)
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)

    def make(is_changed=True):
        changes = [simulation.computing_change(operations, "MPI_Allreduce", 0.5)] * is_changed
        return with_recording(simulation.predict_program(operations, given, changes), recording)

    return make


def test_timelines_are_of_the_recorded_and_of_the_simulated_runs(simulated):
    found = simulated()
    assert [one.run for one in found.timelines] == [RECORDED, AS_RECORDED, CHANGED]
    before, after = found.timelines[1:]
    assert (before.run_s, after.run_s) == pytest.approx((found.as_recorded_s, found.simulated_s))
    rank_1 = before.threads[1]
    states = [
        rank_1.state[sum(begin_s <= moment_s for begin_s in rank_1.begin_s) - 1]
        for moment_s in (0.5 * SENT_S, SENT_S + 0.02, MEET_S - 0.02, END_S - 0.02)
    ]
    assert states == [WAITING, COMPUTING, WAITING, COMPUTING]
    assert found.timelines[0].threads[1].state[1] == "in MPI"
    assert simulated_program_from_json(found.to_json()) == found


def test_efficiencies_over_time_have_the_mean_of_the_run(simulated):
    found = simulated(False)
    mean = sum(one.parallel for one in found.windows) / len(found.windows)
    assert mean == pytest.approx(found.efficiency.parallel, rel=0.02)
    assert found.windows[0].begin_s == 0 and found.windows[-1].end_s == pytest.approx(found.simulated_s)


def test_phases_of_the_recording_are_shown_with_their_simulated_times(simulated):
    found = simulated(False)
    assert {one.number for one in found.recorded_phases} == {1, 2}
    assert all(one.epochs and one.calls for one in found.recorded_phases)
    assert {"epochs", "recorded", "recorded in MPI"} <= set(phases_table(found).header)


def test_phases_of_a_window_are_shown_without_what_is_known_of_the_whole_run_only(recorded):
    recording = load_recording(recorded())
    operations = operations_of(recording, parse_window("MPI_Allreduce:1..1"))
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    simulated = simulation.predict_program(operations, given)
    rows = tuple(replace(row, phases=(2,)) for row in simulated.phases)  # the trace has no places
    found = with_recording(replace(simulated, phases=rows), recording)
    assert simulated_program_from_json(found.to_json()) == found
    table = phases_table(found)
    assert (
        not {"epochs", "recorded"} & set(table.header) and "in --window MPI_Allreduce:1..1" in table.caption
    )
    assert [one.number for one in table.items] == [2]


def test_nothing_is_advised_for_main_threads_that_sleep(simulated):
    """They wait for other threads of their rank: that is no computing."""
    recording = load_recording(Path(simulated(False).recording))

    def of(ran_s):
        ranks = {
            rank: replace(one, entries=one.entries[:0], run_s=2.0, ran_s=ran_s, core_wait_s=0.0)
            for rank, one in recording.ranks.items()
        }
        return with_sleep(simulated(False), replace(recording, ranks=ranks))

    assert of(0.5).remedy().startswith("What costs most is not known, since main threads sleep for 75 %")
    assert any("main threads slept for 75 % of the run" in note for note in of(0.5).notes)
    assert of(1.95).slept_share == 0 and of(1.95).notes == simulated(False).notes


def test_a_change_is_the_answer_with_its_interval(simulated):
    result = contents(Material(simulations=(simulated(),))).chapters["simulation"]
    (answer,) = result.answers
    assert answer.number == "speed-up 1.19" and "With --compute MPI_Allreduce=0.5x" in answer.sentence
    assert answer.do == "run the program with the change to check it"
    assert [figure.id for figure in result.figures] == [
        "simulation-changes", "simulation-timeline-0", "simulation-windows-0", "simulation-path-0",
    ]  # fmt: skip
    alone = contents(Material(simulations=(simulated(False),))).chapters["simulation"].answers[0]
    assert alone.number.startswith("parallel efficiency") and "Recorded 310 ms" in alone.sentence


def test_the_page_and_the_terminal_show_several_simulations(simulated, tmp_path):
    record = replace(simulated(), recording="rec <b>")
    paths = [tmp_path / "plain.json", tmp_path / "changed.json"]
    for path, one in zip(paths, (simulated(False), record), strict=True):
        write_json(path, one.to_json())
    material = collect(paths)
    text, html = render(material), page.render(material)
    assert "--compute MPI_Allreduce=0.5x" in text and "rec &lt;b&gt;" in html and "rec <b>" not in html
    assert "Timeline before and after" in html and len(html) < 6_000_000


def test_tolerated_latencies_and_bandwidths_are_drawn(recorded):
    recording = load_recording(recorded(50_000_000))
    operations = operations_of(recording)
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    found = simulation.predict_program(operations, given, with_tolerance=True)
    result = contents(Material(simulations=(found,))).chapters["simulation"]
    (figure,) = [one for one in result.figures if one.id == "simulation-tolerance-0"]
    assert {line["name"] for line in figure.data} == {"Latency, same socket", "Bandwidth, same socket"}
    assert all(line["x"] == sorted(line["x"]) for line in figure.data)


def test_a_recording_without_a_simulation_says_how_to_make_one():
    material = Material(recordings=(in_memory(4, ring(4)),))
    asked = [one.command for one in contents(material).absent]
    assert any("&& earlybird predict program " in command for command in asked)
    assert any("&& earlybird advise program " in command for command in asked)
    assert not any("predict program" in one.command for one in contents(Material()).absent)
