"""The search among the planner's proposals, by the times of the starts that try them."""

import itertools
from collections import Counter
from ctypes import byref
from dataclasses import dataclass

import numpy as np
import pytest

from tests.core_library import PLAN_MAX_CUTS, Confirmation, Observation, Proposal, Search, compile_core


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return compile_core(tmp_path_factory.mktemp("core"))


@dataclass
class Truth:
    """What a cut really takes, and the sends before the last partition that hold the program up."""

    after_s: float
    held_up_s: float = 0.0

    @property
    def total_s(self):
        return self.after_s + self.held_up_s


def search_of(core, cuts):
    """A search among cuts given as (number of segments, predicted time)."""
    proposals = (Proposal * PLAN_MAX_CUTS)()
    for place, (num, predicted_s) in enumerate(cuts):
        proposals[place].cut.num = num
        proposals[place].predicted_s = predicted_s
    search = Search()
    core.eb_search_begin(byref(search), len(cuts), proposals)
    return search


def complete(core, cuts, truths, random, ahead_s=0.0, noise=0.0, lost=0.0, further_s=0.0, **rules):
    """Starts from 3 on, each seen two starts later as in a channel: the search, and the number of segments of
    every start."""
    search = search_of(core, cuts)
    search.further_s = further_s
    for rule, holds in rules.items():
        setattr(search, rule, holds)
    tried = {}
    for start in itertools.count(3):
        if start - 3 in tried and random.random() >= lost:
            truth = truths[tried[start - 3]]
            disturbed = noise * truth.after_s * random.exponential()
            observed = Observation(
                ahead_s + truth.after_s + disturbed, 1e-3 + truth.held_up_s, truth.held_up_s
            )
            core.eb_search_observe(byref(search), start - 3, byref(observed))
        cut = core.eb_search_next(byref(search), start)
        if not cut:
            break
        tried[start] = cut.contents.num
    return search, tried


def run(core, cuts, truths, random, **conditions):
    """The number of segments that a search chooses, and that of every start."""
    search, tried = complete(core, cuts, truths, random, **conditions)
    return core.eb_search_best(byref(search)).contents.cut.num, tried


CUTS = [(4, 5e-6), (8, 5.5e-6), (2, 6e-6), (16, 7e-6), (1, 9e-6)]


@pytest.mark.parametrize("ahead_s", [0, 1000, -1000], ids="clocks {} apart".format)
@pytest.mark.parametrize("best", [1, 2, 4, 8, 16])
def test_the_search_finds_the_fastest_whatever_was_predicted(core, best, ahead_s):
    truths = {num: Truth(20e-6 if num == best else 26e-6) for num, _ in CUTS}
    found, tried = run(core, CUTS, truths, np.random.default_rng(best), ahead_s=ahead_s)
    assert found == best
    assert set(tried.values()) == {num for num, _ in CUTS}
    assert len(tried) <= 38


def test_the_search_bears_noise(core):
    random = np.random.default_rng(7)
    regrets = []
    for _ in range(200):
        truths = {num: Truth(1e-5 * 2 ** random.uniform(0, 2)) for num, _ in CUTS}
        found, _ = run(core, CUTS, truths, random, noise=0.1, lost=0.1)
        regrets.append(truths[found].total_s / min(truth.total_s for truth in truths.values()))
    assert np.exp(np.mean(np.log(regrets))) < 1.02


def test_what_is_much_slower_gets_one_turn(core):
    truths = {1: Truth(10e-6), 2: Truth(11e-6), 4: Truth(90e-6), 8: Truth(90e-6), 16: Truth(90e-6)}
    found, tried = run(core, CUTS, truths, np.random.default_rng(1))
    assert found == 1
    counts = Counter(tried.values())
    assert max(counts[num] for num in (4, 8, 16)) <= 3
    assert counts[2] == 6
    assert counts[1] == 6 + 2  # while what the last turn took is awaited


def test_sends_that_hold_the_program_up_are_part_of_what_a_cut_takes(core):
    truths = {
        1: Truth(10e-6),
        2: Truth(7e-6, 5e-6),
        4: Truth(7e-6, 2e-6),
        8: Truth(6e-6, 9e-6),
        16: Truth(20e-6),
    }
    assert run(core, CUTS, truths, np.random.default_rng(1))[0] == 4


