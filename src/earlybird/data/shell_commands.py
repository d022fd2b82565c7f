"""Writes commands that are printed to be pasted into a shell: every argument is quoted where it must be."""

import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from earlybird.data.plain_text import plain_line

_NEEDS_NO_QUOTES = re.compile(r"[\w@%+:,./-][\w@%+=:,./-]*", re.ASCII)  # zsh expands =NAME


def command_text(arguments: Iterable[str]) -> str:
    """Return the command line of `arguments`."""
    return " ".join(map(quoted, arguments))


def quoted(argument: str) -> str:
    """Return `argument` as one argument of a shell's command line.

    Characters that are not displayed literally (see `plain_text`), or that stdout or stderr cannot encode,
    are written as octal numbers, and so are backquotes, which enclose commands in sentences.
    """
    if _NEEDS_NO_QUOTES.fullmatch(argument):
        return argument
    if _is_shown(argument):
        return "'" + argument.replace("'", "'\"'\"'") + "'"
    return "$'" + "".join(map(_in_dollar_quotes, argument)) + "'"


def posix_quoted(argument: str) -> str:
    """Return `argument` as one argument for /bin/sh, which lacks `$'...'`; not to be shown."""
    return shlex.quote(argument)


def path_argument(path: str | Path) -> str:
    """Return a path as one argument of a shell's command line that cannot be taken for an option."""
    return quoted(no_option(path))


def no_option(path: str | Path) -> str:
    """Return a path as an argument that no command takes for an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def _in_dollar_quotes(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if _is_shown(character):
        return character
    try:
        code = character.encode("utf-8", "surrogateescape")  # bytes of a name that are no text
    except UnicodeEncodeError:
        code = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in code)


def _is_shown(text: str) -> bool:
    """Return whether `text` is displayed unchanged where a command is printed."""
    return (
        plain_line(text) == text
        and "`" not in text
        and all(_can_encode(stream, text) for stream in (sys.stdout, sys.stderr))
    )


def _can_encode(stream: TextIO | None, text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
