"""Simulates a recorded run, as it was and with changes, and says where its time goes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pipeline_form import PipelineForm
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
from earlybird.models.program import Deadlock, Network, Operation, Program, SimulatedRun, simulate
from earlybird.predict.parts import bandwidth_up_to, table
from earlybird.predict.what_if import changed_profile, scaled_profile, tolerance_curve
from earlybird.record import message_changes
from earlybird.record.collective_costs import cost_ratios, scaled
from earlybird.record.early_messages import early_costs, measured_pipelines, path_remarks
from earlybird.record.operations import (
    ALWAYS,
    EARLY,
    NEVER,
    NO_SITE,
    SENDERS,
    Operations,
    kept_remark,
)
from earlybird.record.simulated_time import awaited, critical_path, phases, time_parts
from earlybird.record.timeline import recorded_timeline, simulated_timeline, windows

# The latency of a profile is half a round trip of small messages: what the sender and the receiver do for it
# and what lies between take a third each, since no run of the profile tells them apart.
OVERHEAD_SHARE = 1 / 3
_IDEAL_BYTES_PER_S = 1e18
_MAX_SITES = 12  # that an error names
_MIN_S = 1e-9
# Of the run: collectives that cost less need no remark if they keep their recorded cost.
MIN_COLLECTIVE_SHARE = 0.05
# Replicates of a profile that are simulated for the interval, and the largest program for which they are.
MAX_REPLICATES, MAX_REPLICATED_OPERATIONS = 20, 1_000_000
# By which a run is longer at the latencies and bandwidths that are searched, and how precise these are.
GROWTHS, TOLERANCE_PRECISION = (0.01, 0.05, 0.10), 1e-3


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a run is simulated under.

    Attributes
    ----------
    profile, layout : of messages and ranks.
    measured : the profile without the parameters that a change has set.
    compute_s : the seconds of all operations that compute, (N,), as the others in `Operations.own_s`.
    has_progress : whether messages move while ranks compute, as with a thread of the MPI for it.
    rewrites : what is done to the operations, one after the other, before they are simulated.
    priced : the profile and the layout of which the costs of collectives in `compute_s` are; None: of these.
    """

    profile: Profile
    layout: Layout
    measured: Profile
    compute_s: np.ndarray
    has_progress: bool = False
    rewrites: tuple[Callable[[Operations], Operations], ...] = ()
    priced: tuple[Profile, Layout] | None = None

    @property
    def costs_of(self) -> tuple[tuple[Profile, Layout], tuple[Profile, Layout]]:
        """Where the costs of collectives are from, and where they are to be."""
        here = self.measured, self.layout
        return self.priced or here, here


def conditions_as_recorded(operations: Operations, profile: Profile, layout: Layout) -> Conditions:
    if layout.num_ranks != operations.size:
        raise InputError(
            f"the recording has {operations.size} ranks and the layout {layout.text} has "
            f"{layout.num_ranks}; give a layout of {operations.size} ranks"
        )
    return Conditions(profile, layout, profile, operations.own_s, priced=(profile, layout))


@dataclass(frozen=True)
class _Cost:
    """The cost of the messages of a protocol: their latency, and BW(n) for n up to a number of receivers."""

    latency_s: float
    bandwidth_bytes_per_s: np.ndarray
    is_between: bool
    waits: bool


