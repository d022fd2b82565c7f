"""Phases with the same calls in the same functions are printed with what tells them apart."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.analysis.phase_names import distinctions
from earlybird.data.phases import find_phases
from earlybird.data.recorded_rank import Step
from tests.recordings import CALLS, STEPS, in_memory


def two_directions(size=3, steps=lambda number: {}, each=(64, 64)):
    """A recording with two phases of the same calls in `exchange`: up the line and down."""
    up = [(rank, rank + 1, 1, each[0]) for rank in range(size - 1)]
    down = [(rank + 1, rank, 1, each[1]) for rank in range(size - 1)]
    recording, of_down = in_memory(size, up), in_memory(size, down)
    ranks = {}
    for rank, one in recording.ranks.items():
        rows = of_down.ranks[rank].entries.copy()
        rows["phase"] = 9
        entries = one.entries[one.entries["phase"] != 9]
        made = {
            number: replace(
                one.phases[1],
                steps=tuple(
                    Step(CALLS[call], "/bin/app", 100 * number + call, "exchange", **steps(number))
                    for call in STEPS[1]
                ),
            )
            for number in (1, 9)
        }
        entries = np.concatenate([entries, rows[rows["role"] > 0]])
        ranks[rank] = replace(one, entries=entries, phases=made)
    return replace(recording, ranks=ranks)


def names_of(recording):
    phases = find_phases(recording)
    assert len({(tuple(phase.calls), tuple(phase.functions)) for phase in phases}) == 1
    return set(distinctions(recording, phases).values())


def test_two_directions_of_a_halo_are_told_apart_by_them():
    assert names_of(two_directions()) == {"to rank +1", "to rank -1"}


def test_the_line_of_the_source_comes_first():
    recording = two_directions(steps=lambda number: {"file": "/src/halo.c", "line": 30 + number})
    assert names_of(recording) == {"halo.c:31", "halo.c:39"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_phase_without_its_like_needs_nothing(number):
    recording = in_memory(3, [(0, 1, 1, 8)])
    assert distinctions(recording, find_phases(recording))[number] == ""
