"""Runs a command with the recorder in its ranks, and names the functions that called the MPI."""

import contextlib
import math
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Protocol

import psutil

from earlybird.data.errors import InputError, WorkError
from earlybird.data.recording import Recording, load_recording, save_functions
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import parse_bytes, shortened, size_argument, whole_number
from earlybird.launch import shared_memory
from earlybird.launch.execution import cannot_run
from earlybird.launch.process import Seen, descendants, orphans_adopted
from earlybird.machine.symbols import function_names, source_lines

MAX_EVENTS = 10**8
EVENTS_SIZE = "1GiB"
_MIN_EVENTS_BYTES = 1 << 20
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_AWAITED = {*_PASSED_ON, signal.SIGCHLD}
# si_code of signals that a terminal sends, to the command as well.
_OF_KERNEL = 0x80
_GRACE_S = 3.0  # for a launcher to end its ranks


def event_variables(events: str, size: str | None) -> dict[str, str]:
    """Return the variables of the recorder that --events and --events-size imply."""
    if events == "all":
        num_bytes = parse_bytes(size if size is not None else EVENTS_SIZE, "--events-size")
        if num_bytes < _MIN_EVENTS_BYTES:
            raise InputError(
                f"--events-size is {size}; give at least {size_argument(_MIN_EVENTS_BYTES)} for the ranks "
                "of a node"
            )
        return {"EARLYBIRD_RECORD_EVENTS": "all", "EARLYBIRD_RECORD_EVENTS_BYTES": str(num_bytes)}
    if size is not None:
        raise InputError("--events-size is of `--events all`; give both, or the number of events alone")
    number = whole_number(events)
    if number is None or number > MAX_EVENTS:
        raise InputError(
            f"--events is {shortened(events)}; give how many to keep of each rank, at most {MAX_EVENTS}, or "
            "all"
        )
    return {"EARLYBIRD_RECORD_EVENTS": events}


def name_functions(recording: Recording, note: Callable[[str], None]) -> Recording:
    """Return the recording with the functions that call the MPI, if the program has not changed since it was
    recorded."""
    offsets: dict[str, set[int]] = defaultdict(set)
    for rank in recording.ranks.values():
        for phase in rank.phases.values():
            for step in phase.steps:
                offsets[step.module].add(step.offset)
        for site in (*rank.sites.values(), *(opened.site for opened in rank.open_calls if opened.site)):
            offsets[site.module].add(site.offset)
        for arrivals in rank.arrivals:
            offsets[arrivals.site.module].add(arrivals.site.offset)
    functions = {module: function_names(module, places) for module, places in offsets.items()}
    lines = {module: source_lines(module, places) for module, places in offsets.items()}
    if not any(functions.values()) and not any(lines.values()):
        return recording
    try:
        save_functions(recording.path, functions, lines)
    except (InputError, WorkError) as error:
        cause = str(error).partition(";")[0]
        note(
            f"warning: functions are not named: {cause}; when it can be written, run `earlybird record "
            f"--merge {path_argument(recording.path)}`"
        )
        return recording
    return load_recording(recording.path)


def has_signal() -> bool:
    """Return whether a signal has come that `run_recorded` awaits, such as the end of the command, while a
    watch looks."""
    return not signal.sigpending().isdisjoint(_AWAITED)


@contextlib.contextmanager
def signals_delayed() -> Iterator[None]:
    """Let signals to this process wait until the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Watch(Protocol):
    """Watches the ranks of a command.

    Attributes
    ----------
    next_look_s : when to look (seconds of time.monotonic).
    """

    next_look_s: float

    def look(self) -> bool:
        """Look at the ranks; return whether the command is to be ended, with status 1."""
        ...


class _NoWatch:
    next_look_s = math.inf

    def look(self) -> bool:
        return False


def run_recorded(
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    is_quiet: bool,
    watch: Watch | None = None,
) -> int:
    """Run the command and return its exit status, as a shell's if a signal ended it. Signals to this process
    reach the command; `watch` may end it."""
    # Ranks may outlive a launcher that is killed, and may end before anybody looks at them.
    with orphans_adopted() as seen, shared_memory.reports() as reports:
        if reports is not None:
            environment = environment | {"EARLYBIRD_RECORD_SHARED": str(reports)}
        status = _ended(program, arguments, environment, is_quiet, seen, watch or _NoWatch())
        if status:
            if reports is not None:
                seen.add_segments(shared_memory.reported_in(reports))
            seen.remove_left()
    return status if status >= 0 else 128 - status


def _ended(
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    is_quiet: bool,
    seen: Seen,
    watch: Watch,
) -> int:
    """Run the command and return its status, 1 if `watch` has ended it; `seen` records what it has in shared
    memory meanwhile."""
    kill_s = math.inf
    # What is ignored, as SIGHUP under nohup, the command ignores as well.
    passed_on = {number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN}
    awaited = {*passed_on, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        try:
            process = subprocess.Popen(
                arguments, executable=program, env=environment, stdout=sys.stderr if is_quiet else None,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )  # fmt: skip
        except OSError as error:
            raise cannot_run(program, error) from error
        while process.poll() is None:
            until_s = min(seen.next_look_s, watch.next_look_s, kill_s)
            came = signal.sigtimedwait(awaited, max(until_s - time.monotonic(), 0.0))
            is_passed_on = came is not None and came.si_signo in passed_on
            if is_passed_on or time.monotonic() >= seen.next_look_s:
                seen.look()
            if is_passed_on and came.si_code != _OF_KERNEL:
                with contextlib.suppress(OSError):  # such as that of a setuid program
                    process.send_signal(came.si_signo)
            if kill_s == math.inf and time.monotonic() >= watch.next_look_s and watch.look():
                with contextlib.suppress(OSError):
                    process.terminate()
                kill_s = time.monotonic() + _GRACE_S
            if time.monotonic() >= kill_s:
                _kill_all()
        # What came while a watch looked has reached the command, if it was meant for it, too.
        while signal.sigtimedwait(passed_on, 0) is not None:
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if kill_s == math.inf:
        return process.returncode
    _kill_all()
    return 1


def _kill_all() -> None:
    """Kill what the command has started, also ranks that are stopped."""
    for process in descendants():
        with contextlib.suppress(psutil.Error, OSError):
            process.kill()
