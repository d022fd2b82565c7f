"""`earlybird measure` and `replay` as a user types them: printing, resuming, what is refused and when."""

import json
import shutil
from pathlib import Path

import pytest

from earlybird.cli import main, replay_command

PLANTED = Path(__file__).parents[2] / "e2e" / "profile.json"
SYNTHETIC = ("--launcher", "synthetic:planted.json")
SMALL = ("--sizes", "8,1KiB", "--launches", "2", "--quiet")


@pytest.fixture
def planted(tmp_path):
    shutil.copy(PLANTED, tmp_path / "planted.json")
    (tmp_path / "ring.csv").write_text("src,dst,bytes\n0,1,1000\n1,0,2000\n")


def settings(run: Path) -> dict:
    return json.loads((run / "run.json").read_text())["settings"]


def test_every_format_tells_the_same(earlybird, planted):
    words = ("measure", "pingpong", *SYNTHETIC, *SMALL)
    told = json.loads(earlybird(*words, "-o", "a", "--json").stdout)
    assert [(point["size_bytes"], point["launches"]) for point in told["points"]] == [(8, 2), (1024, 2)]
    rows = earlybird(*words, "-o", "b", "--format", "csv").stdout.splitlines()
    assert rows[0].split(",") == list(told["points"][0])
    assert [row.split(",")[:5] for row in rows[1:]] == [
        ["pingpong", "synthetic", "intra_socket", "1", size] for size in ("8", "1024")
    ]
    lines = earlybird(*words, "-o", "c", "--format", "osu").stdout.splitlines()
    assert lines[0] == "# Size          Latency (us)"
    for line, point in zip(lines[1:], told["points"], strict=True):
        size, latency_us = line.split()
        assert (int(size), float(latency_us)) == (
            point["size_bytes"],
            pytest.approx(point["time_s"] * 1e6, abs=0.005),
        )


def test_osu_format_of_several_columns_is_refused_before_measuring(earlybird, planted, refused, tmp_path):
    words = ("measure", "contention", *SYNTHETIC, *SMALL, "--format", "osu", "-o", "run")
    refused(earlybird(*words, check=False), "--format osu", "one N")
    assert not (tmp_path / "run").exists()
    told = earlybird(*words, "--competitors", "2").stdout
    assert told.splitlines()[0] == "# Size      Bandwidth (MB/s)"


def test_a_run_remembers_which_mpi_it_is_of(earlybird, planted, tmp_path):
    """Another MPI may be built before it is resumed, and would otherwise be the first one there."""
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    assert settings(tmp_path / "run")["mpi"] == "synthetic"
    earlybird("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC, "--quiet", "-o", "replayed")
    assert settings(tmp_path / "replayed")["mpi"] == "synthetic"


def test_a_run_is_continued_by_the_command_that_began_it(earlybird, planted, refused):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    earlybird("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC, "--quiet", "-o", "replayed")
    refused(earlybird("measure", "--resume", "-o", "replayed", check=False), "replayed", "another command")
    refused(earlybird("replay", "--resume", "-o", "run", check=False), "run", "another command")
    refused(earlybird("measure", "contention", "--resume", "-o", "run", check=False), "run measures pingpong")
    earlybird("measure", "--resume", "-o", "run")
    earlybird("replay", "--resume", "-o", "replayed", "--json")


def test_what_is_given_beside_resume_must_be_as_it_was(earlybird, planted, refused, tmp_path):
    words = ("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    earlybird(*words)
    earlybird(*words, "--resume")
    resume = ("measure", "--resume", "-o", "run")
    refused(earlybird(*resume, "--sizes", "8,2KiB", check=False), "--sizes is 8,2KiB", "with 8,1KiB")
    refused(earlybird(*resume, "--mpi", "openmpi", check=False), "--mpi is openmpi", "with synthetic")
    refused(earlybird(*resume, "--quick", check=False), "--quick", "without it")
    replay = ("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC, "--quiet", "-o", "replayed")
    earlybird(*replay)
    earlybird(*replay, "--resume")
    (tmp_path / "other.csv").write_text("src,dst,bytes\n0,1,1\n")
    refused(earlybird("replay", "other.csv", "--resume", "-o", "replayed", check=False), "another pattern")
    refused(earlybird("replay", "--resume", "-o", "replayed", "--layout", "1x1x3", check=False), "--layout")


def test_a_run_of_another_version_is_not_continued(earlybird, planted, refused, tmp_path):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    path = tmp_path / "run" / "run.json"
    header = json.loads(path.read_text())
    header["settings"]["effort"]["patience"] = 3
    path.write_text(json.dumps(header))
    refused(earlybird("measure", "--resume", "-o", "run", check=False), "another version")


def test_a_replay_predicts_once(planted, tmp_path, monkeypatch, capsys):
    """What a model cannot predict would else be told twice, and large patterns would take twice as long."""
    calls = []
    original = replay_command.predict_all
    monkeypatch.setattr(replay_command, "predict_all", lambda *given: calls.append(given) or original(*given))
    monkeypatch.chdir(tmp_path)
    words = ["replay", "ring.csv", "--layout", "1x1x2", "--profile", "planted.json", "-o", "run", "--json"]
    monkeypatch.setattr("sys.argv", ["earlybird", *words, "--quiet", *SYNTHETIC])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert end.value.code == 0
    assert set(json.loads(capsys.readouterr().out)["error"]) == {"staircase", "max-rate", "postal"}
    assert len(calls) == 1


def test_measure_alone_lists_the_suites(earlybird):
    told = earlybird("measure").stdout
    assert "pingpong" in told and "contention" in told and "earlybird measure" in told
