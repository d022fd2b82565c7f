"""A command and its whole tree are run within limits, and nothing of it is left behind."""

import errno
import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from earlybird.launch import process as launch_process
from earlybird.launch import shared_memory
from earlybird.launch.process import MARKER, Limits, Places, _guarded, run_tree

PATIENT = Limits(time_limit_s=60, stall_limit_s=60)
# Ignores SIGTERM, and so does the grandchild that it starts in a session of its own.
STUBBORN = "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 100\" & sleep 100"


def is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch, request):
    """Mark everything this test starts, and find none of it afterwards."""
    mark = f"{request.node.name}-{os.getpid()}"
    monkeypatch.setenv("MARK_OF_TEST", mark)
    monkeypatch.setattr("earlybird.launch.process._GRACE_S", 0.6)  # so that the tests are quick
    yield
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK_OF_TEST") == mark and MARKER in process.environ():
                left.append(process)
        except (psutil.Error, OSError):
            continue
    # A process that was just killed, or that has just killed others, may still be about to end.
    ends_s = time.monotonic() + 30.0
    while (alive := [one for one in left if is_alive(one)]) and time.monotonic() < ends_s:
        time.sleep(0.01)
    for process in alive:
        process.kill()
    assert alive == []


def run(script: str, limits: Limits = PATIENT, progress=lambda: 0):
    return run_tree(["sh", "-c", script], environment=dict(os.environ), limits=limits, progress=progress)


def test_a_good_end_has_no_cause():
    ended = run("echo fine")
    assert (ended.exit_status, ended.cause) == (0, None)
    assert 0 < ended.duration_s < 60


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("exit 3", "it ended with status 3"),
        ("echo one; echo two >&2; exit 1", "it ended with status 1: two"),
        ("echo noise; echo 'earlybird kernel: cannot read r.json' >&2; exit 1", "cannot read r.json"),
        ("echo '=   BAD TERMINATION'; echo '= EXIT STRING: Killed (signal 9) ='; exit 9",
         "EXIT STRING: Killed (signal 9)"),
        ("echo 'Fatal error in MPI_Recv'; exit 1", "Fatal error in MPI_Recv"),
        ("kill -SEGV $$", "it was ended by SIGSEGV"),
    ],
)  # fmt: skip
def test_a_bad_end_is_reported_by_the_line_that_says_most(script, cause):
    ended = run(script)
    assert ended.exit_status != 0
    assert ended.cause == cause


def test_a_job_ends_at_its_time_limit():
    ended = run("sleep 100", Limits(0.3, 60))
    assert ended.cause == "it ran past its time limit of 0.3 s"
    assert ended.duration_s < 60


def test_a_job_that_finishes_no_point_ends_at_its_stall_limit():
    begin_s = time.monotonic()
    counts = iter(range(4))
    ended = run("sleep 100", Limits(60, 0.3), lambda: next(counts, 4))
    assert "no point was finished for 0.3 s" in ended.cause and "which one is not known" in ended.cause
    assert time.monotonic() - begin_s < 60


def test_a_job_that_goes_on_does_not_stall():
    points = iter(range(1000))
    assert run("sleep 0.7", Limits(60, 0.3), lambda: next(points)).cause is None


def test_a_grandchild_that_ignores_being_asked_is_ended():
    ended = run(STUBBORN, Limits(0.3, 60))
    assert "time limit" in ended.cause


def test_a_stopped_process_is_ended():
    ended = run("sleep 100 & kill -STOP $!; wait", Limits(0.5, 60))
    assert "time limit" in ended.cause


def test_daemons_left_after_a_good_end_are_ended():
    assert run("setsid sleep 100 & exit 0").cause is None


def test_an_interrupt_leaves_nothing():
    calls = iter(range(3))

    def progress():
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return 0

    with pytest.raises(KeyboardInterrupt):
        run("sleep 100 & sleep 100", progress=progress)


