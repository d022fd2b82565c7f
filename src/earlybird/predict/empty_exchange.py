"""Predictions over a measured exchange of empty messages: what models leave out where ranks share cores."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from earlybird.data.profile import Level, Profile
from earlybird.predict.exchange import Predictor
from earlybird.predict.packing import Packing


def over_empty_exchange(
    predictor: Predictor,
    profile: Profile,
    models: Iterable[str],
    share: str,
    empty_s: np.ndarray,
    packing: Packing | None = None,
) -> dict[str, np.ndarray]:
    """Return model -> (P,) seconds per rank, max(T_i, D_i + E_i).

    T_i is the prediction without latencies inside nodes, D_i its part inside nodes, and E_i the time of the
    same exchange with empty messages: all latencies and, where ranks share cores, their wait for a core.
    Memory is copied by the cores, so that D_i and E_i add up, as the time of packing does
    to both. The links between nodes carry data while ranks wait.

    `empty_s` (P,) are the seconds that `compare.measured_times` returns. Raises InputError as
    `Predictor.predict` does.
    """
    bare = replace(
        profile,
        levels={name: _without_latency(name, level) for name, level in profile.levels.items()},
        replicates=(),
    )
    times_s = {}
    for model in models:
        one = predictor.predict(bare, model, share=share, packing=packing)
        packing_s = 0.0 if one.packing_s is None else one.packing_s
        times_s[model] = np.maximum(one.time_s, one.intra_node_s + empty_s + packing_s)
    return times_s


def _without_latency(name: str, level: Level) -> Level:
    if name == "inter_node":
        return level
    return replace(level, protocols=tuple(replace(one, latency_s=0.0) for one in level.protocols))
