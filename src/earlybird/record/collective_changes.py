"""Compares a recorded collective with other algorithms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data.advice import Advice, Alternative
from earlybird.data.algorithm_settings import algorithm_settings, selected_method, selecting_variable
from earlybird.data.collective_algorithms import DEFAULT, FAMILY_NAMES, parse_method
from earlybird.data.collective_form import CollectiveForm, is_collective
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.profile import Profile
from earlybird.data.recording import Recording
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.predict.collective import machine_shape, measured_placement
from earlybird.predict.outlook import ratio_of
from earlybird.predict.profiles import measured_results
from earlybird.record.measured_phase import RecordedCollective
from earlybird.record.placement import Placement

_RECORDED = "as recorded"
# A call that takes this part longer than another algorithm was hardly made by that.
_CLEARLY_LONGER = 0.35
# Times of the default: no algorithm takes longer, so ranks waited.
_MAX_BY_ALGORITHM = 8.0


@dataclass(frozen=True)
class Selection:
    """The selection of the algorithm of a recorded collective.

    Attributes
    ----------
    settings : settings of the recording that select an algorithm; None if the recording has no settings.
    method : which of the profile's algorithms they select; None if none of these.
    """

    settings: Mapping[str, str] | None
    method: str | None = None

    @property
    def is_forced(self) -> bool:
        return bool(self.settings)

    @property
    def text(self) -> str:
        return " ".join(f"{name}={value}" for name, value in (self.settings or {}).items())


@dataclass(frozen=True)
class ChangedAlgorithm:
    """A change to another algorithm, and the speed-up of each call."""

    name: str
    action: str
    basis: str
    speed_up: Estimate


@dataclass
class AlgorithmChanges:
    """The changes of one collective, with notes, and with the remedy if a cause is only likely."""

    changes: list[ChangedAlgorithm] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)


def selection_of(
    recording: Recording, family: str | None, operation: str, methods: Sequence[str], ranks: int
) -> Selection:
    """Return the selection by the environment of the ranks, which recordings of earlier versions lack."""
    # Those that do hold the binding, too.
    of_ranks = [one.settings for one in recording.ranks.values() if one.settings or one.binding]
    if not of_ranks:
        return Selection(None)
    settings = algorithm_settings(of_ranks[0], operation)
    return Selection(settings, selected_method(family, operation, of_ranks[0], methods, ranks))


def reliability(profile: Profile, operation: str, place: Placement, ranks: int) -> Callable[[str], bool]:
    """Return a function that returns whether the measured times of a method on this placement decide: see
    `options.decides`."""
    of_method: dict[str, list[Result]] = {}
    for result in measured_results(profile):
        where = tuple(result.config.get(key) for key in ("operation", "ranks", "map_by"))
        if result.kernel == COLLECTIVE.name and where == (operation, ranks, place.map_by):
            of_method.setdefault(result.method, []).append(result)
    return lambda method: options.decides(of_method.get(method, ()))


def measured_place(profile: Profile, operation: str, place: Placement, ranks: int) -> Placement:
    """Return `place` as the profile names it, if it measured the operation there: 4x1x1 is 4x1x2 by node with
    four ranks."""
    forms = [form for form in profile.collectives if form.operation == operation]
    named = measured_placement(forms, place.layout, ranks)
    return Placement(*named) if named else place


def profile_at(profile: Profile, operation: str, place: Placement) -> Profile:
    """Return the profile with only the forms and results of the operation on this machine, if it has these
    and others: several profiles may have been measured on different layouts."""
    others = {machine_shape(form) for form in profile.collectives if form.operation == operation}
    if place.text not in others or len(others) == 1:
        return profile
    others.remove(place.text)
    forms = [form for form in profile.forms if not _is_of_collective(form)]
    forms += [
        form
        for form in profile.collectives
        if form.operation != operation or machine_shape(form) not in others
    ]
    results = [
        row
        for row in profile.extra.get("results", [])
        if row.get("operation") != operation
        or not any(str(row.get("layout", "")).endswith(shape) for shape in others)
    ]
    return replace(profile, forms=tuple(forms), extra={**profile.extra, "results": results})


def _is_of_collective(form: Any) -> bool:
    return isinstance(form, CollectiveForm) or is_collective(form)


def algorithm_changes(
    recorded: RecordedCollective,
    advice: Advice,
    selection: Selection,
    family: str | None,
    is_reliable: Callable[[str], bool] = lambda method: True,
) -> AlgorithmChanges:
    """Compare the algorithms of `advice` with the recorded one.

    If a setting of the recording selected another algorithm than the default, the others are compared with
    that: by its measured cost if the profile has it, otherwise by the recorded time, part of which may be
    waiting. If the calls took clearly longer than the default can and no setting is known, either the ranks
    waited or a setting was not recorded: both are reported. `is_reliable` returns whether the times of a
    method decide.
    """
    what = f"{recorded.operation} of {format_bytes(recorded.size_bytes)}"
    default = next((one for one in advice.ranked if one.method == DEFAULT), None)
    result = AlgorithmChanges()
    if selection.is_forced:
        _compare_with_forced(result, recorded, advice.ranked, selection, what, is_reliable)
        return result
    if default is None:
        result.notes.append(f"{what}: the profile has no measured default of the MPI to compare with")
        return result
    best = advice.ranked[0]
    if best is not default and best.speed_up is not None:
        name = f"{what} by {best.method}"
        result.changes.append(ChangedAlgorithm(name, best.action, best.basis, best.speed_up))
    if _is_slower_than(recorded, default):
        is_suspect = _explain_excess(result, recorded, advice.ranked, default, selection, what, family)
        if is_suspect and best is default:
            name, action = f"{what} by the MPI's default", _without_settings(family, recorded.operation)
            speed_up = _over_recorded(recorded, default.time_s)
            result.changes.append(ChangedAlgorithm(name, action, default.basis, speed_up))
    elif best is default and len(advice.ranked) > 1:
        result.notes.append(f"{what}: the default of the MPI stays, as no other algorithm is clearly faster")
    elif best is default:
        result.notes.append(f"{what}: the profile has no algorithm but the default of the MPI")
    return result


def _compare_with_forced(
    result: AlgorithmChanges,
    recorded: RecordedCollective,
    ranked: Sequence[Alternative],
    selection: Selection,
    what: str,
    is_reliable: Callable[[str], bool],
) -> None:
    now = next((one for one in ranked if one.method == selection.method), None)
    others = [one for one in ranked if one is not now]
    each_s = now.time_s if now else Estimate.exact(recorded.least_s / max(recorded.calls, 1))
    which = f", which selects {now.method}" if now else ""
    made = f"the recording was made with {selection.text}{which}"
    candidates = [Option(_RECORDED, (-1,), each_s, Estimate.exact(1.0), "", is_reference=True)]
    candidates += [
        Option(
            one.method, (one.method != DEFAULT,), one.time_s, ratio_of(each_s, one.time_s), one.basis,
            is_reliable=is_reliable(one.method) and (now is None or is_reliable(now.method)),
        )
        for one in others
    ]  # fmt: skip
    chosen = options.choose(candidates)
    if chosen == 0:
        result.notes.append(f"{what}: {made}; no algorithm of the profile is clearly faster")
        return
    best = others[chosen - 1]
    by = "the MPI's default" if best.method == DEFAULT else best.method
    numbers = (
        f"{what}: {made}, and {format_seconds(recorded.calls * best.time_s.value)} are predicted for {by} "
        f"where {format_seconds(recorded.least_s)} were recorded in the rank that spends the least in it"
    )
    if not now and not _may_be_the_algorithm(recorded, best):
        result.notes.append(f"{numbers}, as ranks wait for each other or for cores, too")
        return
    speed_up = ratio_of(each_s, best.time_s) if now else _over_recorded(recorded, best.time_s)
    action = (
        f"start the program without {' and '.join(selection.settings or {})}"
        if best.method == DEFAULT
        else f"start the program with {best.action} instead of {selection.text}"
    )
    result.changes.append(ChangedAlgorithm(f"{what} by {by}", action, best.basis, speed_up))
    result.notes.append(numbers)
    if not now:
        result.causes.append(f"{action}, and compare: a part of the time of {what} may be waiting")


def _over_recorded(recorded: RecordedCollective, each_s: Estimate) -> Estimate:
    """Return the speed-up of calls of `each_s` over the recorded time of the rank that waits least, any part
    of which may be waiting that remains."""
    now_s = recorded.least_s / max(recorded.calls, 1)
    value, _, most = (now_s / time_s for time_s in (each_s.value, each_s.high, each_s.low))
    return Estimate(value, min(1.0, value), max(most, value))


def _is_slower_than(recorded: RecordedCollective, alternative: Alternative) -> bool:
    """Return whether even the rank that waits least spent clearly more than `alternative` costs."""
    return recorded.least_s > (1 + _CLEARLY_LONGER) * recorded.calls * alternative.time_s.high


def _may_be_the_algorithm(recorded: RecordedCollective, alternative: Alternative) -> bool:
    """Return whether the calls took clearly longer than `alternative`, but not longer than any algorithm."""
    ratio = recorded.least_s / (recorded.calls * alternative.time_s.value)
    return _is_slower_than(recorded, alternative) and ratio <= _MAX_BY_ALGORITHM


def _explain_excess(
    result: AlgorithmChanges,
    recorded: RecordedCollective,
    ranked: Sequence[Alternative],
    default: Alternative,
    selection: Selection,
    what: str,
    family: str | None,
) -> bool:
    """Add a note on why the calls may have taken longer than the default, and return whether a setting is
    suspected: none was recorded, and an algorithm of the profile takes as long."""
    others = [one for one in ranked if parse_method(one.method).is_forced]
    alike = [one for one in others if _takes_as_long(recorded, one)]
    costs = [f"{format_seconds(recorded.calls * one.time_s.value)} for {one.method}" for one in alike]
    numbers = (
        f"{what}: {format_seconds(recorded.least_s)} were recorded in the rank that spends the least in it, "
        f"and the profile predicts {format_seconds(recorded.calls * default.time_s.value)} for the default "
        f"of the MPI{''.join(f', {one}' for one in costs)}"
    )
    waited = "ranks waited for each other or for cores"
    setting = f"a setting{_for_example(family, recorded.operation)}"
    if selection.settings is not None:
        result.notes.append(f"{numbers}: no recorded setting selects another algorithm, so {waited}")
        return False
    if not alike and (others or not _may_be_the_algorithm(recorded, default)):
        result.notes.append(
            f"{numbers}: {waited}, or {setting} selected an algorithm that the profile does not have"
        )
        return False
    result.notes.append(
        f"{numbers}; this recording does not hold settings: either {setting} selected another algorithm, or "
        f"{waited}"
    )
    result.causes.append(
        f"look where the program is started for {setting} that selects another algorithm of "
        f"{recorded.operation} than the default of {FAMILY_NAMES.get(family or '', 'the MPI')}"
    )
    return True


def _takes_as_long(recorded: RecordedCollective, alternative: Alternative) -> bool:
    each_s = recorded.least_s / max(recorded.calls, 1)
    low_s, high_s = alternative.time_s.low, alternative.time_s.high
    return low_s / (1 + _CLEARLY_LONGER) <= each_s <= high_s * (1 + _CLEARLY_LONGER)


def _without_settings(family: str | None, operation: str) -> str:
    return (
        f"start the program without a setting{_for_example(family, operation)} that selects an algorithm of "
        f"{operation}; if there is none, ranks waited, and this saves nothing"
    )


def _for_example(family: str | None, operation: str) -> str:
    """Return `, such as MPIR_CVAR_BCAST_INTRA_ALGORITHM,`; "" for an unknown MPI."""
    variable = selecting_variable(family, operation)
    return f", such as {variable}," if variable else ""
