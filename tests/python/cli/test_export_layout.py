"""`earlybird export` of a layout: the file of a launcher, and how to use it."""

import json

import numpy as np
import pytest

from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.run import Run, Sample

SCATTERED = Layout.from_arrays([1, 0, 1, 0], [0, 1, 1, 0])


@pytest.fixture
def files(tmp_path):
    SCATTERED.save(tmp_path / "layout.csv")
    return tmp_path / "layout.csv", tmp_path / "out"


def test_export_writes_the_file_and_how_to_use_it(files, run_main):
    layout, out = files
    status, printed, notes = run_main(
        "export", layout, "--to", "slurm", "--hosts", "a,b", "-o", out, "--json"
    )
    assert status == 0 and "bind each rank when it starts" in notes
    assert json.loads(printed)["use"] == f"SLURM_HOSTFILE={out} srun -n 4 --distribution=arbitrary PROGRAM"
    assert out.read_text() == "b\na\nb\na\n"


def test_hosts_come_from_a_file_too(files, run_main):
    layout, out = files
    hosts = layout.with_name("hosts.txt")
    hosts.write_text("# nodes\na:4\n\nb slots=4\n")
    status, _, notes = run_main("export", layout, "--to", "slurm", "--hosts", hosts, "-o", out)
    assert status == 0, notes
    assert out.read_text() == "b\na\nb\na\n"
    status, _, notes = run_main("export", layout, "--to", "slurm", "--hosts", "none.txt", "-o", out)
    assert status == 2 and "the host file none.txt does not exist" in notes


def test_cpus_bind_ranks_to_their_sockets(files, run_main):
    layout, out = files
    status, _, notes = run_main("export", layout, "--to", "mpich", "--hosts", "a,b", "-o", out)
    assert status == 0 and f"warning: {out}: it names hosts, not sockets; give --cpus" in notes
    status, _, notes = run_main(
        "export", layout, "--to", "mpich", "--hosts", "a,b", "--cpus", "0-7/8-15", "-o", out
    )
    assert status == 0 and "warning" not in notes
    assert out.read_text() == "b:2 binding=user:0,8\na:2 binding=user:8,0\n"


LAYOUTS = "mpich, openmpi, intel, slurm, rank-order"
MODELS = "simulated-machine, simgrid-platform, loggps"


@pytest.mark.parametrize(
    ("source", "formats"),
    [
        ("layout.csv", f"of the layout layout.csv give one of {LAYOUTS}"),
        ("exchange.csv", "of the pattern exchange.csv give one of matrix-market, goal"),
        ("exchange.npz", "of the pattern exchange.npz give one of matrix-market, goal"),
        ("profile.json", f"of the profile profile.json give one of {MODELS}"),
        ("run", "of the run run give one of osu, openmetrics"),
        ("rec", "of the recording rec give one of matrix-market, goal, chrome-trace, simgrid-trace"),
    ],
)
def test_without_to_the_formats_that_fit_are_named(files, in_process, refused, tmp_path, source, formats):
    exchange = Pattern.from_arrays([0], [1], [8])
    exchange.save(tmp_path / "exchange.csv")
    exchange.save(tmp_path / "exchange.npz")
    (tmp_path / "profile.json").write_text(json.dumps({"schema": "earlybird.profile/1"}))
    Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "recording.json").write_text("{}")
    ended = in_process("export", source, check=False)
    refused(ended, f"--to is missing; {formats}")
    assert ended.stderr.endswith(f"{formats}\n")


@pytest.mark.parametrize(
    ("source", "to", "said"),
    [
        ("thune-kunpeng", "osu", "thune-kunpeng is a profile, but --to osu takes a run; give one"),
        ("exchange.csv", "mpich", "exchange.csv is a pattern, but --to mpich takes a layout; give one"),
        ("layout.csv", "goal", "layout.csv is a layout, but --to goal takes a recording or a pattern"),
        ("layout.csv", "loggps", "layout.csv is a layout, but --to loggps takes a profile"),
        (
            "exchange.npz",
            "chrome-trace",
            "exchange.npz is a pattern, but --to chrome-trace takes a recording",
        ),
        ("rec", "openmetrics", "rec is a recording, but --to openmetrics takes a run"),
        ("replay", "openmetrics", "replay is a replay, but --to openmetrics takes a run"),
        ("replay", "osu", "replay is a replay, but --to osu takes a run"),
        ("replay", "matrix-market", "replay is a replay, but --to matrix-market takes a recording or a"),
    ],
)
def test_another_kind_of_source_is_refused_with_what_the_format_takes(
    files, in_process, refused, tmp_path, source, to, said
):
    exchange = Pattern.from_arrays([0], [1], [8])
    exchange.save(tmp_path / "exchange.csv")
    exchange.save(tmp_path / "exchange.npz")
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "recording.json").write_text("{}")
    run = Run.create(tmp_path / "replay", machine={}, command=[], seed=1)
    run.append_samples([Sample("exchange", "completion", {"mpi": "mpich"}, "0", np.ones(3))])
    refused(in_process("export", source, "--to", to, "-o", "out", check=False), said)
    # Before it asks for a file to write.
    refused(in_process("export", source, "--to", to, check=False), said)
    assert not (tmp_path / "out").exists()


def test_a_replay_has_no_format(in_process, refused, tmp_path):
    run = Run.create(tmp_path / "replay", machine={}, command=[], seed=1)
    run.append_samples([Sample("exchange", "completion", {"mpi": "mpich"}, "0", np.ones(3))])
    refused(in_process("export", "replay", check=False), "replay is a replay, which no format takes")


def test_what_cannot_be_exported_is_refused_before_a_format_is_asked_for(
    files, in_process, refused, tmp_path
):
    (tmp_path / "other.json").write_text(json.dumps({"schema": "earlybird.advice/1"}))
    refused(in_process("export", "none.csv", check=False), "none.csv does not exist")
    refused(in_process("export", ".", check=False), "is not a run folder")
    refused(in_process("export", "other.json", check=False), "has the schema 'earlybird.advice/1'")
    refused(in_process("export", "layout.csv", "--to", "mpich", check=False), "-o is missing; give the file")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--to", "mpich"], "has 2 nodes, but --hosts is missing"),
        (["--to", "mpich", "--hosts", "node[1-2]"], "--hosts is 'node[1-2]'; give host names such as"),
        (["--to", "mpich", "--hosts", "node[1-2]"], "`scontrol show hostnames` lists those of a Slurm job"),
        (["--to", "rank-order", "--hosts", "a"], "it renumbers ranks where they are"),
        (["--to", "openmpi", "--hosts", "me@a,b"], "has no users; give a, and the user in ~/.ssh/config"),
        (["--to", "slurm", "--hosts", "a,me@b"], "a file of slurm has no users"),
        (
            ["--to", "slurm", "--hosts", "a,b", "--combined"],
            "--combined is about the messages of a schedule; omit it with --to slurm",
        ),
        (["--to", "goal", "--hosts", "a"], "omit it with --to goal"),
        (["--to", "goal", "--cpus", "0"], "--cpus binds the ranks of mpich, intel and slurm"),
        (["--to", "openmpi", "--hosts", "a,b", "--cpus", "0/1"], "its file binds ranks to sockets without"),
        (["--to", "mpich", "--hosts", "a,b", "--cpus", "0-1"], "but --cpus lists 1 socket"),
    ],
)
def test_options_without_meaning_are_refused(files, run_main, arguments, expected):
    layout, out = files
    status, _, notes = run_main("export", layout, *arguments, "-o", out)
    assert status == 2 and expected in notes and not out.exists()
