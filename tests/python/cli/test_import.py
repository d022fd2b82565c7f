"""`earlybird import` reads what OSU's and Intel's benchmarks and ReproMPI printed; the texts are real."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest

from earlybird.data.run import Run
from earlybird.data.tables import THUNE_HEADER
from earlybird.interop import profile_table

RECORDED = Path(__file__).parents[2] / "recorded" / "benchmarks"
OSU_NEIGHBOURS = ("--mpi", "mpich", "--level", "intra_socket")  # their outputs say among how many ranks
OSU = (*OSU_NEIGHBOURS, "--ranks", "2")
LATENCY = "# OSU MPI Latency Test v7.4"
IMB = ("--mpi", "intel", "--level", "intra_socket")
REPRO = ("--mpi", "mpich")
OPTIONS = {"osu": OSU, "imb": IMB, "repro": REPRO}


def options_for(tool: str, name: str) -> tuple[str, ...]:
    return OSU_NEIGHBOURS if "neighbor" in name else OPTIONS[tool]


@pytest.fixture
def imported(earlybird, tmp_path):
    def run(tool: str, *names: str) -> list:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        paths = [RECORDED / f"{name}.txt" for name in names]
        earlybird("import", tool, *paths, *options_for(tool, names[0]), "-o", "run")
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
        assert (one.kernel, one.config["buffers"]) == (kernel, "reuse")
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


@pytest.mark.parametrize(
    ("name", "columns"),
    [("osu_allreduce-f", ["completion", "mean"]), ("osu_allreduce", ["mean"])],
)
def test_a_collective_is_shown_in_one_row_of_each_size(earlybird, name, columns):
    earlybird("import", "osu", RECORDED / f"{name}.txt", *OSU, "-o", "run")
    shown = earlybird("show", "run").stdout.splitlines()
    header = re.split(r"\s{2,}", next(line for line in shown if line.startswith("operation")))
    assert [name for name in header if name in ("completion", "mean")] == columns
    assert sum(line.startswith("allreduce") for line in shown) == len(rows_of(name))
    assert sum("default" in line for line in shown) == len(rows_of(name))


@pytest.mark.parametrize("name", ["osu_allreduce", "osu_alltoall", "osu_multi_lat", "osu_latency_mt"])
def test_other_tables_have_a_sample_for_each_row(imported, name):
    samples = imported("osu", name)
    assert [one.median_s() for one in samples] == [pytest.approx(row[-1] * 1e-6) for row in rows_of(name)]


@pytest.mark.parametrize(
    ("name", "operation", "method", "more"),
    [
        ("osu_alltoallv-f", "alltoallv", "default", {"skew": 1, "ranks": 2}),
        ("osu_allgatherv", "allgatherv", "default", {"skew": 1, "ranks": 2}),
        ("osu_allgather_persistent-f", "allgather", "persistent", {"ranks": 2}),
        ("osu_alltoallv_persistent", "alltoallv", "persistent", {"skew": 1, "ranks": 2}),
        ("osu_bcast_persistent", "bcast", "persistent", {"root": 0, "ranks": 2}),
        ("osu_barrier_persistent-f", "barrier", "persistent", {"ranks": 2}),
        ("osu_neighbor_allgather-f", "neighbor_allgather", "default", {"topology": "ring", "ranks": 4}),
        ("osu_neighbor_alltoall-fz", "neighbor_alltoall", "default", {"topology": "ring", "ranks": 4}),
        ("osu_neighbor_alltoallv-2d-f", "neighbor_alltoallv", "default",
         {"topology": "grid-9", "skew": 1, "ranks": 9}),
    ],
)  # fmt: skip
def test_counts_neighbours_and_persistent_calls_are_read(imported, name, operation, method, more):
    """They have the configuration that `measure collective` gives its points, apart from the mapping."""
    samples = imported("osu", name)
    quantities = {"mean_over_ranks"} | ({"completion"} if "-f" in name else set())
    assert {one.quantity for one in samples} == quantities
    for one in samples:
        size = {"size_bytes": one.config["size_bytes"]}
        assert one.config == {
            "mpi": "mpich", "operation": operation, "map_by": "unknown", **more, **size,
        }  # fmt: skip
        assert (one.kernel, one.method) == ("collective", method)
    assert len(samples) == len(quantities) * len(rows_of(name))


def osu_neighbours(grid: str) -> str:
    text = (RECORDED / "osu_neighbor_allgather-f.txt").read_text()
    return re.sub("^Dimensions.*\n", grid, text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("grid", "named"),
    [
        ("", "neighbours from a file"),  # of -N graph:FILE, which prints no dimensions
        ("Dimensions size = 3 3 3 \n", "in a grid of 3 x 3 x 3"),
        ("Dimensions size = 12 3 \n", "in a grid of 12 x 3"),
        ("Dimensions size = 0 \n", "in a grid of 0"),
    ],
)
def test_neighbours_that_no_topology_has_are_refused(earlybird, refused, tmp_path, grid, named):
    (tmp_path / "text.txt").write_text(osu_neighbours(grid))
    result = earlybird("import", "osu", "text.txt", *OSU_NEIGHBOURS, "-o", "run", check=False)
    refused(result, named, "-N cart:1:1 (ring)")


def test_the_distance_of_neighbours_is_said_where_it_could_be_another(earlybird, refused, tmp_path):
    for ranks, is_said in ((4, False), (8, True)):
        (tmp_path / "text.txt").write_text(osu_neighbours(f"Dimensions size = {ranks} \n"))
        result = earlybird("import", "osu", "text.txt", *OSU_NEIGHBOURS, "-o", f"run{ranks}")
        assert ("distance of 1 (-N) are assumed" in result.stderr) == is_said
    refused(earlybird("import", "osu", "text.txt", *OSU, "-o", "run", check=False), "--ranks is 2", "8 ranks")


@pytest.mark.parametrize("name", ["osu_latency-z", "osu_allreduce-fz", "osu_barrier-fz"])
def test_the_median_over_iterations_is_preferred_to_the_mean(imported, name):
    text = (RECORDED / f"{name}.txt").read_text()
    columns = next(line for line in text.splitlines() if "P50" in line).removeprefix("#")
    column = re.split(r"\s{2,}", columns.strip()).index("P50 Tail Lat(us)")
    medians = [one.median_s() for one in imported("osu", name) if one.quantity != "completion"]
    assert medians == [pytest.approx(row[column] * 1e-6) for row in rows_of(name)]


@pytest.mark.parametrize("name", ["osu_bw-z", "osu_bibw-z", "osu_mbw_mr-z"])
def test_so_is_the_median_of_bandwidths(imported, name):
    directions = 2 if name == "osu_bibw-z" else 1
    column = 3 if name == "osu_mbw_mr-z" else 2
    for one, row in zip(imported("osu", name), rows_of(name), strict=True):
        assert directions * 64 * row[0] / one.median_s() == pytest.approx(row[column] * 1e6)


def test_imb_pingpong(imported):
    """By the bandwidth where it has more digits than the time."""
    samples = imported("imb", "imb_PingPong")
    rows = rows_of("imb_PingPong")
    assert [one.median_s() for one in samples] == [
        pytest.approx(size / rate * 1e-6 if rate > time_us else time_us * 1e-6)
        for size, _, time_us, rate in rows
    ]
    assert [one.median_s() for one in samples] == [pytest.approx(row[2] * 1e-6, abs=5.1e-9) for row in rows]


def test_imb_collectives_are_all_read(imported):
    samples = imported("imb", "imb_collectives")
    operations = {one.config["operation"] for one in samples}
    assert operations == {
        "allreduce", "bcast", "alltoall", "barrier", "reduce", "allgather", "gather", "scatter",
    }  # fmt: skip
    assert len([one for one in samples if one.quantity == "completion"]) == len(rows_of("imb_collectives"))


def test_imb_reads_collectives_with_counts_and_names_what_it_leaves_out(earlybird, refused, tmp_path):
    path = RECORDED / "imb_counts.txt"
    printed = earlybird("import", "imb", path, *IMB, "-o", "run").stderr
    assert "without a quantity here: gatherv, scatterv, reduce_scatter, reduce_scatter_block" in printed
    samples = Run.open(tmp_path / "run").samples()
    assert {(one.config["operation"], one.config["skew"]) for one in samples} == {
        ("alltoallv", 1), ("allgatherv", 1),
    }  # fmt: skip
    head, *tables = path.read_text().split("# Benchmarking ")
    (tmp_path / "gatherv.txt").write_text(head + "# Benchmarking ".join(["", *tables[2:]]))
    result = earlybird("import", "imb", "gatherv.txt", *IMB, "-o", "other", check=False)
    refused(result, "no table with a quantity here: gatherv", "allgatherv, alltoallv")


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
    assert {(one.config["window"], one.config["buffers"]) for one in samples} == {(256, "reuse")}
    assert [directions * 256 / one.median_s() for one in samples] == [pytest.approx(rate) for rate in rates]


def test_the_window_can_be_given(earlybird, refused, tmp_path):
    """Where the output does not say it: here without its calling sequence."""
    whole = (RECORDED / "imb_bands.txt").read_text()
    result = earlybird(
        "import", "imb", RECORDED / "imb_bands.txt", *IMB, "--window", "64", "-o", "x", check=False
    )
    refused(result, "--window is 64, and", "windows of 256 by its calling sequence")
    (tmp_path / "text.txt").write_text(whole.replace("Calling sequence was:", "").replace("# IMB-MPI1", "#"))
    band = ("text.txt", *IMB)
    imported = earlybird("import", "imb", *band, "--window", "64", "-o", "run")
    assert "64 messages in a window" in imported.stderr
    assert {one.config["window"] for one in Run.open(tmp_path / "run").samples()} == {64}
    refused(
        earlybird("import", "imb", *band, "--window", "0", "-o", "other", check=False),
        "'--window': 0 is not 1 or more",
    )


def test_every_run_is_shown_reported_and_compared_with_itself(earlybird, tmp_path):
    for path in sorted(RECORDED.glob("*.txt")):
        tool = path.name.partition("_")[0]
        if path.stem == "repro_summary":  # refused
            continue
        earlybird("import", tool, path, *options_for(tool, path.stem), "-o", path.stem)
        assert earlybird("show", path.stem).stdout
        found = json.loads(earlybird("compare", path.stem, path.stem, "--json").stdout)
        assert {one["ratio"] for one in found["changes"]} == {1.0}
        earlybird("report", path.stem, "-o", "report.html")
        assert (tmp_path / "report.html").stat().st_size > 1000


def test_a_profile_is_fitted_with_a_reservation(earlybird, tmp_path):
    earlybird("import", "imb", RECORDED / "imb_PingPong.txt", *IMB, "-o", "run")
    fitted = earlybird("fit", "run", "-o", "profile.json")
    assert "same buffer again" in fitted.stderr and "have means over iterations" in fitted.stderr
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
            "is of 'OSU MPI_Put Bandwidth'",
        ),
        (
            "# OSU MPI Reduce_scatter Latency Test v7.4\n# Size       Avg Latency(us)\n4   3.0\n",
            "osu_latency_mp, or the blocking or persistent test of a collective (bcast,",
        ),
        (
            "# OSU MPI Non-blocking Allgather Latency Test v7.4\n"
            "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n# Datatype: MPI_CHAR.\n"
            "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
            "16                      8.64              5.37              4.75             31.18\n",
            "osu_latency_mp, or the blocking or persistent test of a collective (bcast,",
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
        (
            "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
            "# Size       Avg Latency(us)     Transmit Size\n1                 0.98                 1\n",
            "is of a derived datatype (-D)",
        ),
        (
            "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: 64 ]\n"
            "# Size                  MB/s        Messages/s     Transmit Size\n"
            "1                       0.00              -nan                 0\n",
            "is of a derived datatype (-D)",
        ),
        (
            "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n8     1.25\n16    1.25\n8     1.50\n",
            "pingpong of 8 B twice",
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


@pytest.mark.parametrize("name", ["osu_latency", "imb_PingPong", "repro_window"])
def test_lines_of_a_batch_system_are_to_be_removed(earlybird, refused, tmp_path, name):
    text = (RECORDED / f"{name}.txt").read_text()
    line = "srun: Job step done"
    changed = text.replace("# All processes", f"{line}\n# All processes")
    (tmp_path / "text.txt").write_text(changed if changed != text else f"{text}{line}\n")
    tool = name.partition("_")[0]
    result = earlybird("import", tool, "text.txt", *OPTIONS[tool], "-o", "run", check=False)
    refused(result, repr(line), "remove lines that the benchmark did not print")


def test_a_table_twice_in_an_output_of_imb_is_refused(earlybird, refused, tmp_path):
    text = (RECORDED / "imb_PingPong.txt").read_text()
    table = text[text.index("# Benchmarking") : text.index("# All processes")]
    (tmp_path / "text.txt").write_text(text.replace(table, table + table))
    refused(
        earlybird("import", "imb", "text.txt", *IMB, "-o", "run", check=False),
        "pingpong of 0 B twice",
        "a file for each",
    )


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


def test_a_run_that_exists_is_not_imported_into(earlybird, refused):
    imported = ("import", "osu", RECORDED / "osu_latency.txt", *OSU, "-o", "run")
    earlybird(*imported)
    again = earlybird(*imported, check=False)
    refused(again, "run exists already; choose another name")
    assert "--resume" not in again.stderr


@pytest.mark.parametrize("sides", [("run", "named"), ("named", "run")])
def test_a_comparison_of_an_import_without_a_host_asks_for_one(earlybird, refused, sides):
    imported = ("import", "osu", RECORDED / "osu_latency.txt", *OSU)
    earlybird(*imported, "-o", "run")
    earlybird(*imported, "--host", "site", "-o", "named")
    refused(earlybird("compare", *sides, check=False), "run was imported without --host", "--host site")
    earlybird(*imported, "--host", "other", "-o", "other")
    refused(earlybird("compare", "named", "other", check=False), "measure both in one place")


def test_a_comparison_of_two_imports_without_hosts_says_so(earlybird):
    imported = ("import", "osu", RECORDED / "osu_latency.txt", *OSU)
    for run in ("before", "after"):
        earlybird(*imported, "-o", run)
    compared = earlybird("compare", "before", "after")
    assert "were imported without --host" in compared.stderr


def test_bad_options_are_refused(earlybird, refused):
    path = RECORDED / "osu_allreduce.txt"
    where = ("--mpi", "mpich", "--level")
    refused(earlybird("import", "osu", path, *where, "intra_socket", "-o", "run", check=False), "--ranks")
    refused(earlybird("import", "osu", path, *where, "near", "-o", "run", check=False), "--level")
    refused(
        earlybird("import", "osu", path, *OSU, "--ranks", "0", "-o", "run", check=False),
        "'--ranks': 0 is not 1 or more",
    )
    refused(earlybird("import", "imb", "missing.txt", *IMB, "-o", "run", check=False), "missing.txt")


TABLE = """level,placement,pairs,bytes,time_s
inter_node,0,1,8,4e-6
inter_node,0,2,8,5e-6
inter_node,1,1,8,6e-6
inter_node,1,1,8,8e-6
"""


def test_a_table_of_another_site_is_a_run(earlybird, tmp_path):
    """Placements are launches, and repeated times iterations; several pairs are no ping-pong of ours."""
    (tmp_path / "site.csv").write_text(TABLE)
    earlybird("import", "table", "site.csv", "--mpi", "craympich", "-o", "run")
    samples = Run.open(tmp_path / "run").samples()
    assert [(one.kernel, one.launch, one.times_s.tolist()) for one in samples] == [
        ("pingpong", "import-0", [4e-6]),
        ("pingpong-of-pairs", "import-0", [5e-6]),
        ("pingpong", "import-1", [6e-6, 8e-6]),
    ]
    assert samples[1].config["pairs"] == 2 and samples[0].config["level"] == "inter_node"
    assert "pingpong-of-pairs" in earlybird("show", "run").stdout


def test_a_table_of_fitted_parameters_becomes_profiles(earlybird, refused, tmp_path):
    header = "cpu,level,latency_us,bw_sp_gbs,bw_mp_2_gbs,bw_mp_4_gbs,bw_mp_8_gbs,bw_mp_16_gbs,bw_max_gbs"
    (tmp_path / "table.csv").write_text(f"{header}\nCPU one,intra_socket,2.5,7,14,25,32,45,54\n")
    earlybird("import", "table", "table.csv", "-o", "site")
    profile = json.loads((tmp_path / "site" / "CPU-one.json").read_text())
    assert profile["levels"]["intra_socket"]["protocols"][0]["latency_s"] == pytest.approx(2.5e-6)
    refused(earlybird("import", "table", "table.csv", "-o", "site", check=False), "site exists")


def test_another_table_is_refused(earlybird, refused, tmp_path):
    (tmp_path / "site.csv").write_text("size,time\n8,1e-6\n")
    refused(
        earlybird("import", "table", "site.csv", "-o", "run", check=False),
        "level,placement,pairs,bytes,time_s",
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("tool", "name", "started"),
    [("imb", "imb_Sendrecv", "2026-11-26T23:05:55"), ("repro", "repro_shuffled", "2026-11-27T02:10:32")],
)
def test_a_run_begins_when_its_output_says(earlybird, tmp_path, monkeypatch, tool, name, started):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    earlybird("import", tool, RECORDED / f"{name}.txt", *OPTIONS[tool], "-o", "run")
    assert Run.open(tmp_path / "run").header["started"].startswith(started)


def test_imb_text_that_ends_with_a_whole_line_before_its_last_is_refused(earlybird, refused, tmp_path):
    lines = (RECORDED / "imb_PingPong.txt").read_text().splitlines(keepends=True)
    row = max(k for k, line in enumerate(lines) if line.split()[:1] == ["65536"])
    (tmp_path / "cut.txt").write_text("".join(lines[: row + 1]))
    refused(earlybird("import", "imb", "cut.txt", *IMB, "-o", "run", check=False), "it was cut off")


def test_the_same_text_twice_is_no_second_launch(earlybird, refused, tmp_path):
    shutil.copy(RECORDED / "osu_latency.txt", tmp_path / "copy.txt")
    arguments = ("import", "osu", RECORDED / "osu_latency.txt", "copy.txt", *OSU, "-o", "run")
    refused(earlybird(*arguments, check=False), "the same text")
    once = ("import", "osu", RECORDED / "osu_barrier-f.txt", *OSU, "-o", "run")
    refused(earlybird(*once[:3], *once[2:], check=False), "the same text")


def test_two_launches_may_print_the_same_few_values(earlybird, tmp_path):
    shutil.copy(RECORDED / "osu_barrier-f.txt", tmp_path / "copy.txt")
    earlybird("import", "osu", RECORDED / "osu_barrier-f.txt", "copy.txt", *OSU, "-o", "run")
    assert len(Run.open(tmp_path / "run").launches()) == 2


def test_means_are_not_written_as_medians(earlybird, tmp_path):
    earlybird("import", "osu", RECORDED / "osu_latency.txt", *OSU, "-o", "run")
    earlybird("export", "run", "--to", "osu", "-o", "texts")
    (text,) = (path.read_text() for path in (tmp_path / "texts").iterdir())
    assert "Avg Latency(us)" in text and "P50" not in text


def test_collectives_without_a_layout_are_not_fitted(earlybird, refused):
    earlybird("import", "osu", RECORDED / "osu_allreduce-f.txt", *OSU, "-o", "run")
    result = earlybird("fit", "run", "-o", "profile.json", check=False)
    refused(result, "run is imported", "do not say the layout", "earlybird measure collective")


def test_means_over_ranks_do_not_check_guidelines(earlybird, refused):
    earlybird("import", "osu", RECORDED / "osu_allreduce.txt", *OSU, "-o", "run")
    refused(earlybird("compare", "--guidelines", "run", check=False), "import -f")


def test_what_is_a_mean_is_named_and_more_outputs_are_asked_for(earlybird, tmp_path):
    """OSU prints a mean, with -z 50 also the median; an imported run cannot be resumed."""
    for name in ("osu_latency", "osu_latency-z"):
        earlybird("import", "osu", RECORDED / f"{name}.txt", *OSU, "-o", name)
    result = earlybird("compare", "osu_latency", "osu_latency-z")
    differs = "differs   value of pingpong half_round_trip: mean over iterations -> median over iterations"
    assert differs in result.stdout and "not decided" in result.stderr
    assert "import both again with more outputs" in result.stderr
    saved = earlybird("baseline", "save", "site", "osu_latency")
    assert "import osu_latency again with more outputs" in saved.stderr
    assert "--resume" not in result.stderr + saved.stderr


def test_texts_of_other_datatypes_are_another_run_and_named_by_compare(earlybird, refused, tmp_path):
    chars = RECORDED / "osu_allreduce-f.txt"
    (tmp_path / "ints.txt").write_text(chars.read_text().replace("MPI_CHAR", "MPI_INT"))
    earlybird("import", "osu", chars, *OSU, "-o", "chars")
    earlybird("import", "osu", "ints.txt", *OSU, "-o", "ints")
    assert "differs   datatype: MPI_CHAR -> MPI_INT" in earlybird("compare", "chars", "ints").stdout
    both = earlybird("import", "osu", chars, "ints.txt", *OSU, "-o", "both", check=False)
    refused(both, "osu_allreduce-f.txt has MPI_CHAR and ints.txt has MPI_INT", "a run of its own")
    assert not (tmp_path / "both").exists()


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n", "0.00"),
        ("# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n", "0.00"),
        (
            "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: 64 ]\n"
            "# Size                  MB/s        Messages/s\n",
            "0.00    0.00",
        ),
    ],
)
def test_values_printed_as_0_are_counted(earlybird, tmp_path, header, value):
    row = value.replace("0.00", "1.25")
    (tmp_path / "text.txt").write_text(f"{header}1     {value}\n2     {value}\n4     {row}\n")
    printed = earlybird("import", "osu", "text.txt", *OSU, "-o", "run").stderr
    assert "1 value from 1 launch" in printed and "left out: 2 values printed as 0" in printed
    printed = earlybird("import", "imb", RECORDED / "imb_PingPing.txt", *IMB, "-o", "imb").stderr
    assert "printed as 0" not in printed


def test_the_help_names_medians_and_every_latency(earlybird):
    shown = " ".join(earlybird("import", "osu", "--help").stdout.split())
    assert "with -z 50 the median" in shown and "osu_latency_mt and osu_latency_mp keep names" in shown


def test_the_datatypes_of_imb_are_kept(earlybird, tmp_path):
    earlybird("import", "imb", RECORDED / "imb_collectives.txt", *IMB, "-o", "run")
    (launch,) = Run.open(tmp_path / "run").launches()
    assert launch["datatype"] == "MPI_BYTE, MPI_FLOAT of reductions"


@pytest.mark.parametrize("named", ["my own MPI", "MPICH", "", "mpich 4", "-4.2", "mpich-", "mpich+", "fast"])
def test_a_text_that_names_no_mpi_is_refused(earlybird, refused, tmp_path, named):
    where = ("--level", "intra_socket", "-o", "run")
    text = RECORDED / "osu_latency.txt"
    refused(earlybird("import", "osu", text, f"--mpi={named}", *where, check=False), "--mpi is", "mpich-4.2")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("named", ["openmpi-5.0.11-ucx", "craympich", "mpich+MPIR_CVAR_CH4_NUM_VCIS=2"])
def test_an_mpi_may_have_a_label_or_settings(earlybird, tmp_path, named):
    text = RECORDED / "osu_latency.txt"
    earlybird("import", "osu", text, "--mpi", named, "--level", "intra_socket", "-o", "run")
    assert {one.config["mpi"] for one in Run.open(tmp_path / "run").samples()} == {named}


@pytest.mark.parametrize("option", ["--mpi", "--host", "--version", "--started"])
def test_profiles_of_a_table_refuse_the_options_of_a_run(earlybird, refused, tmp_path, option):
    (tmp_path / "table.csv").write_text(",".join(THUNE_HEADER) + "\n")
    result = earlybird("import", "table", "table.csv", option, "mpich", "-o", "out", check=False)
    refused(result, f"omit {option}")


def test_values_that_no_run_has_are_refused_and_nothing_is_left(earlybird, refused, tmp_path):
    rows = "".join(f"intra_socket,1,1,{size},1e300\n" for size in (8, 16))
    (tmp_path / "times.csv").write_text(f"level,placement,pairs,bytes,time_s\n{rows}")
    result = earlybird("import", "table", tmp_path / "times.csv", "-o", tmp_path / "site", check=False)
    refused(result, "times.csv", "time")
    assert not (tmp_path / "site").exists()


def test_an_interrupted_import_of_profiles_leaves_nothing(tmp_path, monkeypatch):
    rows = "".join(f"{cpu},intra_socket,1,2,3,4,5,6,7\n" for cpu in ("A", "B"))
    (tmp_path / "table.csv").write_text(",".join(THUNE_HEADER) + f"\n{rows}")
    save = profile_table.save_profile

    def interrupted(profile, path):
        if profile.id == "B":
            raise KeyboardInterrupt
        save(profile, path)

    monkeypatch.setattr(profile_table, "save_profile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        profile_table.import_profiles(tmp_path / "table.csv", tmp_path / "site")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    monkeypatch.undo()
    written = profile_table.import_profiles(tmp_path / "table.csv", tmp_path / "deep" / "site")
    assert written == sorted((tmp_path / "deep" / "site").iterdir()) and len(written) == 2


def test_profiles_whose_files_would_have_the_same_name_are_refused(earlybird, refused, tmp_path):
    rows = "".join(f"{cpu},intra_socket,1,2,3,4,5,6,7\n" for cpu in ("A B", "A/B"))
    (tmp_path / "table.csv").write_text(",".join(THUNE_HEADER) + f"\n{rows}")
    result = earlybird("import", "table", "table.csv", "-o", "site", check=False)
    refused(result, "table.csv has CPUs whose names differ only")
    assert not (tmp_path / "site").exists()


def test_a_profile_that_cannot_be_written_leaves_no_folder(earlybird, refused, tmp_path):
    names = "cpu,level,latency_us,bw_sp_gbs,bw_mp_2_gbs,bw_mp_4_gbs,bw_mp_8_gbs,bw_mp_16_gbs,bw_max_gbs"
    row = f"{'x' * 400},intra_socket,2.3,7.5,14.6,25.5,32.5,45.0,54.0"
    (tmp_path / "table.csv").write_text(f"{names}\n{row}\n")
    result = earlybird("import", "table", tmp_path / "table.csv", "-o", tmp_path / "site", check=False)
    refused(result, "name too long", status=result.returncode)
    assert not (tmp_path / "site").exists()
