"""The verdicts on the grid: which method is the better one, what ratios come out, what a criterion says."""

import pytest

from bench import partitioned_grid
from bench.partitioned_grid import Cell, cells_of, read_samples, verdicts, write_samples
from earlybird.data.run import sample_from_json


def sample(method, launch, times_us, **config):
    config = {"mpi": "mpich", "size_bytes": 8192, "partitions": 4, "gamma_s_per_byte": 0.0} | config
    return sample_from_json({
        "kernel": "pipeline", "quantity": "time_to_solution", "method": method, "config": config,
        "launch": launch,
        "times_s": [time * 1e-6 for time in times_us], "rounds": list(range(len(times_us))),
    })  # fmt: skip


def three_launches():
    # The launches differ threefold; inside each, ours takes 1.1 times the better method.
    for number, pace in enumerate((1, 3, 2)):
        times = {"single": 20, "many": 10, "earlybird": 11, "earlybird-fresh": 15, "partitioned": 30}
        for kind, methods in (
            ("with", partitioned_grid.METHODS[True]),
            ("without", partitioned_grid.METHODS[False]),
        ):
            for method in methods:
                yield sample(
                    method, f"mpich-{number}-{kind}", [times[method] * pace * drift for drift in (1, 2, 4)]
                )


def test_ratios_are_of_rounds_to_the_method_that_is_better_over_all_launches(tmp_path):
    write_samples(tmp_path / "kept.json.gz", [], list(three_launches()))
    for samples in (list(three_launches()), read_samples(tmp_path / "kept.json.gz")):
        (cell,) = cells_of(samples)
        assert cell.better == "many"
        assert cell.better_s == pytest.approx(40e-6) and cell.ours_s == pytest.approx(44e-6)
        ratios = (cell.ours, cell.fresh, cell.own)
        assert ratios == pytest.approx((1.1, 1.5, 3.0))


def cell(better_us, ours, size_bytes=8192, partitions=4, mpi="mpich"):
    better_s = better_us * 1e-6
    return Cell(mpi, size_bytes, partitions, 0.0, "single", better_s, ours * better_s, ours, ours, ours)


def test_verdicts_count_the_cells_that_a_criterion_names():
    cells = [cell(0.5, 9.0), cell(2, 1.0), cell(10, 1.21), cell(100, 1.0, 16 << 20)]
    lines = verdicts(cells)
    assert "of 3 cells of 1 us or more 1.066 (target 0.90, missed)" in lines[0]
    assert "worst of 2 cells of 5 us or more 1.21 (target 1.10, missed), 8 KiB in 4" in lines[1]
    # 0.5 us to 4.5 us is 4 us more, of 0.24 us allowed: small cells are judged by the excess alone.
    assert "1 of 2 cells below 5 us" in lines[2] and "missed" in lines[2]
