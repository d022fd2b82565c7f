"""The simulation of a recorded program: its run time as recorded and with changes, and what it consists
of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data import labels
from earlybird.data.recording import MIN_CORE_WAIT, MIN_SLEPT
from earlybird.data.schema import (
    OMIT_EMPTY,
    Count,
    Estimate,
    Extra,
    Natural,
    NotNegative,
    Rank,
    Ranks,
    Record,
    Share,
    decode,
)

SCHEMA = "earlybird.simulated-program/1"
# Of the run: a simulation as recorded that errs by more is not trusted.
MAX_ERROR = 0.10
# An efficiency above this leaves little to gain.
_GOOD = 0.95


@dataclass(frozen=True)
class Efficiency(Record):
    """The efficiencies of the POP project.

    Attributes
    ----------
    parallel : product of the others.
    load_balance : mean over ranks of the time that they compute, as a part of the longest.
    serialization : the longest time that a rank computes, as a part of the run on an ideal network.
    transfer : the run on an ideal network, as a part of the run.
    """

    parallel: Share
    load_balance: Share
    serialization: Share
    transfer: Share
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class CriticalShare(Record):
    """The part of the critical path on a rank at a call site.

    Attributes
    ----------
    rank : the rank.
    site : call and place in the program, `start` before the first call.
    computing_s : computing before the call.
    communicating_s : time in the call, and messages until it.
    """

    rank: Rank
    site: str
    computing_s: NotNegative
    communicating_s: NotNegative
    extra: Extra = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        return self.computing_s + self.communicating_s


@dataclass(frozen=True)
class PhaseOfRun(Record):
    """The time of all ranks at a call site.

    Attributes
    ----------
    site : place in the program, empty if unknown.
    call : the MPI call.
    computing_s : computing before the call.
    waiting_s : in the call, until the other ranks have done what it needs.
    transfer_s : the rest of the call.
    recorded_s : in the call as recorded, of all ranks.
    phases : numbers of the phases of the recording that have this site.
    """

    site: str
    call: str
    computing_s: NotNegative
    waiting_s: NotNegative
    transfer_s: NotNegative
    recorded_s: NotNegative | None = None
    phases: tuple[Count, ...] = field(default=(), metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        return self.computing_s + self.waiting_s + self.transfer_s


@dataclass(frozen=True)
class PhaseTotals(Record):
    """A phase of the recording: as recorded, and the sums over its call sites in the simulated run.

    Attributes
    ----------
    number : number in the recording.
    calls, functions : MPI calls, and the functions of the program that make them.
    epochs : number of epochs of a rank, in the whole run.
    recorded_s : recorded time of all ranks from the first to the last call of each epoch, in the whole run.
    in_mpi_s : recorded time in its calls, in the part of the run that is simulated.
    computing_s, waiting_s, transfer_s : as in a `PhaseOfRun`, of the sites that are in no earlier phase.
    """

    number: Count
    calls: tuple[str, ...]
    functions: tuple[str, ...]
    epochs: Count
    recorded_s: NotNegative
    in_mpi_s: NotNegative
    computing_s: NotNegative
    waiting_s: NotNegative
    transfer_s: NotNegative
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class Timeline(Record):
    """What a thread of a rank does over time, in parts of the run in which one state prevails.

    Attributes
    ----------
    rank, thread : the thread, threads of a rank from 0.
    begin_s : when each part begins; the last one ends with the run.
    state : state of each part: COMPUTING, WAITING, TRANSFER or, of a recorded run, IN_MPI; ENDED before the
        thread begins and after its end.
    """

    rank: Rank
    thread: Natural
    begin_s: tuple[NotNegative, ...]
    state: tuple[str, ...]
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class TimelineOfRun(Record):
    """The timelines of a run.

    Attributes
    ----------
    run : RECORDED, AS_RECORDED or CHANGED.
    run_s : its duration.
    threads : the timelines of its first threads.
    """

    run: str
    run_s: NotNegative
    threads: tuple[Timeline, ...]
    extra: Extra = field(default_factory=dict)


COMPUTING, WAITING, TRANSFER, IN_MPI, ENDED = "computing", "waiting", "transfer", "in MPI", "ended"
RECORDED, AS_RECORDED, CHANGED = "recorded", "simulated as recorded", "simulated with the changes"


@dataclass(frozen=True)
class WindowOfRun(Record):
    """A part of the simulated run.

    Attributes
    ----------
    begin_s, end_s : its ends.
    parallel : mean over threads of the time that they compute in it, as a part of it.
    load_balance : the mean as a part of the longest; 1 if none computes.
    """

    begin_s: NotNegative
    end_s: NotNegative
    parallel: Share
    load_balance: Share
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class TolerancePoint(Record):
    """The run with another latency or bandwidth of a level.

    Attributes
    ----------
    level : the level.
    latency_s : latency of the protocol with the most messages there.
    bandwidth_bytes_per_s : BW(1) of the protocol with the most bytes there.
    simulated_s : run time with these.
    growth : fraction by which the run is longer, of points that were searched for it; absent for others.
    parameter : `latency` or `bandwidth`, which of both differs from the profile.
    """

    level: str
    latency_s: NotNegative
    bandwidth_bytes_per_s: NotNegative
    simulated_s: NotNegative
    parameter: str = ""
    growth: NotNegative | None = field(default=None, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class IntervalPart(Record):
    """What one source of error makes of the interval of the simulated time.

    Attributes
    ----------
    source : what is not known.
    low, high : ends of the interval with this source alone, as parts of the simulated time.
    """

    source: str
    low: NotNegative
    high: NotNegative
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SimulatedProgram(Record):
    """The output of `earlybird predict program --json`.

    Times of the run are from the first MPI_Init that returns to the last MPI_Finalize that is entered.

    Attributes
    ----------
    recorded_s : run time as recorded.
    as_recorded_s : run time simulated as recorded.
    simulated_s : run time simulated with the changes; without any the same.
    interval_s : its 95 % interval, of the sources in `interval_parts`; without changes, less and plus the
        difference of the simulation as recorded; both ends the simulated time if the changes change nothing.
    changes : the changes, as given.
    efficiency : of the simulated run.
    critical_path : its parts, the longest first.
    phases : time by call site, most first.
    num_ranks, num_calls, num_messages : of the recording.
    profile_id : id of the profile.
    core_wait_share : of the recorded run in which ranks waited for cores; None: not known.
    notes : what to know about the numbers.
    slept_share : least part of the recorded run in which main threads slept between calls, which counts as
        computing.
    recording : folder of the recording.
    layout : where the ranks run in the simulation.
    window : the part of the run that is simulated; empty for the whole run.
    recorded_phases : the phases of the recording, the longest time first.
    timelines : of the recorded run, of its simulation, and of that with the changes.
    windows : efficiencies over time, of the simulated run.
    tolerance : the run with other latencies and bandwidths, with `--tolerance`.
    interval_parts : the sources of `interval_s`, the largest first; the squares of the logarithms of their
        ends add, and waiting for cores multiplies the sum.
    """

    schema: ClassVar[str] = SCHEMA

    recorded_s: NotNegative
    as_recorded_s: NotNegative
    simulated_s: NotNegative
    interval_s: tuple[NotNegative, NotNegative]
    changes: tuple[str, ...]
    efficiency: Efficiency
    critical_path: tuple[CriticalShare, ...]
    phases: tuple[PhaseOfRun, ...]
    num_ranks: Ranks
    num_calls: Natural = 0
    num_messages: Natural = 0
    profile_id: str = ""
    core_wait_share: Share | None = None
    notes: tuple[str, ...] = ()
    slept_share: Share = field(default=0.0, metadata=OMIT_EMPTY)
    recording: str = field(default="", metadata=OMIT_EMPTY)
    layout: str = field(default="", metadata=OMIT_EMPTY)
    window: str = field(default="", metadata=OMIT_EMPTY)
    recorded_phases: tuple[PhaseTotals, ...] = field(default=(), metadata=OMIT_EMPTY)
    timelines: tuple[TimelineOfRun, ...] = field(default=(), metadata=OMIT_EMPTY)
    windows: tuple[WindowOfRun, ...] = field(default=(), metadata=OMIT_EMPTY)
    tolerance: tuple[TolerancePoint, ...] = field(default=(), metadata=OMIT_EMPTY)
    interval_parts: tuple[IntervalPart, ...] = field(default=(), metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    @property
    def error(self) -> float:
        """The relative error of the simulation as recorded."""
        return self.as_recorded_s / self.recorded_s - 1 if self.recorded_s else 0.0

    @property
    def speed_up(self) -> Estimate | None:
        """The simulation as recorded over that with the changes; None if either takes no time."""
        if not self.as_recorded_s or not self.simulated_s:
            return None
        low_s, high_s = self.interval_s
        value = self.as_recorded_s / self.simulated_s
        most = self.as_recorded_s / low_s if low_s else math.inf
        return Estimate(value, self.as_recorded_s / max(high_s, self.simulated_s), max(most, value))

    @property
    def changes_nothing(self) -> bool:
        """Whether there are changes, and the run is the same with them."""
        same = (self.as_recorded_s, self.as_recorded_s)
        return bool(self.changes) and self.simulated_s == self.as_recorded_s and self.interval_s == same

    def remedy(self) -> str:
        """Return what to change first, by the lowest efficiency."""
        if abs(self.error) > MAX_ERROR:
            return (
                f"The simulation as recorded errs by more than {labels.percent(MAX_ERROR)}: do not rely on "
                "changes before that is explained."
            )
        if (self.core_wait_share or 0.0) >= MIN_CORE_WAIT:
            return (
                "What costs most is not known, since ranks waited for cores: give every rank a core and "
                "record again."
            )
        if self.slept_share >= MIN_SLEPT:
            return (
                "What costs most is not known, since main threads sleep for "
                f"{labels.percent(self.slept_share)} of the run or more: look first at what they wait for, "
                "such as condition variables of threads or files."
            )
        parts = self.efficiency
        if parts.parallel >= _GOOD:
            return "The ranks compute nearly all the time: make the computing faster."
        lowest = min(
            (parts.load_balance, "balance"), (parts.serialization, "order"), (parts.transfer, "transfer")
        )
        if lowest[1] == "balance":
            return (
                "Ranks compute unevenly, which costs most: distribute the work; `--balance all` shows what "
                "even work gains."
            )
        if lowest[1] == "order":
            longest = self.critical_path[0]
            return (
                "Ranks compute one after the other, which costs most: shorten or reorder what others wait "
                f"for, first what rank {longest.rank} computes before {longest.site}; --compute shows what "
                "that gains."
            )
        return (
            "Messages and calls cost most: fewer or earlier messages, or a faster network; --set and "
            "--progress show what the latter gain."
        )


def simulated_program_from_json(value: Mapping[str, Any], where: str = "the simulation") -> SimulatedProgram:
    return decode(value, SimulatedProgram, where, "make it again with `earlybird predict program --json`")
