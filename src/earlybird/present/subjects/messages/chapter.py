"""The chapter on the machine: time and bandwidth of messages, competing processes, message rates."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.layout import level_phrase
from earlybird.data.levels import LEVELS
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.models.maxrate import FOLLOWS
from earlybird.present import commands
from earlybird.present.core.notation import interval_text
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.core.text import crowd
from earlybird.present.material import Material, labelled_profiles
from earlybird.present.subjects.messages import tables
from earlybird.present.subjects.messages.figures import level_figures, rate_figures
from earlybird.present.subjects.messages.rates import (
    message_rates,
    method_names,
    rates_answer,
    rates_sentence,
)
from earlybird.present.subjects.messages.view import (
    Contention,
    Curve,
    Fit,
    bandwidth,
    contentions,
    fits,
    large_message_protocols,
    pingpong_curves,
)

ID = "machine"
QUESTION = "How does this machine communicate?"
BANDWIDTHS = (
    "The bandwidths differ because a ping-pong sends one message at a time and waits for the answer, and N "
    "processes that receive at once have several messages each under way. Predictions of exchanges use the "
    "latencies and the BW(N) of the fit with N processes."
)
PROTOCOLS = (
    "A protocol is a range of message sizes with one latency and one set of bandwidths. The fit names "
    "protocols by their order; the names do not state which protocol the MPI uses."
)


def machine_chapter(material: Material) -> Chapter:
    """Return the chapter on messages: measured, fitted, of processes that compete, and of threads."""
    curves, lines, items = pingpong_curves(material), fits(material), contentions(material)
    rates = message_rates(material)
    names = {item.level for item in curves} | {item.level for item in lines} | {item.level for item in items}
    levels = sorted(names, key=labels.level_order)
    absent = []
    if not curves and not rates:
        absent.append(("To measure messages, run", commands.measure()))
    if not material.profiles:
        absent.append(("To fit models of messages, run", commands.fit(material)))
    figures = [figure for level in levels for figure in level_figures(level, curves, lines, items, material)]
    answers: list[Answer] = []
    texts_of: dict[str, list[str]] = {}
    for item in curves or lines:
        answer, text = _facts(item)
        answers.append(answer)
        texts_of.setdefault(level_phrase(item.level), []).append(text)
    sentences = [labels.capital(f"{level}, {'; '.join(texts)}.") for level, texts in texts_of.items()]
    rate_tables = [tables.rates_table(rates)] if rates else []
    packings = tables.packings_table(labelled_profiles(material))
    all_tables = (
        tables.points_table(curves),
        tables.fit_table(lines),
        tables.protocols_table(labelled_profiles(material)),
        tables.bandwidth_table(items),
        packings,
        *rate_tables,
    )
    brief = (
        tables.brief_points_table(curves),
        tables.bandwidth_table(large_message_protocols(items)),
        packings,
        *(table.brief() for table in rate_tables),
    )
    return Chapter(
        ID,
        QUESTION,
        " ".join([*sentences, *_contention_sentence(items), *map(rates_sentence, rates)])
        or ("The bandwidth was measured without competing processes." if items else "")
        or ("A profile has the costs of packing data." if packings.items else ""),
        lines=[
            *_lines(
                levels, bool(lines), bool(curves) or any(line.is_pingpong for line in lines), bool(items)
            ),
            *method_names(rates),
        ],
        answers=[*answers, *map(rates_answer, rates)],
        warnings=_warnings(material),
        figures=figures + rate_figures(rates),
        tables=[table for table in all_tables if table.rows],
        brief=[table for table in brief if table.rows],
        absent=absent,
    )


def _lines(levels: Sequence[str], has_fit: bool, has_pingpong: bool, has_contention: bool) -> list[str]:
    """Return the names of the levels for options, the definition of a protocol, and the difference between
    the bandwidths."""
    names = [f"{labels.level(level)} ({level})" for level in levels if level in LEVELS]
    texts = [f"Levels, with their names in options: {labels.listed(names)}."] if names else []
    return texts + [PROTOCOLS] * has_fit + [BANDWIDTHS] * (has_pingpong and has_contention)


def _facts(item: Curve | Fit) -> tuple[Answer, str]:
    """Return the time of the smallest message and the bandwidth of the largest, as an answer and for a
    sentence."""
    what = f"Message with {item.label}, {labels.level(item.level)}"
    if isinstance(item, Fit):
        latency = format_seconds(item.segments[0].latency_s)
        rate = format_bandwidth(item.segments[-1].bandwidth_bytes_per_s)
        source = ", of the fit to ping-pongs" if item.is_pingpong else ", fitted"
        finding = f"Latency of small messages{source}; large ones move at {rate}."
        return Answer(what, latency, "", finding), (
            f"the fit of {item.label} has a latency of {latency} for small messages and a bandwidth of "
            f"{rate} for large ones"
        )
    first, last = item.points[0], item.points[-1]
    small, large = (format_bytes(point.config["size_bytes"]) for point in (first, last))
    time, rate = format_seconds(first.time_s.value), format_bandwidth(bandwidth(last).value)
    finding = f"Half the round trip of {small} in a ping-pong; {large} move at {rate}."
    return Answer(what, time, interval_text(first.time_s, format_seconds), finding), (
        f"{item.label} takes {time} for a message of {small} and moves {large} at {rate}"
    )


def _contention_sentence(items: Sequence[Contention]) -> list[str]:
    """Return the point furthest from ideal scaling, over all flavours and levels, for large messages."""
    points = [
        (item, point, item.deviation(point))
        for item in large_message_protocols(items)
        for point in item.points
        if len(item.points) > 1
    ]
    if not points:
        return []
    far = [(item, point, gap) for item, point, gap in points if abs(gap) >= FOLLOWS]
    if not far:
        return [
            "Received bandwidth follows ideal scaling, min(N*BW(1), BW_max), within "
            f"{labels.percent(FOLLOWS)} at every N."
        ]
    # A point with more ranks than cores also measures the scheduler: reported only if no other point is off.
    item, point, gap = max(far, key=lambda row: (not row[1].oversubscribed, abs(row[2])))
    return [
        f"With {item.label}, {labels.counted(point.count, 'process', 'processes')} receiving at once "
        f"{level_phrase(item.level)} get {format_bandwidth(point.bandwidth_bytes_per_s.value)} in total, "
        f"{labels.percent(abs(gap))} {'less' if gap < 0 else 'more'} than ideal scaling"
        + f" (with {crowd('ranks')})" * point.oversubscribed
        + "."
    ]


def _warnings(material: Material) -> list[str]:
    """Return the warnings of the fits, each distinct warning once."""
    names_of: dict[str, list[str]] = {}
    for profile, label in labelled_profiles(material):
        warnings = profile.extra.get("warnings")
        for warning in warnings if isinstance(warnings, list) else []:
            names_of.setdefault(str(warning), []).append(label)
    return [labels.capital(_warning(labels.listed(names), warning)) for warning, names in names_of.items()]


def _warning(label: str, warning: str) -> str:
    level, colon, rest = warning.partition(": ")
    if colon and level in LEVELS:
        return f"{label}, {labels.level(level)}: {rest}"
    return f"{label}: {warning}"
