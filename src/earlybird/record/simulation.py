"""Simulates a recorded run, as it was and with changes, and says where its time goes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.profile import Profile
from earlybird.data.recording import MIN_CORE_WAIT
from earlybird.data.schema import Estimate
from earlybird.data.simulated_program import (
    AS_RECORDED,
    CHANGED,
    MAX_ERROR,
    Efficiency,
    PhaseOfRun,
    SimulatedProgram,
    TolerancePoint,
)
from earlybird.data.tolerance import BANDWIDTH, LATENCY
from earlybird.data.units import format_seconds
from earlybird.models.program import Operation, Program, SimulatedRun
from earlybird.predict.what_if import changed_profile, scaled_profile, tolerance_curve
from earlybird.record import message_changes
from earlybird.record.conditions import (
    Conditions,
    changed_costs,
    ideal_s,
    once_rewritten,
    simulate_run,
)
from earlybird.record.early_messages import path_remarks
from earlybird.record.intervals import (
    MIN_COLLECTIVE_SHARE,
    Question,
    collective_cost_share,
    error_of,
    has_other_network,
    interval_of,
)
from earlybird.record.network import moves_alone
from earlybird.record.operations import NO_SITE, Operations, kept_remark
from earlybird.record.simulated_time import awaited, critical_path, phases, time_parts
from earlybird.record.timeline import recorded_timeline, simulated_timeline, windows

_MAX_SITES = 12  # that an error names
_MIN_S = 1e-9
# By which a run is longer at the latencies and bandwidths that are searched, and how precise these are.
GROWTHS, TOLERANCE_PRECISION = (0.01, 0.05, 0.10), 1e-3


def efficiency(operations: Operations, program: Program, run: SimulatedRun) -> Efficiency:
    """Return the efficiencies of the POP project: load balance, serialization and transfer, and their
    product, the parallel efficiency. A rank's computing is that of its busiest thread."""
    is_compute = (program.operation == Operation.COMPUTE) & (operations.site != NO_SITE)
    thread = np.repeat(np.arange(len(program.thread_rank)), np.diff(program.first))
    row = operations.row
    of_row_s = np.bincount(row[thread], program.operation_s * is_compute)
    rank_of_row = np.empty(len(of_row_s), np.int64)
    rank_of_row[row] = program.thread_rank
    of_rank_s = np.zeros(program.num_ranks)
    np.maximum.at(of_rank_s, rank_of_row, of_row_s)
    run_s, most_s = run.end_of_run_s, float(of_rank_s.max())
    if not run_s or not most_s:
        return Efficiency(0.0, 0.0, 0.0, 0.0)
    without_transfer_s = max(ideal_s(operations, program), most_s)
    balance = float(of_rank_s.mean()) / most_s
    serialization, transfer = most_s / without_transfer_s, min(without_transfer_s / run_s, 1.0)
    return Efficiency(balance * serialization * transfer, balance, serialization, transfer)


def _most_wrong(
    operations: Operations, simulated: Sequence[PhaseOfRun], core_wait_share: float | None
) -> str:
    """Return where a simulation as recorded differs most from the recording, and the likely reason."""
    in_calls_s = {(row.call, row.site): row.waiting_s + row.transfer_s for row in simulated}
    differences_s = {
        site: in_calls_s.get(site, 0.0) - float(seconds)
        for site, seconds in zip(operations.sites, operations.in_calls_s, strict=True)
    }
    call, place = max(differences_s, key=lambda site: abs(differences_s[site]))
    difference_s = differences_s[call, place]
    where = f"{call} in {place}" if place else call
    why = (
        "the profile does not describe the messages there; measure the MPI of the recording on its nodes, "
        "without --quick, and fit again"
    )
    if core_wait_share is not None and core_wait_share >= MIN_CORE_WAIT:
        why = (
            f"ranks waited for a core in {100 * core_wait_share:.0f} % of the run; give every rank a core "
            "and record again"
        )
    return (
        f"the simulation as recorded errs by more than {100 * MAX_ERROR:.0f} %, most in {where}, where all "
        f"ranks together take {format_seconds(abs(difference_s))} {'more' if difference_s > 0 else 'less'} "
        f"than recorded: {why}"
    )


