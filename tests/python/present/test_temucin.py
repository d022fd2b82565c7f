"""The figures of motifs of Temucin et al. 2022: each statement agrees or differs by what was measured."""

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data.run import Sample
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.subjects.papers.temucin_figures import throughput_figures
from earlybird.present.subjects.papers.temucin_motifs import motif_paper_tables
from earlybird.present.subjects.papers.temucin_view import throughputs

SIZES = (2048, 32768, 2097152)
HEADER = {"settings": {"reproduce": "temucin"}}
WITHOUT = ("funnelled", "multiple", "partitioned")
WITH = ("funnelled", "multiple", "earlybird")


def point(kernel, size_bytes, threads, styles, launch="without", mpi="mpich"):
    """Samples of styles with these times in units of 10 ms."""
    config = {
        "mpi": mpi, "ranks": 2, "layout": "1x1x2", "process_grid": "2x1x1", "cells": f"4x{size_bytes}x2",
        "variables": 1, "threads": threads, "partitions": 16, "compute_s": 0.01, "noise": "single",
        "noise_share": 0.04, "size_bytes": size_bytes, "scaling": "strong",
    }  # fmt: skip
    return [
        Sample(
            kernel, "step", config, f"{launch}-{k}", np.full(6, 0.01 * time), method=style,
            rounds=np.arange(6), extra={"sent_bytes": 2 * size_bytes, "messages": 2},
        )
        for style, time in styles.items()
        for k in range(3)
    ]  # fmt: skip


def motif(kernel, threads=2, sizes=SIZES, mpi="mpich", **times):
    """Of each style one time, or one for each size."""
    found = []
    for k, size in enumerate(sizes):
        at = {style: time[k] if isinstance(time, tuple) else time for style, time in times.items()}
        for names, launch in ((WITHOUT, "without"), (WITH, "with")):
            found += point(kernel, size, threads, {n: at[n] for n in names if n in at}, launch, mpi)
    return found


def measured(*parts, header=HEADER):
    samples = tuple(sample for part in parts for sample in part)
    return throughputs(Material(runs=(MeasuredRun("run", header, (), samples),)))


def verdicts(*parts):
    """{(begin of a statement, method): (values here, verdict)}."""
    (table,) = motif_paper_tables(measured(*parts))
    found, statement = {}, ""
    for text, method, here, verdict in table.rows:
        statement = text or statement
        found[statement, method] = here, verdict
    return found


def of(found, begin, method):
    (value,) = [value for (text, name), value in found.items() if text.startswith(begin) and name == method]
    return value


def test_a_sweep_like_that_of_the_paper_agrees():
    found = verdicts(
        motif("sweep3d", funnelled=4, multiple=(2, 2, 0.4), partitioned=(2, 2, 0.26), earlybird=(2, 2, 0.26))
    )
    here, verdict = of(found, "Sweep3D: all threads", "multiple")
    assert (here, verdict) == ("2 KiB: 2.00, 32 KiB: 2.00, 2 MiB: 10.00", "agrees")
    for method in ("earlybird", "partitioned"):
        for begin in ("Sweep3D: partitioned is mostly at least as fast", "Sweep3D: partitioned gains"):
            assert of(found, begin, method)[1] == "agrees"
        here, verdict = of(found, "Sweep3D: partitioned has up to 15.1", method)
        assert here.endswith("2 MiB: 15.38") and verdict == "agrees"


def test_another_sweep_differs():
    found = verdicts(motif("sweep3d", funnelled=2, multiple=2, partitioned=3, earlybird=1.5))
    assert of(found, "Sweep3D: all threads", "multiple")[1] == "differs"
    assert of(found, "Sweep3D: partitioned is mostly at least as fast", "earlybird")[1] == "agrees"
    assert of(found, "Sweep3D: partitioned is mostly at least as fast", "partitioned")[1] == "differs"
    for method in ("earlybird", "partitioned"):
        assert of(found, "Sweep3D: partitioned has up to 15.1", method)[1] == "differs"
    assert of(found, "Sweep3D: partitioned gains", "earlybird")[1] == "agrees"
    assert of(found, "Sweep3D: partitioned gains", "partitioned")[1] == "differs"


def test_styles_of_a_halo_differ_little_or_not():
    # Threads beyond the cores are another figure.
    more = motif("halo3d", 16, funnelled=1, multiple=9, earlybird=9)
    found = verdicts(more, motif("halo3d", funnelled=1, multiple=(1.02, 0.99, 2), earlybird=(1.2, 1.1, 1)))
    assert of(found, "Halo3D: the styles", "multiple")[1] == "agrees"
    assert of(found, "Halo3D: the styles", "earlybird")[1] == "differs"
    assert not any(method == "partitioned" for (text, method) in found if text.startswith("Halo3D"))


@pytest.mark.parametrize(("time", "verdict"), [(0.9, "agrees"), (1.2, "agrees"), (1.4, "differs")])
def test_more_computation_costs_a_part_of_the_throughput(time, verdict):
    found = verdicts(
        motif("halo3d", 1, funnelled=1),
        motif("halo3d", 2, funnelled=1, earlybird=9),
        motif("halo3d", 16, funnelled=1, earlybird=time),
    )
    here, found_verdict = of(found, "Halo3D: 64 times", "earlybird")
    assert found_verdict == verdict
    assert here.startswith("one thread: 419 MB/s, 16 times the computation: ")


def test_what_was_not_measured_is_named():
    found = verdicts(motif("sweep3d", sizes=SIZES[:1], funnelled=1, multiple=1, earlybird=1))
    assert {verdict for _, verdict in found.values()} == {"not measured"}
    assert of(found, "Halo3D: 64 times", "earlybird") == ("-", "not measured")
    # With many threads, but without partitioned calls.
    found = verdicts(motif("halo3d", 1, funnelled=1), motif("halo3d", 16, funnelled=1, multiple=1))
    assert of(found, "Halo3D: 64 times", "earlybird") == ("-", "not measured")


def test_each_mpi_has_a_table_and_other_runs_have_none():
    parts = motif("sweep3d", funnelled=1), motif("sweep3d", mpi="intel", funnelled=1)
    captions = [table.caption for table in motif_paper_tables(measured(*parts))]
    assert [caption.split(": ")[1] for caption in captions] == ["Intel MPI", "MPICH"]
    assert measured(*parts, header={"settings": {}}) == []


def test_throughput_is_drawn_for_settings_with_several_styles():
    found = measured(motif("halo3d", 1, funnelled=1), motif("sweep3d", funnelled=2, multiple=1, earlybird=1))
    (figure,) = throughput_figures(found)
    assert figure.title.startswith("Throughput: MPICH, Sweep3D, 2 ranks of 2 threads, 16 partitions")
    go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    lines = [trace for trace in figure.data if trace.get("hovertext")]
    assert len(lines) == 3 and len({trace["line"]["dash"] for trace in lines}) == 3
    fastest = next(trace for trace in lines if "libearlybird" in trace["name"].lower())
    assert fastest["y"] == pytest.approx([2 * size / 0.01 for size in SIZES])
