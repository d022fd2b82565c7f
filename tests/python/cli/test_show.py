"""`earlybird show` prints every kind of file as the command that wrote it, and refuses other files."""

import contextlib
import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from earlybird.data import files
from earlybird.data.layout import parse_layout, save_layout
from earlybird.data.pattern import load_pattern, save_pattern
from earlybird.data.run import Run

PLANTED = Path(__file__).parents[2] / "e2e" / "profile.json"
GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"
MESSAGES = "src,dst,bytes\n0,1,1000\n1,0,2000\n"
EXCHANGE = ("ring.csv", "--profile", "planted.json", "--layout", "1x1x2")
SYNTHETIC = ("--launcher", "synthetic:planted.json", "--quiet")
PIPELINE = ("pipeline", "--size", "1MiB", "--gamma", "100us/MB", "--profile", "planted.json")


@pytest.fixture
def folder(tmp_path):
    shutil.copy(PLANTED, tmp_path / "planted.json")
    (tmp_path / "ring.csv").write_text(MESSAGES)
    return tmp_path


@pytest.fixture
def piped():
    """Return a pipe that has the content of a file and ends, as `<(cat FILE)` is."""
    with contextlib.ExitStack() as stack:

        def pipe(path: Path) -> str:
            read, write = os.pipe()
            stack.callback(os.close, read)
            with open(write, "wb") as stream:
                stream.write(path.read_bytes())
            return f"/dev/fd/{read}"

        yield pipe


LAYOUT = "rank,node,socket\n0,0,0\n1,0,0\n"


@pytest.mark.parametrize(
    "command",
    [
        ("show", "planted.json"),
        ("show", "planted.json", "--json"),
        ("show", "ring.csv"),
        ("show", "ring.npz"),
        ("show", "ring.mtx"),
        ("show", "layout.csv"),
        ("show", "ring.csv", "--layout", "layout.csv"),
        ("export", "ring.csv", "--to", "matrix-market", "-o", "written"),
        ("predict", "exchange", "ring.mtx", "--profile", "planted.json", "--layout", "layout.csv"),
        ("report", "planted.json", "ring.npz", "-o", "written"),
    ],
    ids=" ".join,
)
def test_a_pipe_that_ends_is_read_as_the_file_that_it_comes_from(folder, in_process, piped, command):
    """Commands look at what a file is first, and a pipe can be read once."""
    (folder / "layout.csv").write_text(LAYOUT)
    for name in ("ring.npz", "ring.mtx"):
        save_pattern(load_pattern(folder / "ring.csv"), folder / name)
    names = {path.name for path in folder.iterdir()}
    expected = in_process(*command).stdout
    pipes = {name: piped(folder / name) for name in command if name in names}
    printed = in_process(*[pipes.get(word, word) for word in command]).stdout
    for name, pipe in pipes.items():
        printed = printed.replace(pipe, name)
    assert [line.split() for line in printed.splitlines()] == [line.split() for line in expected.splitlines()]


def test_what_is_kept_of_a_pipe_is_read_from_its_beginning_and_then_further(piped, tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 200)
    pipe = piped(tmp_path / "file")
    with files.pipes_read_again():
        next(files.read_blocks(pipe, "file"))
        for _ in range(2):
            assert files.read_bytes(pipe, "file") == (tmp_path / "file").read_bytes()


@pytest.fixture(params=["prediction", "pipelines", "advice", "samples", "measured", "comparison"])
def printed(request, folder, earlybird):
    """The file or run of a command, and the command's output in each format."""
    commands = {
        "prediction": ("predict", *EXCHANGE),
        "pipelines": ("predict", *PIPELINE),
        "advice": ("advise", *PIPELINE),
        "samples": ("measure", "pingpong", *SYNTHETIC, "--sizes", "8,1KiB", "--launches", "1"),
        "measured": ("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC),
        "comparison": ("replay", *EXCHANGE, *SYNTHETIC),
    }
    command = commands[request.param]
    is_run = command[0] in ("measure", "replay")
    outputs = {}
    for k, format in enumerate(("table", "csv", "json")):
        again = ("-o", "run", *(("--resume",) if k else ())) if is_run else ()
        outputs[format] = earlybird(*command, *again, "--format", format).stdout
    if is_run:
        return "run", outputs
    (folder / "file.json").write_text(outputs["json"])
    return "file.json", outputs


def test_a_file_is_printed_as_by_the_command_that_wrote_it(earlybird, printed):
    name, outputs = printed
    for format, output in outputs.items():
        assert earlybird("show", name, "--format", format).stdout == output != ""
    assert earlybird("show", name, "--json").stdout == outputs["json"]


def test_run_json_stands_for_its_folder(earlybird, folder):
    earlybird("measure", "pingpong", *SYNTHETIC, "--sizes", "8", "--launches", "1", "-o", "run")
    assert earlybird("show", "run/run.json").stdout == earlybird("show", "run").stdout


def test_a_profile_is_printed_as_by_fit(earlybird, folder):
    earlybird("measure", "pingpong", *SYNTHETIC, "--launches", "2", "-o", "run")
    for format in ("table", "csv"):
        fitted = earlybird("fit", "run", "-o", "p.json", "--format", format).stdout
        assert earlybird("show", "p.json", "--format", format).stdout == fitted
    assert json.loads(earlybird("show", "p.json", "--json").stdout) == json.loads(
        (folder / "p.json").read_text()
    )


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("advice-1.json", "extrapolated"),
        ("collectives-advice-1.json", "a setting"),
        ("comparison-1.json", "staircase"),
        ("layout-1.csv", "0"),
        ("pattern-1.csv", "400000"),
        ("prediction-1.json", "5 us"),
        ("run-1", "500 ns"),
    ],
)
def test_files_of_the_first_version_are_printed(earlybird, name, part):
    assert part in earlybird("show", GOLDEN / name).stdout


