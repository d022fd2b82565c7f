"""The chapter on motifs: parts of the time, speed-up, throughput and scaling by style, with selectors."""

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data.run import Sample
from earlybird.present.contents import contents
from earlybird.present.core import axes
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.present.subjects.motifs.figures import MAX_SETTINGS

# How many times faster than the reference, and how many times slower a launch is.
SPEEDS = {"funnelled": 1.0, "persistent": 1.02, "multiple": 1.25, "partitioned": 1.3, "earlybird": 1.6}
LAUNCHES = (0.99, 1.0, 1.02)
GRIDS = {1: "1x1x1", 2: "2x1x1", 4: "2x2x1", 8: "2x2x2"}
PARTS = np.array([0.5, 0.2, 0.3])
SENT_BYTES = 1e6


def sample(method, launch, kernel="halo3d", cells=(32, 32, 32), oversubscribed=False, time_s=None, **more):
    ranks = more.get("ranks", 2)
    config = {
        "mpi": "mpich", "ranks": ranks, "layout": f"1x1x{ranks}", "scaling": "strong",
        "process_grid": GRIDS[ranks], "cells": "x".join(map(str, cells)), "variables": 1, "threads": 2,
        "partitions": 4, "size_bytes": 4096, "compute_s": 0.0, "noise": "none", "noise_share": 0.0,
    } | ({} if kernel == "sweep3d" else {"stencil": 7, "periodic": "no", "buffers": "packed"})  # fmt: skip
    reference_s = time_s or cells[0] * 1e-5 / ranks
    slowest_s = np.full(5, reference_s * LAUNCHES[launch] / SPEEDS[method])
    rank_times_s = slowest_s[:, None] * np.linspace(0.5, 1, ranks)
    group = "own" if method == "partitioned" else "library" if method == "earlybird" else "both"
    return [
        Sample(
            kernel, "step", config | more, f"{name}-{launch}", slowest_s, method=method,
            rank_times_s=rank_times_s, rounds=np.arange(5), oversubscribed=oversubscribed,
            extra={"split_s": (rank_times_s[:, :, None] * PARTS).tolist(), "messages": 2,
                   "sent_bytes": SENT_BYTES if ranks > 1 else 0},
        )
        for name in ({"own", "library"} if group == "both" else {group})
    ]  # fmt: skip


def samples(methods=tuple(SPEEDS), sizes=(16, 32), **more):
    return tuple(
        one
        for method in methods
        for size in sizes
        for launch in range(len(LAUNCHES))
        for one in sample(method, launch, cells=(size,) * 3, **more)
    )


def material(*parts):
    return Material(runs=(MeasuredRun("run", {}, (), sum(parts, ())),))


def chapter(*parts):
    return contents(material(*parts)).chapters["motifs"]


def figure(found, kind, number=0):
    one = next(figure for figure in found.figures if figure.id == f"motif-{kind}-{number}")
    go.Figure({"data": list(one.data), "layout": dict(one.layout)})
    return one


def test_bars_are_the_parts_of_the_time_in_the_colour_of_the_style():
    one = figure(chapter(samples()), "parts")
    bars = {trace["name"]: trace for trace in one.data if not trace.get("showlegend", True)}
    assert list(bars) == ["computing", "communicating", "waiting"] and one.layout["barmode"] == "stack"
    ticks = one.layout["yaxis"]["ticktext"]
    assert ticks == list(SPEEDS) * 2  # the reference first, the larger grid below
    for name, share in zip(bars, PARTS, strict=True):
        reference_s, *_, library_s = bars[name]["x"][5:]
        assert reference_s == pytest.approx(share * 32e-5 / 2)
        assert library_s == pytest.approx(reference_s / SPEEDS["earlybird"])
    assert bars["computing"]["marker"]["color"][4] == axes.color("earlybird")
    assert bars["waiting"]["marker"]["color"][4] == axes.color("earlybird", faint=True)
    assert [note["text"] for note in one.layout["annotations"]][::-1] == ["16x16x16", "32x32x32"]


def test_speed_ups_have_intervals_and_the_line_one():
    one = figure(chapter(samples()), "gain")
    traces = {trace["name"]: trace for trace in one.data}
    assert "Funnelled communication" not in traces
    library = traces["libearlybird"]
    assert library["x"] == pytest.approx([1.6, 1.6]) and library["marker"]["color"] == axes.color("earlybird")
    assert len(library["error_x"]["array"]) == 2
    (line,) = one.layout["shapes"]
    assert line["x0"] == line["x1"] == 1


