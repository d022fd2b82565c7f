"""Advise whether the messages of an exchange should go through leaders of nodes, by predicted time."""

from dataclasses import dataclass

import numpy as np

from earlybird.advise.predicted import SlowestRank, ranked, uncertain_gains
from earlybird.data.advice import Advice
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.patterns.aggregation import Stages, aggregated
from earlybird.predict.exchange import Predictor

DIRECT = "direct"
LEADERS = (1, 2, 4, 8)


@dataclass(frozen=True)
class AdvisedAggregation:
    """The advice, and the three exchanges of each alternative except the reference."""

    advice: Advice
    stages: dict[str, Stages]


def advise_aggregation(
    pattern: Pattern, layout: Layout, profile: Profile, *, model: str | None = None
) -> AdvisedAggregation:
    """Compare sending directly, the reference, with `patterns.aggregation` with 1, 2, 4 and 8 leaders per
    node, each number at most that of the ranks of a node and that of the other nodes.

    The time of an alternative is the sum of the slowest ranks of its three exchanges, each by `model`, by
    default that with which sending directly is predicted: packing is not included, and a rank that begins
    the next exchange early gains nothing. Raises InputError as `Predictor` does, and if no message goes
    between nodes.
    """
    pattern.check_ranks(layout.num_ranks)
    if pattern.num_messages and not _messages_between(pattern, layout):
        raise InputError(
            f"no message goes between nodes with the layout {layout.text}, so there is nothing to aggregate; "
            "give a layout of several nodes"
        )
    most_ranks = int(np.unique(layout.node, return_counts=True)[1].max())
    most = min(most_ranks, max(layout.num_nodes - 1, 1))
    stages = {
        f"{number} leader{'s' * (number > 1)}": aggregated(pattern, layout, number)
        for number in dict.fromkeys(min(number, most) for number in LEADERS)
    }
    predictor = Predictor(pattern, layout)
    chosen = predictor.choose_model(profile, model)
    model = chosen.name
    drawn = {DIRECT: SlowestRank.of(pattern, layout, profile, model)}
    messages = {DIRECT: _messages_between(pattern, layout)}
    for name, exchanges in stages.items():
        drawn[name] = SlowestRank.after_each_other(
            [SlowestRank.of(one, layout, profile, model) for one in exchanges.all().values()]
        )
        messages[name] = _messages_between(exchanges.between, layout)
    actions = {name: f"send through {name} of each node" for name in stages}
    alternatives = ranked(
        drawn,
        DIRECT,
        {DIRECT: "send every message directly", **actions},
        {name: (k,) for k, name in enumerate(drawn)},
        {name: {"messages_between_nodes": count} for name, count in messages.items()},
    )
    advice = Advice(
        "aggregate",
        {"layout": layout.text, "model": model},
        DIRECT,
        alternatives,
        profile_id=profile.id,
        notes=(
            *predictor.reservations(profile, model),
            *uncertain_gains(drawn, DIRECT),
            *_shared_cores(profile),
        ),
        extra=chosen.to_json(),
    )
    return AdvisedAggregation(advice, stages)


def _shared_cores(profile: Profile) -> tuple[str, ...]:
    if profile.context.get("launcher") != "cluster":
        return ()
    return (
        "the profile is of virtual nodes, which share the cores of one machine: many short messages then "
        "take longer than predicted, so leaders can gain where none is predicted; check it with replay",
    )


def _messages_between(pattern: Pattern, layout: Layout) -> int:
    return int((layout.level(pattern.src, pattern.dst) == LEVELS.index("inter_node")).sum())
