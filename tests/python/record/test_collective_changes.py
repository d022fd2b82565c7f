"""The algorithms of a recorded collective are compared with what was recorded and with its settings."""

from dataclasses import replace

import pytest

from earlybird.data.advice import MEASURED, Advice, Alternative
from earlybird.data.phases import find_phases
from earlybird.data.schema import Estimate
from earlybird.record.collective_changes import (
    algorithm_changes,
    measured_place,
    reliability,
    selection_of,
)
from earlybird.record.measured_phase import MeasuredPhase
from tests.python.record.summed_recordings import collectives, place, profile

FORCED = {
    "mpich": {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "recursive_doubling"},
    "openmpi": {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_allreduce_algorithm": "3",
    },
    "intel": {"I_MPI_ADJUST_ALLREDUCE": "1"},
}  # fmt: skip
LIBRARIES = {"mpich": "MPICH Version: 5", "openmpi": "Open MPI v5", "intel": "Intel(R) MPI Library 2021"}
VARIABLES = {
    "mpich": "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
    "openmpi": "OMPI_MCA_coll_tuned_allreduce_algorithm",
    "intel": "I_MPI_ADJUST_ALLREDUCE",
}
# Of 12.5 ms that each of 8 calls took.
DEFAULT_S, DOUBLING_S, RING_S = 0.007, 0.012, 0.0071


def alternative(method, time_s):
    time_s = Estimate(time_s, 0.98 * time_s, 1.02 * time_s)
    speed_up = Estimate(*(DEFAULT_S / one for one in (time_s.value, time_s.high, time_s.low)))
    return Alternative(
        method, time_s, Estimate.exact(1.0) if method == "default" else speed_up, f"use {method}", MEASURED
    )


def compared(family, settings, times_s=(DEFAULT_S, DOUBLING_S, RING_S), is_reliable=lambda method: True):
    """What is known of the algorithms of a run of 2 s, 0.1 s of which are 8 calls of MPI_Allreduce."""
    methods = ("default", "recursive-doubling", "ring")
    ranked = [alternative(*pair) for pair in zip(methods, times_s, strict=True) if pair[1]]
    ranked.sort(key=lambda one: one.time_s.value)
    advice = Advice("collective", {}, "default", tuple(ranked))
    recording = collectives()
    ranks = {
        rank: replace(one, mpi=LIBRARIES[family], settings=settings) for rank, one in recording.ranks.items()
    }
    recording = replace(recording, ranks=ranks)
    (phase,) = (one for one in find_phases(recording) if "MPI_Allreduce" in one.calls)
    (recorded,) = MeasuredPhase(recording, phase).collectives
    selection = selection_of(recording, family, "allreduce", [one.method for one in ranked], 4)
    return algorithm_changes(recorded, advice, selection, family, is_reliable)


@pytest.mark.parametrize("family", list(FORCED))
def test_a_forced_algorithm_is_compared_with_the_default(family):
    found = compared(family, FORCED[family])
    (change,) = found.changes
    assert change.name == "allreduce of 8 B by the MPI's default"
    assert change.action.startswith(f"start the program without {VARIABLES[family]}")
    assert change.speed_up.value == pytest.approx(DOUBLING_S / DEFAULT_S)
    assert change.speed_up.low > 1
    (note,) = (one for one in found.notes if "was made with" in one)
    assert f"{VARIABLES[family]}=" in note and "which selects recursive-doubling" in note
    assert not any("the default of the MPI stays" in one for one in found.notes)


def test_of_a_forced_algorithm_that_is_not_in_the_profile_the_recorded_time_counts():
    found = compared("mpich", FORCED["mpich"], (DEFAULT_S, None, RING_S))
    (change,) = found.changes
    assert change.action.startswith("start the program without MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM")
    assert change.speed_up.value == pytest.approx(0.1 / (8 * DEFAULT_S))
    assert change.speed_up.low == 1.0  # all the rest may be waiting
    (cause,) = found.causes
    assert "start the program without" in cause


def test_a_file_of_rules_is_not_blamed_for_waiting():
    rules = {"OMPI_MCA_coll_tuned_dynamic_rules_filename": "rules"}
    for default_s, is_suspect in ((1e-5, False), (0.007, True), (0.011, False)):
        found = compared("openmpi", rules, (default_s, None, None))
        assert bool(found.changes) is bool(found.causes) is is_suspect
        assert any("was made with OMPI_MCA_coll_tuned_dynamic_rules_filename" in note for note in found.notes)


def test_unreliable_times_of_a_forced_algorithm_do_not_decide():
    times_s = (DEFAULT_S, DOUBLING_S, None)
    found = compared("mpich", FORCED["mpich"], times_s, lambda method: method != "default")
    assert not found.changes
    assert any("no algorithm of the profile is clearly faster" in note for note in found.notes)


