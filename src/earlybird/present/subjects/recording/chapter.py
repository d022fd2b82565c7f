"""The chapter on recordings: what a program sends to whom, in which calls, and how evenly over ranks."""

from collections.abc import Sequence

from earlybird.analysis.gaps import remarks
from earlybird.data import labels
from earlybird.present.core.parts import Chapter, Figure
from earlybird.present.material import Material
from earlybird.present.subjects.recording.answer import answers, facts, known_of_waits, sentences
from earlybird.present.subjects.recording.bars import (
    arrivals_figures,
    calls_figure,
    phases_figure,
    sizes_figure,
)
from earlybird.present.subjects.recording.matrix import ORDERS, QUANTITIES, matrix_figures
from earlybird.present.subjects.recording.ranks import ranks_figure, waits_figure
from earlybird.present.subjects.recording.tables import all_tables, brief_tables
from earlybird.present.subjects.recording.view import Recorded, recordings

ID = "recording"
QUESTION = "What does my program communicate?"
MAX_DRAWN = 2  # recordings with figures: the page stays small


def recording_chapter(material: Material) -> Chapter:
    """Return the chapter on all recordings in the order given."""
    all_recorded = recordings(material)
    return Chapter(
        ID,
        QUESTION,
        " ".join(_prefix(recorded) + " ".join(sentences(recorded)) for recorded in all_recorded),
        [line for recorded in all_recorded for line in _lines(recorded)],
        answers=answers(all_recorded),
        warnings=[line for recorded in all_recorded for line in _warnings(recorded)],
        figures=_figures(all_recorded),
        tables=[table for recorded in all_recorded for table in all_tables(recorded)],
        brief=[table for recorded in all_recorded for table in brief_tables(recorded, "on the page")],
        choices=_choices(all_recorded[:MAX_DRAWN]),
    )


def _prefix(recorded: Recorded) -> str:
    return "" if recorded.is_only else f"{recorded.name}: "


def _warnings(recorded: Recorded) -> list[str]:
    """Return what is missing in the recording, as sentences."""
    return [f"{labels.capital(_prefix(recorded) + text)}." for text in remarks(recorded.recording)]


def _lines(recorded: Recorded) -> list[str]:
    return [f"{recorded.title}.", *_warnings(recorded), *facts(recorded), *known_of_waits(recorded)]


def _figures(all_recorded: Sequence[Recorded]) -> list[Figure]:
    figures = []
    for k, recorded in enumerate(all_recorded[:MAX_DRAWN]):
        if not recorded.recording.ranks or recorded.recording.is_watched:
            continue
        figures += [
            *matrix_figures(recorded, f"recording-matrix-{k}"),
            calls_figure(recorded, f"recording-calls-{k}"),
            ranks_figure(recorded, f"recording-ranks-{k}"),
            *([waits_figure(recorded, recorded.waits, f"recording-waits-{k}")] if recorded.waits else []),
            phases_figure(recorded, f"recording-phases-{k}"),
            *arrivals_figures(recorded, f"recording-arrivals-{k}"),
            sizes_figure(recorded, f"recording-sizes-{k}"),
        ]
    num_left = len(all_recorded) - MAX_DRAWN
    if num_left > 0:
        reason = "Their numbers are in the tables; give fewer recordings for their figures."
        title = labels.counted(num_left, "more recording")
        figures.append(Figure("recording-left", title, "", absence=reason))
    return figures


def _choices(drawn: Sequence[Recorded]) -> dict[str, list[str]]:
    """Return the selectors; a matrix has those of its orders."""
    with_matrix = [recorded for recorded in drawn if recorded.recording.ranks and recorded.heaviest]
    orders = {ORDERS[matrix.rows.order] for recorded in with_matrix for matrix in recorded.matrices}
    return {
        "recording": [recorded.name for recorded in drawn if recorded.choice],
        "quantity": list(QUANTITIES) if with_matrix else [],
        "order of ranks": [order for order in ORDERS.values() if order in orders],
    }
