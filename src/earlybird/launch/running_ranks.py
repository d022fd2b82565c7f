"""Looks at the ranks of a recording that is being made, by the pages that they keep, without their help."""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from earlybird.data.node_pages import load_node_pages
from earlybird.data.rank_file import PlaceNames, RankOutline, load_outline
from earlybird.data.rank_states import ENDED, FINALIZED, RUNS, STOPPED, UNSEEN, RankState
from earlybird.data.recorded_page import (
    BEGIN_BYTES,
    CALLS_BYTES,
    PAGE_BYTES,
    Copy,
    Page,
    PageOwner,
    note_time,
    owner_in,
    progress_in,
    read_page,
)
from earlybird.data.unsettled_channels import unsettled_channels
from earlybird.launch.other_nodes import OtherNodes, RemotePage, files_of_agents
from earlybird.machine.symbols import function_names, source_lines

_SHARED_MEMORY = Path("/dev/shm")
# Between two copies of the pages: what has not changed was so on all ranks at the same time.
LOOK_S = 0.25
_PAGE_NAME = re.compile(r"rank-([0-9]{1,9})(?:\.job-([0-9]{1,9}))?\.open")


def shared_pages(recording: Path) -> list[Path]:
    """Return the folders of pages whose recording is on a file system that takes none, one for each namespace
    of processes: see native/recorder/recording/page.h."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(recording.resolve()):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return [
        folder
        for folder in sorted(_SHARED_MEMORY.glob(f"earlybird-{os.geteuid()}-{value:016x}-*"))
        if _is_own(folder)
    ]


def _is_own(folder: Path) -> bool:
    """Return whether a folder is there and nobody else has made it."""
    try:
        return folder.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def remove_shared_pages(recording: Path) -> None:
    """Remove what killed ranks of this node, and the agents of all nodes, leave."""
    for folder in shared_pages(recording):
        shutil.rmtree(folder, ignore_errors=True)
    for path in files_of_agents(recording, are_all=True):
        with contextlib.suppress(OSError):
            path.unlink()


def recorder_variables(recording: Path) -> dict[str, str]:
    """Return the variables by which ranks know their recording, and whether this process sees their processes
    (see native/recorder/recording/write.c). Empty ones end what an `exec --stuck` or `exec --synchronous`
    around this command has set."""
    node = f"{_own_boot()}:{_own_namespace()}" if _own_boot() else ""
    return {
        "EARLYBIRD_RECORD": str(recording.resolve()),
        "EARLYBIRD_RECORD_NODE": node,
        "EARLYBIRD_RECORD_PAGES": "",
        "EARLYBIRD_RECORD_SYNCHRONOUS": "",
    }


def remove_stale_pages() -> None:
    """Remove what killed ranks of earlier jobs of this user have left in shared memory: pages of which the
    process has ended, in folders that have no others."""
    for folder in _SHARED_MEMORY.glob(f"earlybird-{os.geteuid()}-*"):
        with contextlib.suppress(OSError, ValueError, LookupError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            pages = list(folder.iterdir())
            if pages and all(process_state(owner_in(_begin_of(path))) == ENDED for path in pages):
                for path in pages:
                    path.unlink()
                folder.rmdir()


def _local_pages(recording: Path) -> dict[str, Path]:
    """Return the pages of this node by name."""
    pages = {}
    for folder in (recording, *shared_pages(recording)):
        with contextlib.suppress(OSError):
            for entry in sorted(folder.iterdir()):
                if _PAGE_NAME.fullmatch(entry.name):
                    with contextlib.suppress(OSError):
                        if entry.stat(follow_symlinks=False).st_size >= PAGE_BYTES:
                            pages[entry.name] = entry
    return pages


def _by_rank(names: Iterable[str]) -> tuple[str, dict[int, str]]:
    """Return the suffix of files of the latest job that has any pages, if the command has run several; and
    its pages by rank."""
    by_job: dict[int, dict[int, str]] = {}
    for name in names:
        named = _PAGE_NAME.fullmatch(name)
        if named:
            by_job.setdefault(int(named[2] or 0), {})[int(named[1])] = name
    if not by_job:
        return "", {}
    job = max(by_job)
    return f"job-{job}." if job else "", by_job[job]


def _copies(paths: Mapping[str, Path], read: Callable[[Path], Copy]) -> dict[str, Copy]:
    copies = {}
    for name, path in paths.items():
        with contextlib.suppress(OSError):
            copies[name] = read(path)
    return copies


def _begin_of(path: Path) -> bytes:
    with path.open("rb", buffering=0) as stream:
        return stream.read(BEGIN_BYTES) or b""


def progress_of(recording: Path) -> dict[tuple[str, str], int]:
    """Return a number for each page that can be seen, which grows as its rank gets on, and note the time in
    those of this node. Pages of ranks that have ended keep theirs, also those of earlier jobs."""
    progress = {}
    for name, path in _local_pages(recording).items():
        with contextlib.suppress(OSError), path.open("r+b", buffering=0) as stream:
            number = progress_in(stream.read(CALLS_BYTES) or b"")
            if number is not None:
                progress["", name] = number
                if path.stat().st_size >= PAGE_BYTES:  # else it is a copy of the calls
                    note_time(stream, time.monotonic_ns())
    for path in files_of_agents(recording):
        node = load_node_pages(path)
        for name, page in node.pages.items() if node is not None else ():
            number = progress_in(page.begin(CALLS_BYTES))
            if number is not None:
                progress[path.name, name] = number
    return progress


class _Owners:
    """The processes that write a recording, by its files: nodes may have pages of earlier ones."""

    def __init__(self, recording: Path):
        self._recording = recording
        self._outlines: dict[str, tuple[int, RankOutline | None]] = {}

    def have(self, name: str, begin: Copy, *, is_local: bool) -> bool:
        """Return whether the page of this name is that of the process which writes the file of the rank;
        `is_local`: on this machine."""
        outline = self.outline(name)
        if outline is None or (is_local and outline.boot and _own_boot() not in ("", outline.boot)):
            return False
        with contextlib.suppress(ValueError):
            return outline.pid in (0, owner_in(begin).pid)
        return False

    def has_finalized(self, name: str) -> bool:
        """Return whether the file of the rank says so: its page, which a killed agent may have left,
        is of no use."""
        outline = self.outline(name)
        return outline is not None and outline.end == "finalize"

    def outline(self, name: str) -> RankOutline | None:
        """Return what the file of the rank of a page says of the rank now; ranks may add places to it."""
        path = _file_of(self._recording, name)
        try:
            size = path.stat().st_size if _PAGE_NAME.fullmatch(name) else -1
        except OSError:
            size = -1
        known = self._outlines.get(name)
        if known is None or known[0] != size:
            known = self._outlines[name] = size, load_outline(path) if size >= 0 else None
        return known[1]


def look(
    recording: Path,
    *,
    is_over: bool = False,
    places: "Places | None" = None,
    is_urgent: Callable[[], bool] = lambda: False,
) -> dict[int, RankState]:
    """Return the states of all ranks of a recording; those that cannot be seen from here are UNSEEN. Empty if
    no rank has left MPI_Init.

    `is_over`: the job has ended; the states are those of its last moment. `places`: those that earlier looks
    have looked up. Raise LookGivenUp if something else `is_urgent` while it waits for other nodes.
    """
    owners = _Owners(recording)
    first = {
        name: data
        for name, data in _copies(_local_pages(recording), _begin_of).items()
        if owners.have(name, data, is_local=True)
    }
    before = {} if is_over else {name: _tasks_of(data) for name, data in first.items()}
    nodes = OtherNodes(
        recording,
        lambda name, page: (
            name not in first
            and owners.have(name, page.begin(BEGIN_BYTES), is_local=False)
            and not (is_over and owners.has_finalized(name))
        ),
    )
    if not is_over:
        time.sleep(LOOK_S)
    # A page that was removed meanwhile is that of a rank that has ended.
    local = {name: path for name, path in _local_pages(recording).items() if name in first}
    second = _copies(local, read_page)
    # At once: what follows may take seconds, in which a program ends.
    now_s = time.monotonic()
    seen: dict[str, _SeenRank] = {}
    for name, data in second.items():
        with contextlib.suppress(ValueError):
            page = Page(first[name], data)
            state = RUNS if is_over else _state_now(recording, name, page.owner)
            seen[name] = _SeenRank(page, now_s, state, _waiting_tasks(page, before.get(name)))
    for name, remote in nodes.again(is_over=is_over, is_urgent=is_urgent).items():
        with contextlib.suppress(ValueError):
            seen[name] = _SeenRank.of_other_node(remote, is_over)
    suffix, by_rank = _by_rank(seen)
    size = max((seen[name].page.owner.size for name in by_rank.values()), default=0)
    states = {}
    places = places or Places()
    there = {
        rank: seen[name]
        for rank, name in by_rank.items()
        if seen[name].state != UNSEEN and seen[name].page.owner.rank == rank < size
    }
    channels = unsettled_channels({rank: one.page for rank, one in there.items()})
    for rank in range(size):
        name = f"rank-{rank}.{suffix}open"
        one = there.get(rank)
        outline = owners.outline(name) if one is not None else load_outline(_file_of(recording, name))
        if one is None or outline is None:
            states[rank] = _without_page(rank, outline)
            continue
        states[rank] = one.page.state(
            one.now_s, outline.calls, places.of(outline), one.tasks.idle, channels[rank], state=one.state,
            host=outline.host, is_concurrent=one.page.is_concurrent, has_other_threads=one.tasks.has_others,
            may_wake=one.tasks.may_wake,
        )  # fmt: skip
    return states


def _file_of(recording: Path, page: str) -> Path:
    """Return the file of the rank that has a page of this name."""
    return (recording / page).with_suffix(".ebr")


@dataclass(frozen=True)
class _SeenRank:
    """A rank whose page is known: at `now_s` of its node, its process was in `state`."""

    page: Page
    now_s: float
    state: str
    tasks: "_Tasks"

    @classmethod
    def of_other_node(cls, remote: RemotePage, is_over: bool) -> "_SeenRank":
        """Raise ValueError if the page is of another version."""
        page = Page(remote.first.begin(BEGIN_BYTES), remote.second.data)
        state = remote.second.state if remote.is_reached else UNSEEN
        if is_over and state != UNSEEN:
            state = RUNS
        # Whether others wait for each other cannot be seen from here.
        has_others = page.is_concurrent and remote.second.num_threads > page.num_threads
        return cls(page, remote.now_s, state, _Tasks(has_others=has_others))


def _without_page(rank: int, outline: RankOutline | None) -> RankState:
    """Return the state of a rank of which nobody knows any more what it has sent, received and entered."""
    state, host = UNSEEN, ""
    if outline is not None:
        state, host = {"finalize": FINALIZED, None: UNSEEN}.get(outline.end, ENDED), outline.host
    return RankState(rank, state, host, counts_all=False, knows_communicators=False)


def _state_now(recording: Path, name: str, owner: PageOwner) -> str:
    """Return the state of the process of a page; FINALIZED if it has removed the page meanwhile."""
    state = process_state(owner)
    if state == ENDED and name not in _local_pages(recording):
        return FINALIZED
    return state


# Functions of the kernel in which a thread waits for another one of its process, or, as those of the MPI do,
# for an event from outside.
_WAITS_FOR_THREAD = ("futex", "__futex")
_WAITS_FOR_EVENT = (*_WAITS_FOR_THREAD, "ep_poll", "do_epoll", "poll_schedule", "do_poll", "do_sys_poll",
                    "do_select")  # fmt: skip


@dataclass(frozen=True)
class _Tasks:
    """Threads of the process of a page.

    Attributes
    ----------
    idle : threads that wait for others of their process, and used no processor between two looks.
    has_others : whether threads that have no place in the page may call the MPI.
    may_wake : whether another thread that waits may go on by itself.
    """

    idle: frozenset[int] = frozenset()
    has_others: bool = False
    may_wake: bool = False


def _tasks_of(begin: Copy) -> dict[int, int] | None:
    """Return the time that each thread of a process has used, if several may call the MPI; None if that does
    not matter or is not known."""
    with contextlib.suppress(ValueError):
        owner = owner_in(begin)
        if owner.is_concurrent and owner.pid_namespace == _own_namespace():
            return _processor_times(owner.pid)
    return None


def _processor_times(pid: int) -> dict[int, int] | None:
    """Return the nanoseconds that each thread has used; None if that cannot be seen."""
    times = {}
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                times[int(task.name)] = int((task / "schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return times


def _waiting_tasks(page: Page, before: dict[int, int] | None) -> _Tasks:
    """Return which threads of a process wait for others. `before`: the time that each had used at the first
    look."""
    if not page.is_concurrent:
        return _Tasks()
    after = _processor_times(page.owner.pid) if before is not None else None
    if before is None or after is None:
        return _Tasks(has_others=True)
    calm = [task for task, time_ns in after.items() if before.get(task) == time_ns]
    functions = {task: _waits_in(page.owner.pid, task) for task in calm}
    idle = {task for task, function in functions.items() if function.startswith(_WAITS_FOR_THREAD)}
    harmless = {task for task, function in functions.items() if function.startswith(_WAITS_FOR_EVENT)}
    may_wake = any(_may_wake(page, task, is_for_thread=task in idle) for task in harmless - page.tasks_inside)
    return _Tasks(frozenset(idle), bool(after.keys() - page.tasks - harmless), may_wake)


# The argument that has the time limit of a call of the kernel, and what it is without one: a pointer or a
# number of milliseconds.
_NO_POINTER, _NO_TIMEOUT = 0, 0xFFFFFFFF
_TIME_LIMITS = {
    "x86_64": {202: (3, _NO_POINTER), 232: (3, _NO_TIMEOUT), 281: (3, _NO_TIMEOUT), 441: (3, _NO_POINTER),
               7: (2, _NO_TIMEOUT), 271: (2, _NO_POINTER), 23: (4, _NO_POINTER), 270: (4, _NO_POINTER)},
    "aarch64": {98: (3, _NO_POINTER), 22: (3, _NO_TIMEOUT), 441: (3, _NO_POINTER), 73: (2, _NO_POINTER),
                72: (4, _NO_POINTER)},
}  # fmt: skip


def _may_wake(page: Page, task: int, *, is_for_thread: bool) -> bool:
    """Return whether a thread that waits may go on without another one of its process: it has a time limit,
    or waits for events. Those that MPI_Init has started to wait for events are the MPI's."""
    if is_for_thread:
        return _has_time_limit(page.owner.pid, task)
    return not _is_of_init(page, task)


