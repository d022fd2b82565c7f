"""--print-script: what the script asks of Slurm, what it runs, and what is refused."""

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


def asked(script: str, option: str) -> str:
    (value,) = [line.split("=")[1] for line in script.splitlines() if line.startswith(f"#SBATCH --{option}=")]
    return value


@pytest.mark.parametrize(
    ("words", "nodes"),
    [((), "2"), (("--levels", "intra_socket,inter_socket"), "1"), (("--levels", "inter_node"), "2")],
)
def test_nodes_are_those_the_levels_need(earlybird, words, nodes):
    script = earlybird(*SUITE, *words).stdout
    assert asked(script, "nodes") == nodes
    assert "#SBATCH --exclusive\n" in script


def test_the_time_covers_the_budget_with_a_margin(earlybird):
    assert asked(earlybird(*SUITE, "--budget", "60s").stdout, "time") == "00:07:00"
    assert asked(earlybird(*SUITE, "--budget", "2h").stdout, "time") == "04:05:00"


def test_the_same_arguments_are_run_by_srun_and_continued(earlybird, tmp_path):
    words = ("--quick", "--mpi=intel", "--sizes", "8,64KiB", "--threads", "2", "--launches=4", "--quiet")
    script = earlybird(*SUITE, *words, "-o", "a run;x").stdout
    resume, begin, fit = commands(script)
    assert resume == ["earlybird", "measure", "--resume", "-o", "a run;x"]
    assert begin[:3] == ["earlybird", "measure", "pingpong"]
    assert begin[-4:] == ["--launcher", "srun", "-o", "a run;x"]
    options = ["--quick", "--mpi", "intel", "--sizes", "8,64KiB", "--threads", "2", "--launches", "4"]
    assert sorted(begin[3:-4]) == sorted(options)
    assert fit == ["earlybird", "fit", "a run;x", "-o", "profile.json"]
    assert list(tmp_path.iterdir()) == []  # nothing was measured


def test_a_replay_asks_for_the_nodes_of_its_layout(earlybird, tmp_path):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,3,8\n")
    words = ("replay", "p.csv", "--layout", "3x1x2", "--map-by", "node", "--json", "--print-script", "slurm")
    script = earlybird(*words).stdout
    assert asked(script, "nodes") == "3"
    resume, begin = commands(script)
    assert resume == ["earlybird", "replay", "--resume", "--json", "-o", "replay"]
    assert begin[:3] == ["earlybird", "replay", "p.csv"]
    assert begin[begin.index("--map-by") + 1] == "node"


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_what_a_script_cannot_do_is_refused(earlybird, refused, words, said):
    result = earlybird(*words, check=False)
    refused(result, said)
    assert result.stdout == ""
