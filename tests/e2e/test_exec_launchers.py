"""Launchers of sites under `exec`, emulated by scripts that record arguments; the environment of ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import has_library, library_path
from tests.conftest import EARLYBIRD, require_mpi

pytestmark = pytest.mark.mpi

WHERE = Path(__file__).parent / "programs" / "where.c"
# Records what it was called with and preloads itself, then sets what its options say and becomes the program.
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo "version 1.2"; exit 0; }
printf '%s\\n' "own=${LD_PRELOAD-}" "whole=${EARLYBIRD_WHOLE_JOB-}" "$@" > "$RECORD"
while :; do
  case $1 in
    -n | -np) shift 2 ;;
    -E | -e | --env) export "$2"; shift 2 ;;
    --env=*) export "${1#--env=}"; shift ;;
    run) shift ;;
    *) exec "$@" ;;
  esac
done
"""
# Needs the MPI and starts none, so that it can stand in a launch with a program that has none.
SAYS = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  int flag;
  const char *whole = getenv("EARLYBIRD_WHOLE_JOB"), *preload = getenv("LD_PRELOAD");
  MPI_Initialized(&flag);
  printf("whole=%s preload=%s\\n", whole ? whole : "", preload ? preload : "");
  return 0;
}
"""


def compile_for(mpi: str, *arguments: object) -> None:
    if not has_library(find_flavour(mpi)):
        pytest.skip(f"libearlybird is not built for {mpi}")
    within = [EARLYBIRD, "exec", "--no-interpose", "--mpi", mpi, "--", "mpicc"]
    subprocess.run([*within, *arguments], check=True, timeout=60)


@pytest.fixture
def says(tmp_path):
    """The program that prints its environment, compiled for an MPI."""

    def compiled(mpi: str) -> str:
        require_mpi(mpi)
        (tmp_path / "says.c").write_text(SAYS)
        compile_for(mpi, tmp_path / "says.c", "-o", tmp_path / f"says-{mpi}")
        return str(tmp_path / f"says-{mpi}")

    return compiled


@pytest.mark.parametrize(
    ("launcher", "arguments"),
    [
        ("jsrun", ["-n", "1"]),
        ("aprun", ["-n", "1"]),
        ("flux", ["run", "-n", "1"]),
        ("palsrun", ["-n", "1"]),
        ("pals/bin/mpiexec", ["-n", "1"]),
        ("ibrun", ["-n", "1"]),
    ],
)
def test_a_sites_launcher_preloads_the_library_in_the_rank_alone(
    any_mpi, own_home, earlybird, tmp_path, launcher, arguments
):
    program, record = tmp_path / "where", tmp_path / "record"
    compile_for(any_mpi, WHERE, "-o", program)
    path = tmp_path / "site" / launcher
    path.parent.mkdir(parents=True)
    path.write_text(STAND_IN)
    path.chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'site'}:{os.environ['PATH']}", "RECORD": str(record)}
    begin = ("exec", "--mpi", any_mpi, "--", str(path) if "/" in launcher else launcher)
    result = earlybird(*begin, *arguments, program, "a b", env=environment)
    (line,) = result.stdout.splitlines()
    output = dict(item.split("=", 1) for item in line.split("|"))
    assert output["reached"] == "1"
    assert output["preload"] == str(library_path(find_flavour(any_mpi)))
    assert output["arguments"] == "a b"
    assert record.read_text().splitlines()[:2] == ["own=", "whole=1"]
    # None where the same scripts are in the installation's home already.
    assert len(list((own_home / "launchers").glob("*"))) <= 1
    assert "earlybird" not in result.stderr


def test_ranks_know_of_a_whole_job_if_every_program_is_reached(mpi, earlybird, says):
    program = says(mpi)

    def output(*arguments, **variables) -> list[str]:
        out = earlybird("exec", "--mpi", mpi, "--", *arguments, env=variables).stdout
        assert out.count("libearlybird.so") == 2
        return sorted(line.split()[0] for line in out.splitlines() if line.strip())

    launch = ("mpiexec", "-n", "1", program, ":", "-n", "1", program)
    assert output(*launch) == ["whole=1"] * 2
    assert output(*launch, EARLYBIRD_WHOLE_JOB="0") == ["whole=0"] * 2
    assert output("mpiexec", "-n", "2", "env", program) == ["whole="] * 2
    assert output("sh", "-c", f"mpiexec -n 2 {program}") == ["whole="] * 2


def test_a_static_program_among_others_is_named_and_the_others_are_reached(mpi, earlybird, says, tmp_path):
    program = says(mpi)
    (tmp_path / "alone.c").write_text("int main(void) { return 0; }\n")
    made = subprocess.run(["cc", "-static", "alone.c", "-o", "alone"], cwd=tmp_path, capture_output=True)
    if made.returncode != 0:
        pytest.skip("no static libc is installed")
    result = earlybird("exec", "--mpi", mpi, "--", "mpiexec", "-n", "1", program, ":", "-n", "1", "./alone")
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("earlybird: ")]
    assert "./alone" in sentence and "statically" in sentence
    assert "whole= " in result.stdout and "libearlybird.so" in result.stdout


def test_a_python_under_open_mpi_preloads_it_behind_the_library(earlybird, says, tmp_path):
    says("openmpi")
    script = tmp_path / "script.py"
    script.write_text(f"#!{sys.executable}\nimport os\nprint(os.environ['LD_PRELOAD'])\n")
    script.chmod(0o755)
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    wrapper.chmod(0o755)
    job = f"mpiexec -n 1 {sys.executable} {script}"
    library = library_path(find_flavour("openmpi"))
    for arguments in (["mpiexec", "-n", "1", script], ["mpiexec", "-n", "1", wrapper], ["sh", "-c", job]):
        preloaded = earlybird("exec", "--mpi", "openmpi", "--", *arguments).stdout.strip().split(":")
        assert preloaded[0] == str(library)
        assert [Path(entry).name for entry in preloaded[1:]] == ["libmpi.so.40"]


def test_exec_reads_its_options_as_the_parser_of_all_commands_does(any_mpi, earlybird, refused):
    for arguments in (
        ["--mpi", any_mpi],
        [f"--mpi={any_mpi}", "--no-interpose"],
        ["--no-interpose", "--mpi", any_mpi],
    ):
        assert earlybird("exec", *arguments, "--", "echo", "-n", "--mpi").stdout == "--mpi"
    assert "Usage: " in earlybird("exec", "--help").stdout
    refused(earlybird("exec", "--none", "true", check=False), "--none")
    refused(earlybird("exec", "--mpi", any_mpi, check=False), "no command")


def test_exec_starts_without_what_only_other_commands_need(any_mpi, tmp_path):
    """Each of these takes longer to import than all that `exec` needs."""
    heavy = {"typer", "rich", "elftools", "numpy", "msgspec", "subprocess", "dataclasses"}
    program = (
        "import os, sys\n"
        "from earlybird.cli.main import run\n"
        f"sys.argv = ['earlybird', 'exec', '--mpi', {any_mpi!r}, '--', 'mpiexec', 'true']\n"
        f"os.execve = lambda *_: print(*sorted(set({sorted(heavy)!r}) & set(sys.modules)))\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
