"""What an exchange takes on other numbers of nodes, as parts of the chapter on exchanges."""

from earlybird.data import labels
from earlybird.data.node_counts import NodeCount, NodeCounts
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer


def node_counts_sentence(found: NodeCounts, name: str) -> str:
    """The number of nodes on which the exchange takes least."""
    what = f"the exchange ({name})" if name else "the exchange"
    best, others = _split(found)
    asked = labels.listed([str(one.nodes) for one in found.counts])
    text = f"By the {found.model} model, {what} of {labels.counted(found.ranks, 'rank')} takes "
    text += f"{format_seconds(best.time_s.value)} on {labels.counted(best.nodes, 'node')}"
    return f"{text}, least of {asked}." if others else f"{text}."


def node_counts_answer(found: NodeCounts, name: str) -> Answer:
    """The same for the first screen, with the others."""
    best, others = _split(found)
    times = [
        f"{format_seconds(one.time_s.value)} on {labels.counted(one.nodes, 'node')}"
        for one in sorted(others, key=lambda one: one.time_s.value)
    ]
    is_clear = bool(others) and all(best.time_s.high < one.time_s.low for one in others)
    more = f"; it takes {labels.listed(times)}" if times else ""
    return Answer(
        f"Number of nodes {name}".rstrip(),
        format_seconds(best.time_s.value),
        interval_text(best.time_s, format_seconds),
        f"Time of the slowest rank on {labels.counted(best.nodes, 'node')}, predicted by the {found.model} "
        f"model{more}.",
        f"place the ranks as in the layout `{quoted(best.layout)}`" if is_clear else "",
    )


def _split(found: NodeCounts) -> tuple[NodeCount, list[NodeCount]]:
    best = min(found.counts, key=lambda one: one.time_s.value)
    return best, [one for one in found.counts if one is not best]
