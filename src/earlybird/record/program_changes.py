"""The changes of a recorded program that advice simulates, besides those that the user names."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from earlybird.advise.collective import advise_collective
from earlybird.advise.pipelined import context_settings
from earlybird.data import labels
from earlybird.data.advice import MODEL
from earlybird.data.collective_algorithms import FAMILY_NAMES, family_of
from earlybird.data.errors import InputError
from earlybird.data.kernels import MSGRATE
from earlybird.data.layout import is_shape
from earlybird.data.levels import LEVELS
from earlybird.data.measure_commands import MESSAGES, launch_of, measure_command
from earlybird.data.methods import CONTEXTS
from earlybird.data.mpi_calls import OPERATIONS
from earlybird.data.phases import Phase
from earlybird.data.profile import Profile
from earlybird.data.recording import MIN_CORE_WAIT, Recording
from earlybird.data.shell_commands import quoted
from earlybird.models.program import Operation
from earlybird.predict.collective import measure_hint, sizes_around
from earlybird.record.collective_changes import (
    ChangedAlgorithm,
    algorithm_changes,
    measured_place,
    profile_at,
    reliability,
    selection_of,
)
from earlybird.record.measured_phase import MeasuredPhase, RecordedCollective
from earlybird.record.message_changes import aggregated
from earlybird.record.operations import NO_SITE, Operations
from earlybird.record.placement import Placement
from earlybird.record.simulation import (
    Change,
    aggregation_change,
    layout_change,
    partitions_change,
    profile_change,
)
from earlybird.record.sites import Site, sites_of_phase
from earlybird.record.thread_messages import thread_message_costs

# The kinds of changes, by the effort that they need: from a setting of the launch to a change of the program.
COLLECTIVE, LAYOUT, OTHER_MPI, AGGREGATION, PARTITIONS, EVEN_WORK = (
    "collective", "layout", "mpi", "aggregation", "partitions", "balance",
)  # fmt: skip
KINDS = (COLLECTIVE, LAYOUT, OTHER_MPI, AGGREGATION, PARTITIONS, EVEN_WORK)
ASSUMPTIONS = {
    LAYOUT: "computation takes the same time on the other layout",
    OTHER_MPI: "the two profiles are of the same machine; computation takes the same time",
    COLLECTIVE: "each call takes less by the ratio of the measured times of both algorithms, after those "
    "that it waits for have come",
    AGGREGATION: "the messages that a rank sends to another one from a call site, before it waits for "
    "others, are known before the first is sent; packing costs nothing",
    PARTITIONS: "what a rank computes before it sends fills equal partitions, all ready at once except the "
    "last; libearlybird sends while the threads compute",
    EVEN_WORK: "all ranks compute the mean before each call, each in proportion to what it did",
}


@dataclass(frozen=True)
class Candidate:
    """A change that advice simulates.

    Attributes
    ----------
    kind : one of KINDS.
    name : the changed setting, such as "4x1x2".
    action : the setting or change of the program.
    change : what is simulated.
    ends : the same at both ends of the interval of what it assumes, if that has one.
    basis : as in an `Alternative`.
    phases : numbers of the phases that it changes; empty for all.
    """

    kind: str
    name: str
    action: str
    change: Change
    ends: tuple[Change, ...] = ()
    basis: str = MODEL
    phases: tuple[int, ...] = ()


@dataclass
class Candidates:
    """Changes to simulate, with notes, and with what to do where a cause is only likely."""

    candidates: list[Candidate] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    causes: dict[str, None] = field(default_factory=dict)

    def note(self, text: str) -> None:
        self.notes[text] = None


def layout_candidates(places: Sequence[Placement]) -> list[Candidate]:
    return [
        Candidate(LAYOUT, to.layout.text, _placing(to), layout_change(to.layout, to.layout.text))
        for to in places
    ]


def _placing(place: Placement) -> str:
    """Return how to get this layout."""
    option = f" (--map-by {place.map_by} in most launchers)" if place.map_by != "core" else ""
    return f"place the ranks as {place.layout.text}{option}"


def mpi_candidates(profiles: dict[str, Profile]) -> list[Candidate]:
    return [
        Candidate(OTHER_MPI, name, f"use the MPI of {name}", profile_change(profile, name))
        for name, profile in profiles.items()
    ]


def aggregation_candidates(operations: Operations) -> list[Candidate]:
    """Return that messages are packed, if a rank sends several to another one from a call site."""
    before, after = len(operations.bytes), len(aggregated(operations).bytes)
    if after == before:
        return []
    action = (
        "pack the messages that a rank sends to another one before it waits for others into one: "
        f"{after} messages instead of {before}"
    )
    return [Candidate(AGGREGATION, f"{before} to {after} messages", action, aggregation_change())]


def partition_candidates(
    operations: Operations, partitions: int | None, noise_share: float | None, flavour: str
) -> list[Candidate]:
    """Return that messages are sent in partitions: as many as given, or as threads were seen to arrive; the
    last one is late as `partitions_change` says."""
    number = partitions or max(map(len, operations.leads_s.values()), default=0)
    if not number:
        return []
    action = (
        f"MPI_Psend_init with {labels.counted(number, 'partition')}, MPI_Pready for each when it is filled; "
        f"start the program with `earlybird exec --mpi {quoted(flavour)} -- mpiexec ...`"
    )
    change = partitions_change(number, noise_share, operations)
    name = change.text.removeprefix("--partitions ").replace(" with", " partitions with", 1)
    return [Candidate(PARTITIONS, name, action, change)]


def mismatch_note(recording: Recording, profile: Profile) -> str:
    """Return a note if the profile is of another MPI than the recording; else an empty text."""
    library = next((one.mpi for one in recording.ranks.values()), "")
    recorded, fitted = family_of({"library_version": library}), family_of(profile.context)
    if not recorded or not fitted or recorded == fitted:
        return ""
    command = measure_command(MESSAGES, {}, launch_of(recording, profile))
    return (
        f"the recording is of {FAMILY_NAMES[recorded]} and the profile of {FAMILY_NAMES[fitted]}: measure "
        f"with `{command}`, and fit again"
    )


def collective_candidates(
    recording: Recording, phases: Sequence[Phase], operations: Operations, profile: Profile, place: Placement
) -> Candidates:
    """Return other algorithms of the recorded collectives, as far as the profile has measured them.

    A setting changes all calls of an operation, so those with the same action are one change.
    """
    found = Candidates()
    by_action: dict[tuple[str, str], list[tuple[Phase, RecordedCollective, ChangedAlgorithm]]] = {}
    without_forms: dict[str, list[RecordedCollective]] = {}
    for phase in phases:
        for recorded in MeasuredPhase(recording, phase).collectives:
            if recorded.ranks != place.layout.num_ranks:
                found.note(
                    "collectives over a part of the ranks keep their recorded cost: profiles describe all "
                    "ranks of a layout"
                )
                continue
            if not any(form.operation == recorded.operation for form in profile.collectives):
                without_forms.setdefault(recorded.operation, []).append(recorded)
                continue
            for changed in _of_collective(recording, recorded, profile, place, found):
                by_action.setdefault((recorded.operation, changed.action), []).append(
                    (phase, recorded, changed)
                )
    for several in by_action.values():
        found.candidates.append(_collective_candidate(recording, operations, several))
    for operation, lacking in without_forms.items():
        found.note(_without_forms(recording, profile, place, operation, lacking))
    return found


def _of_collective(
    recording: Recording, recorded: RecordedCollective, profile: Profile, place: Placement, found: Candidates
) -> list[ChangedAlgorithm]:
    here = measured_place(profile, recorded.operation, place, recorded.ranks)
    known = profile_at(profile, recorded.operation, here)
    try:
        advice, _ = advise_collective(
            known, recorded.operation, recorded.ranks, recorded.size_bytes,
            layout=here.text, map_by=here.map_by, mpi_only=True, at_size_only=True,
        )  # fmt: skip
    except InputError as error:
        found.note(f"{recorded.operation} keeps its recorded cost: {error}")
        return []
    library = next((one.mpi for one in recording.ranks.values()), "")
    family = family_of({"library_version": library}) or family_of(profile.context)
    methods = [alternative.method for alternative in advice.ranked]
    selection = selection_of(recording, family, recorded.operation, methods, recorded.ranks)
    is_reliable = reliability(known, recorded.operation, here, recorded.ranks)
    algorithms = algorithm_changes(recorded, advice, selection, family, is_reliable)
    for text in (*algorithms.notes, *advice.notes):
        found.note(text)
    found.causes.update(dict.fromkeys(algorithms.causes))
    return algorithms.changes


def _collective_candidate(
    recording: Recording,
    operations: Operations,
    several: Sequence[tuple[Phase, RecordedCollective, ChangedAlgorithm]],
) -> Candidate:
    _, _, first = several[0]

    def change(end: int) -> Change:
        """Return the change with a value or an end of the speed-ups: 0, 1 or 2."""
        factor = np.ones(len(operations.sites))
        for phase, recorded, changed in several:
            here = _sites_of_calls(recording, phase, operations.sites, recorded.operation)
            factor[here] = 1 / tuple(changed.speed_up)[end]
        return collective_cost_change(operations, factor, first.name)

    return Candidate(
        COLLECTIVE, first.name, first.action, change(0), (change(1), change(2)), first.basis,
        tuple(sorted({phase.number for phase, _, _ in several})),
    )  # fmt: skip


def _sites_of_calls(recording: Recording, phase: Phase, sites: Sequence[Site], operation: str) -> np.ndarray:
    """Return whether each site is one of the phase at which this collective operation is called."""
    of_phase = sites_of_phase(recording, phase)
    return np.array([OPERATIONS.get(site[0]) == operation and site in of_phase for site in sites], bool)


def collective_cost_change(operations: Operations, factor: np.ndarray, text: str) -> Change:
    """Return the change by which collectives take `factor` of each site times as long, after those that they
    wait for have come."""
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    scale = np.ones(len(operations.operation))
    enters = enters[operations.site[enters] != NO_SITE]
    scale[enters] = factor[operations.site[enters]]
    return Change(text, lambda given: replace(given, compute_s=given.compute_s * scale))


def _without_forms(
    recording: Recording,
    profile: Profile,
    place: Placement,
    operation: str,
    recorded: Sequence[RecordedCollective],
) -> str:
    """Return that the algorithms of an operation are not known, with the command that measures them at the
    recorded sizes."""
    shape = place.text if is_shape(place.text) else None
    ranks = None if shape else recorded[0].ranks
    sizes = sizes_around(one.size_bytes for one in recorded)
    hint = measure_hint(operation, launch_of(recording, profile), ranks, shape, place.map_by, sizes)
    own_core = (
        "ranks shared cores, where this takes long and is noisy: measure with a core for each rank; "
    ) * ((recording.core_wait_share or 0.0) >= MIN_CORE_WAIT)
    return (
        f"other algorithms of {operation} are not compared: the profile has no forms of it; {own_core}{hint}"
    )


def communicator_notes(
    recording: Recording, phases: Sequence[Phase], profile: Profile, place: Placement
) -> list[str]:
    """Return what a communicator for each thread was measured to gain per message, where threads share one.

    It is not simulated: the recorded calls contain how long threads waited for each other inside the MPI.
    """
    notes = []
    for phase in phases:
        shared = MeasuredPhase(recording, phase).shared_communicator()
        if shared is None:
            continue
        pair = np.array([shared.rank]), np.array([shared.peer])
        level = LEVELS[int(place.layout.level(*pair)[0])]
        costs = thread_message_costs(profile, level, shared.threads, shared.size_bytes)
        several = f"{shared.threads} threads share a communicator in phase {phase.number}"
        if not costs:
            command = measure_command(
                MSGRATE.name, {"threads": shared.threads}, launch_of(recording, profile)
            )
            notes.append(
                f"{several}; to know what one for each gains, measure `{command}` where each thread has a "
                "core, and fit it with the other runs"
            )
        for cost in costs:
            action = "give every thread a communicator of its own (MPI_Comm_dup) for its messages"
            if cost.method == CONTEXTS:
                mpi = quoted(str(profile.context.get("flavour", "mpich")))
                action += f" and start the program with {' '.join(context_settings(mpi, shared.threads))}"
                action += " and the info key thread_id" * (mpi == "intel")
            notes.append(
                f"{several}, in which a message takes {cost.speed_up.value:.2f} times as long as with one "
                f"for each{' with contexts' * (cost.method == CONTEXTS)}, as measured; not simulated: "
                f"{action}"
            )
    return notes
