"""Partitions of a mesh, by the predicted time of the exchange of its ghost cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.data.advice import Advice, Alternative
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.data.schema import Estimate
from earlybird.patterns.ghost import ghost_exchange
from earlybird.patterns.partition import edge_cut, partition_cells
from earlybird.predict.exchange import Predictor
from earlybird.predict.ranges import interval

SEEDS = 8
MOST_RANKED = 10  # the best ones; and the reference
# How much larger than the mean the largest part may be, thousandths; METIS's own default is 30 for k-way
# partitions and 1 for bisections.
IMBALANCES = (1, 30, 100)


@dataclass(frozen=True)
class AdvisedPartition:
    """The advice, and by the name of each alternative the part of every cell and its exchange."""

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
    model: str = "queue",
    num_seeds: int = SEEDS,
    most_imbalance: float = 0.03,
    seed: int = 1,
) -> AdvisedPartition:
    """METIS partitions of `graph` into a part for each rank, by the slowest rank's predicted exchange.

    The reference is what `pattern mesh` makes with `seed`. The others are bisections and k-way partitions,
    for fewest cut edges or least communication volume, with `num_seeds` seeds and imbalances up to
    `most_imbalance`. Only the exchange is predicted: a partition with larger parts takes longer to compute.
    Raises InputError as `partition_cells` and `Predictor` do.
    """
    num_parts = layout.num_ranks
    mean = graph.shape[0] / num_parts
    parts = {name: part for name, part in _partitions(graph, num_parts, num_seeds, most_imbalance, seed)}
    patterns = {
        name: ghost_exchange(graph, part, halo_width=halo_width, bytes_per_cell=bytes_per_cell)
        for name, part in parts.items()
    }
    drawn = {name: Predictor(one, layout).slowest_s(profile, model) for name, one in patterns.items()}
    reference = next(iter(parts))
    now_s, replicates_s = drawn[reference]
    choices, alternatives = [], []
    for name, (time_s, of_replicates_s) in drawn.items():
        times = _estimate(of_replicates_s, time_s)
        ratios = _estimate(replicates_s / of_replicates_s, now_s / time_s) if now_s else Estimate.exact(1.0)
        largest = float(np.bincount(parts[name], minlength=num_parts).max() / mean)
        extra = {"largest_part": round(largest, 4), "edge_cut": edge_cut(graph, parts[name])}
        action = f"the partition {name}; write it with -o partition.txt"
        alternatives.append(Alternative(name, times, ratios, action, extra=extra))
        work = (largest, name != reference)
        choices.append(Option(name, work, times, ratios, "model", is_reference=name == reference))
    order = options.order(choices)
    ranked = tuple(alternatives[k] for n, k in enumerate(order) if n < MOST_RANKED or k == 0)
    notes = Predictor(patterns[reference], layout).reservations(profile, model)
    asked = {"cells": graph.shape[0], "layout": layout.text, "model": model}
    advice = Advice("partition", asked, reference, ranked, profile_id=profile.id, notes=tuple(notes))
    return AdvisedPartition(advice, parts, patterns)


def _partitions(
    graph: csr_array, num_parts: int, num_seeds: int, most_imbalance: float, seed: int
) -> Sequence[tuple[str, np.ndarray]]:
    """Named partitions, each once, the reference first."""
    found = [(f"usual, seed {seed}", partition_cells(graph, num_parts, seed))]
    allowed = [one for one in IMBALANCES if one <= 1000 * most_imbalance] or [round(1000 * most_imbalance)]
    for number in range(seed, seed + num_seeds):
        for imbalance in allowed:
            for name, choice in (
                ("bisected", {"recursive": True}),
                ("k-way", {"recursive": False}),
                ("k-way, volume", {"recursive": False, "least_volume": True}),
            ):
                part = partition_cells(graph, num_parts, number, imbalance=imbalance / 1000, **choice)
                if not any(np.array_equal(part, other) for _, other in found):
                    found.append((f"{name}, seed {number}, {imbalance / 10:g} %", part))
    return found


def _estimate(drawn: np.ndarray, found: float) -> Estimate:
    return Estimate(found, *interval(drawn, found)) if len(drawn) else Estimate.exact(found)
