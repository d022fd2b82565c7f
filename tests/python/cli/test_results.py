"""The tables of results: a line per method, common values on the first line of a point, best method first."""

import numpy as np
import pytest

from earlybird.compare.results import ordered, results
from earlybird.data.run import Run, Sample
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.table import Table
from earlybird.present.subjects.measured.columns import columns_of
from earlybird.present.subjects.measured.remarks import remarks
from earlybird.present.subjects.measured.terminal import print_samples
from tests.kernel_runs import CONFIGS, samples_of

TIMES_S = {"single": 8e-6, "rma-fence": 16e-6, "many": 4e-6, "earlybird:512": 5e-6}


def pipelines(methods=tuple(TIMES_S), **more):
    """Two launches of 4000 B in 4 partitions."""
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 4000, "partitions": 4,
              "gamma_s_per_byte": 1e-9} | more  # fmt: skip
    return [
        Sample("pipeline", "time_to_solution", config, launch, np.full(8, TIMES_S[method]), method=method,
               rounds=np.arange(8))
        for launch in ("0", "1")
        for method in methods
    ]  # fmt: skip


def rates(method, threads, of_launches, oversubscribed=False, **more):
    """Launches with rates in million messages per second; the threads are as fast as 2 : 3 : 4 ..."""
    config = {"mpi": "here", "level": "inter_node", "size_bytes": 8, "window": 64, "threads": threads} | more
    samples = []
    for launch, rate in enumerate(of_launches):
        time_s = threads * 64 / (rate * 1e6)
        of_threads = time_s * 2 / np.arange(2, 2 + threads)
        samples.append(
            Sample("msgrate", "time_per_window", config, str(launch), np.full(4, time_s), method=method,
                   oversubscribed=oversubscribed, rounds=np.arange(4),
                   extra={"thread_times_s": np.tile(of_threads, (4, 1)).tolist()})
        )  # fmt: skip
    return samples


def columns(samples):
    """The text of every column, by its head; of several with one head the last."""
    rows = ordered(results(samples))
    found = Table("", columns_of(rows), rows)
    return {head: [line[k] for line in found.sparse_rows] for k, head in enumerate(found.header)}


def lacking(kernel, key, more):
    """Samples of two methods at a point with `key`, and at one that has it as `more`."""
    less = {name: value for name, value in CONFIGS[kernel].items() if name != key}
    return [*samples_of(kernel, CONFIGS[kernel]), *samples_of(kernel, less | more)]


@pytest.mark.parametrize("is_null", [False, True])
@pytest.mark.parametrize(
    ("kernel", "key"),
    [(kernel, key) for kernel, config in CONFIGS.items() for key in config if key != "operation"],
)
def test_a_table_has_the_points_that_lack_a_parameter(run, capsys, kernel, key, is_null):
    samples = lacking(kernel, key, {key: None} if is_null else {})
    print_samples(run, samples, "table")
    print_samples(run, samples, "csv")
    rows = capsys.readouterr().out.splitlines()
    assert len([row for row in rows if "converged, oversubscribed" in row or ",completion," in row]) == 8


def test_a_figure_that_needs_what_a_point_lacks_is_left_out():
    known, _, unknown, _ = results(lacking("msgrate", "window", {}))
    assert known.figures["rate_per_s"] > 0 and not unknown.figures and unknown.time_s.value == 1
    *_, unknown, _ = results(lacking("pipeline", "threads", {}))
    assert unknown.figures["threads"] == 1


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run", machine={"cores": 2}, command=[], seed=1)


def test_single_comes_first_and_the_slowest_method_last():
    text = columns(pipelines())
    assert text["method"] == ["single", "many", "earlybird:512", "rma-fence"]
    assert text["speed-up over single"] == ["", "2.00", "1.60", "0.50"]
    # Once per point: 4000 B in 8 us are 0.5 GB/s, times 1000 us/MB: 4/(4 - 0.5).
    assert text["ideal speed-up"] == ["1.14", "", "", ""]
    assert text["level"] == ["same socket", "", "", ""]
    assert "threads" not in text and "contexts" not in text and "interval" not in text


