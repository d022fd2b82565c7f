"""The exchanges of a phase: those of real epochs, and never one that did not happen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.phases import Phase, find_phases
from earlybird.data.recorded_rank import CONCURRENT, EpochSamples
from earlybird.patterns.recorded import heaviest_phase, phase_of
from earlybird.patterns.recorded_epochs import exchange_of_phase, exchanges_of_phase
from tests.recordings import in_memory, of_epochs, ring


def with_epochs(recording, epochs):
    phase = heaviest_phase(recording)
    return Phase(**(vars(phase) | {"epochs_of": dict.fromkeys(recording.ranks, epochs)}))


def without_samples(recording):
    ranks = {rank: replace(one, epoch_samples={}) for rank, one in recording.ranks.items()}
    return replace(recording, ranks=ranks)


def exchanges_of(recording, **options):
    return exchanges_of_phase(recording, heaviest_phase(recording), **options)


def messages_of(made):
    return sorted(map(tuple, made.pattern.triples().tolist()))


def shift(size, by, each=1000):
    return [(rank, (rank + by) % size, 1, each) for rank in range(size)]


def shifts(size, rounds):
    """Each rank sends to every other one in turn."""
    return [shift(size, by) for _ in range(rounds) for by in range(1, size)]


def pairwise(size, rounds):
    """The exchanges of an all-to-all by pairs: rank r with rank r XOR k."""
    return [[(rank, rank ^ k, 1, 500) for rank in range(size)] for _ in range(rounds) for k in range(1, size)]


def test_messages_are_divided_by_the_epochs():
    recording = in_memory(3, [*ring(3, 20, 1000), (0, 1, 10, 8)])
    made = exchange_of_phase(recording, with_epochs(recording, 10))
    assert messages_of(made) == [
        (0, 1, 8), (0, 1, 1000), (0, 1, 1000), (1, 2, 1000), (1, 2, 1000), (2, 0, 1000), (2, 0, 1000),
    ]  # fmt: skip
    assert made.num_unequal == 0


def test_sums_that_are_of_no_single_epoch_are_refused():
    """A message to each of the others in turn: one epoch sends one of them, which the sums do not say."""
    recording = in_memory(4, [(0, 1, 2, 100), (0, 2, 1, 100), (0, 3, 1, 100)])
    with pytest.raises(
        InputError, match="may differ between its epochs, and this recording keeps only their sums"
    ):
        exchange_of_phase(recording, with_epochs(recording, 4))
    with pytest.raises(InputError, match="record the program again"):
        exchanges_of(without_samples(of_epochs(4, shifts(4, 5))))


def test_sums_that_the_epochs_divide_by_chance_are_no_exchange_with_all():
    """Three messages to each of the others in turn: the sums are those of one to each in every epoch."""
    turns = [[(src, dst, 3, each) for src, dst, _, each in messages] for messages in shifts(4, 10)]
    with pytest.raises(InputError, match="keeps only their sums; record the program again"):
        exchanges_of(without_samples(of_epochs(4, turns)))
    # What was sent in the only epoch is known.
    made = exchanges_of(without_samples(of_epochs(4, [[message for one in shifts(4, 1) for message in one]])))
    assert len(made.exchange(0).pattern.bytes) == 12


def test_messages_of_changing_size_get_their_mean_where_only_sums_are_known():
    recording = in_memory(2, [(0, 1, 3, 1000), (0, 1, 1, 1100), (1, 0, 4, 8)])
    made = exchange_of_phase(recording, with_epochs(recording, 4))
    assert messages_of(made) == [(0, 1, 1025), (1, 0, 8)] and made.num_unequal == 1


@pytest.mark.parametrize("size", [3, 4, 7])
def test_a_shift_by_turns_is_as_many_exchanges_as_there_are_turns(size):
    recording = of_epochs(size, shifts(size, 5))
    made = exchanges_of(recording)
    assert made.counts.tolist() == [5] * (size - 1) and made.epochs == 5 * (size - 1)
    for number in range(len(made)):
        exchange = messages_of(made.exchange(number))
        assert exchange == [(src, dst, size) for src, dst, _, size in sorted(shift(size, number + 1))]
    with pytest.raises(InputError, match=f"{size - 1} different exchanges"):
        exchange_of_phase(recording, heaviest_phase(recording))


def test_a_pairwise_exchange_of_all_is_never_an_incast():
    made = exchanges_of(of_epochs(8, pairwise(8, 2)))
    for number in range(len(made)):
        pattern = made.exchange(number).pattern
        assert np.bincount(pattern.dst).tolist() == np.bincount(pattern.src).tolist() == [1] * 8
    assert len(made) == 7


def test_epochs_that_are_alike_on_each_rank_are_one_exchange():
    made = exchanges_of(of_epochs(4, [ring(4)] * 6))
    assert (len(made), made.epochs) == (1, 6)
    assert messages_of(made.exchange(0)) == [(src, dst, each) for src, dst, _, each in sorted(ring(4) * 3)]


def test_the_most_frequent_exchange_comes_first_and_each_epoch_can_be_chosen():
    rare, usual = shift(4, 1), shift(4, 2)
    made = exchanges_of(of_epochs(4, [rare, usual, usual, rare, usual]))
    assert made.counts.tolist() == [3, 2]
    assert [made.epoch_of(number) for number in range(2)] == [1, 0]
    assert [made.number_of(epoch) for epoch in range(5)] == [1, 0, 0, 1, 0]
    with pytest.raises(InputError, match="epochs 1 to 5, given is 6"):
        made.number_of(5)
    assert made.drawn(8) == [(0, 0.6), (1, 0.4)]


def test_of_many_epochs_those_that_were_kept_count():
    made = exchanges_of(of_epochs(4, shifts(4, 100), kept={0, 1, 2, 7, 150, 151}))
    assert (made.epochs, made.counts.sum()) == (300, 6)
    with pytest.raises(
        InputError, match="epoch 101 is not among the 6 of 300 that were kept; next to it is 8, 151"
    ):
        made.number_of(100)


def test_of_many_exchanges_some_are_drawn_without_a_period():
    """Every eighth epoch of a rotation over four would always be the same."""
    made = exchanges_of(of_epochs(3, [shift(3, 1, each=each) for each in range(1, 65)]))
    drawn = made.drawn(8)
    assert len(drawn) == 8 and sum(share for _, share in drawn) == pytest.approx(1)
    assert drawn == made.drawn(8)
    assert len({number % 8 for number, _ in drawn}) > 1


def test_sizes_that_change_from_epoch_to_epoch_are_kept():
    made = exchanges_of(of_epochs(2, [[(0, 1, 1, 100 + k)] for k in range(3)]))
    assert [messages_of(made.exchange(k)) for k in range(3)] == [[(0, 1, 100 + k)] for k in range(3)]
    combined = exchanges_of(of_epochs(2, [[(0, 1, 2, 100), (0, 1, 1, 7)]] * 2), combined=True)
    assert messages_of(combined.exchange(0)) == [(0, 1, 207)]


def test_the_messages_of_a_rank_without_a_file_are_those_that_others_received():
    made = exchanges_of(of_epochs(4, shifts(4, 3), absent={2}))
    assert len(made) == 3
    for number in range(3):
        of_others = [
            (src, dst, each) for src, dst, _, each in sorted(shift(4, number + 1)) if dst != 2 or src != 2
        ]
        assert messages_of(made.exchange(number)) == of_others


def in_two_directions(size, steps):
    """Each step sends up the line and then down: border ranks only send in the one, and then receive."""
    up = [(rank, rank + 1, 1, 64) for rank in range(size - 1)]
    return [direction for _ in range(steps) for direction in (up, [(dst, src, 1, 64) for src, dst, *_ in up])]


def test_a_rank_with_other_calls_in_each_direction_sends_what_its_neighbour_received():
    """Its epochs are of two phases of its own file, so which came when is not known from it alone."""
    recording = of_epochs(4, in_two_directions(4, 5))
    for rank in (0, 3):
        one = recording.ranks[rank]
        (samples,) = one.epoch_samples.values()
        parts = {}
        for number, role in ((1, 1), (7, 2)):
            variants = [rows for rows in samples.variants if (rows["role"] == role).all()]
            parts[number, 0] = EpochSamples(np.arange(5), np.zeros(5, int), tuple(variants))
        entries = one.entries.copy()
        entries["phase"][entries["role"] == 2] = 7
        phases = {number: replace(one.phases[1], epochs=5) for number in (1, 7)}
        recording.ranks[rank] = replace(
            one, epoch_samples=parts, entries=entries, phases={**one.phases, **phases}
        )
    phase = heaviest_phase(recording)
    phase = replace(
        phase, of_ranks=phase.of_ranks | {0: (1, 7), 3: (1, 7)}, epochs_of=dict.fromkeys(range(4), 10)
    )
    made = exchanges_of_phase(recording, phase)
    assert made.counts.tolist() == [5, 5]
    assert messages_of(made.exchange(0)) == [(0, 1, 64), (1, 2, 64), (2, 3, 64)]
    assert messages_of(made.exchange(1)) == [(1, 0, 64), (2, 1, 64), (3, 2, 64)]


def test_epochs_that_do_not_correspond_are_refused():
    """Rank 1 receives what rank 0 sends an epoch later."""
    recording = of_epochs(2, [[(0, 1, 1, 8)], [(0, 1, 2, 8)], [(0, 1, 3, 8)]])
    one = recording.ranks[1]
    samples = one.epoch_samples[1, 0]
    turned = replace(samples, variant=np.array([2, 0, 1]))
    recording.ranks[1] = replace(one, epoch_samples={(1, 0): turned})
    with pytest.raises(InputError, match="do not correspond on all ranks"):
        exchanges_of(recording)


def test_epochs_that_correspond_at_first_only_are_refused():
    """Ranks 2 and 3 skip one exchange, ranks 0 and 1 a later one: in between they are one epoch apart."""

    def epochs_of(rank):
        return {k for k in range(240) if k != (100 if rank >= 2 else 200)}

    epochs = [[(rank, rank ^ (1 + k % 3), 1, 1000) for rank in range(4)] for k in range(240)]
    for skipped, of_ranks in ((100, (0, 1)), (200, (2, 3))):
        epochs[skipped] = [(rank, rank ^ 1, 1, 1000) for rank in of_ranks]
    recording = of_epochs(4, epochs, own_epochs=epochs_of)
    assert set(heaviest_phase(recording).epochs_of.values()) == {239}
    with pytest.raises(InputError, match="received in another, first in epoch 101; call MPI_Pcontrol"):
        exchanges_of(recording)


def test_a_rank_that_missed_epochs_is_not_compared_by_their_numbers():
    """Rank 0 has no part in every third epoch, so its epoch 2 is the third one of the others: its messages
    are what they received."""
    epochs = [shift(4, 1), shift(4, 2), [(1, 2, 1, 9), (2, 3, 1, 9), (3, 1, 1, 9)]] * 4
    recording = of_epochs(4, epochs, own_epochs=lambda rank: {k for k in range(12) if rank or k % 3 < 2})
    made = exchanges_of(recording)
    assert made.epochs == 12 and len(made) == 3
    expected = [sorted((src, dst, each) for src, dst, _, each in messages) for messages in epochs[:3]]
    assert [messages_of(made.exchange(number)) for number in range(3)] == expected


def test_where_memory_did_not_suffice_it_is_said():
    recording = of_epochs(4, shifts(4, 2))
    for rank, one in recording.ranks.items():
        empty = EpochSamples(*np.empty((2, 0), np.int64), (), is_complete=False)
        recording.ranks[rank] = replace(one, epoch_samples={(1, 0): empty})
    with pytest.raises(InputError, match="rank 0 had too many different ones to keep"):
        exchanges_of(recording)


def test_threads_that_send_at_once_are_one_epoch():
    recording = of_epochs(2, [[(0, 1, 1, 8)], [(0, 1, 1, 16)]], thread_level=CONCURRENT)
    for rank, one in recording.ranks.items():
        samples = one.epoch_samples[1, 0]
        recording.ranks[rank] = replace(one, epoch_samples={(1, 0): samples, (1, 1): samples})
    made = exchanges_of(recording)
    assert [messages_of(made.exchange(k)) for k in range(2)] == [[(0, 1, 8)] * 2, [(0, 1, 16)] * 2]


@given(st.integers(2, 5).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.lists(
            st.lists(
                st.tuples(*[st.integers(0, size - 1)] * 2, st.integers(1, 3), st.integers(0, 99)),
                max_size=4,
            ),
            min_size=1, max_size=6,
        ),
    )
))  # fmt: skip
def test_every_exchange_is_one_that_happened(drawn):
    size, epochs = drawn
    recording = of_epochs(size, epochs)
    made = exchanges_of_phase(recording, phase_of(recording, 1))
    happened = [
        sorted((src, dst, each) for src, dst, count, each in messages for _ in range(count) if src != dst)
        for messages in epochs
    ]
    for epoch, messages in enumerate(happened):
        if len(made) > 1 or epoch in made.sampled:
            assert messages_of(made.exchange(made.number_of(epoch))) == messages
    assert made.counts.sum() == len(made.sampled)


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
