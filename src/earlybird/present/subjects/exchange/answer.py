"""What exchanges take, where their volume goes and how far off predictions were, as sentences and answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.exchange_models import with_reason
from earlybird.data.layout import level_phrase
from earlybird.data.levels import LEVELS
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present import commands
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer
from earlybird.present.core.text import crowd
from earlybird.present.material import Material
from earlybird.present.subjects.exchange.view import Exchange


def exchange_sentence(exchange: Exchange, extra: Mapping[str, Any] | None = None) -> str:
    """Return the time of the slowest rank and how long the others wait for it, with the reason for the model
    in `extra` of its prediction."""
    source, _ = exchange.reference()
    rank, time_s, waiting_s = _slowest(exchange)
    by = with_reason(f"{source} model", extra or {})
    verb = "takes" if source == "measured" else f"takes, as predicted by the {by},"
    subject = labels.capital(_subject(exchange))
    text = f"{subject} {verb} {format_seconds(time_s)}, the time of rank {rank}, the slowest"
    if waiting_s:
        share = labels.percent(waiting_s / time_s)
        text += f"; the others wait {format_seconds(waiting_s)} for it on average ({share} of the exchange)"
    return text + "."


def exchange_answer(exchange: Exchange) -> Answer:
    """Return the time of the slowest rank, and what shortens it."""
    rank, time_s, _ = _slowest(exchange)
    what = f"reduce what rank {rank} receives"
    if exchange.pattern is not None:
        received = exchange.pattern.bytes[exchange.pattern.dst == rank]
        number = labels.counted(len(received), "message")
        what += f" ({number}, {format_bytes(int(received.sum()))} in total)"
    return Answer(
        f"Exchange {exchange.name}".rstrip(),
        format_seconds(time_s),
        interval_text(exchange.slowest_s, format_seconds),
        exchange_sentence(exchange),
        f"{what}: fewer or smaller messages, another partition of the data, or another placement of its "
        "senders",
    )


def volume_sentence(exchange: Exchange) -> str:
    """Return how much of the volume stays on sockets and nodes, and what ranks receive."""
    traffic = exchange.traffic
    shares = [f"{labels.percent(traffic.share(level))} {level_phrase(level)}" for level in LEVELS]
    number = labels.counted(sum(traffic.messages.values()), "message")
    text = (
        f"On {exchange.layout}, {_subject(exchange)} moves {format_bytes(traffic.total_bytes)} in {number}: "
        f"{labels.listed(shares)}"
    )
    if traffic.total_bytes:
        rank = int(traffic.rank_bytes.argmax())
        least = format_bytes(int(traffic.rank_bytes[traffic.rank_bytes > 0].min()))
        most = labels.counted(int(traffic.rank_messages.max()), "message")
        largest = format_bytes(int(traffic.rank_bytes[rank]))
        text += f"; a rank receives at most {most}, and if any, {least} to {largest} (rank {rank})"
    return text + "."


def volume_answer(exchange: Exchange) -> Answer:
    """Return the share of the volume between nodes."""
    share = labels.percent(exchange.traffic.share(LEVELS[-1]))
    title = f"Exchange {exchange.name}".rstrip()
    return Answer(title, f"{share} between nodes", "", volume_sentence(exchange))


def accuracy_sentence(exchange: Exchange) -> str:
    """Return the errors of the most accurate model and of the others, and doubts about the measurement."""
    best, *others = exchange.best_first()
    doubts = [f"with {crowd('ranks')}"] if exchange.oversubscribed and not exchange.link_limited else []
    doubts += [f"at a load of {exchange.load:.1f}"] if exchange.load is not None else []
    rest = ", ".join(f"{model}: {labels.percent(exchange.error[model])}" for model in others)
    remarks = [f"measured {labels.listed(doubts)}"] * bool(doubts) + [rest] * bool(others)
    remark = f" ({'; '.join(remarks)})" if remarks else ""
    subject = f"{exchange.name}: the" if exchange.name else "The"
    of_slowest = exchange.slowest_error[best]
    is_close = abs(of_slowest) < 0.0005  # which would read `0.0 % too high`
    off = f"{labels.percent(abs(of_slowest))} too {'high' if of_slowest > 0 else 'low'}"
    return (
        f"{subject} {best} model is the most accurate: its relative error is "
        f"{labels.percent(exchange.error[best])}{remark}, and it predicts the time of the slowest rank "
        f"{'to within 0.1 %' if is_close else off}."
    )


def accuracy_answer(exchange: Exchange, material: Material) -> Answer:
    """Return the error of the most accurate model."""
    best = exchange.best_first()[0]
    command = commands.predict(*arguments([exchange], material), best)
    return Answer(
        f"Prediction {exchange.name}".rstrip(),
        labels.percent(exchange.error[best]),
        "",
        accuracy_sentence(exchange),
        f"predict with `{command}`",
    )


def arguments(exchanges: Sequence[Exchange], material: Material) -> tuple[str, str, str]:
    """Return pattern, profile and layout of the first exchange, for a command."""
    if not exchanges:
        return commands.PATTERN, commands.profile_of(material), commands.placed("", 4)
    exchange = exchanges[0]
    return (
        commands.pattern_of(material, exchange.digest),
        commands.profile_of(material, exchange.profile_id, exchange.mpi),
        commands.placed(exchange.layout, exchange.num_ranks, exchange.map_by),
    )


def _subject(exchange: Exchange) -> str:
    return f"the exchange ({exchange.name})" if exchange.name else "the exchange"


def _slowest(exchange: Exchange) -> tuple[int, float, float]:
    """Return the slowest rank, its time, and how long the others wait for it on average."""
    _, times_s = exchange.reference()
    rank = int(np.argmax(times_s))
    waits_s = times_s[rank] - np.delete(times_s, rank)
    return rank, float(times_s[rank]), float(waits_s.mean()) if len(waits_s) else 0.0