def test_a_second_interrupt_leaves_nothing_either(tmp_path, monkeypatch):
    """An impatient person presses Ctrl-C again while the tree is being ended: here, what is asked to end."""
    monkeypatch.setattr("earlybird.launch.process._GRACE_S", 30)
    begun, again = tmp_path / "begun", tmp_path / "again"
    script = f"trap 'touch {again}; kill -INT {os.getpid()}' TERM; sleep 100 & touch {begun}; wait"

    def progress():
        if begun.exists():
            raise KeyboardInterrupt
        return 0

    with pytest.raises(KeyboardInterrupt):
        run(script, progress=progress)
    assert again.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_environment_reaches_the_job(tmp_path):
    environment = dict(os.environ) | {"GIVEN": "here"}
    script = f'test "$GIVEN" = here && {sys.executable} -c \'import os; assert os.environ["{MARKER}"]\''
    ended = run_tree(["sh", "-c", script], environment=environment, limits=PATIENT, progress=lambda: 0)
    assert ended.exit_status == 0


def test_no_code_runs_between_fork_and_exec(monkeypatch):
    """It may deadlock where pairs of nodes are launched in threads."""
    real, given = subprocess.Popen, {}

    def start(command, **settings):
        given.update(settings)
        return real(command, **settings)

    monkeypatch.setattr("earlybird.launch.process.subprocess.Popen", start)
    with ThreadPoolExecutor(8) as pool:
        ended = [job.result() for job in [pool.submit(run, f"exit {k}") for k in range(8)]]
    assert [one.exit_status for one in ended] == list(range(8))
    assert "preexec_fn" not in given


def test_a_job_ends_if_whoever_started_it_is_killed(tmp_path):
    code = (
        "import os, sys; from earlybird.launch.process import Limits, run_tree;"
        "run_tree(['sh', '-c', f'echo $$ > {sys.argv[1]}; exec sleep 100'], environment=dict(os.environ),"
        "limits=Limits(90, 90), progress=lambda: 0)"
    )
    file = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", code, str(file)]) as starter:
        while not (file.exists() and file.read_text().strip()):
            assert starter.poll() is None
            time.sleep(0.02)
        job = psutil.Process(int(file.read_text()))  # before the end, after which it may be gone at once
        starter.kill()
    end_s = time.monotonic() + 60
    while is_alive(job) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not is_alive(job)


# Leaves a process behind that has no mark, in a session of its own, and whose parent has ended.
FORSAKEN = "(env -i setsid sh -c 'trap \"\" TERM; echo $$; sleep 100' & ); sleep 100"


def test_what_has_lost_its_parent_ends_if_whoever_started_the_job_is_killed(tmp_path):
    """Proxies that a launcher was about to start, as Intel MPI's."""
    code = (
        "import os, sys; from earlybird.launch.process import Limits, run_tree;"
        "run_tree(['sh', '-c', sys.argv[1]], environment=dict(os.environ), limits=Limits(90, 90),"
        "progress=lambda: 0)"
    )
    script = FORSAKEN.replace("echo $$", f"echo $$ > {tmp_path / 'pid'}")
    with subprocess.Popen([sys.executable, "-c", code, script]) as starter:
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()):
            assert starter.poll() is None
            time.sleep(0.02)
        left = psutil.Process(int((tmp_path / "pid").read_text()))
        starter.kill()
    end_s = time.monotonic() + 60
    while is_alive(left) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not is_alive(left)


def test_nothing_starts_if_whoever_starts_the_job_is_killed_before(tmp_path):
    """The end of a parent is not reported to a process that has not asked yet."""
    their_end, our_end = os.pipe()
    os.close(our_end)
    command = _guarded(["touch", str(tmp_path / "ran")], os.environ, their_end, "x", 0.0)
    assert subprocess.run(command, pass_fds=[their_end]).returncode == 0
    os.close(their_end)
    assert not (tmp_path / "ran").exists()


