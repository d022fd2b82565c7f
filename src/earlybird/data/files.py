"""Atomic file access: replace by renaming, append whole lines."""

import contextlib
import errno
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from earlybird.data.errors import InputError, WriteError

# int() alone would also take 1_000 and digits of other scripts. 2**62, the largest size, is 4.6e18.
_INTEGER = re.compile(r"\s*[+-]?0*(?:[0-9]{1,18}|[1-8][0-9]{18})\s*")


@contextlib.contextmanager
def replace_when_complete(path: str | Path, *, follows_link: bool = True) -> Iterator[Path]:
    """Yield a temporary path; rename it over `path` when the block succeeds, remove it otherwise.

    A link is followed, unless not `follows_link`, as in a folder that may come from others. A device or a
    pipe is written to, never replaced.
    Raises InputError when the folder does not exist or cannot be written, WriteError when the disk is full.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path if follows_link else path.parent))
        target = target if follows_link else target / path.name
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder; give the name of a file")
        is_stream = follows_link and path.exists() and not path.is_file()
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=None if is_stream else target.parent)
    except ValueError as error:
        raise InputError(
            f"cannot write {str(path)!r}, which is no valid name ({error}); give another"
        ) from error
    except OSError as error:
        raise _cannot_write(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if is_stream:
            path.write_bytes(temporary.read_bytes())
        else:
            _put_in_place(temporary, target)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _put_in_place(temporary: Path, target: Path) -> None:
    # mkstemp makes the file private; set the old file's mode, or the mode of an ordinary open().
    if target.exists() and not target.is_symlink():
        mode = target.stat().st_mode & 0o777
    else:
        umask = os.umask(0)
        os.umask(umask)
        mode = 0o666 & ~umask
    temporary.chmod(mode)
    # Some file systems report a full disk only here; and the data must survive a crash after the rename.
    with open(temporary, "rb") as stream:
        os.fsync(stream.fileno())
    os.replace(temporary, target)


def write_text(path: str | Path, text: str, *, follows_link: bool = True) -> None:
    """Write `text` to `path` atomically: readers see the old file or the new one."""
    with replace_when_complete(path, follows_link=follows_link) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any, *, follows_link: bool = True) -> None:
    """Write `value` as indented JSON, see `write_text`."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n", follows_link=follows_link)


def read_text(path: str | Path, what: str) -> str:
    """Return the text of `path`; `what` names it in the InputError when it cannot be read."""
    with _readable(path, what):
        return Path(path).read_text(encoding="utf-8-sig")


def read_whole_lines(path: str | Path, what: str) -> Iterator[str]:
    """Lines that end in a newline, one by one; an unterminated last line is skipped.

    Not splitlines(): JSON text may contain U+2028 and similar characters, which do not end a line here.
    """
    with _readable(path, what), open(path, encoding="utf-8-sig", newline="\n") as stream:
        for line in stream:
            if line.endswith("\n"):
                yield line[:-1]


@contextlib.contextmanager
def _readable(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"the {what} {path} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"the {what} {path} is a folder; give a file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the {what} {path} is not text; give a UTF-8 text file") from error
    except ValueError as error:
        raise InputError(f"the {what} {str(path)!r} has no valid name ({error}); check the path") from error
    except OSError as error:
        raise InputError(
            f"the {what} {path} cannot be read: {error.strerror}; check its permissions"
        ) from error


# Keys in the files of earlier versions, and their current names.
FORMER_KEYS = {
    "way": "method",
    "ways": "methods",
    "swift_bytes": "burst_bytes",
    "beyond_s_per_byte": "post_burst_s_per_byte",
    "gain": "speed_up",
    "gain_interval": "speed_up_interval",
    "measured_s": "measured_time_s",
    "do": "action",
    "crossovers": "size_ranges",
    "proof": "verify",
}


def with_current_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with the current names of its keys, regardless of the version that wrote it."""
    return {FORMER_KEYS.get(key, key): item for key, item in value.items()}


def read_json(path: str | Path, what: str, schema: str | None = None) -> dict[str, Any]:
    """Return the JSON object in `path`; with `schema` ("earlybird.profile/1") refuse any other."""
    text = read_text(path, what)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"the {what} {path} is not JSON (line {error.lineno}: {error.msg}); "
            "give a file that earlybird wrote"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets nested as deep
        raise InputError(f"the {what} {path} is not usable JSON; give a file that earlybird wrote") from error
    if not isinstance(value, dict):
        raise InputError(f"the {what} {path} holds a JSON {type(value).__name__}; it must hold an object")
    if schema is not None and value.get("schema") is None:
        raise InputError(
            f"{path} holds no {what}: it has no key 'schema'; give a file whose 'schema' is {schema!r}"
        )
    if schema is not None and value.get("schema") != schema:
        raise InputError(
            f"the {what} {path} has the schema {value.get('schema')!r}; this version reads {schema!r}"
        )
    return value


def read_integer_rows(path: str | Path, what: str, header: str) -> Iterator[tuple[int, list[int]]]:
    """Yield (line number, integers) of each row of a CSV that begins with `header`; empty lines are skipped.

    Raises InputError naming the line with a wrong number of columns, text for a number, or one over 64 bits.
    """
    lines = read_text(path, what).split("\n")
    names = header.split(",")
    if [cell.strip() for cell in lines[0].split(",")] != names:
        raise InputError(f"{path} line 1 is {lines[0][:60]!r}; a {what} begins with the header {header!r}")
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split(",")
        if len(cells) != len(names):
            raise InputError(f"{path} line {number} has {len(cells)} columns; each row is {header}")
        bad = next((cell.strip() for cell in cells if not _INTEGER.fullmatch(cell)), None)
        if bad is not None:
            raise InputError(
                f"{path} line {number}: {bad[:60]!r} is not a whole number that fits 64 bits; "
                f"each row is {header}"
            )
        yield number, [int(cell) for cell in cells]


def append_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Append whole lines and flush them to disk; on failure, truncate the file to its previous length."""
    text = "".join(line + "\n" for line in lines)
    if not text:
        return
    path = Path(path)
    try:
        with open(path, "ab", buffering=0, opener=_no_link) as stream:
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
    """Remove an unterminated last line of `path`; return the number of bytes removed."""
    path = Path(path)
    if not path.exists():
        return 0
    try:
        with open(path, "r+b", opener=_no_link) as stream:
            data = stream.read()
            keep = data.rfind(b"\n") + 1
            if keep < len(data):
                stream.truncate(keep)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return len(data) - keep


def _no_link(path: str, flags: int) -> int:
    """Open a file of a folder that may come from others: a link could name any file of this user."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _cannot_write(path: Path, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError) and path.parent.exists():  # such as /proc/x
        return InputError(f"cannot write {path}: {path.parent} does not accept files; choose another folder")
    if isinstance(error, FileNotFoundError):
        return InputError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")
    if isinstance(error, NotADirectoryError):
        return InputError(f"cannot write {path}: {path.parent} is not a folder; choose another place")
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return InputError(f"cannot write {path}: permission denied; choose a folder you may write to")
    return WriteError(
        f"cannot write {path}: {error.strerror}; what was complete is kept, free some space and try again"
    )