def _costs(given: Conditions, name: str, size_bytes: np.ndarray, most: int) -> tuple[np.ndarray, list[_Cost]]:
    """Return the cost of each size at a level, as an index, and the costs.

    The latency of a level is that of messages which follow each other; a message that is awaited takes that
    of the ping-pong at least, if the profile has it.
    """
    level, measured = given.profile.level(name), given.measured.level(name)
    protocol = level.protocol_index(size_bytes)
    _, lines = given.measured.ping_pong(name)
    starts = np.array([line.min_bytes for line in lines] or [0.0])
    line = np.maximum(np.searchsorted(starts, size_bytes, side="right") - 1, 0)
    kinds, number = np.unique(len(starts) * protocol + line, return_inverse=True)
    costs = []
    for kind in kinds.tolist():
        item, before = (of.protocols[kind // len(starts)] for of in (level, measured))
        alone_s = lines[kind % len(starts)].latency_s if lines else 0.0
        # What changes the latency of a level changes that of its ping-pong in proportion.
        changed = item.latency_s / before.latency_s if before.latency_s else 1.0
        rates = bandwidth_up_to([[table(level, item)]], most)[0, :, 0]
        latency_s = max(item.latency_s, alone_s * changed)
        costs.append(_Cost(latency_s, rates, name == "inter_node", bool(item.sender_waits)))
    return number.reshape(-1), costs


def _costs_of_early(
    given: Conditions, name: str, form: PipelineForm, size_bytes: np.ndarray, most: int
) -> tuple[np.ndarray, list[_Cost]]:
    """Return the same of messages in partitions, as far as the profile has measured them; what changes the
    level changes them in proportion."""
    of_level, level_costs = _costs(given, name, size_bytes, most)
    of_measured, measured_costs = _costs(replace(given, profile=given.measured), name, size_bytes, most)
    of_form, form_costs = early_costs(form, size_bytes)
    _, first, number = np.unique(len(form_costs) * of_level + of_form, return_index=True, return_inverse=True)
    costs = []
    for k in first.tolist():
        own, now, before = form_costs[of_form[k]], level_costs[of_level[k]], measured_costs[of_measured[k]]
        latency_s = own.latency_s * (now.latency_s / before.latency_s if before.latency_s else 1.0)
        rates = own.bandwidth_bytes_per_s * now.bandwidth_bytes_per_s / before.bandwidth_bytes_per_s[0]
        costs.append(_Cost(latency_s, rates, now.is_between, now.waits))
    return number.reshape(-1), costs


def _costs_by_message(
    operations: Operations, given: Conditions, most: int
) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, list[_Cost]]]]:
    """Yield messages that have costs in common, with these."""
    of_level = given.layout.level(operations.src, operations.dst)
    threads = max(map(len, operations.leads_s.values()), default=1)
    for k, name in enumerate(LEVELS):
        here = np.flatnonzero(of_level == k)
        early = here[operations.sender[here] == EARLY]
        form = measured_pipelines(given.measured, name, threads) if len(early) else None
        if form is not None:
            here = np.setdiff1d(here, early)
            yield early, _costs_of_early(given, name, form, operations.bytes[early], most)
        if len(here):
            yield here, _costs(given, name, operations.bytes[here], most)


