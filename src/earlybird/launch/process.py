"""Run a command and its whole process tree within a time limit, and leave no process of it behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MARKER = "EARLYBIRD_JOB"  # in the environment of every process of a job, so that stragglers can be found
_GRACE_S = 3.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Ended:
    """How a command ended. `cause` is None when it ended well, else the reason in words."""

    exit_status: int
    cause: str | None
    duration_s: float
    stderr: str


def run_tree(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    time_limit_s: float,
    stall_limit_s: float,
    progress: Callable[[], int] = lambda: 0,
) -> Ended:
    """Run `command` until it ends, `time_limit_s` is over, or `progress()` has not grown for `stall_limit_s`.

    stdout and stderr go to files in `folder`. Whatever happens, Ctrl-C included, every process of the job is
    gone when this returns or raises.
    """
    job = uuid.uuid4().hex
    begin_s = time.monotonic()
    stderr_path = folder / "stderr.txt"
    with open(folder / "stdout.txt", "wb") as stdout, open(stderr_path, "wb") as stderr:
        process = subprocess.Popen(
            list(command),
            env=dict(environment) | {MARKER: job},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,  # a Ctrl-C reaches us alone; we then end the tree in order
            preexec_fn=_die_with_parent,
        )
        try:
            cause = _wait(process, begin_s, time_limit_s, stall_limit_s, progress)
        finally:
            _end_tree(process, job)
    text = stderr_path.read_text(errors="replace")
    status = process.returncode
    if cause is None and status != 0:
        cause = _explain(status, text)
    return Ended(status, cause, time.monotonic() - begin_s, text)


def _die_with_parent() -> None:
    # If we are killed outright, mpiexec is told to end and takes its ranks with it.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(process, begin_s: float, time_limit_s: float, stall_limit_s: float, progress) -> str | None:
    last_count, last_growth_s = progress(), begin_s
    while True:
        try:
            process.wait(timeout=0.05)
            return None
        except subprocess.TimeoutExpired:
            pass
        now_s = time.monotonic()
        count = progress()
        if count != last_count:
            last_count, last_growth_s = count, now_s
        if now_s - begin_s > time_limit_s:
            return f"it ran past its time limit of {time_limit_s:.0f} s"
        if now_s - last_growth_s > stall_limit_s:
            return f"no point was finished for {stall_limit_s:.0f} s: a rank hangs or was stopped"


def _end_tree(process: subprocess.Popen, job: str) -> None:
    """Ask mpiexec to end (it takes remote ranks along), then kill what is left."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
    deadline_s = time.monotonic() + _GRACE_S
    while True:
        left = _processes_of(job)
        if not left:
            break
        if process.returncode not in (0, None) or time.monotonic() > deadline_s:
            for straggler in left:
                _signal(straggler.pid, signal.SIGCONT)
                _signal(straggler.pid, signal.SIGKILL)
        if time.monotonic() > deadline_s + _GRACE_S:
            break
        time.sleep(0.02)
    process.wait()


def _processes_of(job: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARKER) == job:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _explain(status: int, stderr: str) -> str:
    """The line of the launcher's output that tells most, or the status in words."""
    lines = [line.strip(" =|-*") for line in stderr.splitlines()]
    lines = [line for line in lines if line]
    for word in ("earlybird kernel:", "KILLED BY SIGNAL", "EXIT STRING", "exited on signal", "BAD "
        "TERMINATION",
                 "rror", "not enough", "bort"):  # fmt: skip
        for line in lines:
            if word in line:
                return line.removeprefix("earlybird kernel:").strip()
    if status < 0:
        return f"it was ended by {signal.Signals(-status).name}"
    return f"it ended with status {status}" + (f": {lines[-1]}" if lines else "")
