"""The chapter on pipelines: times, speed-ups, equation (4), fitted models and crossovers."""

import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data import labels
from earlybird.data.run import Sample
from earlybird.present.contents import contents
from earlybird.present.core import axes
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.present.subjects.pipelines.figures import MAX_SETTINGS
from earlybird.present.subjects.pipelines.view import pipelines

BETA, GAMMA = 25e6, 1e-7  # gamma*beta = 2.5: equation (4) says 4/(4 - 2.5) with 4 partitions
LAUNCHES = 3
SPREAD = (0.96, 1.0, 1.02)  # of the gains of the launches


def samples(size_bytes=1 << 20, partitions=4, gamma=GAMMA, gains=None, mpi="mpich", **config):
    """Samples of three launches with the given speed-ups (`gains`); a single message has 1."""
    gains = {"single": 1.0, "many": 2.5} if gains is None else gains
    config = {"mpi": mpi, "level": "inter_node", "size_bytes": size_bytes, "partitions": partitions} | config
    config["gamma_s_per_byte"] = gamma
    # A drift common to all methods of a round must cancel in the ratios.
    drift = np.linspace(1, 3, 9)
    return tuple(
        Sample("pipeline", "time_to_solution", config, str(launch),
               size_bytes / BETA * drift / (gain if method == "single" else gain * SPREAD[launch]),
               method=method,
               rounds=np.arange(9))
        for launch in range(LAUNCHES)
        for method, gain in gains.items()
    )  # fmt: skip


def material(*parts, settings=None, **more):
    header = {"machine": {"cores": 2}} | ({"settings": settings} if settings else {})
    launch = {"flavour": "mpich", "threads_per_rank": 4, "placement": [{"host": "node7"}] * 2}
    launches = tuple({"id": str(k)} | launch for k in range(LAUNCHES))
    return Material(runs=(MeasuredRun("run", header, launches, sum(parts, ())),), **more)


def chapter(*parts, **more):
    return contents(material(*parts, **more)).chapters["pipelines"]


def names(figure):
    return [trace["name"] for trace in figure.data if trace.get("name")]


def overtaking(sizes=(1 << 10, 1 << 14, 1 << 18, 1 << 22), **more):
    """A single message is best up to 16 KiB, libearlybird from 256 KiB: twice as fast there, half before."""
    gains = [{"single": 1.0, "many": 0.25, "earlybird": g} for g in (0.25, 0.5, 2.0, 2.4)]
    return [samples(size, gains=gain, **more) for size, gain in zip(sizes, gains, strict=True)]


def test_the_speed_up_uses_common_rounds_and_is_compared_with_equation_4():
    (one,) = pipelines(material(samples()))
    (point,) = one.points
    assert one.methods() == ["single", "many"]
    assert point.speed_up == {"many": pytest.approx((2.5, 2.4, 2.55))}
    beta = (1 << 20) / point.time_s["single"][0]
    assert point.ideal_speed_up == pytest.approx(4 / (4 - GAMMA * beta))


def test_methods_have_distinct_colours_and_the_speed_up_has_a_theory_line():
    result = chapter(samples(), samples(1 << 16))
    time, gain = result.figures
    for figure in (time, gain):
        go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    lines = {trace["name"]: trace for trace in time.data if trace.get("name")}
    assert list(lines) == ["Single message", "Message per partition"]
    assert [trace["line"]["color"] for trace in lines.values()] == [axes.color("single"), axes.color("many")]
    assert lines["Message per partition"]["x"] == [1 << 16, 1 << 20]
    _, many, theory = [trace for trace in gain.data if trace.get("name")]
    assert many["y"] == pytest.approx([2.5, 2.5]) and theory["name"] == "Ideal speed-up"
    low, high = gain.data[1]["y"], gain.data[2]["y"]
    assert (low, high) == (pytest.approx([2.4, 2.4]), pytest.approx([2.55, 2.55]))
    (answer,) = result.answers
    assert answer.number == "speed-up 2.50" and "4 partitions, delay rate 100000 us/MB" in answer.what
    assert answer.sentence in result.sentence and "ideal speed-up" in answer.sentence
    (table,) = result.tables
    assert {"many", "2.50", "2.40 .. 2.55"} <= set(table.rows[1])
    assert "Pipelines: time of a buffer in partitions" in render(material(samples()))


def test_crossovers_are_in_the_sentence_and_in_a_table():
    result = chapter(*overtaking())
    assert "single message up to 16 KiB and libearlybird from 256 KiB" in result.figures[0].sentence
    (changes,) = result.closing
    (row,) = changes.rows
    # Speed-up 0.5 at 2^14 and 2 at 2^18, hence 1 at 2^16.
    assert row[-4:] == ["single message", "64 KiB", "libearlybird", "16 KiB .. 256 KiB"]
    assert "1 KiB in 4 partitions take 4 times as long" in result.sentence


