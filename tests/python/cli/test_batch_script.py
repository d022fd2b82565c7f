"""--print-script: what the script requests from Slurm, what it runs, and what is refused."""

import itertools
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from earlybird.machine.home import home

SUITE = ("measure", "pingpong", "--print-script", "slurm")


def checked(script: str) -> str:
    result = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return script


def commands(script: str) -> list[list[str]]:
    """The commands of a script, which are those of this installation."""
    parsed = [shlex.split(line, comments=True) for line in checked(script).splitlines()]
    called = [line for line in parsed if line and line[0].endswith("earlybird")]
    assert {line[0] for line in called} == {str(Path(sys.executable).with_name("earlybird"))}
    return [["earlybird", *line[1:]] for line in called]


def requested(script: str, option: str) -> str:
    (value,) = [line.split("=")[1] for line in script.splitlines() if line.startswith(f"#SBATCH --{option}=")]
    return value


@pytest.mark.parametrize(
    ("arguments", "nodes"),
    [((), "2"), (("--levels", "intra_socket,inter_socket"), "1"), (("--levels", "inter_node"), "2")],
)
def test_the_script_requests_the_nodes_that_the_levels_need(earlybird, arguments, nodes):
    script = earlybird(*SUITE, *arguments).stdout
    assert requested(script, "nodes") == nodes
    assert "#SBATCH --exclusive\n" in script


def test_the_time_covers_the_budget_with_a_margin(earlybird):
    assert requested(earlybird(*SUITE, "--budget", "60s").stdout, "time") == "00:07:00"
    assert requested(earlybird(*SUITE, "--budget", "2h").stdout, "time") == "04:05:00"


def test_the_script_runs_the_same_arguments_with_srun_and_resumes(earlybird, tmp_path):
    arguments = ("--quick", "--mpi=intel", "--sizes", "8,64KiB", "--threads", "2", "--launches=4", "--quiet")
    script = earlybird(*SUITE, *arguments, "-o", "a run;x").stdout
    resume, begin, fit = commands(script)
    assert resume == ["earlybird", "measure", "--resume", "--mpi", "intel", "-o", "a run;x"]
    given = commands(earlybird(*SUITE, "--srun=--mpi=pmix").stdout)
    assert [one[one.index("--srun") + 1] for one in given[:2]] == ["--mpi=pmix", "--mpi=pmix"]
    assert begin[:3] == ["earlybird", "measure", "pingpong"]
    assert begin[-4:] == ["--launcher", "srun", "-o", "a run;x"]
    options = ["--quick", "--mpi", "intel", "--sizes", "8,64KiB", "--threads", "2", "--launches", "4"]
    assert sorted(begin[3:-4]) == sorted(options)
    assert fit == ["earlybird", "fit", "a run;x", "-o", "profile.json"]
    assert list(tmp_path.iterdir()) == []  # nothing was measured


def test_a_replay_requests_the_nodes_of_its_layout(earlybird, tmp_path):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,3,8\n")
    arguments = (
        "replay",
        "p.csv",
        "--layout",
        "3x1x2",
        "--map-by",
        "node",
        "--json",
        "--print-script",
        "slurm",
    )
    script = earlybird(*arguments).stdout
    assert requested(script, "nodes") == "3"
    resume, begin = commands(script)
    assert resume == ["earlybird", "replay", "--resume", "--json", "-o", "replay"]
    assert begin[:3] == ["earlybird", "replay", "p.csv"]
    assert begin[begin.index("--map-by") + 1] == "node"
    (tmp_path / "p.csv").rename(tmp_path / "-p.csv")
    _, begin = commands(earlybird(arguments[0], *arguments[2:], "--", "-p.csv").stdout)
    assert begin[:3] == ["earlybird", "replay", "./-p.csv"]


def test_a_check_runs_on_the_nodes_of_the_job_and_ends_with_its_status(earlybird, tmp_path):
    arguments = ("check", "--mpi", "mpich", "--srun=--mpi=pmix -p debug", "--budget", "5min", "--json")
    script = earlybird(*arguments, "--print-script", "slurm").stdout
    (check,) = commands(script)
    assert check[:2] == ["earlybird", "check"] and check[-4:] == [
        "--launcher",
        "srun",
        "-o",
        "check-$SLURM_JOB_ID",
    ]
    assert check[check.index("--srun") + 1] == "--mpi=pmix -p debug" and "--json" in check
    assert "--nodes=" not in script.replace("sbatch --nodes=64", "") and "#SBATCH --no-requeue\n" in script
    assert requested(script, "time") == "00:15:00"
    (check,) = commands(earlybird("check", "--print-script", "slurm", "-o", "a 'b' $c").stdout)
    assert check[-2:] == ["-o", "a 'b' $c"]
    assert list(tmp_path.iterdir()) == []