# Changes of the computing.


def sites_named(operations: Operations, name: str, option: str) -> np.ndarray:
    """Return whether each site has this name: its call, its place, its function, `CALL in PLACE` or
    `CALL in FUNCTION`.

    Raises InputError if none has.
    """

    def names(call: str, place: str) -> set[str]:
        function = place.partition(" (")[0]
        return {call, place, function, f"{call} in {place}", f"{call} in {function}"}

    is_named = np.array([name in names(*site) for site in operations.sites], bool)
    if not is_named.any():
        functions = [(call, place.partition(" (")[0]) for call, place in operations.sites]
        known = sorted({f"{call} in {function}" if function else call for call, function in functions})
        raise InputError(
            f"{option}: the recording has no call site {name}; it has {', '.join(known[:_MAX_SITES])}"
            f"{' and more' if len(known) > _MAX_SITES else ''}"
        )
    return is_named


def _computes_before(operations: Operations, sites: np.ndarray | None) -> np.ndarray:
    """Return whether each operation is the computing before one of the sites; None: before any."""
    is_compute = (operations.operation == Operation.COMPUTE) & (operations.site != NO_SITE)
    if sites is None:
        return is_compute
    chosen: np.ndarray = is_compute & sites[np.maximum(operations.site, 0)]
    return chosen


def scaled_computing(operations: Operations, compute_s: np.ndarray, name: str, factor: float) -> np.ndarray:
    """Return the seconds with the computing before a site taking `factor` times as long."""
    chosen = _computes_before(operations, sites_named(operations, name, "--compute"))
    return np.where(chosen, factor * compute_s, compute_s)


def balanced_computing(operations: Operations, compute_s: np.ndarray, name: str) -> np.ndarray:
    """Return the seconds with all ranks that compute before a site computing as long there in the run, each
    in proportion to what it did; `name` is a site, or "all"."""
    sites = None if name == "all" else sites_named(operations, name, "--balance")
    chosen, rank = _computes_before(operations, sites), operations.rank
    of_rank_s = np.bincount(rank, compute_s * chosen, operations.size)
    there = np.bincount(rank, chosen, operations.size) > 0
    factor = np.ones(operations.size)
    mean_s = of_rank_s[there].mean()
    factor[of_rank_s > 0] = mean_s / of_rank_s[of_rank_s > 0]
    return np.where(chosen, compute_s * factor[rank], compute_s)


@dataclass(frozen=True)
class Change:
    """A change of the conditions, as the user gave it."""

    text: str
    apply: Callable[[Conditions], Conditions]


def with_changes(given: Conditions, changes: Sequence[Change]) -> Conditions:
    """Return the conditions with all changes, one after the other."""
    for change in changes:
        given = change.apply(given)
    return given


def settings_change(settings: Sequence[str]) -> Change:
    """Return the change of `--set`: parameters of the profile, one after the other."""
    return Change(
        ", ".join(f"--set {text}" for text in settings),
        lambda given: replace(given, profile=changed_profile(given.profile, settings)),
    )


def profile_change(profile: Profile, text: str) -> Change:
    def apply(given: Conditions) -> Conditions:
        return replace(given, profile=profile, measured=profile, has_progress=moves_alone(profile))

    return Change(f"--to-profile {text}", apply)


def layout_change(layout: Layout, text: str) -> Change:
    return Change(f"--to-layout {text}", lambda given: replace(given, layout=layout))


def progress_change() -> Change:
    return Change("--progress", lambda given: replace(given, has_progress=True))


def _rewriting(text: str, rewrite: Callable[[Operations], Operations]) -> Change:
    return Change(text, lambda given: replace(given, rewrites=(*given.rewrites, rewrite)))


def algorithm_change(operations: Operations, text: str) -> Change:
    """Return the change of `--algorithm`, such as allreduce=ring; raise InputError if there is no such
    collective or algorithm."""
    operation, name = message_changes.parse_algorithm(operations, text)
    return _rewriting(f"--algorithm {text}", lambda of: message_changes.by_messages(of, operation, name))


