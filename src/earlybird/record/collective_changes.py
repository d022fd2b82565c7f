"""Changes of a recorded collective: another algorithm, compared with the times that were recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data.advice import Advice, Alternative
from earlybird.data.algorithm_settings import algorithm_settings, selected_method, selecting_variable
from earlybird.data.collective_algorithms import DEFAULT, FAMILY_NAMES, parse_method
from earlybird.data.layout import MAPPINGS, Layout, parse_layout
from earlybird.data.profile import Profile
from earlybird.data.recording import Recording
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.predict.outlook import ratio_of
from earlybird.record.costs import (
    MOVED_ERROR,
    Placement,
    recorded_collective_s,
    sped_up_collective_s,
)
from earlybird.record.measured_phase import MeasuredPhase, RecordedCollective

_RECORDED = "as recorded"


@dataclass(frozen=True)
class Selection:
    """What selected the algorithm of a recorded collective.

    Attributes
    ----------
    settings : of the recording, those that select one; None if the recording does not hold settings.
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
    """Another algorithm, and the time of the phase with it."""

    name: str
    action: str
    basis: str
    time_s: Estimate


@dataclass
class AlgorithmChanges:
    """The changes of one collective, with notes, and with what to do if a cause is only likely."""

    changes: list[ChangedAlgorithm] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)


def selection_of(
    recording: Recording, family: str | None, operation: str, methods: Sequence[str], ranks: int
) -> Selection:
    """Return what the environment of the ranks selects; recordings of earlier versions do not hold it."""
    of_ranks = [one.settings for one in recording.ranks.values() if one.settings]
    if not of_ranks:
        return Selection(None)
    settings = algorithm_settings(of_ranks[0], operation)
    return Selection(settings, selected_method(family, operation, of_ranks[0], methods, ranks))


def measured_place(profile: Profile, operation: str, place: Placement, ranks: int) -> Placement:
    """Return `place` as a placement at which the profile measured the operation, if it is the same: 4x1x1 is
    4x1x2 by node with 4 ranks. Numbers of nodes do not count."""
    wanted = _canonical(place.layout, ranks)
    for form in profile.collectives:
        if form.operation != operation or not form.machine:
            continue
        shape = "x".join(str(form.machine.get(name)) for name in ("nodes", "sockets", "cores"))
        mappings = sorted({map_by for count, _, _, map_by, _ in form.measured if count == ranks})
        for map_by in sorted(mappings, key=MAPPINGS.index):
            layout = parse_layout(shape, map_by)
            if layout.num_ranks >= ranks and np.array_equal(_canonical(layout, ranks), wanted):
                return Placement(layout, shape, map_by)
    return place


def _canonical(layout: Layout, ranks: int) -> np.ndarray:
    """Node and socket of each of the first ranks, numbered in the order of their first ranks."""
    pairs = list(zip(layout.node[:ranks].tolist(), layout.socket[:ranks].tolist(), strict=True))
    nodes = {node: k for k, node in enumerate(dict.fromkeys(node for node, _ in pairs))}
    sockets = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    return np.array([(nodes[pair[0]], sockets[pair]) for pair in pairs])


def algorithm_changes(
    phase: MeasuredPhase,
    recorded: RecordedCollective,
    advice: Advice,
    selection: Selection,
    family: str | None,
) -> AlgorithmChanges:
    """Compare the algorithms of `advice` with what was recorded.

    Where a setting of the recording selected another algorithm than the default, that is what the others are
    compared with: by its measured cost if the profile has it, else by the recorded time, of which a part may
    be waiting. Where the calls took clearly longer than the default can and no setting is known, either the
    ranks waited or a setting was not recorded: both are said.
    """
    what = f"{recorded.operation} of {format_bytes(recorded.size_bytes)}"
    default = next((one for one in advice.ranked if one.method == DEFAULT), None)
    result = AlgorithmChanges()
    if selection.is_forced:
        _compare_with_forced(result, phase, recorded, advice.ranked, selection, what)
        return result
    if default is None:
        result.notes.append(f"{what}: the profile has no measured default of the MPI to compare with")
        return result
    best = advice.ranked[0]
    if best is not default and best.speed_up is not None:
        time_s = sped_up_collective_s(phase, recorded, default.time_s.value, best.speed_up)
        result.changes.append(ChangedAlgorithm(f"{what} by {best.method}", best.action, best.basis, time_s))
    if _is_slower_than(recorded, default):
        _explain_excess(result, recorded, advice.ranked, default, selection, what, family)
        if best is default:
            time_s = recorded_collective_s(phase, recorded, default.time_s)
            name, action = f"{what} by the MPI's default", _without_settings(family, recorded.operation)
            result.changes.append(ChangedAlgorithm(name, action, default.basis, time_s))
    elif best is default and len(advice.ranked) > 1:
        result.notes.append(f"{what}: the default of the MPI stays, as no other algorithm is clearly faster")
    elif best is default:
        result.notes.append(f"{what}: the profile has no algorithm but the default of the MPI")
    return result


