"""The bench of advice: halves of a chessboard, coverage of intervals, and advice that lost."""

import pytest

from bench import partitioned_grid, pipeline_advice
from bench.partitioned_grid import write_samples
from earlybird.data.run import sample_from_json

SIZES, PARTITIONS, GAMMAS = (512, 8192, 1 << 17, 1 << 20), (1, 4, 32), (0.0, 1e-9)


def true_s(method, size, partitions, gamma):
    delay_s = gamma * size / partitions
    each_s = 1e-6 + size / partitions / 1e10
    many_s = 1e-6 + max(partitions * each_s - delay_s, each_s)
    return {"single": 2e-6 + size / 1e10, "many": many_s, "earlybird-fresh": 1e-9}[method]


def grid(times_s=true_s, threads=None):
    of_threads = {} if threads is None else {"threads": threads}
    for launch in ("mpich-0-with", "mpich-1-without"):
        for size in SIZES:
            for partitions in PARTITIONS:
                for gamma in GAMMAS:
                    for method in ("single", "many", "earlybird-fresh"):
                        yield sample_from_json({
                            "kernel": "pipeline", "quantity": "time_to_solution", "method": method,
                            "config": {"mpi": "mpich", "level": "intra_socket", "size_bytes": size,
                                       "partitions": partitions, "gamma_s_per_byte": gamma} | of_threads,
                            "launch": launch, "rounds": [0, 1, 2],
                            "times_s": [times_s(method, size, partitions, gamma)] * 3,
                        })  # fmt: skip


def plain(samples):
    return [sample for sample in samples if sample.method != "earlybird-fresh"]


def slower_many(method, *where):
    """One message per partition takes eight times as long as before."""
    return true_s(method, *where) * (8 if method == "many" else 1)


def test_the_halves_are_a_chessboard():
    wheres = [pipeline_advice.where_of(sample.config) for sample in grid()]
    white, black = pipeline_advice.halves(wheres)
    assert len(white) == len(black) == 12 and not white & black
    assert {size for size, *_ in white} == {size for size, *_ in black} == set(SIZES)


def test_cells_left_out_are_predicted_well_and_the_advice_wins():
    judgement = pipeline_advice.by_cells(plain(grid()))
    assert len(judgement.choices) == 24 and judgement.error() < 0.05 and judgement.coverage() > 0.9
    assert not judgement.lost() and any(choice.advised == "many" for choice in judgement.choices)


def test_launches_left_out_are_judged_at_the_measured_points():
    judgement = pipeline_advice.by_launches(plain(grid()))
    assert judgement.error() == 0 and judgement.coverage() == 1 and not judgement.lost()
    free = pipeline_advice.by_launches(plain(grid()), is_free=True)
    assert len(free.choices) == 2 * len(SIZES) * len(GAMMAS)
    assert all(choice.speed_up == pytest.approx(choice.best_speed_up, rel=0.06) for choice in free.choices)


def test_advice_that_later_launches_contradict_is_counted_as_lost():
    first = [sample for sample in plain(grid()) if sample.launch == "mpich-0-with"]
    second = [sample for sample in plain(grid(slower_many)) if sample.launch == "mpich-1-without"]
    judgement = pipeline_advice.by_launches([*first, *second])
    (worst, *_) = sorted(judgement.lost(), key=lambda choice: choice.speed_up)
    assert worst.advised == "many" and worst.fastest == "single" and worst.speed_up < 0.5
    assert judgement.coverage() < 0.5


def test_the_report_of_kept_samples_states_verdicts(tmp_path, capsys):
    write_samples(tmp_path / "kept.json", [], list(grid(threads=2)))
    assert pipeline_advice.main(["--from", str(tmp_path / "kept.json")]) == 0
    out = capsys.readouterr().out
    assert "mpich, same socket, 2 threads" in out
    assert "launches left out: coverage met, advice that lost met" in out


def test_points_of_several_threads_have_as_many_partitions_for_each():
    points = partitioned_grid.grid("mpich", "intra_socket", 512, threads=4)
    assert {point["partitions"] for point in points} == {4, 32, 128}
    assert {point["threads"] for point in points} == {4}


def test_a_file_that_is_no_grid_is_refused(tmp_path, capsys):
    (tmp_path / "no.json").write_text("{}")
    assert pipeline_advice.main(["--from", str(tmp_path / "no.json")]) == 2
    assert "give a file that --json wrote" in capsys.readouterr().err