def _network(operations: Operations, given: Conditions) -> tuple[Network, np.ndarray, np.ndarray]:
    """Return the network, the class of each message, and the (C,) overheads of senders."""
    layout = given.layout
    most = int(np.bincount(layout.node).max())
    costs: list[_Cost] = []
    number = np.zeros(len(operations.bytes), np.int64)
    for here, (own, of_own) in _costs_by_message(operations, given, most):
        number[here] = len(costs) + own
        costs += of_own
    if not costs:  # no messages
        costs = [_Cost(0.0, np.ones(most), False, False)]
    # A class is a cost and whether the sender waits in any case.
    num_senders = len(SENDERS)
    kinds, message_class = np.unique(num_senders * number + operations.sender, return_inverse=True)
    kinds = kinds if len(kinds) else np.zeros(1, np.int64)
    chosen = [costs[kind // num_senders] for kind in kinds.tolist()]
    always = kinds % num_senders
    waits = (np.array([cost.waits for cost in chosen]) | (always == ALWAYS)) & (always != NEVER)
    latency_s = np.array([cost.latency_s for cost in chosen])
    network = Network(
        layout.node, _groups(layout), np.column_stack([cost.bandwidth_bytes_per_s for cost in chosen]),
        latency_s * (1 - 2 * OVERHEAD_SHARE), latency_s * OVERHEAD_SHARE,
        np.array([cost.is_between for cost in chosen]), waits,
        waits & (always != EARLY) & (not given.has_progress),
    )  # fmt: skip
    return network, message_class.reshape(-1), latency_s * OVERHEAD_SHARE


def _groups(layout: Layout) -> np.ndarray:
    width = int(layout.socket.max(initial=0)) + 1
    return np.unique(layout.node * width + layout.socket, return_inverse=True)[1].reshape(-1)


def _program(
    operations: Operations, network: Network, message_class: np.ndarray, send_s: np.ndarray
) -> Program:
    """Return the program: the part of a send's duration for which its message does not wait follows it."""
    seconds = np.array(operations.own_s, float)
    sends = np.flatnonzero(operations.operation == Operation.SEND)
    of_message = operations.argument[sends]
    overhead_s = send_s[message_class[of_message]]
    seconds[sends] = overhead_s
    of_call = operations.send_wait[of_message] >= 0
    if of_call.any():
        rest_s = np.zeros(len(seconds))
        np.add.at(rest_s, operations.send_wait[of_message[of_call]], overhead_s[of_call])
        here = np.flatnonzero(rest_s)
        seconds[here] = np.maximum(seconds[here] - rest_s[here], 0.0)
        # A call that waits for its send takes as long as that takes.
        waits = network.waits[message_class[of_message]].astype(bool) & operations.is_blocking[of_message]
        waits &= of_call
        seconds[operations.send_wait[of_message[waits]]] = 0.0
    return Program(
        operations.size, operations.thread_rank, operations.first, operations.operation, seconds,
        operations.argument, operations.set_first, operations.set_requests, operations.bytes, message_class,
        operations.semantics, operations.root,
    )  # fmt: skip


def simulate_run(operations: Operations, given: Conditions) -> tuple[Program, SimulatedRun]:
    """Simulate the run under these conditions. Raises InputError if its profile lacks a level, and if ranks
    would wait for each other for ever. What is returned is of the operations of `rewritten`."""
    changed = rewritten(operations, given)
    network, message_class, send_s = _network(changed, given)
    program = _program(changed, network, message_class, send_s)
    return program, _simulated(changed, program, network)


def rewritten(operations: Operations, given: Conditions) -> Operations:
    """Return the operations that are simulated under these conditions."""
    changed = replace(operations, own_s=given.compute_s)
    changed = replace(changed, own_s=scaled(changed, cost_ratios(changed, *given.costs_of)))
    for rewrite in given.rewrites:
        changed = rewrite(changed)
    return changed


def once_rewritten(operations: Operations, given: Conditions) -> tuple[Operations, Conditions]:
    """Return what is simulated under these conditions, and conditions that leave it as it is."""
    changed = rewritten(operations, given)
    return changed, replace(given, compute_s=changed.own_s, rewrites=(), priced=None)


def _simulated(operations: Operations, program: Program, network: Network) -> SimulatedRun:
    try:
        return simulate(program, network)
    except Deadlock as error:
        call, place = operations.sites[max(int(operations.site[error.operation]), 0)]
        where = f" in {place}" if place else ""
        raise InputError(
            f"in the simulation rank {operations.rank[error.operation]} waits for ever in {call}{where}: the "
            "profile makes a send wait for its receiver that did not wait when it was recorded; give a "
            "profile of the MPI of the recording"
        ) from None


def ideal_s(operations: Operations, program: Program) -> float:
    """Return the run time on a network without latency, overheads and limits of bandwidth."""
    is_compute = program.operation == Operation.COMPUTE
    nothing, node = np.zeros(1), np.zeros(program.num_ranks, int)
    rate = np.full((1, 1), _IDEAL_BYTES_PER_S)
    network = Network(node, node, rate, nothing, nothing, nothing, nothing, nothing)
    bare = replace(
        program, operation_s=np.where(is_compute, program.operation_s, 0.0),
        message_class=np.zeros(len(program.message_bytes), int),
    )  # fmt: skip
    return _simulated(operations, bare, network).end_of_run_s


def efficiency(operations: Operations, program: Program, run: SimulatedRun) -> Efficiency:
    """Return the efficiencies of the POP project: load balance, serialization and transfer, and their
    product, the parallel efficiency. A rank's computing is that of its busiest thread."""
    is_compute = (program.operation == Operation.COMPUTE) & (operations.site != NO_SITE)
    thread = np.repeat(np.arange(len(program.thread_rank)), np.diff(program.first))
    of_thread_s = np.bincount(thread, program.operation_s * is_compute, len(program.thread_rank))
    of_rank_s = np.zeros(program.num_ranks)
    np.maximum.at(of_rank_s, program.thread_rank, of_thread_s)
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
    return Change(f"--to-profile {text}", lambda given: replace(given, profile=profile, measured=profile))


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


def _of_replicate(given: Conditions, k: int) -> Conditions:
    """Return the conditions with the k-th replicate of their profiles."""
    profile, measured = (
        replace(of, levels=of.replicates[k].levels) for of in (given.profile, given.measured)
    )
    return replace(given, profile=profile, measured=measured, priced=None)


@lru_cache(maxsize=1)
def _replicated_s(operations: Operations, given: Conditions, num: int) -> tuple[float, ...]:
    """Return the simulated seconds with each of `num` replicates of the profiles. Several changes of one
    program are compared with the same ones."""
    return tuple(simulate_run(operations, _of_replicate(given, k))[1].end_of_run_s for k in range(num))


def _spread(
    operations: Operations, before: Conditions, simulated: Operations, after: Conditions, ratio: float
) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of both times over the replicates of the profiles, relative to
    `ratio`; 1 and 1 without replicates, or if a simulation of them would take long."""
    profiles = (before.profile, after.profile, after.measured)
    num = min(MAX_REPLICATES, *(len(profile.replicates) for profile in profiles))
    if num < 2 or len(operations.operation) > MAX_REPLICATED_OPERATIONS:
        return 1.0, 1.0
    most = min(MAX_REPLICATES, len(before.profile.replicates))
    before_s = np.array(_replicated_s(operations, before, most)[:num])
    after_s = [simulate_run(simulated, _of_replicate(after, k))[1].end_of_run_s for k in range(num)]
    low, high = np.quantile(after_s / before_s / ratio, (0.025, 0.975)).tolist()
    return min(low, 1.0), max(high, 1.0)


def _with_kept_costs(
    simulated: Operations,
    given: Conditions,
    keeps_cost: np.ndarray,
    time_s: float,
    spread: tuple[float, float],
) -> tuple[float, float]:
    """Return the spread of a simulated time with another network: collectives whose cost there is not known,
    and that take a part of the run, may take nothing or twice as long."""
    if not time_s or collective_cost_share(simulated, keeps_cost) < MIN_COLLECTIVE_SHARE:
        return spread
    enters = np.flatnonzero(simulated.operation == Operation.ENTER)
    enters = enters[keeps_cost[simulated.argument[enters]]]
    ends = list(spread)
    for factor in (0.0, 2.0):
        seconds = np.array(given.compute_s, float)
        seconds[enters] *= factor
        ends.append(simulate_run(simulated, replace(given, compute_s=seconds))[1].end_of_run_s / time_s)
    return min(ends), max(ends)


def _has_other_network(before: Conditions, after: Conditions) -> bool:
    return after.profile is not before.profile or after.layout is not before.layout


def _interval(
    time_s: float, spread: tuple[float, float], error: float, core_wait_share: float | None
) -> tuple[float, float]:
    """Return the interval of a simulated time with changes: less and plus the error of the simulation as
    recorded. Where ranks waited for cores, a change may end all of that, or double it."""
    low_s, high_s = time_s * max(spread[0] - error, 0.0), time_s * (spread[1] + error)
    share = core_wait_share or 0.0
    return (low_s * (1 - share), high_s * (1 + share)) if share >= MIN_CORE_WAIT else (low_s, high_s)


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
    time_s = max(simulate_run(simulated, after)[1].end_of_run_s, _MIN_S)
    error = abs(as_recorded_s / operations.recorded_s - 1) if operations.recorded_s else 0.0
    spread = _spread(operations, as_recorded, simulated, after, time_s / max(as_recorded_s, _MIN_S))
    if _has_other_network(as_recorded, changed):
        keeps_cost = np.isnan(cost_ratios(operations, *changed.costs_of))
        spread = _with_kept_costs(simulated, after, keeps_cost, time_s, spread)
    low_s, high_s = _interval(time_s, spread, error, core_wait_share)
    ratios = (as_recorded_s / max(end_s, _MIN_S) for end_s in (time_s, high_s, low_s))
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


def collective_cost_share(operations: Operations, keeps_cost: np.ndarray) -> float:
    """Return the cost of those collectives that keep the recorded one, without their waiting, as a part of
    the run of all ranks."""
    is_collective = np.array([bool(name) for name in operations.collective], bool) & keeps_cost
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    enters = enters[is_collective[operations.argument[enters]]]
    run_s = operations.recorded_s * operations.size
    return float(operations.own_s[enters].sum()) / run_s if run_s else 0.0


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
    error = abs(before_s / recorded_s - 1) if recorded_s else 0.0
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
    after, after_s = with_changes(as_recorded, changes), before_s
    keeps_cost = np.isnan(cost_ratios(operations, *after.costs_of))
    low, high = 1.0, 1.0
    simulated = operations
    if changes:
        simulated, after = once_rewritten(operations, after)
        program, run = simulate_run(simulated, after)
        of_run = awaited(simulated, program, run)
        parts_s = time_parts(program, run, of_run)
        timelines.append(simulated_timeline(simulated, run.end_s, parts_s, CHANGED))
        after_s = run.end_of_run_s
        if before_s and after_s:
            low, high = _spread(operations, as_recorded, simulated, after, after_s / before_s)
        if _has_other_network(as_recorded, after):
            low, high = _with_kept_costs(simulated, after, keeps_cost, after_s, (low, high))
    notes += path_remarks(simulated, after.layout, after.measured)
    if remark := kept_remark(operations, recorded_s):
        notes.append(remark)
    if operations.num_unmatched:
        notes.append(
            f"{labels.counted(operations.num_unmatched, 'received message')} without a send in the events: "
            "the calls that received them do not wait for their senders"
        )
    share = collective_cost_share(simulated, keeps_cost)
    if _has_other_network(as_recorded, after) and share >= MIN_COLLECTIVE_SHARE:
        notes.append(
            f"collectives take {100 * share:.0f} % of the run without their waiting, and keep the recorded "
            "cost in this prediction; --algorithm makes them messages"
        )
    return SimulatedProgram(
        recorded_s=recorded_s,
        as_recorded_s=before_s,
        simulated_s=after_s,
        interval_s=_interval(after_s, (low, high), error, core_wait_share if changes else None),
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
        timelines=tuple(timelines),
        windows=tuple(windows(simulated, run.end_s, parts_s)),
        tolerance=tuple(tolerance(simulated, after, after_s)) if with_tolerance else (),
    )
