"""Makes commands of functions whose parameters are options, or groups of options."""

import dataclasses
import functools
import inspect
import itertools
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from earlybird.cli.options.values import check_numbers, option_name, values_of
from earlybird.data.errors import InputError
from earlybird.data.shell_commands import no_option
from earlybird.present.render.data import Format
from earlybird.present.render.terminal import set_prints_all

FORMAT = typer.Option(Format.table, "--format", help="How to print the result on stdout.")
AS_JSON = typer.Option(False, "--json", help="Print the result as JSON.")  # of commands without --format
_JSON = typer.Option("--json", help="Short for --format json.")
_ALL = typer.Option("--all", help="Print all rows of long tables, also on a terminal.")


_EXAMPLE_WIDTH = 96
# The parameter with the command line of another program.
_PROGRAM = "command"
# Parameters that name a file to write, and their options.
_OUTPUTS = {"output": "-o", "pattern_out": "--pattern-out", "partition_out": "--partition-out"}


def example_text(*examples: str) -> str:
    """Return example commands for the end of a help text; a long one continues after a backslash."""
    lines = []
    for example in examples:
        line, *options = re.split(r" (?=--?\w)", example)
        for option in options:
            if len(f"{line} {option}") > _EXAMPLE_WIDTH:
                lines.append(f"{line} \\")
                line = f"    {option}"
            else:
                line = f"{line} {option}"
        lines.append(line)
    return "\b\n" + "\n".join(["Examples:" if len(examples) > 1 else "Example:", *lines])


def make_command(
    function: Callable[..., Any], *, name: str, example: str | Sequence[str], long_tables: bool = True
) -> Any:
    """Make the command `name` of a function with typer annotations; the help is its docstring and examples.

    A parameter whose type is a dataclass is a group of options, one for each of its fields. A command with
    --format also has --json, and --all if it prints `long_tables`.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    examples = [example] if isinstance(example, str) else example
    app.command(name=name, epilog=example_text(*examples))(_with_options(function, long_tables))
    return check_numbers(typer.main.get_command(app))


class _GroupWithDefault(TyperGroup):
    """A command whose first subcommand is the default."""

    default: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        of_default = self.commands[self.default].shell_complete(ctx, incomplete)
        every = [*super().shell_complete(ctx, incomplete), *of_default]
        return list({item.value: item for item in every}.values())


class _GroupOfPaths(TyperGroup):
    """A command whose subcommand `of_path` is meant if the first argument is a file or folder."""

    of_path: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and os.path.exists(args[0]):
            args = [self.of_path, *args]
        return super().parse_args(ctx, args)


def make_group(
    functions: Sequence[tuple[str, Callable[..., Any], str]],
    *,
    name: str,
    help: str,
    first_is_default: bool = False,
    of_path: str = "",
    long_tables: bool = True,
) -> Any:
    """Make a command with subcommands, from (subcommand, function, example) rows; see `make_command`.

    The first argument of the subcommand `of_path` is a file or folder.
    """
    kind: type[TyperGroup] = TyperGroup
    if first_is_default:
        kind = type("Group", (_GroupWithDefault,), {"default": functions[0][0]})
    elif of_path:
        kind = type("Group", (_GroupOfPaths,), {"of_path": of_path})
    app = typer.Typer(
        name=name, help=help, epilog=example_text(*(example for *_, example in functions)), cls=kind,
        add_completion=False, rich_markup_mode=None, no_args_is_help=True,
    )  # fmt: skip
    for subcommand, function, example in functions:
        app.command(name=subcommand, epilog=example_text(example))(_with_options(function, long_tables))
    app.callback()(lambda: None)  # otherwise typer turns a single subcommand into the command
    return check_numbers(typer.main.get_command(app))


def given_arguments(
    context: typer.Context, omitted: Collection[str] = (), only: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return arguments and options as they were given on the command line, without those `omitted`.

    A file name that begins with a dash was given after --, and would be parsed as an option: see `no_option`.
    """
    options: list[str] = []
    arguments: list[str] = []
    parameter: Any
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is None or source.name != "COMMANDLINE" or parameter.name in omitted:
            continue
        if only is not None and parameter.name not in only:
            continue
        value = context.params[parameter.name]
        values = [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]
        if parameter.param_type_name == "argument":
            arguments += map(no_option, values)
        elif parameter.is_flag:
            options.append(parameter.opts[0])
        else:
            options += [text for item in values for text in (max(parameter.opts, key=len), item)]
    return arguments, options


def _with_options(function: Callable[..., Any], long_tables: bool) -> Callable[..., Any]:
    """Return `function` with an option for each field of its groups, and with those that --format brings
    along."""
    given_parameters = inspect.signature(function).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in given_parameters.items()
        if dataclasses.is_dataclass(parameter.annotation)
    }
    parameters = []
    for name, parameter in given_parameters.items():
        if name in groups:
            parameters += [
                _option(field.name, field.type, field.default) for field in dataclasses.fields(groups[name])
            ]
        else:
            parameters.append(_option(name, parameter.annotation, parameter.default))
    has_format = "format" in given_parameters
    if has_format:
        parameters.append(_option("json", Annotated[bool, _JSON], False))
    if has_format and long_tables:
        parameters.append(_option("all_rows", Annotated[bool, _ALL], False))

    converted = {
        parameter.name: (kind, option_name(parameter.name, parameter.annotation))
        for parameter in parameters
        if (kind := values_of(parameter.annotation)) is not None
    }
    parameters = [
        parameter.replace(annotation=converted[parameter.name][0].declare(parameter.annotation))
        if parameter.name in converted
        else parameter
        for parameter in parameters
    ]

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        if has_format:
            set_prints_all(given.pop("all_rows", False))
            given["format"] = Format.json if given.pop("json") else given["format"]
        _refuse_dashes(given)
        _refuse_shared_files(given)
        for name, (kind, option) in converted.items():
            given[name] = kind.value(given[name], option)
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        return function(**given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _refuse_dashes(given: Mapping[str, Any]) -> None:
    """Raise InputError for `-`, which other commands take for stdin and stdout: here it would be a file's
    name."""
    for name, value in given.items():
        values = value if isinstance(value, list | tuple) else [value]
        if name != _PROGRAM and any(isinstance(text, str | Path) and str(text) == "-" for text in values):
            raise InputError(
                "- is neither stdin nor stdout; give /dev/stdin or /dev/stdout, or the name of a file"
            )


def _refuse_shared_files(given: Mapping[str, Any]) -> None:
    """Raise InputError if a file that is to be written is also read, or written twice."""
    written = {name: Path(given[name]) for name in _OUTPUTS if given.get(name)}
    for name, path in written.items():
        for other, value in given.items():
            values = value if isinstance(value, list | tuple) else [value]
            if other in _OUTPUTS or not any(_is_file(read, path) for read in values):
                continue
            raise InputError(f"{_OUTPUTS[name]} is {path}, which is also read; give another file to write")
    for (name, path), (other, same) in itertools.combinations(written.items(), 2):
        if path.absolute() == same.absolute() or _is_file(same, path):
            raise InputError(f"{_OUTPUTS[name]} and {_OUTPUTS[other]} are both {path}; give two files")


def _is_file(value: Any, path: Path) -> bool:
    """Return whether a value of an option names the file `path`, which exists."""
    try:
        return isinstance(value, str | Path) and path.is_file() and path.samefile(value)
    except (OSError, ValueError):
        return False


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is dataclasses.MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