def test_a_program_that_the_system_does_not_start_is_named(tmp_path):
    (tmp_path / "mpiexec").write_text("neither a script nor a program")
    (tmp_path / "mpiexec").chmod(0o755)
    ended = run_tree(
        [str(tmp_path / "mpiexec")], environment=dict(os.environ), limits=PATIENT, progress=lambda: 0
    )
    assert ended.exit_status != 0 and "mpiexec cannot be started: Exec format error" in ended.cause


def test_a_process_that_may_not_be_ended_does_not_save_the_others(monkeypatch):
    """Such as a setuid program that an agent starts."""
    real, refused = os.kill, []

    def kill(pid, number):
        if not refused:
            refused.append(pid)
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(pid, number)

    monkeypatch.setattr("earlybird.launch.process.os.kill", kill)
    run("setsid sleep 100 & setsid sleep 100 & exit 1")
    assert refused


# Makes a segment of a name that UCX uses, and then does what it is told.
SEGMENT = """
import mmap, os, pathlib, sys, time
file = open(sys.argv[1], "w+b")
file.truncate(4096)
held = mmap.mmap(file.fileno(), 4096)
pathlib.Path(sys.argv[2], f"ompi.{os.getpid()}").mkdir()
"""


@pytest.fixture
def of_another_job(tmp_path, monkeypatch):
    """A segment that no process has, and the folder of a daemon that has ended, where jobs look for them."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    temporary = tmp_path / "tmp"
    monkeypatch.setattr(launch_process, "MACHINE", Places(temporary=temporary))
    segment = shared_memory.FOLDER / f"ucx_shm_posix_{uuid.uuid4().hex}"
    left = temporary / f"ompi.{ended.pid}"

    def make():
        segment.touch()
        left.mkdir(parents=True, exist_ok=True)

    temporary.mkdir()
    yield make, segment, left
    segment.unlink(missing_ok=True)


@pytest.mark.parametrize("last", ["time.sleep(100)", "time.sleep(0.5); sys.exit(3)"])
def test_a_failed_job_takes_along_what_it_made_and_nothing_else(tmp_path, of_another_job, last):
    make, others, left = of_another_job
    own = shared_memory.FOLDER / f"ucx_shm_posix_{uuid.uuid4().hex}"
    command = [sys.executable, "-c", SEGMENT + last, str(own), str(left.parent)]

    def progress():
        make()
        return 0

    try:
        ended = run_tree(command, environment=dict(os.environ), limits=Limits(60, 1.0), progress=progress)
        assert ended.cause is not None
        assert not own.exists() and [path.name for path in left.parent.iterdir()] == [left.name]
        assert others.exists()
    finally:
        own.unlink(missing_ok=True)


def test_a_job_whose_starter_is_killed_takes_along_what_it_made_and_nothing_else(tmp_path, of_another_job):
    make, others, _ = of_another_job
    own = shared_memory.FOLDER / f"ucx_shm_posix_{uuid.uuid4().hex}"
    code = (
        "import os, sys; from earlybird.launch.process import Limits, run_tree;"
        "run_tree(sys.argv[1:], environment=dict(os.environ), limits=Limits(90, 90), progress=lambda: 0)"
    )
    program = SEGMENT + "pathlib.Path(sys.argv[2], 'begun').touch(); time.sleep(100)"
    command = [sys.executable, "-c", code, sys.executable, "-c", program, str(own), str(tmp_path)]
    with subprocess.Popen(command) as starter:
        while not (tmp_path / "begun").exists():
            assert starter.poll() is None
            time.sleep(0.02)
        make()
        starter.kill()
    end_s = time.monotonic() + 60
    while own.exists() and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not own.exists() and others.exists()
    own.unlink(missing_ok=True)


def test_a_missing_command_is_no_job():
    with pytest.raises(FileNotFoundError, match="no-such-mpiexec"):
        run_tree(["no-such-mpiexec"], environment=dict(os.environ), limits=PATIENT, progress=lambda: 0)