def test_throughput_is_bytes_over_time_and_not_drawn_without_messages():
    (bars,) = figure(chapter(samples()), "sent").data
    assert bars["x"][5] == pytest.approx(SENT_BYTES / (32e-5 / 2))
    alone = chapter(samples(ranks=1))
    assert not [one for one in alone.figures if one.id.startswith("motif-sent")]


def test_samples_without_parts_have_undivided_bars():
    whole = samples(("funnelled", "multiple"))
    for one in whole:
        one.extra["split_s"] = None
    found = figure(chapter(whole), "parts")
    assert {trace["name"] for trace in found.data} == {"not divided"}


def test_several_numbers_of_ranks_have_a_figure_and_table_of_scaling():
    found = chapter(
        samples(ranks=1, sizes=(32,)), samples(ranks=2, sizes=(32,)), samples(ranks=4, sizes=(32,))
    )
    one = figure(found, "scaling")
    traces = {trace["name"]: trace for trace in one.data if trace.get("name")}
    library = traces["libearlybird"]
    assert library["x"] == [1, 2, 4]
    assert library["y"] == pytest.approx([32e-5 / ranks / 1.6 for ranks in (1, 2, 4)])
    assert "efficiency 100 %" in library["hovertext"][2]
    assert traces["Ideal, from funnelled communication"]["y"] == pytest.approx([32e-5, 16e-5, 8e-5])
    assert "ranks" in found.choices and "ranks" not in one.choice
    assert "Scaling" in found.tables[1].caption and len(found.tables[1].rows) == 3 * len(SPEEDS)
    assert len(chapter(samples()).tables) == 1


def test_weak_scaling_is_ideal_if_the_time_stays():
    weak = {"scaling": "weak", "time_s": 1e-3}
    parts = [
        tuple(
            one
            for launch in range(3)
            for one in sample("funnelled", launch, cells=cells, ranks=ranks, **weak)
        )
        for ranks, cells in ((2, (32, 16, 16)), (4, (32, 32, 16)))
    ]
    one = figure(chapter(*parts), "scaling")
    assert one.title.startswith("Weak scaling of 16x16x16 cells each")
    assert one.data[-1]["y"] == pytest.approx([1e-3, 1e-3])


def test_mappings_of_ranks_scale_apart():
    parts = [
        samples(("funnelled",), (32,), ranks=ranks, layout=f"2x1x{ranks // 2}{by}")
        for ranks in (2, 4)
        for by in ("", "_by_node")
    ]
    found = chapter(*parts)
    assert found.choices["mapped by"] == ["core", "node"]
    assert len([one for one in found.figures if one.id.startswith("motif-scaling")]) == 2


def test_the_sentence_names_the_fastest_style_of_each_motif_and_the_gain_of_the_library():
    found = chapter(samples(), samples(kernel="sweep3d"))
    assert "In halo3d, MPICH, 2 ranks of 2 threads, stencil of 7 points, 32x32x32 cells," in found.sentence
    assert "In sweep3d, MPICH, 2 ranks of 2 threads, 32x32x32 cells, libearlybird is the" in found.sentence
    assert "is the fastest style and has a speed-up of 1.60 over funnelled communication" in found.sentence
    # Different launches have the two kinds of partitioned calls: they are compared through the reference.
    assert "libearlybird over MPI partitioned communication, the best other style, is 1.23" in found.sentence


def test_what_else_differs_between_points_follows_the_cells():
    found = chapter(samples(sizes=(32,), partitions=2), samples(sizes=(32,), partitions=4))
    assert "32x32x32 cells, 4 partitions" in found.sentence


def test_an_answer_says_what_to_do_with_the_best_style():
    (library,) = chapter(samples()).answers
    assert library.number == "speed-up 1.60" and "earlybird exec" in library.do
    assert "faster than funnelled communication at 2 of 2 points of halo3d with MPICH" in library.sentence
    (threads,) = chapter(samples(("funnelled", "persistent", "multiple"))).answers
    assert "communicator for each sending thread" in threads.do and "libearlybird" not in threads.sentence
    (nothing,) = chapter(samples(("funnelled", "persistent"))).answers
    assert nothing.do == "nothing to do" and "no style is clearly faster" in nothing.sentence.lower()
    assert "at 0 of 2 points" in nothing.sentence
    several = chapter(samples(), samples(mpi="openmpi"), samples(kernel="comb"))
    assert len(several.answers) == 3


def test_without_the_reference_nothing_is_compared():
    found = chapter(samples(("multiple",)))
    assert "no launch compares styles" in found.sentence
    assert not [one for one in found.figures if one.id.startswith("motif-gain")]


