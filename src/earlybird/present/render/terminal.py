"""Prints results on stdout as a table, CSV or JSON."""

import csv
import json
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from earlybird.data.errors import InputError
from earlybird.data.plain_text import csv_cell, markdown_text, plain_line
from earlybird.present.render.streams import drawing

if TYPE_CHECKING:  # numpy, msgspec and rich would be imported for every help text
    from rich.console import Console

    from earlybird.data.schema import Estimate

# On a terminal, tables with more rows are cut to the first ones.
LONG_TABLE, FIRST_ROWS = 60, 40
# Where stdout is no terminal, a table that fits into so many characters keeps all of its columns. Of a wider
# one some columns may be folded, between words where these are no longer than _LONGEST_WORD.
WIDE_TABLE = 100
_LEAST_FOLDED, _LONGEST_WORD = 16, 32
_GAP = 2  # between columns
_prints_all = False


class Format(StrEnum):
    """`--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"


@dataclass(frozen=True)
class Column:
    """A column: its head and the text of an item. `common` columns are printed only where they change;
    `optional` ones only if an item has a text, `varying` ones only if two items have different texts. In a
    column that is shown, `default` stands for an empty text."""

    head: str
    text: Callable[[Any], Any]
    common: bool = False
    optional: bool = False
    varying: bool = False
    default: str = ""

    def cell(self, item: Any) -> Any:
        text = self.text(item)
        return self.default if text in ("", None) else text

    def is_shown(self, items: Iterable[Any]) -> bool:
        """Whether a table of `items` has this column."""
        if not self.optional and not self.varying:
            return True
        texts = {self.text(item) for item in items}
        return not texts <= {"", None} if self.optional else len(texts) > 1


def table(columns: Iterable[Column], items: Sequence[Any]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of a table with a row for every item."""
    columns = [column for column in columns if column.is_shown(items)]
    rows, before = [], None
    for item in items:
        common = [column.text(item) for column in columns if column.common]
        repeated, before = common == before, common
        rows.append(["" if column.common and repeated else column.cell(item) for column in columns])
    return [column.head for column in columns], rows


def fitted_columns(columns: Sequence[Column], items: Sequence[Any]) -> tuple[list[Column], str]:
    """All columns if the table fits the terminal, or WIDE_TABLE elsewhere; otherwise those without the
    `common` ones that have one value in all rows, and a text that names these values."""
    columns = [column for column in columns if column.is_shown(items)]
    header, rows = table(columns, items)
    most = _console().width if sys.stdout.isatty() else WIDE_TABLE
    if sum(_widths(header, rows)) + _GAP * (len(header) - 1) <= most:
        return columns, ""
    constants = {
        column.head: {str(column.text(item)) for item in items} for column in columns if column.common
    }
    same = {head: values.pop() for head, values in constants.items() if len(values) == 1}
    named = ", ".join(f"{head} {value}" for head, value in same.items() if value)
    return [column for column in columns if column.head not in same], named


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


def print_json(value: Any) -> None:
    """Print JSON on stdout, in ASCII; InputError for what is no number."""
    try:
        text = json.dumps(value, indent=1, allow_nan=False)
    except ValueError:
        raise InputError(
            "a result is beyond the numbers that a computer calculates with; the costs or sizes given are "
            "too large or too small: give those of a machine that exists"
        ) from None
    print(text)


def print_csv(records: Sequence[Mapping[str, Any]], header: Sequence[str] = ()) -> None:
    """Print the values of `records` in the columns `header`, by default all of their keys."""
    header = header or list(dict.fromkeys(key for record in records for key in record))
    writer = csv.DictWriter(sys.stdout, header, extrasaction="ignore", lineterminator="\n")
    writer.writerow({name: csv_cell(name) for name in header})
    for record in records:
        writer.writerow({key: csv_cell(value) for key, value in record.items()})


