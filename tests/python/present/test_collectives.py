"""The chapter on collectives: figures, maps, models, forms, checks and tables."""

import json
import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data import labels
from earlybird.data.collective_algorithms import persistent_algorithms
from earlybird.data.mpi_algorithms import FAMILIES
from earlybird.data.profile import profile_from_json
from earlybird.data.run import Sample
from earlybird.present.contents import contents
from earlybird.present.core import axes
from earlybird.present.material import Material, MeasuredRun, ReferenceCurve, Verification
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.present.subjects.collectives.chapter import MAX_SETTINGS
from earlybird.present.subjects.collectives.figures import MAX_LINES
from earlybird.present.subjects.collectives.view import MAX_SIZES, collectives

RANKS, SIZES = (2, 4, 8), (1, 1 << 10, 1 << 20)
SPREAD = (0.98, 1.0, 1.02)  # of three launches
ALPHA_S, BETA_S_PER_BYTE = 1e-5, 1e-9


def time_s(method, ranks, size_bytes):
    """Binomial is best for small messages, pipeline for large ones; own algorithms take 20 % longer."""
    base, _, segment = method.removeprefix("own-").partition(":")
    part = min(int(segment or 0) or size_bytes, size_bytes) or 1
    segments, hop_s = max(-(-size_bytes // part), 1), ALPHA_S + BETA_S_PER_BYTE * part
    times_s = {
        "linear": (ranks - 1) * hop_s,
        "pipeline": (ranks + segments - 2) * hop_s,
        "binomial": math.ceil(math.log2(ranks)) * segments * hop_s,
    }
    least_s = 1.4 * min(times_s["linear"], times_s["binomial"])
    return times_s.get(base, least_s) * (1.2 if method.startswith("own-") else 1.0)


def samples(
    methods=("default", "linear", "pipeline:65536", "binomial"),
    ranks=RANKS,
    sizes=SIZES,
    mpi="openmpi",
    operation="bcast",
    map_by="node",
    slower=1.0,
    **more,
):
    return tuple(
        Sample(
            "collective",
            "completion",
            {"mpi": mpi, "operation": operation, "ranks": p, "layout": f"{p}x1x1", "map_by": map_by,
             "size_bytes": size, "root": 0},
            str(launch),
            np.full(5, slower * factor * time_s(method, p, size)),
            method=method,
            rounds=np.arange(5),
            **more,
        )
        for launch, factor in enumerate(SPREAD)
        for p in ranks
        for size in sizes
        for method in methods
    )  # fmt: skip


def material(*parts, **more):
    launches = tuple({"id": str(k), "flavour": "openmpi"} for k in range(len(SPREAD)))
    return Material(runs=(MeasuredRun("run", {}, launches, sum(parts, ())),), **more)


def chapter(*parts, **more):
    return contents(material(*parts, **more)).chapters["collectives"]


def figures(result, kind):
    return [figure for figure in result.figures if figure.id.startswith(f"collective-{kind}")]


def names(figure):
    return [trace["name"] for trace in figure.data if trace.get("name") and trace.get("showlegend", True)]


def test_times_are_medians_over_launches_with_their_range():
    (collective,) = collectives(material(samples()))
    assert (collective.ranks(), collective.sizes()) == (list(RANKS), list(SIZES))
    assert collective.methods() == ["default", "linear", "pipeline:65536", "binomial"]
    middle, low, high = collective.of_ranks(8)[0].time_s["binomial"]
    assert (low, middle, high) == pytest.approx([factor * 3 * (ALPHA_S + 1e-9) for factor in SPREAD])
    assert collective.of_ranks(8)[0].speed_up["binomial"].value == pytest.approx(1.4)


def test_speed_ups_use_common_rounds_or_a_common_own_algorithm():
    drift = np.linspace(1, 3, 5)  # what all methods of a round share
    slow = [replace(collective, times_s=collective.times_s * drift) for collective in samples()]
    (collective,) = collectives(material(tuple(slow)))
    assert collective.of_ranks(8)[0].speed_up["binomial"].value == pytest.approx(1.4)
    # The forced methods in separate launches, half as fast, with one own algorithm in both kinds of launches.
    alone = [
        replace(collective, launch=f"x{collective.launch}", times_s=2 * collective.times_s)
        for collective in samples(("binomial", "own-linear"))
    ]
    (collective,) = collectives(material(samples(("default", "own-linear")), tuple(alone)))
    point = collective.of_ranks(8)[0]
    assert point.speed_up["binomial"].value == pytest.approx(1.4) and point.fastest() == "binomial"
    (apart,) = collectives(material(samples(("default",)), tuple(alone)))
    assert apart.of_ranks(8)[0].speed_up.get("binomial") is None


def test_there_is_a_figure_against_ranks_per_size_and_one_against_size():
    result = chapter(samples())
    against_ranks, (against_size,) = figures(result, "ranks"), figures(result, "size")
    assert [figure.choice["size"] for figure in against_ranks] == ["1 B", "1 KiB", "1 MiB"]
    assert "size" not in against_size.choice and "8 ranks" in against_size.title
    for figure in result.figures:
        go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
        assert figure.sentence and figure.data
    line = next(trace for trace in against_ranks[0].data if trace.get("name") == "Binomial tree")
    assert line["x"] == list(RANKS) and line["line"]["color"] == axes.color("binomial")
    assert against_ranks[0].sentence.startswith(
        "Among 8 ranks, binomial tree is the fastest algorithm (30 us, speed-up 1.40"
    )
    assert "pipeline in segments of 64 KiB from 1 MiB" in against_size.sentence
    assert (
        "at 1 B, binomial tree is the fastest algorithm (30 us" in result.sentence
        and "at 1 MiB, pipeline in segments of 64 KiB is the fastest" in result.sentence
    )


def test_the_answer_reports_more_ranks_than_cores():
    result = chapter(samples(oversubscribed=True))
    assert (
        "more ranks than cores" in result.sentence
        and "context switches" in figures(result, "size")[0].caption
    )
    assert "more ranks than cores" not in chapter(samples()).sentence


def test_a_map_shows_the_fastest_mpi_algorithm_and_its_segments_on_hover():
    (figure,) = figures(chapter(samples()), "best")
    assert "9 combinations" in figure.sentence
    assert names(figure) == ["L: linear", "P: pipeline", "B: binomial tree"]
    best = [[names(figure)[cell][0] for cell in row] for row in figure.data[0]["z"]]
    assert [row[-1] for row in best] == ["L", "P", "P"] and best[2][:2] == ["B", "B"]
    assert "segments of 64 KiB" in figure.data[0]["hovertext"][2][2]


def test_own_algorithms_have_a_map_only_if_one_is_the_fastest():
    own_samples = samples(("own-pipeline:65536",))
    assert len(figures(chapter(samples(), own_samples), "best")) == 1
    result = figures(chapter(samples(("default", "linear")), own_samples), "best")
    assert [figure.id.split("-")[2] for figure in result] == ["mpi", "all"]
    assert "oP: our pipeline" in names(result[1])
    line = figures(chapter(samples(), own_samples), "ranks")[0]
    assert "Our pipeline in segments of 64 KiB" in names(line) and "Open markers" in line.caption


def test_the_map_lists_the_times_of_all_algorithms_on_hover():
    (figure,) = figures(chapter(samples()), "best")
    assert [len(row) for row in figure.data[0]["z"]] == [3, 3, 3]
    where, best, *times = figure.data[0]["hovertext"][2][2].split("<br>")
    assert where == "1 MiB among 8 ranks" and "pipeline in segments of 64 KiB" in best and "speed-up" in best
    assert len(times) == 4 and times[0].startswith("pipeline")


def test_the_fitted_model_and_its_errors_are_drawn():
    measured = samples()
    fitted = {
        one.point(): 1.1 * one.median_s() for one in measured if one.launch == "1" and one.method == "linear"
    }
    result = chapter(measured, fitted_collectives=fitted)
    assert names(figures(result, "ranks")[0]).count("Fitted model") == 1
    by_ranks, by_size = figures(result, "error")
    assert "Of 9 times, half are predicted within 10 %" in by_ranks.sentence
    assert by_ranks.data[0]["y"] == pytest.approx([0.1] * 9) and "+10 %" in by_size.sentence
    assert "model" in result.tables[1].rows[0][4]
    assert not figures(chapter(measured), "error")


def test_several_mappings_are_compared():
    result = chapter(samples(), samples(map_by="socket", slower=0.5))
    drawn = figures(result, "mapping")
    assert [figure.choice["size"] for figure in drawn] == ["1 B", "1 KiB", "1 MiB"]
    assert "mapped by" not in drawn[0].choice
    assert (
        "the MPI's default is 2.00 times as fast with ranks mapped by socket as by node" in drawn[0].sentence
    )
    dashes = {trace["line"]["dash"] for trace in drawn[0].data if trace["name"].startswith("Linear")}
    assert len(dashes) == 2
    assert result.choices["mapped by"] == ["socket", "node"] and not figures(chapter(samples()), "mapping")


def test_equal_mappings_are_not_ranked():
    drawn = figures(chapter(samples(), samples(map_by="socket", slower=1.01)), "mapping")
    assert "no mapping is clearly faster than another with the MPI's default" in drawn[0].sentence


def test_the_answer_names_the_best_algorithm_of_the_mpi_and_the_command_for_it():
    def answer(*methods, **more):
        return chapter(samples(methods, map_by="node"), **more).answers[0]

    best = answer("default", "linear", "pipeline:65536")
    assert best.number.startswith("speed-up ") and "is the fastest algorithm of the MPI: " in best.sentence
    command = "earlybird advise collective --op bcast --ranks 8 --size 1MiB --map-by node --layout 8x1x1"
    assert best.do.startswith(f"run `earlybird fit run -o collectives.json`, then `{command} --mpi-only")
    of_profile = profile(form("linear", 0.05, 0.2, 0.3))
    fitted = answer("default", "pipeline:65536", profiles=(of_profile,))
    assert fitted.do.startswith(f"run `{command} --mpi-only --profile profile.json`")
    own = answer("default", "own-pipeline:65536")
    assert own.do == "nothing to do" and "speed-up" not in own.number
    assert "For comparison: our pipeline" in own.sentence and "the MPI cannot select it" in own.sentence
    default = answer("default", "own-linear", "linear")
    assert "algorithm of the MPI" in default.sentence


def test_published_models_are_hidden_below_their_range_of_ranks():
    def drawn(ranks):
        curve = ReferenceCurve("Insaghi", "bcast", "linear", "node", 1, (2, ranks), (1e-6, 1e-5))
        result = chapter(samples(ranks=(2, ranks)), references=(curve,))
        return [trace for trace in figures(result, "ranks")[0].data if trace.get("name") == "Insaghi, linear"]

    assert [trace["visible"] for trace in drawn(8)] == ["legendonly"]
    assert [trace["visible"] for trace in drawn(64)] == [True]


def test_negative_times_of_a_published_line_are_not_drawn():
    curve = ReferenceCurve("Insaghi", "bcast", "linear", "node", 1, (2, 16, 64), (-1e-6, 1e-12, 1e-5))
    figure = figures(chapter(samples(ranks=(2, 64)), references=(curve,)), "ranks")[0]
    assert next(trace for trace in figure.data if trace.get("legendrank") == 2500)["y"] == [None, 1e-12, 1e-5]
    assert figure.layout["yaxis"]["range"][0] > -7


def test_of_many_algorithms_the_default_and_the_fastest_are_visible():
    methods = ["default", "linear", "binomial", *(f"pipeline:{1 << k}" for k in range(10, 20))]
    figure = figures(chapter(samples(methods)), "ranks")[0]
    lines = {trace["name"]: trace.get("visible", True) for trace in figure.data if "marker" in trace}
    assert len(lines) == 13 and list(lines.values()).count(True) == MAX_LINES
    assert lines["The MPI's default"] is True and lines["Binomial tree"] is True
    assert "3 more algorithms" in figure.caption


def test_one_number_of_ranks_or_one_size_is_drawn_too():
    one_count = chapter(samples(ranks=(4,)))
    assert not any(one.data for one in figures(one_count, "ranks")) and figures(one_count, "size")[0].data
    assert "Only 4 ranks" in one_count.figures[0].absence
    one_size = chapter(samples(sizes=(8,)))
    assert figures(one_size, "ranks")[0].data and not figures(one_size, "size")
    both = chapter(samples(ranks=(4,), sizes=(8,)))
    assert [one.id.split("-")[1] for one in both.figures] == ["ranks"] and both.figures[0].data
    assert not figures(one_size, "best") and not figures(one_count, "best")
    assert "4 ranks" in render(material(samples(ranks=(4,), sizes=(8,))))


def test_barriers_and_operations_with_other_sizes_have_figures():
    barrier = samples(("default", "binomial"), sizes=(0,), operation="barrier")
    result = chapter(samples(sizes=tuple(1 << k for k in range(20))), barrier)
    sizes = [one.choice["size"] for one in figures(result, "ranks") if one.choice["operation"] == "broadcast"]
    assert len(sizes) <= MAX_SIZES and "1 B" in sizes
    shown = [one for one in figures(result, "ranks") if one.choice["operation"] == "barrier"]
    assert [one.choice["size"] for one in shown] == ["0 B"] and "0 B" in result.choices["size"]
    assert all(set(one.choice) == set(result.choices) for one in figures(result, "ranks"))


def form(algorithm, error, beyond, others):
    return {
        "what": {"operation": "bcast", "algorithm": algorithm, "mpi": "openmpi"},
        "form": "alpha-beta",
        "tree": "linear",
        "map_by": ["node"],
        "aicc": -900.0,
        "held_out_error": error,
        "extrapolation_error": beyond,
        "alternatives": [
            {"form": "insaghi-3", "aicc": -300, "held_out_error": others, "extrapolation_error": 1.4}
        ],
    }


def profile(*forms):
    levels = {"inter_node": {"protocols": [{"latency_s": 1e-5, "bandwidth_bytes_per_s": {"1": 1e9}}]}}
    value = {"schema": "earlybird.profile/1", "context": {"flavour": "openmpi"}, "levels": levels}
    return profile_from_json(value | {"forms": list(forms)})


def test_forms_are_in_one_table_with_a_sentence_on_which_to_use():
    forms = form("linear", 0.05, 0.2, 0.3), form("binomial", 0.2, 0.2, 0.1)
    result = chapter(samples(), profiles=(profile(*forms),))
    (table,) = result.closing
    assert [row[2] for row in table.rows] == ["linear", "linear", "binomial", "binomial"]
    assert table.rows[0][3:5] == ["all sizes", "alpha-beta (linear)"]
    assert table.rows[0][5:] == ["-900.0", "5.0 %", "", "20.0 %"]
    assert table.rows[1][4] == "insaghi-3" and table.rows[1][8] == "140.0 %"
    assert any("insaghi-3 (Insaghi (paper) 3" in line for line in result.lines)
    assert any("in 1 of 2 comparisons at held-out rank counts and in 2 of 2" in line for line in result.lines)
    assert any(
        "Their median errors: " in line and "% at held-out rank counts" in line for line in result.lines
    )
    alone = contents(Material(profiles=(profile(*forms),))).chapters["collectives"]
    assert "no measurement" in alone.sentence and not alone.figures and alone.closing


def test_forms_compared_on_the_same_points_replace_the_main_form():
    value = form("linear", 0.05, 0.2, 0.3)
    value["alternatives"] = [
        {"points": points, "form": name, "aicc": aicc, "held_out_error": error}
        for points in ("all sizes", "1 B by node")
        for name, aicc, error in (("alpha-beta", -50.0, 0.1), ("insaghi-2", -70.0, 0.05))
    ]
    table = chapter(samples(), profiles=(profile(value),)).closing[0]
    assert [row[3] for row in table.rows] == ["all sizes", "all sizes", "1 B by node", "1 B by node"]
    assert [row[5] for row in table.rows] == ["-70.0", "-50.0", "-70.0", "-50.0"]
    assert len(chapter(samples(), profiles=(profile(value),)).brief[-1].rows) == 1


def test_invalid_forms_do_not_stop_the_report():
    strange = [
        "text",
        {"what": {"operation": "bcast", "algorithm": "linear"}, "alternatives": "none", "aicc": "low"},
    ]
    result = chapter(samples(), profiles=(profile(*strange),))
    assert result.closing[0].rows[0][5:] == ["", "", "", ""]


def test_a_contradicted_algorithm_is_named():
    verifications = (
        Verification("openmpi", "bcast", "linear", 8, "node", "linear", "confirmed", "linear"),
        Verification("openmpi", "bcast", "pipeline:8192", 8, "node", "chain", "contradicted", "linear"),
    )
    result = chapter(samples(), verifications=verifications)
    assert "of 2 checks, 1 confirmed and 1 contradicted" in " ".join(result.lines)
    (warning,) = result.warnings
    assert "Do not use the times of pipeline in segments of 8 KiB (broadcast, Open MPI, 8 ranks)" in warning
    table = next(table for table in result.tables if "requested" in table.caption)
    assert [row[6] for row in table.rows] == ["confirmed", "contradicted"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_algorithm_of_an_mpi_has_a_distinct_label_letters_and_style(family):
    for operation, names in FAMILIES[family].items():
        persistent = persistent_algorithms(family, operation)
        own = [f"own-{name}" for name in ("linear", "pipeline", "binomial")]
        methods = ["default", *names, *persistent, *own]
        assert all(labels.split_algorithm(method)[1] in labels.ALGORITHMS for method in methods)
        assert (
            len({labels.method_letters(method) for method in methods})
            == len({labels.method(method) for method in methods})
            == len(methods)
        )
        assert len({(axes.color(method), axes.symbol(method)) for method in methods}) == len(methods)
        assert axes.color("other") not in {axes.color(method) for method in methods}


def test_samples_of_verifications_and_of_other_kernels_are_not_timed():
    verification = tuple(replace(one, quantity="delayed_completion") for one in samples())
    local = tuple(
        replace(one, config=dict(one.config) | {"operation": "reduce_local"}, method=None)
        for one in samples()
    )
    assert collectives(material(verification, local)) == []
    assert "collectives" not in contents(material(verification, local)).chapters


def test_settings_without_figures_are_counted_and_in_the_tables():
    parts = [samples(("default",), (2,), (1,), mpi=f"mpi{k}") for k in range(MAX_SETTINGS + 2)]
    result = chapter(*parts)
    assert result.figures[-1].title == "2 more settings" and len(result.figures) == MAX_SETTINGS + 1
    assert len([table for table in result.tables if table.caption.startswith("Times")]) == MAX_SETTINGS + 2


def test_page_and_terminal_include_collectives_and_escape_names():
    odd = samples(mpi='<img src="x">', methods=("default", "<b>odd</b>"))
    given = material(samples(), odd)
    html = page.render(given)
    assert "<img" not in html and "<b>odd" not in html and json.dumps('<img src="x">')[1:5] not in html
    text = render(given)
    assert max(map(len, text.splitlines())) <= 100 and "Which algorithm should a collective use?" in text


def test_the_answer_agrees_with_the_tables():
    # One launch: binomial is faster by the median of ratios, but slower in some rounds.
    noisy = tuple(
        replace(one, times_s=one.times_s * ([1, 1, 1, 3, 3] if one.method == "binomial" else np.ones(5)))
        for one in samples(("default", "binomial"), sizes=SIZES[:1])
        if one.launch == "1"
    )
    result = chapter(noisy)
    assert (
        "no algorithm is clearly faster than the MPI's default" in result.sentence
        and "binomial" not in result.sentence
    )
    (figure,) = figures(result, "ranks")
    assert figure.sentence.startswith(
        "Among 8 ranks, no algorithm is clearly faster than the MPI's default ("
    )


def test_the_unknown_mapping_of_an_import_is_in_no_sentence_and_no_command():
    text = render(Material(runs=(MeasuredRun("run", {}, (), samples(map_by="unknown")),)))
    assert "among 8 ranks" in text and "by unknown" not in text and "--map-by unknown" not in text