def partitions_change(
    partitions: int, noise_share: float | None = None, operations: Operations | None = None
) -> Change:
    """Return the change of `--partitions`: without a share of noise, partitions are ready as threads arrived
    in the `operations`, if that was recorded."""
    noise = message_changes.NOISE_SHARE if noise_share is None else noise_share
    ready = f"{100 * noise:g} % noise"
    if noise_share is None and operations and operations.leads_s:
        ready = "threads that arrive as recorded"
    return _rewriting(
        f"--partitions {partitions} with {ready}",
        lambda of: message_changes.partitioned(of, partitions, noise_share),
    )


def aggregation_change() -> Change:
    """Return the change of `--aggregate`."""
    return _rewriting("--aggregate", message_changes.aggregated)


def computing_change(operations: Operations, name: str, factor: float) -> Change:
    """Return the change of `--compute`; raise InputError if there is no such call site."""
    sites_named(operations, name, "--compute")
    return Change(
        f"--compute {name}={factor:g}x",
        lambda given: replace(given, compute_s=scaled_computing(operations, given.compute_s, name, factor)),
    )


def balance_change(operations: Operations, name: str) -> Change:
    """Return the change of `--balance`; raise InputError if there is no such call site."""
    balanced_computing(operations, operations.own_s, name)
    return Change(
        f"--balance {name}",
        lambda given: replace(given, compute_s=balanced_computing(operations, given.compute_s, name)),
    )


def simulated_speed_up(
    operations: Operations,
    as_recorded: Conditions,
    as_recorded_s: float,
    changes: Sequence[Change],
    core_wait_share: float | None = None,
) -> Estimate:
    """Return the speed-up of the run by all changes together over the simulation as recorded."""
    changed = with_changes(as_recorded, changes)
    simulated, after = once_rewritten(operations, changed)
    time_s = simulate_run(simulated, after)[1].end_of_run_s
    found = interval_of(
        Question(operations, as_recorded, as_recorded_s, changed, simulated, after, time_s), core_wait_share
    )
    ratios = (as_recorded_s / max(end_s, _MIN_S) for end_s in (time_s, found.high_s, found.low_s))
    return Estimate(*ratios)


def _edges(operations: Operations) -> str:
    """Return what was under way where the window begins and ends."""
    num = operations.num_under_way
    if not num:
        return "nothing was under way at its edges"
    what = labels.counted(num, "message or collective", "messages or collectives")
    return f"{what} under way at its edges keep{'s' * (num == 1)} what the calls took"


def _used_parameters(operations: Operations, given: Conditions) -> Iterator[tuple[str, float, float]]:
    """Yield each level that has messages, with the latency of its protocol with the most messages, and BW(1)
    of that with the most bytes."""
    of_message = given.layout.level(operations.src, operations.dst)
    for k, name in enumerate(LEVELS):
        size_bytes = operations.bytes[of_message == k]
        if not len(size_bytes):
            continue
        level = given.profile.level(name)
        index = level.protocol_index(size_bytes)
        most_messages, most_bytes = (
            level.protocols[int(np.bincount(index, weights).argmax())] for weights in (None, size_bytes)
        )
        yield name, most_messages.latency_s, float(most_bytes.bandwidth_table()[1][0])


def tolerance(operations: Operations, given: Conditions, now_s: float) -> Iterator[TolerancePoint]:
    """Yield points of the curves of the run time against latency and bandwidth of each level that has
    messages, and those at which it is longer by GROWTHS than `now_s`."""
    operations, given = once_rewritten(operations, given)
    given = replace(given, priced=given)  # collectives follow what is changed below

    def run_s(level: str, parameter: str, factor: float) -> float:
        factors = {item.name: factor for item in given.profile.level(level).protocols}
        changed = scaled_profile(given.profile, level, parameter, factors)
        return simulate_run(operations, replace(given, profile=changed))[1].end_of_run_s

    for level, latency_s, rate in _used_parameters(operations, given):
        for parameter, value in ((LATENCY, latency_s), (BANDWIDTH, rate)):
            if not value or not now_s:
                continue
            time_s = partial(run_s, level, parameter)
            curve = tolerance_curve(level, parameter, value, time_s, now_s, GROWTHS, TOLERANCE_PRECISION)
            points: list[tuple[float, float, float | None]] = [
                (factor, after_s, None) for factor, after_s in zip(curve.factors, curve.time_s, strict=True)
            ]
            points += [
                (found.factor, (1 + found.growth) * now_s, found.growth)
                for found in curve.tolerated
                if found.factor is not None
            ]
            for factor, after_s, growth in points:
                yield TolerancePoint(
                    level,
                    latency_s * (factor if parameter == LATENCY else 1.0),
                    rate * (factor if parameter == BANDWIDTH else 1.0),
                    after_s,
                    parameter,
                    growth,
                )


