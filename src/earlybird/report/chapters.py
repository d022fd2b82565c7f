"""The five questions in order, each answered by one sentence generated from the material, with its figures and tables."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.report import provenance, words
from earlybird.report.curve_figures import level_figures
from earlybird.report.curves import (
    Contention,
    Curve,
    Fit,
    contentions,
    fits,
    pair_or_none,
    pingpong_curves,
    profile_interval,
    profile_labels,
)
from earlybird.report.exchange_figures import matrix_figure, ranks_figure, scatter_figure, waiting_figure
from earlybird.report.exchanges import Exchange, exchanges
from earlybird.report.material import Material
from earlybird.report.parts import Chapter, Figure, Table

QUESTIONS = {
    "measured": "What was measured?",
    "machine": "How does this machine communicate?",
    "exchange": "What will my exchange cost?",
    "accuracy": "How far off was the prediction?",
    "advice": "What should I change?",
}
MEASURE = "earlybird measure pingpong contention -o run"
FIT = "earlybird fit run -o profile.json"
PREDICT = "earlybird predict PATTERN --profile profile.json --layout 1x1x4 --json > prediction.json"
REPLAY = "earlybird replay PATTERN --profile profile.json --layout 1x1x4 -o replay"
MAX_ROWS = 500  # rows of a per-rank table; the slowest are kept
BRIEF_SIZES = (0, 8, 1 << 10, 1 << 13, 1 << 16, 1 << 20, 1 << 22)
BRIEF_RANKS = 8


def chapters(material: Material) -> list[Chapter]:
    """All five chapters; what is missing names the command that makes it."""
    found = exchanges(material)
    return [_measured(material), _machine(material), _exchange(found), _accuracy(found), _advice()]


def _measured(material: Material) -> Chapter:
    runs = material.runs
    if not runs:
        known = [
            f"The profile of {label} was fitted on {provenance.machine_words(profile.machine)}."
            for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True)
            if profile.machine
        ]
        return Chapter(
            "measured",
            QUESTIONS["measured"],
            "No measurement was given to this report.",
            known,
            absent=[("Measurements are made by", MEASURE)],
        )
    lights = [light for run in runs for light in provenance.lights(run, len(runs) > 1)]
    columns = ["measurement", "state", "remark"]
    table = Table("Traffic lights", columns, [[light.what, light.word, light.advice] for light in lights])
    brief = Table("", columns[:2], [[light.what, light.word] for light in lights])
    return Chapter(
        "measured",
        QUESTIONS["measured"],
        _measured_sentence(material),
        [provenance.run_line(run) for run in runs],
        lights,
        tables=[table, *(provenance.run_table(run) for run in runs)],
        brief=[brief],
    )


def _measured_sentence(material: Material) -> str:
    samples = [sample for run in material.runs for sample in run.samples]
    machines = {provenance.machine_words(run.header.get("machine") or {}): None for run in material.runs}
    mpis = {provenance.mpi_words(launch): None for run in material.runs for launch in run.launches}
    start = f"{words.listed(list(mpis)) or 'MPI'} on {words.listed(list(machines))}"
    if not samples:
        return words.capital(f"{start}: the run holds no samples yet.")
    noisy = sum(not sample.converged for sample in samples)
    crowded = sum(sample.oversubscribed for sample in samples)
    state = "all converged" if not noisy else f"{len(samples) - noisy} converged and {noisy} stayed noisy"
    over = f", {crowded} with more ranks than cores" if crowded else ""
    return words.capital(f"{start}: {words.counted(len(samples), 'point')} measured, {state}{over}.")


def _machine(material: Material) -> Chapter:
    curves, lines, items = pingpong_curves(material), fits(material), contentions(material)
    levels = sorted({item.level for item in [*curves, *lines, *items]}, key=words.level_order)
    if not levels:
        return Chapter(
            "machine",
            QUESTIONS["machine"],
            "Nothing given to this report tells how messages travel here.",
            absent=[("Curves are measured by", MEASURE), ("Models are fitted to them by", FIT)],
        )
    absent = []
    if not curves:
        absent.append(("No ping-pong samples were given; measured points come from", MEASURE))
    if not material.profiles:
        absent.append(("No profile was given; fitted protocols come from", FIT))
    warnings = [
        f"{words.capital(label)}: {warning}"
        for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True)
        for warning in _texts(profile.extra.get("warnings"))
    ]
    return Chapter(
        "machine",
        QUESTIONS["machine"],
        " ".join(_curve_sentences(curves, lines) + _contention_sentence(items)),
        warnings,
        figures=[
            figure for level in levels for figure in level_figures(level, curves, lines, items, material)
        ],
        tables=[
            table
            for table in (_points_table(curves), _fit_table(material, lines), _bandwidth_table(items))
            if table.rows
        ],
        brief=[
            table
            for table in (_points_table(curves, BRIEF_SIZES), _bandwidth_table(_last_protocols(items)))
            if table.rows
        ],
        absent=absent,
    )


def _texts(value) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def _curve_sentences(curves: Sequence[Curve], lines: Sequence[Fit]) -> list[str]:
    """Per level: the smallest message's time and the largest one's bandwidth, from measurement or else from the fit."""
    told: dict[str, list[str]] = {}
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        told.setdefault(curve.level, []).append(
            f"{curve.label} takes {format_seconds(first.median_s)} for a message of {format_bytes(first.size_bytes)}"
            f" and moves {format_bytes(last.size_bytes)} at {format_bandwidth(last.size_bytes / last.median_s)}"
        )
    for line in lines if not curves else []:
        tau, rate = line.segments[0].latency_s, line.segments[-1].bandwidth_bytes_per_s
        told.setdefault(line.level, []).append(
            f"{line.label} is fitted with {format_seconds(tau)} for a small message"
            f" and {format_bandwidth(rate)} for a large one"
        )
    return [words.capital(f"{words.level(level)}, {'; '.join(texts)}.") for level, texts in told.items()]


def _contention_sentence(items: Sequence[Contention]) -> list[str]:
    """The point furthest from the straight line, over all flavours and levels of the large-message protocols."""
    gaps = []
    for item in _last_protocols(items):
        if len(item.count) > 1:
            gap = item.bandwidth_bytes_per_s / item.straight_line() - 1
            k = int(np.argmax(np.abs(gap)))
            gaps.append((abs(gap[k]), gap[k], k, item))
    if not gaps:
        return []
    size, gap, k, item = max(gaps, key=lambda row: row[0])
    if size < 0.05:
        return [
            "Received bandwidth follows the straight line min(N*BW(1), BW_max) within 5 % at every N measured."
        ]
    return [
        f"{words.counted(int(item.count[k]), 'process', 'processes')} receiving at once {words.level(item.level)} get "
        f"{format_bandwidth(item.bandwidth_bytes_per_s[k])} together with {item.label}, "
        f"{words.percent(size)} {'less' if gap < 0 else 'more'} than the straight line that everybody assumes."
    ]


def _last_protocols(items: Sequence[Contention]) -> list[Contention]:
    return list({(item.label, item.level): item for item in items}.values())


def _points_table(curves: Sequence[Curve], only_sizes: Sequence[int] = ()) -> Table:
    rows = [
        [
            curve.label,
            words.level(curve.level),
            format_bytes(p.size_bytes),
            format_seconds(p.median_s),
            format_seconds(p.quartiles_s[0]),
            format_seconds(p.quartiles_s[1]),
            format_bandwidth(p.size_bytes / p.median_s) if p.size_bytes else "-",
            f"{len(p.times_s)} in {words.counted(p.num_launches, 'launch', 'launches')}",
        ]
        for curve in curves
        for p in curve.points
        if not only_sizes or p.size_bytes in only_sizes
    ]
    header = ["MPI", "where", "size", "median", "quarter", "three quarters", "bandwidth", "samples"]
    if only_sizes:
        return Table(
            "Ping-pong, half round trip", header[:4] + header[6:7], [row[:4] + row[6:7] for row in rows]
        )
    return Table("Ping-pong, half round trip", header, rows)


def _fit_table(material: Material, lines: Sequence[Fit]) -> Table:
    rows = [
        [
            line.label,
            words.level(line.level),
            segment.name,
            format_bytes(segment.min_bytes),
            format_seconds(segment.latency_s),
            format_bandwidth(segment.bandwidth_bytes_per_s),
            "-" if line.held_out_error is None else words.percent(line.held_out_error),
        ]
        for line in lines
        for segment in line.segments
    ]
    for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True):
        for level in profile.levels.values():
            for protocol in level.protocols:
                pair = pair_or_none(profile_interval(profile, level.name, protocol.name, "latency_s"))
                interval = f" ({format_seconds(pair[0])} to {format_seconds(pair[1])})" if pair else ""
                rows.append(
                    [
                        label,
                        words.level(level.name),
                        f"{protocol.name}, with competitors",
                        format_bytes(protocol.min_bytes),
                        format_seconds(protocol.latency_s) + interval,
                        "see BW(N)",
                        "-",
                    ]
                )
    header = ["MPI", "where", "protocol", "from", "latency", "bandwidth", "held-out error"]
    return Table("Fitted protocols", header, rows)


def _bandwidth_table(items: Sequence[Contention]) -> Table:
    rows = [
        [
            item.label,
            words.level(item.level),
            item.protocol or "largest size",
            str(int(n)) + (" *" if over else ""),
            format_bandwidth(b),
            f"{format_bandwidth(low)} to {format_bandwidth(high)}" if low < high else "-",
            format_bandwidth(line),
            words.signed_percent(b / line - 1),
        ]
        for item in items
        for n, over, b, (low, high), line in zip(
            item.count,
            item.oversubscribed,
            item.bandwidth_bytes_per_s,
            item.interval,
            item.straight_line(),
            strict=True,
        )
    ]
    star = " (*: more ranks than cores)" if any(item.oversubscribed.any() for item in items) else ""
    header = ["MPI", "where", "protocol", "N", "received", "interval", "straight line", "off by"]
    return Table(f"Received bandwidth of the group, BW(N){star}", header, rows)


def _exchange(found: Sequence[Exchange]) -> Chapter:
    timed = [item for item in found if item.measured_s is not None or item.predicted_s]
    absent = [("Its cost is predicted by", PREDICT), ("and measured by", REPLAY)] if not timed else []
    if timed and all(item.measured_s is None for item in timed):
        absent = [("These times are predictions; the exchange is measured by", REPLAY)]
    if timed and not any(item.predicted_s for item in timed):
        absent = [("These times are measured only; they are predicted by", PREDICT)]
    figures = []
    for k, item in enumerate(found):
        figures.append(matrix_figure(item, f"matrix-{k}"))
        if item.measured_s is not None or item.predicted_s:
            figures += [waiting_figure(item, f"waiting-{k}"), ranks_figure(item, f"ranks-{k}")]
    return Chapter(
        "exchange",
        QUESTIONS["exchange"],
        " ".join(_cost_sentence(item, len(timed) > 1) for item in timed)
        or "No timed exchange was given to this report.",
        [words.capital(item.title) + "." for item in found] + _crowded_notes(timed) + _notes(found),
        figures=_titled(figures, found),
        tables=[_ranks_table(item) for item in timed],
        brief=[_ranks_table(item, BRIEF_RANKS) for item in timed],
        absent=absent,
    )


def _titled(figures: list[Figure], found: Sequence[Exchange]) -> list[Figure]:
    """With several exchanges, say in each figure's caption which one it shows."""
    if len(found) < 2:
        return figures
    return [replace(f, caption=f"{found[int(f.id.split('-')[1])].title}. {f.caption}") for f in figures]


