"""The chapter on partitioned communication: what it costs and gains by the metrics of Temucin et al. 2022."""

from collections.abc import Mapping

from earlybird.compare.partitioned import AVAILABILITY, DELIVERED, OVERHEAD
from earlybird.data import labels
from earlybird.data.methods import EARLYBIRD, MANY, OWN_CALLS, SINGLE
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes
from earlybird.present.core.lines import measured_text
from earlybird.present.core.notation import interval_text, ratio_text, with_interval
from earlybird.present.core.parts import Answer, Chapter, grouped
from earlybird.present.core.points import choices
from earlybird.present.core.table import MAX_BRIEF_ROWS, MAX_PAGE_ROWS
from earlybird.present.core.text import NOTHING, crowded_sentence, method_names
from earlybird.present.material import Material
from earlybird.present.subjects.measured.columns import labelled_results, results_table
from earlybird.present.subjects.partitioned.figures import MAX_SETTINGS, partitioned_figures
from earlybird.present.subjects.partitioned.view import (
    Metrics,
    by_interest,
    metric,
    partitioned_metrics,
    setting_text,
)

ID = "partitioned"
QUESTION = "What does partitioned communication cost, and what does it gain?"
# The answer names the better ones of these.
CALLS = (OWN_CALLS, EARLYBIRD)
_CAPTION = "Metrics of partitioned communication"
# With fewer launches nothing is advised: the interval of two is no more than the two values.
LAUNCHES_FOR_ADVICE = 3


def partitioned_chapter(material: Material) -> Chapter:
    """Return the chapter; it is empty without partitioned communication."""
    measured = partitioned_metrics(material)
    if not measured:
        return Chapter(ID, QUESTION, "")
    ordered = by_interest(measured)
    by_mpi = grouped(ordered, lambda metrics: metrics.label).values()
    answers = [_more_available_calls(group[0]) for group in by_mpi]
    by_setting = grouped(ordered, lambda metrics: metrics.setting).values()
    first_results = [result for group in by_setting for result in labelled_results(group)]
    crowded = sum(metrics.oversubscribed for metrics in measured)
    settings = labels.counted(len(measured), "setting")
    whole = results_table(_CAPTION, labelled_results(measured), on_page=True)
    return Chapter(
        ID,
        QUESTION,
        answers[0].summary,
        [
            "Metrics of Temuçin et al. 2022; the share delivered before the join is not in the paper. "
            + measured_text(first_results)
            + f" {crowded_sentence(where=f'In {crowded} of {settings}')}" * bool(crowded),
            method_names(measured),
        ],
        answers=answers,
        figures=partitioned_figures(ordered),
        tables=[whole.first(MAX_PAGE_ROWS, where="in `earlybird show RUN`")],
        brief=[results_table(_CAPTION, first_results).brief().first(MAX_BRIEF_ROWS)],
        choices=choices(ordered[:MAX_SETTINGS]),
    )


def _more_available_calls(metrics: Metrics) -> Answer:
    """Return the calls with the larger availability."""
    point = metrics.points[-1]
    what = f"Partitioned communication of {format_bytes(point.size_bytes)}: {setting_text(metrics)}"
    results = {method: point.results[method] for method in (*CALLS, MANY) if method in point.results}
    available = {
        method: share for method, result in results.items() if (share := metric(result, AVAILABILITY))
    }
    calls = [method for method in CALLS if method in available]
    if not calls:
        return Answer(what, "", "", f"No launch compares it with a {labels.method(SINGLE)}.", "")
    best = max(calls, key=lambda method: available[method].value)
    number = labels.percent(available[best].value)
    texts = [
        f"{labels.capital(labels.method(best))} leaves the application {number} of a single message's time "
        + _others_text(results[best]),
        *(
            f"{labels.method(method)} {with_interval(available[method], labels.percent)} "
            + _others_text(results[method])
            for method in available
            if method != best
        ),
    ]
    return Answer(
        what,
        f"availability {number}",
        interval_text(available[best], labels.percent),
        f"{'; '.join(texts)}.",
        _advice(best, available, min(results[method].launches for method in calls)),
    )


def _others_text(result: Result) -> str:
    """Return `(overhead 1.20, 88 % delivered before the join)`."""
    overhead, delivered = (metric(result, name) for name in (OVERHEAD, DELIVERED))
    texts = [f"overhead {ratio_text(overhead.value)}"] if overhead else []
    texts += [f"{labels.percent(delivered.value)} delivered before the join"] if delivered else []
    return f"({', '.join(texts)})"


def _advice(best: str, known: Mapping[str, Estimate], launches: int) -> str:
    """Return the advice to use libearlybird if it is clearly better than the MPI's own calls in enough
    launches, unless messages per partition are clearly better still."""
    own, many = known.get(OWN_CALLS), known.get(MANY)
    if best != EARLYBIRD or own is None or own.high >= known[best].low:
        return NOTHING
    if many is not None and many.low > known[best].high:
        return NOTHING
    if launches < LAUNCHES_FOR_ADVICE:
        return f"measure {LAUNCHES_FOR_ADVICE} launches or more to be sure (--launches)"
    return "start the program with `earlybird exec`"
