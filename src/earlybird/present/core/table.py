"""Tables: the columns of a kind of item, defined once for the terminal, the page and other formats."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from earlybird.data.errors import Unknown

# Of a table of results on the page, which could be larger than 2 MB with more, and in the terminal.
MAX_PAGE_ROWS, MAX_BRIEF_ROWS = 60, 24


@dataclass(frozen=True)
class Column:
    """A column: its head and the text of an item.

    Attributes
    ----------
    common : where rows follow each other, it is printed only in the first of those with the same text.
    optional, varying : shown only if an item has a text, or if two items have different texts.
    default : stands for an empty text in a column that is shown.
    left, folded : aligned to the left; folded between words where a table is too wide.
    detail : not in the report of the terminal, which is brief.
    """

    head: str
    text_of: Callable[[Any], Any]
    common: bool = False
    optional: bool = False
    varying: bool = False
    default: str = ""
    left: bool = False
    folded: bool = False
    detail: bool = False

    def text(self, item: Any) -> Any:
        """Return the text of an item; "" if it lacks the values of which the text is made."""
        try:
            return self.text_of(item)
        except Unknown:
            return ""

    def cell(self, item: Any) -> str:
        """Return the text of an item; `default` for an empty one."""
        text = self.text(item)
        return self.default if text is None or text == "" else str(text)

    def is_shown(self, items: Iterable[Any]) -> bool:
        """Return whether a table of `items` has this column."""
        if not self.optional and not self.varying:
            return True
        texts = {self.text(item) for item in items}
        return not texts <= {"", None} if self.optional else len(texts) > 1


@dataclass(frozen=True)
class Table:
    """A row of `columns` for each item, and `last`, the cells of a final row such as sums.

    On the page, a table that is open and `wide` has the width of the page.
    """

    caption: str
    columns: Sequence[Column]
    items: Sequence[Any]
    last: Sequence[str] = ()
    wide: bool = False

    @cached_property
    def shown(self) -> list[int]:
        """Return the places of the columns that are shown for these items."""
        return [k for k, column in enumerate(self.columns) if column.is_shown(self.items)]

    @cached_property
    def header(self) -> list[str]:
        return [self.columns[k].head for k in self.shown]

    @cached_property
    def rows(self) -> list[list[str]]:
        """Return the cells of every row, also those of `last`."""
        columns = [self.columns[k] for k in self.shown]
        rows = [[column.cell(item) for column in columns] for item in self.items]
        return [*rows, [self.last[k] for k in self.shown]] if self.last else rows

    @cached_property
    def sparse_rows(self) -> list[list[str]]:
        """Return the cells of every row, with `common` cells only where one of them changes."""
        common = [j for j, k in enumerate(self.shown) if self.columns[k].common]
        rows, before = [], None
        for row in self.rows:
            values = [row[j] for j in common]
            repeated, before = values == before, values
            rows.append(["" if repeated and j in common else cell for j, cell in enumerate(row)])
        return rows

    def summed(self, total: Any) -> "Table":
        """Return the table with a last row for `total`, an item with the sums."""
        return replace(self, last=[column.cell(total) for column in self.columns])

    def only(self, keep: Callable[[Column], bool]) -> "Table":
        """Return the table with the columns that `keep` accepts."""
        places = [k for k, column in enumerate(self.columns) if keep(column)]
        last = [self.last[k] for k in places] if self.last else ()
        return replace(self, columns=[self.columns[k] for k in places], last=last)

    def brief(self) -> "Table":
        """Return the table without the columns that are details."""
        return self.only(lambda column: not column.detail)

    def first(self, count: int, noun: str = "row", where: str = "on the page") -> "Table":
        """Return the first rows and `last`, with the number of the others in the caption."""
        num_left = len(self.items) - count
        if num_left <= 0:
            return self
        caption = self.caption + more_text(num_left, noun, where)
        return replace(self, caption=caption, items=self.items[:count])

    def split(self) -> tuple[str, "Table"]:
        """Return the values of `common` columns that all rows share, as text, and the table without them."""
        same = {
            column.head: column.cell(self.items[0])
            for column in (self.columns[k] for k in self.shown)
            if column.common and self.items and len({str(column.text(item)) for item in self.items}) == 1
        }
        named = ", ".join(f"{head} {value}" for head, value in same.items() if value)
        return named, self.only(lambda column: not column.common or column.head not in same)


# The texts of an item, by the head of their column.
Columns = Mapping[str, Callable[[Any], str]]


def more_text(num_left: int, noun: str, where: str = "on the page") -> str:
    """Return `; 3 more rows on the page`."""
    from earlybird.data import labels  # imports numpy, which commands that start other programs must not

    return f"; {labels.counted(num_left, f'more {noun}')} {where}" if num_left > 0 else ""


def table_of(caption: str, items: Iterable[Any], columns: Columns, wide: bool = False) -> Table:
    """Return a table whose columns have nothing but a head and a text."""
    return Table(caption, [Column(head, text) for head, text in columns.items()], list(items), wide=wide)


def text_table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    left: Collection[str] = (),
    wide: bool = False,
) -> Table:
    """Return a table of texts that are there already."""

    def cell(k: int) -> Callable[[Sequence[Any]], Any]:
        return lambda row: row[k]

    columns = [Column(head, cell(k), left=head in left) for k, head in enumerate(header)]
    return Table(caption, columns, rows, wide=wide)