def _cost_sentence(item: Exchange, several: bool) -> str:
    name, times = item.reference()
    slowest = int(np.argmax(times))
    others = np.delete(times, slowest)
    what = "The exchange" if not several else f"The exchange of {item.title}"
    verb = "takes" if name == "measured" else f"should take, by the {name} model,"
    text = f"{what} {verb} {format_seconds(times[slowest])}, the time of rank {slowest}, the slowest"
    if len(others) and times[slowest] > 0:
        waiting = float(np.mean(times[slowest] - others))
        share = words.percent(waiting / times[slowest])
        text += f"; the others wait {format_seconds(waiting)} for it on average ({share} of the exchange)"
    return text + "."


def _crowded_notes(found: Sequence[Exchange]) -> list[str]:
    if not any(item.oversubscribed for item in found):
        return []
    return [
        "More ranks than cores took part: waiting ranks yield their core, so the measured times hold the scheduler's "
        "switches too, which no model describes. Expect larger errors than with a core for each rank."
    ]


def _notes(found: Sequence[Exchange]) -> list[str]:
    return [note for item in found for note in item.notes]


def _ranks_table(item: Exchange, limit: int = MAX_ROWS) -> Table:
    name, times = item.reference()
    columns = ([("measured", item.measured_s)] if item.measured_s is not None else []) + [
        (model, item.predicted_s[model]) for model in item.models()
    ]
    order = np.arange(len(times)) if len(times) <= limit else np.argsort(-times, kind="stable")[:limit]
    rows = [
        [
            str(rank),
            *(format_seconds(values[rank]) for _, values in columns),
            format_seconds(times.max() - times[rank]),
        ]
        for rank in order.tolist()
    ]
    which = f", the {limit} slowest of {len(times)}" if len(times) > limit else ""
    return Table(
        f"Seconds per rank{which}: {item.title}", ["rank", *(name for name, _ in columns), "waits"], rows
    )


