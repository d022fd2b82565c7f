"""Temucin et al. 2022: metrics and motifs of partitioned communication."""

from collections.abc import Sequence

from earlybird.papers.page import chapter_of
from earlybird.papers.paper import Paper, Row
from earlybird.papers.temucin import motif_statements, plan, statements
from earlybird.papers.temucin.application import application_rows
from earlybird.papers.temucin.panels import panel_figures
from earlybird.papers.temucin.throughput import NAME, Throughput, throughputs
from earlybird.papers.temucin.throughput_figures import throughput_figures
from earlybird.papers.verdicts import LEGEND
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.partitioned.view import Metrics


def _rows(material: Material) -> list[Row]:
    return _rows_of(material, statements.reproducing(material), throughputs(material))


def _rows_of(material: Material, measured: Sequence[Metrics], motifs: Sequence[Throughput]) -> list[Row]:
    return [
        *statements.metric_rows(measured),
        *motif_statements.motif_rows(motifs),
        *application_rows(material, motifs),
    ]


def _chapter(material: Material) -> Chapter:
    measured, motifs = statements.reproducing(material), throughputs(material)
    return chapter_of(
        PAPER,
        _rows_of(material, measured, motifs),
        lines=[statements.NOTES, *([motif_statements.NOTES] if motifs else [])],
        figures=[*panel_figures(measured), *throughput_figures(motifs)],
    )


PAPER = Paper(
    NAME,
    "Micro-Benchmarking MPI Partitioned Point-to-Point Communication",
    "Temuçin et al.",
    2022,
    {
        "overhead": "cost relative to a single message, cold and hot cache",
        "perceived bandwidth": "six panels by computation and noise",
        "availability": "by partitions (a) and by noise model (b)",
        "early-bird communication": "what is sent before the threads join, by noise",
        "Sweep3D": "throughput of three styles",
        "Halo3D": "the same, and with 64 threads",
        "SNAP": "expected speed-up, without printed values",
    },
    plan.TAKES,
    (1500.0, 240.0),
    plan.plan,
    plan.remarks,
    _rows,
    _chapter,
    LEGEND,
)
