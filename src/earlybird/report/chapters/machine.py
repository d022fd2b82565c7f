"""The chapter on the machine: time and bandwidth of messages, competing processes, message rates."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.layout import LEVELS, level_phrase
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.report.curves import (
    Contention,
    Curve,
    Fit,
    contentions,
    fits,
    labelled_profiles,
    large_message_protocols,
    pingpong_curves,
    rate,
)
from earlybird.report.figures.curves import level_figures
from earlybird.report.figures.msgrates import brief_rates_table, rate_figures, rates_table
from earlybird.report.material import Material
from earlybird.report.msgrates import message_rates, rates_answers, rates_sentences
from earlybird.report.parts import Answer, Chapter
from earlybird.report.tables import measurements as tables

ID = "machine"
QUESTION = "How does this machine communicate?"
MEASURE = "earlybird measure pingpong contention completion -o run"
FIT = "earlybird fit run -o profile.json"
FOLLOWS = 0.05  # relative deviation up to which a point counts as ideal scaling


def machine_chapter(material: Material) -> Chapter:
    curves, lines, items = pingpong_curves(material), fits(material), contentions(material)
    rates = message_rates(material)
    levels = sorted({item.level for item in [*curves, *lines, *items]}, key=labels.level_order)
    absent = []
    if not curves and not rates:
        absent.append(("To measure messages, run", MEASURE))
    if not material.profiles:
        absent.append(("To fit models of messages, run", FIT))
    return Chapter(
        ID,
        QUESTION,
        " ".join(_curve_sentences(curves, lines) + _contention_sentence(items) + rates_sentences(rates))
        or ("The bandwidth was measured without competing processes." if items else ""),
        answers=[*_answers(curves, lines), *rates_answers(rates)],
        warnings=_warnings(material),
        figures=[
            *(figure for level in levels for figure in level_figures(level, curves, lines, items, material)),
            *rate_figures(rates),
        ],
        tables=[
            table
            for table in (
                tables.points_table(curves),
                tables.fit_table(material, lines),
                tables.bandwidth_table(items),
                rates_table(rates),
            )
            if table.rows
        ],
        brief=[
            table
            for table in (
                tables.brief_points_table(curves),
                tables.brief_bandwidth_table(large_message_protocols(items)),
                brief_rates_table(rates),
            )
            if table.rows
        ],
        absent=absent,
    )


def _answers(curves: Sequence[Curve], lines: Sequence[Fit]) -> list[Answer]:
    """The time of the smallest message per MPI and level, and the bandwidth of the largest."""
    answers = []
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        low, high = map(format_seconds, first.interval_s)
        answers.append(
            Answer(
                _what(curve),
                format_seconds(first.median_s),
                f"{low} to {high}" if low != high else "",
                f"Time of a message of {format_bytes(first.size_bytes)}; {format_bytes(last.size_bytes)} "
                f"move at {format_bandwidth(rate(last.size_bytes, last.median_s))}.",
            )
        )
    for line in lines if not curves else []:
        latency, bandwidth = _fitted(line)
        finding = f"Fitted latency of small messages; large ones move at {bandwidth}."
        answers.append(Answer(_what(line), latency, "", finding))
    return answers


def _what(item: Curve | Fit) -> str:
    return f"Message with {item.label}, {labels.level(item.level)}"


def _fitted(line: Fit) -> tuple[str, str]:
    """The latency of small messages and the bandwidth of large ones."""
    first, last = line.segments[0], line.segments[-1]
    return format_seconds(first.latency_s), format_bandwidth(last.bandwidth_bytes_per_s)


def _curve_sentences(curves: Sequence[Curve], lines: Sequence[Fit]) -> list[str]:
    """One sentence per level: time of the smallest message, bandwidth of the largest; measured or fitted."""
    texts_of: dict[str, list[str]] = {}
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        texts_of.setdefault(curve.level, []).append(
            f"{curve.label} takes {format_seconds(first.median_s)} for a message of "
            f"{format_bytes(first.size_bytes)} and moves {format_bytes(last.size_bytes)} at "
            f"{format_bandwidth(rate(last.size_bytes, last.median_s))}"
        )
    for line in lines if not curves else []:
        latency, bandwidth = _fitted(line)
        texts_of.setdefault(line.level, []).append(
            f"the fit of {line.label} has a latency of {latency} for small messages and a bandwidth of "
            f"{bandwidth} for large ones"
        )
    return [
        labels.capital(f"{level_phrase(level)}, {'; '.join(texts)}.") for level, texts in texts_of.items()
    ]


def _contention_sentence(items: Sequence[Contention]) -> list[str]:
    """The point furthest from ideal scaling, over all flavours and levels, for large messages."""
    points = [
        (gap, bool(over), int(n), bandwidth, item)
        for item in large_message_protocols(items)
        for gap, over, n, bandwidth in zip(
            item.bandwidth_bytes_per_s / item.straight_line() - 1,
            item.oversubscribed,
            item.count,
            item.bandwidth_bytes_per_s,
            strict=True,
        )
        if len(item.count) > 1
    ]
    far = [point for point in points if abs(point[0]) >= FOLLOWS]
    if not points:
        return []
    if not far:
        return [
            "Received bandwidth follows ideal scaling, min(N*BW(1), BW_max), within "
            f"{labels.percent(FOLLOWS)} at every N."
        ]
    # A point with more ranks than cores also measures the scheduler: reported only if no other point is off.
    gap, over, n, bandwidth, item = max(far, key=lambda point: (not point[1], abs(point[0])))
    return [
        f"With {item.label}, {labels.counted(n, 'process', 'processes')} receiving at once "
        f"{level_phrase(item.level)} get {format_bandwidth(bandwidth)} in total, {labels.percent(abs(gap))} "
        f"{'less' if gap < 0 else 'more'} than ideal scaling"
        f"{' (with more ranks than cores)' if over else ''}."
    ]


def _warnings(material: Material) -> list[str]:
    """The warnings of the fits, each distinct warning once."""
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
