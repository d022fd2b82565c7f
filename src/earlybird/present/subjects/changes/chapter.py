"""The chapter on changes: which points of two runs differ, and when points changed over many runs."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.history import History, Series, SeriesChange
from earlybird.data.points import point_texts, texts_by_id
from earlybird.data.run_comparison import FASTER, INCONCLUSIVE, SLOWER, VERDICTS, Change, RunComparison
from earlybird.data.units import format_seconds
from earlybird.present.core.parts import Answer, Chapter, Figure
from earlybird.present.core.table import Table, table_of
from earlybird.present.core.text import NOTHING
from earlybird.present.material import Material
from earlybird.present.subjects.changes.figures import change_figure, history_figure, size_figure

ID = "changes"
QUESTION = "What became slower?"
MEANS = (
    "The launch is the sample: a change is the median over launches after, over that before. A point is "
    "slower or faster if launches differ significantly, with the number of points taken into account, and by "
    "more than the smallest change that counts; the same if the interval lies within that; otherwise "
    "inconclusive."
)
_BRIEF = 6
_IN_BRIEF = ("point", "before", "after", "change", "verdict")
_ORDER = (SLOWER, INCONCLUSIVE, FASTER)


def changes_chapter(material: Material) -> Chapter:
    """All comparisons of runs, then all histories, in the order given."""
    compared, histories = material.run_comparisons, material.histories
    if not compared and not histories:
        return Chapter(ID, QUESTION, "")
    tables = [_table(one) for one in compared]
    return Chapter(
        ID,
        QUESTION,
        " ".join([*map(_sentence, compared), *map(_history_sentence, histories)]),
        [MEANS] if compared else [],
        answers=[*map(_answer, compared), *map(_history_answer, histories)],
        warnings=[labels.capital(note) for one in compared for note in one.notes],
        figures=[figure for k, one in enumerate(compared) for figure in _figures(one, k)]
        + [history_figure(one, f"history-{k}") for k, one in enumerate(histories) if one.changes()],
        tables=tables,
        shown=[
            *(_differences(one) for one in compared if one.differences),
            *(_history_table(one) for one in histories if one.changes()),
        ],
        brief=[one.only(lambda column: column.head in _IN_BRIEF).first(_BRIEF, "point") for one in tables],
    )


def _sentence(one: RunComparison) -> str:
    counts = labels.listed([f"{one.count(verdict)} {verdict}" for verdict in VERDICTS if one.count(verdict)])
    mean = labels.signed_percent(one.geometric_mean - 1)
    return (
        f"{one.after} against {one.before}: of {labels.counted(len(one.changes), 'point')} {counts}; in the "
        f"geometric mean {mean}."
    )


def _answer(one: RunComparison) -> Answer:
    what = f"{one.after} against {one.before}"
    slower = [change for change in one.changes if change.verdict == SLOWER]
    if not slower:
        faster = one.count(FASTER)
        finding = f"No point is slower{f', {faster} faster' if faster else ''}."
        return Answer(what, labels.signed_percent(one.geometric_mean - 1), "", finding, NOTHING)
    worst = max(slower, key=lambda change: change.ratio.value)
    low, high = (labels.signed_percent(end - 1) for end in (worst.ratio.low, worst.ratio.high))
    name = texts_by_id(one.changes)[id(worst)]
    number = labels.counted(len(slower), "point")
    finding = f"{labels.capital(number)} slower, {name} most."
    do = ""
    if one.differences:
        do = f"check what differs: {labels.listed_briefly([item.what for item in one.differences])}"
    return Answer(what, labels.signed_percent(worst.ratio.value - 1), f"{low} to {high}", finding, do)


def _figures(one: RunComparison, k: int) -> list[Figure]:
    names = point_texts(one.changes)
    return [change_figure(one, names, f"changes-{k}"), *size_figure(one, f"changes-by-size-{k}")]


def _table(one: RunComparison) -> Table:
    names = point_texts(one.changes)
    rows = sorted(zip(one.changes, names, strict=True), key=lambda row: -row[0].ratio.value)

    def percent(change: Change, value: float) -> str:
        return labels.signed_percent(value - 1)

    return table_of(
        f"All points: {one.after} against {one.before}",
        rows,
        {
            "point": lambda row: row[1],
            "before": lambda row: format_seconds(row[0].before_s),
            "after": lambda row: format_seconds(row[0].after_s),
            "change": lambda row: percent(row[0], row[0].ratio.value),
            "95 %": lambda row: (
                f"{percent(row[0], row[0].ratio.low)} to {percent(row[0], row[0].ratio.high)}"
            ),
            "launches": lambda row: f"{row[0].launches_before}, {row[0].launches_after}",
            "verdict": lambda row: row[0].verdict,
        },
    )


def _differences(one: RunComparison) -> Table:
    return table_of(
        f"What else differs: {one.after} against {one.before}",
        one.differences,
        {
            "what": lambda item: item.what,
            "before": lambda item: item.before or "-",
            "after": lambda item: item.after or "-",
        },
        wide=True,
    )


def _day(one: History, run: int) -> str:
    return one.runs[run].started[:10]


def _span(one: History) -> str:
    return f"{labels.counted(len(one.runs), 'run')} from {_day(one, 0)} to {_day(one, -1)}"


def _history_sentence(one: History) -> str:
    found = one.changes()
    if not found:
        return f"{_span(one)}: no point changed."
    days = list(dict.fromkeys(_day(one, change.first) for _, change in found))
    return (
        f"{_span(one)}: {labels.counted(len(found), 'change')} of {len(one.series)} points, "
        f"from {labels.listed_briefly(days)}."
    )


def _history_answer(one: History) -> Answer:
    slower = [(series, change) for series, change in one.changes() if change.ratio > 1]
    if not slower:
        return Answer(_span(one), "", "", "No point became slower.", NOTHING)
    series, change = max(slower, key=lambda pair: pair[1].ratio)
    name = texts_by_id(one.series)[id(series)]
    finding = f"{labels.capital(name)} became slower from {_day(one, change.first)} on, by a {change.kind}."
    different = [item.what for item in one.differences.get(str(change.first), ())]
    do = f"check what differs since then: {labels.listed_briefly(different)}" if different else ""
    return Answer(_span(one), labels.signed_percent(change.ratio - 1), "", finding, do)


def _history_table(one: History) -> Table:
    names = texts_by_id(one.series)

    def differing(pair: tuple[Series, SeriesChange]) -> str:
        found: Sequence = one.differences.get(str(pair[1].first), ())
        return labels.listed_briefly([f"{item.what}: {item.before} -> {item.after}" for item in found])

    return table_of(
        f"Changes: {_span(one)}",
        one.changes(),
        {
            "point": lambda pair: names[id(pair[0])],
            "kind": lambda pair: pair[1].kind,
            "from": lambda pair: _day(one, pair[1].first),
            "until": lambda pair: _day(one, pair[1].last) if pair[1].last != pair[1].first else "",
            "change": lambda pair: labels.signed_percent(pair[1].ratio - 1),
            "differs from the run before": differing,
        },
        wide=True,
    )