def test_another_earlybird_on_the_path_of_the_job_is_not_called(earlybird, tmp_path, monkeypatch):
    """Nor does the job need the variables of the shell that printed its script."""
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "its home"))
    script = earlybird("check", "--mpi", "mpich", "--print-script", "slurm").stdout
    (tmp_path / "bin").mkdir()
    for name in ("earlybird", "srun"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 9\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    assert f"export EARLYBIRD_HOME='{tmp_path / 'its home'}'\n" in script
    result = subprocess.run(
        ["bash", "-c", checked(script).replace(" check --mpi mpich ", " check --mpi nonsense ")],
        env={"PATH": path, "HOME": str(tmp_path), "SLURM_JOB_ID": "7"},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert (result.returncode, result.stderr[:11]) == (2, "earlybird: ")
    assert "'nonsense'" in result.stderr  # this installation was called, and says so


def test_a_home_that_is_read_only_is_that_of_the_job_too(in_process, tmp_path, monkeypatch):
    """An administrator's, with the builds that the job uses."""
    shared = tmp_path / "shared"
    shared.mkdir()
    real = os.access
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != str(shared) and real(path, mode))
    monkeypatch.setenv("EARLYBIRD_HOME", str(shared))
    assert home() != shared
    script = in_process("check", "--mpi", "mpich", "--print-script", "slurm").stdout
    assert f"export EARLYBIRD_HOME={shared}\n" in script


def test_a_script_on_a_stream_of_ascii_names_the_same_folder(own_process):
    arguments = ("check", "--mpi", "mpich", "--print-script", "slurm", "-o", "café")
    script = own_process(*arguments, env={"PYTHONIOENCODING": "ascii"}).stdout
    (line,) = [line for line in script.splitlines() if " check " in line and not line.startswith("#")]
    printed = subprocess.run(["bash", "-c", f"printf '%s\\n' {line}"], capture_output=True, check=True).stdout
    assert printed.decode().splitlines()[-1] == "café"


@pytest.mark.parametrize("command", ["measure", "replay"])
@pytest.mark.parametrize("where", ["on PATH", "relative", "exec"])
def test_a_requeued_job_states_its_mpi_again_as_the_run_stores_it(
    in_process, tmp_path, monkeypatch, command, where
):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,8\n")
    mpicc = tmp_path / "bin" / "mpicc.mpich"
    mpicc.parent.mkdir()
    mpicc.write_text("#!/bin/sh\n")
    mpicc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mpicc.parent}:{os.environ['PATH']}")
    given = {"on PATH": ("--mpi", "mpicc.mpich"), "relative": ("--mpi", "bin/mpicc.mpich"), "exec": ()}[where]
    if where == "exec":
        monkeypatch.setenv("EARLYBIRD_EXEC_MPI", str(mpicc))
    of_command = ("pingpong",) if command == "measure" else ("p.csv", "--layout", "1x1x2")
    script = in_process(command, *of_command, *given, "--print-script", "slurm").stdout
    resume, begin, *_ = commands(script)
    for line in (resume, begin):
        assert line[line.index("--mpi") + 1] == str(mpicc)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "pingpong", "--print-script", "pbs"), "'pbs'"),
        (("check", "--print-script", "pbs"), "'pbs'"),
        (("check", "--print-script", "slurm", "--hosts", "a,b"), "--hosts"),
        (("check", "--print-script", "slurm", "--plan"), "--plan"),
        (("check", "--print-script", "slurm", "--srun=-N2"), "--srun has -N"),
        ((*SUITE, "--srun=./app"), "for the program"),
        (("measure", "--print-script", "slurm"), "needs a suite"),
        ((*SUITE, "--hosts", "a,b"), "--hosts"),
        ((*SUITE, "--launcher", "synthetic:p.json"), "--launcher"),
        ((*SUITE, "--resume"), "--resume"),
        ((*SUITE, "--levels", "moon"), "'moon'"),
        (("replay", "--print-script", "slurm"), "a pattern"),
    ],
)
def test_conflicting_options_are_refused(earlybird, refused, arguments, message):
    result = earlybird(*arguments, check=False)
    refused(result, message)
    assert result.stdout == ""


def test_a_run_of_several_settings_is_not_fitted(earlybird):
    """`fit` takes one MPI; after `set -e` its refusal would be the status of the job."""
    variables = ("--env", "X=a b", "--env", "X=2")
    script = earlybird(*SUITE, *variables, "-o", "run").stdout
    begin = next(one for one in commands(script) if "--resume" not in one)
    assert [one for one in commands(script) if one[1] == "fit"] == []
    assert [value for option, value in itertools.pairwise(begin) if option == "--env"] == [
        "X=a b",
        "X=2",
    ]
    assert [one[1] for one in commands(earlybird(*SUITE, "--env", "X=2", "-o", "run").stdout)][-1] == "fit"
