"""What `measure msgrate` prints: rates of all threads and of each, ratios in a launch, what is not shown."""

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
    """Samples of launches that send so many million messages per second, threads as fast as 2 : 3 : 4 ..."""
    config = {"mpi": "here", "level": "inter_node", "size_bytes": 8, "window": 64, "threads": threads} | more
    found = []
    for launch, rate in enumerate(rates):
        time_s = threads * 64 / (rate * 1e6)
        of_threads = time_s * 2 / np.arange(2, 2 + threads)
        found.append(
            Sample("msgrate", "time_per_window", config, str(launch), np.full(4, time_s), method=method,
                   rounds=np.arange(4), extra={"thread_times_s": np.tile(of_threads, (4, 1)).tolist()})
        )  # fmt: skip
    return found


def row(method, threads, rates, shared=(), oversubscribed=False, **more):
    place = {"level": "inter_node", "size_bytes": 8, "launches": len(rates), "oversubscribed": oversubscribed}
    return place | msgrate_values(samples(method, threads, rates, **more), shared)


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run", machine={"cores": 2}, command=[], seed=1)


def test_rates_are_of_all_threads_of_each_and_beside_the_shared_communicator():
    """The article's MPICH 4.2.1 with two threads: 0.78 million per second, 6.67 with contexts."""
    shared = samples("shared", 2, (0.78, 0.7, 0.8), vcis=2)
    told = row("per-thread-contexts", 2, (6.67, 7.0, 6.0), shared, vcis=2)
    assert told["rate_per_s"] == pytest.approx(6.67e6)
    assert (told["slowest_launch_per_s"], told["fastest_launch_per_s"]) == pytest.approx((6e6, 7e6))
    assert told["thread_rates_per_s"] == pytest.approx([6.67e6 / 2, 6.67e6 / 2 * 1.5])
    assert told["sum_of_thread_rates_per_s"] == pytest.approx(6.67e6 * 1.25)
    ratios = [told[name] for name in ("over_shared", "over_shared_low", "over_shared_high")]
    assert ratios == pytest.approx([6.67 / 0.78, 6.0 / 0.8, 7.0 / 0.7])
    cells = dict(zip(HEADER, msgrate_cells(told, "converged"), strict=True))
    assert (cells["Mmsg/s"], cells["per thread"], cells["contexts"]) == ("6.67", "3.33 5.00", 2)
    assert row("shared", 2, (0.78,), shared)["over_shared"] is None
    assert row("processes", 2, (7.0,))["over_shared"] is None


def test_many_threads_are_told_from_the_slowest_to_the_fastest():
    told = row("per-thread", 8, (4.0,))
    assert msgrate_cells(told, "")[HEADER.index("per thread")] == "0.5 to 2.25"
    assert msgrate_cells(row("per-thread", 1, (4.0,)), "")[HEADER.index("per thread")] == ""


def test_rows_stand_by_threads_then_methods_with_processes_last():
    rows = [row("processes", 2, (7.0,)), row("per-thread-contexts", 2, (6.0,), vcis=2),
            row("shared", 2, (0.7,), vcis=2), row("per-thread", 2, (0.8,)), row("shared", 2, (0.7,)),
            row("processes", 1, (3.0,)), row("shared", 1, (3.0,))]  # fmt: skip
    told = [(one["threads"], one["method"], one["vcis"]) for one in sorted(rows, key=msgrate_order)]
    assert told == [
        (1, "shared", None),
        (1, "processes", None),
        (2, "shared", None),
        (2, "per-thread", None),
        (2, "shared", 2),
        (2, "per-thread-contexts", 2),
        (2, "processes", None),
    ]


def test_more_threads_than_cores_are_said_with_what_they_cannot_show(run):
    rows = [row("shared", threads, (1.0,), oversubscribed=threads > 1) for threads in (1, 2, 4)]
    (told,) = [text for text in msgrate_remarks(run, rows) if text.startswith("oversubscribed")]
    assert "from 2 threads per rank on" in told and "(2 cores here)" in told and "cannot show" in told
    assert not any("oversubscribed" in text for text in msgrate_remarks(run, rows[:1]))


def test_rows_without_contexts_say_why(run):
    rows = [row("per-thread", 2, (1.0,)), row("per-thread", 32, (1.0,))]
    assert not any("contexts" in text for text in msgrate_remarks(run, rows))
    ending = [*rows, row("per-thread-contexts", 2, (1.0,), vcis=2)]
    assert "has at most 2 communication contexts" in msgrate_remarks(run, ending)[-1]
    run.append_launch({"library_version": "Open MPI v5.0.11, package: Open MPI"})
    assert "Open MPI has no communication contexts" in msgrate_remarks(run, rows)[-1]
    assert not any("contexts" in text for text in msgrate_remarks(run, [row("per-thread", 1, (1.0,))]))


def test_mpich_between_virtual_nodes_says_why_it_has_no_row_with_contexts(run):
    run.append_launch({"library_version": "MPICH Version:      5.0.2", "network": "virtual, 1 Gbit/s"})
    assert "MPICH hangs with several contexts" in msgrate_remarks(run, [row("per-thread", 2, (1.0,))])[-1]
