"""The chapter on partitioned communication: what it costs and gains by the metrics of Temucin et al. 2022."""

from collections.abc import Mapping

from earlybird.compare.partitioned import AVAILABILITY, DELIVERED, OVERHEAD
from earlybird.data import labels
from earlybird.data.methods import EARLYBIRD, MANY, OWN_CALLS, SINGLE
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes
from earlybird.present.core.lines import MEASURED
from earlybird.present.core.notation import interval_text, ratio_text, with_interval
from earlybird.present.core.parts import Answer, Chapter, grouped
from earlybird.present.core.text import NOTHING
from earlybird.present.material import Material
from earlybird.present.subjects.partitioned.figures import MAX_SETTINGS, partitioned_figures
from earlybird.present.subjects.partitioned.tables import brief_partitioned_table, partitioned_table
from earlybird.present.subjects.partitioned.view import (
    Metrics,
    by_interest,
    choices,
    metric,
    partitioned_metrics,
    setting_text,
)

ID = "partitioned"
CROWDED = " Settings with more threads than cores include context switches."
QUESTION = "What does partitioned communication cost, and what does it gain?"
# Of these the answer names the better one.
CALLS = (OWN_CALLS, EARLYBIRD)
# With fewer launches nothing is advised: the interval of two is no more than the two values.
LAUNCHES_FOR_ADVICE = 3


def partitioned_chapter(material: Material) -> Chapter:
    measured = partitioned_metrics(material)
    if not measured:
        return Chapter(ID, QUESTION, "")
    ordered = by_interest(measured)
    heads = [group[0] for group in grouped(ordered, lambda one: one.label).values()]
    return Chapter(
        ID,
        QUESTION,
        _sentence(ordered[0]),
        [
            "Metrics of Temuçin et al. 2022; the share delivered before the join is not in the paper. "
            + MEASURED
            + CROWDED * any(one.oversubscribed for one in measured),
        ],
        answers=[_answer(one) for one in heads],
        figures=partitioned_figures(ordered),
        tables=[partitioned_table(measured)],
        brief=[brief_partitioned_table(ordered)],
        choices=choices(ordered[:MAX_SETTINGS]),
    )


def _calls(one: Metrics) -> list[str]:
    return [method for method in CALLS if method in one.points[-1].results]


def _sentence(one: Metrics) -> str:
    """Overhead, availability and delivered share of the largest buffer, for each kind of partitioned call."""
    point, texts = one.points[-1], []
    for method in _calls(one):
        result = point.results[method]
        overhead, available, delivered = (
            metric(result, name) for name in (OVERHEAD, AVAILABILITY, DELIVERED)
        )
        if overhead and available and delivered:
            texts.append(
                f"{labels.method(method)} has an overhead of {ratio_text(overhead.value)}, delivers "
                f"{labels.percent(delivered.value)} before the threads join and leaves the application "
                f"{labels.percent(available.value)} of the time of a single message"
            )
    what = f"{format_bytes(point.size_bytes)}, {setting_text(one)}"
    return (
        f"{what}: {'; '.join(texts)}." if texts else f"{what}: no launch compares it with a single message."
    )


def _answer(one: Metrics) -> Answer:
    """The calls with the clearly larger availability."""
    point = one.points[-1]
    what = f"Partitioned communication of {format_bytes(point.size_bytes)}: {setting_text(one)}"
    found = {method: metric(point.results[method], AVAILABILITY) for method in _calls(one)}
    known = {method: estimate for method, estimate in found.items() if estimate is not None}
    if not known:
        return Answer(what, "", "", f"No launch compares it with a {labels.method(SINGLE)}.", "")
    best = max(known, key=lambda method: known[method].value)
    others = {method: known[method] for method in known if method != best}
    if MANY in point.results and (many := metric(point.results[MANY], AVAILABILITY)):
        others[MANY] = many
    text = (
        f"{labels.capital(labels.method(best))} leaves the application {labels.percent(known[best].value)} "
        "of a single message's time"
    )
    texts = [f"{labels.method(name)} {with_interval(others[name], labels.percent)}" for name in others]
    text += "".join(f", {of_other}" for of_other in texts) + "."
    return Answer(
        what,
        f"availability {labels.percent(known[best].value)}",
        interval_text(known[best], labels.percent),
        text,
        _advice(best, known | others, min(point.results[method].launches for method in known)),
    )


def _advice(best: str, known: Mapping[str, Estimate], launches: int) -> str:
    """To use libearlybird if it is clearly better than the MPI's own calls in enough launches, unless
    messages per partition are clearly better still."""
    own, many = known.get(OWN_CALLS), known.get(MANY)
    if best != EARLYBIRD or own is None or own.high >= known[best].low:
        return NOTHING
    if many is not None and many.low > known[best].high:
        return NOTHING
    if launches < LAUNCHES_FOR_ADVICE:
        return f"measure {LAUNCHES_FOR_ADVICE} launches or more to be sure (--launches)"
    return "start the program with `earlybird exec`"