def test_every_figure_and_text_of_shared_cores_says_so():
    found = chapter(samples(oversubscribed=True))
    assert "more threads than cores" in found.sentence and "more threads than cores" in found.answers[0].what
    assert all("More threads than cores" in one.sentence + one.caption for one in found.figures)
    assert "*: more threads than cores" in found.tables[0].caption
    assert not any("more threads" in line for line in chapter(samples()).lines)


def test_settings_have_selectors_and_those_with_most_to_show_come_first():
    found = chapter(
        samples(ranks=1), samples(), samples(stencil=27, threads=1), samples(oversubscribed=True, ranks=4)
    )
    assert found.choices["stencil"] == ["7", "27"] and found.choices["ranks"] == ["1", "2", "4"]
    assert found.figures[0].choice["ranks"] == "2" and found.figures[0].choice["threads"] == "2"
    for one in found.figures:
        assert set(one.choice) | {"ranks"} == set(found.choices)


def test_two_runs_with_a_common_setting_keep_their_scaling():
    both = samples(sizes=(32,))
    runs = (MeasuredRun("a", {}, (), both + samples(sizes=(32,), ranks=4)), MeasuredRun("b", {}, (), both))
    found = contents(Material(runs=runs)).chapters["motifs"]
    assert found.choices["MPI"] == ["MPICH (a)", "MPICH (b)"]
    assert figure(found, "scaling").choice["MPI"] == "MPICH (a)"


def test_incomplete_samples_are_left_out():
    broken = samples(("funnelled",))
    for one in broken:
        one.config["cells"] = "32"
    assert "motifs" not in contents(material(broken)).chapters


RESULTS = (
    "time", "interval", "speed-up", "efficiency", "sent", "computing", "communicating", "waiting", "launches",
    "state",
)  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"scaling": "weak"}, {"layout": "2x1x1_by_node"}, {"process_grid": "1x2x1"}, {"cells": (8, 8, 4)},
        {"variables": 2}, {"stencil": 27}, {"periodic": "yes"}, {"buffers": "derived"}, {"threads": 4},
        {"partitions": 8}, {"compute_s": 1e-3}, {"noise": "single", "noise_share": 0.04},
        {"planes_per_block": 2},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_points_that_differ_in_one_setting_have_different_labels(other):
    same = {"planes_per_block": 4} if "planes_per_block" in other else {}
    four = {"ranks": 4} | ({"process_grid": "4x1x1"} if "process_grid" in other else {})
    four |= {"cells": (32, 64, 32)} if "scaling" in other else {}  # each rank has 16x32x32
    settings = ({}, other, {"ranks": 4}, other | four)
    found = chapter(*(tuple(sample("funnelled", 0, **same | one)) for one in settings))
    for table in (*found.tables, *found.brief):
        labels = [
            tuple(cell for head, cell in zip(table.header, row, strict=True) if head not in RESULTS)
            for row in table.rows
        ]
        assert len(set(labels)) == len(labels) == 4


def test_the_terminal_has_a_table_that_fits():
    parts = (
        samples(), samples(oversubscribed=True, ranks=4), samples(mpi="openmpi", buffers="derived"),
        samples(compute_s=1e-3, noise="single", noise_share=0.04),
    )  # fmt: skip
    text = render(material(*parts))
    assert "2*" in text and "buffers derived" in text and "single 4 %" in text
    table = text.partition("Motifs: time")[2]
    assert max(map(len, text.splitlines())) <= 100 and "..." not in table.partition("How was")[0]


@pytest.mark.thorough
def test_a_page_of_three_mpis_and_many_settings_is_smaller_than_2_mb():
    parts = [
        samples(kernel=kernel, mpi=mpi, ranks=ranks, compute_s=compute_s, sizes=(8, 16, 32, 64, 128))
        for kernel in ("halo3d", "sweep3d", "comb")
        for mpi in ("mpich", "openmpi", "intel")
        for ranks in (2, 4, 8)
        for compute_s in (0.0, 1e-3)
    ]
    found = chapter(*parts)
    assert "more rows in `earlybird show RUN`" in found.tables[0].caption
    left = next(one for one in found.figures if one.id == "motif-left")
    assert left.title == f"{len(parts) - MAX_SETTINGS} more settings"
    # Every motif and MPI has figures, and a selector offers only what has one.
    assert found.choices["MPI"] == ["Intel MPI", "MPICH", "Open MPI"] and len(found.choices["motif"]) == 3
    assert "The table has 1 more point." in figure(found, "parts").sentence
    assert len(page.render(material(*parts))) < 2e6
