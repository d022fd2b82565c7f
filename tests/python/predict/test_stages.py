"""Exchanges that follow each other."""

import numpy as np

from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.predict import one_after_the_other


def test_the_slowest_ranks_of_the_stages_before_are_added():
    first = Prediction("queue", np.ones(3), np.array([1.0, 0, 0]), np.array([0, 4.0, 2]))
    last = Prediction("queue", np.zeros(3), np.zeros(3), np.array([0, 1.0, 5]))
    joined = one_after_the_other([first, last])
    assert joined.time_s.tolist() == [4, 5, 9]
    assert (joined.model, joined.slowest_rank) == ("queue", 2)
    assert one_after_the_other([first]).time_s.tolist() == first.time_s.tolist()


def test_stages_are_joined_and_divided_again():
    stages = [Pattern([0, 1], [1, 0], [8, 9]), Pattern([], [], []), Pattern([2], [0], [5])]
    joined = Pattern.joined(stages)
    again = joined.divided([stage.num_messages for stage in stages])
    assert [stage.triples().tolist() for stage in again] == [stage.triples().tolist() for stage in stages]
