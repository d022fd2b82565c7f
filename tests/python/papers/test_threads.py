"""The article on message rates of threads: its four runs, with the rate of each thread."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.run import Sample
from earlybird.measure.groups import Library, Options, Resources
from earlybird.papers.page import place_line
from earlybird.papers.registry import PAPERS, paper_chapters
from earlybird.present.material import Material, MeasuredRun

THREADS = PAPERS["threads"]


def sample(method, threads, seconds, of_threads, **more):
    config = {"mpi": "here", "level": "intra_socket", "size_bytes": 8, "window": 64, "threads": threads}
    config |= more
    times_s = np.full(9, seconds)
    return Sample(
        "msgrate", "time_per_window", config, "0", times_s, method=method, rounds=np.arange(9),
        extra={"thread_times_s": [of_threads] * 9},
    )  # fmt: skip


def material(*samples, version="MPICH 4.3"):
    header = {"settings": {"reproduce": "threads"}, "machine": {"cores": 2}}
    launch = {"id": "0", "flavour": "here", "library_version": version}
    return Material(runs=(MeasuredRun("run", header, (launch,), samples),))


def test_the_plan_has_the_four_runs_of_the_article():
    resources = replace(Resources.of(4, 1, 2), family="mpich", library=Library("mpich"))
    (step,) = THREADS.plan(Options(), resources, "mpich")
    shapes = {(method, group.threads, group.vcis) for group in step.groups for method in group.methods}
    assert {
        ("shared", 1, None), ("shared", 2, None), ("per-thread", 1, None), ("per-thread-contexts", 2, 2),
        ("funneled", 2, None), ("serialized", 2, None),
    } <= shapes  # fmt: skip
    assert {point["level"] for group in step.groups for point in group.points} == {"inter_node"}
    assert not THREADS.remarks(Options(), resources)
    openmpi = replace(resources, family="openmpi")
    assert "no contexts" in THREADS.remarks(Options(), openmpi)[0]


@pytest.mark.parametrize(("version", "name"), [("MPICH 4.3", "MPICH"), ("Intel(R) MPI 2021", "Intel MPI")])
def test_rates_of_threads_are_next_to_those_of_the_article(version, name):
    measured = material(
        sample("shared", 1, 64e-6, [64e-6]),
        sample("shared", 2, 128e-6, [64e-6, 128e-6]),
        sample("shared", 2, 12e-6, [12e-6, 12e-6], vcis=2),
        sample("per-thread-contexts", 2, 32e-6, [32e-6, 16e-6], vcis=2),
        version=version,
    )
    rows = {(row.figure, row.quantity): row.here for row in THREADS.rows(measured)}
    assert rows[f"{name}, one communicator", "one thread"] == "1.00"
    assert rows[f"{name}, one communicator", "two threads, thread 0"] == "1.00"
    assert rows[f"{name}, one communicator", "two threads, thread 1"] == "0.5"
    assert rows[f"{name}, one communicator", "two threads together"] == "1.00"
    contexts = f"{name}, a communicator and context each"
    assert rows[contexts, "two threads, thread 1"] == "4.00"
    assert rows[contexts, "two threads together"] == "4.00" and rows[contexts, "one thread"] == ""
    (chapter,) = paper_chapters(measured)
    assert [row[-1] for row in chapter.tables[0].rows] == [
        "1.00", "1.00, 0.5", "5.33, 5.33", "2.00, 4.00",
    ]  # fmt: skip


def test_notes_and_the_line_below_the_table_name_the_cores_and_nodes():
    crowded = replace(sample("shared", 2, 128e-6, [64e-6, 128e-6]), oversubscribed=True)
    measured = material(crowded)
    notes = [row.note for row in THREADS.rows(measured) if row.here]
    assert notes and all("more threads than cores (2 cores here)" in note for note in notes)
    assert place_line(measured, "threads") == "Here: unnamed machine (2 cores), 1 node."
    assert place_line(Material(), "threads") == "" and "million messages per second" in THREADS.legend
