"""Projections of what threads send and of collectives come out at values that can be computed by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from earlybird.data.advice import EXTRAPOLATED, MEASURED
from earlybird.data.methods import CONTEXTS, PER_THREAD, SHARED
from earlybird.data.phases import find_phases
from earlybird.data.projection import COMMUNICATORS, LAYOUT
from earlybird.record import projection
from earlybird.record.advice import AS_RECORDED, advise_program
from earlybird.record.costs import Cost
from earlybird.record.measured_phase import MeasuredPhase
from earlybird.record.projection import Changes, project, recorded_place
from earlybird.record.thread_messages import thread_message_costs
from tests import recordings
from tests.python.record.projecting import (
    changes_of,
    collectives,
    default_alone,
    place,
    polling,
    profile,
    with_calls,
)


def of_threads(thread_level="multiple"):
    """Two threads of each of two ranks, on one communicator: 1000 messages of 8 bytes each way and thread."""
    recording = recordings.in_memory(2, [(0, 1, 1000, 8), (1, 0, 1000, 8)], thread_level=thread_level)
    ranks = {}
    for rank, one in recording.ranks.items():
        other = one.entries[one.entries["phase"] == 1]
        other["thread"] = 1
        ranks[rank] = replace(one, entries=np.concatenate([one.entries, other]))
    return replace(recording, ranks=ranks)


def measured_rates(threads=2, size_bytes=8, **further):
    """A profile with message rates: 10 us for each message of a thread, twice as fast with contexts."""

    def result(method, time_s, **more):
        config = {"level": "intra_socket", "size_bytes": size_bytes, "threads": threads, "window": 64}
        time = {"time_s": time_s, "time_low_s": time_s, "time_high_s": time_s}
        return {"kernel": "msgrate", "quantity": "time", "method": method, **config, **more, **time,
                "coverage": 0.97, "launches": 6, **further}  # fmt: skip

    one = profile()
    rows = [result(SHARED, 64e-5), result(SHARED, 60e-5, vcis=2), result(CONTEXTS, 32e-5, vcis=2),
            result(PER_THREAD, 64e-5, speed_up=1.0, speed_up_low=1.0, speed_up_high=1.0)]  # fmt: skip
    return replace(one, extra=one.extra | {"results": rows})


def test_rates_of_messages_without_new_contents_are_not_taken():
    assert thread_message_costs(measured_rates(), "intra_socket", 2, 8)
    assert not thread_message_costs(measured_rates(buffers="reuse"), "intra_socket", 2, 8)


def test_threads_that_share_a_communicator_gain_what_message_rates_say():
    found = project(of_threads(), measured_rates(), place("1x1x2"), Changes())
    phase = found.phases[0]
    # Of two threads that are in the MPI at the same time, the longer time counts.
    assert phase.mpi_s == pytest.approx(0.2 + 2 * 1000e-6)
    contexts, own = sorted(changes_of(found, COMMUNICATORS), key=lambda one: one.time_s.value)
    assert contexts.basis == MEASURED and "MPIR_CVAR_CH4_NUM_VCIS=2" in contexts.action
    # A thread sends and receives 2000 messages of 10 us, which take 5 us with contexts.
    assert contexts.time_s.value == pytest.approx(0.5 - 2000 * 5e-6)
    assert contexts.time_s.low < contexts.time_s.value < contexts.time_s.high
    assert own.speed_up.value == pytest.approx(1.0)
    assert advise_program(found).ranked[0].method == AS_RECORDED  # 2 % of the phase are not clear


def test_message_rates_of_other_threads_or_levels_are_not_used():
    for recording, rates in (
        (of_threads("serialized"), measured_rates()),
        (recordings.in_memory(2, recordings.ring(2), thread_level="multiple"), measured_rates()),
    ):
        found = project(recording, rates, place("1x1x2"), Changes())
        assert not changes_of(found, COMMUNICATORS)
        assert not any("communicator in phase" in note for note in found.notes)
    for rates, where in (
        (measured_rates(threads=4), "1x1x2"),
        (measured_rates(), "2x1x1"),
        (measured_rates(oversubscribed=True), "1x1x2"),
        (profile(), "1x1x2"),
    ):
        found = project(of_threads(), rates, place(where), Changes())
        assert not changes_of(found, COMMUNICATORS)
        assert any("measure msgrate --threads 2" in note for note in found.notes)
        assert any("where each thread has a core" in note for note in found.notes)
    far = project(of_threads(), measured_rates(size_bytes=1 << 20), place("1x1x2"), Changes())
    assert {one.basis for one in changes_of(far, COMMUNICATORS)} == {EXTRAPOLATED}


def test_a_default_that_stays_is_named(monkeypatch):
    stays, ring = default_alone().ranked[0], SimpleNamespace(method="ring")
    for ranked, wanted in (
        (
            [stays, ring],
            "allreduce of 8 B: the default of the MPI stays, as no other algorithm is clearly faster",
        ),
        ([stays], "allreduce of 8 B: the profile has no algorithm but the default of the MPI"),
    ):
        advice = SimpleNamespace(ranked=ranked, baseline="default", notes=("ring is too noisy",))
        monkeypatch.setattr(projection, "advise_collective", lambda *_, a=advice, **__: (a, None))
        recording = collectives()
        found = project(recording, profile(), recorded_place(recording), Changes())
        notes = [note for phase in found.phases for note in phase.notes]
        assert wanted in notes and "ring is too noisy" in notes


def test_large_counts_are_the_same_collective():
    recording = with_calls(collectives(), {"MPI_Allreduce": "MPI_Allreduce_c"})
    phases = [MeasuredPhase(recording, phase) for phase in find_phases(recording)]
    assert [one.operation for phase in phases for one in phase.collectives] == ["allreduce"]


def test_collectives_of_threads_at_once_are_those_of_the_longest():
    alone = collectives(thread_level="multiple")
    ranks = {}
    for rank, one in alone.ranks.items():
        others = [one.entries.copy() for _ in range(2)]
        for thread, entries in enumerate(others, 1):
            entries["thread"] = thread
        ranks[rank] = replace(one, entries=np.concatenate([one.entries, *others]))
    several = replace(alone, ranks=ranks)
    for recording in (alone, several):
        (phase,) = (one for one in find_phases(recording) if "MPI_Allreduce" in one.calls)
        (found,) = MeasuredPhase(recording, phase).collectives
        assert (found.calls, found.size_bytes, found.least_s) == (8, 8, pytest.approx(0.1))


@pytest.mark.parametrize("level", ["serialized", "multiple"])
def test_collectives_on_duplicates_of_a_communicator_are_added_up(level):
    """One thread that calls by turns on MPI_COMM_WORLD and on a duplicate of it."""
    recording = collectives(thread_level=level)
    ranks = {}
    for rank, one in recording.ranks.items():
        other = one.entries[one.entries["call"] == recordings.ALLREDUCE]
        other["communicator"] = 2
        communicators = one.communicators | {2: recordings.world(rank, 4)}
        entries = np.concatenate([one.entries, other])
        ranks[rank] = replace(one, entries=entries, communicators=communicators)
    twice = replace(recording, ranks=ranks)
    (phase,) = (one for one in find_phases(twice) if "MPI_Allreduce" in one.calls)
    (found,) = MeasuredPhase(twice, phase).collectives
    assert (found.calls, found.least_s) == (16, pytest.approx(0.2))


@pytest.mark.parametrize("tests", [1, 100])
def test_a_layout_changes_exchange_and_collectives_of_a_phase_together(monkeypatch, tests):
    """Of 0.5 s, 0.2 s are waiting and 0.1 s MPI_Allreduce, which the layout makes ten times as fast."""
    recording = collectives()
    ranks = {}
    for rank, one in recording.ranks.items():
        entries = one.entries.copy()
        entries["phase"][entries["phase"] == 2] = 1
        ranks[rank] = replace(one, entries=entries)
    together = polling(replace(recording, ranks=ranks), tests)
    costs = iter([Cost(0.1, np.empty(0)), Cost(0.01, np.empty(0))] * 2)
    monkeypatch.setattr(projection, "collective_cost", lambda *_: next(costs))
    monkeypatch.setattr(projection, "advise_collective", lambda *_, **__: (default_alone(), None))
    # Ten times as much is predicted for the exchange as was recorded, and the layout makes it as fast.
    faster = Changes([place("1x1x4"), place("1x1x4")])
    found = project(together, profile(network=1e6, memory=1e9), recorded_place(together), faster)
    (change,) = changes_of(found, LAYOUT)
    left_s = 0.01 if tests == 100 else 0.2 + 0.01
    assert change.time_s.value == pytest.approx(left_s, abs=2e-3)
    assert change.time_s.low > left_s / 2
    assert change.speed_up.high < 1e3
