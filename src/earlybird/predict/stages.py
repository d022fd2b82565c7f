"""Exchanges that follow each other, such as those through leaders of nodes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from earlybird.data.prediction import Prediction


def one_after_the_other(stages: Sequence[Prediction]) -> Prediction:
    """Return the prediction of exchanges that each begin when the slowest rank has ended the previous one.

    The time of a rank is its own in the last stage plus those of the slowest rank in each stage before, so
    that the slowest rank takes the sum of the slowest times. Ranks that go on early make it shorter.
    """
    *before, last = stages

    def total_s(name: str) -> np.ndarray:
        return getattr(last, name) + sum(getattr(one, name)[one.slowest_rank] for one in before)

    return replace(
        last,
        receive_s=total_s("receive_s"),
        intra_node_s=total_s("intra_node_s"),
        inter_node_s=total_s("inter_node_s"),
        overlap_s=None if last.overlap_s is None else total_s("overlap_s"),
        packing_s=None if last.packing_s is None else total_s("packing_s"),
        time_interval_s=None,
    )
