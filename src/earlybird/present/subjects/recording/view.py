"""A recording with what is computed from it, and what it is called."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

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
from earlybird.data.work_balance import WorkBalance

if TYPE_CHECKING:  # the records of all inputs of reports would be imported by every `earlybird record`
    from earlybird.present.material import Material

_MAX_NAMES = 3  # of the calls or functions of a phase


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording in a report.

    Attributes
    ----------
    name : the name of its folder.
    path : the path for commands.
    is_only : whether there is no other one next to it.
    """

    recording: Recording
    name: str
    path: str
    is_only: bool = True

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
    def one_sided(self) -> list[Pair]:
        """The data that MPI_Put, MPI_Get and similar functions moved, the pair with most bytes first."""
        return heaviest_pairs(self.recording.one_sided().by_pair())

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
    def sent_in_phase(self) -> dict[int, tuple[int, int]]:
        """The messages and bytes of each phase, by number."""
        sent = {phase.number: phase.sent(self.recording) for phase in self.phases}
        return {k: (int(pairs.messages.sum()), int(pairs.bytes.sum())) for k, pairs in sent.items()}

    @cached_property
    def distinctions(self) -> dict[int, str]:
        """The texts that distinguish phases with the same calls in the same functions, by number."""
        return distinctions(self.recording, self.phases)

    def place_of(self, phase: Phase) -> str:
        """Return the functions of a phase, and the text that distinguishes it: `exchange, to rank +1`."""
        return ", ".join(filter(None, (first_names(phase.functions), self.distinctions[phase.number])))

    def phase_name(self, phase: Phase) -> str:
        """Return `1: exchange, to rank +1 (Irecv, Isend, Waitall)`."""
        return f"{phase.number}: {self.place_of(phase)} ({first_names(phase.calls)})"

    @cached_property
    def arrivals(self) -> list[tuple[Phase, ThreadArrivals]]:
        """The arrivals of threads before the sends of each phase, the phase with most time first."""
        return [
            (phase, arrivals) for phase in self.phases for arrivals in arrivals_before(self.recording, phase)
        ]

    @cached_property
    def waits(self) -> Waits | None:
        """The waits in the traces of the ranks; None without any."""
        joined = traced(self.recording)
        return waits_of(self.recording, joined) if joined else None

    @cached_property
    def balance(self) -> WorkBalance | None:
        return work_balance(self.recording)

    @property
    def uneven_work(self) -> str:
        """The time that balanced work of the ranks could save, as a clause; "" if it is small or unknown."""
        return self.balance.sentence(self.recording.run_s) if self.balance else ""

    @property
    def uneven_work_remedy(self) -> str:
        """What to do about uneven work."""
        return self.balance.action() if self.balance else ""

    @property
    def all_runs_s(self) -> float:
        """The time of the runs of all ranks together."""
        return sum(rank.run_s for rank in self.recording.ranks.values())

    @cached_property
    def communicators(self) -> list[CommunicatorTotal]:
        return communicator_totals(self.recording)

    @property
    def mpi(self) -> str:
        """`MPICH 5.0.2`; "" without ranks."""
        first = next(iter(self.recording.ranks.values()), None)
        return " ".join(first.mpi.split(",")[0].replace("Version:", "").split()) if first else ""

    @property
    def choice(self) -> dict[str, str]:
        """The value of the selector of recordings, if there are several."""
        return {} if self.is_only else {"recording": self.name}

    @property
    def title(self) -> str:
        """`rec: 8 of 8 ranks on 2 nodes, 1.5 s, MPICH 5.0.2, command mpiexec -n 8 ./app`."""
        ranks, command = self.recording.ranks, self.recording.command
        count = f"{len(ranks)} of {labels.counted(self.recording.size, 'rank')}"
        if not ranks:
            return f"{self.name}: {count}"
        nodes = labels.counted(len({rank.host for rank in ranks.values()}), "node")
        named = [f"command {command_text(command)}"] if command else []
        run = [f"{count} on {nodes}", format_seconds(self.recording.run_s), self.mpi, *named]
        return f"{self.name}: {', '.join(run)}"

    def named(self, caption: str) -> str:
        """Return the caption of a table, with the name of the recording if there are several."""
        return caption if self.is_only else f"{caption}: {self.name}"


def recordings(material: "Material") -> list[Recorded]:
    """Return the recordings of a report, in the order given."""
    return [
        Recorded(
            recording,
            material.name_of("recordings", k) or f"recording {k + 1}",
            material.path_of("recordings", k) or "rec",
            len(material.recordings) == 1,
        )
        for k, recording in enumerate(material.recordings)
    ]


def first_names(names: Sequence[str]) -> str:
    """Return the first of the calls or functions of a phase, and how many more there are."""
    more = f" + {len(names) - _MAX_NAMES}" if len(names) > _MAX_NAMES else ""
    return ", ".join(name.removeprefix("MPI_") for name in names[:_MAX_NAMES]) + more
