"""The tables on libearlybird's learning: which starts count, what ratios come out, what small cells take."""

import numpy as np
import pytest

from bench import partitioned_learning as learning
from bench.partitioned_grid import read_samples, write_samples
from earlybird.data.run import sample_from_json


def sample(method, launch, times_us, size_bytes=8192, partitions=4, gamma_s_per_byte=0.0):
    return sample_from_json({
        "kernel": "pipeline", "quantity": "time_to_solution", "method": method, "launch": launch,
        "config": {
            "mpi": "mpich", "size_bytes": size_bytes, "partitions": partitions,
            "gamma_s_per_byte": gamma_s_per_byte,
        },
        "times_s": [time * 1e-6 for time in times_us],
        "second_run": False, "machine": "a machine, 2 cores", "library": "an MPI",
    })  # fmt: skip


def launches(num_starts=384):
    """Ours takes twice the better way in starts 2 to 63, half of it from 257 on; the first start is long."""
    starts = np.arange(1, num_starts + 1)
    pace = np.where(starts == 1, 50.0, np.where(starts < 64, 2.0, np.where(starts > 256, 0.5, 1.0)))
    for number, drift in enumerate((1, 3, 2)):
        for kind, method, times in (("with", "earlybird", pace), ("without", "partitioned", 3 + 0 * pace)):
            launch = f"mpich-{number}-{kind}"
            yield sample("single", launch, 20 * drift + 0 * pace)
            yield sample("many", launch, 10 * drift + 0 * pace)
            yield sample(method, launch, 10 * drift * times)


def test_each_block_of_starts_is_compared_with_the_better_way_in_the_same_starts(tmp_path):
    write_samples(tmp_path / "kept.json.gz", [], list(launches()), cells=[])
    for samples in (list(launches()), read_samples(tmp_path / "kept.json.gz")):
        ratios = {
            (block.name, method): cell.ratio.value
            for block in (learning.STEADY, learning.EARLY)
            for method in ("earlybird", "partitioned")
            for cell in learning.cells_of(samples, block, method)
        }
        assert ratios == pytest.approx(
            {
                ("steady", "earlybird"): 0.5, ("steady", "partitioned"): 3,
                ("starts 2 to 63", "earlybird"): 2, ("starts 2 to 63", "partitioned"): 3,
            }
        )  # fmt: skip


def test_a_program_of_50_steps_has_the_first_start_too():
    (cell,) = learning.cells_of(launches(), learning.PROGRAM, "earlybird")
    # 49 starts of twice the time, and a first one of which no more counts than ten typical starts.
    assert cell.over_each == pytest.approx((49 * 2 + 10 * 2) / 50)
    assert cell.over_one == pytest.approx(cell.over_each / 2)


def test_of_short_programs_all_starts_are_counted(capsys):
    learning._report("mpich", list(launches(28)))
    printed = capsys.readouterr().out
    # 27 starts of twice the time, and the first one.
    assert "mpich, all 28 starts" in printed and "steady" not in printed
    assert f"of 1 us or more: {(27 * 2 + 10 * 2) / 28:.3f} (target 0.97, missed)" in printed


def test_a_start_that_was_held_up_does_not_outweigh_the_others():
    times_s = np.full(62, 2e-6)
    times_s[7] = 4e-3
    assert learning.total_s(times_s, 2e-6) == pytest.approx(71 * 2e-6)
    # A trial that goes wrong counts as it is.
    times_s[7] = 10e-6
    assert learning.total_s(times_s, 2e-6) == pytest.approx(66 * 2e-6)


def test_small_cells_are_told_by_what_they_take_longer():
    samples = []
    for number in range(3):
        for method, time_us in (("single", 1.0), ("many", 2.0), ("earlybird", 1.5)):
            samples.append(sample(method, f"mpich-{number}-with", [time_us] * 384, 512, 32))
    lines = learning.small_lines(learning.cells_of(samples, learning.STEADY, "earlybird"))
    assert lines[0].startswith("0 of 1 cells below 5 us")
    assert "512 B in 32: +0.50 us of 0.42, +15.6 ns per partition" in lines[1]


def test_targets_are_judged():
    cells = learning.cells_of(launches(), learning.EARLY, "earlybird")
    lines = learning.summary(cells, learning.TARGETS["starts 2 to 63", False])
    assert "of 1 cells of 1 us or more: 2.000 (target 1.05, missed)" in lines[0]
    assert "2.00 (target 1.15, missed), 8 KiB in 4" in lines[1]


def test_cells_are_those_of_the_table():
    assert len(learning.CELLS) == len(set(learning.CELLS)) == 18
    assert all(size % partitions == 0 for size, partitions, _ in learning.CELLS)
    assert all(learning.starts_of(size, False) - learning.STEADY.count >= 64 for size, _, _ in learning.CELLS)


def test_recorded_segments_have_a_line_per_cell_and_no_more_segments_than_partitions():
    assert (
        learning._segments_line(sample("earlybird-segments:4", "a", [1.5, 2], gamma_s_per_byte=1e-9), 1)
        == "mpich 8192 4 2048 4 1 150 200\n"
    )
    assert learning._segments_line(sample("single", "a", [0.001]), 0) == "mpich 8192 4 0 single 0 1\n"
    assert learning._segments_line(sample("earlybird-segments:8", "a", [1]), 0) == ""


def test_without_launches_nothing_is_measured(capsys):
    assert learning.main(["--launches", "0"]) == 2
    assert "give 1 or more" in capsys.readouterr().err
