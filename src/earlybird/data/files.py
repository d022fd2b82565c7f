"""Files that are never half-written: replace by renaming, append by whole lines."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from earlybird.data.errors import InputError, WorkError


@contextlib.contextmanager
def replace_when_complete(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it over `path` when the block ends well, remove it otherwise.

    Raises InputError when the folder does not exist or cannot be written, WorkError when the disk is full.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes the file private; give it the mode an ordinary open() would have given.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` so that readers see the old file or the new one, never a part."""
    with replace_when_complete(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, see `write_text`."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_text(path: str | Path, what: str) -> str:
    """Return the text of `path`; `what` names it in the InputError when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"the {what} {path} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"the {what} {path} is a folder; give a file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the {what} {path} is not text; give a UTF-8 text file") from error
    except OSError as error:
        raise InputError(f"the {what} {path} cannot be read: {error.strerror}; check its permissions") from error


def read_json(path: str | Path, what: str, schema: str | None = None) -> dict[str, Any]:
    """Return the JSON object in `path`; with `schema` ("earlybird.profile/1") refuse any other schema or version."""
    text = read_text(path, what)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"the {what} {path} is not JSON (line {error.lineno}: {error.msg}); give a file that earlybird wrote"
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"the {what} {path} holds a JSON {type(value).__name__}; it must hold an object")
    if schema is not None and value.get("schema") != schema:
        raise InputError(
            f"the {what} {path} has the schema {value.get('schema')!r}; this version reads {schema!r}"
        )
    return value


def append_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Append whole lines and flush them to the disk; on failure the file is cut back to what it held before."""
    text = "".join(line + "\n" for line in lines)
    if not text:
        return
    path = Path(path)
    try:
        with open(path, "ab", buffering=0) as stream:
            length_before = stream.tell()
            try:
                data = memoryview(text.encode("utf-8"))
                while data:
                    data = data[stream.write(data) :]
                os.fsync(stream.fileno())
            except BaseException:
                stream.truncate(length_before)
                raise
    except OSError as error:
        raise _cannot_write(path, error) from error


def cut_unterminated_line(path: str | Path) -> int:
    """Remove what follows the last newline of `path` (a line cut short by a kill); return the bytes removed."""
    path = Path(path)
    if not path.exists():
        return 0
    data = path.read_bytes()
    keep = data.rfind(b"\n") + 1
    if keep < len(data):
        os.truncate(path, keep)
    return len(data) - keep


def _cannot_write(path: Path, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError):
        return InputError(f"cannot write {path}: the folder {path.parent} does not exist; make it first")
    if isinstance(error, PermissionError):
        return InputError(f"cannot write {path}: permission denied; choose a folder you may write to")
    return WorkError(
        f"cannot write {path}: {error.strerror}; what was complete is kept, free some space and try again"
    )
