"""The chapter on recordings: what a program sends to whom, in which calls, and how evenly over ranks."""

from collections.abc import Sequence

import numpy as np

from earlybird.analysis.conditions import conditions
from earlybird.analysis.gaps import remarks, unreturned_calls
from earlybird.analysis.messages import bytes_by_rank
from earlybird.data import labels
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.parts import Answer, Chapter, Figure
from earlybird.present.material import Material
from earlybird.present.subjects.recording.arrivals import arrivals_figures
from earlybird.present.subjects.recording.calls import calls_figure, ranks_figure
from earlybird.present.subjects.recording.matrix import ORDERS, QUANTITIES, matrix_figures
from earlybird.present.subjects.recording.phases import phases_figure
from earlybird.present.subjects.recording.sizes import sizes_figure
from earlybird.present.subjects.recording.tables import (
    arrivals_table,
    calls_table,
    communicators_table,
    pairs_table,
    phases_table,
    ranks_table,
    sizes_table,
    waiting_ranks_table,
    waits_table,
)
from earlybird.present.subjects.recording.view import Recorded, recordings
from earlybird.present.subjects.recording.waits import waits_figure

ID = "recording"
QUESTION = "What does my program communicate?"
MAX_DRAWN = 2  # recordings with figures: the page stays small
BRIEF_CALLS, BRIEF_PAIRS, BRIEF_PLACES = 9, 8, 6
_IN_BRIEF = ("call", "calls", "time", "of the run", "lowest rank", "highest rank")
_FINALIZE = "MPI_Finalize"
_LEAST_CAUSE = 0.01  # of all waiting: what is less is not named in the sentence
_UNEVEN = 1.5  # a rank that sends so many times the mean is worth a sentence


def recording_chapter(material: Material) -> Chapter:
    all_recorded = recordings(material)
    return Chapter(
        ID,
        QUESTION,
        " ".join(_sentence(one) for one in all_recorded),
        [line for one in all_recorded for line in (f"{one.title}.", *_conditions(one), *_remarks(one))],
        answers=[_answer(one) for one in all_recorded if one.calls.in_run],
        warnings=[remark for one in all_recorded for remark in _remarks(one)],
        figures=_figures(all_recorded),
        tables=[table for one in all_recorded for table in _tables(one)],
        brief=[table for one in all_recorded for table in _brief(one)],
        choices=_choices(all_recorded[:MAX_DRAWN]),
    )


def _conditions(one: Recorded) -> list[str]:
    settings = conditions(one.recording)
    return [f"Conditions: {settings}."] if settings else []


def _figures(all_recorded: Sequence[Recorded]) -> list[Figure]:
    figures = []
    for k, one in enumerate(all_recorded[:MAX_DRAWN]):
        if not one.recording.ranks:
            continue
        figures += [
            *matrix_figures(one, f"recording-matrix-{k}"),
            calls_figure(one, f"recording-calls-{k}"),
            ranks_figure(one, f"recording-ranks-{k}"),
            *([waits_figure(one, one.waits, f"recording-waits-{k}")] if one.waits else []),
            phases_figure(one, f"recording-phases-{k}"),
            *arrivals_figures(one, f"recording-arrivals-{k}"),
            sizes_figure(one, f"recording-sizes-{k}"),
        ]
    left = len(all_recorded) - MAX_DRAWN
    if left > 0:
        reason = "Their numbers are in the tables; give fewer recordings for their figures."
        figures.append(Figure("recording-left", labels.counted(left, "more recording"), "", absence=reason))
    return figures


def _tables(one: Recorded) -> list:
    if not one.recording.ranks:
        return []
    return [
        calls_table(one),
        *([waits_table(one, one.waits), waiting_ranks_table(one, one.waits)] if one.waits else []),
        *([phases_table(one)] if one.phases else []),
        *([arrivals_table(one)] if one.arrivals else []),
        *([sizes_table(one), pairs_table(one)] if one.heaviest else []),
        ranks_table(one),
        communicators_table(one),
    ]


def _brief(one: Recorded) -> list:
    if not one.recording.ranks:
        return []
    calls = calls_table(one).only(lambda column: column.head in _IN_BRIEF)
    waits = []
    if one.waits:
        columns = [
            "call",
            "in",
            "time",
            "late senders",
            "late receivers",
            "peers outside MPI",
            "late in collectives",
            "mostly for",
        ]
        waits = [waits_table(one, one.waits, BRIEF_PLACES).only(lambda column: column.head in columns)]
    pairs = [pairs_table(one, BRIEF_PAIRS)] if one.heaviest else []
    return [calls.first(BRIEF_CALLS, "call"), *waits, *pairs]


def _choices(drawn: Sequence[Recorded]) -> dict[str, list[str]]:
    """The selectors; a matrix has those of its orders."""
    with_matrix = [one for one in drawn if one.recording.ranks and one.heaviest]
    orders = {ORDERS[matrix.rows.order] for one in with_matrix for matrix in one.matrices}
    return {
        "recording": [one.name for one in drawn if one.choice],
        "quantity": list(QUANTITIES) if with_matrix else [],
        "order of ranks": [order for order in ORDERS.values() if order in orders],
    }


def _remarks(one: Recorded) -> list[str]:
    """What the recording does not contain, as sentences."""
    said = remarks(one.recording)
    return [f"{labels.capital(text) if one.is_only else f'{one.name}: {text}'}." for text in said]


def _sentence(one: Recorded) -> str:
    prefix = "" if one.is_only else f"{one.name}: "
    if not one.recording.ranks:
        return f"{prefix}nothing was recorded." if prefix else "Nothing was recorded."
    return prefix + _said(one)


