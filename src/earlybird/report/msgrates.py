"""Message rates of chapter 2: messages per second by method and number of threads."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.layout import level_phrase
from earlybird.data.methods import CONTEXTS, PER_THREAD, PROCESSES, SHARED
from earlybird.data.results import Estimate, Result
from earlybird.data.run import Sample
from earlybird.data.units import format_bytes
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material
from earlybird.report.parts import Answer

# The methods in display order; the last one is the upper bound of the others.
METHODS = {
    SHARED: "one communicator",
    PER_THREAD: "one communicator per thread",
    CONTEXTS: "one communicator and context per thread",
    PROCESSES: "processes",
}
Key = tuple[str, bool]  # a method, and whether contexts were requested


@dataclass(frozen=True)
class RatePoint:
    """One number of threads.

    Attributes
    ----------
    vcis : requested communication contexts; None for the default of the MPI.
    rate_per_s : messages of all threads per second.
    thread_rates_per_s : the rate of each thread over its own time; empty if unknown.
    oversubscribed : whether there were more threads, or ranks, than cores.
    """

    threads: int
    vcis: int | None
    rate_per_s: Estimate
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
        label = labels.flavour(mpi) + (f" ({run_name})" if several else "")
        result.append(MessageRates(mpi, level, size_bytes, window, label, _methods(samples)))
    return sorted(
        result, key=lambda series: (labels.level_order(series.level), *series.setting[1:], series.label)
    )


def rates_answers(all_rates: Sequence[MessageRates]) -> list[Answer]:
    """The highest rate of threads per MPI, level and size, of the numbers of threads in the sentences."""
    answers = []
    for series in all_rates:
        rates = _rates_to_report(series)
        method = max(rates, key=lambda name: (name != PROCESSES, rates[name].rate_per_s.value))
        rate, low, high = map(millions, rates[method].rate_per_s)
        answers.append(
            Answer(
                f"{labels.counted(rates[method].threads, 'thread')} of {series.label} with messages of "
                f"{format_bytes(series.size_bytes)}, {labels.level(series.level)}",
                f"{rate} million/s",
                f"{low} to {high}" if low != high else "",
                f"{labels.capital(METHODS.get(method, method))} has the highest message rate.",
            )
        )
    return answers


def _rates_to_report(series: MessageRates) -> dict[str, RatePoint]:
    """method -> its rate with the most threads that had a core each, or with the fewest threads."""
    methods = series.drawn()
    threads = _threads_to_report(methods)
    return {
        method: point for method, points in methods.items() for point in points if point.threads == threads
    }


def rates_sentences(all_rates: Sequence[MessageRates]) -> list[str]:
    """One sentence per MPI, level and size: the rates with the most threads that had a core each, or with the
    fewest threads if none had."""
    sentences = []
    for series in all_rates:
        rates = _rates_to_report(series)
        threads = next(iter(rates.values())).threads
        texts = [f"{millions(rates[method].rate_per_s[0])} with {name}" for method, name in METHODS.items()
                 if method in rates and method != PROCESSES]  # fmt: skip
        if PROCESSES in rates:
            texts.append(f"{millions(rates[PROCESSES].rate_per_s[0])} as {_counted_processes(threads)}")
        crowded = any(point.oversubscribed for point in rates.values())
        over = ", with more threads than cores" if crowded else ""
        sentences.append(
            f"{labels.capital(level_phrase(series.level))}, {labels.counted(threads, 'thread')} of "
            f"{series.label} {'reaches' if threads == 1 else 'reach'} these rates in million "
            f"{format_bytes(series.size_bytes)} messages per second{over}: {labels.listed(texts)}."
        )
    return sentences


def millions(rate_per_s: float) -> str:
    """3440000.0 -> `3.44`."""
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"


def _counted_processes(number: int) -> str:
    return labels.counted(number, "pair of processes", "pairs of processes")


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


def _methods(samples: Sequence[Sample]) -> dict[Key, tuple[RatePoint, ...]]:
    methods: dict[Key, list[RatePoint]] = defaultdict(list)
    for result in results(samples):
        vcis = number_or_none(result.config.get("vcis"))
        methods[result.method, vcis is not None].append(_point(result, vcis))
    order = list(METHODS)
    keys = sorted(methods, key=lambda key: (order.index(key[0]) if key[0] in order else len(order), key))
    return {key: tuple(sorted(methods[key], key=lambda point: point.threads)) for key in keys}


def _point(result: Result, vcis: float | None) -> RatePoint:
    figures = result.figures
    return RatePoint(
        int(result.config["threads"]),
        None if vcis is None else int(vcis),
        Estimate(*(figures[name] for name in ("rate_per_s", "rate_low_per_s", "rate_high_per_s"))),
        tuple(figures["thread_rates_per_s"] or ()),
        result.oversubscribed,
        result.launches,
    )
