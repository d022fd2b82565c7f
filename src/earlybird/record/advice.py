"""Advice for a recorded program: the projected changes of all phases, ranked."""

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data import labels
from earlybird.data.advice import Advice, Alternative
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
)
from earlybird.data.schema import Estimate

AS_RECORDED = "as recorded"
# Changes of the program that gain less than this part of the run are counted, not listed.
_LEAST_GAIN = 0.01
# From a setting of the launch to a change of the program, by the work that they are.
_WORK = (COLLECTIVE, LAYOUT, OTHER_MPI, COMMUNICATORS, AGGREGATION, PARTITIONS)


def advise_program(projection: Projection) -> Advice:
    """The changes by the time of the run that each saves; first the advised one.

    That is "as recorded", unless a change is clearly faster: of those, the one that is least work within 5 %
    of the fastest (see `options.choose`). A layout or an MPI changes all phases, so it is one alternative
    with the sum over phases.
    """
    run_s = projection.run_s
    uneven = projection.uneven_work()
    stay = (
        f"change no setting; distribute the work evenly: {uneven}" if uneven else "leave the program as it is"
    )
    alternatives = [Alternative(AS_RECORDED, Estimate.exact(run_s), Estimate.exact(1.0), stay)]
    kinds = [""]
    num_small = 0
    for phase in projection.phases:
        for change in phase.changes:
            if change.kind in OF_RUN:
                continue
            if abs(change.run_speed_up.value - 1) < _LEAST_GAIN:
                num_small += 1
            else:
                alternatives.append(_of_phase(phase, change, run_s))
                kinds.append(change.kind)
    for one in projection.run_changes():
        alternatives.append(_of_run(one, run_s))
        kinds.append(one.change.kind)
    choices = [
        Option(
            one.method, (_WORK.index(kind) if kind else -1,), one.time_s, one.speed_up, one.basis,
            is_reference=one.method == AS_RECORDED,
        )
        for one, kind in zip(alternatives, kinds, strict=True)
    ]  # fmt: skip
    ranked = tuple(alternatives[k] for k in options.order(choices))
    notes = list(projection.notes)
    for phase in projection.phases:
        notes += [f"phase {phase.number}, {', '.join(phase.functions)}: {note}" for note in phase.notes]
    if num_small:
        notes.append(
            f"{labels.counted(num_small, 'change')} of less than {100 * _LEAST_GAIN:g} % of the run "
            f"{'is' if num_small == 1 else 'are'} left out; `earlybird project` prints all"
        )
    assumed = [f"{kind}: {text}" for kind, text in projection.assumptions.items()]
    return Advice(
        "program",
        {"recording": projection.recording, "ranks": projection.ranks, "layout": projection.layout},
        AS_RECORDED,
        ranked,
        profile_id=projection.profile_id,
        notes=tuple(dict.fromkeys(notes)),
        extra={"assumptions": assumed},
    )


def _of_phase(phase: ProjectedPhase, change: ProjectedChange, run_s: float) -> Alternative:
    return Alternative(
        change.change, _times(run_s, change.run_speed_up), change.run_speed_up, change.action, change.basis,
        extra={"kind": change.kind, "phase": phase.number, "functions": ", ".join(phase.functions)},
    )  # fmt: skip


def _of_run(one: RunChange, run_s: float) -> Alternative:
    return Alternative(
        one.change.change, _times(run_s, one.run_speed_up), one.run_speed_up, one.change.action,
        extra={"kind": one.change.kind, "phase": ", ".join(map(str, one.phases))},
    )  # fmt: skip


def _times(run_s: float, speed_up: Estimate) -> Estimate:
    return Estimate(*(run_s / ratio for ratio in (speed_up.value, speed_up.high, speed_up.low)))
