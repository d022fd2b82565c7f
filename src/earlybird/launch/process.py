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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from earlybird.launch import shared_memory, temporary_files
from earlybird.launch.guardian import PR_SET_CHILD_SUBREAPER
from earlybird.launch.job_output import explain

MARKER = "EARLYBIRD_JOB"  # in the environment of every process of a job, so that stragglers can be found
_POLL_S = 0.05
_WATCH_S = 1.0  # looking costs time on the cores that are measured
# When to look what processes have in shared memory, which takes some milliseconds: first, and at the least
# this often later. Segments are made in MPI_Init.
_FIRST_LOOK_S, _LAST_LOOK_S = 0.1, 60.0
_GRACE_S = 3.0
_END_LIMIT_S = 10.0  # of a command after SIGTERM
# Not code between fork and exec, which may deadlock, because checks launch pairs of nodes in threads.
_GUARDIAN = Path(__file__).with_name("guardian.py")

STALL_CAUSE = (
    "a rank hangs, died or was stopped, which one is not known, or a point takes longer than that: then give "
    "a larger --stall-limit"
)


@dataclass(frozen=True)
class Places:
    """The folders in which the processes of a machine or of a virtual node leave files, as seen from
    outside."""

    shared: Path = shared_memory.FOLDER
    temporary: Path = temporary_files.FOLDER
    processes: Path = Path("/proc")


MACHINE = Places()


@dataclass(frozen=True)
class Limits:
    """The time limits of a job: it is ended after `time_limit_s`, or if no point was completed for
    `stall_limit_s`, for which `stall_cause` names the possible causes."""

    time_limit_s: float
    stall_limit_s: float
    stall_cause: str = STALL_CAUSE


@dataclass(frozen=True)
class Ended:
    """The end of a command. `cause` is None on success, otherwise a description of the failure; `output` is
    what it printed, up to a limit."""

    exit_status: int
    cause: str | None
    duration_s: float
    output: str = ""


