"""`earlybird fit` from the command line: tables, JSON, files, one sentence for wrong input."""

import csv
import io
import json
from pathlib import Path

import pytest

from earlybird.data.profile import load_profile
from earlybird.data.run import Run, Sample
from earlybird.data.tables import PINGPONG_HEADER, THUNE_HEADER
from tests.reference import needs_reference, reference

BLUE_WATERS = "blue_waters_pingpong.csv"


@pytest.fixture
def earlybird(monkeypatch, run_main, tmp_path):
    """earlybird("fit", ...) runs the command in an empty folder: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    return run_main


def write_run(path, *, flavour="mpich", launches=5, validated=True):
    run = Run.create(path, machine={"cpu_model": "Test CPU", "cores": 4}, command=["earlybird"], seed=1)
    for launch in range(launches):
        run.append_launch({"id": str(launch), "flavour": flavour, "version": "1", "launcher": "local"})
        run.append_samples(
            Sample(
                "contention",
                "time_per_repeat",
                {"mpi": flavour, "level": "intra_socket", "competitors": n, "size_bytes": size, "repeats": 4},
                str(launch),
                (2e-6 + size / 1e10) * (1 + 0.01 * _some([launch, n, size])),
                validated=validated,
            )
            for n in (1, 2, 4)
            for size in (2**k for k in range(10, 21))
        )
    return path


def _some(key):
    import numpy as np

    return np.random.default_rng(key).standard_normal(3)


def test_a_run_becomes_a_profile_and_a_table(earlybird, tmp_path):
    status, out, err = earlybird("fit", write_run(tmp_path / "run"), "-o", "mine.json")
    assert status == 0
    assert "rendezvous" in out and "GB/s" in out and ".." in out
    assert "earlybird predict" in err
    assert sorted(load_profile("mine.json").levels["intra_socket"].protocols[0].bandwidth_bytes_per_s) == [
        1,
        2,
        4,
    ]


def test_the_next_command_for_a_cluster_has_its_nodes_and_its_launcher(earlybird, tmp_path):
    run = write_run(tmp_path / "run")
    header = json.loads((run / "run.json").read_text())
    header["settings"] = {"launcher": "cluster:mine", "hosts": None, "mpi": "mpich"}
    (run / "run.json").write_text(json.dumps(header))
    assert "predict PATTERN --profile profile.json --layout 1x1x4\n" in earlybird("fit", run)[2]
    Run.open(run).append_launch({"id": "5", "node_received_bytes": [1, 2, None, 4]})
    err = earlybird("fit", run)[2]
    assert "predict PATTERN --profile profile.json --layout 4x1x2, " in err
    assert "--layout 4x1x2 --launcher cluster:mine --mpi mpich -o replay\n" in err


def test_a_bound_is_marked_in_the_table(earlybird, tmp_path):
    run = Run.create(tmp_path / "run", machine={}, command=["earlybird"], seed=1)
    run.append_launch({"id": "0", "flavour": "mpich", "version": "1", "launcher": "local"})
    config = {"mpi": "mpich", "level": "intra_socket", "competitors": 1, "repeats": 4}
    run.append_samples(
        Sample(
            "contention", "time_per_repeat", config | {"size_bytes": size}, "0", 1e-6 + 0 * _some([1, 2, 3])
        )
        for size in (1, 2, 4, 8, 16)
    )
    assert "B/s bound" in earlybird("fit", run.path)[1]
    assert "bound" not in earlybird("fit", write_run(tmp_path / "other"))[1]


def test_the_profile_is_written_to_profile_json_and_may_be_replaced(earlybird, tmp_path):
    run = write_run(tmp_path / "run")
    assert earlybird("fit", run)[0] == 0 and earlybird("fit", run)[0] == 0
    assert load_profile("profile.json").intervals


@pytest.mark.parametrize("content", ["notes", '{"schema": "earlybird.run/1"}'])
def test_another_file_is_not_overwritten(earlybird, tmp_path, content):
    Path("profile.json").write_text(content)
    status, _, err = earlybird("fit", write_run(tmp_path / "run"))
    assert status == 2 and "not a profile" in err
    assert Path("profile.json").read_text() == content


def test_json_is_one_object_on_stdout(earlybird, tmp_path):
    status, out, _ = earlybird("fit", write_run(tmp_path / "run"), "--json", "--model-selection")
    summary = json.loads(out)
    assert status == 0 and summary["profile"] == "profile.json" and len(summary["warnings"]) == 1
    assert "`earlybird measure completion -o RUN` measures it" in summary["warnings"][0]
    assert summary["levels"]["intra_socket"]["held_out_error"] < 0.05
    assert summary["intervals"]["intra_socket"]["rendezvous"]["latency_s"]
    assert [row["segments"] for row in summary["model_selection"]] == [1, 2, 3]
    assert [row["chosen"] for row in summary["model_selection"]].count(True) == 1


def test_csv_has_a_row_per_n(earlybird, tmp_path):
    _, out, _ = earlybird("fit", write_run(tmp_path / "run"), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["n"] for row in rows] == ["1", "2", "4"]
    for row in rows:
        low, middle, high = (float(row[f"bandwidth_{part}bytes_per_s"]) for part in ("low_", "", "high_"))
        assert low <= middle <= high


def test_model_selection_prints_the_comparison(earlybird, tmp_path):
    _, out, _ = earlybird("fit", write_run(tmp_path / "run"), "--model-selection")
    assert "criterion" in out and "parameters" in out
    assert sum(line.endswith("  yes") for line in out.splitlines()) == 1


def test_the_papers_method_is_recorded_in_the_profile(earlybird, tmp_path):
    earlybird("fit", write_run(tmp_path / "run"), "--paper")
    assert load_profile("profile.json").extra["fit"]["method"] == "paper"


def test_a_table_of_ping_pongs_is_recognised_by_its_header(earlybird):
    lines = [f"inter_node,{place},{n},{size},{4e-6 + n * size / 1e9}"
             for place in range(2) for n in (1, 2) for size in (8, 64, 512, 4096)]  # fmt: skip
    Path("t.csv").write_text("\n".join([",".join(PINGPONG_HEADER), *lines]) + "\n")
    assert earlybird("fit", "t.csv")[0] == 0
    (protocol,) = load_profile("profile.json").levels["inter_node"].protocols
    assert protocol.bandwidth_bytes_per_s == pytest.approx({1: 1e9, 2: 1e9}, rel=1e-6)


@needs_reference(BLUE_WATERS)
def test_blue_waters_from_the_command_line(earlybird):
    status, out, _ = earlybird("fit", reference(BLUE_WATERS), "--json")
    level = json.loads(out)["levels"]["inter_node"]
    assert status == 0 and level["held_out_error"] <= 0.10
    assert [protocol["name"] for protocol in level["protocols"]] == ["short", "eager", "rendezvous"]


def test_wrong_input_ends_in_one_sentence_and_writes_nothing(earlybird, tmp_path):
    run = write_run(tmp_path / "run")
    Path("fitted.csv").write_text(",".join(THUNE_HEADER) + "\n")
    Path("other.csv").write_text("a,b\n1,2\n")
    Path("cut.json").write_text('{"schema": "earlybird.pro')
    cases = {
        "there is no absent": ["absent"],
        "flavour": [run, write_run(tmp_path / "other", flavour="openmpi")],
        "earlybird measure": [write_run(tmp_path / "empty", launches=0)],
        "fitted parameters, not times": ["fitted.csv"],
        "has the header": ["other.csv"],
        "cut.json is JSON and no table of times; give run folders, or a table": ["cut.json"],
        "run.json is JSON and no table of times; give run folders, such as run, or": ["run/run.json"],
        "one table only": ["other.csv", run],
        "missing argument": [],
    }
    for message, arguments in cases.items():
        status, out, err = earlybird("fit", *arguments)
        assert (status, out) == (2, "") and message in err and err.count("\n") == 1, (message, err)
    assert not Path("profile.json").exists()


def test_corrupt_messages_end_with_status_one(earlybird, tmp_path):
    status, _, err = earlybird("fit", write_run(tmp_path / "run", validated=False))
    assert status == 1 and "wrong data" in err and not Path("profile.json").exists()


def test_an_mpi_that_the_run_did_not_measure_is_named_with_those_it_did(earlybird, tmp_path):
    write_run(tmp_path / "run", launches=1)
    status, out, err = earlybird("fit", "run", "--mpi", "openmpi")
    assert (status, out) == (2, "") and not (tmp_path / "profile.json").exists()
    assert "run: no samples of openmpi; give one of mpich" in err
