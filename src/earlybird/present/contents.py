"""The contents of a report: the answers first, then how far to trust them, then the chapters in order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from earlybird.data import labels
from earlybird.data.collective_algorithms import REDUCE_LOCAL
from earlybird.data.kernels import (
    CHECK,
    COLLECTIVE,
    CONTENTION,
    EXCHANGE,
    MOTIFS,
    MSGRATE,
    PARTITIONED,
    PINGPONG,
    PIPELINE,
)
from earlybird.data.run import Sample
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.advice.chapter import ID as ADVICE
from earlybird.present.subjects.advice.chapter import advice_chapter
from earlybird.present.subjects.changes.chapter import changes_chapter
from earlybird.present.subjects.check.chapter import check_chapter
from earlybird.present.subjects.collectives.chapter import collective_chapter
from earlybird.present.subjects.exchange.chapter import accuracy_chapter, exchange_chapter
from earlybird.present.subjects.exchange.sources import exchanges
from earlybird.present.subjects.guidelines.chapter import guidelines_chapter
from earlybird.present.subjects.measured.chapter import results_chapter
from earlybird.present.subjects.messages.chapter import machine_chapter
from earlybird.present.subjects.motifs.chapter import motif_chapter
from earlybird.present.subjects.partitioned.chapter import partitioned_chapter
from earlybird.present.subjects.pipelines.chapter import pipeline_chapter
from earlybird.present.subjects.program.chapter import simulation_chapter
from earlybird.present.subjects.provenance.chapter import measured_chapter, trust
from earlybird.present.subjects.recording.chapter import recording_chapter

MAX_ANSWERS = 3  # of one chapter on the first screen
# The chapters on the first screen, in order: what to do comes first, properties of the machine come last.
_FIRST = (
    ADVICE,
    "check",
    "changes",
    "guidelines",
    "simulation",
    "recording",
    "exchange",
    "pipelines",
    "partitioned",
    "motifs",
    "collectives",
    "accuracy",
    "machine",
)
# Kernels with a chapter of their own; the results of all others are in a chapter together.
_WITH_CHAPTER = frozenset(
    (*MOTIFS, *(kernel.name for kernel in (PINGPONG, CONTENTION, MSGRATE, PIPELINE, PARTITIONED, COLLECTIVE,
                                           EXCHANGE, CHECK)))
)  # fmt: skip


def _has_chapter(sample: Sample) -> bool:
    """Return whether a chapter on its subject shows a sample; none shows local reductions."""
    return sample.kernel in _WITH_CHAPTER and sample.quantity != REDUCE_LOCAL


class Absent(NamedTuple):
    """Something that the report does not have, and the command that makes it ("" if there is none)."""

    question: str
    remark: str
    command: str


@dataclass(frozen=True)
class Contents:
    """A report. `trust` is one line, `warnings` are the doubts of all chapters with their remedies, and
    `chapters` are those with data, by id."""

    answers: Sequence[Answer]
    trust: str
    warnings: Sequence[str]
    chapters: Mapping[str, Chapter]
    absent: Sequence[Absent]

    @property
    def trust_line(self) -> str:
        """Return `142 of 144 points converged, 2 noisy. 3 warnings.`"""
        counted = f" {labels.counted(len(self.warnings), 'warning')}." if self.warnings else ""
        return self.trust + counted


# Makes chapters that other packages have on a material.
MoreChapters = Callable[[Material], Sequence[Chapter]]


def no_chapters(material: Material) -> Sequence[Chapter]:
    return ()


def contents(material: Material, more: MoreChapters = no_chapters) -> Contents:
    """Return the report on a material. The chapters that `more` makes of it are first: they are of runs that
    were made for them."""
    all_exchanges = exchanges(material)
    added = more(material)
    chapters = [
        *added,
        advice_chapter(material),
        check_chapter(material),
        changes_chapter(material),
        guidelines_chapter(material),
        simulation_chapter(material),
        recording_chapter(material),
        exchange_chapter(all_exchanges, material),
        machine_chapter(material),
        pipeline_chapter(material),
        partitioned_chapter(material),
        motif_chapter(material),
        collective_chapter(material),
        results_chapter(material, _has_chapter),
        accuracy_chapter(all_exchanges, material),
        measured_chapter(material),
    ]
    shown = {chapter.id: chapter for chapter in chapters if chapter.sentence}
    first = [*(chapter.id for chapter in added), *_FIRST]
    return Contents(
        [answer for id in first if id in shown for answer in _first_answers(shown[id])],
        trust(material),
        list(dict.fromkeys(warning for chapter in shown.values() for warning in chapter.warnings)),
        shown,
        [Absent(chapter.question, *missing) for chapter in chapters for missing in chapter.absent],
    )


def _first_answers(chapter: Chapter) -> list[Answer]:
    answers = list(chapter.answers)
    if chapter.id == ADVICE:  # one per question that was asked
        return answers
    num_left = len(answers) - MAX_ANSWERS
    if num_left <= 0:
        return answers
    more = f"{labels.counted(num_left, 'more answer')} in the chapter on this question."
    return [*answers[:MAX_ANSWERS], Answer(chapter.question, "", "", labels.capital(more))]
