"""What the bench says of the joined model: cells, halves of a chessboard, errors, and what advice costs."""

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


def test_the_halves_are_a_chessboard():
    cells = pipeline_advice.cells_of(grid())
    white, black = pipeline_advice.halves(cells)
    assert len(white) == len(black) == 12 and not {c.where for c in white} & {c.where for c in black}
    assert {c.where[0] for c in white} == {c.where[0] for c in black} == set(SIZES)
    assert set(cells[0].time_s) == {"single", "many"}


def test_a_model_of_half_the_cells_errs_little_on_the_others_and_advises_the_quickest():
    samples = list(grid())
    cells = pipeline_advice.cells_of(samples)
    fitted, judged = pipeline_advice.halves(cells)
    models = pipeline_advice.models_of(pipeline_advice.table_of(samples, fitted))
    assert max(pipeline_advice.errors_of(models, judged).values()) < 0.05
    for choices in (
        pipeline_advice.choices_of(models, judged), pipeline_advice.free_choices_of(models, judged)
    ):  # fmt: skip
        assert choices and max(choice.slower for choice in choices) < 1.05


def test_advice_that_the_measurement_contradicts_is_reported_as_slower():
    samples = list(grid())
    models = pipeline_advice.models_of(pipeline_advice.table_of(samples, pipeline_advice.cells_of(samples)))
    # What takes eight times as long as the model thinks.
    cells = pipeline_advice.cells_of(
        grid(lambda method, *where: true_s(method, *where) * (8 if method == "many" else 1))
    )
    choice = next(
        choice
        for choice in pipeline_advice.choices_of(models, cells)
        if choice.cell.where == (1 << 20, 4, 1e-9)
    )
    assert (choice.advised, choice.quickest) == ("many", "single")
    right_s = {method: true_s(method, 1 << 20, 4, 1e-9) for method in ("single", "many")}
    assert choice.slower == pytest.approx(8 * right_s["many"] / right_s["single"])


def test_the_report_of_kept_samples_states_verdicts(tmp_path, capsys):
    write_samples(tmp_path / "kept.json", [], list(grid()))
    assert pipeline_advice.main(["--from", str(tmp_path / "kept.json")]) == 0
    out = capsys.readouterr().out
    assert "24 cells" in out and "asked: at most 1.10, met" in out and "always the same method: single" in out


def test_a_grid_of_two_threads_is_judged_by_models_of_two_threads(tmp_path, capsys):
    samples = list(grid(threads=2))
    table = pipeline_advice.table_of(samples, pipeline_advice.cells_of(samples))
    assert set(table.threads) == {2} and {m.source for m in pipeline_advice.models_of(table)} == {"measured"}
    write_samples(tmp_path / "kept.json", [], samples)
    assert pipeline_advice.main(["--from", str(tmp_path / "kept.json")]) == 0
    assert "mpich, intra_socket, 2 threads" in capsys.readouterr().out


def test_points_of_several_threads_have_as_many_partitions_for_each():
    points = partitioned_grid.grid("mpich", "intra_socket", 512, threads=4)
    assert {point["partitions"] for point in points} == {4, 32, 128}
    assert {point["threads"] for point in points} == {4}


def test_a_file_that_is_no_grid_is_refused(tmp_path, capsys):
    (tmp_path / "no.json").write_text("{}")
    assert pipeline_advice.main(["--from", str(tmp_path / "no.json")]) == 2
    assert "give a file that --json wrote" in capsys.readouterr().err