@pytest.mark.parametrize("unresolved", [1 << 10, 1 << 14, 1 << 22])
def test_a_size_of_which_the_clock_resolved_no_time_is_no_crossover(unresolved):
    parts = overtaking()
    mute = tuple(
        replace(sample, times_s=sample.times_s * 0) if sample.config["size_bytes"] == unresolved else sample
        for sample in sum(parts, ())
    )
    (changes,) = chapter(mute).closing
    (row,) = changes.rows
    assert row[-4] == "single message" and row[-2] == "libearlybird" and all(row[-4:])


def test_a_lead_within_the_launch_spread_does_not_change_the_best_method():
    first = samples(1 << 10, gains={"single": 1.0, "many": 1.02})
    (one,) = pipelines(material(first, samples(1 << 20, gains={"single": 1.0, "many": 1.5})))
    assert one.best_methods() == ["single", "many"]


def test_every_setting_is_a_choice_and_the_largest_speed_up_is_first():
    eight = samples(threads=4, vcis=16, partitions=8, gains={"single": 1.0, "many": 3.0})
    result = chapter(*overtaking(threads=2), samples(gamma=0, threads=2), eight)
    assert result.choices["threads"] == ["2", "4"] and result.choices["delay rate"] == [
        "none",
        "100000 us/MB",
    ]
    assert result.choices["contexts"] == ["default", "16"]
    assert result.choices["level"] == ["between nodes"]
    assert result.figures[0].choice["partitions"] == "8"
    html = page.render(material(*overtaking(threads=2), samples(threads=4)))
    assert '<select name="threads"><option>2</option><option>4</option></select>' in html
    assert '<select name="level">' not in html


def test_a_speed_up_with_more_threads_than_cores_is_last_and_marked():
    crowded = [
        replace(one, oversubscribed=True) for one in samples(threads=4, gains={"single": 1.0, "many": 9.0})
    ]
    (answer,) = chapter(samples(), tuple(crowded)).answers
    assert answer.number == "speed-up 2.50" and "more threads than cores" not in answer.sentence
    (answer,) = chapter(tuple(crowded)).answers
    assert answer.number == "speed-up 9.00" and "more threads than cores" in answer.sentence


def test_the_best_method_by_size_and_partitions_is_a_map():
    few, many = overtaking(), overtaking(partitions=16)
    (figure,) = [one for one in chapter(*few, *many).figures if one.id.startswith("best-method")]
    assert figure.data[0]["z"] == [[0, 0, 1, 1], [0, 0, 1, 1]]
    assert names(figure) == ["S: single message", "E: libearlybird"]
    assert "partitions" not in figure.choice and "in 8 combinations" in figure.sentence
    assert not [one for one in chapter(*few).figures if one.id.startswith("best-method")]


def test_the_fitted_model_is_drawn_and_its_error_is_reported():
    measured = overtaking()
    fitted = {
        sample.point(): 1.1 * sample.median_s()
        for part in measured
        for sample in part
        if sample.method == "many" and sample.launch == "1"
    }
    time, _ = chapter(*measured, fitted_pipelines=fitted).figures
    assert (
        names(time).count("Fitted model") == 1 and "Median error of the fitted model: 10 %" in time.sentence
    )
    assert "Fitted model" not in names(chapter(*measured).figures[0])


def test_without_a_single_message_the_speed_up_figure_states_the_reason():
    time, gain = chapter(samples(gains={"many": 2.5})).figures
    assert time.data and "no launch has them" in gain.absence


def test_a_clock_that_resolves_no_time_is_reported():
    unresolved = [replace(sample, times_s=0 * sample.times_s) for sample in samples(gains={"many": 2.5})]
    text = render(material(tuple(unresolved)))
    assert "The clock did not resolve every time." in chapter(tuple(unresolved)).figures[0].sentence
    assert "many" in text.partition("Pipelines: time of a buffer")[2]


def test_settings_without_figures_are_counted_and_in_the_table():
    result = chapter(*(samples(gamma=k * 1e-9) for k in range(MAX_SETTINGS + 2)))
    assert len(result.figures) == 2 * MAX_SETTINGS + 1
    assert result.figures[-1].title == "2 more settings" and "in the table" in result.figures[-1].absence
    assert len(result.tables[0].rows) == 2 * (MAX_SETTINGS + 2)


def test_methods_of_one_hue_differ_in_line_or_symbol():
    limits = [f"earlybird:{size}" for size in (512, 1024, 4096, 16384)]
    methods = [*labels.METHODS, *limits, "earlybird-segments:1", "earlybird-segments:4"]
    looks = {(axes.color(method), axes.symbol(method), axes.dash(method)) for method in methods}
    assert len(looks) == len(methods)
    order = ["single", "many", "earlybird", "earlybird:512", "earlybird:4096"]
    assert sorted(reversed(order), key=labels.method_order) == order


def test_incomplete_samples_are_ignored():
    broken = Sample("pipeline", "time_to_solution", {"size_bytes": 8}, "0", np.ones(3), method="many")
    assert pipelines(material((broken,))) == []


def test_names_from_a_file_are_escaped_in_the_selectors():
    html = page.render(material(samples(mpi='<img src="x">'), samples()))
    assert "<img" not in html and json.dumps('<img src="x">')[1:5] not in html
