"""The chapter on changes: which points of two runs differ, and when points changed over many runs."""

from earlybird.data import labels
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.changes.answer import (
    comparison_answer,
    history_answer,
    history_summary,
    sides_text,
    summary,
)
from earlybird.present.subjects.changes.figures import change_figure, history_figure, size_figure
from earlybird.present.subjects.changes.tables import changes_table, differences_table, history_table

ID = "changes"
QUESTION = "What became slower?"
MEANS = (
    "The launch is the sample: a change is the median over launches after, over that before. A point is "
    "slower or faster if launches differ significantly, with the number of points taken into account, and by "
    "more than the smallest change that counts; the same if the interval lies within that; otherwise "
    "inconclusive."
)
_BRIEF = 6  # points in the report of the terminal


def changes_chapter(material: Material) -> Chapter:
    """Return the chapter on all comparisons of runs, then all histories, in the order given."""
    comparisons, histories = material.run_comparisons, material.histories
    if not comparisons and not histories:
        return Chapter(ID, QUESTION, "")
    tables = [changes_table(comparison) for comparison in comparisons]
    dated = [history_table(history) for history in histories if history.changes()]
    sentences = [f"{sides_text(comparison)}: {summary(comparison)}." for comparison in comparisons]
    return Chapter(
        ID,
        QUESTION,
        " ".join([*sentences, *(f"{history_summary(history)}." for history in histories)]),
        [MEANS] if comparisons else [],
        answers=[*map(comparison_answer, comparisons), *map(history_answer, histories)],
        warnings=[labels.capital(note) for comparison in comparisons for note in comparison.notes],
        figures=[
            figure
            for k, comparison in enumerate(comparisons)
            for figure in (
                change_figure(comparison, f"changes-{k}"),
                *size_figure(comparison, f"changes-by-size-{k}"),
            )
        ]
        + [
            history_figure(history, f"history-{k}")
            for k, history in enumerate(histories)
            if history.changes()
        ],
        tables=tables,
        shown=[
            *(differences_table(comparison) for comparison in comparisons if comparison.differences),
            *dated,
        ],
        brief=[
            *(table.brief().first(_BRIEF, "point") for table in tables),
            *(table.brief() for table in dated),
        ],
    )
