"""Stand between earlybird and the launcher of a job, as a script, and end the job if earlybird is killed.

A signal of the kernel that its parent has died may reach a launcher before it listens, and does not reach
what it has started. This process adopts what loses its parent, so that it can end all of it.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 3.0  # for the launcher to end ranks on other nodes
_END_LIMIT_S = 10.0
_POLL_S = 0.02


def main(alive: int, mark: str, remove_left: str, command: list[str]) -> None:
    """Run `command` and end with its status; end the whole job when the pipe `alive` is closed.

    `mark` is in the environment of every process of the job; `remove_left` is Python code that is run after
    it, with the ids of its processes and the paths of the files that they had mapped as arguments.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.set_inheritable(alive, False)
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(awake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    if _is_closed(alive):
        return
    try:
        launcher = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")
    while (status := _reap(launcher)) is None:
        if asked:
            asked.clear()
            _ask(launcher)
        ready, _, _ = select.select([alive, awake], [], [])
        if alive in ready:
            seen = [text for pid in _left(mark) for text in (str(pid), *_mapped(pid))]
            _end(launcher, mark)
            os.execv(sys.executable, [sys.executable, "-P", "-c", remove_left, *dict.fromkeys(seen)])
        _drain(awake)
    _end_as(status)


def _is_closed(alive: int) -> bool:
    return bool(select.select([alive], [], [], 0)[0])


def _drain(awake: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(awake, 512):
            pass


def _reap(launcher: int) -> int | None:
    """Collect children that have ended; return how the launcher ended, None while it runs."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == launcher:
                status = ended[1]
    return status


def _ask(launcher: int) -> None:
    with contextlib.suppress(OSError):  # such as that of a setuid program
        os.kill(launcher, signal.SIGTERM)


def _end(launcher: int, mark: str) -> None:
    """Ask the launcher to end, then kill what is left of the job."""
    begin_s = time.monotonic()
    _ask(launcher)
    while _reap(launcher) is None and time.monotonic() < begin_s + _GRACE_S:
        time.sleep(_POLL_S)
    while (left := _left(mark)) and time.monotonic() < begin_s + _GRACE_S + _END_LIMIT_S:
        for pid in left:
            with contextlib.suppress(OSError):  # it has ended, or has become another user's
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)
        _reap(launcher)


def _left(mark: str) -> list[int]:
    """Return the processes of the job: descendants, including the adopted ones, and those that have the mark,
    as in the nodes of a virtual cluster."""
    states = {int(pid): _state_and_parent(pid) for pid in filter(str.isdecimal, os.listdir("/proc"))}
    ours = {os.getpid()}
    while more := {pid for pid, (_, parent) in states.items() if parent in ours} - ours:
        ours |= more
    return [
        pid for pid, (state, _) in states.items()
        if pid != os.getpid() and state not in ("", "Z") and (pid in ours or _has_mark(pid, mark))
    ]  # fmt: skip


def _mapped(pid: int) -> list[str]:
    """Return the paths of the shared memory that a process has mapped."""
    try:
        with open(f"/proc/{pid}/maps", errors="replace") as stream:
            return [line.split(maxsplit=5)[-1].strip() for line in stream if "/dev/shm/" in line]
    except OSError:
        return []


def _state_and_parent(pid: str) -> tuple[str, int]:
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as stream:
            state, parent = stream.read().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):  # it has ended
        return "", 0
    return state, int(parent)


def _has_mark(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return mark.encode() in stream.read().split(b"\0")
    except OSError:
        return False


def _end_as(status: int) -> None:
    """End this process with the launcher's `status`."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.set_wakeup_fd(-1)
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
