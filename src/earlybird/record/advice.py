"""Advises on a recorded program: simulates the run with each change, and with those together that help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.analysis.balance import work_balance
from earlybird.data import labels
from earlybird.data.advice import EXTRAPOLATED, MODEL, Advice, Alternative
from earlybird.data.errors import InputError
from earlybird.data.phases import find_phases
from earlybird.data.profile import Profile
from earlybird.data.recording import MIN_CORE_WAIT, Recording
from earlybird.data.schema import Estimate
from earlybird.data.simulated_program import SimulatedProgram
from earlybird.data.speed_ups import is_bound, is_unknown, speed_up_text
from earlybird.data.units import format_seconds
from earlybird.record.collective_costs import cost_ratios
from earlybird.record.conditions import Conditions, conditions_as_recorded
from earlybird.record.early_collectives import with_early_collectives
from earlybird.record.intervals import MIN_COLLECTIVE_SHARE, collective_cost_share
from earlybird.record.network import Place
from earlybird.record.operations import Operations
from earlybird.record.placement import Placement, distinct
from earlybird.record.program_changes import (
    ASSUMPTIONS,
    EVEN_WORK,
    KINDS,
    Candidate,
    Candidates,
    aggregation_candidates,
    collective_candidates,
    communicator_notes,
    layout_candidates,
    mismatch_note,
    mpi_candidates,
    partition_candidates,
)
from earlybird.record.simulation import balance_change, predict_program, simulated_speed_up
from earlybird.record.sites import with_sleep

AS_RECORDED = "as recorded"
# Changes that gain less than this part of the run are counted, not listed, unless they may gain the second
# part by their interval.
_MIN_GAIN, _MAX_SMALL = 0.01, 0.1


@dataclass(frozen=True)
class ProgramQuestion:
    """What to advise on.

    Attributes
    ----------
    recording, operations : the program.
    profile, place : where it was recorded.
    places, profiles : other layouts, and profiles of other MPIs by name.
    partitions, noise_share : partitions of each message, and the delay of the last one as a part of what is
        computed before; None: as recorded.
    """

    recording: Recording
    operations: Operations
    profile: Profile
    place: Placement
    places: Sequence[Placement] = ()
    profiles: Mapping[str, Profile] | None = None
    partitions: int | None = None
    noise_share: float | None = None

    @property
    def core_wait_share(self) -> float:
        return self.recording.core_wait_share or 0.0


@dataclass(frozen=True)
class _Simulated:
    """Candidates that are simulated together, and their speed-up of the run."""

    parts: tuple[Candidate, ...]
    speed_up: Estimate

    @property
    def name(self) -> str:
        return ", with ".join(part.name for part in self.parts)

    @property
    def work(self) -> tuple[int, int]:
        """The effort of the change that needs most, and the number of changes."""
        return max(KINDS.index(part.kind) for part in self.parts), len(self.parts)

    @property
    def basis(self) -> str:
        return EXTRAPOLATED if any(part.basis == EXTRAPOLATED for part in self.parts) else self.parts[0].basis


def advise_program(question: ProgramQuestion) -> Advice:
    """Rank the changes by the simulated time of the run; return the advised one first.

    That is "as recorded", unless a change is clearly faster: of those, the one that needs the least effort
    within 5 % of the fastest (see `options.choose`). Those that are clearly faster alone and do not exclude
    each other are also simulated together. Changes about which nothing is known are notes. Raises InputError
    if a layout has another number of ranks, or if the profile lacks what the run needs.
    """
    place = question.profile, question.place.layout
    question = replace(question, operations=with_early_collectives(question.operations, *place))
    recording, operations = question.recording, question.operations
    given = conditions_as_recorded(operations, *place)
    plain = with_sleep(predict_program(operations, given, (), recording.core_wait_share), recording)
    found = _candidates(question)
    notes = [*plain.notes, *found.notes]
    simulated: list[_Simulated] = []
    unknown: list[_Simulated] = []
    for candidate in found.candidates:
        try:
            alone = _simulate(question, given, plain, (candidate,))
        except InputError as error:
            notes.append(f"{candidate.name} is not simulated: {error}")
            continue
        (unknown if is_unknown(alone.speed_up) else simulated).append(alone)
    if together := _together(simulated):
        simulated.append(_simulate(question, given, plain, together))
    num_small = sum(_is_small(one.speed_up) for one in simulated)
    ranked_from = [one for one in simulated if not _is_small(one.speed_up)]
    alternatives = [
        Alternative(
            AS_RECORDED, Estimate.exact(plain.as_recorded_s), Estimate.exact(1.0),
            _without_a_change(question, plain, found),
        ),
        *(_alternative(one, plain, _why_uncertain(question)) for one in ranked_from),
    ]  # fmt: skip
    choices = [
        Option(one.method, work, one.time_s, one.speed_up, one.basis, is_reference=one.method == AS_RECORDED)
        for one, work in zip(alternatives, [(-1, 0), *(one.work for one in ranked_from)], strict=True)
    ]
    notes += [
        f"{one.name}: nothing can be said, as a speed-up from {one.speed_up.low:.3g} to "
        f"{one.speed_up.high:.3g} agrees with what is known: {_why_uncertain(question)}"
        for one in unknown
    ]
    if num_small:
        notes.append(
            f"{labels.counted(num_small, 'change')} of less than {100 * _MIN_GAIN:g} % of the run "
            f"{'is' if num_small == 1 else 'are'} left out"
        )
    kinds = {part.kind for one in simulated for part in one.parts}
    return Advice(
        "program",
        {"recording": str(recording.path), "ranks": recording.size, "layout": question.place.layout.text},
        AS_RECORDED,
        tuple(alternatives[k] for k in options.order(choices)),
        profile_id=question.profile.id,
        notes=tuple(dict.fromkeys(notes)),
        extra={"assumptions": [f"{kind}: {text}" for kind, text in ASSUMPTIONS.items() if kind in kinds]},
    )


def _candidates(question: ProgramQuestion) -> Candidates:
    recording, operations = question.recording, question.operations
    phases = find_phases(recording)
    found = collective_candidates(recording, phases, operations, question.profile, question.place)
    found.candidates += layout_candidates(distinct(question.places))
    found.candidates += mpi_candidates(dict(question.profiles or {}))
    found.candidates += aggregation_candidates(operations)
    flavour = str(question.profile.context.get("flavour", "mpich"))
    found.candidates += partition_candidates(operations, question.partitions, question.noise_share, flavour)
    balance = work_balance(recording)
    if balance and balance.is_uneven(recording.run_s) and question.core_wait_share < MIN_CORE_WAIT:
        action = (
            f"distribute the work evenly: rank {balance.rank} computes for {format_seconds(balance.most_s)} "
            f"and ranks on average for {format_seconds(balance.mean_s)}"
        )
        found.candidates.append(Candidate(EVEN_WORK, "even work", action, balance_change(operations, "all")))
    here = Place(question.profile, question.place.layout, question.profile)
    others = [replace(here, layout=place.layout) for place in question.places]
    others += [replace(here, profile=one, measured=one) for one in (question.profiles or {}).values()]
    kept = [np.isnan(cost_ratios(operations, here, other).value) for other in others]
    share = max((collective_cost_share(operations, keeps_cost) for keeps_cost in kept), default=0.0)
    if share >= MIN_COLLECTIVE_SHARE:
        found.note(
            f"collectives take {labels.percent(share)} of the run without their waiting, and keep the "
            "recorded cost on other layouts and with other MPIs; `earlybird predict program --algorithm` "
            "makes them messages"
        )
    for text in (
        mismatch_note(recording, question.profile),
        *communicator_notes(recording, phases, question.profile, question.place),
    ):
        if text:
            found.note(text)
    return found


def _simulate(
    question: ProgramQuestion, given: Conditions, plain: SimulatedProgram, parts: tuple[Candidate, ...]
) -> _Simulated:
    """Simulate the run with these changes; the interval contains the ends of what they assume."""

    def speed_up(end: int | None) -> Estimate:
        changes = [part.change if end is None or not part.ends else part.ends[end] for part in parts]
        share = question.recording.core_wait_share
        return simulated_speed_up(question.operations, given, plain.as_recorded_s, changes, share)

    estimates = [speed_up(None)]
    if any(part.ends for part in parts):
        estimates += [speed_up(0), speed_up(1)]
    low, high = min(one.low for one in estimates), max(one.high for one in estimates)
    return _Simulated(parts, Estimate(estimates[0].value, low, high))


def _together(simulated: Sequence[_Simulated]) -> tuple[Candidate, ...]:
    """Return the changes that are clearly faster alone, the best of each kind (of collectives each
    operation); none if there are not two."""
    clear = [one for one in simulated if _is_clear(one)]
    clear.sort(key=lambda one: -one.speed_up.value)
    best: dict[Any, Candidate] = {}
    for one in clear:
        (part,) = one.parts
        kind = (part.kind, part.name.partition(" ")[0]) if part.kind == KINDS[0] else part.kind
        best.setdefault(kind, part)
    return tuple(best.values()) if len(best) > 1 else ()


def _is_clear(one: _Simulated) -> bool:
    return Option(one.name, one.work, one.speed_up, one.speed_up, one.basis).is_clearly_faster


def _is_small(speed_up: Estimate) -> bool:
    """Return whether a change gains or loses little of the run, also by its interval."""
    return abs(speed_up.value - 1) < _MIN_GAIN and speed_up.high < 1 + _MAX_SMALL


def _alternative(one: _Simulated, plain: SimulatedProgram, why: str) -> Alternative:
    speed_up = one.speed_up
    time_s = Estimate(
        *(plain.as_recorded_s / ratio for ratio in (speed_up.value, speed_up.high, speed_up.low))
    )
    action = "; ".join(part.action for part in one.parts)
    if is_bound(speed_up):
        more = "more" if speed_up.low > 1 else "less"
        action += f"; {speed_up_text(speed_up)} times as fast: how much {more} is not known, since {why}"
    phases = sorted({number for part in one.parts for number in part.phases})
    where = {"kind": ", ".join(part.kind for part in one.parts), "phase": ", ".join(map(str, phases))}
    return Alternative(one.name, time_s, speed_up, action, one.basis or MODEL, extra=where)


def _why_uncertain(question: ProgramQuestion) -> str:
    share = question.core_wait_share
    if share >= MIN_CORE_WAIT:
        return f"ranks waited for a core in {labels.percent(share)} of the run"
    return "the profile and the simulation as recorded are not certain enough"


def _without_a_change(question: ProgramQuestion, plain: SimulatedProgram, found: Candidates) -> str:
    """Return what to do if no change is advised: what costs time is stated even then."""
    balance = work_balance(question.recording)
    is_simulated = any(one.kind == EVEN_WORK for one in found.candidates)
    uneven = balance.remedy(question.recording.run_s) if balance and not is_simulated else ""
    steps = [*([uneven] if uneven else []), *found.causes]
    if not steps:
        remedy = plain.remedy().rstrip(".")
        steps = [remedy[:1].lower() + remedy[1:]]
    return "; ".join(["change no setting", *steps])
