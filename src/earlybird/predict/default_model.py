"""The model by which an exchange is predicted unless another one is named."""

from collections.abc import Collection
from statistics import median
from typing import NamedTuple

from earlybird.data.exchange_models import (
    BETWEEN_NODES,
    BETWEEN_SIMULATED_NODES,
    INSIDE_NODES,
    MODELS,
    REASON,
    exchange_model,
)
from earlybird.data.labels import counted, percent
from earlybird.data.layout import level_phrase
from earlybird.data.levels import LEVELS
from earlybird.data.profile import Profile


class ChosenModel(NamedTuple):
    """The name of a model, and the reason for its choice as a phrase; "" if the user named the model."""

    name: str
    reason: str

    def to_json(self) -> dict[str, str]:
        """Return the entries that a file has next to the key `model`."""
        return {REASON: self.reason} if self.reason else {}


def choose_model(levels: Collection[str], profile: Profile, named: str | None = None) -> ChosenModel:
    """Return the model `named`, or the one with the smallest error for exchanges whose outermost level is
    that of `levels`.

    These exchanges are the replays of the profile; without a replay, the exchanges whose errors docs/results
    lists. Raises InputError for an unknown name.
    """
    if named is not None:
        return ChosenModel(exchange_model(named).name, "")
    farthest = max(levels, key=LEVELS.index, default=LEVELS[0])
    replays = [replay for replay in profile.replays if replay.level == farthest]
    errors = {
        name: median(replay.error[name] for replay in replays)
        for name in MODELS
        if replays and all(name in replay.error for replay in replays)
    }
    if errors:
        best = min(errors, key=lambda name: errors[name])
        measured = f"{percent(errors[best])} in {counted(len(replays), 'replay')}"
        return ChosenModel(best, f"errs least {level_phrase(farthest)}: {measured}")
    evidence = BETWEEN_NODES if farthest == "inter_node" else INSIDE_NODES
    if farthest == "inter_node" and profile.context.get("launcher") == "simgrid":
        evidence = BETWEEN_SIMULATED_NODES
    best = next(model.name for model in MODELS.values() if evidence in model.errs_least)
    return ChosenModel(best, f"errs least {evidence}")
