"""Options that name a file to write: whether it can be written, and what is printed after it was."""

from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.pattern import check_suffix
from earlybird.present.render.notes import note

ResultOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="Also write it as JSON, for `show` and `report`.")
]


class Result(Protocol):
    """An object that can be written as a JSON object."""

    def to_json(self) -> Any:
        """Return the JSON object."""


def write_result(output: Path | None, result: Result) -> None:
    """Write a result to the file of -o, if one is given."""
    if output is not None:
        files.write_json(output, result.to_json())
        note(f"wrote {output}")


def check_output(output: Path | None) -> None:
    """Raise InputError, before the work, if `output` is given and cannot be written."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise InputError(f"cannot write {output}: the folder {output.parent} does not exist; create it first")
    if output.is_dir():
        raise InputError(f"cannot write {output}: it is a folder; give the name of a file")


def check_pattern_output(output: Path | None) -> None:
    """Raise InputError, before the work, for a pattern whose suffix, or path, cannot be written."""
    if output is not None:
        check_suffix(output)
        check_output(output)


def write_parts(output: Path, parts: Any) -> None:
    """Write the part of each cell of a mesh, one per line."""
    files.write_text(output, "".join(f"{number}\n" for number in parts.tolist()))
