"""A real Slurm: the commands under srun, what ends a step, and the script that --print-script writes."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from earlybird.data.recording import load_recording
from tests.conftest import EARLYBIRD
from tests.e2e.test_exec_launchers import compile_for
from tests.python.interop.test_monitoring import rows
from tests.slurm import DOMAIN

pytestmark = pytest.mark.mpi

RING = Path(__file__).parents[1] / "recorded" / "eztrace" / "ring.c"
ALLOCATED = ("salloc", "-Q", "-N2", "--exclusive")


@pytest.fixture
def allocated(slurm, tmp_path):
    """Run `earlybird WORDS...` in an allocation of both nodes."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        return slurm.run(*ALLOCATED, EARLYBIRD, *arguments, timeout=240, cwd=tmp_path, env=env or {})

    yield run
    deadline = time.monotonic() + 60
    while slurm.jobs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert slurm.jobs() == []
    assert _ranks_of(tmp_path) == []


def _ranks_of(folder) -> list[psutil.Process]:
    """Kernel processes whose request is in `folder`."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            arguments = process.cmdline()
            if process.status() != psutil.STATUS_ZOMBIE and process.name() == "exchange":
                found += [process] if arguments[-1].startswith(f"{folder}/") else []
    return found


def _launches(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "launches.ndjson").read_text().splitlines()]


def _hosts(launch) -> list[str]:
    return [entry["host"] for entry in launch["placement"]]


def test_measure_and_replay_under_srun(mpi, allocated, refused, tmp_path):
    levels = "intra_socket,inter_node"
    arguments = ("--mpi", mpi, "--launcher", "srun", "--launches", "1", "--budget", "2s")
    measured = allocated(
        "measure", "pingpong", "--quick", "--sizes", "8,64KiB", "--levels", levels, *arguments, "-o", "run"
    )
    if mpi == "openmpi" and "needs PMIx" in measured.stderr:
        refused(measured, "PMIx", "--hosts")
        assert not (tmp_path / "run").exists()
        pytest.skip("this Slurm has no PMIx; refused in a sentence")
    assert measured.returncode == 0, measured.stderr
    samples = [json.loads(line) for line in (tmp_path / "run" / "samples.ndjson").read_text().splitlines()]
    assert {(s["config"]["level"], s["config"]["size_bytes"]) for s in samples} == {
        (level, size) for level in levels.split(",") for size in (8, 65536)
    }
    for launch in _launches(tmp_path / "run"):
        assert launch["launcher"] == "srun"
        assert set(_hosts(launch)) <= {"n1", "n2"}  # not the names that the nodes have themselves
        assert len(set(_hosts(launch))) == (2 if launch["layout"] == "2x1x1" else 1)
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,100000\n1,2,1000\n2,3,0\n3,0,8\n")
    # More ranks than cores of a node, each bound to one.
    replayed = allocated("replay", "p.csv", "--layout", "1x1x4", *arguments, "-o", "replay", "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert len(json.loads(replayed.stdout)["measured_s"]) == 4
    (launch,) = _launches(tmp_path / "replay")
    assert all(len(entry["cpus"]) == 1 for entry in launch["placement"])
    assert "--overcommit" in launch["command_line"] or len(os.sched_getaffinity(0)) >= 4


def test_ranks_sit_as_the_layout_says(any_mpi, allocated, tmp_path):
    if any_mpi == "openmpi":
        pytest.skip("needs an MPI that speaks PMI-2")
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,8\n")
    arguments = (
        "replay",
        "p.csv",
        "--layout",
        "2x1x2",
        "--map-by",
        "node",
        "--mpi",
        any_mpi,
        "--launches",
        "1",
    )
    # As sbatch --cpus-per-task and an outer step would set them.
    misleading = {"SLURM_CPUS_PER_TASK": "2", "SRUN_CPUS_PER_TASK": "2", "SLURM_EXPORT_ENV": "NONE"}
    result = allocated(*arguments, "--launcher", "srun", "-o", "run", env=misleading)
    assert result.returncode == 0, result.stderr
    (launch,) = _launches(tmp_path / "run")
    assert _hosts(launch) == ["n1", "n2", "n1", "n2"]


def test_more_nodes_than_allocated_are_refused(any_mpi, allocated, refused, tmp_path):
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,8\n")
    arguments = ("replay", "p.csv", "--layout", "3x1x1", "--mpi", any_mpi, "--launcher", "srun", "-o", "run")
    refused(allocated(*arguments), "3 nodes", "has 2")


@pytest.mark.parametrize("event", ["interrupt", "scancel", "killed rank", "hung rank"])
def test_nothing_is_left_of_a_step_that_ends_early(any_mpi, slurm, allocated, tmp_path, event):
    if any_mpi == "openmpi":
        pytest.skip("needs an MPI that speaks PMI-2")
    # Large messages: ranks of smaller ones have come and gone before anybody sees them.
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,5000000\n1,0,5000000\n")
    arguments = ("replay", "p.csv", "--layout", "2x1x1", "--mpi", any_mpi, "--stall-limit", "8s")
    process = subprocess.Popen(
        [*ALLOCATED, EARLYBIRD, *arguments, "--launcher", "srun", "--launches", "100", "--budget", "200s",
         "-o", tmp_path / "run"],
        cwd=tmp_path, env=dict(os.environ) | slurm.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        _await_ranks(process, tmp_path)
        if event == "interrupt":
            (child,) = [one for one in psutil.Process(process.pid).children() if "replay" in one.cmdline()]
            child.send_signal(signal.SIGINT)
        elif event == "scancel":
            assert slurm.run("scancel", *slurm.run("squeue", "-h", "-o", "%i").stdout.split()).returncode == 0
        elif event == "killed rank":
            _strike(process, tmp_path, psutil.Process.kill)
        else:
            _strike(process, tmp_path, psutil.Process.suspend)
        _, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == (130 if event == "interrupt" else 1), err
    assert "Traceback" not in err and "--resume" in err
    # Slurm tells that a rank was killed, or that it cancelled the step because of that.
    said = {
        "interrupt": ("interrupted",),
        "scancel": ("CANCELLED",),
        "killed rank": ("Killed", "CANCELLED"),
        "hung rank": ("no point was finished",),
    }
    assert any(arguments in err for arguments in said[event]), err
    assert (tmp_path / "run" / "samples.ndjson").read_text().count("\n") >= 1


def _await_ranks(process, folder) -> None:
    """Until ranks of a launch after the first run, so that something is there to be kept."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        held = (folder / "run" / "samples.ndjson").exists()
        if held and len(_ranks_of(folder)) == 2:
            return
        time.sleep(0.01)
    raise AssertionError("no ranks came up")


