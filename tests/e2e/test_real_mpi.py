"""The commands as a user types them, on real MPI: the loop, deaths, hangs, Ctrl-C, a disk that fills."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from earlybird.data.exchange_models import MODELS
from earlybird.data.run import Run
from earlybird.launch import shared_memory
from earlybird.launch.process import MARKER
from earlybird.launch.temporary_files import TOPOLOGY
from earlybird.machine.flavours import find_flavour
from tests.conftest import require_mpi

EARLYBIRD = Path(sys.executable).parent / "earlybird"

pytestmark = pytest.mark.mpi


def _alive(wanted) -> list[psutil.Process]:
    """Processes other than zombies for which `wanted(process)` holds."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE and wanted(process):
                found.append(process)
    return found


def _ranks_in(folder) -> list[psutil.Process]:
    """Kernel processes started from the run folder `folder`."""
    return _alive(lambda process: process.name() == "exchange" and str(folder) in " ".join(process.cmdline()))


def _job_processes_in(folder) -> list[psutil.Process]:
    """Everything of a job whose test has the folder `folder`: mpiexec, proxies, daemons, ranks."""

    def wanted(process) -> bool:
        environment = process.environ()
        return MARKER in environment and environment.get("PWD_OF_TEST") == str(folder)

    return _alive(wanted)