def _compare_with_forced(
    result: AlgorithmChanges,
    phase: MeasuredPhase,
    recorded: RecordedCollective,
    ranked: Sequence[Alternative],
    selection: Selection,
    what: str,
) -> None:
    now = next((one for one in ranked if one.method == selection.method), None)
    others = [one for one in ranked if one is not now]
    each_s = now.time_s if now else Estimate.exact(recorded.least_s / max(recorded.calls, 1))
    which = f", which selects {now.method}" if now else ""
    made = f"the recording was made with {selection.text}{which}"
    candidates = [Option(_RECORDED, (-1,), each_s, Estimate.exact(1.0), "", is_reference=True)]
    candidates += [
        Option(one.method, (one.method != DEFAULT,), one.time_s, ratio_of(each_s, one.time_s), one.basis)
        for one in others
    ]
    chosen = options.choose(candidates)
    if chosen == 0:
        result.notes.append(f"{what}: {made}; no algorithm of the profile is clearly faster")
        return
    best = others[chosen - 1]
    time_s = (
        sped_up_collective_s(phase, recorded, each_s.value, ratio_of(each_s, best.time_s))
        if now
        else recorded_collective_s(phase, recorded, best.time_s)
    )
    names = " and ".join(selection.settings or {})
    without = f"start the program without {names}"
    action = without if best.method == DEFAULT else f"{without}, and with {best.action}"
    by = "the MPI's default" if best.method == DEFAULT else best.method
    result.changes.append(ChangedAlgorithm(f"{what} by {by}", action, best.basis, time_s))
    result.notes.append(
        f"{what}: {made}, and {format_seconds(recorded.calls * best.time_s.value)} are predicted for {by} "
        f"where {format_seconds(recorded.least_s)} were recorded in the rank that spends the least in it"
    )
    if not now:
        result.causes.append(f"{action}: {what} then takes less time")


def _is_slower_than(recorded: RecordedCollective, alternative: Alternative) -> bool:
    """Return whether even the rank that waits least spent clearly more than `alternative` costs."""
    return recorded.least_s > (1 + MOVED_ERROR) * recorded.calls * alternative.time_s.high


def _explain_excess(
    result: AlgorithmChanges,
    recorded: RecordedCollective,
    ranked: Sequence[Alternative],
    default: Alternative,
    selection: Selection,
    what: str,
    family: str | None,
) -> None:
    """Say why the calls may have taken longer than the default, with algorithms that take as long."""
    alike = [
        f"{format_seconds(recorded.calls * one.time_s.value)} for {one.method}"
        for one in ranked
        if parse_method(one.method).is_forced and _takes_as_long(recorded, one)
    ]
    numbers = (
        f"{what}: {format_seconds(recorded.least_s)} were recorded in the rank that spends the least in it, "
        f"and the profile predicts {format_seconds(recorded.calls * default.time_s.value)} for the default "
        f"of the MPI{''.join(f', {one}' for one in alike)}"
    )
    if selection.settings is not None:
        result.notes.append(
            f"{numbers}: no recorded setting selects another algorithm, so ranks waited for each other or "
            "for cores"
        )
        return
    setting = f"a setting{_for_example(family, recorded.operation)}"
    result.notes.append(
        f"{numbers}: either ranks waited for each other or for cores, or the MPI used another algorithm "
        f"because of {setting}; this recording does not hold settings"
    )
    result.causes.append(
        f"look where the program is started for {setting} that selects another algorithm of "
        f"{recorded.operation} than the default of {FAMILY_NAMES.get(family or '', 'the MPI')}"
    )


def _takes_as_long(recorded: RecordedCollective, alternative: Alternative) -> bool:
    each_s = recorded.least_s / max(recorded.calls, 1)
    low_s, high_s = alternative.time_s.low, alternative.time_s.high
    return low_s / (1 + MOVED_ERROR) <= each_s <= high_s * (1 + MOVED_ERROR)


def _without_settings(family: str | None, operation: str) -> str:
    return (
        f"start the program without a setting{_for_example(family, operation)} that selects an algorithm of "
        f"{operation}; if there is none, ranks waited, and this saves nothing"
    )


def _for_example(family: str | None, operation: str) -> str:
    """Return `, such as MPIR_CVAR_BCAST_INTRA_ALGORITHM,`; "" for an unknown MPI."""
    variable = selecting_variable(family, operation)
    return f", such as {variable}," if variable else ""
