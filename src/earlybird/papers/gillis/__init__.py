"""Gillis et al. 2023: how much is gained if threads send partitions of a buffer as soon as they are ready."""

from collections.abc import Sequence

from earlybird.papers.gillis import plan
from earlybird.papers.gillis.figures import paper_figures
from earlybird.papers.gillis.formulas import formula_rows
from earlybird.papers.gillis.headlines import NAME, conditions, headline_rows, reproducing
from earlybird.papers.page import chapter_of
from earlybird.papers.paper import Paper, Row
from earlybird.papers.verdicts import LEGEND
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.pipelines.view import Pipeline


def _rows(material: Material) -> list[Row]:
    return _rows_of(reproducing(material))


def _rows_of(measured: Sequence[Pipeline]) -> list[Row]:
    return headline_rows(measured) + formula_rows()


def _chapter(material: Material) -> Chapter:
    measured = reproducing(material)
    return chapter_of(PAPER, _rows_of(measured), lines=conditions(material), figures=paper_figures(measured))


PAPER = Paper(
    NAME,
    "Quantifying the Performance Benefits of Partitioned Communication in MPI",
    "Gillis et al.",
    2023,
    {
        "figure 4": "one thread and one partition: methods against size",
        "figure 5": "32 threads with a partition each: what contention costs",
        "figure 6": "the same with a context (VCI) per thread",
        "figure 7": "aggregated partitions",
        "figure 8": "the gain of sending early",
        "2.2.1, A.2": "examples of equations (4) to (9)",
    },
    plan.TAKES,
    (300.0, 60.0),
    plan.plan,
    plan.remarks,
    _rows,
    _chapter,
    LEGEND,
)
