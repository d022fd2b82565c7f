"""Collectives whose data moves before the ranks that it goes to have entered."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.mpi_calls import OPERATIONS
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes
from earlybird.models.program import Semantics
from earlybird.models.schedules import schedule
from earlybird.record.collective_costs import Calls, kinds_of_calls, message_times_s
from earlybird.record.conditions import Conditions, conditions_as_recorded, simulate_run
from earlybird.record.message_changes import by_messages
from earlybird.record.operations import NEVER, Operations

# Of what the messages of the fastest algorithm take: calls that take less had data that moved before.
MAX_COST_OF_MESSAGES = 0.85
# Of the run: collectives that cost less are not worth a simulation.
MIN_EARLY_SHARE = 0.01
# How far from the recorded time a run with messages may be, as a part of what the calls cost.
MAX_EARLY_ERROR = 0.1
# With more messages of a kind it keeps its cost.
MAX_EARLY_MESSAGES = 1_000_000


def with_early_collectives(
    operations: Operations, profile: Profile, layout: Layout, kept: Collection[str] = ()
) -> Operations:
    """Return the operations with broadcasts and scatters as messages, if data moves before ranks enter.

    A rank that computes meanwhile finds a part of the data when it enters, so that the recorded cost is
    clearly less than the messages of any algorithm take. With it alone the part that was not seen would
    remain whatever a network or the computing becomes. The algorithm is the one with which the run takes
    nearest to its recorded time; if that is farther off than MAX_EARLY_ERROR, the cost remains, as that of
    operations of which the profile has forms.

    Parameters
    ----------
    operations : of a recording.
    profile, layout : of the recorded run.
    kept : operations, such as "bcast", whose cost remains.
    """
    kept = {*kept, *(form.operation for form in profile.collectives)}
    recorded, choices = operations, []
    for calls in _of_any_root(kinds_of_calls(operations)):
        first = calls.numbers[0]
        operation = OPERATIONS.get(operations.collective[first], "")
        cost_s = calls.cost_s * len(calls.numbers)
        is_rooted = operations.semantics[first] == Semantics.WAIT_FOR_ROOT
        if not is_rooted or operation in kept or cost_s < MIN_EARLY_SHARE * operations.recorded_s:
            continue
        given = conditions_as_recorded(operations, profile, layout)
        times_s = {name: time_s for name, time_s, _ in message_times_s(operation, calls, given, given)}
        if not times_s or calls.cost_s >= MAX_COST_OF_MESSAGES * min(times_s.values()):
            continue
        if names := _likely(operations, calls, operation, tuple(times_s), given):
            text = f"{calls.name} of {format_bytes(calls.size_bytes)} by {names[0]}"
            choices.append(_Choice(operation, calls.numbers, names))
            operations = replace(choices[-1].of(operations, names[0]), early=(*operations.early, text))
    return replace(operations, early_others=tuple(_others(recorded, choices))) if choices else operations


@dataclass(frozen=True, eq=False)
class _Choice:
    """The algorithms that explain the recorded time of a kind of calls, the nearest first."""

    operation: str
    numbers: np.ndarray
    names: list[str]

    def of(self, operations: Operations, name: str | None) -> Operations:
        """Return the operations with these calls by an algorithm; None: with their recorded cost."""
        if name is None:
            return operations
        return by_messages(operations, self.operation, name, self.numbers, NEVER)


def _others(recorded: Operations, choices: list[_Choice]) -> Iterator[Operations]:
    """Yield the operations with another algorithm of one kind, or its cost, and all others as chosen."""
    for changed in choices:
        for name in (*changed.names[1:], None):
            operations = recorded
            for choice in choices:
                operations = choice.of(operations, name if choice is changed else choice.names[0])
            yield operations


def _of_any_root(kinds: list[Calls]) -> list[Calls]:
    """Return the calls of all roots together."""
    together: dict[tuple[str, tuple[int, ...], int], list[Calls]] = {}
    for calls in kinds:
        together.setdefault((calls.name, calls.ranks, calls.size_bytes), []).append(calls)
    return [
        replace(
            several[0],
            numbers=np.sort(np.concatenate([calls.numbers for calls in several])),
            cost_s=float(np.median(np.repeat(
                [calls.cost_s for calls in several], [len(calls.numbers) for calls in several]
            ))),
        )
        for several in together.values()
    ]  # fmt: skip


def _likely(
    operations: Operations, calls: Calls, operation: str, names: tuple[str, ...], given: Conditions
) -> list[str]:
    """Return the algorithms with which the run takes about its recorded time, the nearest first."""
    cost_s = calls.cost_s * len(calls.numbers)
    found = []
    for name in names:
        messages = schedule(operation, name, len(calls.ranks), 0, calls.size_bytes)
        if len(messages.src) * len(calls.numbers) > MAX_EARLY_MESSAGES:
            continue
        changed = by_messages(operations, operation, name, calls.numbers, NEVER)
        try:
            _, run = simulate_run(changed, conditions_as_recorded(changed, given.profile, given.layout))
        except InputError:  # ranks that do not wait for each other might do so by this algorithm
            continue
        error_s = abs(run.end_of_run_s - operations.recorded_s)
        if error_s < MAX_EARLY_ERROR * cost_s:
            found.append((error_s, name))
    return [name for _, name in sorted(found, key=lambda row: row[0])]
