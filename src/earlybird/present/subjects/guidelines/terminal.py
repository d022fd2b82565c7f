"""Prints which guidelines of performance the collectives of a run violate."""

from earlybird.data.guidelines import UNDECIDED, VIOLATED, GuidelineChecks
from earlybird.data.labels import flavour
from earlybird.data.plain_text import markdown_text
from earlybird.interop.junit import guidelines_xml
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import markdown_table, print_line, print_table, print_text
from earlybird.present.subjects.guidelines.answer import summary, title
from earlybird.present.subjects.guidelines.tables import checks_table, outcomes_table


def print_guidelines(guidelines: GuidelineChecks, format: str, *, strict: bool = False) -> None:
    """Print checks of guidelines in one of the formats of `earlybird compare`."""
    rows = (check.row() for check in guidelines.checks)
    if format == "junit":
        print_text(guidelines_xml(guidelines, strict=strict))
    elif format == "markdown":
        print_text(_markdown(guidelines))
    elif not print_data(format, guidelines.to_json(), rows):
        _print_table(guidelines)
    for text in guidelines.notes:
        note(f"warning: {text}")


def _print_table(guidelines: GuidelineChecks) -> None:
    """Print the checks that do not hold, the outcomes of each guideline, and what to do."""
    if checks := guidelines.worst_first(VIOLATED, UNDECIDED):
        print_table(checks_table(checks))
        print_line()
    print_table(outcomes_table(guidelines))
    print_line()
    print_line(f"run       {guidelines.run}")
    print_line(f"MPI       {flavour(guidelines.mpi)}")
    print_line(f"result    {summary(guidelines)}")
    for check in guidelines.worst_first(VIOLATED):
        print_line(f"to do     {check.subject()} on {check.ranks} ranks: {check.remedy}")
    for text in guidelines.not_checked():
        print_line(f"unchecked {text}")


def _markdown(guidelines: GuidelineChecks) -> str:
    lines = [f"**{markdown_text(title(guidelines))}**: {summary(guidelines)}", ""]
    if checks := guidelines.worst_first(VIOLATED, UNDECIDED):
        lines += [*markdown_table(checks_table(checks, with_remedies=True)), ""]
    lines += [f"- unchecked: {markdown_text(text)}" for text in guidelines.not_checked()]
    return "\n".join(lines).rstrip()
