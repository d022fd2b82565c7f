"""`earlybird import` reads what OSU's and Intel's benchmarks printed; the texts are real."""

import json
import re
import shutil
from pathlib import Path

import pytest

from earlybird.data.run import Run

RECORDED = Path(__file__).parents[2] / "recorded" / "benchmarks"
OSU = ("--mpi", "mpich", "--level", "intra_socket", "--ranks", "2")
LATENCY = "# OSU MPI Latency Test v7.4"
IMB = ("--mpi", "intel", "--level", "intra_socket")


@pytest.fixture
def earlybird(in_process):
    return in_process


@pytest.fixture
def imported(earlybird, tmp_path):
    def run(tool: str, *names: str) -> list:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        options = OSU if tool == "osu" else IMB
        earlybird("import", tool, *(RECORDED / f"{name}.txt" for name in names), *options, "-o", "run")
        return Run.open(tmp_path / "run").samples()

    return run


def rows_of(name: str) -> list[list[float]]:
    text = (RECORDED / f"{name}.txt").read_text()
    return [
        [float(value) for value in row.split()]
        for row in re.findall(r"^ *[0-9][0-9. ]*$", text, re.MULTILINE)
    ]


def test_osu_latency_is_a_pingpong(imported):
    samples = imported("osu", "osu_latency")
    assert [(one.config["size_bytes"], one.median_s()) for one in samples] == [
        (size, pytest.approx(time_us * 1e-6)) for size, time_us in rows_of("osu_latency") if time_us
    ]
    assert {one.point()[:3] for one in samples} == {("pingpong", "half_round_trip", None)}
    assert {one.config["buffers"] for one in samples} == {"reuse"}


@pytest.mark.parametrize(
    ("name", "kernel", "directions"),
    [("osu_bw", "msgrate", 1), ("osu_bibw", "osu-bi-directional-bandwidth", 2)],
)
def test_bandwidth_is_the_time_of_a_window(imported, name, kernel, directions):
    """That of both directions is the sum of their bytes over the time of both windows."""
    samples = imported("osu", name)
    for one, (size, rate) in zip(samples, rows_of(name), strict=True):
        assert one.kernel == kernel
        assert directions * 64 * size / one.median_s() == pytest.approx(rate * 1e6)


def test_multiple_bandwidth_is_a_message_rate_of_processes(imported):
    samples = imported("osu", "osu_mbw_mr")
    for one, (size, _, rate) in zip(samples, rows_of("osu_mbw_mr"), strict=True):
        assert (one.config["size_bytes"], one.config["threads"], one.method) == (size, 1, "processes")
        assert one.config["window"] / one.median_s() == pytest.approx(rate)


@pytest.mark.parametrize("name", ["osu_allreduce-f", "osu_bcast-f", "osu_barrier-f"])
def test_a_collective_has_the_mean_and_the_slowest_rank(imported, name):
    samples = imported("osu", name)
    means = [one.median_s() for one in samples if one.quantity == "mean_over_ranks"]
    slowest = [one.median_s() for one in samples if one.quantity == "completion"]
    table = [row[-4:] for row in rows_of(name)]
    assert means == [pytest.approx(row[0] * 1e-6) for row in table]
    assert slowest == [pytest.approx(row[2] * 1e-6) for row in table]


@pytest.mark.parametrize("name", ["osu_allreduce", "osu_alltoall", "osu_multi_lat", "osu_latency_mt"])
def test_other_tables_have_a_sample_for_each_row(imported, name):
    samples = imported("osu", name)
    assert [one.median_s() for one in samples] == [pytest.approx(row[-1] * 1e-6) for row in rows_of(name)]


def test_imb_pingpong(imported):
    samples = imported("imb", "imb_PingPong")
    assert [one.median_s() for one in samples] == [
        pytest.approx(row[2] * 1e-6) for row in rows_of("imb_PingPong")
    ]


def test_imb_collectives_are_all_read(imported):
    samples = imported("imb", "imb_collectives")
    operations = {one.config["operation"] for one in samples}
    assert operations == {
        "allreduce", "bcast", "alltoall", "barrier", "reduce", "allgather", "gather", "scatter",
    }  # fmt: skip
    assert len([one for one in samples if one.quantity == "completion"]) == len(rows_of("imb_collectives"))


def test_imb_bands_and_exchanges(imported):
    samples = imported("imb", "imb_bands", "imb_Sendrecv", "imb_Exchange", "imb_PingPing")
    assert {one.kernel for one in samples} == {
        "msgrate", "imb-biband", "imb-sendrecv", "imb-exchange", "imb-pingping",
    }  # fmt: skip
    assert {one.launch for one in samples} == {f"import-{k}" for k in range(4)}


@pytest.mark.parametrize(
    ("name", "kernel", "directions"), [("Uniband", "msgrate", 1), ("Biband", "imb-biband", 2)]
)
def test_imb_bands_are_windows_of_256_messages(imported, name, kernel, directions):
    table = (
        (RECORDED / "imb_bands.txt").read_text().split(f"Benchmarking {name}")[1].split("# Benchmarking")[0]
    )
    rates = [float(row.split()[3]) for row in re.findall(r"^ *[0-9][0-9. ]*$", table, re.MULTILINE)]
    samples = [one for one in imported("imb", "imb_bands") if one.kernel == kernel]
    assert {one.config["window"] for one in samples} == {256}
    assert [directions * 256 / one.median_s() for one in samples] == [pytest.approx(rate) for rate in rates]