@pytest.mark.parametrize(("further_s", "best"), [(0, 4), (0.5e-6, 4), (1.5e-6, 1)])
def test_each_further_message_must_gain_what_it_costs_others(core, further_s, best):
    """Four messages are 3 us quicker than one: 1 us for each further one."""
    truths = {1: Truth(10e-6), 2: Truth(10e-6), 4: Truth(7e-6), 8: Truth(20e-6), 16: Truth(20e-6)}
    random = np.random.default_rng(1)
    assert run(core, CUTS, truths, random, further_s=further_s, is_strict=True)[0] == best


@pytest.mark.parametrize("lost", [0, 0.2])
@pytest.mark.parametrize("noise", [1, 3, 10])
def test_a_strict_search_rarely_chooses_several_segments_by_chance(core, noise, lost):
    """Of cuts that take the same, with as much noise as that or more. Others do in a third of all."""
    cuts = [(32, 4e-6), *CUTS]
    truths = {num: Truth(10e-6) for num, _ in cuts}
    random = np.random.default_rng(3)
    found = [run(core, cuts, truths, random, noise=noise, lost=lost, is_strict=True)[0] for _ in range(500)]
    assert np.mean([num > 1 for num in found]) <= 0.06


@pytest.mark.parametrize(("predicted_s", "at_least", "at_most"), [(3e-6, 0.75, 1), (9e-6, 0, 0.6)])
def test_what_was_predicted_to_be_quicker_needs_less_evidence(core, predicted_s, at_least, at_most):
    """Four messages take 20 % less than one, with noise of 60 %, if predictions are trusted."""
    cuts, truths = [(4, predicted_s), (1, 9e-6)], {4: Truth(8e-6), 1: Truth(10e-6)}
    random = np.random.default_rng(5)
    found = [run(core, cuts, truths, random, noise=0.6, trusts_predictions=True)[0] for _ in range(300)]
    assert at_least <= np.mean([num == 4 for num in found]) <= at_most


@pytest.mark.parametrize(("further_s", "at_most"), [(0, 1), (1e-6, 0.5), (5e-6, 0.1)])
def test_what_is_predicted_must_gain_what_further_messages_cost(core, further_s, at_most):
    """Of cuts that take the same, the luckiest seems quicker."""
    cuts = [(4, 3e-6), (8, 3.5e-6), (2, 4e-6), (1, 9e-6)]
    truths = {num: Truth(10e-6) for num, _ in cuts}
    random = np.random.default_rng(6)
    conditions = {"noise": 0.6, "further_s": further_s, "trusts_predictions": True}
    found = [run(core, cuts, truths, random, **conditions)[0] for _ in range(300)]
    assert np.mean([num > 1 for num in found]) <= at_most


def test_only_one_message_needs_less_evidence_to_lose(core):
    """How many segments are best is not predicted well."""
    cuts, truths = [(8, 3e-6), (2, 9e-6), (1, 10e-6)], {8: Truth(8e-6), 2: Truth(9e-6), 1: Truth(40e-6)}
    trusted, not_trusted = (
        [
            run(core, cuts, truths, np.random.default_rng(k), noise=0.6, trusts_predictions=trusts)[0]
            for k in range(200)
        ]
        for trusts in (True, False)
    )
    assert trusted == not_trusted and 2 in trusted


@pytest.mark.parametrize(("is_strict", "num_starts"), [(False, 3), (True, 6)])
def test_a_strict_search_gives_one_message_all_its_starts(core, is_strict, num_starts):
    """Also if it is clearly slower, and then chooses several segments."""
    truths = {1: Truth(90e-6), 2: Truth(10e-6), 4: Truth(10e-6), 8: Truth(12e-6), 16: Truth(12e-6)}
    found, tried = run(core, CUTS, truths, np.random.default_rng(1), is_strict=is_strict)
    assert Counter(tried.values())[1] == num_starts and found > 1


def test_a_strict_search_that_sees_nothing_keeps_one_message(core):
    cuts = [(4, 1e-6), (1, 9e-6)]
    truths = {num: Truth(1e-6) for num, _ in cuts}
    found = [
        run(core, cuts, truths, np.random.default_rng(1), lost=1, is_strict=strict)[0] for strict in (0, 1)
    ]
    assert found == [4, 1]


