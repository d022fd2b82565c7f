"""The values of an option, stated in its annotation: one of a few, a list of them, a size, a duration."""

import copy
import functools
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any

from typer.models import OptionInfo

from earlybird.data.errors import InputError
from earlybird.data.labels import choose
from earlybird.data.units import (
    parse_bandwidth,
    parse_bytes,
    parse_duration,
    parse_fraction,
    parse_level,
    require_plain_digits,
)


class Parsed:
    """An option whose text the function receives as the result of `parse(text, option)`, or None.

    The context of the command keeps the text, so that a command line can be repeated as it was given.
    """

    def __init__(self, parse: Callable[[str, str], Any]):
        self._parse = parse

    def declare(self, annotation: Any) -> Any:
        """Return the annotation with which typer parses an option whose function gets `annotation`."""
        is_optional = type(None) in getattr(annotation.__origin__, "__args__", ())
        return Annotated[(str | None if is_optional else str, *annotation.__metadata__)]

    def value(self, given: Any, option: str) -> Any:
        """Return the value for the function; raise InputError, naming `option`, for invalid text."""
        return None if given is None else self._parse(str(given), option)


class OneOf(Parsed):
    """An option that has one of a few texts: the parser shows, checks and completes them."""

    def __init__(self, *values: str):
        super().__init__(lambda text, _: text)
        self.type: Any = StrEnum("OneOf", {value: value for value in values})  # type: ignore[misc]

    def declare(self, annotation: Any) -> Any:
        return Annotated[(self.type if annotation.__origin__ is str else self.type | None,
                          *annotation.__metadata__)]  # fmt: skip


class ListOf(Parsed):
    """An option that has some of a few texts, separated by commas: it checks and completes them.

    The function gets them as a tuple, each once.
    """

    def __init__(self, *values: str):
        super().__init__(lambda text, option: choose(text, values, option))
        self.values = values

    def declare(self, annotation: Any) -> Any:
        declared = super().declare(annotation)
        option, *others = declared.__metadata__
        option = copy.copy(option)
        option.autocompletion = self.complete
        return Annotated[(declared.__origin__, option, *others)]

    def complete(self, incomplete: str) -> list[str]:
        """Return the texts that the last item of the list may become."""
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in self.values if value.startswith(last)]


def as_written(default: str) -> Any:
    """Return the default of an option that takes a size, a duration or a similar value, as a user writes
    it."""
    return default


SIZE = Parsed(parse_bytes)
DURATION = Parsed(parse_duration)
BANDWIDTH = Parsed(parse_bandwidth)
FRACTION = Parsed(parse_fraction)


def above_zero(examples: str) -> Parsed:
    """Make the kind of an option that takes a duration above 0."""

    def parse(given: str, option: str) -> float:
        duration_s = parse_duration(given, option)
        if duration_s <= 0:
            raise InputError(f"{option} is {given!r}; give more than 0 s, such as {examples}")
        return duration_s

    return Parsed(parse)


def level_from(least: float = 0.0) -> Parsed:
    """Make the kind of an option that takes a significance level of at least `least`."""
    return Parsed(functools.partial(parse_level, least=least))


def values_of(annotation: Any) -> Parsed | None:
    """Return the values that the annotation of an option allows beyond its type."""
    metadata: Sequence[Any] = getattr(annotation, "__metadata__", ())
    return next((item for item in metadata if isinstance(item, Parsed)), None)


def option_name(name: str, annotation: Any) -> str:
    """Return the option, as the user writes it, of the parameter `name`."""
    declared = next((item for item in annotation.__metadata__ if isinstance(item, OptionInfo)), None)
    names = declared.param_decls if declared is not None else None
    return max(names or (f"--{name.replace('_', '-')}",), key=len)


def check_numbers(command: Any) -> Any:
    """Make `command` and its subcommands refuse invalid numbers with messages of Earlybird, also digits of
    other scripts and underscores, which int() and float() accept."""
    for subcommand in getattr(command, "commands", {}).values():
        check_numbers(subcommand)
    for parameter in command.params:
        if parameter.type.name.split()[0] in ("int", "integer", "float"):
            parameter.type = copy.copy(parameter.type)  # commands share it
            parameter.type.convert = functools.partial(_convert_number, parameter.type)
    return command


def _convert_number(kind: Any, value: Any, parameter: Any, context: Any) -> float:
    convert, noun = (float, "number") if "float" in kind.name else (int, "whole number")
    try:
        number = convert(require_plain_digits(str(value)))
    except (ValueError, OverflowError):
        kind.fail(f"{value!r} is not a {noun}", parameter, context)
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    # A comparison with nan is false.
    if not ((least is None or number >= least) and (most is None or number <= most)):
        if most is None:
            allowed = f"{least} or more"
        else:
            allowed = f"{most} or less" if least is None else f"from {least} to {most}"
        kind.fail(f"{number} is not {allowed}", parameter, context)
    return number
