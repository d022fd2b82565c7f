"""The chapter on partitioned communication: metrics with selectors, and the timeline of one iteration."""

import numpy as np
import plotly.graph_objects as go
import pytest

from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.models import partitioned_metrics as metrics
from earlybird.present.contents import contents
from earlybird.present.core import axes
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.render import html as page
from earlybird.present.render.text import render
from earlybird.present.subjects.partitioned.chapter import _advice
from earlybird.present.subjects.partitioned.view import partitioned_metrics

C, LATENCY_S, BANDWIDTH = 1e-3, 1e-4, 1e9
EACH = ("many", "earlybird")
LAUNCHES = (0.99, 1.0, 1.02)  # how many times slower


def sample(method, size_bytes, launch, mpi="mpich", partitions=4, noise="single", oversubscribed=False):
    config = {
        "mpi": mpi, "level": "intra_socket", "size_bytes": size_bytes, "partitions": partitions,
        "threads": partitions, "compute_s": C, "noise": noise, "noise_share": 0.1 * (noise != "none"),
        "cache": "hot",
    }  # fmt: skip
    slow = LAUNCHES[launch]
    late_s = C * (1 + config["noise_share"])
    ready_s = np.full((5, partitions), C)
    ready_s[:, -1] = late_s
    if method == "single":
        ready_s[:] = late_s
    behaviour = metrics.arrivals_when_ready if method in EACH else metrics.arrivals_together
    arrived_s = behaviour(ready_s, size_bytes / partitions, LATENCY_S * slow, BANDWIDTH / slow)
    return Sample(
        "partitioned", "in_flight", config, str(launch), metrics.union_length_s(ready_s, arrived_s),
        method=method, rounds=np.arange(5), oversubscribed=oversubscribed,
        extra={
            "ready_s": ready_s.tolist(), "returned_s": ready_s.tolist(), "arrived_s": arrived_s.tolist(),
            "joined_s": [late_s] * 5, "completed_s": arrived_s.max(axis=1).tolist(),
            "compute_s": np.tile([C] * (partitions - 1) + [late_s], (5, 1)).tolist(),
        },
    )  # fmt: skip


def samples(methods=("single", "many", "partitioned", "earlybird"), sizes=(40_000, 400_000), **more):
    return tuple(
        sample(method, size, launch, **more)
        for method in methods
        for size in sizes
        for launch in range(len(LAUNCHES))
    )


def material(*parts):
    return Material(runs=(MeasuredRun("run", {}, (), sum(parts, ())),))


def chapter(*parts):
    return contents(material(*parts)).chapters["partitioned"]


def figure(found, kind):
    one = next(figure for figure in found.figures if figure.id == f"partitioned-{kind}-0")
    go.Figure({"data": list(one.data), "layout": dict(one.layout)})
    return {trace["name"]: trace for trace in one.data if trace.get("name")}, one


def test_every_metric_is_drawn_by_method():
    found = chapter(samples())
    overhead, _ = figure(found, "overhead")
    assert set(overhead) == {"Message per partition", "MPI partitioned communication", "libearlybird"}
    assert overhead["libearlybird"]["x"] == [40_000, 400_000]
    perceived, _ = figure(found, "perceived")
    hardware = perceived["Single message"]["y"]
    assert hardware == pytest.approx([size / (LATENCY_S + size / BANDWIDTH) for size in (40_000, 400_000)])
    availability, _ = figure(found, "availability")
    late = 1 - (LATENCY_S + 1e5 / BANDWIDTH) / (LATENCY_S + 4e5 / BANDWIDTH)
    # Only the last partition is sent after the join; its predecessors still occupy the link by then.
    assert 0 < availability["libearlybird"]["y"][1] <= late + 1e-9
    assert availability["MPI partitioned communication"]["y"] == pytest.approx([0, 0], abs=1e-9)


def test_the_timeline_is_of_a_measured_iteration_relative_to_the_join():
    traces, one = figure(chapter(samples()), "timeline")
    ready = traces["libearlybird: MPI_Pready is called"]["x"]
    assert ready == pytest.approx([-1e-4, -1e-4, -1e-4, 0])
    arrived = traces["MPI partitioned communication: arrived"]["x"]
    assert len(set(arrived)) == 1 and arrived[0] > 0
    assert one.layout["shapes"][0]["x0"] == 0
    assert "MPI_Pready is called 100 us before the join" in " ".join(
        traces["libearlybird: MPI_Pready is called"]["hovertext"]
    )