def test_few_noisy_launches_are_unreliable():
    def known(launches):
        row = {
            "kernel": "collective", "quantity": "completion", "method": "default", "operation": "allreduce",
            "ranks": 4, "map_by": "core", "layout": "2x1x2", "size_bytes": 8, "time_s": 1e-5,
            "time_low_s": 1e-5, "time_high_s": 1e-5, "coverage": 0.9, "launches": launches, "noisy": launches,
        }  # fmt: skip
        return replace(profile(), extra={"results": [row]})

    for launches, wanted in ((3, False), (5, True)):
        is_reliable = reliability(known(launches), "allreduce", place("2x1x2"), 4)
        assert is_reliable("default") is wanted and is_reliable("ring")


def test_a_forced_algorithm_that_is_as_fast_is_left_alone():
    found = compared("mpich", FORCED["mpich"], (DEFAULT_S, DEFAULT_S, RING_S))
    assert not found.changes
    assert any("no algorithm of the profile is clearly faster" in note for note in found.notes)


@pytest.mark.parametrize("family", list(FORCED))
def test_without_recorded_settings_both_causes_of_slow_calls_are_named(family):
    found = compared(family, {})
    (change,) = found.changes
    (note,) = (one for one in found.notes if "does not hold settings" in one)
    assert "100 ms were recorded" in note and "predicts 56 ms for the default" in note
    assert "96 ms for recursive-doubling" in note and f"such as {VARIABLES[family]}, selected" in note
    assert change.speed_up.low == pytest.approx(1.0)
    assert change.speed_up.value == pytest.approx(0.1 / (8 * DEFAULT_S))
    (cause,) = found.causes
    assert f"look where the program is started for a setting, such as {VARIABLES[family]}," in cause


@pytest.mark.parametrize(
    ("times_s", "is_suspect"),
    [
        ((1e-5, 2e-5, 3e-5), False),  # of 12.5 ms for 8 B: nothing in the profile takes as long
        ((1e-5, None, None), False),
        ((0.007, None, None), True),  # the profile has no other one
        ((0.007, 0.0125, 0.0071), True),
    ],
)
def test_a_setting_is_suspected_where_an_algorithm_takes_as_long(times_s, is_suspect):
    found = compared("mpich", {}, times_s)
    assert bool(found.causes and "for a setting" in found.causes[0]) is is_suspect
    assert bool(found.changes) is is_suspect


def test_another_algorithm_than_the_default_is_set_instead_of_the_forced_one():
    (change,) = compared("intel", FORCED["intel"], (0.011, DOUBLING_S, 0.007)).changes
    assert change.action == "start the program with use ring instead of I_MPI_ADJUST_ALLREDUCE=1"


def test_a_recording_with_a_binding_and_no_setting_has_no_setting():
    recording = collectives()
    ranks = {rank: replace(one, binding=(0,)) for rank, one in recording.ranks.items()}
    known = selection_of(replace(recording, ranks=ranks), "mpich", "allreduce", ["default"], 4)
    assert known.settings == {} and not known.is_forced
    assert selection_of(recording, "mpich", "allreduce", ["default"], 4).settings is None


def test_with_recorded_settings_that_select_nothing_slow_calls_are_waiting():
    notes = compared("mpich", {"MPIR_CVAR_CH4_NUM_VCIS": "1"}).notes
    assert any("no recorded setting selects another algorithm, so ranks waited" in note for note in notes)


def test_calls_as_long_as_the_default_takes_are_no_reason_to_look_for_settings():
    found = compared("mpich", {}, (0.0125, 0.02, 0.0126))
    assert not found.changes and any("the default of the MPI stays" in note for note in found.notes)
    assert not found.causes


def test_a_placement_that_was_measured_is_known_by_another_name():
    """4 ranks on 4 nodes are those of 4x1x2 by node."""
    form = {
        "what": {"operation": "allreduce", "algorithm": "default", "mpi": "mpich"}, "form": "empirical",
        "parameters": {"protocols": [{"min_bytes": 0, "inter_node": {"alpha_s": 1e-5}}]},
        "range": {"ranks": [4, 4], "size_bytes": [8, 1024], "segments_bytes": [0]},
        "map_by": ["core", "node"], "levels": ["inter_node"],
        "machine": {"nodes": 4, "sockets": 1, "cores": 2},
        "measured": [[4, 8, 0, by, 1e-5] for by in ("core", "node")],
    }  # fmt: skip
    known = replace(profile(), forms=[form])
    for asked, wanted in (
        (place("4x1x1"), ("4x1x2", "node")),
        (place("2x1x2"), ("4x1x2", "core")),
        (place("2x1x2", "node"), ("2x1x2", "node")),  # nobody measured that
        (place("1x1x4"), ("1x1x4", "core")),
    ):
        there = measured_place(known, "allreduce", asked, 4)
        assert (there.text, there.map_by) == wanted
    assert measured_place(known, "bcast", place("4x1x1"), 4).text == "4x1x1"


def test_the_time_of_the_rank_that_waits_least_is_compared():
    recording = collectives()
    (phase,) = (one for one in find_phases(recording) if "MPI_Allreduce" in one.calls)
    (one,) = MeasuredPhase(recording, phase).collectives
    assert (one.calls, one.least_s) == (8, pytest.approx(0.1))
