"""The chapter on results that no other chapter shows, such as those of packing or of other benchmarks."""

from collections.abc import Callable

from earlybird.compare.results import ordered, results
from earlybird.data import labels
from earlybird.data.kernels import kernel_of
from earlybird.data.run import Sample
from earlybird.present.core.parts import Chapter, grouped
from earlybird.present.core.points import groups
from earlybird.present.core.table import MAX_BRIEF_ROWS, MAX_PAGE_ROWS, Table
from earlybird.present.material import Material
from earlybird.present.subjects.measured.columns import labelled, results_table
from earlybird.present.subjects.measured.remarks import meanings

ID = "results"
QUESTION = "What else was measured?"


def results_chapter(material: Material, has_chapter: Callable[[Sample], bool]) -> Chapter:
    """Return the chapter with a table for each kernel that has samples of which `has_chapter` is false."""
    measured = groups(material, lambda sample: None if has_chapter(sample) else sample.kernel)
    rows = [labelled(result, group.label) for group in measured for result in results(group.samples)]
    of_kernels = grouped(ordered(rows), lambda result: result.kernel)
    if not of_kernels:
        return Chapter(ID, QUESTION, "")
    titles = {name: kernel_of(name).title for name in of_kernels}

    def tables(on_page: bool) -> list[Table]:
        return [
            results_table(labels.capital(titles[name]), of_kernel, on_page)
            for name, of_kernel in of_kernels.items()
        ]

    return Chapter(
        ID,
        QUESTION,
        f"The tables have the results of {labels.listed(list(titles.values()))}.",
        [f"{labels.capital(line)}." for of_kernel in of_kernels.values() for line in meanings(of_kernel)],
        shown=[table.first(MAX_PAGE_ROWS, where="in `earlybird show RUN`") for table in tables(True)],
        brief=[table.brief().first(MAX_BRIEF_ROWS) for table in tables(False)],
    )