def _has_time_limit(pid: int, task: int) -> bool:
    """Return whether the call of the kernel that a thread waits in has a time limit; true if it is not
    known."""
    try:
        number, *arguments = Path(f"/proc/{pid}/task/{task}/syscall").read_text().split()
        place, without = _TIME_LIMITS[os.uname().machine][int(number)]
        value = int(arguments[place], 16)
    except (OSError, ValueError, LookupError):
        return True
    return (value & _NO_TIMEOUT if without else value) != without


def _is_of_init(page: Page, task: int) -> bool:
    """Return whether a thread was there before its process left MPI_Init."""
    try:
        fields = Path(f"/proc/{page.owner.pid}/task/{task}/stat").read_text(errors="replace")
        started_s = int(fields.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, LookupError):
        return False
    return started_s <= page.began_s + time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


def _waits_in(pid: int, task: int) -> str:
    """Return the function of the kernel in which a thread waits; empty if it is not known."""
    try:
        return Path(f"/proc/{pid}/task/{task}/wchan").read_text()
    except OSError:
        return ""


class Places:
    """Texts of places in the program, each looked up once."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], str] = {}

    def of(self, outline: RankOutline) -> Callable[[int, str], str]:
        """Return a function that returns the text of a place by its address in the process."""
        return lambda address, call: self._text(outline, address, call)

    def _text(self, outline: RankOutline, address: int, call: str) -> str:
        step = outline.step_at(address, call, PlaceNames())
        if step is None:
            return ""
        if step.line:
            return step.place
        key = (step.module, step.offset)
        if key not in self._texts:
            functions = {step.module: _as_keys(function_names(step.module, [step.offset]))}
            lines = {step.module: _as_keys(source_lines(step.module, [step.offset]))}
            named = outline.step_at(address, call, PlaceNames(functions, lines))
            self._texts[key] = named.place if named is not None else ""
        return self._texts[key]


def _as_keys(by_offset: Mapping) -> dict:
    return {str(offset): value for offset, value in by_offset.items()}


def process_state(owner: PageOwner) -> str:
    """Return whether the process of a page RUNS, is STOPPED or has ENDED; RUNS if it cannot be known."""
    is_own = owner.pid_namespace != 0 and owner.pid_namespace == _own_namespace()
    pid = owner.pid if is_own else _outer_id(owner)
    if pid is None:
        return RUNS  # processes of other namespaces need not be visible
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return ENDED if is_own else RUNS
    except OSError:
        return RUNS
    letter, started = fields[0], int(fields[19])
    if letter in "ZX" or (owner.started and started != owner.started):
        return ENDED
    return STOPPED if letter in "Tt" else RUNS


@cache
def _own_boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@cache
def _own_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _outer_id(owner: PageOwner) -> int | None:
    """Return the id in this namespace of a process of another one; None if it is not seen."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            if (entry / "ns" / "pid").stat().st_ino != owner.pid_namespace:
                continue
            status = (entry / "status").read_text(errors="replace")
            ids = status.partition("\nNSpid:")[2].split("\n", 1)[0].split()
            if int(ids[-1]) == owner.pid:
                return int(entry.name)
    return None
