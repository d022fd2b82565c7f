"""--print-script: what the script requests from Slurm, what it runs, and what is refused."""

import itertools
import shlex
import subprocess

import pytest

SUITE = ("measure", "pingpong", "--print-script", "slurm")


def checked(script: str) -> str:
    result = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=10)
    assert result.returncode == 0, result.stderr
    return script


def commands(script: str) -> list[list[str]]:
    lines = [line.strip() for line in checked(script).splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("earlybird ")]


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
    assert resume == ["earlybird", "measure", "--resume", "-o", "a run;x"]
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "pingpong", "--print-script", "pbs"), "'pbs'"),
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
