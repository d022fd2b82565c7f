"""The chapters in order: one question each, answered with a sentence, figures and tables."""

from collections.abc import Sequence
from dataclasses import replace

from earlybird.data import labels
from earlybird.data.layout import LEVELS
from earlybird.report import provenance
from earlybird.report.chapters import advice as advice_chapter
from earlybird.report.chapters import sentences
from earlybird.report.chapters.collectives import collective_chapter
from earlybird.report.chapters.pipelines import pipeline_chapter
from earlybird.report.curves import (
    contentions,
    fits,
    large_message_protocols,
    pingpong_curves,
    profile_labels,
)
from earlybird.report.exchanges import Exchange, exchanges
from earlybird.report.figures.curves import level_figures
from earlybird.report.figures.exchanges import ranks_figure, scatter_figure, waiting_figure
from earlybird.report.figures.matrix import matrix_figure
from earlybird.report.figures.msgrates import brief_rates_table, rate_figures, rates_table
from earlybird.report.material import Material
from earlybird.report.msgrates import message_rates, rates_sentences
from earlybird.report.parts import Chapter, Figure, Light, Table
from earlybird.report.tables import measurements as tables

QUESTIONS = {
    "measured": "What was measured?",
    "machine": "How does this machine communicate?",
    "exchange": "What will my exchange cost?",
    "accuracy": "How far off was the prediction?",
    advice_chapter.ID: advice_chapter.QUESTION,
}
MEASURE = "earlybird measure pingpong contention completion -o run"
FIT = "earlybird fit run -o profile.json"
PREDICT = "earlybird predict PATTERN --profile profile.json --layout 1x1x4 --json > prediction.json"
REPLAY = "earlybird replay PATTERN --profile profile.json --layout 1x1x4 -o replay"
CROWDED = (
    "There were more ranks than cores. Waiting ranks yield their core, so the measured times include context "
    "switches, which no model describes. Expect larger errors than with one core per rank."
)
CROWDED_ERRORS = "There were more ranks than cores, which increases these errors (see the previous question)."
ERROR_MEANS = (
    "The error is equation (11) of Thune et al. 2023: the sum over ranks of |measured - predicted| divided "
    "by the sum of measured. The slowest-rank error is (largest predicted - largest measured) / largest "
    "measured."
)
BRIEF_RANKS = 8


def chapters(material: Material) -> list[Chapter]:
    """The five chapters, and after the second one those on pipelines and collectives if any were measured.
    A chapter without data shows the command that produces it."""
    all_exchanges = exchanges(material)
    more_chapters = [
        chapter for chapter in (pipeline_chapter(material), collective_chapter(material)) if chapter
    ]
    machine = [_machine(material), *more_chapters]
    advice = advice_chapter.advice_chapter(material.advice, any(item.timed for item in all_exchanges))
    return [_measured(material), *machine, _exchange(all_exchanges), _accuracy(all_exchanges), advice]


def _measured(material: Material) -> Chapter:
    runs = material.runs
    if not runs:
        known = [
            f"The profile of {label} was fitted on {provenance.machine_text(profile.machine)}."
            for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True)
            if profile.machine
        ]
        return Chapter(
            "measured",
            QUESTIONS["measured"],
            "No measurement was given to this report.",
            known,
            absent=[("To measure, run", MEASURE)],
        )
    lights = [light for run in runs for light in provenance.lights(run, len(runs) > 1, material.patterns)]
    table = _lights_table(lights)
    return Chapter(
        "measured",
        QUESTIONS["measured"],
        sentences.measured_sentence(material),
        [provenance.run_line(run) for run in runs],
        lights,
        provenance.remedies(runs, lights),
        tables=[table, *(provenance.run_table(run) for run in runs)],
        brief=[table],
    )


def _lights_table(lights: Sequence[Light]) -> Table:
    header = ["measurement", "samples", "noisy", "oversubscribed", "wrong data"]
    rows = [
        [light.what, *map(str, (light.samples, light.noisy, light.oversubscribed, light.wrong))]
        for light in lights
    ]
    if any(light.link_limited for light in lights):
        header.insert(4, "link-limited")
        for row, light in zip(rows, lights, strict=True):
            row.insert(4, str(light.link_limited))
    return Table("Samples of each measurement, one per point and launch", header, rows)


