"""Message rates of threads: messages per second by method and number of threads."""

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
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer, grouped
from earlybird.present.core.points import Point, groups
from earlybird.present.core.text import finding
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
    """What one run measured of one MPI with one level, message size and window; by threads, then method,
    without requested contexts before with contexts."""

    label: str
    setting: tuple[str, int, int]  # level, size and window: the setting of one figure
    results: tuple[Result, ...]

    def drawn(self) -> dict[str, list[Result]]:
        """method -> results to draw. Others with contexts are drawn only if there is nothing else."""
        usual = [one for one in self.results if not contexts(one) or one.method == CONTEXTS]
        return grouped(sorted(usual or self.results, key=_method_order), lambda one: one.method)

    def headline(self) -> dict[str, Result]:
        """method -> its result with the most threads that had a core each, or the fewest threads."""
        drawn = [one for of_method in self.drawn().values() for one in of_method]
        crowded = {threads(one) for one in drawn if one.oversubscribed} - {1}
        alone = {threads(one) for one in drawn} - crowded
        chosen = max(alone) if alone - {1} or not crowded else min(crowded)
        return {one.method: one for one in drawn if threads(one) == chosen}


def threads(result: Result) -> int:
    return int(result.config["threads"])


def contexts(result: Result) -> str:
    """Return the number of requested contexts; "" for the default of the MPI."""
    vcis = number_or_none(result.config.get("vcis"))
    return "" if vcis is None else str(int(vcis))


def rate(result: Result) -> Estimate:
    """Messages of all threads per second."""
    return Estimate(*(result.figures[name] for name in ("rate_per_s", "rate_low_per_s", "rate_high_per_s")))


def millions(rate_per_s: float) -> str:
    """3440000.0 -> `3.44`."""
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"


def _method_order(result: Result) -> tuple:
    known = list(METHODS)
    return known.index(result.method) if result.method in known else len(known), result.method


def message_rates(material: Material) -> list[MessageRates]:
    """The rates of every run, MPI and setting, sorted by level, size and window."""
    found = []
    for group in groups(material, _setting):
        for (reused, *parameters), of_kind in grouped(group.samples, _kind).items():
            ordered = sorted(
                results(of_kind), key=lambda one: (threads(one), *_method_order(one), bool(contexts(one)))
            )
            label = ", ".join([group.label + " with reused buffers" * reused, *parameters])
            found.append(MessageRates(label, group.setting, tuple(ordered)))
    return sorted(found, key=lambda one: (labels.level_order(one.setting[0]), *one.setting[1:], one.label))


def _kind(sample: Sample) -> tuple[Any, ...]:
    """Whether buffers are reused, and the parameters of another benchmark."""
    return sample.config.get("buffers") == "reuse", *parameter_texts(sample.config)


def _setting(sample: Sample) -> tuple[str, int, int] | None:
    config = sample.config
    values = [number_or_none(config.get(key)) for key in ("size_bytes", "window", "threads")]
    if sample.kernel != MSGRATE.name or sample.method is None or None in values or min(values[1:]) < 1:
        return None
    return str(config.get("level", "")), int(values[0]), int(values[1])


def rates_answer(series: MessageRates) -> Answer:
    """The rate of threads with the best method."""
    level, size_bytes, _ = series.setting
    headline = series.headline()
    point = Point({method: one for method, one in headline.items() if method != PROCESSES} or headline)
    method, found = finding(point, "method of threads", SHARED, lambda name: METHODS.get(name, name))
    best, processes = headline[method], headline.get(PROCESSES)
    reference = ""
    if processes is not None and processes is not best:
        pairs = labels.counted(threads(best), "pair", "pairs")
        reference = f"; for comparison, {pairs} of processes, which have no threads, reach "
        reference += f"{millions(rate(processes).value)} million/s"
    if best.speed_up and method != SHARED:
        found += f" (speed-up {best.speed_up.value:.2f} over {METHODS[SHARED]})"
    return Answer(
        f"{labels.counted(threads(best), 'thread')} of {series.label} with messages of "
        f"{format_bytes(size_bytes)}, {labels.level(level)}",
        f"{millions(rate(best).value)} million/s",
        interval_text(rate(best), millions),
        f"{labels.capital(found)}{reference}.",
    )


def rates_sentence(series: MessageRates) -> str:
    """The rates of all methods, with the same number of threads."""
    level, size_bytes, _ = series.setting
    best = series.headline()
    count = threads(next(iter(best.values())))
    names = {PROCESSES: f"as {labels.counted(count, 'pair of processes', 'pairs of processes')}"}
    texts = [
        f"{millions(rate(one).value)} {names.get(method, f'with {METHODS.get(method, method)}')}"
        for method, one in best.items()
    ]
    over = ", with more threads than cores" if any(one.oversubscribed for one in best.values()) else ""
    return (
        f"{labels.capital(level_phrase(level))}, {labels.counted(count, 'thread')} of {series.label} "
        f"{'reaches' if count == 1 else 'reach'} these rates in million {format_bytes(size_bytes)} messages "
        f"per second{over}: {labels.listed(texts)}."
    )
