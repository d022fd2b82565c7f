"""Threads of a program that are created, joined and meet at barriers, in the trace of every MPI."""

import numpy as np
import pytest

from earlybird.data.recorded_trace import BEGINS, CREATES, ENDS, JOINS, MEETS, load_traces
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.machine.openmp import find_runtime
from earlybird.models.program import Operation
from earlybird.record.operations import operations_of
from earlybird.toolchain.build import RECORDER, library_path

pytestmark = pytest.mark.mpi

STEPS, WORKERS, FIRST_US, SECOND_US = 8, 2, 2000, 6000
ARGUMENTS = (STEPS, FIRST_US, SECOND_US, 1000, "meet")


@pytest.fixture
def record_workers(own_process, compiled, tmp_path):
    """record_workers(mpi, *options, program, arguments): the recording of a program of two ranks."""

    def run(mpi, *options, program="record_workers", arguments=ARGUMENTS, flags=("-pthread",)):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
        own_process(
            "record", "-o", "rec", "--mpi", mpi, *options, "--", *launch,
            compiled(flavour, program, list(flags)), *arguments, timeout=120,
        )  # fmt: skip
        return load_recording(tmp_path / "rec")

    return run


def test_threads_are_in_the_trace(mpi, record_workers):
    recording = record_workers(mpi, "--events", "all")
    traces = load_traces(recording)
    assert not len(traces[1].threads) and all(trace.is_whole for trace in traces.values())
    threads = traces[0].threads
    num = dict(zip(*np.unique(threads.event, return_counts=True), strict=True))
    assert num == dict.fromkeys((CREATES, BEGINS, ENDS, JOINS, MEETS), WORKERS * STEPS)
    for event in (CREATES, BEGINS, ENDS, JOINS):
        assert sorted(threads.identity[threads.event == event]) == list(range(1, WORKERS * STEPS + 1))
    at = {
        event: {int(k): row for k, row in zip(threads.identity[here], np.flatnonzero(here), strict=True)}
        for event in (CREATES, BEGINS, ENDS, JOINS) for here in [threads.event == event]
    }  # fmt: skip
    for serial in range(1, WORKERS * STEPS + 1):
        created, begun, ended, joined = (at[event][serial] for event in (CREATES, BEGINS, ENDS, JOINS))
        assert threads.begin_s[created] <= threads.begin_s[begun] < threads.end_s[ended]
        assert threads.end_s[ended] <= threads.end_s[joined]
        assert threads.thread[begun] == threads.thread[ended] != threads.thread[joined] == 0
        # A thread works for so long, and the one that joins it waits for it.
        work_s = 1e-6 * (FIRST_US if serial % 2 else SECOND_US)
        assert threads.end_s[ended] - threads.begin_s[begun] >= work_s
    meets = threads.event == MEETS
    assert set(threads.num_meeting[meets]) == {WORKERS} and len(set(threads.identity[meets])) == 1
    # The calls of threads are no calls of the MPI.
    assert not any(total.name.startswith("pthread") for total in recording.call_totals())
    # Its joins take most of the time of the main thread, so that it sleeps in nothing that is not known.
    own = recording.ranks[0]
    assert own.joined_s >= 0.9e-6 * STEPS * SECOND_US
    operations = operations_of(recording)
    assert len(operations.thread_rank) == 2 + WORKERS * STEPS and operations.num_unmatched == 0
    assert not set(operations.kept_s) & set(one for one in own.calls if one.startswith("pthread"))
    places = {place.partition(" (")[0] for call, place in operations.sites if call.startswith("pthread")}
    assert places == {"send_by_workers", "work"}


def test_without_events_threads_are_left_alone(mpi, record_workers):
    recording = record_workers(mpi)
    assert recording.ranks[0].joined_s == 0 and load_traces(recording) == {}


def test_threads_of_parallel_regions_are_in_the_trace(any_mpi, record_workers):
    """The runtime says when the threads of the program begin and arrive."""
    runtime = find_runtime()
    if runtime is None:
        pytest.skip("no OpenMP runtime with OMPT is installed (libomp5 of Debian, intel-openmp of PyPI)")
    threads, steps, regions, delay_ms = 4, 12, 3, 10  # of omp_arrivals.c
    recording = record_workers(
        any_mpi, "--events", "all", "--openmp", runtime, program="omp_arrivals", arguments=(delay_ms,),
        flags=("-fopenmp",),
    )  # fmt: skip
    for trace in load_traces(recording).values():
        found = trace.threads
        of_regions = np.array([name.startswith("omp") for name in recording.ranks[0].calls])[found.call]
        num = dict(zip(*np.unique(found.event[of_regions], return_counts=True), strict=True))
        assert num == dict.fromkeys((CREATES, BEGINS, ENDS, JOINS), (threads - 1) * steps * regions)
    operations = operations_of(recording)
    assert len(operations.thread_rank) == 2 * (1 + (threads - 1) * steps * regions)
    # Thread t of the delayed regions takes t + 1 times the delay or more; less where it begins late.
    delayed = [
        site for site, (call, place) in enumerate(operations.sites)
        if call == "omp_arrive" and place.startswith("delayed")
    ]  # fmt: skip
    here = np.isin(operations.site, delayed) & (operations.operation == Operation.COMPUTE)
    own_s = np.sort(operations.own_s[here].reshape(2, -1), axis=1).reshape(2, threads - 1, steps)
    assert np.all(np.median(own_s, axis=2) >= 0.9e-3 * delay_ms * np.arange(2, threads + 1))
    # The first thread waits there for the others, most of the time until the last one arrives.
    assert all(own.joined_s >= 1.5e-3 * delay_ms * steps for own in recording.ranks.values())


def test_threads_that_the_program_keeps_to_itself_are_left_out(mpi, record_workers):
    """Threads of former steps, detached ones, joins that fail, and barriers that are made again."""
    recording = record_workers(mpi, "--events", "all", program="record_odd_threads", arguments=())
    traces = load_traces(recording)
    for trace in traces.values():
        threads = trace.threads
        assert trace.is_whole
        joined = threads.identity[threads.event == JOINS]
        assert len(np.unique(joined)) == len(joined) == 30
        assert set(joined) <= set(threads.identity[threads.event == ENDS])
        meets = threads.event == MEETS
        assert sorted(set(threads.num_meeting[meets])) == [2, 3]
        assert len(set(threads.identity[meets])) == 2
    assert operations_of(recording).num_unmatched == 0
