"""Pipelines are drawn per way, their gain beside equation (4), with the table behind both."""

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data.run import Sample
from earlybird.report import axes
from earlybird.report.chapters import chapters
from earlybird.report.material import Material, MeasuredRun
from earlybird.report.pipeline_figures import MAX_SETTINGS
from earlybird.report.pipelines import pipelines
from earlybird.report.terminal import render

BETA, GAMMA = 25e6, 1e-7  # gamma*beta = 2.5: equation (4) says 4/(4 - 2.5) with 4 partitions
GAINS = (2.4, 2.5, 2.55)  # of three launches


def samples(size_bytes=1 << 20, partitions=4, gamma=GAMMA, ways=("single", "many"), mpi="mpich"):
    config = {"mpi": mpi, "level": "inter_node", "size_bytes": size_bytes, "partitions": partitions}
    config["gamma_s_per_byte"] = gamma
    # What both ways of a round share must cancel in their ratio.
    drift = np.linspace(1, 3, 9)
    return tuple(
        Sample("pipeline", "time_to_solution", config, str(launch),
               size_bytes / BETA * drift / (1 if way == "single" else gain), way=way, rounds=np.arange(9))
        for launch, gain in enumerate(GAINS)
        for way in ways
    )  # fmt: skip


def material(*parts):
    launches = tuple({"id": str(k), "flavour": "mpich"} for k in range(len(GAINS)))
    return Material(runs=(MeasuredRun("run", {}, launches, sum(parts, ())),))


def machine(*parts):
    return chapters(material(*parts))[1]


def test_the_gain_is_that_of_times_taken_in_turn_beside_equation_4():
    (one,) = pipelines(material(samples()))
    (point,) = one.points
    assert one.ways() == ["single", "many"]
    assert point.gain == {"many": pytest.approx((2.5, 2.4, 2.55))}
    beta = (1 << 20) / point.time_s["single"][0]
    assert point.gain_theory == pytest.approx(4 / (4 - GAMMA * beta))


def test_ways_have_their_own_colours_and_the_gain_its_theory_line():
    chapter = machine(samples(), samples(1 << 16))
    time, gain = chapter.figures
    for figure in (time, gain):
        go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    lines = {trace["name"]: trace for trace in time.data if trace.get("name")}
    assert list(lines) == ["One message", "By partition"]
    assert [trace["line"]["color"] for trace in lines.values()] == [axes.color("single"), axes.color("many")]
    assert lines["By partition"]["x"] == [1 << 16, 1 << 20]
    many, theory = [trace for trace in gain.data if trace.get("name")]
    assert many["y"] == pytest.approx([2.5, 2.5]) and theory["name"] == "equation (4)"
    low, high = gain.data[0]["y"], gain.data[1]["y"]
    assert (low, high) == (pytest.approx([2.4, 2.4]), pytest.approx([2.55, 2.55]))
    assert (
        "Between nodes, MPICH sends 1 MiB as 4 partitions, the last one late, 2.50 times" in chapter.sentence
    )
    (table,) = chapter.tables
    assert table.rows[1][8:10] == ["2.50", "2.40 to 2.55"]
    assert "Pipelines: a buffer in partitions" in render(material(samples()))


def test_without_one_message_to_compare_with_the_gain_says_why_it_is_not_drawn():
    time, gain = machine(samples(ways=("many",))).figures
    assert time.data and "only such times make a gain" in gain.why_not


def test_more_settings_than_are_drawn_are_counted_and_in_the_table():
    few = machine(*(samples(gamma=k * 1e-9) for k in range(MAX_SETTINGS)))
    assert len(few.figures) == 2 * MAX_SETTINGS and not any(figure.why_not for figure in few.figures)
    many = machine(*(samples(gamma=k * 1e-9) for k in range(MAX_SETTINGS + 2)))
    assert len(many.figures) == 2 * MAX_SETTINGS + 1
    assert many.figures[-1].title == "2 more settings" and "in the table" in many.figures[-1].why_not
    assert len(many.tables[0].rows) == 2 * (MAX_SETTINGS + 2)


def test_several_mpis_share_a_figure():
    time, _ = machine(samples(), samples(mpi="openmpi")).figures
    names = [trace["name"] for trace in time.data if trace.get("name")]
    assert names == [
        "MPICH, one message",
        "MPICH, by partition",
        "Open MPI, one message",
        "Open MPI, by partition",
    ]


def test_a_sample_without_what_a_pipeline_has_is_left_out():
    broken = Sample("pipeline", "time_to_solution", {"size_bytes": 8}, "0", np.ones(3), way="many")
    assert pipelines(material((broken,))) == []
