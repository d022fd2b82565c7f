"""Advise which algorithm of a collective operation to use, and at which sizes the best one changes; with one
configuration of the MPI for several operations."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from earlybird.advise import options
from earlybird.advise.algorithm_choice import (
    AlgorithmChoice,
    Candidate,
    Judged,
    algorithm_choice,
    beyond,
)
from earlybird.advise.collective_settings import configuration_json, configure, has_setting
from earlybird.data.advice import CONFIG, EXTRAPOLATED, Advice, Alternative, CollectivesAdvice, SizeRange
from earlybird.data.collective_algorithms import DEFAULT, OWN, ROOTED, Method
from earlybird.data.collective_configuration import Configuration, setting
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.layout import is_shape
from earlybird.data.measure_commands import LaunchOptions, fit_together, free_run, measure_command
from earlybird.data.mpich_selection import Selection
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes, format_seconds, size_argument
from earlybird.predict.collective import SIZES, Placed, form_name, forms_of, place_ranks, reservations


def advise_collective(
    profile: Profile, operation: str, ranks: int | None, size_bytes: int | None = None, **more: Any
) -> tuple[Advice, Configuration | None]:
    """Return the advice on one operation, with its configuration; parameters are those of
    `advise_collectives`.
    """
    several, settings = advise_collectives(profile, [operation], ranks, size_bytes, **more)
    return several.pieces()[0], settings


def advise_collectives(
    profile: Profile,
    operations: Sequence[str],
    ranks: int | None,
    size_bytes: int | None = None,
    *,
    layout: str | None = None,
    map_by: str | None = None,
    root: int = 0,
    mpi_only: bool = False,
    at_size_only: bool = False,
    selection: Selection | None = None,
) -> tuple[CollectivesAdvice, Configuration | None]:
    """Rank every algorithm of each operation with its best segment size, and find crossovers.

    Parameters
    ----------
    size_bytes : None for the largest measured size; a barrier ignores it.
    ranks, layout, map_by, root : see `predict.collective.place_ranks`; operations without a root ignore
        `root`, if another one has it.
    mpi_only : leave out the algorithms of earlybird, which an MPI cannot be set to use.
    at_size_only : leave out crossovers and configuration, which take most of the time.
    selection : the trees of this MPICH's library, so that its configuration can select by size.

    Returns
    -------
    Advice whose first alternative is the advised one, see `options.choose`; speed-ups are over the default of
    the MPI, if that was measured. Where the point was measured, its values are the measured ones; elsewhere
    those of the form, corrected by the measured points of the same placement. And one configuration for all
    operations that makes the MPI use the best of its own algorithms in every region; None if it is not known
    for this MPI.
    """
    of_operations = [_forms(profile, operation, mpi_only) for operation in operations]
    _require_one_mpi(of_operations)
    placed, notes = place_ranks([*chain.from_iterable(of_operations)], ranks, layout, map_by, root)
    choices, pieces = [], []
    for operation, forms in zip(operations, of_operations, strict=True):
        own_placed = placed if operation in ROOTED else replace(placed, root=0)
        asked_bytes = _asked_bytes(forms, None if operation == "barrier" else size_bytes)
        try:
            choice = algorithm_choice(profile, forms, own_placed)
            pieces.append(_advise(choice, asked_bytes, notes, profile, at_size_only))
        except InputError as error:
            if len(operations) == 1:
                raise
            raise InputError(f"{operation}: {error}; or leave {operation} out of --op") from error
        choices.append(choice)
    settings = None if at_size_only else configure(choices, size_bytes, selection)
    extra = {} if settings is None else {CONFIG: configuration_json(settings)}
    return CollectivesAdvice(tuple(pieces), extra), settings


def _forms(profile: Profile, operation: str, mpi_only: bool) -> list[CollectiveForm]:
    forms = forms_of(profile, operation)
    return _of_mpi(forms) if mpi_only else forms


def _require_one_mpi(of_operations: Iterable[Sequence[CollectiveForm]]) -> None:
    """Raise InputError if the operations, each of one MPI, are of several."""
    mpis = {forms[0].mpi: forms[0].operation for forms in of_operations}
    if len(mpis) > 1:
        held = " and ".join(f"{operation} of {mpi}" for mpi, operation in mpis.items())
        raise InputError(f"the profiles given hold {held}; give profiles of one MPI")


def _asked_bytes(forms: Sequence[CollectiveForm], size_bytes: int | None) -> int:
    return max(form.range["size_bytes"][1] for form in forms) if size_bytes is None else size_bytes


def _advise(
    choice: AlgorithmChoice,
    asked_bytes: int,
    notes: Sequence[str],
    profile: Profile,
    at_size_only: bool,
) -> Advice:
    placed, candidates = choice.placed, choice.candidates
    ranked = choice.ranking(asked_bytes)
    names = {one.candidate.form.algorithm for one in ranked}
    left_out = [
        *choice.left_out,
        *(
            f"{one.form.algorithm} is not ranked at {format_bytes(asked_bytes)}: it needs {needed}"
            for one in {one.form.algorithm: one for one in reversed(candidates)}.values()
            if one.form.algorithm not in names and (needed := one.refused(asked_bytes))
        ),
    ]
    if not ranked:
        raise InputError(f"nothing can be advised: {'; '.join(left_out)}")
    regions = [] if at_size_only else choice.over_sizes().regions()
    again = _measure_again(choice, asked_bytes, ranked, profile)
    models = {id(one.model): one.model for one in candidates if one.form.algorithm in names}
    return Advice(
        COLLECTIVE.name,
        {"operation": choice.operation, "ranks": placed.ranks, "size_bytes": asked_bytes,
         "map_by": placed.map_by, "layout": placed.layout.text, "root": placed.root},
        DEFAULT if ranked[0].option.speed_up else "",
        tuple(_alternative(one, placed, asked_bytes, choice.family) for one in ranked),
        tuple(_size_range(*region, placed, choice.family) for region in regions),
        profile.id,
        (
            *options.notes([one.option for one in ranked], ranked[0].option, again),
            *_comparison(ranked),
            *_launches(choice),
            *notes,
            *left_out,
            *reservations([*models.values()], placed, [asked_bytes]),
        ),
    )  # fmt: skip


def _measure_again(
    choice: AlgorithmChoice, asked_bytes: int, ranked: Sequence[Judged], profile: Profile
) -> str:
    """Return the command that measures all algorithms at this placement and size: where nothing was measured
    at this placement, also at the sizes that a form needs; and the fit with the runs of the profile."""
    placed, asked = choice.placed, size_argument(asked_bytes)
    is_new = ranked[0].option.basis == EXTRAPOLATED
    measured = [one.outlook.result.launches for one in ranked if one.outlook.result]
    points = {
        "op": choice.operation,
        "layout": placed.shape if is_shape(placed.shape) else None,
        "ranks": placed.ranks,
        "map-by": placed.map_by,
        "sizes": ",".join(dict.fromkeys([*SIZES.split(","), asked])) if is_new else asked,
        "launches": max([7, *(2 * launches for launches in measured)]),  # more than decided nothing
    }
    if choice.operation == "barrier":
        del points["sizes"]
    run = free_run()
    command = measure_command(COLLECTIVE.name, points, LaunchOptions.of(profile), run)
    return f"`{command}` on an idle machine, {fit_together(profile, run)}"


def _comparison(ranked: Sequence[Judged]) -> list[str]:
    """Return a sentence on the best algorithm of Earlybird, if it is faster than the advised one."""
    advised, *others = [judged.option for judged in ranked]
    faster = [option for option in others if not option.is_selectable and option.cost < advised.cost]
    if not faster or not advised.is_selectable:
        return []
    best = min(faster, key=lambda option: option.cost)
    gain = f", speed-up {best.speed_up.value:.2f}" if best.speed_up else ""
    return [
        f"for comparison: {best.name}, an algorithm of Earlybird, takes {format_seconds(best.time_s.value)}"
        f"{gain}; the MPI cannot select it, and --mpi-only omits it"
    ]


def _launches(choice: AlgorithmChoice) -> list[str]:
    """Return notes on the launches with which the default was measured."""
    default = choice.default
    results = [] if default is None else choice.measured.results_of(default)
    if not results:
        return []
    if choice.measured.are_launches_known:
        if max(result.launches for result in results) > 1:
            return []
        more = "" if options.share_cores(results) else "; measure with --launches 7"
        return [f"a single launch decides nothing{more}"]
    return [
        "the profile has times without their launches, so that what is faster by chance is not left out; fit "
        "the run again with this version"
    ]


def _of_mpi(forms: Sequence[CollectiveForm]) -> list[CollectiveForm]:
    found = [form for form in forms if not form.algorithm.startswith(OWN)]
    if not found:
        raise InputError(
            f"the profile has no algorithm of the MPI for {forms[0].operation}; omit --mpi-only, or "
            "measure some with --algorithm linear,pipeline,binomial,default"
        )
    return found


def _alternative(judged: Judged, placed: Placed, size_bytes: int, family: str | None) -> Alternative:
    candidate, option, result = judged.candidate, judged.option, judged.outlook.result
    extra: dict[str, Any] = {
        "algorithm": candidate.form.algorithm,
        "segment_bytes": candidate.segment_bytes,
        "form": form_name(candidate.model, size_bytes, candidate.segment_bytes),
    }
    return Alternative(
        candidate.method,
        option.time_s,
        option.speed_up,
        _how_to(candidate, placed, family),
        option.basis,
        option.predicted_speed_up,
        result and result.time_s,
        judged.outlook.measured_speed_up if option.speed_up else None,
        result.state if result else "",
        extra | ({"extrapolated": list(judged.outside)} if judged.outside else {}),
    )


def _how_to(candidate: Candidate, placed: Placed, family: str | None) -> str:
    method = Method(candidate.form.algorithm)
    if not has_setting(candidate.form, family) and not method.is_own and not method.is_persistent:
        return f"use {candidate.method}; see the manual of this MPI"
    return setting(family or "", candidate.form.operation, candidate.method, placed.ranks)


def _size_range(start: int, end: int, candidate: Candidate, placed: Placed, family: str | None) -> SizeRange:
    extra: dict[str, Any] = {
        "algorithm": candidate.form.algorithm,
        "segment_bytes": candidate.segment_bytes,
    }
    outside = {
        one for size in (start, end) for one in beyond(candidate.form, placed, size, candidate.segment_bytes)
    }
    if outside:
        extra["extrapolated"] = sorted(outside)
    return SizeRange(start, end, candidate.method, _how_to(candidate, placed, family), extra)
