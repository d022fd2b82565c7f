"""Tables of OSU are read back as they were written, by the parser that reads OSU's own."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.run import Run, Sample
from earlybird.interop.osu_outputs import read_osu
from earlybird.interop.osu_tables import osu_files, osu_tables

RECORDED = Path(__file__).parents[2] / "recorded" / "benchmarks"
OPTIONS = ("--mpi", "mpich", "--level", "intra_socket")
PINGPONG = {"mpi": "mpich", "level": "intra_socket", "buffers": "reuse"}


@pytest.fixture
def earlybird(in_process):
    return in_process


def points_of(run: Path) -> dict:
    return {sample.point(): sample.median_s() for sample in Run.open(run).samples()}


@pytest.mark.parametrize("path", sorted(RECORDED.glob("osu_*.txt")), ids=lambda path: path.stem)
def test_what_was_imported_is_exported_and_imported_again(earlybird, tmp_path, path):
    options = OPTIONS if "neighbor" in path.stem else (*OPTIONS, "--ranks", "2")
    earlybird("import", "osu", path, *options, "-o", "run")
    earlybird("export", "run", "--to", "osu", "-o", "texts")
    (text,) = (tmp_path / "texts").iterdir()
    assert text.name.startswith(path.stem.partition("-")[0].replace("osu_bw", "osu_mbw_mr"))
    earlybird("import", "osu", text, *options, "-o", "again")
    before, after = points_of(tmp_path / "run"), points_of(tmp_path / "again")
    assert before and after == {
        point: pytest.approx(time_s, rel=1e-3, abs=1e-10) for point, time_s in before.items()
    }


def pingpong(size_bytes: int, launch: str, *times_us: float, warmup: int = 0, **more) -> Sample:
    config = PINGPONG | {"size_bytes": size_bytes} | more
    return Sample("pingpong", "half_round_trip", config, launch, np.array(times_us) * 1e-6, warmup=warmup)


def test_mean_and_median_are_of_steady_iterations_and_medians_over_launches():
    samples = [
        pingpong(8, "a", 100, 1, 2, 6, warmup=1), pingpong(1024, "a", 5), pingpong(8, "b", 4),
        pingpong(8, "c", 9),
    ]  # fmt: skip
    (table,) = osu_tables(samples)
    assert (table.program, table.config) == ("osu_latency", PINGPONG)
    assert table.text.splitlines()[-2].split() == ["8", "4.0000", "4.0000"]
    read = read_osu(table.text, "table", None)
    assert [(one.config["size_bytes"], *one.times_s) for one in read.points] == [
        (8, pytest.approx(4e-6)), (1024, pytest.approx(5e-6)),
    ]  # fmt: skip
    (table,) = osu_tables(samples[:1])
    assert table.text.splitlines()[-1].split() == ["8", "3.0000", "2.0000"]
    assert read_osu(table.text, "table", None).points[0].times_s == pytest.approx([2e-6])


@pytest.mark.parametrize(
    ("kernel", "method"), [("msgrate", "processes"), ("osu-bi-directional-bandwidth", "processes")]
)
def test_times_of_a_coarse_clock_have_a_rate_of_0(kernel, method):
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 8, "window": 64, "threads": 1}
    times_s = np.array([0.0, 0.0, 1e-6])
    (table,) = osu_tables([Sample(kernel, "time_per_window", config, "a", times_s, method=method)])
    assert table.text.splitlines()[-1].split()[-1] == "0.0000"


def test_a_collective_has_the_mean_minimum_and_maximum_over_ranks():
    config = {"mpi": "mpich", "operation": "allreduce", "ranks": 2, "map_by": "core", "size_bytes": 8}
    of_ranks = np.array([[1.0, 3.0], [1.0, 3.0], [4.0, 3.0]]) * 1e-6
    sample = Sample(
        "collective", "completion", config, "a", of_ranks.max(axis=1), method="default", rank_times_s=of_ranks
    )
    (table,) = osu_tables([sample])
    assert table.text.splitlines()[-1].split() == ["8", "2.5000", "2.0000", "3.0000", "2.0000"]
    read = read_osu(table.text, "table", 2)
    assert {one.quantity: float(one.times_s[0]) for one in read.points} == {
        "mean_over_ranks": pytest.approx(2e-6), "completion": pytest.approx(3e-6),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "method", "more"),
    [
        ("alltoallv", "default", {"skew": 4}),
        ("neighbor_alltoall", "default", {"topology": "grid-5"}),
        ("neighbor_alltoall", "default", {"topology": "grid-9"}),  # of 2 x 4 ranks: OSU needs 3 x 3
        ("neighbor_alltoall", "persistent", {"topology": "ring"}),
    ],
)
def test_collectives_that_osu_does_not_measure_have_no_table(operation, method, more):
    config = {"mpi": "mpich", "operation": operation, "ranks": 8, "size_bytes": 8, **more}
    assert not osu_tables([Sample("collective", "completion", config, "a", np.ones(3), method=method)])


def test_windows_of_processes_keep_pairs_and_window():
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 8, "window": 32, "threads": 4}
    sample = Sample("msgrate", "time_per_window", config, "a", np.array([3.2e-5]), method="processes")
    (table,) = osu_tables(
        [sample, Sample("msgrate", "time_per_window", config, "a", np.ones(1), method="shared")]
    )
    (point,) = read_osu(table.text, "table", None).points
    assert (point.config["window"], point.config["threads"]) == (32, 4)
    assert point.times_s == pytest.approx([3.2e-5])


@pytest.mark.parametrize(
    ("kernel", "more"), [("pingpong", {}), ("msgrate", {"window": 32, "threads": 4})], ids=str
)
@pytest.mark.parametrize("buffers", ["vary", "reuse"])
def test_whether_contents_were_new_is_read_again(kernel, more, buffers):
    own = {} if (kernel, buffers) == ("msgrate", "vary") else {"buffers": buffers}
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 8, **more, **own}
    method = "processes" if kernel == "msgrate" else None
    (table,) = osu_tables([Sample(kernel, "half_round_trip", config, "a", np.ones(3), method=method)])
    (point,) = read_osu(table.text, "table", None).points
    assert point.config == {"size_bytes": 8, **more, **own}


def test_files_are_named_after_what_differs_and_the_launch():
    samples = [
        pingpong(8, launch, 1.0, level=level)
        for launch in ("a", "b")
        for level in ("intra_socket", "inter_node")
    ]
    assert sorted(osu_files(samples)) == [
        f"osu_latency-{level}-{number}.txt" for level in ("inter_node", "intra_socket") for number in (1, 2)
    ]
    assert list(osu_files(samples[:1])) == ["osu_latency-1.txt"]


def test_runs_without_a_table_and_folders_in_use_are_refused(earlybird, refused, tmp_path):
    run = Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    run.append_samples(
        [Sample("contention", "time_per_repeat", PINGPONG | {"size_bytes": 8}, "a", np.ones(1))]
    )
    refused(earlybird("export", "run", "--to", "osu", "-o", "texts", check=False), "contention", "pingpong")
    assert not (tmp_path / "texts").exists()
    run.append_samples([pingpong(8, "a", 1.0)])
    assert "left out contention" in earlybird("export", "run", "--to", "osu", "-o", "texts").stderr
    refused(earlybird("export", "run", "--to", "osu", "-o", "texts", check=False), "texts exists")
    shutil.rmtree(tmp_path / "texts")
    refused(
        earlybird("export", "run", "--to", "osu", "--quantity", "bytes", "-o", "texts", check=False),
        "--quantity",
    )


VALIDATED = """# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)      Validation
8                       2.90            Pass
16                      3.10            {outcome}
"""


def test_the_outcome_of_the_validation_is_read():
    points = read_osu(VALIDATED.format(outcome="Pass"), "table", None).points
    assert [point.times_s for point in points] == [pytest.approx([2.9e-6]), pytest.approx([3.1e-6])]
    with pytest.raises(InputError, match="wrong data at 16 bytes"):
        read_osu(VALIDATED.format(outcome="Fail"), "table", None)
    with pytest.raises(InputError, match="cut off or changed"):
        read_osu(VALIDATED.format(outcome="Pa"), "table", None)


def test_tables_of_several_datatypes_are_no_launches():
    text = VALIDATED.format(outcome="Pass") + "# Datatype: MPI_INT.\n8  2.90  Pass\n"
    with pytest.raises(InputError, match="tables of MPI_CHAR and MPI_INT"):
        read_osu(text, "table", None)


@pytest.mark.parametrize("name", ["osu_latency-cz", "osu_bw-cz", "osu_gather-cfz"])
def test_medians_follow_the_outcome_of_the_validation(name):
    text = (RECORDED / f"{name}.txt").read_text()
    found = read_osu(text, name, 2)
    assert {one.statistic for one in found.points if one.quantity != "completion"} == {"median"}
    assert all(one.config["validation"] == "each iteration" for one in found.points)
    rows = [line.split() for line in text.splitlines() if "Pass" in line]
    points = [point for point in found.points if point.quantity != "completion"]
    for point, row in zip(points, rows, strict=True):
        median = float(row[row.index("Pass") + 1])
        rate = 64 * int(row[0]) / point.times_s[0] / 1e6
        assert median == pytest.approx(rate if "bw" in name else point.times_s[0] * 1e6)
    first, _, rest = text.partition("Pass")
    with pytest.raises(InputError, match="wrong data at 2 bytes"):
        read_osu(f"{first}Pass{rest.replace('Pass', 'Fail', 1)}", name, 2)
