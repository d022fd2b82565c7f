"""Options of suites: the name, help and parser of each, and the parsers that several suites share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from earlybird.data import labels, units
from earlybird.data.errors import InputError
from earlybird.data.levels import LEVELS as NAMES
from earlybird.data.run_keys import MAX_THREADS

# Each one is a point at least, and takes time.
MAX_VALUES = 1000
MAX_POINTS = 100_000

# Factor from one size of a range to the next, without and with --quick.
_FACTOR, _QUICK_FACTOR = 2, 16

# The fields of `groups.Options`: what the options of all suites set.
FIELDS: set[str] = set()

Parser = Callable[[Any, Mapping[str, Any]], Any]


def as_given(value: Any, settings: Mapping[str, Any]) -> Any:
    return value


@dataclass(frozen=True)
class SuiteOption:
    """An option `--name` of a suite.

    Attributes
    ----------
    field : the field of `groups.Options` that `parse` computes from the given value and the settings of the
        run. The options of one field are parsed together: by each that is given, with the same result.
    type : type of the value on the command line and in the settings.
    setting : its key in the settings of a run; by default `name`.
    values, choices : all allowed values, for options that have one of a few values, or some of them,
        separated by commas; these need no `parse`.
    """

    name: str
    help: str
    field: str
    parse: Parser = as_given
    type: type = str
    setting: str = ""
    values: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        FIELDS.add(self.field)

    @property
    def option(self) -> str:
        """The option as the user writes it."""
        return f"--{self.name}"

    @property
    def key(self) -> str:
        return self.setting or self.name

    def read(self, value: Any, settings: Mapping[str, Any]) -> Any:
        """Return the value of the field; raise InputError for a value that is not allowed."""
        if self.choices:
            return labels.choose(value, self.choices, self.option)
        if self.values:
            return labels.choose(value, self.values, self.option, is_list=False)[0]
        return self.parse(value, settings)


def listed(parse: Callable[[str], Any]) -> Parser:
    """Return the parser of a comma-separated list, without duplicates."""
    return lambda text, _: split(text, lambda item: (parse(item),))


def split(text: str, parse: Callable[[str], Iterable[Any]]) -> tuple:
    """Return the values of a comma-separated list whose items may be ranges, without duplicates."""
    values: dict[Any, None] = {}
    for value in (value for item in text.split(",") for value in parse(item.strip())):
        values[value] = None
        if len(values) > MAX_VALUES:
            raise InputError(
                f"{units.shortened(text)} are more than {MAX_VALUES} values of an option; give fewer"
            )
    return tuple(values)


def counts(option: str, allowed: str) -> Parser:
    """Return the parser of a list of counts from 1 up; `allowed` describes them."""

    def parse(item: str) -> int:
        value = units.whole_number(item)
        if not value:
            raise InputError(f"{option} has {units.shortened(item)}; give {allowed}")
        return value

    return listed(parse)


def byte_counts(option: str) -> Parser:
    return listed(lambda item: units.parse_bytes(item, option))


def number(option: str, allowed: str) -> Parser:
    """Return the parser of one whole number from 0 up."""

    def parse(text: str, _: Mapping[str, Any]) -> int:
        value = units.whole_number(text)
        if value is None:
            raise InputError(f"{option} is {units.shortened(text)}; give {allowed}")
        return value

    return parse


def thread_counts(text: str | None) -> tuple[int, ...] | None:
    """Return the thread counts in --threads, such as `1,2,4`."""
    if text is None:
        return None
    found = counts("--threads", "numbers of threads per rank from 1 up, such as 2")(text, {})
    if max(found) > MAX_THREADS:
        raise InputError(f"--threads has {max(found)}; give 1 to {MAX_THREADS} threads per rank")
    return found


def threads_option(default: str) -> SuiteOption:
    """Return the option --threads of a suite that compares thread counts; stored separately from the single
    count of other suites."""
    return SuiteOption(
        "threads",
        f"Threads per rank, such as 1,2,4; each has a core if there are enough.  [default: {default}]",
        "threads", lambda text, _: thread_counts(text), setting="thread_counts",
    )  # fmt: skip


def _sizes(text: str, settings: Mapping[str, Any]) -> tuple[int, ...]:
    """Parse `8,1KiB` and ranges such as `1..1MiB`, in which each size is twice the one before."""

    def parse(item: str) -> list[int]:
        ends = [units.parse_bytes(end, "--sizes") for end in item.split("..", 1)]
        if len(ends) == 1:
            return ends
        first, last = ends
        if not 1 <= first <= last:
            raise InputError(
                f"--sizes has {item}; give an ascending range from 1 byte or more, such as 1..1MiB"
            )
        sizes = []
        while first <= last:
            sizes.append(first)
            first *= _QUICK_FACTOR if settings["quick"] else _FACTOR
        return sizes

    return split(text, parse)


def sizes_option(default: str, what: str = "messages") -> SuiteOption:
    text = f"Sizes of {what}, such as 8,1KiB, or 1..1MiB for powers of two.  [default: {default}]"
    return SuiteOption("sizes", text, "sizes_bytes", _sizes)


LEVELS = SuiteOption("levels", f"{', '.join(NAMES)}.  [default: all available]", "levels", choices=NAMES)


REUSE = "reuse"
BUFFERS = SuiteOption(
    "buffers",
    "Vary or reuse the contents of messages (OSU reuses).  [default: vary]",
    "buffers",
    values=("vary", REUSE),
)
