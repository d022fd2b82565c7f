"""Broadcasts whose data moves while the ranks that it goes to compute."""

from dataclasses import replace

import pytest

from earlybird.data.layout import parse_layout
from earlybird.models.program import Operation, Semantics
from earlybird.record import simulation
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.early_collectives import with_early_collectives
from tests.python.models.program_texts import Written
from tests.python.record.test_message_changes import PROFILE, operations_of
from tests.python.record.test_simulation import BANDWIDTH, LATENCY_S

SIZE, CALLS = 6_000_000, 20
MOVING_S = SIZE / BANDWIDTH
COMPUTE_S = MOVING_S / 2
LAYOUT = parse_layout("2x1x1", "core")


def broadcasts(costs_s, call="MPI_Bcast"):
    """Rank 0 computes and broadcasts again and again, without waiting; rank 1 computes and receives."""
    written = Written(range(2))
    for cost_s in costs_s:
        k = written.collective(Semantics.WAIT_FOR_ROOT, 0)
        for rank, own_s in enumerate((0.0, cost_s)):
            written.add(rank, "compute", COMPUTE_S)
            written.add(rank, "wait", [written.add(rank, "enter", k, own_s)], 0.0)
    recorded_s = COMPUTE_S * len(costs_s) + sum(costs_s)
    return replace(operations_of(written, [call] * len(costs_s), SIZE), recorded_s=recorded_s)


EARLY = [MOVING_S] + [MOVING_S - COMPUTE_S] * (CALLS - 1)


def test_broadcast_that_moved_before_is_hidden_behind_computing_on_a_faster_network():
    operations = with_early_collectives(broadcasts(EARLY), PROFILE, LAYOUT)
    assert operations.early == ("MPI_Bcast of 5.72 MiB by linear",)
    assert not (operations.operation == Operation.ENTER).any()
    given = conditions_as_recorded(operations, PROFILE, LAYOUT)
    faster = simulation.settings_change(["inter_node.bandwidth=4x"])
    found = simulation.predict_program(operations, given, [faster])
    assert found.as_recorded_s == pytest.approx(operations.recorded_s, rel=0.01)
    # All but the last are there when rank 1 comes.
    assert found.simulated_s == pytest.approx(CALLS * COMPUTE_S + MOVING_S / 4, abs=2 * CALLS * LATENCY_S)
    assert any("messages that leave the root when it enters" in note for note in found.notes)


@pytest.mark.parametrize(
    ("operations", "kept"),
    [
        (broadcasts([MOVING_S] * CALLS), ()),  # rank 1 waits for all of the data
        (broadcasts(EARLY), ("bcast",)),
        (replace(broadcasts(EARLY), recorded_s=2 * CALLS * MOVING_S), ()),  # no messages take so long
        (broadcasts(EARLY, call="MPI_Scatterv"), ()),  # whose messages are not known
    ],
)
def test_cost_of_other_broadcasts_remains(operations, kept):
    assert with_early_collectives(operations, PROFILE, LAYOUT, kept) is operations


def test_others_of_one_kind_have_the_other_kind_as_chosen():
    operations = broadcasts(EARLY + EARLY)
    size_bytes = operations.collective_bytes.copy()
    size_bytes[CALLS:] += 8
    operations = replace(operations, collective_bytes=size_bytes)
    found = with_early_collectives(operations, PROFILE, LAYOUT)
    assert len(found.early) == 2
    # With two ranks all algorithms are one message: in the last of each kind its cost remains.
    enters = [int((of.operation == Operation.ENTER).sum()) for of in found.early_others]
    assert max(enters) == 2 * CALLS and enters[-1] == 2 * CALLS
    assert not any(of.early_others for of in found.early_others)
