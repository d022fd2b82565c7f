"""Prints lines and tables on stdout."""

import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from earlybird.data.plain_text import markdown_text, plain_line
from earlybird.present.core.table import Column, Table, text_table
from earlybird.present.render.streams import drawing

if TYPE_CHECKING:
    from rich.console import Console

# On a terminal, tables with more rows are cut to the first ones.
LONG_TABLE, FIRST_ROWS = 60, 40
# Where stdout is no terminal, a table that fits into so many characters keeps all of its columns. Of a wider
# one some columns may be folded, between words where these are no longer than _LONGEST_WORD.
WIDE_TABLE = 100
_MIN_FOLDED, _LONGEST_WORD = 16, 32
_GAP = 2  # between columns
_prints_all = False


def _console() -> "Console":
    # Only here: importing rich takes longer than many commands.
    from rich.console import Console

    return Console(file=drawing(sys.stdout), highlight=False)


def print_line(text: str = "") -> None:
    """Print one line on stdout."""
    print(plain_line(text))


def print_text(text: str) -> None:
    """Print lines on stdout that end with a newline."""
    print(text, end="" if text.endswith("\n") else "\n")


def print_table(table: Table) -> None:
    """Print columns on stdout, aligned to the right or `left`.

    The table fits the width of the terminal. Elsewhere the columns that may be `folded` are folded where it
    would be wider than WIDE_TABLE: those with names that may be long, not those with what a user may copy. On
    a terminal only the first rows of a long one are printed, without --all.
    """
    columns = [table.columns[k] for k in table.shown]
    header = [plain_line(head) for head in table.header]
    cells = [[plain_line(cell) for cell in row] for row in table.sparse_rows]
    if sys.stdout.isatty():
        is_long = len(cells) > LONG_TABLE and not _prints_all
        _print_on_terminal(columns, header, cells[:FIRST_ROWS] if is_long else cells)
        if is_long:
            print_line(f"{len(cells) - FIRST_ROWS} more rows; --all prints them")
        return
    widths = _folded_widths(columns, header, cells)
    for line in _aligned(columns, [header, *cells], widths):
        print(line)


def cut_lines(table: Table) -> list[str]:
    """Return the lines of a table of at most WIDE_TABLE characters. If it is wider, `common` columns become
    headings of the rows that share their texts; then cells that are too long are cut. The first column is
    aligned to the left."""
    same = ""
    if _total(_widths(table.header, table.rows)) > WIDE_TABLE and not table.last:
        same, table = table.split()
    in_headings = _columns_in_headings(table)
    in_rows = [k for k in range(len(table.header)) if k not in in_headings]
    columns = [table.columns[table.shown[k]] for k in in_rows]
    columns[0] = replace(columns[0], left=True)
    header, *texts = [[plain_line(cell) for cell in row] for row in (table.header, *table.sparse_rows)]
    rows = [[row[k] for k in in_rows] for row in (header, *texts)]
    widths = _cut(rows, columns)
    lines = [*_heading_lines(same), *_aligned(columns, rows[:1], widths)]
    heading = ""
    for row, whole in zip(rows[1:], texts, strict=True):
        next_heading = ", ".join(f"{header[k]} {whole[k]}" for k in in_headings if whole[k])
        if next_heading not in ("", heading):
            heading = next_heading
            lines += _heading_lines(heading)
        lines += _aligned(columns, [row], widths)
    return lines


def _columns_in_headings(table: Table) -> list[int]:
    """Return the columns, as places in the header, without which a table is at most WIDE_TABLE wide, as far
    as these are `common`: first those with the fewest changes."""
    common = [k for k, place in enumerate(table.shown) if table.columns[place].common and not table.last]
    common.sort(key=lambda k: sum(row[k] != after[k] for row, after in pairwise(table.rows)))
    widths = dict(enumerate(_widths(table.header, table.rows)))
    in_headings = []
    while common and _total(list(widths.values())) > WIDE_TABLE:
        in_headings.append(common.pop(0))
        del widths[in_headings[-1]]
    return sorted(in_headings)


