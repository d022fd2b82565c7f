"""The table of `measure msgrate`: rates of all threads and of each, ratios in a launch, remarks."""

import numpy as np
import pytest

from earlybird.cli.msgrate_table import (
    HEADER,
    msgrate_cells,
    msgrate_order,
    msgrate_remarks,
    msgrate_values,
)
from earlybird.data.run import Run, Sample


def samples(method, threads, rates, **more):
    """Samples of launches with `rates` in million messages per second, threads as fast as 2 : 3 : 4 ..."""
    config = {"mpi": "here", "level": "inter_node", "size_bytes": 8, "window": 64, "threads": threads} | more
    result = []
    for launch, rate in enumerate(rates):
        time_s = threads * 64 / (rate * 1e6)
        of_threads = time_s * 2 / np.arange(2, 2 + threads)
        result.append(
            Sample("msgrate", "time_per_window", config, str(launch), np.full(4, time_s), method=method,
                   rounds=np.arange(4), extra={"thread_times_s": np.tile(of_threads, (4, 1)).tolist()})
        )  # fmt: skip
    return result


def row(method, threads, rates, shared=(), oversubscribed=False, **more):
    point = {"level": "inter_node", "size_bytes": 8, "launches": len(rates), "oversubscribed": oversubscribed}
    return point | msgrate_values(samples(method, threads, rates, **more), shared)


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run", machine={"cores": 2}, command=[], seed=1)


def test_rates_are_of_all_threads_and_of_each_and_relative_to_the_shared_communicator():
    """The article's MPICH 4.2.1 with two threads: 0.78 million per second, 6.67 with contexts."""
    shared = samples("shared", 2, (0.78, 0.7, 0.8), vcis=2)
    values = row("per-thread-contexts", 2, (6.67, 7.0, 6.0), shared, vcis=2)
    assert values["rate_per_s"] == pytest.approx(6.67e6)
    assert (values["slowest_launch_per_s"], values["fastest_launch_per_s"]) == pytest.approx((6e6, 7e6))
    assert values["thread_rates_per_s"] == pytest.approx([6.67e6 / 2, 6.67e6 / 2 * 1.5])
    assert values["sum_of_thread_rates_per_s"] == pytest.approx(6.67e6 * 1.25)
    ratios = [values[name] for name in ("over_shared", "over_shared_low", "over_shared_high")]
    assert ratios == pytest.approx([6.67 / 0.78, 6.0 / 0.8, 7.0 / 0.7])
    cells = dict(zip(HEADER, msgrate_cells(values, "converged"), strict=True))
    assert (cells["Mmsg/s"], cells["per thread"], cells["contexts"]) == ("6.67", "3.33 5.00", 2)
    assert row("shared", 2, (0.78,), shared)["over_shared"] is None
    assert row("processes", 2, (7.0,))["over_shared"] is None


def test_rates_of_many_threads_are_shown_as_a_range():
    values = row("per-thread", 8, (4.0,))
    assert msgrate_cells(values, "")[HEADER.index("per thread")] == "0.5 to 2.25"
    assert msgrate_cells(row("per-thread", 1, (4.0,)), "")[HEADER.index("per thread")] == ""


def test_rows_are_sorted_by_threads_then_methods_with_processes_last():
    rows = [row("processes", 2, (7.0,)), row("per-thread-contexts", 2, (6.0,), vcis=2),
            row("shared", 2, (0.7,), vcis=2), row("per-thread", 2, (0.8,)), row("shared", 2, (0.7,)),
            row("processes", 1, (3.0,)), row("shared", 1, (3.0,))]  # fmt: skip
    order = [(one["threads"], one["method"], one["vcis"]) for one in sorted(rows, key=msgrate_order)]
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
    rows = [row("shared", threads, (1.0,), oversubscribed=threads > 1) for threads in (1, 2, 4)]
    (remark,) = [text for text in msgrate_remarks(run, rows) if text.startswith("oversubscribed")]
    assert "from 2 threads per rank on" in remark and "(2 cores here)" in remark and "cannot show" in remark
    assert not any("oversubscribed" in text for text in msgrate_remarks(run, rows[:1]))


def test_missing_rows_with_contexts_are_explained(run):
    rows = [row("per-thread", 2, (1.0,)), row("per-thread", 32, (1.0,))]
    assert not any("contexts" in text for text in msgrate_remarks(run, rows))
    ending = [*rows, row("per-thread-contexts", 2, (1.0,), vcis=2)]
    assert "only up to 2 threads" in msgrate_remarks(run, ending)[-1]
    run.append_launch({"library_version": "Open MPI v5.0.11, package: Open MPI"})
    assert "Open MPI has no communication contexts" in msgrate_remarks(run, rows)[-1]
    assert not any("contexts" in text for text in msgrate_remarks(run, [row("per-thread", 1, (1.0,))]))


def test_missing_contexts_of_mpich_between_virtual_nodes_are_explained(run):
    run.append_launch({"library_version": "MPICH Version:      5.0.2", "network": "virtual, 1 Gbit/s"})
    assert "MPICH hangs with several contexts" in msgrate_remarks(run, [row("per-thread", 2, (1.0,))])[-1]
