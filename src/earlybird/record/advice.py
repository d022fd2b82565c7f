"""Advice for a recorded program: the projected changes of all phases, ranked."""

from collections.abc import Mapping
from typing import Any

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data import labels
from earlybird.data.advice import MODEL, Advice, Alternative
from earlybird.data.projection import (
    AGGREGATION,
    COLLECTIVE,
    COMMUNICATORS,
    LAYOUT,
    OF_RUN,
    OTHER_MPI,
    PARTITIONS,
    ProjectedChange,
    Projection,
    RunChange,
    is_bound,
    speed_up_text,
)
from earlybird.data.schema import Estimate

AS_RECORDED = "as recorded"
# Changes of the program that gain less than this part of the run are counted, not listed.
_MIN_GAIN = 0.01
# They may gain this by their interval.
_MAX_SMALL = 0.1
# From a setting of the launch to a change of the program, by the work that they are.
_WORK = (COLLECTIVE, LAYOUT, OTHER_MPI, COMMUNICATORS, AGGREGATION, PARTITIONS)


def advise_program(projection: Projection) -> Advice:
    """Rank the changes by the time of the run that each saves; return the advised one first.

    That is "as recorded", unless a change is clearly faster: of those, the change that needs the least effort
    within 5 % of the fastest (see `options.choose`). A layout or an MPI changes all phases, so it is one
    alternative with the sum over phases. Changes about which nothing is known are no alternatives but notes.
    """
    run_s = projection.run_s
    alternatives = [
        Alternative(AS_RECORDED, Estimate.exact(run_s), Estimate.exact(1.0), _without_a_change(projection))
    ]
    kinds = [""]
    num_small = 0
    unknown: list[str] = []
    for phase in projection.phases:
        for change in phase.changes:
            if change.kind in OF_RUN:
                continue
            where = {"kind": change.kind, "phase": phase.number, "functions": ", ".join(phase.functions)}
            if change.run_speed_up is None:
                unknown.append(f"{change.change}, phase {phase.number}: {change.reason}")
            elif _is_small(change.run_speed_up):
                num_small += 1
            else:
                alternatives.append(_alternative(change, run_s, where, change.basis))
                kinds.append(change.kind)
    for one in projection.run_changes():
        if one.run_speed_up is None:
            unknown.append(f"{one.kind} {one.change}: {one.reason}")
        else:
            where = {"kind": one.kind, "phase": ", ".join(map(str, one.phases))}
            alternatives.append(_alternative(one, run_s, where))
            kinds.append(one.kind)
    choices = [
        Option(
            one.method, (_WORK.index(kind) if kind else -1,), one.time_s, one.speed_up, one.basis,
            is_reference=one.method == AS_RECORDED,
        )
        for one, kind in zip(alternatives, kinds, strict=True)
    ]  # fmt: skip
    ranked = tuple(alternatives[k] for k in options.order(choices))
    notes = [*projection.notes, *unknown]
    for phase in projection.phases:
        notes += [f"phase {phase.number}, {', '.join(phase.functions)}: {note}" for note in phase.notes]
    if num_small:
        notes.append(
            f"{labels.counted(num_small, 'change')} of less than {100 * _MIN_GAIN:g} % of the run "
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
        extra={"assumptions": assumed, "models": projection.models()},
    )


def _without_a_change(projection: Projection) -> str:
    """Return what to do if no change is advised: the known costs of time are stated even then."""
    uneven = projection.uneven_work_remedy()
    steps = [*([uneven] if uneven else []), *projection.causes]
    if _is_undescribed(projection):
        return "; ".join(["nothing can be said", *(steps or ["the notes say why"])])
    return "; ".join(["change no setting", *steps]) if steps else "leave the program as it is"


def _is_undescribed(projection: Projection) -> bool:
    """Return whether the models describe no communication of a program that may have some."""
    if any(phase.model_s is not None for phase in projection.phases):
        return False
    in_mpi_s = sum(phase.mpi_s for phase in projection.phases)
    return in_mpi_s >= _MIN_GAIN * projection.run_s or (projection.is_cut and not projection.phases)


def _is_small(speed_up: Estimate) -> bool:
    """Return whether a change gains or loses little of the run, also by its interval."""
    return abs(speed_up.value - 1) < _MIN_GAIN and speed_up.high < 1 + _MAX_SMALL


def _alternative(
    change: ProjectedChange | RunChange, run_s: float, where: Mapping[str, Any], basis: str = MODEL
) -> Alternative:
    speed_up = change.run_speed_up
    assert speed_up is not None
    time_s = Estimate(*(run_s / ratio for ratio in (speed_up.value, speed_up.high, speed_up.low)))
    action = change.action
    if is_bound(speed_up):
        action += f"; {speed_up_text(speed_up)} times as fast: {change.reason}"
    return Alternative(change.change, time_s, speed_up, action, basis, extra=where)
