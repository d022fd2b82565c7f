"""What threads send on shared communicators, and the collectives of a phase, from sums of a recording."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.advice import EXTRAPOLATED, MEASURED
from earlybird.data.methods import CONTEXTS, PER_THREAD, SHARED
from earlybird.data.phases import find_phases
from earlybird.record.measured_phase import MeasuredPhase
from earlybird.record.program_changes import communicator_notes
from earlybird.record.thread_messages import thread_message_costs
from tests import recordings
from tests.python.record.summed_recordings import collectives, place, profile, with_calls


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


def _notes(recording, rates, where):
    return communicator_notes(recording, find_phases(recording), rates, place(where))


def test_threads_that_share_a_communicator_are_told_what_message_rates_say():
    own, contexts = _notes(of_threads(), measured_rates(), "1x1x2")
    assert "2 threads share a communicator in phase 1, in which a message takes 1.00 times as long" in own
    assert "takes 2.00 times as long as with one for each with contexts" in contexts
    assert "MPIR_CVAR_CH4_NUM_VCIS=2" in contexts and "not simulated" in contexts
    assert {cost.basis for cost in thread_message_costs(measured_rates(), "intra_socket", 2, 8)} == {MEASURED}


def test_message_rates_of_other_threads_or_levels_are_not_used():
    for recording, rates in (
        (of_threads("serialized"), measured_rates()),
        (recordings.in_memory(2, recordings.ring(2), thread_level="multiple"), measured_rates()),
    ):
        assert not _notes(recording, rates, "1x1x2")
    for rates, where in (
        (measured_rates(threads=4), "1x1x2"),
        (measured_rates(), "2x1x1"),
        (measured_rates(oversubscribed=True), "1x1x2"),
        (profile(), "1x1x2"),
    ):
        (note,) = _notes(of_threads(), rates, where)
        assert "measure msgrate --threads 2" in note and "where each thread has a core" in note
    far = thread_message_costs(measured_rates(size_bytes=1 << 20), "intra_socket", 2, 8)
    assert {cost.basis for cost in far} == {EXTRAPOLATED}


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
