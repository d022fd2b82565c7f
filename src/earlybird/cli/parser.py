"""Parses the command line of every command, with typer; imported only if a command line needs it."""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from earlybird.cli.main import COMMANDS, FIRST_SCREEN, GROUPS

COMPLETION = "`earlybird --install-completion` makes your shell complete commands, suites and options."


class _LazyGroup(TyperGroup):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names: Any = dict.fromkeys(COMMANDS)  # typer's suggestions for a misspelt name
        self.commands |= names

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"earlybird.cli.commands.{name}").command

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        # From COMMANDS: importing all commands for their help takes a second.
        of_table = lambda ctx, name: TyperCommand(name, help=COMMANDS[name])  # noqa: E731
        self.get_command = of_table  # type: ignore[method-assign]
        return super().shell_complete(ctx, incomplete)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"{FIRST_SCREEN}\n")
        for title, commands in GROUPS.items():
            lines = "".join(f"  {name:<9} {text}\n" for name, text in commands.items())
            formatter.write(f"\n{title}:\n{lines}")
        formatter.write(f"\n{COMPLETION}\n")


app = typer.Typer(
    cls=_LazyGroup, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)  # fmt: skip


@app.callback(invoke_without_command=True)
def _main(
    ctx: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        from earlybird import __version__

        print(f"earlybird {__version__}")
    elif ctx.invoked_subcommand is None:
        print(FIRST_SCREEN)
