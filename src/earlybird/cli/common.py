"""Helpers of all commands: making a command from a function, printing tables, CSV and JSON."""

import csv
import functools
import inspect
import json
import sys
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from earlybird.cli.notes import note as note

# On a terminal, tables with more rows are cut to the first ones.
LONG_TABLE, FIRST_ROWS = 60, 40
_prints_all = False


class Format(StrEnum):
    """`--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"


FORMAT = typer.Option(Format.table, "--format", help="How to print the result on stdout.")
JSON = typer.Option(False, "--json", help="Short for --format json.")
AS_JSON = typer.Option(False, "--json", help="Print the result as JSON.")  # of commands without --format


def make_command(function: Callable[..., Any], *, name: str, example: str, long_tables: bool = True):
    """The command `name` from a function with typer annotations; the help is its docstring and `example`.

    With `long_tables` a command with --format also has --all.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    function = _with_all(function) if long_tables else function
    app.command(name=name, epilog=f"Example: {example}")(function)
    return typer.main.get_command(app)


class _GroupWithDefault(TyperGroup):
    """A command whose first subcommand is the default."""

    default: str

    def parse_args(self, ctx, args):
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx, incomplete):
        of_default = self.commands[self.default].shell_complete(ctx, incomplete)
        found = [*super().shell_complete(ctx, incomplete), *of_default]
        return list({item.value: item for item in found}.values())


def make_group(
    functions: Sequence[tuple[str, Callable[..., Any], str]],
    *,
    name: str,
    help: str,
    first_is_default: bool = False,
    long_tables: bool = True,
):
    """A command with subcommands, from (subcommand, function, example) rows."""
    kind = (
        type("Group", (_GroupWithDefault,), {"default": functions[0][0]}) if first_is_default else TyperGroup
    )
    app = typer.Typer(
        name=name, help=help, cls=kind, add_completion=False, rich_markup_mode=None, no_args_is_help=True
    )
    for subcommand, function, example in functions:
        function = _with_all(function) if long_tables else function
        app.command(name=subcommand, epilog=f"Example: {example}")(function)
    app.callback()(lambda: None)  # otherwise typer turns a single subcommand into the command
    return typer.main.get_command(app)


def print_json(value: Any) -> None:
    """Print JSON on stdout; NaN is an error."""
    print(json.dumps(value, indent=1, allow_nan=False))


def print_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]], left: Collection[str] = ()) -> None:
    """Print right-aligned columns on stdout; columns in `left` are left-aligned.

    On a terminal the table fits its width, and of a long one only the first rows are printed, without --all.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        is_long = len(cells) > LONG_TABLE and not _prints_all
        _print_on_terminal(header, cells[:FIRST_ROWS] if is_long else cells, left)
        if is_long:
            print(f"{len(cells) - FIRST_ROWS} more rows; --all prints them")
        return
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in [header, *cells]:
        columns = [
            cell.ljust(width) if name in left else cell.rjust(width)
            for name, cell, width in zip(header, row, widths, strict=True)
        ]
        print("  ".join(columns).rstrip())


def _print_on_terminal(header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> None:
    # Only here: importing rich takes longer than many commands.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= console.width else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in header:
        table.add_column(Text(name), justify="left" if name in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def prints_all() -> bool:
    """Whether --all is given: print long tables completely."""
    return _prints_all


def _with_all(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with the option --all if it has --format."""
    signature = inspect.signature(function)
    if not any(name.endswith("format") for name in signature.parameters):
        return function
    option = typer.Option("--all", help="Print all rows of long tables, also on a terminal.")
    parameter = inspect.Parameter(
        "all_rows", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
    )

    @functools.wraps(function)
    def command(*, all_rows: bool, **given):
        global _prints_all
        _prints_all = all_rows
        return function(**given)

    command.__signature__ = signature.replace(parameters=[*signature.parameters.values(), parameter])
    command.__annotations__ = function.__annotations__ | {"all_rows": parameter.annotation}
    return command
