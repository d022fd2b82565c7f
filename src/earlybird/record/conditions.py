"""The conditions that a recorded run is simulated under, and its simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.profile import Profile
from earlybird.models.program import Deadlock, Network, Operation, Program, SimulatedRun, simulate
from earlybird.record.collective_costs import CostRatios, cost_ratios, scaled
from earlybird.record.network import Place, moves_alone, network_of, program_of, reuse_of
from earlybird.record.operations import NO_SITE, Operations

_IDEAL_BYTES_PER_S = 1e18


@dataclass(frozen=True, eq=False, kw_only=True)
class Conditions(Place):
    """What a run is simulated under, besides the place.

    Attributes
    ----------
    compute_s : the seconds of all operations that compute, (N,), as the others in `Operations.own_s`.
    rewrites : what is done to the operations, one after the other, before they are simulated.
    priced : the place of which the costs of collectives in `compute_s` are; None: this one.
    """

    compute_s: np.ndarray
    rewrites: tuple[Callable[[Operations], Operations], ...] = ()
    priced: Place | None = None


def conditions_as_recorded(operations: Operations, profile: Profile, layout: Layout) -> Conditions:
    if layout.num_ranks != operations.size:
        raise InputError(
            f"the recording has {operations.size} ranks and the layout {layout.text} has "
            f"{layout.num_ranks}; give a layout of {operations.size} ranks"
        )
    place = Place(profile, layout, profile, moves_alone(profile), reuse_of(operations, profile, layout))
    return Conditions(
        profile, layout, profile, place.has_progress, place.reuse, compute_s=operations.own_s, priced=place,
        recorded=(layout, str(profile.context.get("flavour", ""))),
    )  # fmt: skip


def changed_costs(operations: Operations, given: Conditions) -> CostRatios:
    """Return by how much longer collectives take than where their costs are from."""
    return cost_ratios(operations, given.priced or given, given)


def simulate_run(operations: Operations, given: Conditions) -> tuple[Program, SimulatedRun]:
    """Simulate the run under these conditions. Raises InputError if its profile lacks a level, and if ranks
    would wait for each other for ever. What is returned is of the operations of `rewritten`."""
    changed = rewritten(operations, given)
    network, message_class, send_s = network_of(changed, given)
    program = program_of(
        changed, network, message_class, send_s, given.has_moved(changed.src, changed.dst)
    )  # fmt: skip
    return program, simulated_program(changed, program, network)


def rewritten(operations: Operations, given: Conditions) -> Operations:
    """Return the operations that are simulated under these conditions."""
    changed = replace(operations, own_s=given.compute_s)
    changed = replace(changed, own_s=scaled(changed, changed_costs(operations, given).value))
    for rewrite in given.rewrites:
        changed = rewrite(changed)
    return changed


def once_rewritten(operations: Operations, given: Conditions) -> tuple[Operations, Conditions]:
    """Return what is simulated under these conditions, and conditions that leave it as it is."""
    given = replace(given, reuse=reuse_of(operations, given.measured, given.layout))
    changed = rewritten(operations, given)
    return changed, replace(given, compute_s=changed.own_s, rewrites=(), priced=None)


def simulated_program(operations: Operations, program: Program, network: Network) -> SimulatedRun:
    try:
        return simulate(program, network)
    except Deadlock as error:
        raise InputError(_deadlock_text(operations, error.operation)) from None


def _deadlock_text(operations: Operations, waiting: int) -> str:
    site, who = int(operations.site[waiting]), f"rank {operations.rank[waiting]}"
    if site == NO_SITE:  # only new threads wait before their first call
        who, what = f"a thread of {who}", "for the thread that creates it"
    else:
        call, place = operations.sites[site]
        what = f"in {call} in {place}" if place else f"in {call}"
    why = "the profile makes a send wait for its receiver that did not wait when it was recorded"
    advice = "give a profile of the MPI of the recording"
    if operations.is_of_threads[waiting]:
        why += ", or the events of its threads are damaged"
        advice += ", or record the program again"
    return f"in the simulation {who} waits for ever {what}: {why}; {advice}"


def ideal_s(operations: Operations, program: Program) -> float:
    """Return the run time on a network without latency, overheads and limits of bandwidth."""
    is_compute = program.operation == Operation.COMPUTE
    nothing, node = np.zeros(1), np.zeros(program.num_ranks, int)
    rate = np.full((1, 1), _IDEAL_BYTES_PER_S)
    network = Network(node, node, rate, nothing, nothing, nothing, nothing, nothing, nothing)
    bare = replace(
        program, operation_s=np.where(is_compute, program.operation_s, 0.0),
        message_class=np.zeros(len(program.message_bytes), int),
    )  # fmt: skip
    return simulated_program(operations, bare, network).end_of_run_s
