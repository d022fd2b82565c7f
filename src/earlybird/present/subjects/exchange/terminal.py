"""Prints exchanges: the times of their ranks, measured, predicted or both, and what a pattern means on a
layout."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from earlybird.compare import exchange_samples, measured_times
from earlybird.data.comparison import Comparison, EmptyExchange
from earlybird.data.exchange_models import with_reason
from earlybird.data.labels import counted
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.run import Run
from earlybird.data.statistics import MEAN, MEDIAN, Statistic
from earlybird.data.units import format_bytes
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table, prints_all
from earlybird.present.subjects.exchange.answer import exchange_sentence, volume_sentence
from earlybird.present.subjects.exchange.sources import (
    compared_exchange,
    patterned_exchange,
    predicted_exchange,
)
from earlybird.present.subjects.exchange.tables import (
    errors_table,
    levels_table,
    node_volumes_table,
    parts_table,
    ranks_table,
    slowest_ranks,
)
from earlybird.present.subjects.exchange.view import Exchange

MAX_RANKS = 32  # rows; of more ranks, the slowest are printed without --all
_MAX_NODES = 64  # rows; JSON and CSV have all


def print_prediction(prediction: Prediction, format: str, pattern: Pattern | None = None) -> None:
    """Print the times of every rank; notes, and the amount of messages of a known pattern, on stderr."""
    for reservation in prediction.notes:
        note(f"warning: {reservation}")
    columns = prediction.columns()
    if print_data(format, prediction.to_json(), _rank_rows(columns), ("rank", *columns)):
        return
    ranks, _ = slowest_ranks(prediction.time_s, _most_rows(len(prediction.time_s)))
    print_table(parts_table(prediction, ranks))
    sentence = exchange_sentence(predicted_exchange("", prediction), prediction.extra)
    if pattern is not None:
        number = counted(pattern.num_messages, "message")
        sentence += f" It has {number}, {format_bytes(pattern.total_bytes)}."
        if not pattern.num_messages:
            sentence = "The exchange has no messages, so that it takes no time on any rank."
    note(sentence)


def print_measured(run: Run, format: str, statistic: Statistic = MEDIAN) -> None:
    """Print the time of every rank of an exchange without prediction."""
    samples = run.samples()
    columns = {"measured_s": measured_times(exchange_samples(samples), statistic)}
    if without_data := exchange_samples(samples, empty=True):
        columns["empty_s"] = measured_times(without_data, statistic)
    shown = {"statistic": statistic} if statistic != MEDIAN else {}
    lists = {name: values_s.tolist() for name, values_s in columns.items()}
    value = {"run": str(run.path), **shown, **lists, "slowest_rank": int(columns["measured_s"].argmax())}
    if not print_data(format, value, _rank_rows(columns), ("rank", *columns)):
        empty = EmptyExchange(columns["empty_s"], {}, {}, {}) if without_data else None
        measured_s = columns["measured_s"]
        _print_times(Exchange("", "", len(measured_s), None, measured_s=measured_s, empty=empty))
        if statistic == MEAN:
            print_line("values: means over the iterations of all launches")
        print_line()
        print_line("add --profile PROFILE.json to compare with a prediction")


def print_comparison(comparison: Comparison, format: str) -> None:
    """Print measured and predicted times of every rank, and the errors of the models."""
    columns = {"measured_s": comparison.measured_s}
    if comparison.empty is not None:
        columns["empty_s"] = comparison.empty.measured_s
    columns |= {f"{model.replace('-', '_')}_s": times for model, times in comparison.predicted_s.items()}
    if print_data(format, comparison.to_json(), _rank_rows(columns), ("rank", *columns)):
        return
    _print_times(compared_exchange("", comparison))
    print_line()
    print_errors(comparison)
    if default := comparison.extra.get("default_model"):
        errors = (comparison.empty or comparison).error
        better = any(error < errors.get(default, 0) for error in errors.values())
        store = "; `earlybird fit RUN... REPLAY` makes the model that errs least the default"
        note(f"predict's default here: {with_reason(default, comparison.extra)}{store if better else ''}")


def print_comparison_of_file(comparison: Comparison, format: str) -> None:
    """Print a comparison with its notes, which a replay has printed while it ran."""
    for difference in comparison.extra.get("notes", ()):
        note(f"warning: {difference}")
    print_comparison(comparison, format)


def print_errors(comparison: Comparison) -> None:
    """Print the errors of every model, best first, also over the exchange of empty messages if that was
    measured."""
    print_table(errors_table(compared_exchange("", comparison).errors()))
    if comparison.empty:
        note(f"{comparison.describe_empty()}; `over empty` adds the data to that")


def print_traffic(pattern: Pattern, layout: Layout, format: str) -> None:
    """Print how much of a pattern stays on sockets and nodes of a layout, and what each node receives."""
    exchange = patterned_exchange("", pattern, layout)
    traffic = exchange.traffic.to_json()
    value, nodes = {"layout": layout.text, "ranks": layout.num_ranks, **traffic}, traffic["nodes"]
    if print_data(format, value, nodes, ("node", *(f"{level}_bytes" for level in LEVELS))):
        return
    print_line(volume_sentence(exchange))
    print_table(levels_table(exchange))
    print_line()
    print_table(node_volumes_table(exchange, _MAX_NODES))
    if len(nodes) > _MAX_NODES:
        print_line(f"... {len(nodes) - _MAX_NODES} more; --format csv has all")


def _print_times(exchange: Exchange) -> None:
    print_table(ranks_table(exchange, _most_rows(exchange.num_ranks)))
    print_line(exchange_sentence(exchange))


def _most_rows(num_ranks: int) -> int:
    """Return how many ranks are printed, and say so if these are not all."""
    if num_ranks <= MAX_RANKS or prints_all():
        return num_ranks
    note(f"the {MAX_RANKS} slowest of {num_ranks} ranks; --all prints all")
    return MAX_RANKS


def _rank_rows(columns: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    for rank, times_s in enumerate(zip(*(values_s.tolist() for values_s in columns.values()), strict=True)):
        yield {"rank": rank, **dict(zip(columns, times_s, strict=True))}
