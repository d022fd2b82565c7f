"""The report for the terminal: the sentences of the page, and short tables of at most 100 columns."""

import textwrap

from earlybird.report.contents import chapters
from earlybird.report.material import Material
from earlybird.report.parts import Chapter, Step, Table

WIDTH = 100


def render(material: Material) -> str:
    """The report as plain text with a final newline; control characters from files are replaced."""
    blocks = [_chapter(number, chapter) for number, chapter in enumerate(chapters(material), start=1)]
    return "\n\n".join(blocks) + "\n"


def _chapter(number: int, chapter: Chapter) -> str:
    title = f"{number}. {chapter.question}"
    blocks = [f"{title}\n{'-' * len(title)}\n{_wrapped(chapter.sentence)}"]
    blocks += [_step(number, step) for number, step in enumerate(chapter.steps, start=1)]
    blocks += [_wrapped(line) for line in chapter.lines]
    blocks += [_table(table) for table in chapter.brief]
    notes = list(chapter.remedies)
    notes += [f"{remark} {f'`{command}`' if command else ''}".strip() for remark, command in chapter.absent]
    blocks += [_wrapped(note) for note in notes]
    return "\n\n".join(blocks)


def _step(number: int, step: Step) -> str:
    return _wrapped(f"{number}. {step.what} {step.gain}".rstrip()) + "\n" + _wrapped(f"Do: {step.do}")


def _table(table: Table) -> str:
    rows = [[_plain(cell) for cell in row] for row in [table.header, *table.rows]]
    widths = [max(len(row[k]) for row in rows) for k in range(len(table.header))]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widths[widths.index(max(widths))] -= 1
    lines = [
        "  ".join(
            _fitted(cell, width, k) for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(([_wrapped(table.caption)] if table.caption else []) + lines)


def _fitted(cell: str, width: int, column: int) -> str:
    """The first column has labels and is left-aligned, the others have numbers."""
    cell = cell if len(cell) <= width else cell[: max(width - 3, 0)] + "..."[: min(width, 3)]
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _wrapped(text: str) -> str:
    return textwrap.fill(_plain(text), WIDTH, break_on_hyphens=False)


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