def _strike(process, folder, blow) -> None:
    """Deal the first rank a `blow` until `process` ends: one that came after the rank's last word hits
    nothing, and the next launch follows."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        for rank in _ranks_of(folder)[:1]:
            with suppress(psutil.NoSuchProcess):
                blow(rank)
        time.sleep(0.02)


def test_the_printed_script_measures_and_continues(any_mpi, slurm, earlybird, tmp_path):
    if any_mpi == "openmpi":
        pytest.skip("needs an MPI that speaks PMI-2")
    arguments = (
        "measure",
        "contention",
        "--quick",
        "--mpi",
        any_mpi,
        "--sizes",
        "8,1KiB",
        "--competitors",
        "1,2",
    )
    more = ("--launches", "1", "--budget", "2s", "-o", "my run")
    script = earlybird(*arguments, *more, "--print-script", "slurm").stdout
    (tmp_path / "job.sh").write_text(script)
    for _ in range(2):  # submitted again it continues what is there, and ends well
        submitted = slurm.run("sbatch", "--wait", "job.sh", timeout=240, cwd=tmp_path)
        output = "\n".join(path.read_text() for path in tmp_path.glob("earlybird-*.out"))
        assert submitted.returncode == 0, submitted.stderr + output
    samples = (tmp_path / "my run" / "samples.ndjson").read_text().splitlines()
    assert len(samples) == 2 * 2 * 2  # levels, N, sizes
    assert {json.loads(line)["config"]["level"] for line in samples} == {"intra_socket", "inter_node"}
    assert json.loads((tmp_path / "profile.json").read_text())["schema"] == "earlybird.profile/1"


def test_hosts_of_an_allocation_are_reached(mpi, allocated, tmp_path):
    arguments = (
        "measure",
        "pingpong",
        "--sizes",
        "8",
        "--levels",
        "inter_node",
        "--launches",
        "1",
        "--budget",
        "1s",
    )
    result = allocated(*arguments, "--mpi", mpi, "--hosts", "n1,n2", "-o", "run")
    assert result.returncode == 0, result.stderr
    (launch,) = _launches(tmp_path / "run")
    assert _hosts(launch) == [f"{node}{DOMAIN}" for node in ("n1", "n2")]  # mpiexec does not know Slurm's


def test_record_under_srun(mpi, allocated, tmp_path):
    if mpi == "openmpi":
        pytest.skip("needs an MPI that speaks PMI-2")
    compile_for(mpi, RING, "-o", tmp_path / "ring")
    command = ("srun", "--mpi=pmi2", "--overcommit", "-n4", "./ring")
    result = allocated("record", "--mpi", mpi, "-o", "rec", "--json", "--", *command)
    assert result.returncode == 0, result.stderr
    recording = load_recording(tmp_path / "rec")
    # Not the names that the nodes have themselves.
    assert sorted(one.host for one in recording.ranks.values()) == ["n1", "n1", "n2", "n2"]
    ring = [(rank, (rank + 1) % 4, 3, 3000 * (rank + 1)) for rank in range(4)]
    assert rows(recording.sent()) == sorted([*ring, (2, 0, 1, 40), (3, 1, 1, 40)])


def test_arguments_of_the_user_reach_srun_and_are_asked_for_again(any_mpi, allocated, refused, tmp_path):
    arguments = ("measure", "pingpong", "--sizes", "8", "--levels", "intra_socket", "--mpi", any_mpi)
    more = ("--launcher", "srun", "--launches", "1", "--budget", "1s", "-o", "run")
    result = allocated(*arguments, *more, "--srun", "--comment=mine --mpi=none")
    assert result.returncode == 1 and "the ranks did not find each other" in result.stderr, result.stderr
    (launch,) = _launches(tmp_path / "run")
    assert launch["srun"] == "--comment=mine --mpi=none"
    assert {"--comment=mine", "--mpi=none"} <= set(launch["command_line"])
    resumed = allocated("measure", "--resume", "-o", "run", "--srun", "--comment=other")
    refused(resumed, "--srun is --comment=other", "with --comment=mine --mpi=none")


def test_a_component_of_a_heterogeneous_job(any_mpi, slurm, tmp_path):
    if any_mpi == "openmpi":
        pytest.skip("needs an MPI that speaks PMI-2")
    components = ("salloc", "-Q", "-N1", "--exclusive", ":", "-N1", "--exclusive", EARLYBIRD)
    arguments = ("measure", "pingpong", "--sizes", "8", "--launcher", "srun", "--mpi", any_mpi)
    more = ("--launches", "1", "--budget", "1s", "--srun", "--het-group=1", "-o", "run")
    result = slurm.run(*components, *arguments, *more, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (launch,) = _launches(tmp_path / "run")
    assert _hosts(launch) == ["n2", "n2"]