def test_settings_and_mpis_have_selectors():
    found = chapter(samples(), samples(mpi="openmpi"), samples(noise="none"), samples(partitions=2))
    assert found.choices["MPI"] == ["MPICH", "Open MPI"]
    assert found.choices["noise"] == ["none", "single 10 %"] and found.choices["partitions"] == ["2", "4"]
    for one in found.figures:
        assert set(one.choice) == set(found.choices)
    assert len(partitioned_metrics(material(samples(), samples(noise="none")))) == 2


def test_the_answer_names_the_calls_that_leave_more_time():
    found = chapter(samples())
    (answer,) = found.answers
    assert answer.number.startswith("availability") and answer.sentence.startswith("libearlybird")
    assert "earlybird exec" in answer.do and "message per partition" in answer.sentence
    (few,) = chapter(tuple(one for one in samples() if int(one.launch) < 2)).answers
    assert "--launches" in few.do
    assert answer.sentence in found.sentence and "MPI partitioned communication 0.0 %" in found.sentence
    assert found.sentence.count("overhead 1") == found.sentence.count("% delivered before the join") == 3
    (alone,) = chapter(samples(("single", "partitioned"))).answers
    assert alone.do == "nothing to do" and "MPI partitioned communication" in alone.sentence


def test_without_a_single_message_nothing_is_compared():
    found = chapter(samples(("partitioned",)))
    assert "No launch compares it with a single message" in found.sentence
    assert next(one for one in found.figures if one.id == "partitioned-overhead-0").absence


def test_the_tables_have_every_method_and_fit_the_terminal():
    parts = samples(oversubscribed=True), samples(mpi="openmpi")
    (table,) = chapter(*parts).tables
    assert len(table.rows) == 2 * 2 * 4
    mpis = [row[table.header.index("MPI")] for row in table.rows]
    assert mpis == ["MPICH", "Open MPI"] * 8  # of one method next to each other
    states = [row[table.header.index("state")] for row in table.rows]
    assert states == ["converged, oversubscribed", "converged"] * 8
    text = render(material(*parts))
    assert "partitions 4, threads 4" in text and "converged, oversubscribed" in text
    assert (
        max(map(len, text.splitlines())) <= 100 and "..." not in text.partition("Metrics of part")[2][:2000]
    )


@pytest.mark.thorough
def test_a_page_of_three_mpis_and_many_settings_is_smaller_than_2_mb():
    parts = [
        samples(mpi=mpi, noise=noise, partitions=partitions, sizes=tuple(1 << k for k in range(10, 23, 3)))
        for mpi in ("mpich", "openmpi", "intel")
        for noise in ("none", "single")
        for partitions in (1, 4, 16)
    ]
    found = chapter(*parts)
    assert "more rows in `earlybird show RUN`" in found.tables[0].caption
    assert any(one.id == "partitioned-left" and "10 more settings" in one.title for one in found.figures)
    # A selector offers only values that have figures.
    assert found.choices["noise"] == ["single 10 %"]
    assert len(page.render(material(*parts))) < 2e6


def test_sizes_close_to_each_other_have_ticks():
    assert axes.size_axis([65536, 524288])["ticktext"] == ["64 KiB", "512 KiB"]
    assert axes.size_axis([32, 1024, 65536])["ticktext"][:3] == ["32 B", "1 KiB", "32 KiB"]


def test_nothing_is_advised_where_messages_per_partition_leave_clearly_more():
    known = {"earlybird": Estimate(0.5, 0.4, 0.6), "partitioned": Estimate(0.1, 0.0, 0.2)}
    assert "earlybird exec" in _advice("earlybird", known | {"many": Estimate(0.6, 0.5, 0.7)}, 3)
    assert _advice("earlybird", known | {"many": Estimate(0.8, 0.7, 0.9)}, 3) == "nothing to do"
    assert _advice("partitioned", known, 3) == "nothing to do"
