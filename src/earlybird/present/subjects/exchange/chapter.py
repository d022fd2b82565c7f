"""The chapter on exchanges: matrix, volumes, the time of each rank, waiting for the slowest, tolerance,
other numbers of nodes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from earlybird.data import labels
from earlybird.data.layout import LEVELS, level_phrase
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present import commands
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer, Chapter, Figure, Item
from earlybird.present.core.table import Table
from earlybird.present.material import Material
from earlybird.present.subjects.exchange.figures import ranks_figure, waiting_figure
from earlybird.present.subjects.exchange.matrix import matrix_figure
from earlybird.present.subjects.exchange.tables import (
    brief_traffic,
    node_volumes_table,
    rank_volumes_table,
    ranks_table,
    traffic_table,
)
from earlybird.present.subjects.exchange.view import Exchange
from earlybird.present.subjects.exchange.volumes import node_volumes_figure, rank_volumes_figure
from earlybird.present.subjects.what_if.answer import (
    node_counts_answer,
    node_counts_sentence,
    tolerance_answer,
    tolerance_sentence,
)
from earlybird.present.subjects.what_if.figures import node_counts_figure, tolerance_figure
from earlybird.present.subjects.what_if.tables import node_counts_table, tolerance_table

ID = "exchange"
QUESTION = "What does my exchange cost?"
NO_PATTERN = "To draw the communication matrix, add the pattern file or the run folder of the replay"
CROWDED = (
    "There were more ranks than cores. Waiting ranks yield their core, so the measured times include context "
    "switches, which no model describes. Expect larger errors than with one core per rank."
)
BRIEF_RANKS = 8


def exchange_chapter(all_exchanges: Sequence[Exchange], material: Material) -> Chapter:
    timed = [item for item in all_exchanges if item.timed]
    placed = [item for item in all_exchanges if item.traffic is not None]
    tolerances = material.named("tolerances")
    node_counts = material.named("node_counts")
    volumes = [traffic_table(placed)] if placed else []
    what_if = [tolerance_table(*one) for one in tolerances]
    what_if += [node_counts_table(*one) for one in node_counts]
    answers = [_answer(item) for item in timed]
    answers += [_volume_answer(item) for item in placed if not item.timed]
    answers += [node_counts_answer(*one) for one in node_counts]
    answers += [answer for one in tolerances if (answer := tolerance_answer(*one))]
    sentences = [*_sentences(all_exchanges), *(node_counts_sentence(*one) for one in node_counts)]
    sentences += [tolerance_sentence(*one) for one in tolerances]
    return Chapter(
        ID,
        QUESTION,
        " ".join(sentences),
        [f"{item.name}: {item.title}." if item.name else f"{item.title}." for item in all_exchanges],
        answers=answers,
        warnings=[
            *_warnings(timed),
            *(labels.capital(note) for found, _ in node_counts for note in found.notes),
        ],
        figures=[
            *_figures(all_exchanges),
            *_what_if_figures(node_counts, node_counts_figure, "node-counts"),
            *_what_if_figures(tolerances, tolerance_figure, "tolerance"),
        ],
        shown=volumes,
        closing=what_if,
        tables=[table for item in all_exchanges for table in _tables(item)],
        brief=[
            *(brief_traffic(table) for table in volumes),
            *(ranks_table(item, BRIEF_RANKS) for item in timed),
            *what_if,
        ],
        absent=_absent(all_exchanges, timed, material),
    )


def _sentences(all_exchanges: Sequence[Exchange]) -> list[str]:
    """Of the times; of exchanges without times, what the layout means for the pattern."""
    found = [_sentence(item) for item in all_exchanges if item.timed]
    found += [_volume_sentence(item) for item in all_exchanges if not item.timed and item.traffic]
    if all_exchanges and not found:
        return ["The pattern was given without a measured or predicted time."]
    return found


def _figures(all_exchanges: Sequence[Exchange]) -> list[Figure]:
    figures: list[Figure] = []
    drawn = set()
    for k, item in enumerate(all_exchanges):
        own: list[Figure | None] = []
        if item.pattern is not None and id(item.pattern) not in drawn:
            own.append(matrix_figure(item, f"matrix-{k}"))
            drawn.add(id(item.pattern))
        if item.traffic is not None and item.pattern.num_messages:
            own += [node_volumes_figure(item, f"nodes-{k}"), rank_volumes_figure(item, f"volumes-{k}")]
        if item.timed:
            own += [waiting_figure(item, f"waiting-{k}"), ranks_figure(item, f"ranks-{k}")]
        figures += [named(figure, item) for figure in own if figure is not None]
    return figures


def _what_if_figures(
    items: Sequence[tuple[Item, str]], figure_of: Callable[[Item, str], Figure], kind: str
) -> list[Figure]:
    figures = []
    for k, (found, name) in enumerate(items):
        figure = figure_of(found, f"{kind}-{k}")
        figures.append(replace(figure, title=f"{figure.title}: {name}") if name else figure)
    return figures


def _tables(item: Exchange) -> list[Table]:
    tables = [ranks_table(item)] if item.timed else []
    if item.traffic is None:
        return tables
    nodes = [node_volumes_table(item)] if len(item.traffic.nodes) > 1 else []
    return [*tables, rank_volumes_table(item), *nodes]


def arguments(all_exchanges: Sequence[Exchange], material: Material) -> tuple[str, str, str]:
    """Pattern, profile and layout of the first exchange, for a command."""
    if not all_exchanges:
        return commands.PATTERN, commands.profile_of(material), commands.placed("", 4)
    item = all_exchanges[0]
    return (
        commands.pattern_of(material, item.digest),
        commands.profile_of(material, item.profile_id, item.mpi),
        commands.placed(item.layout, item.num_ranks, item.map_by),
    )


def _absent(
    all_exchanges: Sequence[Exchange], timed: Sequence[Exchange], material: Material
) -> list[tuple[str, str]]:
    given = arguments(timed or all_exchanges, material)
    predict, replay = commands.predict_file(*given), commands.replay(*given)
    if not timed:
        yours = "" if all_exchanges else " with the file of your pattern"
        return [(f"To predict its cost{yours}, run", predict), (f"To measure its cost{yours}, run", replay)]
    absent = []
    if all(item.measured_s is None for item in timed):
        absent.append(("These times are predictions. To measure the exchange, run", replay))
    if not any(item.predicted_s for item in timed):
        absent.append(("These times were measured, without a prediction. To predict them, run", predict))
    if any(item.pattern is None for item in timed):
        absent.append((f"{NO_PATTERN}.", ""))
    return absent


def _slowest(item: Exchange) -> tuple[int, float, float]:
    """The slowest rank, its time, and how long the others wait for it on average."""
    _, times = item.reference()
    slowest = int(np.argmax(times))
    waits = times[slowest] - np.delete(times, slowest)
    return slowest, times[slowest], float(waits.mean()) if len(waits) else 0.0


def _answer(item: Exchange) -> Answer:
    name, _ = item.reference()
    slowest, time_s, waiting_s = _slowest(item)
    source = "measured" if name == "measured" else f"predicted by the {name} model"
    waiting = f"; the others wait {format_seconds(waiting_s)} for it on average" if waiting_s else ""
    return Answer(
        f"Exchange {item.name}".rstrip(),
        format_seconds(time_s),
        interval_text(item.slowest_s, format_seconds),
        f"Time of rank {slowest}, the slowest, {source}{waiting}.",
        _relief(item, slowest),
    )


def _relief(item: Exchange, rank: int) -> str:
    """What shortens the time of a rank."""
    means = "fewer or smaller messages, another partition of the data, or another placement of its senders"
    if item.pattern is None:
        return f"reduce what rank {rank} receives: {means}"
    received = item.pattern.bytes[item.pattern.dst == rank]
    what = f"{labels.counted(len(received), 'message')}, {format_bytes(int(received.sum()))} in total"
    return f"reduce what rank {rank} receives ({what}): {means}"


def _sentence(item: Exchange) -> str:
    name, _ = item.reference()
    slowest, time_s, waiting_s = _slowest(item)
    what = f"The exchange ({item.name})" if item.name else "The exchange"
    verb = "takes" if name == "measured" else f"takes, as predicted by the {name} model,"
    text = f"{what} {verb} {format_seconds(time_s)}, the time of rank {slowest}, the slowest"
    if waiting_s:
        share = labels.percent(waiting_s / time_s)
        text += f"; the others wait {format_seconds(waiting_s)} for it on average ({share} of the exchange)"
    return text + "."


def _volume_answer(item: Exchange) -> Answer:
    found = item.traffic
    share = labels.percent(found.share(LEVELS[-1]))
    return Answer(f"Exchange {item.name}".rstrip(), f"{share} between nodes", "", _volume_sentence(item))


def _volume_sentence(item: Exchange) -> str:
    """How much of the volume stays on sockets and nodes, and the rank that receives most."""
    found = item.traffic
    what = f"the exchange ({item.name})" if item.name else "the exchange"
    shares = [f"{labels.percent(found.share(level))} {level_phrase(level)}" for level in LEVELS]
    text = f"On {item.layout}, {what} moves {format_bytes(found.total_bytes)}: {labels.listed(shares)}"
    if found.total_bytes:
        rank = int(found.rank_bytes.argmax())
        text += f"; rank {rank} receives most, {format_bytes(int(found.rank_bytes[rank]))}"
    return text + "."


def _warnings(timed: Sequence[Exchange]) -> list[str]:
    """The notes of the comparisons; the report has its own text about more ranks than cores."""
    crowded = [item for item in timed if item.oversubscribed]
    texts = [_on_the_link(item) for item in crowded if item.link_limited]
    texts += [CROWDED] if any(not item.link_limited for item in crowded) else []
    notes = [
        note for item in timed for note in item.notes if not (crowded and "more ranks than cores" in note)
    ]
    return texts + [labels.capital(note) for note in dict.fromkeys(notes)]


def _on_the_link(item: Exchange) -> str:
    node, share = item.link
    name = f" ({item.name})" if item.name else ""
    return (
        f"There were more ranks than cores{name}, but the links were the bottleneck: the busiest link, that "
        f"of node {node}, needs {labels.percent(min(share, 1))} of the measured time to carry its bytes."
    )


def named(figure: Figure, item: Exchange) -> Figure:
    """With several exchanges, the title identifies the exchange and figures are placed in pairs."""
    return replace(figure, title=f"{figure.title}: {item.name}", wide=False) if item.name else figure
