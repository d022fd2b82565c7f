"""Prints which guidelines of performance the collectives of a run violate."""

from collections import Counter
from collections.abc import Sequence

from earlybird.data import labels, units
from earlybird.data.guidelines import HOLDS, OUTCOMES, VIOLATED, GuidelineCheck, GuidelineChecks
from earlybird.data.plain_text import markdown_text
from earlybird.interop.junit import guidelines_xml
from earlybird.present.core.notation import interval_text
from earlybird.present.core.table import Column, Table, text_table
from earlybird.present.render.data import print_csv, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import markdown_table, print_line, print_table, print_text


def print_guidelines(found: GuidelineChecks, format: str, *, strict: bool = False) -> None:
    """In one of the formats of `earlybird compare`."""
    if format == "json":
        print_json(found.to_json())
    elif format == "csv":
        print_csv([one.row() for one in found.checks])
    elif format == "junit":
        print_text(guidelines_xml(found, strict=strict))
    elif format == "markdown":
        print_text(_markdown(found))
    else:
        _print_table(found)
    for text in found.notes:
        note(f"warning: {text}")


def summary(found: GuidelineChecks) -> str:
    """`2 violated, 1 inconclusive, 40 holds of 43 checks`, and what could not be checked."""
    counts = ", ".join(f"{found.count(outcome)} {outcome}" for outcome in OUTCOMES)
    more = f"; {count} unchecked" if (count := len(found.not_checked())) else ""
    return f"{counts} of {labels.counted(len(found.checks), 'check')}{more}"


def _print_rules(found: GuidelineChecks) -> None:
    """How many checks of each guideline have each outcome."""
    outcomes: dict[str, Counter[str]] = {}
    for one in found.checks:
        outcomes.setdefault(one.rule(), Counter())[one.outcome] += 1
    rows = [[rule, *(counts[outcome] for outcome in OUTCOMES)] for rule, counts in outcomes.items()]
    print_table(text_table("", ["guideline", *OUTCOMES], rows, left=["guideline"]))


def _ordered(found: GuidelineChecks) -> list[GuidelineCheck]:
    """Those that do not hold, the worst first."""
    kept = [one for one in found.checks if one.outcome != HOLDS]
    return sorted(kept, key=lambda one: (OUTCOMES.index(one.outcome), -one.ratio.value))


def _columns(checks: Sequence[GuidelineCheck]) -> list[Column]:
    is_mapped_differently = len({one.map_by for one in checks}) > 1
    return [
        Column("guideline", lambda one: one.text(), left=True),
        Column("ranks", lambda one: str(one.ranks)),
        *([Column("mapped by", lambda one: one.map_by, left=True)] if is_mapped_differently else []),
        Column("time", lambda one: units.format_seconds(one.time_s)),
        Column("bound", lambda one: units.format_seconds(one.bound_s)),
        Column("longer", lambda one: labels.signed_percent(one.ratio.value - 1)),
        Column("interval", lambda one: interval_text(one.ratio, lambda end: labels.signed_percent(end - 1))),
        Column("launches", lambda one: f"{one.launches}, {one.bound_launches}"),
        Column("outcome", lambda one: one.outcome, left=True),
    ]


def _print_table(found: GuidelineChecks) -> None:
    checks = _ordered(found)
    if checks:
        print_table(Table("", _columns(checks), checks))
        print_line()
    _print_rules(found)
    print_line()
    print_line(f"run       {found.run}")
    print_line(f"MPI       {labels.flavour(found.mpi)}")
    print_line(f"result    {summary(found)}")
    for one in checks:
        if one.outcome == VIOLATED:
            print_line(f"to do     {one.subject()} on {one.ranks} ranks: {one.remedy}")
    for text in found.not_checked():
        print_line(f"unchecked {text}")


def _markdown(found: GuidelineChecks) -> str:
    checks = _ordered(found)
    what = markdown_text(f"{labels.flavour(found.mpi)}, {found.run}")
    lines = [f"**{what}**: {summary(found)}", ""]
    if checks:
        columns = [*_columns(checks), Column("to do", lambda one: one.remedy)]
        lines += [*markdown_table(Table("", columns, checks)), ""]
    lines += [f"- unchecked: {markdown_text(text)}" for text in found.not_checked()]
    return "\n".join(lines).rstrip()
