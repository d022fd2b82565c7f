"""The page of Gillis et al. 2023: its printed values next to those of a run that reproduces it."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data.run import Sample
from earlybird.papers.gillis.figures import mean_estimate
from earlybird.papers.registry import PAPERS, paper_chapters
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.render.text import render

RATE, LAUNCHES = 25e6, 3
GILLIS = {"reproduce": "gillis"}
GAINS = {"single": 1.0, "many": 0.1, "partitioned": 0.2, "earlybird": 0.5}


def samples(size_bytes, partitions, gamma, gains, **config):
    config = {
        "mpi": "mpich", "level": "inter_node", "size_bytes": size_bytes, "partitions": partitions,
        "gamma_s_per_byte": gamma,
    } | config  # fmt: skip
    return tuple(
        Sample("pipeline", "time_to_solution", config, str(launch),
               np.linspace(1, 3, 9) * size_bytes / RATE / gain, method=method, rounds=np.arange(9))
        for launch in range(LAUNCHES)
        for method, gain in gains.items()
    )  # fmt: skip


def material(*parts, settings=None):
    launch = {"flavour": "mpich", "threads_per_rank": 4, "placement": [{"host": "node7"}] * 2}
    launches = tuple({"id": str(k)} | launch for k in range(LAUNCHES))
    header = {"machine": {"cores": 2}, "settings": settings or {}}
    return Material(runs=(MeasuredRun("run", header, launches, sum(parts, ())),))


PARTS = (
    samples(64, 1, 0, {"single": 1.0, "partitioned": 0.25, "earlybird": 1.0}, threads=1),
    samples(64, 4, 0, GAINS, threads=4),
    samples(64, 4, 0, GAINS | {"earlybird": 0.8}, threads=4, vcis=16),
    samples(512, 128, 0, GAINS | {"earlybird:512": 0.4, "earlybird:16384": 0.25}, threads=4),
    samples(1 << 22, 4, 1e-7, GAINS | {"earlybird": 2.4}, threads=4),
)


def test_each_figure_has_its_value_with_what_differs():
    rows = [row for row in PAPERS["gillis"].rows(material(*PARTS, settings=GILLIS)) if row.mpi]
    assert [(row.figure[-1], row.here[:4]) for row in rows] == [
        ("4", "4.00"), ("5", "2.00"), ("6", "1.25"), ("7", "4.00"), ("8", "2.40"),
    ]  # fmt: skip
    notes = {row.figure[-1]: row.note for row in rows}
    assert "4 threads (paper: 32)" in notes["5"] and "16 contexts (paper: 32)" in notes["6"]
    assert "16 KiB" in notes["7"] and "ideal speed-up" in notes["8"]


def test_a_run_that_reproduces_the_paper_has_a_page_in_every_report():
    measured = material(*PARTS, settings=GILLIS)
    (chapter,) = paper_chapters(measured)
    assert "MeluXina" in chapter.lines[1] and "at most 4 threads per core" in chapter.lines[2]
    assert [figure.title[:8] for figure in chapter.figures] == [f"Figure {k}" for k in range(4, 9)]
    for figure in chapter.figures:
        go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    assert "29.76" in render(measured, paper_chapters)
    assert not paper_chapters(material(*PARTS))


def test_figures_have_the_statistic_of_the_paper():
    (one,) = [sample for sample in samples(64, 1, 0, {"single": 1.0}) if sample.launch == "0"]
    times_s = np.arange(1.0, 152.0)
    mean = mean_estimate([replace(one, times_s=times_s, rounds=None)])
    # 90 % of Student's t with 150 degrees of freedom: 1.6551.
    half_s = 1.6551 * times_s.std(ddof=1) / len(times_s) ** 0.5
    assert mean == pytest.approx((76.0, 76.0 - half_s, 76.0 + half_s), rel=1e-4)
