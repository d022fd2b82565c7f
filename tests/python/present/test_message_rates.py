"""Message rates are drawn per method, with a table and a sentence."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data import labels
from earlybird.data.run import Sample
from earlybird.present.contents import contents
from earlybird.present.core import axes
from earlybird.present.material import Material, MeasuredRun, collect
from earlybird.present.render.text import render
from earlybird.present.subjects.messages.figures import MAX_SETTINGS
from earlybird.present.subjects.messages.rates import message_rates, rate, threads

KEPT = sorted((Path(__file__).parents[3] / "docs" / "results").glob("msgrate-*"))

# Million messages per second of one and two threads, from the published figures of MPICH 4.2.1.
RATES = {("shared", 1): 3.44, ("shared", 2): 0.78, ("per-thread-contexts", 2): 6.67, ("processes", 2): 7.0}
LAUNCHES = (0.9, 1.0, 1.2)  # how many times slower


def sample(method, threads, rate, launch, size_bytes=8, mpi="mpich", oversubscribed=False, **more):
    config = {"mpi": mpi, "level": "inter_node", "size_bytes": size_bytes, "window": 64, "threads": threads}
    time_s = threads * 64 / (rate * 1e6) * LAUNCHES[launch]
    threads_s = time_s * np.linspace(0.8, 1, threads)
    return Sample(
        "msgrate", "time_per_window", config | more, str(launch), np.full(5, time_s), method=method,
        oversubscribed=oversubscribed, extra={"thread_times_s": np.tile(threads_s, (5, 1)).tolist()},
    )  # fmt: skip


def samples(**more):
    return tuple(
        sample(method, threads, rate, launch, **more, **({"vcis": 2} if method.endswith("contexts") else {}))
        for (method, threads), rate in RATES.items()
        for launch in range(len(LAUNCHES))
    )


def material(*parts):
    return Material(runs=(MeasuredRun("run", {}, (), sum(parts, ())),))


def machine(*parts):
    return contents(material(*parts)).chapters["machine"]


def lines(figure):
    go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    return {trace["name"]: trace for trace in figure.data if trace.get("name")}


def test_rates_with_reused_buffers_are_apart():
    new, reused = message_rates(material(samples(), samples(buffers="reuse")))
    assert reused.label == f"{new.label} with reused buffers"
    assert len(new.results) == len(reused.results) == len(RATES)


def cells(table, *heads):
    return [[row[table.header.index(head)] for head in heads] for row in table.rows]


def test_rates_are_given_for_all_threads_and_for_each():
    (one,) = message_rates(material(samples()))
    drawn = one.drawn()
    shared = drawn["shared"]
    assert list(map(threads, shared)) == [1, 2]
    assert rate(shared[1]) == pytest.approx((0.78e6, 0.65e6, 0.78e6 / 0.9))
    assert shared[1].figures["thread_rates_per_s"] == pytest.approx((0.39e6 / 0.8, 0.39e6))
    assert drawn["per-thread-contexts"][0].config["vcis"] == 2


def test_every_method_has_a_line_a_colour_and_a_row():
    chapter = machine(samples())
    (figure,) = chapter.figures
    drawn = lines(figure)
    assert list(drawn) == ["One communicator", "One communicator and context per thread", "Processes"]
    assert drawn["One communicator"]["x"] == [1, 2]
    assert drawn["One communicator"]["y"] == pytest.approx([3.44e6, 0.78e6])
    assert drawn["Processes"]["line"]["color"] == axes.color("processes") != axes.color("other")
    assert figure.layout["xaxis"]["ticktext"] == ["1", "2"]
    (table,) = chapter.tables
    assert cells(table, "threads", "method", "contexts", "Mmsg/s", "interval") == [
        ["1", "shared", "", "3.44", "2.87 .. 3.82"],
        ["2", "shared", "", "0.78", "0.65 .. 0.867"],
        ["2", "per-thread-contexts", "2", "6.67", "5.56 .. 7.41"],
        ["2", "processes", "", "7.00", "5.83 .. 7.78"],
    ]
    assert cells(table, "per thread")[1] == ["0.487 0.39"]
    assert any(
        "one communicator and context per thread (per-thread-contexts)" in line for line in chapter.lines
    )
    assert (
        "Between nodes, 2 threads of MPICH reach these rates in million 8 B messages per second: 0.78 with "
        "one communicator, 6.67 with one communicator and context per thread and 7.00 as 2 pairs of "
        "processes."
    ) in chapter.sentence
    assert "Message rates of threads" in render(material(samples()))


def test_the_answer_compares_methods_of_threads_and_names_the_reference():
    (answer,) = contents(material(samples())).answers
    assert answer.number == "6.67 million/s"
    assert answer.sentence.startswith(
        "One communicator and context per thread is the fastest method of threads"
    )
    assert (
        "for comparison, 2 pairs of processes, which have no threads, reach 7.00 million/s" in answer.sentence
    )
    equal = tuple(
        sample(method, 2, rate, launch)
        for method, rate in (("shared", 1.0), ("per-thread", 1.02), ("processes", 3.0))
        for launch in range(len(LAUNCHES))
    )
    (answer,) = contents(material(equal)).answers
    assert answer.number == "1.00 million/s"
    assert answer.sentence.startswith("No method of threads is clearly faster than one communicator")


def test_more_threads_than_cores_have_open_markers_and_a_remark():
    chapter = machine(samples(oversubscribed=True))
    (figure,) = chapter.figures
    assert lines(figure)["Processes"]["marker"]["symbol"] == ["triangle-up-open"]
    assert "oversubscribed" in cells(chapter.tables[0], "state")[1][0]
    assert "with more threads than cores" in chapter.sentence
    measured = contents(material(samples(oversubscribed=True))).chapters["measured"]
    assert "12 oversubscribed (more threads than cores)" in measured.sentence
    assert any("no more threads than cores" in remedy for remedy in measured.warnings)


def test_a_shared_communicator_with_contexts_is_only_in_the_table():
    with_contexts = tuple(sample("shared", 2, 0.7, launch, vcis=2) for launch in range(3))
    chapter = machine(samples(), with_contexts)
    assert lines(chapter.figures[0])["One communicator"]["y"] == pytest.approx([3.44e6, 0.78e6])
    assert ["2", "shared", "2"] in cells(chapter.tables[0], "threads", "method", "contexts")
    (alone,) = machine(with_contexts).figures
    assert list(lines(alone)) == ["One communicator"]


def test_several_mpis_share_a_figure():
    (figure,) = machine(samples(), samples(mpi="intel")).figures
    assert list(lines(figure))[::3] == ["Intel MPI, one communicator", "MPICH, one communicator"]


def test_settings_without_figures_are_counted_and_in_the_table():
    chapter = machine(*(samples(size_bytes=8 << k) for k in range(MAX_SETTINGS + 1)))
    assert chapter.figures[-1].title == "1 more setting" and "in the table" in chapter.figures[-1].absence
    assert len(chapter.tables[0].rows) == len(RATES) * (MAX_SETTINGS + 1)


def test_incomplete_samples_are_ignored_and_thread_times_are_optional():
    broken = Sample("msgrate", "time_per_window", {"size_bytes": 8}, "0", np.ones(3), method="shared")
    assert message_rates(material((broken,))) == []
    config = {"mpi": "mpich", "level": "inter_node", "size_bytes": 8, "window": 64, "threads": 1}
    for extra in ({}, {"thread_times_s": "often"}, {"thread_times_s": [[1.0]]}):
        bare = Sample("msgrate", "time_per_window", config, "0", np.ones(3), method="shared", extra=extra)
        (table,) = machine((bare,)).tables
        assert "per thread" not in table.header


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_results_in_the_docs_are_drawn_with_their_machine(folder):
    runs = sorted(folder.iterdir())
    material_of_runs = collect(runs)
    chapters = contents(material_of_runs).chapters
    measured, machine = chapters["measured"], chapters["machine"]
    for run, line in zip(material_of_runs.runs, measured.lines, strict=False):
        assert run.machine["host"] in line and run.machine["cpu_model"] in line
    (figure,) = machine.figures
    names = list(lines(figure))
    assert {name.partition(",")[0] for name in names} == {labels.flavour(run.name) for run in runs}