def _accuracy(found: Sequence[Exchange]) -> Chapter:
    compared = [item for item in found if item.error]
    if not compared:
        return Chapter(
            "accuracy",
            QUESTIONS["accuracy"],
            "No prediction was compared with a measurement.",
            absent=[("Comparisons are made by", REPLAY)],
        )
    tables = [_error_table(item) for item in compared]
    return Chapter(
        "accuracy",
        QUESTIONS["accuracy"],
        " ".join(_accuracy_sentence(item, len(compared) > 1) for item in compared),
        [
            "Error is equation (11) of Thune et al. 2023: the sum over ranks of |measured - predicted| divided by the sum of "
            "measured. Slowest-rank error is (largest predicted - largest measured) / largest measured."
        ]
        + _crowded_notes(compared),
        figures=_titled(
            [scatter_figure(item, f"scatter-{k}") for k, item in enumerate(found) if item.error], found
        ),
        tables=tables,
        brief=tables,
    )


def _accuracy_sentence(item: Exchange, several: bool) -> str:
    best = item.best_first()[0]
    slowest = item.slowest_error[best]
    where = f"For {item.title}, the" if several else "The"
    says = (
        "exactly right"
        if slowest == 0
        else (f"{words.percent(abs(slowest))} too {'high' if slowest > 0 else 'low'}")
    )
    rivals = [f"{model} is off by {words.percent(item.error[model])}" for model in item.best_first()[1:]]
    rest = f" ({', '.join(rivals)})" if rivals else ""
    return (
        f"{where} {best} model comes closest: it is off by {words.percent(item.error[best])} in total{rest} "
        f"and puts the slowest rank's time {says}."
    )


def _error_table(item: Exchange) -> Table:
    rows = [
        [
            model,
            words.percent(item.error[model]),
            words.signed_percent(item.slowest_error[model]),
            format_seconds(float(item.predicted_s[model].max())),
            format_seconds(float(item.measured_s.max())),
        ]
        for model in item.best_first()
    ]
    header = ["model", "error (11)", "slowest-rank error", "slowest predicted", "slowest measured"]
    return Table(f"Error of each model, best first: {item.title}", header, rows)


def _advice() -> Chapter:
    return Chapter(
        "advice",
        QUESTIONS["advice"],
        "This version of Earlybird gives no advice yet: it measures, predicts and compares.",
        absent=[
            (
                "Until it does, the slowest rank of the exchange and what it receives are the place to look.",
                "",
            )
        ],
    )