def predict_program(
    operations: Operations,
    as_recorded: Conditions,
    changes: Sequence[Change] = (),
    core_wait_share: float | None = None,
    with_tolerance: bool = False,
) -> SimulatedProgram:
    """Simulate the run as it was recorded, and with all changes together; `with_tolerance`, also with other
    latencies and bandwidths after them.

    `core_wait_share` is the part of the run in which ranks waited for cores, if that is known.
    """
    program, run = simulate_run(operations, as_recorded)
    of_run = awaited(operations, program, run)
    parts_s = time_parts(program, run, of_run)
    timelines = [
        recorded_timeline(operations),
        simulated_timeline(operations, run.end_s, parts_s, AS_RECORDED),
    ]
    before_s = run.end_of_run_s
    recorded_s = operations.recorded_s
    error = error_of(operations, before_s)
    notes = []
    if error > MAX_ERROR:
        notes.append(_most_wrong(operations, phases(operations, parts_s), core_wait_share))
    elif core_wait_share is not None and core_wait_share >= MIN_CORE_WAIT:
        notes.append(
            f"ranks waited for a core in {100 * core_wait_share:.0f} % of the run, which counts as "
            "computing: what even or faster computing gains is not known; give every rank a core and record "
            "again"
        )
    if operations.window:
        notes.append(f"only {operations.window} is simulated; {_edges(operations)}")
    changed, after_s = with_changes(as_recorded, changes), before_s
    ratios = changed_costs(operations, changed)
    simulated, after = operations, changed
    if changes:
        simulated, after = once_rewritten(operations, changed)
        program, run = simulate_run(simulated, after)
        of_run = awaited(simulated, program, run)
        parts_s = time_parts(program, run, of_run)
        timelines.append(simulated_timeline(simulated, run.end_s, parts_s, CHANGED))
        after_s = run.end_of_run_s
    notes += path_remarks(simulated, after.layout, after.measured)
    if remark := kept_remark(operations, recorded_s):
        notes.append(remark)
    if operations.num_unmatched:
        notes.append(
            f"{labels.counted(operations.num_unmatched, 'received message')} without a send in the events: "
            "the calls that received them do not wait for their senders"
        )
    if operations.early:
        notes.append(
            f"{', '.join(operations.early)}: messages that leave the root when it enters, as the recorded "
            "calls are shorter than the messages of any algorithm"
        )
    asked = Question(operations, as_recorded, before_s, changed, simulated, after, after_s)
    interval = interval_of(asked, core_wait_share if changes else None)
    share = collective_cost_share(simulated, np.isnan(ratios.value))
    if has_other_network(as_recorded, after) and share >= MIN_COLLECTIVE_SHARE:
        notes.append(
            f"collectives take {100 * share:.0f} % of the run without their waiting, and keep the recorded "
            "cost in this prediction; --algorithm makes them messages"
        )
    return SimulatedProgram(
        recorded_s=recorded_s,
        as_recorded_s=before_s,
        simulated_s=after_s,
        interval_s=(interval.low_s, interval.high_s),
        interval_parts=interval.parts,
        changes=tuple(change.text for change in changes),
        efficiency=efficiency(simulated, program, run),
        critical_path=tuple(critical_path(simulated, program, run, of_run)),
        phases=tuple(phases(simulated, parts_s)),
        num_ranks=operations.size,
        num_messages=len(operations.bytes),
        num_calls=operations.num_calls,
        profile_id=after.profile.id,
        core_wait_share=core_wait_share,
        notes=tuple(notes),
        layout=after.layout.text,
        window=operations.window,
        timelines=tuple(timelines),
        windows=tuple(windows(simulated, run.end_s, parts_s)),
        tolerance=tuple(tolerance(simulated, after, after_s)) if with_tolerance else (),
    )
