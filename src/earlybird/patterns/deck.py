"""Reads from an Eclipse deck what describes its grid and the activity of its cells, through INCLUDE."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError

# The position of the array that a record changes.
_CHANGED_ARRAY = {
    "EQUALS": 0, "ADD": 0, "MULTIPLY": 0, "MINVALUE": 0, "MAXVALUE": 0, "OPERATE": 0, "COPY": 1,
    "EQUALREG": 0, "ADDREG": 0, "MULTIREG": 0, "OPERATER": 0, "COPYREG": 1, "COPYBOX": 0,
}  # fmt: skip
_APPLIED = ("EQUALS", "ADD", "MULTIPLY")
_ONE_RECORD = ("ACTNUM", "BOX", "DIMENS", "SPECGRID", "NUMRES", "INCLUDE")
_FLAGS = ("ENDBOX", "END", "ENDINC", "ENDSKIP", "TITLE")
_SKIPS = ("SKIP", "SKIP100", "SKIP300")
_SECTIONS = (
    "RUNSPEC", "GRID", "EDIT", "PROPS", "REGIONS", "SOLUTION", "SUMMARY", "SCHEDULE", "OPTIMIZE",
)  # fmt: skip
_GRID_SECTIONS = ("", "RUNSPEC", "GRID")
# What makes another mesh of the grid than six neighbours of each active cell.
_REFUSED = (
    dict.fromkeys(("CARFIN", "RADFIN", "RADFIN4", "REFINE", "AUTOREF"), "refines cells")
    | dict.fromkeys(("COARSEN", "AUTOCOAR"), "joins cells")
    | dict.fromkeys(("DUALPORO", "DUALPERM"), "makes two cells of each")
    | dict.fromkeys(("RADIAL", "PEBI"), "makes a grid that is not Cartesian")
    | dict.fromkeys(("GDFILE", "IMPORT", "LOAD"), "takes data from a binary file")
    | {"USEFLUX": "deactivates cells"}
)
# By these a simulator computes fewer cells than ACTNUM has, or joins cells that share no face of the grid.
_BEYOND_ACTNUM = (
    "MINPV", "MINPVV", "MINPORV", "MINRV", "PORV", "PINCH", "PINCHOUT", "PINCHREG", "PINCHNUM", "PINCHXY",
    "AQUNUM", "NNC",
)  # fmt: skip
# Their one record may name any array.
_REPORTS = ("RPTGRID", "RPTGRIDL", "RPTPROPS", "RPTREGS", "RPTSOL", "RPTRST")
_UNDERSTOOD = frozenset((*_CHANGED_ARRAY, *_ONE_RECORD, *_FLAGS, *_SKIPS, *_SECTIONS, *_REFUSED))

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")
# A comment, a quoted text, one whose quote is not closed, the end of a record, any other item.
_ITEM = re.compile(r"""--.*|'[^']*'|"[^"]*"|['"].*|/|(?:(?!--)[^\s'"/])+""")
_REPEATED = re.compile(r"([1-9][0-9]{0,2})\*(.*)")
_VALUE = re.compile(r"(?:([1-9][0-9]{0,9})\*)?([01])")
_DEEPEST_INCLUDE = 20
# More than a keyword with boxes has.
_MAX_ITEMS = 40


@dataclass(frozen=True)
class Keyword:
    """A keyword with its data; `where` names the file and the line of each record."""

    name: str
    where: list[str]
    # An item that is defaulted is None.
    records: list[list[str | None]] = field(default_factory=list)
    # The values of ACTNUM, and how often each is repeated.
    values: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    counts: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class Deck:
    """The facts that a deck states about its grid."""

    # NX, NY, NZ and where that stands; None unless the deck has SPECGRID or DIMENS.
    dims: tuple[int, int, int] | None
    dims_from: str
    # ACTNUM, BOX, ENDBOX and the operations on ACTNUM, in the order of the deck.
    changes: list[Keyword]
    # Keywords by which a simulator computes another grid than ACTNUM alone describes, and where they stand.
    beyond_actnum: list[str]


def read_deck(text: str, path: Path) -> Deck:
    """Return the facts that the deck `text` of the file `path` states about its grid.

    Data of other keywords is skipped. Raises InputError naming the keyword and the line if one may change
    ACTNUM or the grid in a way that is not applied here, or if an inclusion or the end of a record is
    unclear.
    """
    reader = _Reader(text, path)
    dims: tuple[int, int, int] | None = None
    dims_from = ""
    changes: list[Keyword] = []
    for keyword in reader.keywords():
        if keyword.name in ("DIMENS", "SPECGRID"):
            sides = _sides(keyword)
            if dims is not None and sides != dims:
                raise InputError(
                    f"{keyword.where[0]}: {keyword.name} is {format_dims(sides)}, but {dims_from} says "
                    f"{format_dims(dims)}; give a deck with one grid"
                )
            dims, dims_from = sides, f"{keyword.name} ({keyword.where[0]})"
        else:
            changes.append(keyword)
    return Deck(dims, dims_from, changes, list(reader.beyond_actnum.values()))


def _sides(keyword: Keyword) -> tuple[int, int, int]:
    record = keyword.records[0]
    sides = [int(item) for item in record[:3] if item is not None and re.fullmatch("[0-9]{1,9}", item)]
    if len(sides) != 3 or 0 in sides:
        raise InputError(
            f"{keyword.where[0]}: {keyword.name} begins with {' '.join(str(item) for item in record[:3])!r}; "
            "it must begin with three whole numbers above 0"
        )
    reservoirs, radial = (*record[3:5], None, None)[:2]
    if keyword.name == "SPECGRID" and (reservoirs not in (None, "1") or (radial or "F")[0].upper() != "F"):
        raise InputError(
            f"{keyword.where[0]}: SPECGRID has {reservoirs or 1} reservoirs and the type {radial or 'F'}; "
            "only one Cartesian grid (1 F) is supported"
        )
    return sides[0], sides[1], sides[2]


def format_dims(dims: tuple[int, ...]) -> str:
    """Return the number of cells along each axis in the format of `--dims`."""
    return "x".join(map(str, dims))


class _Reader:
    """A reader of the lines of a deck and of the files that it includes, which separates their items."""

    def __init__(self, text: str, path: Path):
        self.path = path
        self.files = [(path, iter(enumerate(text.split("\n"), start=1)))]
        self.where = f"{path} line 1"
        self.section = ""
        self.beyond_actnum: dict[str, str] = {}

    def keywords(self) -> Iterator[Keyword]:
        """Yield the keywords that describe the grid; follow INCLUDE and leave out what SKIP encloses."""
        # The keyword whose data is skipped; whether a line has named it and none has followed; whether one of
        # its records has begun.
        skipped, is_new, in_record = "", False, False
        for items in self._lines():
            name = items[0].upper()
            if in_record:
                if skipped not in _REPORTS:
                    self._require_other(items, skipped)
                    self._require_no_keyword(items, skipped)
                in_record = "/" not in items
            elif name in _UNDERSTOOD:
                if name == "END" or name == "SCHEDULE":
                    return
                yield from self._understood(name, items[1:])
                skipped, is_new = name, False
            else:
                is_name = bool(_NAME.fullmatch(items[0]))
                if is_name and name in _BEYOND_ACTNUM:
                    self.beyond_actnum.setdefault(name, f"{name} ({self.where})")
                if is_name and (len(items) == 1 or not is_new):
                    skipped = name
                if skipped not in _REPORTS:
                    self._require_other(items[1:], skipped)
                # Alone it is a keyword, whose data may follow.
                is_new = is_name and len(items) == 1
                in_record = "/" not in items and (not is_new or name in _REPORTS)

    def _lines(self) -> Iterator[list[str]]:
        """Yield the items of each line up to the first `/`; lines with only a comment are skipped."""
        while self.files:
            path, lines = self.files[-1]
            number, line = next(lines, (0, ""))
            if not number:
                self.files.pop()
                continue
            self.where = f"{path} line {number}"
            if items := _items(line):
                yield items

    def _understood(self, name: str, rest: list[str]) -> Iterator[Keyword]:
        in_grid = self.section in _GRID_SECTIONS
        if name in _SECTIONS:
            self.section = name
        elif name in _SKIPS:
            self._skip(name)
        elif name == "TITLE":
            # Any text, which may look like a keyword.
            next(self._lines(), None)
        elif name == "ENDINC":
            if len(self.files) > 1:
                self.files.pop()
        elif name in _REFUSED:
            if in_grid:
                raise InputError(
                    f"{self.where}: the keyword {name} {_REFUSED[name]}, which is not supported; give a file "
                    "with ACTNUM of the whole grid and without it"
                )
        elif name == "ACTNUM":
            self._require_grid_section(name)
            yield self._actnum(rest)
        elif name in _CHANGED_ARRAY:
            operations = self._operations(name, rest)
            if operations.records:
                yield operations
        elif name == "ENDBOX":
            yield Keyword(name, [self.where])
        elif name in _ONE_RECORD:
            where = [self.where]
            record = self._record(name, rest)
            if name == "INCLUDE":
                if in_grid:
                    self._include(record, where[0])
            elif name == "NUMRES":
                if record not in ([], ["1"]):
                    raise InputError(f"{where[0]}: NUMRES is {record[0]}; only 1 reservoir is supported")
            else:
                yield Keyword(name, where, [_expanded(record, where[0])])

    def _require_grid_section(self, name: str) -> None:
        if self.section not in _GRID_SECTIONS:
            raise InputError(
                f"{self.where}: {name} changes ACTNUM in section {self.section}, but ACTNUM belongs in GRID; "
                "move it there"
            )

    def _require_other(self, items: list[str], skipped: str) -> None:
        if "ACTNUM" in {_unquoted(item).upper() for item in items}:
            raise InputError(
                f"{self.where}: ACTNUM is in the data of the keyword {skipped or 'before'}, which earlybird "
                "does not read; end the data with /, or give a file without the keyword"
            )

    def _require_no_keyword(self, items: list[str], skipped: str) -> None:
        if len(items) == 1 and items[0].upper() in _UNDERSTOOD:
            raise InputError(
                f"{self.where}: {items[0]} comes before the data of the keyword {skipped} has ended; end the "
                "data with /"
            )

    def _records(self, name: str, rest: list[str]) -> Iterator[list[str]]:
        """Yield the items up to each `/`, across lines; at the end of the deck, the items of an unfinished
        ACTNUM.
        """
        record: list[str] = []
        items = rest
        lines = self._lines()
        while True:
            for item in items:
                if item == "/":
                    yield record
                    record = []
                elif item[0] in "'\"" and (len(item) < 2 or item[-1] != item[0]):
                    raise InputError(f"{self.where}: the quote {item[:30]!r} is not closed; close it")
                else:
                    record.append(item)
            if len(record) > _MAX_ITEMS:
                break
            following = next(lines, None)
            if following is None:
                break
            items = following
        raise InputError(
            f"{self.where}: the data of {name} does not end; end each record with / and a list of records "
            "with a / of its own"
        )

    def _record(self, name: str, rest: list[str]) -> list[str]:
        return next(self._records(name, rest))

    def _operations(self, name: str, rest: list[str]) -> Keyword:
        """Return the records of the list `name` that change ACTNUM, and where one of these omits limits of
        its box, those of other arrays before it, whose box it may have."""
        operations = Keyword(name, [])
        position = _CHANGED_ARRAY[name]
        of_others: list[tuple[str, list[str]]] = []
        for record in self._records(name, rest):
            if not record:
                return operations
            if len(record) <= position or _unquoted(record[position]).upper() != "ACTNUM":
                of_others.append((self.where, record))
                continue
            self._require_grid_section(name)
            if name not in _APPLIED:
                raise InputError(
                    f"{self.where}: the keyword {name} changes ACTNUM, which is not supported; give a file "
                    "whose ACTNUM has the result"
                )
            expanded = _expanded(record, self.where)
            if len(expanded) < 8 or None in expanded[2:]:
                for where, other in of_others:
                    operations.where.append(where)
                    operations.records.append(_expanded(other, where))
            of_others.clear()
            operations.where.append(self.where)
            operations.records.append(expanded)
        return operations

    def _actnum(self, rest: list[str]) -> Keyword:
        where = [self.where]
        values: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        items = rest
        lines = self._lines()
        while True:
            ended = "/" in items
            numbers = [self._value(item) for item in items if item != "/"]
            values.append(np.array([value for value, _ in numbers], dtype=np.uint8))
            counts.append(np.array([count for _, count in numbers], dtype=np.int64))
            # The last keyword of a file may lack its `/`.
            following = None if ended else next(lines, None)
            if following is None:
                return Keyword("ACTNUM", where, [], np.concatenate(values), np.concatenate(counts))
            items = following

    def _value(self, item: str) -> tuple[int, int]:
        if item == "0" or item == "1":
            return int(item), 1
        match = _VALUE.fullmatch(item)
        if not match:
            raise InputError(
                f"{self.where}: {item[:30]!r} is not 0, 1 or a repeat such as 5*0; end the keyword with /"
            )
        return int(match[2]), int(match[1])

    def _include(self, record: list[str], where: str) -> None:
        if len(record) != 1:
            raise InputError(f"{where}: INCLUDE has {len(record)} names; give one, in quotes, and a /")
        name = _unquoted(record[0])
        if name.startswith("$") or len(self.files) > _DEEPEST_INCLUDE:
            why = "has an alias of PATHS" if name.startswith("$") else "includes itself"
            raise InputError(f"{where}: INCLUDE {name} {why}; write what it names into the file")
        # A simulator looks in the folder of the deck, whatever file includes it.
        included = self.path.parent / name
        try:
            text = files.read_text(included, "file")
        except InputError as error:
            quotes = "" if record[0] != name else ", in quotes if the name has a /"
            raise InputError(
                f"{where}: INCLUDE {name}: {error}; put it into the folder of the deck{quotes}"
            ) from error
        self.files.append((included, iter(enumerate(text.split("\n"), start=1))))

    def _skip(self, name: str) -> None:
        """Leave out the lines up to ENDSKIP; SKIP100 and SKIP300 only if that leaves the grid the same."""
        began = self.where
        for items in self._lines():
            if items[0].upper() == "ENDSKIP":
                return
            mentions = {_unquoted(item).upper() for item in items} & _UNDERSTOOD
            if name != "SKIP" and mentions:
                raise InputError(
                    f"{began}: {name} encloses {min(mentions)}, which one simulator reads and another does "
                    "not; remove what does not apply"
                )
        raise InputError(f"{began}: {name} has no ENDSKIP; add it")


def _items(line: str) -> list[str]:
    """Return the items of a line up to and with the first `/`."""
    items: list[str] = _ITEM.findall(line)
    if "/" in items:
        del items[items.index("/") + 1 :]
    if items and items[-1].startswith("--"):
        items.pop()
    return items


def _unquoted(item: str) -> str:
    return item.strip("'\"").strip()


def _expanded(record: list[str], where: str) -> list[str | None]:
    """Return the items without quotes; `3*5` is 5 three times, and `3*` three defaults."""
    expanded: list[str | None] = []
    for item in record:
        match = _REPEATED.fullmatch(item)
        expanded += [match[2] or None] * int(match[1]) if match else [_unquoted(item)]
        if len(expanded) > _MAX_ITEMS:
            raise InputError(f"{where}: a record has more than {_MAX_ITEMS} items; end it with /")
    return expanded