def run_tree(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    limits: Limits,
    progress: Callable[[], int | None],
    watch: Callable[[], str | None] | None = None,
    nodes: Sequence[Places] = (),
    reported_segments: Callable[[], Collection[str]] = tuple,
) -> Ended:
    """Run `command` until it ends, `limits` end it or `watch()` returns a cause to end it.

    `nodes` are virtual nodes on which the command also starts processes. `reported_segments()` returns the
    paths of shared memory that its processes have reported.

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
        seen = Seen(lambda: [*descendants(process.pid), *_processes_of(job)], nodes)
        try:
            cause = _wait(process, begin_s, limits, progress, watch, seen)
        finally:
            with _interrupts_deferred():
                seen.look()
                _end_tree(process, job)
            seen.add_segments(reported_segments())
            # Also after success: Open MPI's daemon may be killed because it does not exit.
            seen.remove_left(is_failed=process.returncode != 0)
        text = os.pread(output, 1 << 20, 0).decode(errors="replace")
    finally:
        os.close(our_end)
        os.close(output)
    status = process.returncode
    if cause is None and status != 0:
        cause = (watch and watch()) or explain(status, text)
    return Ended(status, cause, time.monotonic() - begin_s, text)


def _guarded(
    command: Sequence[str], environment: Mapping[str, str], their_end: int, job: str, since_s: float
) -> list[str]:
    """Return the command preceded by the guardian, which ends the job if this process is killed."""
    if shutil.which(command[0], path=environment.get("PATH", os.defpath)) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    remove = "import sys; from earlybird.launch.process import remove_left;"
    remove += f"remove_left({since_s!r}, sys.argv[1:])"
    guardian = [sys.executable, "-I", "-S", str(_GUARDIAN), str(their_end), f"{MARKER}={job}", remove]
    return [*guardian, *command]


class Seen:
    """The files and processes that a job was seen to have: only these are removed after it, because other
    jobs of this user have files of the same names.

    Attributes
    ----------
    next_look_s : when to look again (seconds of time.monotonic); looking costs time on the job's cores.
    """

    def __init__(self, processes: Callable[[], Iterable[psutil.Process]], nodes: Sequence[Places] = ()):
        """Observe the live processes of the job, which `processes` returns; some may be on virtual
        `nodes`."""
        self._processes, self._nodes = processes, nodes
        self._segments: set[str] = set()
        self._pids: set[int] = set()
        self._node_pids: set[int] = set()
        self._names: set[str] = set()
        self._begin_wall_s, self._begin_s = time.time(), time.monotonic()
        self._looked_s = self._begin_s
        self.next_look_s = self._begin_s + _FIRST_LOOK_S

    def look(self) -> None:
        """Record which processes exist and which segments they have mapped."""
        with contextlib.suppress(psutil.Error, OSError):
            for process in self._processes():
                self._pids.add(process.pid)
                self._node_pids.add(_innermost_id(process.pid))
                self._segments |= shared_memory.mapped_by(process.pid)
        self._looked_s = time.monotonic()
        self.next_look_s = self._looked_s + min(self._looked_s - self._begin_s, _LAST_LOOK_S)

    def add_segments(self, paths: Collection[str]) -> None:
        """Add the shared memory that processes of the job report: they may end before anybody looks."""
        self._segments.update(paths)

    def look_if_due(self) -> None:
        """Call `look` if it is time to do so, or if a process has made a segment."""
        names = shared_memory.names_made_since(self._begin_wall_s, MACHINE.shared)
        now_s = time.monotonic()
        # Other jobs make some, too, and must not keep this process looking.
        is_due = now_s >= self._looked_s + min((now_s - self._begin_s) / 10, 1.0)
        if now_s >= self.next_look_s or (is_due and not names <= self._names):
            self._names = names
            self.look()

    def remove_left(self, *, is_failed: bool = True) -> None:
        """Remove what was seen and belongs to no process any more; wait a limited time for segments that are
        still mapped. Keep the segments of a job that succeeded."""
        end_s = time.monotonic() + _GRACE_S
        for place in (MACHINE, *self._nodes):
            while (
                is_failed
                and shared_memory.remove_left(self._begin_wall_s, place.shared, only=self._segments)
                and time.monotonic() < end_s
            ):
                time.sleep(0.02)
            pids = self._pids if place is MACHINE else self._node_pids
            temporary_files.remove_left(self._begin_wall_s, place.temporary, place.processes, pids=pids)


def _innermost_id(pid: int) -> int:
    """Return the id of a process in its own namespace."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        return int(status.partition("\nNSpid:")[2].split("\n", 1)[0].split()[-1])
    return pid


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """Return the processes that `pid`, by default this process, has started, and what these have started."""
    return psutil.Process(pid).children(recursive=True)


@contextlib.contextmanager
def orphans_adopted() -> Iterator[Seen]:
    """Act as the parent, within the block, of started processes whose parent ends."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield Seen(descendants)
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)


def remove_left(since_s: float, seen: Sequence[str]) -> None:
    """Remove what a job that began at `since_s` (seconds of time.time) and was killed left on this machine,
    if it is in `seen`: the ids of its processes and the paths of its segments."""
    shared_memory.remove_left(since_s, MACHINE.shared, only={text for text in seen if text.startswith("/")})
    pids = {int(text) for text in seen if not text.startswith("/")}
    temporary_files.remove_left(since_s, MACHINE.temporary, pids=pids)


def _wait(process, begin_s: float, limits: Limits, progress, watch, seen: Seen) -> str | None:
    last_count, last_growth_s, last_watch_s = progress(), begin_s, begin_s
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_POLL_S)
            return None
        seen.look_if_due()
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
    """Defer Ctrl-C, SIGTERM and SIGHUP to the end of the block: a second Ctrl-C must not leave processes
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
    """Ask mpiexec to end (which also ends remote ranks), then kill what is left."""
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


def run_to_completion(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit status; Ctrl-C terminates it with SIGTERM, so that mpiexec ends its
    ranks."""
    begin_s = time.time()
    process = subprocess.Popen(arguments, env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        try:
            process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    finally:
        temporary_files.remove_left(begin_s, pids=[process.pid])
