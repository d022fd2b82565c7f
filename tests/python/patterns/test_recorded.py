"""One epoch of a phase: whole numbers of messages in the right proportions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.phases import Phase, find_phases
from earlybird.patterns.recorded import _apportioned, exchange_of_phase, heaviest_phase, phase_of
from tests.recordings import in_memory, ring


def with_epochs(recording, epochs):
    phase = heaviest_phase(recording)
    return Phase(**(vars(phase) | {"epochs_of": dict.fromkeys(recording.ranks, epochs)}))


def test_messages_are_divided_by_the_epochs():
    recording = in_memory(3, [*ring(3, 20, 1000), (0, 2, 10, 8)])
    made = exchange_of_phase(recording, with_epochs(recording, 10))
    assert sorted(map(tuple, made.pattern.triples().tolist())) == [
        (0, 1, 1000), (0, 1, 1000), (0, 2, 8), (1, 2, 1000), (1, 2, 1000), (2, 0, 1000), (2, 0, 1000),
    ]  # fmt: skip
    assert made.num_unequal == 0


def test_a_message_to_a_different_rank_in_each_epoch_is_one_message():
    """Each of four epochs sends to one of the others, once with other sizes: the heaviest remainders win."""
    recording = in_memory(4, [(0, 1, 2, 100), (0, 2, 1, 100), (0, 3, 1, 100)])
    made = exchange_of_phase(recording, with_epochs(recording, 4))
    assert made.pattern.triples().tolist() == [[0, 1, 100]]
    assert made.num_unequal == 3


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1000)), max_size=30))
def test_apportioned_numbers_are_next_to_their_shares_and_have_their_sum(rows):
    groups = np.array([group for group, _ in rows], np.int64)
    shares = np.array([share for _, share in rows], float)
    whole = _apportioned(groups, shares)
    assert (np.abs(whole - shares) < 1).all()
    for group in set(groups.tolist()):
        of_group = groups == group
        assert abs(whole[of_group].sum() - shares[of_group].sum()) <= 0.5 + 1e-9 * len(rows)


def test_phases_are_chosen_by_number_or_by_bytes():
    recording = in_memory(2, ring(2))
    assert heaviest_phase(recording).functions == ["exchange"]
    assert [phase_of(recording, one.number).functions for one in find_phases(recording)] == [
        ["exchange"],
        ["sum"],
    ]
    with pytest.raises(InputError, match="phases 1 to 2, --phase is 3"):
        phase_of(recording, 3)
    with pytest.raises(InputError, match="no phase of rec has a message"):
        heaviest_phase(in_memory(2, []))
