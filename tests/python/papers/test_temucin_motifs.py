"""The figures of motifs of Temucin et al. 2022: each statement agrees or differs by what was measured."""

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data import labels
from earlybird.data.run import Sample
from earlybird.papers.temucin.motif_statements import motif_rows
from earlybird.papers.temucin.throughput import throughputs
from earlybird.papers.temucin.throughput_figures import throughput_figures
from earlybird.present.material import Material, MeasuredRun

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


def runs_with(*parts, header=HEADER):
    samples = tuple(sample for part in parts for sample in part)
    return (MeasuredRun("run", header, (), samples),)


def measured(*parts, header=HEADER):
    return throughputs(Material(runs=runs_with(*parts, header=header)))


def verdicts(*parts):
    """{(motif, quantity): rows}."""
    found = {}
    for row in motif_rows(measured(*parts)):
        found.setdefault((row.figure, row.quantity), []).append(row)
    return found


def of(found, begin, method):
    """The value and the verdict of a method, of the statement that begins so; the note if not measured."""
    (rows,) = [rows for (figure, text), rows in found.items() if f"{figure}: {text}".startswith(begin)]
    for row in rows:
        if row.note.startswith(labels.method(method)):
            return row.here, row.note.split("; ")[1]
    return rows[0].here, rows[0].note


def test_a_sweep_like_that_of_the_paper_agrees():
    found = verdicts(
        motif("sweep3d", funnelled=4, multiple=(2, 2, 0.4), partitioned=(2, 2, 0.26), earlybird=(2, 2, 0.26))
    )
    here, verdict = of(found, "Sweep3D: all threads", "multiple")
    assert (here, verdict) == ("2 KiB: 2.00, 32 KiB: 2.00, 2 MiB: 10.00", "agrees")
    for method in ("earlybird", "partitioned"):
        for begin in ("over all threads", "over one thread, largest messages"):
            assert of(found, f"Sweep3D: partitioned, {begin}", method)[1] == "agrees"
        here, verdict = of(found, "Sweep3D: partitioned, over one thread, largest throughput", method)
        assert here.endswith("2 MiB: 15.38") and verdict == "agrees"


def test_another_sweep_differs():
    found = verdicts(motif("sweep3d", funnelled=2, multiple=2, partitioned=3, earlybird=1.5))
    assert of(found, "Sweep3D: all threads", "multiple")[1] == "differs"
    assert of(found, "Sweep3D: partitioned, over all threads", "earlybird")[1] == "agrees"
    assert of(found, "Sweep3D: partitioned, over all threads", "partitioned")[1] == "differs"
    for method in ("earlybird", "partitioned"):
        assert of(found, "Sweep3D: partitioned, over one thread, largest throughput", method)[1] == "differs"
    assert of(found, "Sweep3D: partitioned, over one thread, largest messages", "earlybird")[1] == "agrees"
    assert of(found, "Sweep3D: partitioned, over one thread, largest messages", "partitioned")[1] == "differs"


def test_styles_of_a_halo_differ_little_or_not():
    # Threads beyond the cores are another figure.
    more = motif("halo3d", 16, funnelled=1, multiple=9, earlybird=9)
    found = verdicts(more, motif("halo3d", funnelled=1, multiple=(1.02, 0.99, 2), earlybird=(1.2, 1.1, 1)))
    assert of(found, "Halo3D: the styles", "multiple")[1] == "agrees"
    assert of(found, "Halo3D: the styles", "earlybird")[1] == "differs"


@pytest.mark.parametrize(("time", "verdict"), [(0.9, "agrees"), (1.2, "agrees"), (1.4, "differs")])
def test_more_computation_costs_a_part_of_the_throughput(time, verdict):
    found = verdicts(
        motif("halo3d", 1, funnelled=1),
        motif("halo3d", 2, funnelled=1, earlybird=9),
        motif("halo3d", 16, funnelled=1, earlybird=time),
    )
    here, found_verdict = of(found, "Halo3D: 64 times", "earlybird")
    assert found_verdict == verdict and here == {0.9: "-11 %", 1.2: "17 %", 1.4: "29 %"}[time]
    (row,) = found["Halo3D", "64 times the computation: throughput lost, largest messages"]
    assert "one thread 419 MB/s, 16 threads with 16 times the computation" in row.note


def test_what_was_not_measured_is_named():
    found = verdicts(motif("sweep3d", sizes=SIZES[:1], funnelled=1, multiple=1, earlybird=1))
    assert all(row.here == "" and row.note.startswith("not measured: ") for (row,) in found.values())
    # With many threads, but without partitioned calls.
    found = verdicts(motif("halo3d", 1, funnelled=1), motif("halo3d", 16, funnelled=1, multiple=1))
    assert of(found, "Halo3D: 64 times", "earlybird")[0] == ""


def test_each_mpi_has_rows_and_other_runs_have_none():
    times = {"funnelled": 2, "multiple": 1}
    rows = motif_rows(measured(motif("sweep3d", **times), motif("sweep3d", mpi="intel", **times)))
    assert [row.mpi for row in rows if row.here] == ["Intel MPI", "MPICH"]
    assert measured(motif("sweep3d", **times), header={"settings": {}}) == []


def test_throughput_is_drawn_for_settings_with_several_styles():
    found = measured(motif("halo3d", 1, funnelled=1), motif("sweep3d", funnelled=2, multiple=1, earlybird=1))
    (figure,) = throughput_figures(found)
    assert figure.title.startswith("Throughput: MPICH, Sweep3D, 2 ranks of 2 threads, 16 partitions")
    go.Figure({"data": list(figure.data), "layout": dict(figure.layout)})
    lines = [trace for trace in figure.data if trace.get("hovertext")]
    assert len(lines) == 3 and len({trace["line"]["dash"] for trace in lines}) == 3
    fastest = next(trace for trace in lines if "libearlybird" in trace["name"].lower())
    assert fastest["y"] == pytest.approx([2 * size / 0.01 for size in SIZES])
