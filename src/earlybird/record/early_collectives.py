"""Collectives whose data moves before the ranks that it goes to have entered."""

from collections.abc import Collection
from dataclasses import replace

from earlybird.data.layout import Layout
from earlybird.data.mpi_calls import OPERATIONS
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes
from earlybird.models.program import Semantics
from earlybird.record.collective_costs import MAX_KINDS, Calls, kinds_of_calls, message_times_s
from earlybird.record.conditions import Conditions, conditions_as_recorded, simulate_run
from earlybird.record.message_changes import by_messages
from earlybird.record.operations import NEVER, Operations

# Of what the messages of the fastest algorithm take: calls that take less had data that moved before.
MAX_COST_OF_MESSAGES = 0.85
# Of the run: collectives that cost less are not worth a simulation.
MIN_EARLY_SHARE = 0.01
# How far from the recorded time a run with messages may be.
MAX_EARLY_ERROR = 0.05


def with_early_collectives(
    operations: Operations, profile: Profile, layout: Layout, kept: Collection[str] = ()
) -> Operations:
    """Return the operations with broadcasts and scatters as messages, if these begin when the root enters.

    A rank that computes meanwhile finds a part of the data when it enters, so that the recorded cost is less
    than the messages of any algorithm take. With it alone the part that was not seen would remain whatever a
    network or the computing becomes. The algorithm is the one with which the run takes nearest to its
    recorded time; if that is farther off than MAX_EARLY_ERROR, the cost remains.

    Parameters
    ----------
    operations : of a recording.
    profile, layout : of the recorded run.
    kept : operations, such as "bcast", whose cost remains.
    """
    given = conditions_as_recorded(operations, profile, layout)
    for calls in kinds_of_calls(operations)[:MAX_KINDS]:
        first = calls.numbers[0]
        operation = OPERATIONS.get(operations.collective[first], "")
        if operations.semantics[first] != Semantics.WAIT_FOR_ROOT or operation in kept:
            continue
        if not _is_early(operations, calls, operation, given):
            continue
        operations = _nearest(operations, calls, operation, profile, layout)
        given = conditions_as_recorded(operations, profile, layout)
    return operations


def _is_early(operations: Operations, calls: Calls, operation: str, given: Conditions) -> bool:
    if calls.cost_s * len(calls.numbers) < MIN_EARLY_SHARE * operations.recorded_s:
        return False
    times_s = [before_s for _, before_s, _ in message_times_s(operation, calls, given, given)]
    return bool(times_s) and calls.cost_s < MAX_COST_OF_MESSAGES * min(times_s)


def _nearest(
    operations: Operations, calls: Calls, operation: str, profile: Profile, layout: Layout
) -> Operations:
    best, least = operations, MAX_EARLY_ERROR
    given = conditions_as_recorded(operations, profile, layout)
    for name, _, _ in message_times_s(operation, calls, given, given):
        changed = by_messages(operations, operation, name, calls.numbers, NEVER)
        run_s = simulate_run(changed, conditions_as_recorded(changed, profile, layout))[1].end_of_run_s
        error = abs(run_s / operations.recorded_s - 1)
        if error < least:
            call = operations.collective[calls.numbers[0]]
            text = f"{call} of {format_bytes(calls.size_bytes)} by {name}"
            best, least = replace(changed, early=(*operations.early, text)), error
    return best