def test_patterns_and_layouts_come_back_from_csv_and_json(earlybird, folder):
    earlybird("pattern", "convert", "ring.csv", "-o", "ring.npz")
    for name in ("ring.csv", "ring.npz"):
        assert earlybird("show", name, "--format", "csv").stdout == MESSAGES
        assert json.loads(earlybird("show", name, "--json").stdout)["exchange"][1] == {
            "src": 1, "dst": 0, "bytes": 2000,
        }  # fmt: skip
        assert "2 messages, 2 ranks" in earlybird("show", name).stdout
    save_layout(parse_layout("2x1x2"), folder / "layout.csv")
    assert earlybird("show", "layout.csv", "--format", "csv").stdout == (folder / "layout.csv").read_text()
    rows = list(csv.DictReader((folder / "layout.csv").read_text().splitlines()))
    shown = json.loads(earlybird("show", "layout.csv", "--json").stdout)["layout"]
    assert shown == [{key: int(value) for key, value in row.items()} for row in rows]
    assert "4 ranks on 2 nodes" in earlybird("show", "layout.csv").stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"schema": "earlybird.machine/9"}', "has the schema 'earlybird.machine/9'"),
        ("a.json", "{}", "has no schema"),
        ("a.csv", "time,value\n1,2\n", "is no file that earlybird wrote"),
        ("a.csv", "src,dst,bytes,count\n0,1,8,2\n", "line 1 is 'src,dst,bytes,count'; a pattern begins with"),
        ("a.txt", "", "is no file that earlybird wrote"),
        ("a.json", '{"schema": "earlybird.pipeline-prediction/1"}', "has no 'size_bytes'"),
        ("a.json", '{"schema": "earlybird.collective-prediction/1", "ranks": -8}', "ranks is -8"),
    ],
)
def test_other_files_are_refused_with_what_is_allowed(earlybird, refused, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    allowed = (
        "make it again"
        if "prediction" in text
        else "prediction, comparison, check, baseline, history, guidelines, advice, projection or simulation"
    )
    refused(earlybird("show", name, check=False), name, message, allowed)


def test_a_missing_file_or_other_folder_is_refused(earlybird, refused, tmp_path):
    refused(earlybird("show", "none.json", check=False), "none.json does not exist")
    (tmp_path / "empty").mkdir()
    refused(earlybird("show", "empty", check=False), "empty is not a run folder", "nor a recording")
    refused(earlybird("report", "empty", check=False), "empty is not a run folder", "nor a recording")
    (tmp_path / "empty" / "rank-0.ebr").touch()
    refused(earlybird("show", "empty", check=False), "empty has files of ranks, but no recording.json")


@pytest.mark.parametrize(
    "intervals", [{"eager": []}, {"eager": {"latency_s": [1e-6]}}, {"latency_s": [4e-7, 6e-7]}, []]
)
def test_intervals_of_a_profile_in_another_form_are_left_out(earlybird, tmp_path, intervals):
    line = {"name": "eager", "latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}
    profile = {
        "schema": "earlybird.profile/1",
        "levels": {"intra_socket": {"protocols": [line]}},
        "intervals": {"intra_socket": intervals},
    }
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    for format in ("table", "csv", "json"):
        assert earlybird("show", tmp_path / "profile.json", "--format", format).returncode == 0


def test_means_are_shown_of_runs_and_refused_for_files(earlybird, refused, folder):
    earlybird("measure", "pingpong", *SYNTHETIC, "--sizes", "8", "--launches", "2", "-o", "run")
    (point,) = json.loads(earlybird("show", "run", "--statistic", "mean", "--json").stdout)["points"]
    times_s = [time for sample in Run.open(folder / "run").samples() for time in sample.steady_times_s()]
    assert point["time_s"] == pytest.approx(np.mean(times_s)) and point["mean_of_iterations"] is True
    shown = earlybird("show", "run", "--statistic", "mean").stdout
    assert "values: means over the iterations of all launches\ninterval: 90% by Student's t" in shown
    (point,) = json.loads(earlybird("show", "run", "--json").stdout)["points"]
    assert "mean_of_iterations" not in point
    refused(earlybird("show", "planted.json", "--statistic", "mean", check=False), "is for run folders")
    earlybird("replay", *EXCHANGE, *SYNTHETIC, "-o", "replay")
    refused(earlybird("show", "replay", "--statistic", "mean", check=False), "shown by its comparison.json")
