"""What an exchange tolerates, and on how many nodes it takes least, as sentences and answers."""

from collections.abc import Mapping
from typing import Any

from earlybird.data import labels
from earlybird.data.exchange_models import with_reason
from earlybird.data.layout import level_phrase
from earlybird.data.node_counts import NodeCounts
from earlybird.data.shell_commands import quoted
from earlybird.data.tolerance import BANDWIDTH, Tolerance, growth_text
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer
from earlybird.present.core.text import NOTHING


def tolerance_sentence(tolerance: Tolerance, name: str = "") -> str:
    """Return the parameter that the exchange tolerates least."""
    growth = max(tolerance.growths, default=0.0)
    curve = tolerance.most_critical(growth)
    text = f"{_by_model(tolerance.model, tolerance.extra)}, {_exchange(name)} takes "
    text += format_seconds(tolerance.time_s)
    if curve is None:
        return f"{text}, the same with any latency and bandwidth that was tried."
    return (
        f"{text} and depends most on the {curve.name}: with {curve.value_at(growth)} instead of "
        f"{curve.value_text()} it takes {growth_text(growth)} longer."
    )


def tolerance_answer(tolerance: Tolerance, name: str) -> Answer:
    """Return the value at which the exchange takes longer."""
    title, sentence = f"What the exchange tolerates {name}".rstrip(), tolerance_sentence(tolerance, name)
    growth = max(tolerance.growths, default=0.0)
    curve = tolerance.most_critical(growth)
    if curve is None:
        return Answer(title, "", "", sentence, NOTHING)
    means = "bytes" if curve.parameter == BANDWIDTH else "messages"
    return Answer(
        title, curve.value_at(growth), "", sentence, f"send fewer {means} {level_phrase(curve.level)}"
    )


def node_counts_sentence(counts: NodeCounts, name: str = "") -> str:
    """Return the time on each number of nodes, the least first."""
    times = [
        f"{format_seconds(count.time_s.value)} on {labels.counted(count.nodes, 'node')}"
        for count in counts.fastest_first()
    ]
    ranks = labels.counted(counts.ranks, "rank")
    by_model = _by_model(counts.model, counts.extra)
    return f"{by_model}, {_exchange(name)} of {ranks} takes {labels.listed(times)}."


def node_counts_answer(counts: NodeCounts, name: str) -> Answer:
    """Return the least time, and the layout if it is clearly less than the others."""
    best, *others = counts.fastest_first()
    is_clear = bool(others) and all(best.time_s.high < other.time_s.low for other in others)
    return Answer(
        f"Number of nodes {name}".rstrip(),
        format_seconds(best.time_s.value),
        interval_text(best.time_s, format_seconds),
        node_counts_sentence(counts, name),
        f"place the ranks as in the layout `{quoted(best.layout)}`" if is_clear else "",
    )


def _by_model(model: str, extra: Mapping[str, Any]) -> str:
    return f"By the {with_reason(f'{model} model', extra)}"


def _exchange(name: str) -> str:
    return f"the exchange ({name})" if name else "the exchange"
