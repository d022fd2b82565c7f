"""Message rates of chapter 2: messages per second by method and number of threads."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data.layout import level_phrase
from earlybird.data.run import Sample, thread_medians_of_launches
from earlybird.data.units import format_bytes
from earlybird.report import words
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material

# The methods in display order; the last one is the upper bound of the others.
METHODS = {
    "shared": "one communicator",
    "per-thread": "one communicator per thread",
    "per-thread-contexts": "one communicator and context per thread",
    "processes": "processes",
}
CONTEXTS, PROCESSES = "per-thread-contexts", "processes"
Key = tuple[str, bool]  # a method, and whether contexts were requested


@dataclass(frozen=True)
class RatePoint:
    """One number of threads.

    Attributes
    ----------
    vcis : requested communication contexts; None for the default of the MPI.
    rate_per_s : messages of all threads per second: median, lowest and highest launch.
    thread_rates_per_s : the rate of each thread over its own time; empty if unknown.
    oversubscribed : whether there were more threads, or ranks, than cores.
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
        """Level, size and window: the setting of one figure."""
        return self.level, self.size_bytes, self.window

    def drawn(self) -> dict[str, tuple[RatePoint, ...]]:
        """method -> points to draw. Others measured with contexts are drawn only if there is nothing else."""
        selected = {key: points for key, points in self.methods.items() if not key[1] or key[0] == CONTEXTS}
        return {method: points for (method, _), points in (selected or self.methods).items()}

    def rows(self) -> list[tuple[str, RatePoint]]:
        """(method, point) sorted by number of threads, then method; without contexts before with contexts."""
        rows = [(method, point) for (method, _), points in self.methods.items() for point in points]
        return sorted(rows, key=lambda row: row[1].threads)


def message_rates(material: Material) -> list[MessageRates]:
    """The rates of every run, MPI and setting, sorted by level, size and window."""
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
    return sorted(
        result, key=lambda series: (words.level_order(series.level), *series.setting[1:], series.label)
    )


def rates_sentences(all_rates: Sequence[MessageRates]) -> list[str]:
    """One sentence per MPI, level and size: the rates with the most threads that had a core each, or with the
    fewest threads if none had."""
    sentences = []
    for series in all_rates:
        methods = series.drawn()
        threads = _threads_to_report(methods)
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
        over = ", with more threads than cores" if crowded else ""
        sentences.append(
            f"{words.capital(level_phrase(series.level))}, {words.counted(threads, 'thread')} of "
            f"{series.label} {'reaches' if threads == 1 else 'reach'} these rates in million "
            f"{format_bytes(series.size_bytes)} messages per second{over}: {words.listed(texts)}."
        )
    return sentences


def millions(rate_per_s: float) -> str:
    """3440000.0 -> `3.44`."""
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"


def _counted_processes(number: int) -> str:
    return words.counted(number, "pair of processes", "pairs of processes")


def _threads_to_report(methods: Mapping[str, Sequence[RatePoint]]) -> int:
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
    for (method, vcis, threads), group in groups.items():
        methods[method, vcis is not None].append(_point(threads, vcis, window, group))
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