def _said(one: Recorded) -> str:
    parts = _of_hang(one), _of_calls(one), _of_work(one), _of_waits(one), _of_threads(one), _of_pairs(one)
    return " ".join(part for part in parts if part)


def _of_hang(one: Recorded) -> str:
    """In which calls ranks were when they were ended: where a program hangs, and what it did before is of
    less interest."""
    return " ".join(f"{labels.capital(text)}." for text in unreturned_calls(one.recording))


def _of_calls(one: Recorded) -> str:
    """The call with most time, its share of the run, and its lowest and highest rank."""
    calls = one.calls
    if not calls.share_in_mpi:
        return "No MPI call took measurable time after MPI_Init."
    # Ranks wait for each other in MPI_Finalize, and no program can do without.
    call = next((one for one in calls.in_run if calls.names[one] != _FINALIZE), calls.in_run[0])
    of_which = "all calls" if call == calls.in_run[0] else f"all calls before {_FINALIZE}"
    spread, share = calls.spread(call), labels.percent(calls.share(call))
    text = f"{calls.names[call]} takes the most time of {of_which}: {share} of the run"
    low, high = labels.percent(spread.low), labels.percent(spread.high)
    if low != high:
        text += f", from {low} on rank {spread.low_rank} to {high} on rank {spread.high_rank}"
    return f"{text}. All calls together take {labels.percent(calls.share_in_mpi)}."


def _of_waits(one: Recorded) -> str:
    """How much of the time in MPI is waiting, for what, and for whom most."""
    waits = one.waits
    if waits is None or not waits.in_mpi_s.any():
        return ""
    waiting_s, in_mpi_s = float(waits.waiting_s.sum()), float(waits.in_mpi_s.sum())
    when = "" if waits.reaches_back else f" in the last {format_seconds(float(waits.window_s.max()))}"
    parts = {
        "late senders": float(waits.late_sender_s.sum()),
        "late receivers": float(waits.late_receiver_s.sum()),
        "ranks that did their part and then compute outside the MPI": float(waits.peer_outside_s.sum()),
        "late ranks in collectives": float(waits.late_collective_s.sum()),
    }
    causes = ", ".join(
        f"{labels.percent(part_s / in_mpi_s)} for {name}"
        for name, part_s in parts.items()
        if part_s >= _LEAST_CAUSE * waiting_s > 0
    )
    unknown = f" Of {waits.unknown}, it is not known how much is waiting." if waits.unknown else ""
    unknown += f" {labels.capital(waits.cut)}." if waits.cut else ""
    text = f"Of the time in MPI{when}, {labels.percent(waiting_s / in_mpi_s)} is waiting"
    if waiting_s < _LEAST_CAUSE * in_mpi_s:
        return f"{text}.{unknown}"
    most = int(np.argmax(waits.caused_s))
    share = labels.percent(float(waits.caused_s[most]) / max(float(waits.caused_s.sum()), 1e-12))
    return f"{text}: {causes}; {share} of the waiting is for rank {waits.ranks[most]}.{unknown}"


def _of_work(one: Recorded) -> str:
    """What even work could save."""
    return f"{labels.capital(one.uneven_work)}." if one.uneven_work else ""


def _of_threads(one: Recorded) -> str:
    """How much earlier than the last thread the others arrive, before the sends of the costliest phase."""
    if not one.arrivals:
        return ""
    phase, arrivals = one.arrivals[0]
    return (
        f"Before the sends of phase {phase.number}, threads reach the end of {arrivals.function} "
        f"{format_seconds(arrivals.mean_lead_s)} before the last one."
    )


def _of_pairs(one: Recorded) -> str:
    """The pair with most bytes, and a rank that sends much more than the mean."""
    if not one.heaviest:
        return ""
    pair, total = one.heaviest[0], int(one.pairs.bytes.sum())
    alike = sum(other.bytes == pair.bytes for other in one.heaviest)
    ranks, share = f"rank {pair.src} to rank {pair.dst}", _of_all(pair.bytes / max(total, 1))
    text = (
        f"The pair with most bytes is {ranks}: {format_bytes(pair.bytes)} in "
        f"{labels.counted(pair.messages, 'message')}, {share}."
    )
    if alike > 1:
        text = f"{alike} pairs have the most bytes, {format_bytes(pair.bytes)} each, {share}; one is {ranks}."
    sent, _ = bytes_by_rank(one.pairs, one.recording.size)
    most, mean = int(np.argmax(sent)), float(sent.mean())
    if mean and sent[most] > _UNEVEN * mean:
        text += f" Rank {most} sends {sent[most] / mean:.1f} times the mean of all ranks."
    return text


def _of_all(share: float) -> str:
    return "less than 0.1 % of all" if share < 0.001 else f"{labels.percent(share)} of all"


def _answer(one: Recorded) -> Answer:
    calls = one.calls
    spread = calls.spread_of(calls.in_mpi)
    low, high = labels.percent(spread.low), labels.percent(spread.high)
    is_hung = bool(unreturned_calls(one.recording))
    do = ["find what the calls that had not returned wait for"] if is_hung else []
    do += ["distribute the work evenly"] if one.uneven_work else []
    if one.heaviest:
        command = f"`earlybird pattern recording {path_argument(one.path)} -o exchange.csv`"
        do.append(f"to predict the exchange on another layout or machine, first run {command}")
    if one.waits is None:
        do.append("to see who waits for whom, record again with `--events 10000`")
    return Answer(
        f"Program recorded in {one.name}, {labels.counted(one.recording.size, 'rank')}",
        "did not end" if is_hung else f"{labels.percent(calls.share_in_mpi)} in MPI",
        f"{low} to {high} by rank" if low != high and not is_hung else "",
        _said(one),
        "; ".join(do),
    )
