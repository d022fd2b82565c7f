"""A rank in a recording: its communicators, phases, and entries of calls and messages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

# The roles of entries: see native/recorder/recording/table.h.
CALL, SENT, RECEIVED, PUT, GOT, STARTED = range(6)
# The thread level with which several threads may be in the MPI at once.
CONCURRENT = "multiple"
# Peers that are no ranks.
NO_PEER, NULL_PEER, ANY_PEER, OUTSIDE_PEER = -1, -2, -3, -4


@dataclass(frozen=True)
class Communicator:
    """A communicator as it appears to one rank.

    Attributes
    ----------
    rank : rank of the process in it.
    members, remote_members : ranks of MPI_COMM_WORLD, in order; remote members only for an
        inter-communicator. Evenly spaced ranks are a range: each of 10,000 ranks has a communicator of
        10,000.
    topology : "none", "cart", "graph" or "dist_graph"; `dims` and `periods` describe a Cartesian topology.
    sources, destinations : neighbours in the order of the collectives, as ranks of MPI_COMM_WORLD.
    identity : the same number on all ranks of the communicator, and a different one for each of its
        duplicates; None if it is unknown, and if several communicators, created and freed one after another,
        are recorded as one.
    """

    name: str
    rank: int
    members: Sequence[int]
    remote_members: Sequence[int] = ()
    topology: str = "none"
    dims: tuple[int, ...] = ()
    periods: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    destinations: tuple[int, ...] = ()
    identity: int | None = None


@dataclass(frozen=True)
class Step:
    """A place in the program that calls the MPI.

    Attributes
    ----------
    module, offset : file of the program or library, and the distance of the place from its load address. For
        a place in a Python program, the module is the file and the offset is the line.
    function : function of the place, if the module names it.
    file, line : file and line of the source, if the module has debug information; else empty and 0.
    """

    call: str
    module: str
    offset: int
    function: str = ""
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The function, else the line of the source, else module and offset."""
        return self.function or self._source or f"{self.module.rpartition('/')[2]}+{self.offset:#x}"

    @property
    def place(self) -> str:
        """The function with the line of the source, if they are known: `main (halo.c:31)`."""
        return f"{self.function} ({self._source})" if self.function and self._source else self.name

    @property
    def _source(self) -> str:
        """Return file and line of the source; an empty text if they are unknown."""
        return f"{self.file.rpartition('/')[2]}:{self.line}" if self.line else ""