@pytest.fixture
def long_replay(tmp_path):
    """Start a replay that would take a minute and wait until its ranks run; returns the process."""
    # Large messages: ranks of smaller ones have come and gone before anybody sees them.
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,20000000\n1,0,20000000\n")
    started = []

    def start(mpi: str, *arguments: str):
        process = subprocess.Popen(
            [EARLYBIRD, "replay", "pattern.csv", "--layout", "1x1x2", "--mpi", mpi,
             "-o", str(tmp_path / "run"), "--launches", "200", "--budget", "300s", *arguments],
            cwd=tmp_path, env=dict(os.environ) | {"PWD_OF_TEST": str(tmp_path)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            held = (tmp_path / "run" / "samples.ndjson").exists()
            if held and len(_ranks_in(tmp_path)) == 2:
                return process
            time.sleep(0.01)
        process.kill()
        raise AssertionError(f"no ranks came up: {process.communicate()}")

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
    deadline = time.monotonic() + 60
    while _job_processes_in(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _job_processes_in(tmp_path) == []


def _finish(process, timeout: float) -> tuple[int, str]:
    _, err = process.communicate(timeout=timeout)
    assert "Traceback" not in err
    return process.returncode, err


def _strike(process, folder, blow) -> None:
    """Deal the first rank a `blow` until `process` ends: one that came after the rank's last word hits
    nothing, and the next launch follows."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        for rank in _ranks_in(folder)[:1]:
            with suppress(psutil.NoSuchProcess):
                blow(rank)
        time.sleep(0.02)


def _samples(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "samples.ndjson").read_text().splitlines()]


@pytest.mark.thorough
def test_the_loop_closes(mpi, earlybird, in_process, tmp_path):
    budget = ("--mpi", mpi, "--quick", "--launches", "2", "--budget", "1s")
    output = earlybird("measure", "pingpong", "contention", *budget, "-o", "run", "--json")
    points = json.loads(output.stdout)["points"]
    assert {(point["kernel"], point["mpi"]) for point in points} == {("pingpong", mpi), ("contention", mpi)}
    # A busy machine may spend the budget before the second launch of a point.
    assert all(point["time_s"] > 0 and 1 <= point["launches"] <= 2 for point in points)
    in_process("fit", "run", "-o", "profile.json")
    in_process("pattern", "mesh", "--cells", "5000", "--parts", "2", "-o", "mesh.csv")
    predicted = json.loads(
        in_process("predict", "mesh.csv", "--profile", "profile.json", "--layout", "1x1x2", "--json").stdout
    )
    replay = (
        "replay",
        "mesh.csv",
        "--profile",
        "profile.json",
        "--layout",
        "1x1x2",
        "--mpi",
        mpi,
        "--launches",
        "2",
        "--budget",
        "1s",
    )
    compared = json.loads(earlybird(*replay, "-o", "replay", "--json").stdout)
    assert compared["predicted_s"]["staircase"] == pytest.approx(predicted["time_s"])
    assert len(compared["measured_s"]) == 2 and min(compared["measured_s"]) > 0
    assert set(compared["error"]) == {name for name, model in MODELS.items() if not model.inside}
    launches = [
        json.loads(line) for line in (tmp_path / "replay" / "launches.ndjson").read_text().splitlines()
    ]
    assert 1 <= len(launches) <= 2  # as many as a busy machine gets done in 1 s
    assert all(len(launch["placement"]) == 2 and launch["exit"] == 0 for launch in launches)
    in_process("report", "run", "profile.json", "replay", "-o", "report.html")
    assert not list(tmp_path.glob("**/.launch-*"))


def test_pipeline_compares_its_methods_round_by_round(mpi, in_process, tmp_path):
    arguments = ("pipeline", "--sizes", "21,3MiB", "--partitions", "1,3", "--gamma", "100us/MB")
    # A second launch would be left out where a busy machine has spent the budget.
    effort = ("--mpi", mpi, "--launches", "1", "--budget", "1s", "--levels", "intra_socket")
    rows = json.loads(in_process("measure", *arguments, *effort, "-o", "run", "--json").stdout)["points"]
    assert len(rows) == 2 * 2 * 4
    # One launch with libearlybird and one without.
    shared = {"single": 2, "many": 2, "earlybird": 1, "partitioned": 1}
    assert {row["method"]: row["launches"] for row in rows} == shared
    assert {(row["mpi"], row["threads"]) for row in rows} == {(mpi, 1)}
    for row in rows:
        assert row["time_s"] > 0
        assert (row["speed_up"] is None) == (row["method"] == "single")
        if row["speed_up"]:
            assert 0 < row["speed_up_low"] <= row["speed_up"] <= row["speed_up_high"]
    samples = _samples(tmp_path / "run")
    assert all(sample["validated"] and sample["clock"] == "one" for sample in samples)
    before = (tmp_path / "run" / "samples.ndjson").read_bytes()
    in_process("measure", "--resume", "-o", "run")
    assert (tmp_path / "run" / "samples.ndjson").read_bytes() == before


SLOW_FENCE = """
#include <mpi.h>
#include <unistd.h>
int MPI_Win_fence(int promises, MPI_Win win) {
  usleep(20000);
  return PMPI_Win_fence(promises, win);
}
"""


@pytest.mark.thorough
def test_a_slow_method_is_listed_last(any_mpi, earlybird, tmp_path):
    flavour = find_flavour(any_mpi)
    (tmp_path / "slow.c").write_text(SLOW_FENCE)
    command = [flavour.mpicc, "-shared", "-fPIC", tmp_path / "slow.c", "-o", tmp_path / "slow.so"]
    subprocess.run(command, check=True, env=flavour.environment())
    arguments = ("pipeline", "--sizes", "42", "--partitions", "6", "--threads", "1,2", "--gamma", "0")
    arguments += (
        "--methods",
        "rma-fence,many,rma-single-active",
        "--mpi",
        any_mpi,
        "--levels",
        "intra_socket",
    )
    arguments += ("--launches", "1", "--budget", "1s", "-o", "run", "--json")
    output = earlybird("measure", *arguments, env={"LD_PRELOAD": str(tmp_path / "slow.so")}).stdout
    rows = [(row["threads"], row["method"]) for row in json.loads(output)["points"]]
    # As the table prints them: of each number of threads `single` first, and then the fastest.
    assert [threads for threads, _ in rows] == [1] * 4 + [2] * 4
    for method, place in (("single", 0), ("rma-fence", 3)):
        assert rows[place] == (1, method) and rows[4 + place] == (2, method)


@pytest.mark.parametrize("num_ranks", [1, 4])
def test_replay_takes_one_rank_and_more_ranks_than_cores(mpi, in_process, tmp_path, num_ranks):
    ring = [
        f"{rank},{(rank + 1) % num_ranks},{1000 * rank}" for rank in range(num_ranks if num_ranks > 1 else 0)
    ]
    (tmp_path / "ring.csv").write_text("\n".join(["src,dst,bytes", *ring]) + "\n")
    arguments = (
        "replay",
        "ring.csv",
        "--layout",
        f"1x1x{num_ranks}",
        "--mpi",
        mpi,
        "--launches",
        "2",
        "--budget",
        "1s",
    )
    replayed = in_process(*arguments, "-o", "run", "--json")
    assert len(json.loads(replayed.stdout)["measured_s"]) == num_ranks
    assert ("the pattern ring.csv has no messages" in replayed.stderr) == (num_ranks == 1)
    cores = len(os.sched_getaffinity(0))
    assert all(sample["oversubscribed"] == (num_ranks > cores) for sample in _samples(tmp_path / "run"))


def test_hosts_are_started_by_name(mpi, in_process, tmp_path):
    arguments = ("measure", "pingpong", "--sizes", "8", "--launches", "1", "--budget", "1s", "--mpi", mpi)
    in_process(*arguments, "--hosts", "localhost", "-o", "run")
    (launch,) = [json.loads(line) for line in (tmp_path / "run" / "launches.ndjson").read_text().splitlines()]
    assert launch["launcher"] == "hosts"
    assert [entry["node"] for entry in launch["placement"]] == [0, 0]


def test_a_host_that_cannot_be_reached_is_named(mpi, earlybird, tmp_path, refused):
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho 'no route to that' >&2\nexit 255\n")
    agent.chmod(0o755)
    arguments = ("measure", "pingpong", "--sizes", "8", "--hosts", "nosuch.invalid", "--mpi", mpi)
    result = earlybird(*arguments, "--agent", agent, "-o", "run", check=False)
    refused(result, "host nosuch.invalid cannot be reached by", str(agent), "no route to that", status=1)


def test_a_killed_rank_ends_the_job_and_what_was_measured_is_kept(mpi, long_replay, tmp_path):
    process = long_replay(mpi, "--stall-limit", "15s")
    held = len(_samples(tmp_path / "run"))
    _strike(process, tmp_path, psutil.Process.kill)
    status, err = _finish(process, 120)
    assert status == 1
    assert "failed: " in err and "--resume" in err
    assert len(_samples(tmp_path / "run")) >= held > 0


@pytest.mark.thorough
def test_a_hung_rank_is_ended_after_the_stall_limit(any_mpi, long_replay, tmp_path):
    # Long enough for ranks to start on a busy machine: until then, too, no point is finished.
    process = long_replay(any_mpi, "--stall-limit", "8s")
    _strike(process, tmp_path, psutil.Process.suspend)
    status, err = _finish(process, 120)
    assert status == 1
    assert "no point was finished for 8 s" in err


def test_a_launch_ends_at_its_time_limit(any_mpi, earlybird, tmp_path, refused):
    arguments = (
        "measure",
        "pingpong",
        "--sizes",
        "64MiB",
        "--launches",
        "1",
        "--time-limit",
        "0.3s",
        "--mpi",
        any_mpi,
    )
    refused(earlybird(*arguments, "-o", "run", check=False), "time limit", status=1)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.thorough)])
def test_an_interrupted_replay_is_resumed(any_mpi, long_replay, in_process, tmp_path, number):
    process = long_replay(any_mpi)
    process.send_signal(number)
    status, err = _finish(process, 120)
    assert status == 130
    (sentence,) = [line for line in err.splitlines() if line.startswith("earlybird: interrupted")]
    assert (
        sentence.startswith("earlybird: interrupted; complete points are stored") and "--resume" in sentence
    )
    held = _samples(tmp_path / "run")
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    settings["settings"]["effort"] |= {"launches": len(held) + 1, "budget_s": 1.0}
    (tmp_path / "run" / "run.json").write_text(json.dumps(settings))
    in_process("replay", "--resume", "-o", "run")
    assert _samples(tmp_path / "run")[: len(held)] == held
    assert len(_samples(tmp_path / "run")) == len(held) + 1


def test_an_interrupted_job_leaves_no_shared_memory(mpi, long_replay, tmp_path):
    process = long_replay(mpi)
    own: set[str] = set()
    while not own and process.poll() is None:
        own = {path for rank in _ranks_in(tmp_path) for path in shared_memory.mapped_by(rank.pid)}
    process.send_signal(signal.SIGINT)
    _finish(process, 120)
    assert own and [path for path in own if Path(path).exists()] == []


@pytest.mark.alone
def test_a_killed_mpiexec_leaves_nothing_in_tmp(mpi, long_replay, tmp_path):
    before = set(Path("/tmp").iterdir())
    process = long_replay(mpi)
    own, deadline = set(), time.monotonic() + 120
    # What nobody has seen alive is not known to be this job's.
    while process.poll() is None and len(psutil.Process(process.pid).children(recursive=True)) < 4:
        time.sleep(0.02)
    time.sleep(1)
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(psutil.Error):
            for one in psutil.Process(process.pid).children(recursive=True):
                own.add(one.pid)
                one.kill()
        time.sleep(0.02)
    status, err = _finish(process, 120)
    assert status == 1, err
    left = [path for path in Path("/tmp").glob("ompi.*") if path.name.removeprefix("ompi.") in map(str, own)]
    topologies = set(Path("/tmp").glob(f"{TOPOLOGY}*")) - before
    # Other people may be starting ranks of their own meanwhile.
    assert left == [] and (topologies == set() or _alive(lambda one: one.name() == "hydra_pmi_proxy"))


def test_ranks_die_with_an_earlybird_that_is_killed_outright(any_mpi, long_replay):
    process = long_replay(any_mpi)
    process.kill()  # the fixture's end asserts that no process of the job is left


def test_a_layout_that_cannot_be_placed_is_refused(any_mpi, in_process, tmp_path, refused):
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,8\n")
    replay = ("replay", "pattern.csv", "--mpi", any_mpi, "-o", "run")
    refused(in_process(*replay, "--layout", "2x1x1", check=False), "2 nodes")
    refused(in_process(*replay, "--layout", "1x64x1", check=False), "64 sockets")
    refused(in_process(*replay, "--layout", "1x1x1", check=False), "rank 1")
    assert not (tmp_path / "run").exists()


def test_ranks_that_land_elsewhere_are_refused(any_mpi, earlybird, tmp_path, refused):
    """Two names of one host: the layout says two nodes, the ranks share one."""
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,8\n")
    result = earlybird(
        "replay", "pattern.csv", "--layout", "2x1x1", "--hosts", f"localhost,{os.uname().nodename}",
        "--mpi", any_mpi,
        "-o", "run", check=False,
    )  # fmt: skip
    refused(result, "is not where the layout", status=1)
    assert not (tmp_path / "run" / "samples.ndjson").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_ends_the_command_in_a_sentence(any_mpi, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=60k none {small} || exit 77; cd {small}; "
        f"{EARLYBIRD} measure pingpong --mpi {any_mpi} --quick --launches 40 --quiet -o run; echo status $?; "
        "tail -c 1 run/samples.ndjson | od -An -c"
    )
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120
    )
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip("a mount namespace is not permitted here")
    assert "status 1" in result.stdout
    assert "\\n" in result.stdout.splitlines()[-1]
    assert "Traceback" not in result.stderr
    # The command, or a rank of it, meets the full disk first.
    assert "no space left" in result.stderr.lower() and "--resume" in result.stderr


def test_exec_gives_the_flavours_tools_and_the_commands_status(mpi, earlybird, tmp_path):
    (tmp_path / "hello.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(int argc, char **argv) {\n"
        "  MPI_Init(&argc, &argv);\n  int size;\n  MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
        '  printf("size %d\\n", size);\n  MPI_Finalize();\n  return 0;\n}\n'
    )
    earlybird("exec", "--mpi", mpi, "--", "mpicc", "hello.c", "-o", "hello")
    assert "size 2" in earlybird("exec", "--mpi", mpi, "--", "mpiexec", "-n", "2", "./hello").stdout
    assert earlybird("exec", "--mpi", mpi, "--", "sh", "-c", "exit 7", check=False).returncode == 7
    which = earlybird("exec", "--mpi", mpi, "--no-interpose", "--", "sh", "-c", "command -v mpiexec")
    assert which.stdout.strip() == str(find_flavour(mpi).mpiexec) and which.stderr == ""


def test_a_layout_with_letters_beyond_ascii_is_echoed_whole(any_mpi, in_process, tmp_path):
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,8\n")
    (tmp_path / "läyout.csv").write_text("rank,node,socket\n0,0,0\n1,0,0\n")
    arguments = ("replay", "pattern.csv", "--layout", "läyout.csv", "--mpi", any_mpi, "--launches", "1")
    in_process(*arguments, "-o", "run")
    in_process("replay", "--resume", "-o", "run")
    (sample,) = _samples(tmp_path / "run")
    assert sample["config"]["layout"] == "läyout.csv"


def test_exec_of_a_script_without_a_first_line_is_refused(any_mpi, earlybird, tmp_path, refused):
    (tmp_path / "script").write_text("echo hello\n")
    (tmp_path / "script").chmod(0o755)
    refused(earlybird("exec", "--mpi", any_mpi, "--no-interpose", "--", "./script", check=False), "#!/bin/sh")


@pytest.mark.thorough
def test_several_mpis_are_measured_into_one_run_and_fitted_one_by_one(
    earlybird, in_process, refused, tmp_path
):
    require_mpi("mpich")
    require_mpi("openmpi")
    both = ("--mpi", "mpich", "--mpi", "openmpi")
    small = ("--sizes", "8,1KiB", "--levels", "intra_socket", "--launches", "2", "--budget", "60s")
    measured = in_process("measure", "pingpong", *both, *small, "-o", "run")
    assert "measuring mpich and openmpi, their launches interleaved" in measured.stderr
    assert "\nMPICH:\n" in measured.stdout and "\nOpen MPI:\n" in measured.stdout
    shown, compared = in_process("show", "run").stdout, in_process("compare", "run", check=False).stdout
    assert measured.stdout == f"{shown}\n{compared}"
    run = tmp_path / "run"
    assert json.loads((run / "run.json").read_text())["settings"]["mpi"] == ["mpich", "openmpi"]
    launches = [json.loads(line)["flavour"] for line in (run / "launches.ndjson").read_text().splitlines()]
    assert sorted(launches[:2]) == sorted(launches[2:]) == ["mpich", "openmpi"]
    refused(in_process("fit", "run", check=False), "mpich", "openmpi", "select one with --mpi")
    in_process("fit", "run", "--mpi", "openmpi", "-o", "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["context"]["flavour"] == "openmpi"
    rows = json.loads(in_process("measure", "--resume", "-o", "run", "--launches", "3", "--json").stdout)
    assert {(row["mpi"], row["launches"]) for row in rows["points"]} == {("mpich", 3), ("openmpi", 3)}
    refused(in_process("measure", "--resume", "-o", "run", "--mpi", "mpich", check=False), "--mpi is mpich")
    refused(in_process("measure", "pingpong", *both, "--format", "osu", check=False), "--format osu", "--mpi")


def test_settings_alternate_and_are_compared(in_process, tmp_path):
    require_mpi("mpich")
    variable = "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD"
    small = ("--sizes", "8", "--budget", "60s", "--quiet")
    sides = ("mpich", f"mpich+{variable}=99999")
    measured = in_process(
        "measure", "pingpong", "--mpi", "mpich", "--env", variable, "--env", f"{variable}=99999", *small,
        "--launches", "1", "-o", "run",
    )  # fmt: skip
    assert f"environment.{variable}: (none) -> 99999" in measured.stdout
    in_process("measure", "--resume", "-o", "run", "--launches", "2", "--quiet")
    # The MPI reports what it used.
    values = [one["control_variables"][variable] for one in Run.open(tmp_path / "run").launches()]
    assert len(values) == 4 and values.count(99999) == 2
    found = json.loads(in_process("compare", "run", "--json").stdout)
    assert (found["before"], found["after"]) == tuple(f"run, {side}" for side in sides)
    assert [one["launches_after"] for one in found["changes"]] == [2]
    # A third setting against the points of that run.
    in_process(
        "measure", "--against", "run", "--env", f"{variable}=5", "--launches", "1", *small[2:], "-o", "new"
    )
    assert Run.open(tmp_path / "new").header["settings"]["mpi"] == [*sides, f"mpich+{variable}=5"]
