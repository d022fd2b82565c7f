"""Recordings: calls, messages, matrices and communicators of each, and how they are called on the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from earlybird.analysis.balance import work_balance
from earlybird.analysis.calls import CallTimes, call_times
from earlybird.analysis.communicators import CommunicatorTotal, communicator_totals
from earlybird.analysis.matrix import Matrix, matrices
from earlybird.analysis.messages import Pair, SizeClass, by_size_class, heaviest_pairs
from earlybird.analysis.phase_names import distinctions
from earlybird.analysis.waits import Waits, traced, waits_of
from earlybird.data import labels
from earlybird.data.phases import Phase, ThreadArrivals, arrivals_before, find_phases
from earlybird.data.recording import PairTotals, Recording
from earlybird.data.shell_commands import command_text
from earlybird.data.units import format_seconds
from earlybird.present.material import Material

REST = "other calls"
_MOST_NAMES = 3


@dataclass(frozen=True, eq=False)
class Recorded:
    """One recording. `name` is that of its folder, `is_only` whether the report has no other, and `path` what
    a command takes."""

    recording: Recording
    name: str
    path: str
    is_only: bool

    @cached_property
    def calls(self) -> CallTimes:
        return call_times(self.recording)

    @cached_property
    def totals(self) -> PairTotals:
        return self.recording.sent()

    @cached_property
    def pairs(self) -> PairTotals:
        return self.totals.by_pair()

    @cached_property
    def heaviest(self) -> list[Pair]:
        return heaviest_pairs(self.pairs)

    @cached_property
    def sizes(self) -> list[SizeClass]:
        return by_size_class(self.totals)

    @cached_property
    def matrices(self) -> list[Matrix]:
        return matrices(self.recording, self.pairs)

    @cached_property
    def phases(self) -> list[Phase]:
        return find_phases(self.recording)

    @cached_property
    def distinctions(self) -> dict[int, str]:
        """What tells phases with the same calls in the same functions apart, by number."""
        return distinctions(self.recording, self.phases)

    def phase_name(self, phase: Phase) -> str:
        """`1: exchange, to rank +1 (Irecv, Isend, Waitall)`."""
        calls = [call.removeprefix("MPI_") for call in phase.calls]
        where = ", ".join(filter(None, (_first_names(phase.functions), self.distinctions[phase.number])))
        return f"{phase.number}: {where} ({_first_names(calls)})"

    @cached_property
    def arrivals(self) -> list[tuple[Phase, ThreadArrivals]]:
        """Of threads before the sends of each phase, the phase with most time first."""
        return [(phase, one) for phase in self.phases for one in arrivals_before(self.recording, phase)]

    @cached_property
    def waits(self) -> Waits | None:
        """From the traces of the ranks; None without any."""
        joined = traced(self.recording)
        return waits_of(self.recording, joined) if joined else None

    @cached_property
    def uneven_work(self) -> str:
        """What even work of the ranks could save, as a clause; "" if it is little or unknown."""
        balance = work_balance(self.recording)
        return balance.sentence(self.recording.run_s) if balance else ""

    @property
    def all_runs_s(self) -> float:
        """The time of the runs of all ranks together."""
        return sum(one.run_s for one in self.recording.ranks.values())

    @cached_property
    def communicators(self) -> list[CommunicatorTotal]:
        return communicator_totals(self.recording)

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(one.host for one in self.recording.ranks.values()))

    @property
    def choice(self) -> dict[str, str]:
        """The value of the selector of recordings, if there are several."""
        return {} if self.is_only else {"recording": self.name}

    @property
    def title(self) -> str:
        """`rec: 8 ranks on 2 nodes, 1.5 s, MPICH 5.0.2, command mpiexec -n 8 ./app`."""
        size, hosts = self.recording.size, len(self.hosts)
        first = next(iter(self.recording.ranks.values()), None)
        parts = [
            f"{labels.counted(size, 'rank')} on {labels.counted(hosts, 'node')}" if size else "no ranks",
            format_seconds(self.recording.run_s),
            " ".join(first.mpi.split(",")[0].replace("Version:", "").split()) if first else "",
            f"command {command_text(self.recording.command)}" if self.recording.command else "",
        ]
        return f"{self.name}: {', '.join(part for part in parts if part)}"

    def named(self, caption: str) -> str:
        """The caption of a table, with the name of the recording if there are several."""
        return caption if self.is_only else f"{caption}: {self.name}"


def recordings(material: Material) -> list[Recorded]:
    """Those of a report, in the order given."""
    only = len(material.recordings) == 1
    return [
        Recorded(
            one,
            material.name_of("recordings", k) or f"recording {k + 1}",
            material.path_of("recordings", k) or "rec",
            only,
        )
        for k, one in enumerate(material.recordings)
    ]


def main_calls(calls: CallTimes, most: int) -> tuple[list[int], list[int]]:
    """At most `most` calls with the most time in the run, and the others; a single other one is no rest."""
    chosen = [call for call in calls.in_run if calls.time_s[call].any()]
    return (chosen, []) if len(chosen) <= most + 1 else (chosen[:most], chosen[most:])


def _first_names(names: Sequence[str]) -> str:
    more = f" + {len(names) - _MOST_NAMES}" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def columns_of(num_ranks: int, most: int) -> Sequence[range]:
    """The places of all ranks in at most `most` blocks of equal size; the last may be smaller."""
    per_block = max(-(-num_ranks // most), 1)
    return [range(k, min(k + per_block, num_ranks)) for k in range(0, num_ranks, per_block)]


def ranks_text(first: int, last: int) -> str:
    """`rank 3`, or `ranks 3 to 7`."""
    return f"rank {first}" if first == last else f"ranks {first} to {last}"
