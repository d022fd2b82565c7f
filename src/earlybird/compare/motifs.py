"""Throughput, time split and scaling of motifs, and where libearlybird is slower than another style."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.compare.ratios import Ratio, chained_ratio, paired_ratio
from earlybird.data.kernels import MOTIFS
from earlybird.data.levels import MAPPINGS
from earlybird.data.methods import EARLYBIRD, FUNNELLED
from earlybird.data.results import Result
from earlybird.data.run import Sample, over_launches
from earlybird.data.statistics import Statistic

# The parts of a step's time in a sample's `split_s`, in this order.
PARTS = ("computing_s", "communicating_s", "waiting_s")
# A style is slower than another if it takes longer by more than this factor.
SLOWER = 1.05
# What differs between the points of a scaling table; the layout without its mapping, and the sizes, follow
# from the ranks.
_SCALED = ("ranks", "layout", "process_grid", "cells", "size_bytes")
# Without these it is not known what a point is a larger or smaller one of.
_SCALES = ("ranks", "process_grid", "cells")


def motif_figures(samples: Sequence[Sample], _: Sequence[Sample], statistic: Statistic) -> dict[str, Any]:
    """Return the bytes per second that all ranks send, and the times of computation, communication and
    waiting of the slowest rank of each iteration: medians over iterations, then over launches.
    """
    first = samples[0].extra
    time_s = float(over_launches([sample.steady_times_s() for sample in samples], statistic))
    sent_bytes = first.get("sent_bytes", 0)
    found = {
        "throughput_bytes_per_s": sent_bytes / time_s if time_s > 0 else None,
        "sent_bytes": sent_bytes,
        "messages": first.get("messages", 0),
    }
    if "partitions_sent" in first:
        found["partitions_sent"] = first["partitions_sent"]
    splits = [split for sample in samples if (split := _split_of_slowest(sample)) is not None]
    if not splits:
        return found
    return found | dict(zip(PARTS, over_launches(splits, statistic).tolist(), strict=True))


def _split_of_slowest(sample: Sample) -> np.ndarray | None:
    """Return the (I, 3) parts of the slowest rank's time in every steady iteration; None if the sample has no
    split.
    """
    try:
        split_s = np.array(sample.extra.get("split_s"), dtype=float)
    except (TypeError, ValueError):
        return None
    times_s = sample.rank_times_s
    if times_s is None or split_s.shape != (*times_s.shape, len(PARTS)):
        return None
    steady = np.arange(sample.warmup, len(times_s))
    return split_s[steady, np.argmax(times_s[steady], axis=1)]


def compared_with_best(
    styles: Mapping[str | None, Sequence[Sample]], one: str = EARLYBIRD
) -> tuple[str, Ratio] | None:
    """Return the best style of a point other than `one`, and its time over that of `one`.

    The best one is the same for all launches: a choice by launch would favour the luckier one. The MPI's own
    partitioned calls are measured in other launches than libearlybird: these two are compared through the
    reference. Returns None if the point lacks `one` or another style that can be compared.
    """
    measured, reference = styles.get(one, ()), styles.get(FUNNELLED, ())
    ratios = {
        style: paired_ratio(samples, measured) or chained_ratio(samples, reference, measured)
        for style, samples in styles.items()
        if style is not None and style != one
    }
    known = {style: ratio for style, ratio in ratios.items() if ratio is not None}
    if not measured or not known:
        return None
    other = min(known, key=lambda style: known[style].value)
    return other, known[other]


@dataclass(frozen=True)
class Scaling:
    """A method with one number of ranks, compared with the fewest ranks that were measured.

    Attributes
    ----------
    result, fewest : the results of the method with these ranks, and with the fewest ranks.
    """

    result: Result
    fewest: Result

    @property
    def is_weak(self) -> bool:
        return self.result.config["scaling"] == "weak"

    @property
    def speed_up(self) -> float | None:
        """The time with the fewest ranks over that with these ranks; None if a time is 0, as a simulated one
        may be.
        """
        time_s = self.result.time_s.value
        return self.fewest.time_s.value / time_s if time_s > 0 else None

    @property
    def efficiency(self) -> float | None:
        """The speed-up divided by the ideal one, which is the ratio of the ranks, or 1 if the work grows with
        the ranks.
        """
        time_s, ranks = self.result.time_s.value, self.result.config["ranks"]
        return self.ideal_s(ranks) / time_s if time_s > 0 else None

    def ideal_s(self, ranks: int) -> float:
        """Return the time with the fewest ranks, divided among `ranks` unless the work grows with them."""
        time_s = self.fewest.time_s.value
        return time_s if self.is_weak else time_s * self.fewest.config["ranks"] / ranks


def scaling(results: Iterable[Result]) -> list[Scaling]:
    """Return every method of the motifs that was measured with several numbers of ranks, in the order of
    `results`.

    The times come from different launches and cannot be paired: the ratios are those of two medians.
    """
    alike: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        if result.kernel in MOTIFS and all(name in result.config for name in _SCALES):
            alike.setdefault(_key(result), []).append(result)
    found = []
    for same in alike.values():
        fewest = min(same, key=lambda result: result.config["ranks"])
        if any(result.config["ranks"] > fewest.config["ranks"] for result in same):
            by_ranks = sorted(same, key=lambda result: result.config["ranks"])
            found += [Scaling(result, fewest) for result in by_ranks]
    return found


def _key(result: Result) -> tuple[Any, ...]:
    config = result.config
    others = sorted((name, value) for name, value in config.items() if name not in _SCALED)
    return result.kernel, result.method, cells_text(config), mapping_of(config), *others


def mapping_of(config: Mapping[str, Any]) -> str:
    """Return how ranks are mapped to cores, from the layout: `node` for `2x1x2_by_node`."""
    return str(config.get("layout", "")).partition("_by_")[2] or MAPPINGS[0]


def cells_text(config: Mapping[str, Any]) -> str:
    """Return the number of cells along each axis that stays the same: for all ranks together, or for each
    rank with weak scaling.
    """
    cells = [int(number) for number in config["cells"].split("x")]
    if config["scaling"] == "weak":
        ranks = [int(number) for number in config["process_grid"].split("x")]
        cells = [number // count for number, count in zip(cells, ranks, strict=True)]
    return "x".join(map(str, cells))


@dataclass(frozen=True)
class OverBest:
    """A style at one point, compared with the best other style.

    Attributes
    ----------
    other : the other style, the one over which the speed-up of `style` is the smallest.
    speed_up : time of `other` / time of `style`, see `compared_with_best`.
    """

    kernel: str
    config: Mapping[str, Any]
    style: str
    other: str
    speed_up: Ratio

    @property
    def is_slower(self) -> bool:
        return self.speed_up.value < 1 / SLOWER

    @property
    def is_clearly_slower(self) -> bool:
        """True if the whole interval is below 1 / SLOWER."""
        return self.speed_up.high < 1 / SLOWER


def over_best(samples: Iterable[Sample], style: str = EARLYBIRD) -> list[OverBest]:
    """Return every point of the motifs that has `style` and another style, in the order of `samples`."""
    points: dict[tuple[Any, ...], dict[str | None, list[Sample]]] = {}
    for sample in samples:
        if sample.kernel in MOTIFS:
            kernel, quantity, method, config = sample.point()
            points.setdefault((kernel, quantity, config), {}).setdefault(method, []).append(sample)
    found = []
    for styles in points.values():
        compared = compared_with_best(styles, style)
        if compared is not None:
            first = styles[style][0]
            found.append(OverBest(first.kernel, first.config, style, *compared))
    return found