@pytest.mark.parametrize(
    ("found", "num_in_use", "used"),
    [
        ([4], 0, [1]),  # the first search with several segments is doubted,
        ([4, 2], 1, [1, 2]),  # a second one that has several, too, is not
        ([4, 1, 4, 4], 1, [1, 1, 1, 4]),
        ([4, 2, 1], 8, [4, 2, 1]),  # of a transfer that has several already nothing is
    ],
)
def test_several_segments_instead_of_one_message_need_two_searches_that_agree(core, found, num_in_use, used):
    confirmation = Confirmation(is_needed=True, num_in_use=num_in_use)
    for num, expected in zip(found, used, strict=True):
        search = search_that_finds(core, num)
        ended = core.eb_search_end(byref(search), True, byref(confirmation))
        confirmation.num_in_use = ended.contents.cut.num
        assert confirmation.num_in_use == expected
        assert confirmation.is_doubted == (expected != num)


def search_that_finds(core, best, cuts=CUTS):
    truths = {num: Truth(1e-6 if num == best else 26e-6) for num, _ in cuts}
    return complete(core, cuts, truths, np.random.default_rng(best))[0]


@pytest.mark.parametrize(
    ("cuts", "is_comparable", "is_needed"),
    [
        ([(4, 1e-6), (2, 2e-6)], True, True),  # one message is no candidate
        ([(4, 1e-6), (1, 9e-6)], True, False),
        ([(4, 1e-6), (1, 9e-6)], False, True),  # a prediction: the next one would be the same
    ],
)
@pytest.mark.parametrize("is_doubted", [False, True])
def test_what_needs_no_second_search_is_not_doubted(core, cuts, is_comparable, is_needed, is_doubted):
    confirmation = Confirmation(is_needed=is_needed, num_in_use=1, is_doubted=is_doubted)
    ended = core.eb_search_end(byref(search_that_finds(core, 4, cuts)), is_comparable, byref(confirmation))
    assert ended.contents.cut.num == 4
    assert not confirmation.is_doubted


def test_a_search_whose_times_cannot_be_compared_ends_with_the_prediction(core):
    search = search_that_finds(core, 1, [(4, 1e-6), (1, 9e-6)])
    for is_comparable, num in ((True, 1), (False, 4)):
        ended = core.eb_search_end(byref(search), is_comparable, byref(Confirmation()))
        assert ended.contents.cut.num == num


@pytest.mark.parametrize(("predicted_s", "longest_s"), [(1e-6, 0.1), (25e-6, 0.1), (50e-6, 0.2), (1e-3, 4.0)])
def test_the_longer_a_transfer_takes_the_longer_its_search_may_take(core, predicted_s, longest_s):
    """Clocks drift by 5 us/s; a difference below 2 % of what is predicted is none."""
    search = search_of(core, [(4, predicted_s), (1, 2 * predicted_s)])
    assert core.eb_search_is_comparable(byref(search), 0.99 * longest_s)
    assert not core.eb_search_is_comparable(byref(search), 1.01 * longest_s)


def test_fewer_segments_win_where_the_difference_is_not_clear(core):
    truths = {num: Truth(10e-6 - num * 1e-9) for num, _ in CUTS}
    assert run(core, CUTS, truths, np.random.default_rng(1))[0] == 1


@pytest.mark.parametrize(("predicted_s", "expected"), [(8e-6, 1), (7e-6, 4)])
def test_where_nothing_is_seen_a_clear_prediction_is_followed(core, predicted_s, expected):
    cuts = [(4, predicted_s), (1, 9e-6)]
    found, tried = run(core, cuts, {1: Truth(1), 4: Truth(1)}, np.random.default_rng(1), lost=1.0)
    assert found == expected
    assert len(tried) == 12 + 2


def test_a_lone_proposal_needs_no_search(core):
    found, tried = run(core, [(1, 1e-6)], {}, np.random.default_rng(1))
    assert (found, tried) == (1, {})


class Disturbances:
    """The noise of each observation in turn, for `run`: 0 but for those at these places."""

    def __init__(self, at):
        self.values = (9.0 if k in at else 0.0 for k in itertools.count())

    def random(self):
        return 1.0

    def exponential(self):
        return next(self.values)


@pytest.mark.parametrize(("disturbed", "expected"), [((), 2), ((1,), 2), ((1, 7), 1)])
def test_one_disturbed_start_hides_no_gain(core, disturbed, expected):
    """The slowest start of a candidate is left out; the first of every turn is not counted."""
    truths = {1: Truth(20e-6), 2: Truth(10e-6)}
    assert run(core, [(2, 5e-6), (1, 6e-6)], truths, Disturbances(disturbed), noise=1.0)[0] == expected