def test_threads_and_contexts_have_columns_if_used():
    two = ("single", "many")
    text = columns([*pipelines(two), *pipelines(two, threads=2, vcis=4)])
    assert text["threads"] == ["1", "", "2", ""] and text["contexts"] == ["default", "", "4", ""]


def test_rates_of_threads_are_listed_or_shown_as_a_range():
    shared = rates("shared", 2, (0.78, 0.7, 0.8), vcis=2)
    text = columns([*shared, *rates("per-thread-contexts", 2, (6.67, 7.0, 6.0), vcis=2)])
    assert text["Mmsg/s"] == ["0.78", "6.67"] and text["per thread"][1] == "3.33 5.00"
    assert text["contexts"] == ["2", "2"] and text["speed-up over shared"] == ["", "8.55"]
    assert columns(rates("per-thread", 8, (4.0,)))["per thread"] == ["0.5 .. 2.25"]
    assert "per thread" not in columns(rates("per-thread", 1, (4.0,)))


def test_rates_are_sorted_by_threads_then_methods_with_processes_last():
    samples = [*rates("processes", 2, (7.0,)), *rates("per-thread-contexts", 2, (6.0,), vcis=2),
               *rates("shared", 2, (0.7,), vcis=2), *rates("per-thread", 2, (0.8,)),
               *rates("shared", 2, (0.7,)), *rates("processes", 1, (3.0,)),
               *rates("shared", 1, (3.0,))]  # fmt: skip
    order = [
        (result.config["threads"], result.method, result.config.get("vcis"))
        for result in ordered(results(samples))
    ]
    assert order == [
        (1, "shared", None),
        (1, "processes", None),
        (2, "shared", None),
        (2, "per-thread", None),
        (2, "shared", 2),
        (2, "per-thread-contexts", 2),
        (2, "processes", None),
    ]


def test_more_threads_than_cores_are_reported_with_the_limitation(run):
    found = [
        result for n in (1, 2, 4) for result in results(rates("shared", n, (1.0,), oversubscribed=n > 1))
    ]
    (remark,) = [text for text in remarks(run, found) if text.startswith("oversubscribed")]
    assert "from 2 threads per rank on" in remark and "(2 cores here)" in remark and "cannot show" in remark
    assert not any("oversubscribed" in text for text in remarks(run, found[:1]))


def test_missing_rows_with_contexts_are_explained(run):
    found = results([*rates("per-thread", 2, (1.0,)), *rates("per-thread", 32, (1.0,))])
    assert not any("contexts" in text for text in remarks(run, found))
    ending = [*found, *results(rates("per-thread-contexts", 2, (1.0,), vcis=2))]
    assert any("only up to 2 threads" in text for text in remarks(run, ending))
    run.append_launch({"library_version": "Open MPI v5.0.11, package: Open MPI"})
    assert any("Open MPI has no communication contexts" in text for text in remarks(run, found))
    alone = results(rates("per-thread", 1, (1.0,)))
    assert not any("communication contexts" in text for text in remarks(run, alone))


def test_missing_contexts_of_mpich_between_virtual_nodes_are_explained(run):
    run.append_launch({"library_version": "MPICH Version:      5.0.2", "network": "virtual, 1 Gbit/s"})
    found = results(rates("per-thread", 2, (1.0,)))
    assert any("MPICH hangs with several contexts" in text for text in remarks(run, found))


def test_the_coverage_of_the_interval_is_stated(run):
    texts = remarks(run, results(rates("shared", 2, (0.78, 0.7, 0.8))))
    assert any("with 3 launches it contains the median in 75% of all cases" in text for text in texts)
    assert any(
        "iterations of a single launch" in text for text in remarks(run, results(rates("shared", 1, (1,))))
    )


def test_a_small_ratio_keeps_two_digits():
    assert [ratio_text(ratio) for ratio in (0.00186, 0.66, 17.73)] == ["0.0019", "0.66", "17.73"]


def test_each_number_of_launches_has_its_coverage(run):
    one, three = rates("shared", 1, (1,)), rates("shared", 2, (0.78, 0.7, 0.8))
    (text,) = (text for text in remarks(run, results(one + three)) if text.startswith("interval"))
    assert "with 3 launches it contains the median in 75% of all cases" in text
    assert "where there is one launch, of the iterations of a single launch" in text