@dataclass(frozen=True)
class RankPhase:
    """Epochs of a rank with the same steps: see native/recorder/recording/epoch.h.

    Attributes
    ----------
    region : level set by MPI_Pcontrol during the phase; 1 without it.
    steps : steps in the order of the first epoch.
    epochs : number of epochs: of the thread that had most, if threads may call MPI at once
        (MPI_THREAD_MULTIPLE), else of all threads.
    time_s : time from the first to the last call of each epoch, summed over the same epochs: of the thread
        that spent most, or of all.
    first_s, last_s : beginning of the first epoch and end of the last one, since MPI_Init.
    """

    region: int
    steps: tuple[Step, ...]
    epochs: int
    time_s: float
    first_s: float
    last_s: float


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The times at which the threads of a parallel region reach its end, in regions of one place before the
    sends of one phase.

    Attributes
    ----------
    phase : number of the phase of this rank.
    site : the place that begins the region; its call is empty.
    regions : number of regions.
    lead_s : (T,) mean time, by thread of the team, from its arrival to the arrival of the last one.
    classes : number of arrivals whose lead is of class k: 0 ns, or 2**(k-1) to 2**k - 1 ns.
    """

    phase: int
    site: Step
    regions: int
    lead_s: np.ndarray
    classes: np.ndarray


@dataclass(frozen=True, eq=False)
class EpochSamples:
    """Samples of real epochs of one phase and thread.

    Attributes
    ----------
    epochs : int64 (S,), ascending indices of the sampled epochs, counted from 0 within the phase on this rank
        and thread. Ranks and threads with equally many epochs have the same samples; with more epochs a
        smaller share is kept, and these samples are also kept where there are fewer epochs.
    variant : int64 (S,), the index of each one's content in `variants`.
    variants : structured arrays with a row for every message and call of the epoch, in the order of the
        program: `call`, an index of the calls of the rank; `role`, `peer` and `communicator` as in its
        entries; `messages`; `bytes` of them together.
    is_complete : False if an epoch was too large or cut, or memory was short: then there are no samples.
    """

    epochs: np.ndarray
    variant: np.ndarray
    variants: tuple[np.ndarray, ...]
    is_complete: bool = True


@dataclass(frozen=True)
class OpenCall:
    """A call that a rank had not left when its recording ended, or when the call was last written.

    Attributes
    ----------
    call : name of the function.
    thread : number of the thread, as in the entries.
    site : place in the program; None if it is unknown.
    since_s : begin of the call, in seconds since MPI_Init.
    peer, tag : peer and tag of the message, if the call names one, else NO_PEER and -1.
    communicator : number of the communicator, 0 for none or unknown.
    seen_s : time when the call was written, in seconds since MPI_Init: the rank may have left it since. None:
        it was open when the rank ended.
    open_s : for how long it had been open when the rank ended; None if that is unknown.
    """

    call: str
    thread: int
    site: Step | None
    since_s: float
    peer: int = NO_PEER
    tag: int = -1
    communicator: int = 0
    seen_s: float | None = None
    open_s: float | None = None


@dataclass(frozen=True, eq=False)
class RankRecording:
    """The content of the file of a rank.

    Attributes
    ----------
    entries : structured array with a row for every distinct thread, phase, call, role, communicator, peer and
        size class; `call` is an index of `calls`, size class k > 0 holds sizes from 2**(k-1) to 2**k - 1
        bytes, phase 0 is none.
    phases : phases by the numbers in the entries.
    communicators : communicators by the numbers in the entries; 0 is none.
    end : "finalize", "exit", "abort", or None if the file does not say: the process was killed.
    run_s : time from MPI_Init to the last chunk.
    is_cut : whether the last chunk is incomplete or damaged and not counted.
    arrivals : arrivals of threads, if the program's OpenMP runtime reports them.
    boot : identity of the boot of the host; ranks with the same identity have the same clock. Empty if
        unknown.
    sites : places of the program by their address in this process, as in its trace.
    core_wait_s : time for which the thread that called MPI_Init was ready to run without a core, from
        MPI_Init to the end; None if unknown.
    ran_s : time for which it ran; None if unknown.
    joined_s : time for which it waited in recorded calls for other threads of its process.
    settings : variables of the environment that concern the MPI, OpenMP or this recorder.
    binding : cores on which the main thread may run; empty if unknown.
    load : load of the host at the beginning, over 1, 5 and 15 minutes; empty if unknown.
    begin_s : start of the recording, in seconds since 1970; 0.0 if unknown.
    calls : names of functions, without the `_c` of large counts, because those are the same functions.
    epoch_samples : samples by phase and thread; empty in recordings of former versions.
    open_calls : calls in which threads were when the rank ended without finalizing, the first thread's call
        first.
    is_damaged : whether the end is unknown and the data after the last counted chunk is not the beginning of
        a chunk, so that it was not left by a process that ended while it wrote, but was changed.
    """

    rank: int
    size: int
    host: str
    mpi: str
    thread_level: str
    calls: tuple[str, ...]
    entries: np.ndarray
    communicators: Mapping[int, Communicator]
    end: str | None
    run_s: float
    is_cut: bool
    phases: Mapping[int, RankPhase] = field(default_factory=dict)
    arrivals: tuple[Arrivals, ...] = ()
    boot: str = ""
    sites: Mapping[int, Step] = field(default_factory=dict)
    core_wait_s: float | None = None
    ran_s: float | None = None
    joined_s: float = 0.0
    settings: Mapping[str, str] = field(default_factory=dict)
    binding: tuple[int, ...] = ()
    load: tuple[float, ...] = ()
    begin_s: float = 0.0
    epoch_samples: Mapping[tuple[int, int], EpochSamples] = field(default_factory=dict)
    open_calls: tuple[OpenCall, ...] = ()
    is_damaged: bool = False

    @property
    def open_call(self) -> OpenCall | None:
        """Return the open call of the first thread that was in one."""
        return self.open_calls[0] if self.open_calls else None

    @property
    def open_time(self) -> Mapping[str, tuple[int, float]]:
        """Return how many calls of a function were open when the rank ended, and their time as far as it is
        known: the entries do not have it."""
        times: dict[str, tuple[int, float]] = {}
        for opened in self.open_calls:
            if opened.open_s is not None:
                num, time_s = times.get(opened.call, (0, 0.0))
                times[opened.call] = num + 1, time_s + opened.open_s
        return times

    @property
    def slept_s(self) -> float | None:
        """Return the least time between its calls for which the thread that called MPI_Init neither ran nor
        was ready to run, if it is known: it may have slept in its calls all the time. Recorded waits for
        other threads do not count, if a simulation knows them."""
        if self.ran_s is None or self.core_wait_s is None:
            return None
        is_own_call = (self.entries["role"] == CALL) & (self.entries["thread"] == 0)
        for number, name in enumerate(self.calls):
            if name.startswith("MPI_Init"):  # before the run
                is_own_call &= self.entries["call"] != number
        in_calls_s = 1e-9 * float(self.entries["time_ns"][is_own_call].sum())
        joined_s = self.joined_s if self.has_apart_threads else 0.0
        return max(self.run_s - self.ran_s - self.core_wait_s - in_calls_s - joined_s, 0.0)

    @cached_property
    def has_apart_threads(self) -> bool:
        """True if its threads run side by side; threads that take turns in the MPI are simulated as one."""
        if self.thread_level == CONCURRENT:
            return True
        threads: np.ndarray = self.entries["thread"]
        return not len(threads) or int(threads.min()) == int(threads.max())

    def entries_of(self, phases: Collection[int]) -> np.ndarray:
        """Return the entries of these phases."""
        parts = [self._by_phase[phase] for phase in phases if phase in self._by_phase]
        return np.concatenate(parts) if parts else self.entries[:0]

    @cached_property
    def _by_phase(self) -> Mapping[int, np.ndarray]:
        rows = self.entries[np.argsort(self.entries["phase"], kind="stable")]
        numbers, begins = np.unique(rows["phase"], return_index=True)
        return dict(zip(numbers.tolist(), np.split(rows, begins[1:]), strict=True)) if len(rows) else {}