def test_the_window_can_be_given(earlybird, refused, tmp_path):
    band = (RECORDED / "imb_bands.txt", *IMB)
    imported = earlybird("import", "imb", *band, "--window", "64", "-o", "run")
    assert "64 messages in a window" in imported.stderr
    assert {one.config["window"] for one in Run.open(tmp_path / "run").samples()} == {64}
    refused(earlybird("import", "imb", *band, "--window", "0", "-o", "other", check=False), "--window is 0")


def test_every_run_is_shown_reported_and_compared_with_itself(earlybird, tmp_path):
    for path in sorted(RECORDED.glob("*.txt")):
        tool, options = ("osu", OSU) if path.name.startswith("osu") else ("imb", IMB)
        earlybird("import", tool, path, *options, "-o", path.stem)
        assert earlybird("show", path.stem).stdout
        found = json.loads(earlybird("compare", path.stem, path.stem, "--json").stdout)
        assert {one["ratio"] for one in found["changes"]} == {1.0}
        earlybird("report", path.stem, "-o", "report.html")
        assert (tmp_path / "report.html").stat().st_size > 1000


def test_a_profile_is_fitted_with_a_reservation(earlybird, tmp_path):
    earlybird("import", "imb", RECORDED / "imb_PingPong.txt", *IMB, "-o", "run")
    fitted = earlybird("fit", "run", "-o", "profile.json")
    assert "same buffer again" in fitted.stderr
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert profile["levels"]["intra_socket"]["protocols"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "give the whole output"),
        ("hello\n", "OSU MPI Latency Test"),
        ("# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n", "no rows"),
        ("# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1     1.00\n2   \n", "cut off"),
        ("# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1     1.00\n2     1.0", "ends within"),
        ("# OSU MPI Latency Test v7.4\n1     1.00\n", "no header"),
        (
            "# OSU MPI_Put Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1   3.0\n",
            "OSU MPI Latency Test",
        ),
        (
            "# OSU MPI Reduce_scatter Latency Test v7.4\n# Size       Avg Latency(us)\n4   3.0\n",
            "no quantity",
        ),
        (
            "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1     1.00\n"
            "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1   3.0\n",
            "2 outputs",
        ),
        (
            "# OSU MPI-CUDA Latency Test v7.4\n# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
            "# Size          Latency (us)\n1     1.00\n",
            "GPU",
        ),
        ("# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1     1e999\n", "cut off"),
    ],
)
def test_other_texts_are_refused(earlybird, refused, tmp_path, text, named):
    (tmp_path / "text.txt").write_text(text)
    refused(earlybird("import", "osu", "text.txt", *OSU, "-o", "run", check=False), named)
    assert not (tmp_path / "run").exists()


def test_a_table_of_imb_cut_short_is_refused(earlybird, refused, tmp_path):
    text = (RECORDED / "imb_Sendrecv.txt").read_text()
    end = text.index("Mbytes/sec")
    header, row = text.index("\n", end) + 1, text.index("\n", end + 200)
    for length, named in ((end, "ends within"), (row - 9, "ends within"), (header, "no rows")):
        (tmp_path / "text.txt").write_text(text[:length])
        refused(earlybird("import", "imb", "text.txt", *IMB, "-o", "run", check=False), named)
    (tmp_path / "text.txt").write_text(text[: row - 9] + "\n")
    refused(earlybird("import", "imb", "text.txt", *IMB, "-o", "run", check=False), "cut off")


def test_two_outputs_of_imb_in_one_file_are_refused(earlybird, refused, tmp_path):
    text = (RECORDED / "imb_Sendrecv.txt").read_text()
    (tmp_path / "text.txt").write_text(text + text)
    refused(earlybird("import", "imb", "text.txt", *IMB, "-o", "run", check=False), "2 outputs")


def test_the_time_of_a_measurement_is_kept(earlybird, refused, tmp_path):
    path = RECORDED / "osu_latency.txt"
    printed = earlybird(
        "import", "osu", path, *OSU, "--started", "2026-11-01T05:00+02:00", "-o", "run", "--json"
    ).stdout
    values = len([row for row in rows_of("osu_latency") if row[1]])
    assert json.loads(printed) == {"run": "run", "launches": 1, "values": values}
    assert Run.open(tmp_path / "run").header["started"] == "2026-11-01T03:00:00+00:00"
    refused(
        earlybird("import", "osu", path, *OSU, "--started", "monday", "-o", "other", check=False), "--started"
    )
    assert not (tmp_path / "other").exists()


def test_bad_options_are_refused(earlybird, refused):
    path = RECORDED / "osu_allreduce.txt"
    where = ("--mpi", "mpich", "--level")
    refused(earlybird("import", "osu", path, *where, "intra_socket", "-o", "run", check=False), "--ranks")
    refused(earlybird("import", "osu", path, *where, "near", "-o", "run", check=False), "--level")
    refused(earlybird("import", "osu", path, *OSU, "--ranks", "0", "-o", "run", check=False), "--ranks is 0")
    refused(earlybird("import", "imb", "missing.txt", *IMB, "-o", "run", check=False), "missing.txt")
