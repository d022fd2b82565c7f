"""The chapter on motifs: what threads and partitions gain in the exchanges of applications."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.present.core.parts import Chapter, grouped
from earlybird.present.core.points import choices
from earlybird.present.core.text import crowded_sentence, method_names
from earlybird.present.material import Material
from earlybird.present.subjects.motifs.answer import motif_answer, motif_sentence
from earlybird.present.subjects.motifs.figures import MAX_SETTINGS, SLEEP, motif_figures
from earlybird.present.subjects.motifs.tables import all_tables, brief_tables
from earlybird.present.subjects.motifs.view import Motif, by_interest, motifs

ID = "motifs"
QUESTION = "What do threads and partitions gain in an application's exchange?"


def motif_chapter(material: Material) -> Chapter:
    """Return the chapter; each motif's setting that shows most comes first."""
    measured = motifs(material)
    if not measured:
        return Chapter(ID, QUESTION, "")
    ordered = by_interest(measured)
    groups = grouped(ordered, lambda motif: motif.name).values()
    groups_of_mpis = grouped(ordered, lambda motif: (motif.name, motif.mpi)).values()
    return Chapter(
        ID,
        QUESTION,
        " ".join(motif_sentence(group[0]) for group in groups),
        _lines(measured),
        answers=[motif_answer(group) for group in groups_of_mpis],
        figures=motif_figures(ordered),
        tables=all_tables(measured),
        brief=brief_tables(ordered),
        choices=choices(ordered[:MAX_SETTINGS]),
    )


def _lines(measured: Sequence[Motif]) -> list[str]:
    """Return the names of the styles, and in how many settings threads shared cores."""
    crowded = sum(motif.oversubscribed for motif in measured)
    settings = labels.counted(len(measured), "setting")
    return [
        method_names(measured),
        *([f"{crowded_sentence(where=f'In {crowded} of {settings}')} {SLEEP}"] if crowded else []),
    ]