def _machine(material: Material) -> Chapter:
    curves, lines, items = pingpong_curves(material), fits(material), contentions(material)
    rates = message_rates(material)
    levels = sorted({item.level for item in [*curves, *lines, *items]}, key=labels.level_order)
    if not levels and not rates:
        return Chapter(
            "machine",
            QUESTIONS["machine"],
            "No communication measurement and no profile was given to this report.",
            absent=[("To measure curves, run", MEASURE), ("To fit models to them, run", FIT)],
        )
    absent = []
    if not curves:
        absent.append(("No ping-pong samples were given. To measure them, run", MEASURE))
    if not material.profiles:
        absent.append(("No profile was given. To fit protocols, run", FIT))
    return Chapter(
        "machine",
        QUESTIONS["machine"],
        " ".join(
            sentences.curve_sentences(curves, lines)
            + sentences.contention_sentence(items)
            + rates_sentences(rates)
        ),
        _warnings(material),
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


def _warnings(material: Material) -> list[str]:
    """The warnings of the fits, each distinct warning once."""
    names_of: dict[str, list[str]] = {}
    for profile, label in zip(material.profiles, profile_labels(material.profiles), strict=True):
        warnings = profile.extra.get("warnings")
        for warning in warnings if isinstance(warnings, list) else []:
            names_of.setdefault(str(warning), []).append(label)
    return [labels.capital(_warning(labels.listed(names), warning)) for warning, names in names_of.items()]


def _warning(label: str, warning: str) -> str:
    level, colon, rest = warning.partition(": ")
    if colon and level in LEVELS:
        return f"{label}, {labels.level(level)}: {rest}"
    return f"{label}: {warning}"


def _exchange(all_exchanges: Sequence[Exchange]) -> Chapter:
    timed = [item for item in all_exchanges if item.timed]
    absent = (
        [("To predict its cost, run", PREDICT), ("To measure its cost, run", REPLAY)] if not timed else []
    )
    if timed and all(item.measured_s is None for item in timed):
        absent = [("These times are predictions. To measure the exchange, run", REPLAY)]
    if timed and not any(item.predicted_s for item in timed):
        absent = [("These times were measured, without a prediction. To predict them, run", PREDICT)]
    figures: list[Figure] = []
    drawn = set()
    for k, item in enumerate(all_exchanges):
        if id(item.pattern) not in drawn:
            figures.append(matrix_figure(item, f"matrix-{k}"))
            drawn.add(id(item.pattern))
        if item.timed:
            figures.append(_named(waiting_figure(item, f"waiting-{k}"), item))
            figures.append(_named(ranks_figure(item, f"ranks-{k}"), item))
    return Chapter(
        "exchange",
        QUESTIONS["exchange"],
        " ".join(sentences.cost_sentence(item) for item in timed)
        or "No timed exchange was given to this report.",
        [labels.capital(item.title) + "." for item in all_exchanges] + _notes(timed),
        figures=figures,
        tables=[tables.ranks_table(item) for item in timed],
        brief=[tables.ranks_table(item, BRIEF_RANKS) for item in timed],
        absent=absent,
    )


def _notes(timed: Sequence[Exchange]) -> list[str]:
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


def _named(figure: Figure, item: Exchange) -> Figure:
    """With several exchanges, the title identifies the exchange and figures are placed in pairs."""
    return replace(figure, title=f"{figure.title}: {item.name}", wide=False) if item.name else figure


def _accuracy(all_exchanges: Sequence[Exchange]) -> Chapter:
    compared = [item for item in all_exchanges if item.error]
    if not compared:
        return Chapter(
            "accuracy",
            QUESTIONS["accuracy"],
            "No prediction was compared with a measurement.",
            absent=[("To compare, run", REPLAY)],
        )
    errors = [tables.error_table(item) for item in compared]
    return Chapter(
        "accuracy",
        QUESTIONS["accuracy"],
        " ".join(sentences.accuracy_sentence(item) for item in compared),
        [ERROR_MEANS, *([CROWDED_ERRORS] if any(map(_is_crowded, compared)) else [])],
        figures=[
            _named(scatter_figure(item, f"scatter-{k}"), item)
            for k, item in enumerate(all_exchanges)
            if item.error
        ],
        shown=errors,
        brief=errors,
    )


def _is_crowded(item: Exchange) -> bool:
    return item.oversubscribed and not item.link_limited