def print_data(
    format: str, value: Any, records: Sequence[Mapping[str, Any]], header: Sequence[str] = ()
) -> bool:
    """Print `value` as JSON, or `records` as CSV, if that is the format; otherwise return False."""
    if format == Format.json:
        print_json(value)
    elif format == Format.csv:
        print_csv(records, header)
    return format in (Format.json, Format.csv)


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    left: Collection[str] = (),
    folded: Collection[str] = (),
) -> None:
    """Print right-aligned columns on stdout; columns in `left` are left-aligned.

    The table fits the width of the terminal. Elsewhere the columns in `folded` are folded where it would be
    wider than WIDE_TABLE: those with names that may be long, not those with what a user may copy. On a
    terminal only the first rows of a long one are printed, without --all.
    """
    header = [plain_line(name) for name in header]
    cells = [[plain_line(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        is_long = len(cells) > LONG_TABLE and not _prints_all
        _print_on_terminal(header, cells[:FIRST_ROWS] if is_long else cells, left)
        if is_long:
            print_line(f"{len(cells) - FIRST_ROWS} more rows; --all prints them")
        return
    widths = _folded_widths(header, cells, folded)
    for row in [header, *cells]:
        folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*folded, fillvalue=""):
            columns = [
                cell.ljust(width) if name in left else cell.rjust(width)
                for name, cell, width in zip(header, line, widths, strict=True)
            ]
            print((" " * _GAP).join(columns).rstrip())


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    texts = [[markdown_text(str(cell)) for cell in row] for row in (header, *rows)]
    cells = [texts[0], ["---"] * len(header), *texts[1:]]
    return [f"| {' | '.join(row)} |" for row in cells]


def _folded_widths(
    header: Sequence[str], rows: Sequence[Sequence[str]], folded: Collection[str]
) -> list[int]:
    """The widths of columns in a table that is at most WIDE_TABLE wide, as far as some can be folded."""
    widths = _widths(header, rows)
    least = {
        k: max([_LEAST_FOLDED, *(min(len(word), _LONGEST_WORD) for row in rows for word in row[k].split())])
        for k, name in enumerate(header)
        if name in folded
    }
    for _ in range(sum(widths) + _GAP * (len(widths) - 1) - WIDE_TABLE):
        wide = [k for k in least if widths[k] > least[k]]
        if not wide:
            break
        widths[max(wide, key=lambda k: widths[k])] -= 1
    return widths


def _folded(text: str, width: int) -> list[str]:
    return [text] if len(text) <= width else textwrap.wrap(text, width, break_on_hyphens=False)


def _widths(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[int]:
    return [max(len(str(cell)) for cell in column) for column in zip(header, *rows, strict=True)]


def _print_on_terminal(header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    terminal = _console()
    gap = _GAP if sum(_widths(header, rows)) + _GAP * (len(header) - 1) <= terminal.width else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in header:
        table.add_column(Text(name), justify="left" if name in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    terminal.print(table)


def prints_all() -> bool:
    """Whether --all is given: print long tables completely."""
    return _prints_all


def set_prints_all(value: bool) -> None:
    global _prints_all
    _prints_all = value


def range_text(bounds: Sequence[float] | None, text: Callable[[float], str]) -> str:
    """`1.2 us .. 1.4 us`, from (low, high); "" for None."""
    return f"{text(bounds[0])} .. {text(bounds[1])}" if bounds else ""


def interval_text(estimate: "Estimate | None", text: Callable[[float], str]) -> str:
    """The interval of an estimate; "" if it has no width."""
    if estimate is None or estimate.low == estimate.high:
        return ""
    return range_text((estimate.low, estimate.high), text)


def ratio_text(ratio: float) -> str:
    """Two decimals, or two significant digits below 0.1."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def percent_text(error: float | None) -> str:
    """`2.5 %`, two significant digits from 10000 % on; "" for None."""
    if error is None:
        return ""
    return f"{100 * error:.1f} %" if error < 100 else f"{100 * error:.2g} %"