def _heading_lines(heading: str) -> list[str]:
    return textwrap.wrap(f"{heading}:" if heading else "", WIDE_TABLE, break_on_hyphens=False)


def _cut(rows: Sequence[list[str]], columns: Sequence[Column]) -> list[int]:
    """Cut the cells of rows, the first of which is the header, and return the widths of the columns."""
    widths = _folded_widths(columns, rows[0], rows[1:])
    while _total(widths) > WIDE_TABLE:
        widths[widths.index(max(widths))] -= 1
    for row in rows:
        for k, width in enumerate(widths):
            if len(row[k]) > width and not columns[k].folded:
                row[k] = row[k][: max(width - 3, 0)] + "..."[:width]
    return widths


def _total(widths: Sequence[int]) -> int:
    """Return the width of a table with columns of these widths."""
    return sum(widths) + _GAP * (len(widths) - 1)


def _aligned(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> Iterator[str]:
    """Yield the lines of `rows`; cells that are wider than their column are folded."""
    for row in rows:
        folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*folded, fillvalue=""):
            texts = [
                cell.ljust(width) if column.left else cell.rjust(width)
                for column, cell, width in zip(columns, line, widths, strict=True)
            ]
            yield (" " * _GAP).join(texts).rstrip()


def print_captioned(table: Table) -> None:
    """Print an empty line, the caption and the columns of a table that are no details."""
    print_line()
    for line in textwrap.wrap(plain_line(table.caption), WIDE_TABLE, break_on_hyphens=False):
        print_line(line)
    print_table(table.brief())


def print_rows(header: Sequence[str], rows: Sequence[Sequence[Any]], left: Collection[str] = ()) -> None:
    """Print a table of texts that are there already."""
    print_table(text_table("", header, rows, left))


def fits(table: Table) -> bool:
    """Return whether a table fits the terminal, or WIDE_TABLE elsewhere."""
    most = _console().width if sys.stdout.isatty() else WIDE_TABLE
    return _total(_widths(table.header, table.rows)) <= most


def markdown_table(table: Table) -> list[str]:
    """Return the lines of a table in Markdown."""
    texts = [[markdown_text(cell) for cell in row] for row in (table.header, *table.sparse_rows)]
    cells = [texts[0], ["---"] * len(table.header), *texts[1:]]
    return [f"| {' | '.join(row)} |" for row in cells]


def _folded_widths(
    columns: Sequence[Column], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[int]:
    """Return the widths of columns in a table that is at most WIDE_TABLE wide, as far as some can be
    folded."""
    widths = _widths(header, rows)
    least = {
        k: max([_MIN_FOLDED, *(min(len(word), _LONGEST_WORD) for row in rows for word in row[k].split())])
        for k, column in enumerate(columns)
        if column.folded
    }
    for _ in range(_total(widths) - WIDE_TABLE):
        wide = [k for k in least if widths[k] > least[k]]
        if not wide:
            break
        widths[max(wide, key=lambda k: widths[k])] -= 1
    return widths


def _folded(text: str, width: int) -> list[str]:
    return [text] if len(text) <= width else textwrap.wrap(text, width, break_on_hyphens=False)


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(header, *rows, strict=True)]


def _print_on_terminal(
    columns: Sequence[Column], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    from rich import table
    from rich.text import Text

    terminal = _console()
    gap = _GAP if _total(_widths(header, rows)) <= terminal.width else 1
    drawn = table.Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for column, head in zip(columns, header, strict=True):
        drawn.add_column(Text(head), justify="left" if column.left else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    terminal.print(drawn)


def prints_all() -> bool:
    """Return whether --all is given: print long tables completely."""
    return _prints_all


def set_prints_all(value: bool) -> None:
    global _prints_all
    _prints_all = value
