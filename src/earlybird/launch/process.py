"""Run a command and its process tree within a time limit; no process is left afterwards."""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from earlybird.launch import shared_memory, temporary_files
from earlybird.launch.guardian import PR_SET_CHILD_SUBREAPER
from earlybird.launch.job_output import explain

MARKER = "EARLYBIRD_JOB"  # in the environment of every process of a job, so that stragglers can be found
_POLL_S = 0.05
_WATCH_S = 1.0  # looking costs time on the cores that are measured
_GRACE_S = 3.0
# Not code between fork and exec, which may deadlock, because checks launch pairs of nodes in threads.
_GUARDIAN = Path(__file__).with_name("guardian.py")

STALL_CAUSE = (
    "a rank hangs, died or was stopped, which one is not known, or a point takes longer than that: then give "
    "a larger --stall-limit"
)


@dataclass(frozen=True)
class Limits:
    """A job is ended after `time_limit_s`, or when no point finished for `stall_limit_s`, for which
    `stall_cause` names the possible causes."""

    time_limit_s: float
    stall_limit_s: float
    stall_cause: str = STALL_CAUSE


@dataclass(frozen=True)
class Ended:
    """How a command ended. `cause` is None on success, otherwise a description of the failure."""

    exit_status: int
    cause: str | None
    duration_s: float


def run_tree(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    limits: Limits,
    progress: Callable[[], int | None],
    watch: Callable[[], str | None] | None = None,
) -> Ended:
    """Run `command` until it ends, `limits` end it or `watch()` gives a cause to end it.

    `progress()` is None until all ranks have started, then the number of points finished. Whatever happens,
    Ctrl-C included, every process of the job has ended when this returns or raises.
    """
    job = uuid.uuid4().hex
    begin_s, begin_wall_s = time.monotonic(), time.time()
    # The job's output is kept in memory: it matters most when the disk is full.
    output = os.memfd_create("output")
    # The guardian sees the end of this process by the end of the pipe, however it ended.
    their_end, our_end = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                _guarded(command, environment, their_end, job, begin_wall_s),
                env=dict(environment) | {MARKER: job},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[their_end],
                start_new_session=True,  # a Ctrl-C reaches us alone; we then end the tree in order
            )
        finally:
            os.close(their_end)
        try:
            cause = _wait(process, begin_s, limits, progress, watch)
        finally:
            with _interrupts_deferred():
                _end_tree(process, job)
            if process.returncode != 0:
                remove_left(begin_wall_s)
            else:  # Open MPI's daemon may be killed because it does not exit
                temporary_files.remove_left(begin_wall_s)
        text = os.pread(output, 1 << 20, 0).decode(errors="replace")
    finally:
        os.close(our_end)
        os.close(output)
    status = process.returncode
    if cause is None and status != 0:
        cause = (watch and watch()) or explain(status, text)
    return Ended(status, cause, time.monotonic() - begin_s)


def _guarded(
    command: Sequence[str], environment: Mapping[str, str], their_end: int, job: str, since_s: float
) -> list[str]:
    """The command with the guardian before it, which ends the job if we are killed."""
    if shutil.which(command[0], path=environment.get("PATH", os.defpath)) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    remove = f"from earlybird.launch.process import remove_left; remove_left({since_s!r})"
    guardian = [sys.executable, "-I", "-S", str(_GUARDIAN), str(their_end), f"{MARKER}={job}", remove]
    return [*guardian, *command]


class Adopted:
    """The descendants of this process, also those that have lost their parent, and what they were seen to
    have: only that is removed after them, for others' jobs of this user have files of the same names."""

    def __init__(self) -> None:
        self._segments: set[str] = set()
        self._pids: set[int] = set()
        self._begin_s = time.time()

    def look(self) -> None:
        """Remember which descendants there are and which segments they have mapped."""
        with contextlib.suppress(psutil.Error, OSError):
            for process in psutil.Process().children(recursive=True):
                self._pids.add(process.pid)
                self._segments |= shared_memory.mapped_by(process.pid)

    def remove_left(self) -> None:
        """Do what the function `remove_left` does with what was seen, once nobody has it mapped or the time
        for that is over."""
        end_s = time.monotonic() + _GRACE_S
        while shared_memory.remove_left(self._begin_s, only=self._segments) and time.monotonic() < end_s:
            time.sleep(0.02)
        temporary_files.remove_left(self._begin_s, pids=self._pids)


@contextlib.contextmanager
def orphans_adopted() -> Iterator[Adopted]:
    """Be the parent, for the block, of what loses its parent among the processes that are started in it."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield Adopted()
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)


def remove_left(since_s: float) -> None:
    """Remove what a job that began at `since_s` (seconds of time.time) and was killed left in the memory and
    the temporary files of this machine."""
    shared_memory.remove_left(since_s)
    temporary_files.remove_left(since_s)


def _wait(process, begin_s: float, limits: Limits, progress, watch) -> str | None:
    last_count, last_growth_s, last_watch_s = progress(), begin_s, begin_s
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_POLL_S)
            return None
        now_s = time.monotonic()
        if watch is not None and now_s - last_watch_s > _WATCH_S:
            last_watch_s = now_s
            if (cause := watch()) is not None:
                return cause
        count = progress()
        if count != last_count:
            last_count, last_growth_s = count, now_s
        if now_s - begin_s > limits.time_limit_s:
            return f"it ran past its time limit of {limits.time_limit_s:g} s"
        # Also for mpiexecs that wait for ever: Intel MPI 2021.18 does when a rank is killed while MPI starts.
        if now_s - last_growth_s > limits.stall_limit_s:
            return f"no point was finished for {limits.stall_limit_s:g} s: {limits.stall_cause}"


@contextlib.contextmanager
def _interrupts_deferred():
    """Ctrl-C, SIGTERM and SIGHUP wait for the end of the block: a second Ctrl-C must not leave processes
    behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in every if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = [signal.signal(number, lambda number, frame: arrived.append(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
    if arrived:
        signal.raise_signal(arrived[0])


def _end_tree(process: subprocess.Popen, job: str) -> None:
    """Ask mpiexec to end (it takes remote ranks along), then kill what is left."""
    asked = process.poll() is None
    if asked:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_GRACE_S)
        if process.poll() is None:
            process.kill()
    # After success, daemons get some time to exit; otherwise there is no waiting.
    patience_s = time.monotonic() + (0 if asked or process.returncode != 0 else _GRACE_S)
    give_up_s = patience_s + _GRACE_S
    while (left := _processes_of(job)) and time.monotonic() < give_up_s:
        if time.monotonic() >= patience_s:
            for straggler in left:
                with contextlib.suppress(OSError):  # it has ended, or belongs to another user by now
                    os.kill(straggler.pid, signal.SIGKILL)
        time.sleep(0.02)
    process.wait()


def _processes_of(job: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARKER) == job and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
