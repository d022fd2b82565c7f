"""Message rates of threads: messages per second by method and number of threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.benchmark_parameters import parameter_texts
from earlybird.data.kernels import MSGRATE
from earlybird.data.layout import level_phrase
from earlybird.data.methods import CONTEXTS, FUNNELED, PER_THREAD, PROCESSES, SERIALIZED, SHARED
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes
from earlybird.present.core.notation import interval_text, millions
from earlybird.present.core.parts import Answer, grouped
from earlybird.present.core.points import Point, groups
from earlybird.present.core.text import crowd, finding
from earlybird.present.material import Material, number_or_none

# The methods in display order; the last one has no threads, and is for comparison.
METHODS = {
    SHARED: "one communicator",
    PER_THREAD: "one communicator per thread",
    CONTEXTS: "one communicator and context per thread",
    FUNNELED: "the calls of one thread, MPI_THREAD_FUNNELED",
    SERIALIZED: "calls in turn, MPI_THREAD_SERIALIZED",
    PROCESSES: "processes",
}


@dataclass(frozen=True)
class MessageRates:
    """Rates of an MPI as a run measured them with a level, message size and window; by threads, then method,
    without requested contexts before with contexts."""

    label: str
    setting: tuple[str, int, int]  # level, size and window: the setting of a figure
    results: tuple[Result, ...]

    @property
    def level(self) -> str:
        return self.setting[0]

    @property
    def size_bytes(self) -> int:
        return self.setting[1]

    @property
    def window(self) -> int:
        return self.setting[2]

    def drawn(self) -> dict[str, list[Result]]:
        """Return the results to draw by method. Others with contexts are drawn only if there is nothing
        else."""
        usual = [result for result in self.results if not contexts(result) or result.method == CONTEXTS]
        return grouped(sorted(usual or self.results, key=_method_order), lambda result: result.method)

    def headline(self) -> dict[str, Result]:
        """Return the result of each method with the most threads that had a core each, or the fewest
        threads."""
        drawn = [result for results in self.drawn().values() for result in results]
        crowded = {threads(result) for result in drawn if result.oversubscribed} - {1}
        alone = {threads(result) for result in drawn} - crowded
        chosen = max(alone) if alone - {1} or not crowded else min(crowded)
        return {result.method: result for result in drawn if threads(result) == chosen}


def threads(result: Result) -> int:
    """Return the threads of each rank."""
    return int(result.config["threads"])


def contexts(result: Result) -> str:
    """Return the number of requested contexts; "" for the default of the MPI."""
    vcis = number_or_none(result.config.get("vcis"))
    return "" if vcis is None else str(int(vcis))


def rate(result: Result) -> Estimate:
    """Return the messages of all threads per second."""
    return Estimate(*(result.figures[name] for name in ("rate_per_s", "rate_low_per_s", "rate_high_per_s")))


def _method_order(result: Result) -> tuple[int, str]:
    known = list(METHODS)
    return known.index(result.method) if result.method in known else len(known), result.method


def message_rates(material: Material) -> list[MessageRates]:
    """Return the rates of every run, MPI and setting, sorted by level, size and window."""
    rates = []
    for group in groups(material, _setting):
        for (reused, *parameters), of_kind in grouped(group.samples, _kind).items():
            ordered = sorted(
                results(of_kind, statistic=material.statistic),
                key=lambda item: (threads(item), *_method_order(item), bool(contexts(item))),
            )
            label = ", ".join([group.label + " with reused buffers" * reused, *parameters])
            rates.append(MessageRates(label, group.setting, tuple(ordered)))
    return sorted(rates, key=lambda item: (labels.level_order(item.level), *item.setting[1:], item.label))


def _kind(sample: Sample) -> tuple[Any, ...]:
    """Return whether buffers are reused, and the parameters of another benchmark."""
    return sample.config.get("buffers") == "reuse", *parameter_texts(sample.config)


def _setting(sample: Sample) -> tuple[str, int, int] | None:
    config = sample.config
    size, window, num_threads = (
        number_or_none(config.get(key)) for key in ("size_bytes", "window", "threads")
    )
    if sample.kernel != MSGRATE.name or sample.method is None or size is None:
        return None
    if window is None or num_threads is None or min(window, num_threads) < 1:
        return None
    return str(config.get("level", "")), int(size), int(window)


def method_names(all_rates: Sequence[MessageRates]) -> list[str]:
    """Return the meaning of the names of the methods in tables and options, as a line; none without rates."""
    names = {result.method for series in all_rates for result in series.results}
    listed = labels.listed([f"{text} ({name})" for name, text in METHODS.items() if name in names])
    return [f"Methods of threads, with their names in tables and options: {listed}."] if listed else []


def rates_answer(series: MessageRates) -> Answer:
    """Return the rate of threads with the best method."""
    headline = series.headline()
    point = Point({method: result for method, result in headline.items() if method != PROCESSES} or headline)
    method, clause = finding(point, "method of threads", SHARED, lambda name: METHODS.get(name, name))
    best, processes = headline[method], headline.get(PROCESSES)
    reference = ""
    if processes is not None and processes is not best:
        pairs = labels.counted(threads(best), "pair", "pairs")
        reference = f"; for comparison, {pairs} of processes, which have no threads, reach "
        reference += f"{millions(rate(processes).value)} million/s"
    if best.speed_up and method != SHARED:
        clause += f" (speed-up {best.speed_up.value:.2f} over {METHODS[SHARED]})"
    return Answer(
        f"{labels.counted(threads(best), 'thread')} of {series.label} with messages of "
        f"{format_bytes(series.size_bytes)}, {labels.level(series.level)}",
        f"{millions(rate(best).value)} million/s",
        interval_text(rate(best), millions),
        f"{labels.capital(clause)}{reference}.",
    )


def rates_sentence(series: MessageRates) -> str:
    """Return the rates of all methods, with the same number of threads."""
    best = series.headline()
    count = threads(next(iter(best.values())))
    names = {PROCESSES: f"as {labels.counted(count, 'pair of processes', 'pairs of processes')}"}
    texts = [
        f"{millions(rate(result).value)} {names.get(method, f'with {METHODS.get(method, method)}')}"
        for method, result in best.items()
    ]
    over = f", with {crowd()}" if any(result.oversubscribed for result in best.values()) else ""
    return (
        f"{labels.capital(level_phrase(series.level))}, {labels.counted(count, 'thread')} of {series.label} "
        f"{'reaches' if count == 1 else 'reach'} these rates in million {format_bytes(series.size_bytes)} "
        f"messages per second{over}: {labels.listed(texts)}."
    )
