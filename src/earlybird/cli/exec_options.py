"""Parses the options of `earlybird exec` without the parser of the other commands, whose import takes 100
ms."""

from pathlib import Path

from earlybird.launch.execution import Request


def parse(arguments: list[str]) -> Request | None:
    """Return the request in the arguments of `exec`; None if the general parser must handle them, as for
    --help or a usage error."""
    mpi, no_interpose, profile, lanes, forgets = None, False, None, None, False
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name == "--" and not equals:
            break
        if name == "--no-interpose" and not equals:
            no_interpose = True
            continue
        if name == "--forget" and not equals:
            forgets = True
            continue
        if name not in ("--mpi", "--profile", "--lanes") or not (equals or rest):
            return None
        value = value if equals else rest.pop(0)
        if name == "--mpi":
            mpi = value
        elif name == "--lanes":
            if not (value.isascii() and value.isdigit()):
                return None
            lanes = int(value)
        else:
            profile = Path(value)
    if not rest and not forgets:
        return None
    return Request(rest, mpi, no_interpose, profile, lanes=lanes, forgets=forgets)
