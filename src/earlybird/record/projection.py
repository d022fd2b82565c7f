"""Project what changes would save in the phases of a recorded program (paper 002 section V, made general)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from earlybird.advise.collective import advise_collective
from earlybird.advise.pipelined import context_settings
from earlybird.analysis.balance import outside_mpi_s, work_balance
from earlybird.analysis.gaps import lost_parts
from earlybird.data import labels
from earlybird.data.advice import EXTRAPOLATED
from earlybird.data.collective_algorithms import DEFAULT, FAMILY_NAMES, family_of
from earlybird.data.errors import InputError
from earlybird.data.kernels import MSGRATE
from earlybird.data.layout import Layout, is_shape, parse_layout
from earlybird.data.levels import LEVELS, MAPPINGS
from earlybird.data.measure_commands import MESSAGES, launch_of, measure_command
from earlybird.data.methods import CONTEXTS
from earlybird.data.phases import arrivals_before, find_phases
from earlybird.data.profile import Profile
from earlybird.data.projection import (
    AGGREGATION,
    COLLECTIVE,
    COMMUNICATORS,
    LAYOUT,
    OF_RUN,
    OTHER_MPI,
    PARTITIONS,
    ProjectedChange,
    ProjectedPhase,
    Projection,
    RunChange,
    WorkBalance,
    is_bound,
    is_unknown,
)
from earlybird.data.recording import MIN_CORE_WAIT, Recording
from earlybird.data.schema import Estimate
from earlybird.data.shell_commands import path_argument, quoted
from earlybird.data.units import format_bytes, format_seconds
from earlybird.predict import ChosenModel, choose_model
from earlybird.predict.collective import measure_hint, sizes_around
from earlybird.predict.exchange import used_levels
from earlybird.record.collective_changes import (
    algorithm_changes,
    measured_place,
    profile_at,
    reliability,
    selection_of,
)
from earlybird.record.costs import (
    MODEL_ERROR,
    MOVED_ERROR,
    Communication,
    Cost,
    Placement,
    attempt,
    changed_collective_s,
    changed_exchange_s,
    collective_cost,
    early_cost,
    exchange_cost,
    packed_exchange_s,
    sped_up_messages_s,
    sum_of_savings,
)
from earlybird.record.measured_phase import MeasuredPhase, PhaseExchange, RecordedCollective
from earlybird.record.thread_messages import thread_message_costs

# Phases that take less of the run are left out.
_MIN_SHARE = 0.01
# Of the run: less waiting is not worth a note.
_MIN_WAITING = 0.05
# Messages of fewer bytes have no parts worth sending early.
_MIN_PARTITIONED_BYTES = 1024
# Of a phase: what remains in any case, where ranks wait for cores.
_MIN_LEFT = 0.01
# A model that predicts more than this many times what was recorded is of another machine or layout.
_DISAGREEMENT = 1.5

# The delay that paper 002 assumes of one thread.
NOISE_SHARE = 0.04

ASSUMPTIONS = {
    LAYOUT: "computation takes the same time on the other layout",
    AGGREGATION: "all messages of a pair are known before the first one is sent; packing costs nothing",
    COLLECTIVE: "ranks arrive at the collective as recorded",
    OTHER_MPI: "the two profiles are of the same machine; computation takes the same time",
    COMMUNICATORS: "a message of a thread costs what `measure msgrate` measured; no thread receives messages "
    "that were sent for another one",
    PARTITIONS: "each message is filled in equal partitions, one of which is ready later than the others by "
    "the delay named; libearlybird sends while threads compute",
}


@dataclass(frozen=True)
class EarlySending:
    """The way in which partitions of the program's messages would become ready.

    Attributes
    ----------
    partitions : number for every message; None: as many as threads arrived before the sends.
    delay_s : delay of the last partition after the others; None: as recorded, otherwise by `noise_share`.
    noise_share : the delay as a share of the computation of an epoch; None: NOISE_SHARE, if no arrivals were
        recorded.
    """

    partitions: int | None = None
    delay_s: float | None = None
    noise_share: float | None = None


@dataclass(frozen=True)
class Changes:
    """The changes to project, besides aggregation and collective algorithms.

    Attributes
    ----------
    placements : other layouts.
    profiles : profiles of other MPIs, by name.
    """

    placements: Sequence[Placement] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    early: EarlySending = EarlySending()


def recorded_place(recording: Recording) -> Placement:
    """Return the layout of the recording: its hosts in the order of their first ranks, with one socket each.

    Raises InputError if a rank is missing: its host is unknown.
    """
    if recording.missing or not recording.ranks:
        raise InputError(
            f"{len(recording.missing)} ranks left no file, so their nodes are unknown; give --layout"
        )
    hosts = [recording.ranks[rank].host for rank in range(recording.size)]
    number = {host: k for k, host in enumerate(dict.fromkeys(hosts))}
    node = np.array([number[host] for host in hosts], dtype=np.int64)
    num_nodes = len(number)
    for map_by in ("core", "node") if recording.size % num_nodes == 0 else ():
        text = f"{num_nodes}x1x{recording.size // num_nodes}"
        if np.array_equal(parse_layout(text, map_by).node, node):
            return Placement(parse_layout(text, map_by), text, map_by)
    text = f"{labels.counted(num_nodes, 'host')} as recorded"
    return Placement(Layout(node, np.zeros_like(node), text), text)


def other_mappings(place: Placement) -> list[Placement]:
    """Return the same nodes filled in other orders, if they differ."""
    try:
        places = [Placement(parse_layout(place.text, one), place.text, one) for one in MAPPINGS]
    except InputError:  # a file, or a layout that has no text
        return []
    return _distinct([place, *places])[1:]


def _distinct(places: Sequence[Placement]) -> list[Placement]:
    distinct: list[Placement] = []
    for one in places:
        if not any(_is_same(one.layout, other.layout) for other in distinct):
            distinct.append(one)
    return distinct


def project(
    recording: Recording,
    profile: Profile,
    place: Placement,
    changes: Changes,
    only_phase: int | None = None,
) -> Projection:
    """Return the saving of each of `changes`, aggregation and other collective algorithms in each phase.

    Phases that take less than 1 % of the run are omitted, unless `only_phase` names one. Raises InputError if
    the layout has another number of ranks, or if there is no such phase.
    """
    for one in (place, *changes.placements):
        if one.layout.num_ranks != recording.size:
            raise InputError(
                f"the recording has {recording.size} ranks and the layout {one.text} has "
                f"{one.layout.num_ranks}; give a layout of {recording.size} ranks"
            )
    phases = find_phases(recording)
    if only_phase is not None and only_phase not in [phase.number for phase in phases]:
        raise InputError(
            f"the recording has phases 1 to {len(phases)}, --phase is {only_phase}; give one of them"
        )
    measured = [MeasuredPhase(recording, phase) for phase in phases]
    measured = [one for one in measured if one.epochs and one.time_s > 0]
    kept = [
        one
        for one in measured
        if (
            one.time_s >= _MIN_SHARE * recording.run_s
            if only_phase is None
            else one.phase.number == only_phase
        )
    ]
    changes = replace(changes, placements=_distinct(changes.placements))
    projector = _Projector(recording, profile, place, changes)
    projected = [projector.project(one) for one in kept]
    assumed = {change.kind for one in projected for change in one.changes}
    assumptions = {kind: text for kind, text in ASSUMPTIONS.items() if kind in assumed}
    balance = work_balance(recording)
    whole = Projection(
        str(recording.path), recording.size, recording.run_s, place.layout.text, profile.id,
        tuple(projected), assumptions,
        (*projector.notes(projected), *_left_out(projected, measured, only_phase)), balance,
        projector.causes(balance, projected), is_cut=_is_cut(recording),
    )  # fmt: skip
    return replace(
        whole,
        # Sums over phases need the estimates of each, also where these alone say nothing.
        changes_of_run=tuple(map(projector.stated_of_run, whole.run_changes())),
        phases=tuple(map(projector.stated, whole.phases)),
    )


def _left_out(
    projected: Sequence[ProjectedPhase], measured: Sequence[MeasuredPhase], only_phase: int | None
) -> list[str]:
    """Return where to look if nothing is projected for the phases that take most of the run."""
    if only_phase is not None or any(phase.changes for phase in projected):
        return []
    numbers = {phase.number for phase in projected}
    small = [one.phase.number for one in measured if one.phase.number not in numbers and one.has_messages]
    if not small:
        return []
    return [
        f"phases of less than {100 * _MIN_SHARE:g} % of the run are left out; `--phase {small[0]}` "
        "projects one that sends messages"
    ]


def _is_cut(recording: Recording) -> bool:
    return bool(recording.missing or recording.ended_early)


class _Projector:
    def __init__(self, recording: Recording, profile: Profile, place: Placement, changes: Changes):
        self.recording, self.profile, self.place, self.changes = recording, profile, place, changes
        self._core_wait_share = recording.core_wait_share or 0.0
        library = next((one.mpi for one in recording.ranks.values()), "")
        self._recorded_mpi = family_of({"library_version": library})
        self._remarks: dict[str, None] = {}
        self._without_forms: dict[str, list[RecordedCollective]] = {}
        self._causes: dict[str, None] = {}
        self._launch = launch_of(recording, profile)
        self._undescribed: dict[float, str] = {}

    def causes(self, balance: WorkBalance | None, phases: Sequence[ProjectedPhase]) -> tuple[str, ...]:
        """Return what costs time and is no change, or what prevents it from being known, after all `phases`
        are projected. Uneven work explains time in the MPI that no model describes."""
        causes = list(self._causes)
        if _is_cut(self.recording) and all(phase.model_s is None for phase in phases):
            causes.append("record the program again, until all ranks have ended and left a whole file")
        if balance and balance.is_uneven(self.recording.run_s):
            return tuple(causes)
        if self._core_wait_share >= MIN_CORE_WAIT and balance is None and self.recording.size > 1:
            causes.append(
                "give every rank a core and record again: whether the ranks compute alike is not known, "
                f"since they waited for a core in {labels.percent(self._core_wait_share)} of the run"
            )
        elif self._undescribed:
            causes.append(self._undescribed[max(self._undescribed)])
        return tuple(causes)

    def stated(self, phase: ProjectedPhase) -> ProjectedPhase:
        """Return the phase without uninformative estimates, with the reason in their place."""
        return replace(phase, changes=tuple(self._stated(phase, one) for one in phase.changes))

    def _stated(self, phase: ProjectedPhase, change: ProjectedChange) -> ProjectedChange:
        assert change.speed_up is not None and change.run_speed_up is not None
        of_phase, of_run = is_unknown(change.speed_up), is_unknown(change.run_speed_up)
        reason = ""
        if of_phase or of_run or is_bound(change.speed_up) or is_bound(change.run_speed_up):
            reason = _reason(change.speed_up if of_phase or not of_run else change.run_speed_up,
                             self._why_uncertain(phase))  # fmt: skip
        return replace(
            change,
            time_s=None if of_phase else change.time_s,
            speed_up=None if of_phase else change.speed_up,
            run_speed_up=None if of_run else change.run_speed_up,
            reason=reason,
        )

    def stated_of_run(self, change: RunChange) -> RunChange:
        """Return a change of all phases without an uninformative estimate, with the reason in its place."""
        speed_up = change.run_speed_up
        if speed_up is None or not (is_unknown(speed_up) or is_bound(speed_up)):
            return change
        reason = _reason(speed_up, self._why_uncertain())
        return replace(change, run_speed_up=None if is_unknown(speed_up) else speed_up, reason=reason)

    def _why_uncertain(self, phase: ProjectedPhase | None = None) -> str:
        if self._core_wait_share >= MIN_CORE_WAIT:
            return f"ranks waited for a core in {labels.percent(self._core_wait_share)} of the run"
        if phase is not None and phase.model_s is not None and phase.model_s < phase.mpi_s / 2:
            return (
                f"the models describe {format_seconds(phase.model_s)} of the {format_seconds(phase.mpi_s)} "
                "in the MPI"
            )
        return "the profile and the models are not certain enough"

    def notes(self, phases: Sequence[ProjectedPhase]) -> Iterator[str]:
        recorded, fitted = self._recorded_mpi, family_of(self.profile.context)
        if recorded and fitted and recorded != fitted:
            yield (
                f"the recording is of {FAMILY_NAMES[recorded]} and the profile of {FAMILY_NAMES[fitted]}: "
                f"measure with `{measure_command(MESSAGES, {}, self._launch)}`, and fit again"
            )
        yield from lost_parts(self.recording)
        yield from self._remarks
        yield from self._lacking_forms()
        changes = [change for phase in phases for change in phase.changes]
        if self._core_wait_share >= MIN_CORE_WAIT:
            share = labels.percent(self._core_wait_share)
            yield (
                f"ranks waited for a core in {share} of the run: what another layout or MPI gains is hardly "
                "known; give every rank a core and record again"
            )
        if len(changes) > 1:
            yield "changes of one phase overlap or exclude each other: do not add their gains"

    def project(self, measured: MeasuredPhase) -> ProjectedPhase:
        phase = measured.phase
        notes: list[str] = []
        exchange, model_s = self._exchange(measured, notes), 0.0
        now = None
        if exchange is not None:
            chosen = self._chosen_model(exchange)
            how = Communication(self.place, self.profile, chosen.name)
            now = attempt(lambda: exchange_cost(exchange, how), notes)
            model_s += measured.epochs * now.value_s if now else 0.0
        changes: list[ProjectedChange] = []
        if now is not None:
            changes += self._of_exchange(measured, how, now, notes)
        changes += self._of_threads(measured)
        for one in measured.collectives:
            cost, found = self._of_collective(measured, one, notes)
            model_s += one.calls * cost.value_s if cost else 0.0
            changes += found
        if model_s > _DISAGREEMENT * measured.most_communication_s:
            notes.append(
                f"the models predict {format_seconds(model_s)} for this phase and "
                f"{format_seconds(measured.most_communication_s)} were recorded "
                f"{'of it' if measured.polls else 'inside the MPI'}: the profile or layout "
                f"is not that of the recording{self._or_shared_cores()}; predictions are scaled"
            )
        elif measured.polls and changes and model_s > measured.mpi_s:
            notes.append(
                "ranks wait by MPI_Test in this phase, so time between calls may be waiting or computation; "
                "intervals contain both"
            )
        elif self._is_mostly_undescribed(measured, model_s):
            notes.append(
                f"the models predict {format_seconds(model_s)} of the {format_seconds(measured.mpi_s)} in "
                f"the MPI; the rest is waiting for other ranks or undescribed; {self._who_waits()}"
            )
            rest_s = measured.mpi_s - model_s
            self._undescribed[rest_s] = (
                f"find out what ranks do in the {format_seconds(rest_s)} of phase {measured.phase.number} in "
                f"the MPI that no model describes: {self._who_waits()}"
            )
        changes = [self._with_core_wait(measured, one) for one in self._joined(measured, changes)]
        return ProjectedPhase(
            phase.number, tuple(phase.calls), tuple(phase.functions), measured.epochs, measured.time_s,
            measured.mpi_s, model_s if model_s > 0 else None,
            tuple(sorted(changes, key=_time_s)),
            tuple(dict.fromkeys(notes)),
            model=chosen.name if now else "", model_reason=chosen.reason if now else "",
        )  # fmt: skip

    def _chosen_model(self, exchange: PhaseExchange) -> ChosenModel:
        layouts = [self.place.layout]
        levels = {level for pattern in exchange.patterns for level in used_levels(pattern, layouts)}
        return choose_model(levels, self.profile)

    def _or_shared_cores(self) -> str:
        return ", or ranks shared cores in another way" * (self._core_wait_share >= MIN_CORE_WAIT)

    def _is_mostly_undescribed(self, measured: MeasuredPhase, model_s: float) -> bool:
        """Return whether most of the time in the MPI is outside the predicted communication."""
        rest_s = measured.mpi_s - model_s
        return 0 < model_s < rest_s and rest_s >= _MIN_WAITING * self.recording.run_s

    def _who_waits(self) -> str:
        """Return how to see which rank waits."""
        if any(self.recording.path.glob("*.trace")):
            return f"`earlybird show {path_argument(self.recording.path)}` says where ranks wait for whom"
        return "record with `--events 10000` to see where ranks wait for whom"

    def _exchange(self, measured: MeasuredPhase, notes: list[str]) -> PhaseExchange | None:
        try:
            return measured.exchange
        except InputError as error:
            notes.append(f"its messages are not projected: {error}")
            return None

    def _joined(self, measured: MeasuredPhase, changes: Sequence[ProjectedChange]) -> list[ProjectedChange]:
        """Return the changes joined: a layout or an MPI changes the exchange and the collectives of a phase,
        so their savings add up."""
        alike: dict[tuple[str, str], list[ProjectedChange]] = {}
        for change in changes:
            alike.setdefault((change.kind, change.change), []).append(change)
        return [
            parts[0]
            if len(parts) == 1
            else replace(
                self._change(
                    measured,
                    kind,
                    name,
                    parts[0].action,
                    sum_of_savings(measured, [one.time_s for one in parts if one.time_s]),
                ),
                basis=EXTRAPOLATED if any(one.basis == EXTRAPOLATED for one in parts) else parts[0].basis,
            )
            for (kind, name), parts in alike.items()
        ]

    def _with_core_wait(self, measured: MeasuredPhase, change: ProjectedChange) -> ProjectedChange:
        """Return the change with the effect of shared cores. The time inside the MPI is then the scheduler's:
        a rank that polls has the core that another rank needs. Another layout or MPI may end all of it, or
        double the waiting for cores; fewer messages, or those of another algorithm, may end it."""
        share = self._core_wait_share
        if change.kind not in (*OF_RUN, AGGREGATION, COLLECTIVE) or share < MIN_CORE_WAIT:
            return change
        assert change.time_s is not None
        value_s, low_s, high_s = change.time_s
        outside_s = measured.least_s
        if change.kind == AGGREGATION:  # what is still sent remains
            low_s -= share * min(outside_s, low_s)
        else:
            low_s = (1 - share) * min(low_s, outside_s)
        time_s = Estimate(
            value_s,
            min(value_s, max(low_s, _MIN_LEFT * measured.time_s)),
            (1 + share) * high_s if change.kind in OF_RUN else high_s,
        )
        return replace(
            self._change(measured, change.kind, change.change, change.action, time_s), basis=change.basis
        )

    def _of_exchange(
        self, measured: MeasuredPhase, how: Communication, now: Cost, notes: list[str]
    ) -> Iterator[ProjectedChange]:
        exchange = measured.exchange
        assert exchange is not None

        def change(kind: str, name: str, action: str, compute) -> Iterator[ProjectedChange]:
            cost = attempt(compute, notes)
            if cost is not None:
                error = MOVED_ERROR if kind in OF_RUN else MODEL_ERROR
                time_s = (
                    packed_exchange_s(measured, now, cost)
                    if kind == AGGREGATION
                    else changed_exchange_s(measured, now, cost, error)
                )
                yield self._change(measured, kind, name, action, time_s)

        for place in self.changes.placements:
            yield from change(
                LAYOUT, place.layout.text, _placing(place),
                lambda place=place: exchange_cost(exchange, replace(how, place=place)),
            )  # fmt: skip
        for name, profile in self.changes.profiles.items():
            yield from change(
                OTHER_MPI, name, f"use the MPI of {name}",
                lambda profile=profile: exchange_cost(exchange, replace(how, profile=profile)),
            )  # fmt: skip
        combined = measured.combined_exchange
        if combined is not None:
            before, after = (f"{one.num_messages:.4g}" for one in (exchange, combined))
            yield from change(
                AGGREGATION, f"{before} to {after} messages",
                f"pack the messages of an epoch to each receiver into one: {after} messages instead of "
                f"{before}, of {format_bytes(combined.mean_bytes)} in the mean",
                lambda: exchange_cost(combined, how),
            )  # fmt: skip
        if (found := self._partitions(measured)) is not None:
            partitions, delay_s, source = found
            mpi = quoted(str(self.profile.context.get("flavour", "mpich")))
            yield from change(
                PARTITIONS, f"{partitions} partitions, delay {format_seconds(delay_s)} {source}",
                f"MPI_Psend_init with {labels.counted(partitions, 'partition')}, MPI_Pready for each "
                f"when it is filled; start the program with `earlybird exec --mpi {mpi} -- mpiexec ...`",
                lambda: early_cost(exchange, how, partitions, delay_s),
            )  # fmt: skip

    def _of_threads(self, measured: MeasuredPhase) -> Iterator[ProjectedChange]:
        """Yield a communicator for each thread, if threads share one (the remedy of the MPICH article)."""
        shared = measured.shared_communicator()
        if shared is None:
            return
        pair = np.array([shared.rank]), np.array([shared.peer])
        level = LEVELS[int(self.place.layout.level(*pair)[0])]
        costs = thread_message_costs(self.profile, level, shared.threads, shared.size_bytes)
        if not costs:
            command = measure_command(MSGRATE.name, {"threads": shared.threads}, self._launch)
            self._remarks[
                f"{shared.threads} threads share a communicator in phase {measured.phase.number}; to project "
                f"one for each, measure `{command}` where each thread has a core, and fit it with the other "
                "runs"
            ] = None
        for cost in costs:
            time_s = sped_up_messages_s(measured, cost, shared.messages)
            name = f"a communicator for each of {shared.threads} threads"
            action = "give every thread a communicator of its own (MPI_Comm_dup) for its messages"
            if cost.method == CONTEXTS:
                name += ", with contexts"
                mpi = quoted(str(self.profile.context.get("flavour", "mpich")))
                action += f"; start the program with {' '.join(context_settings(mpi, shared.threads))}"
                if mpi == "intel":
                    action += " and give each communicator the info key thread_id"
            change = self._change(measured, COMMUNICATORS, name, action, time_s)
            yield replace(change, basis=cost.basis)

    def _partitions(self, measured: MeasuredPhase) -> tuple[int, float, str] | None:
        """Return partitions, their delay and its source; None if nothing is known about them."""
        if measured.mean_sent_bytes < _MIN_PARTITIONED_BYTES:
            return None
        early = self.changes.early
        arrivals = next(iter(arrivals_before(self.recording, measured.phase)), None)
        partitions = early.partitions or (arrivals.threads if arrivals else None)
        if partitions is None:
            if early.delay_s is not None or early.noise_share is not None:
                self._remarks[
                    "the number of partitions is unknown, as no arrivals of threads were recorded; add "
                    "--partitions"
                ] = None
            return None
        if early.delay_s is not None:
            return partitions, early.delay_s, "given"
        if early.noise_share is None and arrivals is not None:
            # A region before some of the epochs delays only these.
            share = min(1.0, arrivals.regions / max(sum(measured.phase.epochs_of.values()), 1))
            return partitions, share * arrivals.mean_lead_s, "recorded"
        share = NOISE_SHARE if early.noise_share is None else early.noise_share
        delay_s = share * float(np.median(outside_mpi_s(self.recording))) / measured.epochs
        return partitions, delay_s, f"by {labels.percent(share)} noise"

    def _lacking_forms(self) -> Iterator[str]:
        """Yield a remark for each operation without forms, with the command that measures it at the sizes of
        all phases."""
        shape = self.place.text if is_shape(self.place.text) else None
        own_core = (
            "ranks shared cores, where this takes long and is noisy: measure with a core for each rank; "
        ) * (self._core_wait_share >= MIN_CORE_WAIT)
        for operation, recorded in self._without_forms.items():
            ranks = None if shape else recorded[0].ranks
            sizes = sizes_around(one.size_bytes for one in recorded)
            hint = measure_hint(operation, self._launch, ranks, shape, self.place.map_by, sizes)
            yield f"{operation} is not projected: the profile has no forms of it; {own_core}{hint}"

    def _of_collective(
        self, measured: MeasuredPhase, one: RecordedCollective, notes: list[str]
    ) -> tuple[Cost | None, list[ProjectedChange]]:
        """Return the predicted cost of the default, and changes."""
        if one.ranks != self.place.layout.num_ranks:
            self._remarks[
                "collectives over a part of the ranks are left out: profiles describe all ranks of a layout"
            ] = None
            return None, []
        here = measured_place(self.profile, one.operation, self.place, one.ranks)
        profile = profile_at(self.profile, one.operation, here)
        try:
            advice, _ = advise_collective(
                profile, one.operation, one.ranks, one.size_bytes,
                layout=here.text, map_by=here.map_by, mpi_only=True, at_size_only=True,
            )  # fmt: skip
        except InputError as error:
            cause = str(error)
            if not any(form.operation == one.operation for form in self.profile.collectives):
                self._without_forms.setdefault(one.operation, []).append(one)
                return None, []
            self._remarks[f"{one.operation} is not projected: {cause}"] = None
            return None, []
        family = self._recorded_mpi or family_of(self.profile.context)
        methods = [alternative.method for alternative in advice.ranked]
        selection = selection_of(self.recording, family, one.operation, methods, one.ranks)
        is_reliable = reliability(profile, one.operation, here, one.ranks)
        algorithms = algorithm_changes(measured, one, advice, selection, family, is_reliable)
        notes += [*algorithms.notes, *advice.notes]
        self._causes.update(dict.fromkeys(algorithms.causes))
        changes = [
            replace(
                self._change(measured, COLLECTIVE, other.name, other.action, other.time_s), basis=other.basis
            )
            for other in algorithms.changes
        ]

        def cost_of(place: Placement, profile: Profile, method: str = DEFAULT) -> Cost | None:
            there = measured_place(profile, one.operation, place, one.ranks)
            known = profile_at(profile, one.operation, there)
            return attempt(lambda: collective_cost(one, there, known, method), notes)

        if selection.is_forced and selection.method is None:
            return None, changes  # nothing is known of what was recorded
        now = cost_of(self.place, self.profile, selection.method or DEFAULT)
        if now is None:
            return None, changes
        others = [
            *(
                (LAYOUT, to.layout.text, _placing(to), cost_of(to, self.profile))
                for to in self.changes.placements
            ),
            *(
                (OTHER_MPI, name, f"use the MPI of {name}", cost_of(self.place, to))
                for name, to in self.changes.profiles.items()
            ),
        ]
        for kind, name, action, cost in others:
            if cost is not None:
                time_s = changed_collective_s(measured, one, now, cost)
                changes.append(self._change(measured, kind, name, action, time_s))
        return now, changes

    def _change(
        self, measured: MeasuredPhase, kind: str, name: str, action: str, time_s: Estimate
    ) -> ProjectedChange:
        def speed_up(whole_s: float) -> Estimate:
            """Return the speed-up over a time that contains that of the phase."""
            ratios = [whole_s / max(whole_s - measured.time_s + one, 1e-12) for one in time_s]
            return Estimate(ratios[0], ratios[2], ratios[1])

        whole_s = max(self.recording.run_s, measured.time_s)
        return ProjectedChange(kind, name, action, time_s, speed_up(measured.time_s), speed_up(whole_s))


def _time_s(change: ProjectedChange) -> float:
    return math.inf if change.time_s is None else change.time_s.value


def _reason(speed_up: Estimate, cause: str) -> str:
    """Return why a speed-up is unknown or only a bound."""
    low, high = f"{speed_up.low:.3g}", f"{speed_up.high:.3g}"
    if is_unknown(speed_up):
        return f"nothing can be said, as a speed-up from {low} to {high} agrees with what is known: {cause}"
    return f"how much {'more' if speed_up.low > 1 else 'less'} is not known, since {cause}"


def _placing(place: Placement) -> str:
    """Return how to get this layout."""
    option = f" (--map-by {place.map_by} in most launchers)" if place.map_by != "core" else ""
    return f"place the ranks as {place.layout.text}{option}"


def _is_same(one: Layout, other: Layout) -> bool:
    return np.array_equal(one.node, other.node) and np.array_equal(one.socket, other.socket)
