"""Message rates of chapter 2: messages per second of each method and number of threads, from the samples."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.run import Sample, thread_medians_of_launches
from earlybird.data.units import format_bytes
from earlybird.report import words
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material

# The methods in the order in which they are told; the last is the ceiling of the others.
METHODS = {
    "shared": "one communicator",
    "per-thread": "a communicator each",
    "per-thread-contexts": "a communicator and a context each",
    "processes": "processes",
}
CONTEXTS, PROCESSES = "per-thread-contexts", "processes"
Key = tuple[str, bool]  # a method, and whether contexts were asked for


@dataclass(frozen=True)
class RatePoint:
    """One number of threads.

    Attributes
    ----------
    vcis : communication contexts asked for; None where the MPI made its own number.
    rate_per_s : messages of all threads per second: median, lowest and highest launch.
    thread_rates_per_s : those of each thread over its own time; empty where that was not told.
    oversubscribed : there were more threads, or ranks, than cores.
    """

    threads: int
    vcis: int | None
    rate_per_s: tuple[float, float, float]
    thread_rates_per_s: tuple[float, ...]
    oversubscribed: bool
    num_launches: int


@dataclass(frozen=True)
class MessageRates:
    """What one run measured of one MPI with one level, message size and window."""

    mpi: str
    level: str
    size_bytes: int
    window: int
    label: str
    methods: Mapping[Key, tuple[RatePoint, ...]]

    @property
    def setting(self) -> tuple[str, int, int]:
        """What a figure is drawn for."""
        return self.level, self.size_bytes, self.window

    def drawn(self) -> dict[str, tuple[RatePoint, ...]]:
        """method -> its points, without what only stands beside contexts where anything else is there."""
        own = {key: points for key, points in self.methods.items() if not key[1] or key[0] == CONTEXTS}
        return {method: points for (method, _), points in (own or self.methods).items()}

    def rows(self) -> list[tuple[str, RatePoint]]:
        """(method, point) by number of threads, then in the order of the methods, without contexts before
        with."""
        found = [(method, point) for (method, _), points in self.methods.items() for point in points]
        return sorted(found, key=lambda row: row[1].threads)


def message_rates(material: Material) -> list[MessageRates]:
    """Every run, MPI and setting in the order of levels, sizes and windows."""
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for run in material.runs:
        for sample in run.samples:
            if setting := _setting(sample):
                groups[(*setting, str(sample.config.get("mpi", "other")), run.name)].append(sample)
    result = []
    for (level, size_bytes, window, mpi, run_name), samples in groups.items():
        several = sum(key[:4] == (level, size_bytes, window, mpi) for key in groups) > 1
        label = words.flavour(mpi) + (f" ({run_name})" if several else "")
        result.append(MessageRates(mpi, level, size_bytes, window, label, _methods(samples, window)))
    return sorted(result, key=lambda one: (words.level_order(one.level), *one.setting[1:], one.label))


def rates_sentences(found: Sequence[MessageRates]) -> list[str]:
    """Per MPI, level and size: what the methods reach with the most threads that had a core each, or else
    with the fewest that had not."""
    sentences = []
    for one in found:
        methods = one.drawn()
        threads = _told_threads(methods)
        rates = {
            method: point
            for method, points in methods.items()
            for point in points
            if point.threads == threads
        }
        texts = [f"{millions(rates[method].rate_per_s[0])} with {name}" for method, name in METHODS.items()
                 if method in rates and method != PROCESSES]  # fmt: skip
        if PROCESSES in rates:
            texts.append(f"{millions(rates[PROCESSES].rate_per_s[0])} as {_counted_processes(threads)}")
        crowded = any(point.oversubscribed for point in rates.values())
        over = ", with more threads than cores, which take turns" if crowded else ""
        sentences.append(
            f"{words.capital(words.level(one.level))}, {words.counted(threads, 'thread')} of {one.label} "
            f"{'sends' if threads == 1 else 'send'}, in million {format_bytes(one.size_bytes)} messages per "
            f"second, {words.listed(texts)}{over}."
        )
    return sentences


def millions(rate_per_s: float) -> str:
    """3440000.0 -> `3.44`."""
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"


def _counted_processes(number: int) -> str:
    return words.counted(number, "pair of processes", "pairs of processes")


def _told_threads(methods: Mapping[str, Sequence[RatePoint]]) -> int:
    points = [point for points in methods.values() for point in points]
    crowded = {point.threads for point in points if point.oversubscribed and point.threads > 1}
    alone = {point.threads for point in points} - crowded
    return max(alone) if alone - {1} or not crowded else min(crowded)


def _setting(sample: Sample) -> tuple[str, int, int] | None:
    config = sample.config
    values = [number_or_none(config.get(key)) for key in ("size_bytes", "window", "threads")]
    if sample.kernel != "msgrate" or sample.method is None or None in values or min(values[1:]) < 1:
        return None
    return str(config.get("level", "")), int(values[0]), int(values[1])


def _methods(samples: Sequence[Sample], window: int) -> dict[Key, tuple[RatePoint, ...]]:
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for sample in samples:
        vcis = number_or_none(sample.config.get("vcis"))
        groups[(sample.method, None if vcis is None else int(vcis), int(sample.config["threads"]))].append(
            sample
        )
    methods: dict[Key, list[RatePoint]] = defaultdict(list)
    for (method, vcis, threads), found in groups.items():
        methods[method, vcis is not None].append(_point(threads, vcis, window, found))
    order = list(METHODS)
    keys = sorted(methods, key=lambda key: (order.index(key[0]) if key[0] in order else len(order), key))
    return {key: tuple(sorted(methods[key], key=lambda point: point.threads)) for key in keys}


def _point(threads: int, vcis: int | None, window: int, samples: Sequence[Sample]) -> RatePoint:
    rates = threads * window / np.array([max(sample.median_s(), 1e-12) for sample in samples])
    of_threads = thread_medians_of_launches(samples)
    return RatePoint(
        threads,
        vcis,
        (float(np.median(rates)), float(rates.min()), float(rates.max())),
        () if of_threads is None else tuple((window / of_threads).tolist()),
        any(sample.oversubscribed for sample in samples),
        len({sample.launch for sample in samples}),
    )
