"""Insaghi's paper: its regressions through latencies of known form, next to the printed ones."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data.run import Sample
from earlybird.measure.groups import Library, Options, Resources
from earlybird.papers.registry import PAPERS, paper_chapters
from earlybird.present.material import Material, MeasuredRun

INSAGHI = PAPERS["insaghi"]
NODE = 4  # cores of a node
HEADER = {"id": "one", "settings": {"reproduce": "insaghi"}, "machine": {"cores": NODE}}


def sample(algorithm, ranks, size_bytes, mean_us, map_by="core", operation="bcast"):
    """Times of ranks with a mean over ranks of `mean_us`; the last one completes later."""
    config = {
        "mpi": "openmpi", "operation": operation, "ranks": ranks, "size_bytes": size_bytes, "map_by": map_by,
        "layout": "2x1x4", "root": 0,
    }  # fmt: skip
    rank_times_s = np.full((9, ranks), mean_us * 1e-6)
    rank_times_s[:, 0] /= 2
    rank_times_s[:, -1] += mean_us * 1e-6 / 2
    return Sample(
        "collective", "completion", config, f"{map_by}-{ranks}", rank_times_s.max(axis=1), method=algorithm,
        rounds=np.arange(9), rank_times_s=rank_times_s,
    )  # fmt: skip


def launch(map_by, ranks):
    nodes = [r % 2 if map_by == "node" else r // NODE for r in range(ranks)]
    placement = [{"rank": r, "host": f"n{node}", "node": node} for r, node in enumerate(nodes)]
    name = f"{map_by}-{ranks}"
    return {"id": name, "flavour": "openmpi", "library_version": "Open MPI v5", "placement": placement}


def noise(ranks):
    return 0.01 * (-1) ** ranks


def material(version=None):
    """Linear: 1 + 0.2 P on the first node, 5 + 0.5 P beyond, 0.3 P by node; binomial: exp(0.5 + 0.1 P)."""
    samples = []
    for ranks in range(2, 9):
        first = ranks <= NODE
        linear_us = (1 + 0.2 * ranks if first else 5 + 0.5 * ranks) + noise(ranks)
        samples.append(sample("linear", ranks, 1, linear_us))
        samples.append(sample("linear", ranks, 1, 0.3 * ranks + noise(ranks), "node"))
        samples.append(sample("binomial", ranks, 1, np.exp(0.5 + 0.1 * ranks + noise(ranks)), "node"))
    samples += [
        sample("linear", ranks, size, 2.0 ** (0.9 * np.log2(ranks) + 1e-5 * size + noise(ranks)))
        for ranks in (16, 32)
        for size in (1024, 65536)
    ]
    launches = tuple(launch(map_by, ranks) for map_by in ("core", "node") for ranks in range(2, 9))
    return Material(runs=(MeasuredRun("run", HEADER, launches, tuple(samples)),))


def found():
    return {(row.figure, row.quantity): row for row in INSAGHI.rows(material())}


def values(row):
    return [float(text) for text in row.here.split()]


def test_regressions_have_the_form_of_the_tables_and_the_break_of_this_machine():
    rows = found()
    name = "bcast linear by socket, "
    slope = rows["Table 1a", name + "MPI_Processes"]
    assert values(slope)[0] == pytest.approx(0.2, abs=0.02) and slope.paper == "0.1572 0.0151 10.44 0.0000"
    assert values(rows["Table 1a", name + "I(MPI_Processes > 128)FALSE"])[0] == pytest.approx(1, abs=0.1)
    assert values(rows["Table 1a", name + "I(MPI_Processes > 128)TRUE"])[0] == pytest.approx(5, abs=0.1)
    change = rows["Table 1a", name + "MPI_Processes:I(MPI_Processes > 128)TRUE"]
    assert values(change)[0] == pytest.approx(0.3, abs=0.02)
    # The mean over ranks, not the completion of the last one.
    assert "mean over ranks, 7 points" in slope.note
    by_node = rows["Table 1b", "bcast linear by node, MPI_Processes"]
    assert values(by_node)[0] == pytest.approx(0.3, abs=0.01)
    intercept = rows["Table 3b", "bcast binomial by node, (Intercept)"]
    assert values(intercept)[0] == pytest.approx(0.5, abs=0.02)


def test_what_is_missing_says_what_it_needs():
    rows = found()
    assert "two nodes" in rows["Table 4b", "reduce linear by node, MPI_Processes"].note
    assert rows["Table 7", "bcast, all sizes: R squared"].here
    empty = {row.note for row in INSAGHI.rows(Material()) if not row.figure.endswith(("7", "8"))}
    assert empty == {"not measured"}


def test_every_figure_is_drawn_with_the_statistic_in_its_caption():
    (chapter,) = paper_chapters(material())
    titles = [figure.title for figure in chapter.figures]
    assert [title for title in titles if title.startswith("Figure")][:4] == [
        "Figure 1: bcast, 1 byte, Open MPI", "Figure 2: bcast linear, 1 byte, Open MPI",
        "Figure 3: bcast pipeline, 1 byte, Open MPI", "Figure 4: bcast binomial, 1 byte, Open MPI",
    ]  # fmt: skip
    drawn = [figure for figure in chapter.figures if not figure.absence]
    assert len(drawn) == 4 and all("mean over ranks" in figure.caption for figure in drawn)
    for figure in drawn:
        go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    names = [trace["name"] for trace in drawn[1].data]
    assert names[:3] == ["by socket, measured", "by socket, regression", "by socket, regression of the paper"]


def test_a_regression_that_a_logarithmic_axis_cannot_show_is_named():
    """The paper's pipeline is negative up to 14 ranks."""
    few = tuple(sample("pipeline", ranks, 1, 2.0 * ranks + noise(ranks)) for ranks in range(2, 9))
    run = MeasuredRun("run", HEADER, tuple(launch("core", ranks) for ranks in range(2, 9)), few)
    (chapter,) = paper_chapters(Material(runs=(run,)))
    (pipeline,) = [figure for figure in chapter.figures if figure.title.startswith("Figure 3")]
    assert [trace["name"] for trace in pipeline.data] == ["by socket, measured", "by socket, regression"]
    assert pipeline.caption.endswith("Left out where it is not positive: by socket, regression of the paper.")


def test_the_plan_has_the_algorithms_of_the_paper_or_those_of_earlybird():
    openmpi = replace(Resources.of(8, 2, 2), family="openmpi", library=Library("openmpi"))
    one_byte, sizes = INSAGHI.plan(Options(quick=True), openmpi, "openmpi")
    methods = {method for group in one_byte.groups for method in group.methods}
    assert "default" not in methods
    assert {"linear", "binomial"} <= methods and any(method.startswith("pipeline") for method in methods)
    points = [point for group in one_byte.groups for point in group.points if "map_by" in point]
    assert {point["map_by"] for point in points} == {"core", "node"}
    assert {point["size_bytes"] for point in points} == {1} and max(p["ranks"] for p in points) == 32
    grid = [point for group in sizes.groups for point in group.points if "ranks" in point]
    assert {point["ranks"] for point in grid} == {2, 4, 8, 16, 32}
    assert INSAGHI.remarks(Options(), openmpi) == []
    mpich = replace(
        Resources.of(2, 1), family="mpich", library=Library("mpich"),
        shares_cores=lambda layout: layout.num_ranks > 2,
    )  # fmt: skip
    (one_byte, _) = INSAGHI.plan(Options(quick=True), mpich, "mpich")
    assert any("own-binomial" in group.methods for group in one_byte.groups)
    assert len(INSAGHI.remarks(Options(), mpich)) == 3
