"""The chapters on exchanges: what they cost, and how far off their predictions were."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from earlybird.data import labels
from earlybird.present import commands
from earlybird.present.core.parts import Chapter, Figure, Item
from earlybird.present.core.table import Table
from earlybird.present.core.text import crowd, crowded_sentence
from earlybird.present.material import Material
from earlybird.present.subjects.exchange import tables
from earlybird.present.subjects.exchange.answer import (
    accuracy_answer,
    arguments,
    exchange_answer,
    volume_answer,
)
from earlybird.present.subjects.exchange.figures import ranks_figure, scatter_figure, waiting_figure
from earlybird.present.subjects.exchange.matrix import matrix_figure
from earlybird.present.subjects.exchange.view import Exchange
from earlybird.present.subjects.exchange.volumes import node_volumes_figure, rank_volumes_figure
from earlybird.present.subjects.what_if.answer import node_counts_answer, tolerance_answer
from earlybird.present.subjects.what_if.figures import node_counts_figure, tolerance_figure
from earlybird.present.subjects.what_if.tables import node_counts_table, tolerance_table

ID, ACCURACY = "exchange", "accuracy"
QUESTION, ACCURACY_QUESTION = "What does my exchange cost?", "How far off was the prediction?"
NO_PATTERN = "To draw the communication matrix, add the pattern file or the run folder of the replay."
UNMODELLED = (
    "Waiting ranks yield their core, which no model describes: expect larger errors than with one core per "
    "rank."
)
ERROR_MEANS = (
    "The relative error is the sum over ranks of |measured - predicted| divided by the sum of measured, "
    "equation (11) of Thune et al. 2023. The error of the slowest rank is (largest predicted - largest "
    "measured) / largest measured: it is the error of the time of the whole exchange."
)
NO_TIMES = "The pattern was given without a measured or predicted time."
BRIEF_RANKS = 8


def exchange_chapter(exchanges: Sequence[Exchange], material: Material) -> Chapter:
    """Return the chapter on the cost of exchanges, also with other parameters and numbers of nodes."""
    timed = [exchange for exchange in exchanges if exchange.is_timed]
    placed = [exchange for exchange in exchanges if exchange.is_placed]
    untimed = [exchange for exchange in placed if not exchange.is_timed]
    tolerances, node_counts = material.named("tolerances"), material.named("node_counts")
    volumes = [tables.traffic_table(placed)] if placed else []
    what_if = [
        *(tolerance_table(*named) for named in tolerances),
        *(node_counts_table(*named) for named in node_counts),
    ]
    answers = [
        *map(exchange_answer, timed),
        *map(volume_answer, untimed),
        *(node_counts_answer(*named) for named in node_counts),
        *(tolerance_answer(*named) for named in tolerances),
    ]
    alone = NO_TIMES if exchanges and not (timed or placed) else ""
    return Chapter(
        ID,
        QUESTION,
        " ".join(filter(None, [alone, *(answer.sentence for answer in answers)])),
        [f"{item.name}: {item.title}." if item.name else f"{item.title}." for item in exchanges],
        answers=answers,
        warnings=[
            *_warnings(timed),
            *(labels.capital(note) for counts, _ in node_counts for note in counts.notes),
        ],
        figures=[
            *_figures(exchanges),
            *_what_if_figures(node_counts, node_counts_figure, "node-counts"),
            *_what_if_figures(tolerances, tolerance_figure, "tolerance"),
        ],
        shown=volumes,
        closing=what_if,
        tables=[table for exchange in exchanges for table in _tables(exchange)],
        brief=[
            *(table.brief() for table in volumes),
            *(tables.ranks_table(exchange, BRIEF_RANKS) for exchange in timed),
            *what_if,
        ],
        absent=_absent(exchanges, timed, material),
    )


def accuracy_chapter(exchanges: Sequence[Exchange], material: Material) -> Chapter:
    """Return the chapter on the errors of predictions that are compared with a measurement."""
    compared = [exchange for exchange in exchanges if exchange.error]
    if not compared:
        replay = commands.replay(*arguments(exchanges, material))
        missing = ("To compare a prediction with a measurement, run", replay)
        return Chapter(ACCURACY, ACCURACY_QUESTION, "", absent=[missing])
    answers = [accuracy_answer(exchange, material) for exchange in compared]
    errors = [tables.errors_table(exchange.errors(), exchange.name) for exchange in compared]
    return Chapter(
        ACCURACY,
        ACCURACY_QUESTION,
        " ".join(answer.sentence for answer in answers),
        [ERROR_MEANS],
        answers=answers,
        figures=[
            _titled(scatter_figure(exchange, exchange.measured_s, f"scatter-{k}"), exchange)
            for k, exchange in enumerate(exchanges)
            if exchange.error and exchange.measured_s is not None
        ],
        shown=errors,
        brief=errors,
    )


def _figures(exchanges: Sequence[Exchange]) -> list[Figure]:
    figures: list[Figure] = []
    drawn = set()
    for k, exchange in enumerate(exchanges):
        own: list[Figure | None] = []
        pattern = exchange.pattern
        if pattern is not None and id(pattern) not in drawn:
            own.append(matrix_figure(pattern, exchange, f"matrix-{k}"))
            drawn.add(id(pattern))
        if pattern is not None and exchange.is_placed and pattern.num_messages:
            own += [
                node_volumes_figure(exchange, f"nodes-{k}"),
                rank_volumes_figure(exchange, f"volumes-{k}"),
            ]
        if exchange.is_timed:
            own += [waiting_figure(exchange, f"waiting-{k}"), ranks_figure(exchange, f"ranks-{k}")]
        figures += [_titled(figure, exchange) for figure in own if figure is not None]
    return figures


def _what_if_figures(
    items: Sequence[tuple[Item, str]], figure_of: Callable[[Item, str], Figure], kind: str
) -> list[Figure]:
    figures = [(figure_of(item, f"{kind}-{k}"), name) for k, (item, name) in enumerate(items)]
    return [replace(figure, title=f"{figure.title}: {name}") if name else figure for figure, name in figures]


def _titled(figure: Figure, exchange: Exchange) -> Figure:
    """Return the figure; one of several exchanges is identified by its title, and half as wide."""
    if not exchange.name:
        return figure
    return replace(figure, title=f"{figure.title}: {exchange.name}", wide=False)


def _tables(exchange: Exchange) -> list[Table]:
    times = [tables.ranks_table(exchange)] if exchange.is_timed else []
    if not exchange.is_placed:
        return times
    nodes = [tables.node_volumes_table(exchange)] if len(exchange.traffic.nodes) > 1 else []
    return [*times, tables.levels_table(exchange), tables.rank_volumes_table(exchange), *nodes]


def _absent(
    exchanges: Sequence[Exchange], timed: Sequence[Exchange], material: Material
) -> list[tuple[str, str]]:
    given = arguments(timed or exchanges, material)
    predict, replay = commands.predict_file(*given), commands.replay(*given)
    if not timed:
        yours = "" if exchanges else " with the file of your pattern"
        return [(f"To predict its cost{yours}, run", predict), (f"To measure its cost{yours}, run", replay)]
    absent = []
    if all(exchange.measured_s is None for exchange in timed):
        absent.append(("These times are predictions. To measure the exchange, run", replay))
    if not any(exchange.predicted_s for exchange in timed):
        absent.append(("These times were measured, without a prediction. To predict them, run", predict))
    if any(exchange.pattern is None for exchange in timed):
        absent.append((NO_PATTERN, ""))
    return absent


def _warnings(timed: Sequence[Exchange]) -> list[str]:
    """Return the notes of the comparisons; the report has its own text about more ranks than cores."""
    crowded = [exchange for exchange in timed if exchange.oversubscribed]
    texts = [
        _link_text(exchange, *exchange.link)
        for exchange in crowded
        if exchange.link and exchange.link_limited
    ]
    if any(not exchange.link_limited for exchange in crowded):
        texts.append(f"{crowded_sentence('ranks')} {UNMODELLED}")
    notes = dict.fromkeys(note for exchange in timed for note in exchange.notes)
    return texts + [labels.capital(note) for note in notes if not (crowded and crowd("ranks") in note)]


def _link_text(exchange: Exchange, node: int, share: float) -> str:
    name = f" ({exchange.name})" if exchange.name else ""
    return (
        f"There were {crowd('ranks')}{name}, but the links were the bottleneck: the busiest link, that "
        f"of node {node}, needs {labels.percent(min(share, 1))} of the measured time to carry its bytes."
    )
