"""All papers, by name, and their chapters for a report."""

from collections.abc import Mapping

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.papers import gillis, insaghi, temucin, threads, thune
from earlybird.papers.page import runs_of
from earlybird.papers.paper import Paper
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material

PAPERS: Mapping[str, Paper] = {
    paper.name: paper for paper in (gillis.PAPER, threads.PAPER, temucin.PAPER, thune.PAPER, insaghi.PAPER)
}


def find_paper(name: str) -> Paper:
    """Return the paper called `name`; raise InputError, listing the known ones, if there is none."""
    if name not in PAPERS:
        problem, remedy = f"there is no paper {name!r}", f"the papers are {', '.join(PAPERS)}"
        raise InputError(labels.with_guess(problem, labels.nearest(name, PAPERS), remedy))
    return PAPERS[name]


def paper_chapters(material: Material) -> list[Chapter]:
    """Return the pages of the papers that runs of the material reproduce."""
    return [paper.chapter(material) for paper in PAPERS.values() if runs_of(material, paper.name)]
