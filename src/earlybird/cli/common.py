"""Helpers of all commands: making a command from a function, printing tables, CSV and JSON."""

import csv
import json
import sys
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from typing import Any

import typer
from typer.core import TyperGroup

from earlybird.cli.notes import note as note


class Format(StrEnum):
    """`--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"


FORMAT = typer.Option(Format.table, "--format", help="How to print the result on stdout.")
JSON = typer.Option(False, "--json", help="Short for --format json.")
AS_JSON = typer.Option(False, "--json", help="Print the result as JSON.")  # of commands without --format


def make_command(function: Callable[..., Any], *, name: str, example: str):
    """The command `name` from a function with typer annotations; the help is its docstring and `example`."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
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
):
    """A command with subcommands, from (subcommand, function, example) rows."""
    kind = (
        type("Group", (_GroupWithDefault,), {"default": functions[0][0]}) if first_is_default else TyperGroup
    )
    app = typer.Typer(
        name=name, help=help, cls=kind, add_completion=False, rich_markup_mode=None, no_args_is_help=True
    )
    for subcommand, function, example in functions:
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
    """Print right-aligned columns on stdout; columns in `left` are left-aligned."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    for row in cells:
        columns = [
            cell.ljust(width) if name in left else cell.rjust(width)
            for name, cell, width in zip(header, row, widths, strict=True)
        ]
        print("  ".join(columns).rstrip())
