"""Partitions of a mesh, by the predicted time of the exchange of its ghost cells."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from earlybird.advise.options import WORTH
from earlybird.advise.predicted import SlowestRank, ranked, uncertain_gains
from earlybird.data import labels
from earlybird.data.advice import Advice
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.patterns.checks import require_range
from earlybird.patterns.ghost import ghost_exchange
from earlybird.patterns.partition import (
    MAX_SEED,
    edge_cut,
    has_hypergraphs,
    partition_cells,
    partition_neighbourhoods,
)
from earlybird.predict.exchange import Predictor

# Partitions of a hypergraph take longer.
_HYPERGRAPH_SEEDS = 2
# So many of the fastest ones are kept and ranked, and the reference.
MAX_KEPT = 9
# By which the largest part may exceed the mean, as far as is allowed: METIS's defaults for bisections and for
# k-way partitions, and more.
IMBALANCES = (0.001, 0.03, 0.1)
_METHODS = (
    ("bisected", {"recursive": True}),
    ("k-way", {"recursive": False}),
    ("k-way, volume", {"recursive": False, "least_volume": True}),
)


@dataclass(frozen=True)
class AdvisedPartition:
    """The advice, and the part of every cell and its exchange by the name of each alternative."""

    advice: Advice
    parts: dict[str, np.ndarray]
    patterns: dict[str, Pattern]


def advise_partition(
    graph: csr_array,
    layout: Layout,
    profile: Profile,
    *,
    halo_width: int = 1,
    bytes_per_cell: int = 8,
    model: str | None = None,
    num_seeds: int,
    most_imbalance: float = 0.03,
    seed: int = 1,
) -> AdvisedPartition:
    """Rank METIS partitions of `graph` into a part for each rank, by the slowest rank's predicted exchange.

    The reference is the partition that `pattern mesh` makes with `seed`; `model` is by default the one with
    which its exchange is predicted. The other alternatives are bisections and k-way partitions, for fewest
    cut edges or least communication volume, with `num_seeds` seeds; their largest parts exceed the mean by at
    most `most_imbalance`, or that of the reference if it is larger. If the package mtkahypar is installed,
    partitions of the hypergraph of neighbourhoods are among them. Only the exchange is predicted: a partition
    with larger parts takes longer to compute. Raises InputError as `partition_cells` does for the reference
    and for the last seed, and as `Predictor` does.
    """
    require_range(seed + num_seeds - 1, f"the last of {labels.counted(num_seeds, 'seed')}", 0, MAX_SEED)
    num_parts = layout.num_ranks
    alone = Profile(profile.levels, profile.id)
    reference, part = f"default, seed {seed}", partition_cells(graph, num_parts, seed)
    allowed = max(most_imbalance, _imbalance(part, num_parts))

    def exchange_of(part: np.ndarray) -> Pattern:
        return ghost_exchange(graph, part, halo_width=halo_width, bytes_per_cell=bytes_per_cell)

    parts, patterns = {reference: part}, {reference: exchange_of(part)}
    chosen = Predictor(patterns[reference], layout).choose_model(profile, model)
    model = chosen.name
    times_s: dict[str, float] = {}
    known = {_digest(part)}
    for name, part in _candidates(graph, num_parts, num_seeds, most_imbalance, seed):
        if _imbalance(part, num_parts) > allowed + 1e-9 or _digest(part) in known:
            continue
        known.add(_digest(part))
        parts[name], patterns[name] = part, exchange_of(part)
        times_s[name] = Predictor(patterns[name], layout).slowest_s(alone, model)[0]
        if len(times_s) > MAX_KEPT:
            slowest = max(times_s, key=lambda name: times_s[name])
            for found in (parts, patterns, times_s):
                del found[slowest]  # type: ignore[attr-defined]  # three dictionaries
    drawn = {name: SlowestRank.of(one, layout, profile, model) for name, one in patterns.items()}
    extra = {
        name: {
            "largest_part": round(1 + _imbalance(part, num_parts), 4), "edge_cut": edge_cut(graph, part)
        }
        for name, part in parts.items()
    }  # fmt: skip
    actions = {name: f"the partition {name}" for name in parts}
    work = {name: (name != reference, extra[name]["largest_part"]) for name in parts}
    asked = {
        "cells": graph.shape[0], "layout": layout.text, "model": model, "halo_width": halo_width,
        "bytes_per_cell": bytes_per_cell, "imbalance": most_imbalance, "seed": seed,
    }  # fmt: skip
    rule = (
        f"row 1: of the partitions that are clearly faster than {reference} and have at least "
        f"{100 * (1 - WORTH):g} % of the largest speed-up, the one whose largest part is smallest; "
        f"{reference} if none is clearly faster"
    )
    advice = Advice(
        "partition",
        asked,
        reference,
        ranked(drawn, reference, actions, work, extra),
        profile_id=profile.id,
        notes=(
            *Predictor(patterns[reference], layout).reservations(profile, model),
            *uncertain_gains(drawn, reference),
        ),
        extra={"rule": rule, **chosen.to_json()},
    )
    return AdvisedPartition(advice, parts, patterns)


def _candidates(
    graph: csr_array, num_parts: int, num_seeds: int, most_imbalance: float, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield named partitions; those that METIS or Mt-KaHyPar cannot make are left out."""
    limits = sorted({one for one in IMBALANCES if one < most_imbalance} | {most_imbalance})
    for number in range(seed, seed + num_seeds):
        for limit in limits:
            for name, choice in _METHODS:
                try:
                    part = partition_cells(graph, num_parts, number, imbalance=limit, **choice)
                except InputError:
                    continue
                yield f"{name}, seed {number}, {100 * limit:g} %", part
    # Of a hypergraph takes as long as all the others of a seed together.
    for number in range(seed, seed + min(num_seeds, _HYPERGRAPH_SEEDS) if has_hypergraphs() else seed):
        try:
            part = partition_neighbourhoods(graph, num_parts, number, imbalance=most_imbalance)
        except InputError:
            continue
        yield f"hypergraph, seed {number}, {100 * most_imbalance:g} %", part


def _imbalance(part: np.ndarray, num_parts: int) -> float:
    """Return the share by which the largest part exceeds the mean."""
    return float(np.bincount(part, minlength=num_parts).max()) * num_parts / len(part) - 1


def _digest(part: np.ndarray) -> bytes:
    return hashlib.sha256(part.tobytes()).digest()
