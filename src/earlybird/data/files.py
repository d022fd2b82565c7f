"""All access to files: reads within bounds of kind and size, replaces by renaming, appends whole lines."""

import contextlib
import io
import json
import os
import re
import select
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from earlybird.data import memory
from earlybird.data.errors import InputError, cause_of, write_error
from earlybird.data.folders import temporary_path
from earlybird.data.json_text import decode_large, parse_json
from earlybird.data.units import format_bytes

# int() alone would also take 1_000 and digits of other scripts. 2**62, the largest size, is 4.6e18.
# Spaces as int() strips them: \s also matches the separators of ASCII, at which it fails.
_INTEGER = re.compile(r"[ \t\r\v\f]*[+-]?0{0,99}(?:[0-9]{1,18}|[1-8][0-9]{18})[ \t\r\v\f]*")


@contextlib.contextmanager
def replace_when_complete(path: str | Path, *, follows_link: bool = True) -> Iterator[Path]:
    """Yield a temporary path; rename it over `path` when the block succeeds, remove it otherwise.

    A link is followed if `follows_link`, which is false in a folder that may come from others. A device or a
    pipe is written to, never replaced. Raise InputError if the folder does not exist or cannot be written,
    WriteError if the disk is full.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path if follows_link else path.parent))
        target = target if follows_link else target / path.name
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder; give the name of a file")
        is_stream = follows_link and path.exists() and not path.is_file()
        handle, temporary = _temporary_file(None if is_stream else target)
    except ValueError as error:
        raise InputError(
            f"cannot write {str(path)!r}, which is no valid name ({error}); give another"
        ) from error
    except OSError as error:
        raise _cannot_write(path, error) from error
    os.close(handle)
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


def _temporary_file(target: Path | None) -> tuple[int, Path]:
    """Create the file that becomes `target`; return None for a target that is copied into a stream.

    It is private if it may replace a private file; a new file has the mode that open() gives it, with the
    umask and the ACLs of its folder.
    """
    if target is None:
        handle, name = tempfile.mkstemp()
        return handle, Path(name)
    temporary = temporary_path(target)
    mode = 0o600 if os.path.lexists(target) else 0o666
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), temporary


def _put_in_place(temporary: Path, target: Path) -> None:
    if target.exists() and not target.is_symlink():
        temporary.chmod(target.stat().st_mode & 0o777)
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


# The most that is read of one file as a whole: a pattern of 100 million messages, a deck of a billion cells.
# What is larger was not meant, such as a sparse disk image, /proc/kcore, or a pipe that does not end.
MAX_BYTES = 4 << 30
# Of a line of a file that is read line by line: times of a million ranks.
MAX_LINE_BYTES = 256 << 20
# The most of a JSON file: the times of ten million ranks.
# Profiles with published values.
_PROFILES = Path(__file__).parent / "profiles"
_MAX_JSON_BYTES = 1 << 30
# A text is held as bytes, as characters and as lines while it is taken apart, and as values then.
_MEMORY_PER_BYTE_OF_TEXT = 8
# So small a file fits: how much memory is available is not looked up for it.
_SMALL_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 20
# More of a pipe is kept in a temporary file.
_KEPT_IN_MEMORY_BYTES = 64 << 20
_NO_WRITER_S = 5.0
_NO_DATA_S = 600.0  # a benchmark whose output is piped may be silent for minutes
_UNREADABLE = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


class _Pipe:
    """A pipe and the data that was read from it; it stays open, so that no other pipe gets its number."""

    def __init__(self, descriptor: int):
        self._descriptor = os.dup(descriptor)
        self._kept = tempfile.SpooledTemporaryFile(max_size=_KEPT_IN_MEMORY_BYTES)  # noqa: SIM115
        self._is_ended = False

    def blocks(self, path: str | Path, what: str) -> Iterator[bytes]:
        position = 0
        while block := self._block_at(position, path, what):
            position += len(block)
            yield block

    def _block_at(self, position: int, path: str | Path, what: str) -> bytes:
        self._kept.seek(position)
        block = self._kept.read(_BLOCK_BYTES)
        if not block and not self._is_ended:
            block = _pipe_block(self._descriptor, path, what)
            self._is_ended = not block
            self._kept.write(block)
        return block

    def close(self) -> None:
        os.close(self._descriptor)
        self._kept.close()


# The pipes that were read in `pipes_read_again`, by device and number.
_kept_pipes: dict[tuple[int, int], _Pipe] | None = None


@contextlib.contextmanager
def pipes_read_again() -> Iterator[None]:
    """Keep the data read from pipes for the block: a command may look at a file first and read it then."""
    global _kept_pipes
    before, _kept_pipes = _kept_pipes, {}
    try:
        yield
    finally:
        for pipe in _kept_pipes.values():
            pipe.close()
        _kept_pipes = before


def suffix_of(path: str | Path) -> str:
    """Return the suffix of the name of `path`; if it has none, as the name of a pipe, the suffix that fits
    its content: .json, .npz, .mtx or .csv. Return "" if the path is not a file."""
    path = Path(path)
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return path.suffix
    if path.suffix or not (stat.S_ISREG(kind) or (stat.S_ISFIFO(kind) and _kept_pipes is not None)):
        return path.suffix
    head = next(read_blocks(path, "file"), b"").removeprefix(b"\xef\xbb\xbf").lstrip()
    beginnings = {b"{": ".json", b"PK": ".npz", b"%%MatrixMarket": ".mtx"}
    return next((suffix for begin, suffix in beginnings.items() if head.startswith(begin)), ".csv")


def read_bytes(
    path: str | Path, what: str, most_bytes: int | None = MAX_BYTES, memory_per_byte: float = 2
) -> bytes:
    """Return the content of `path`; `what` names it in the InputError when it cannot be read.

    All reading goes through `read_blocks`, which defines what can be read and what the limits mean.
    """
    return b"".join(read_blocks(path, what, most_bytes, memory_per_byte))


@contextlib.contextmanager
def open_seekable(path: str | Path, what: str) -> Iterator[BinaryIO]:
    """Yield a seekable stream of `path`: a regular file itself, or a copy of a pipe."""
    with _readable(path, what):
        descriptor = _open_to_read(path, what) if Path(path).is_file() else None
    if descriptor is None:
        yield io.BytesIO(read_bytes(path, what, most_bytes=None, memory_per_byte=1))
        return
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def read_text(path: str | Path, what: str, errors: str = "strict", most_bytes: int | None = MAX_BYTES) -> str:
    """Return the UTF-8 text of `path`; `what` names it in the InputError when it cannot be read.

    With `errors` "surrogateescape" names in other encodings survive, otherwise they are refused. Text has no
    NUL characters, at which readers in C would end.
    """
    return _text(read_bytes(path, what, most_bytes, _MEMORY_PER_BYTE_OF_TEXT), path, what, errors)


def _text(data: bytes | bytearray, path: str | Path, what: str, errors: str = "strict") -> str:
    try:
        text = data.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise InputError(
            f"the {what} {path} is not text (byte {error.start + 1} is not UTF-8); give a UTF-8 text file"
        ) from None
    if (position := text.find("\0")) >= 0:
        line = text.count("\n", 0, position) + 1
        raise InputError(
            f"the {what} {path} is not text (line {line} has a NUL byte); give a UTF-8 text file"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_whole_lines(path: str | Path, what: str) -> Iterator[str]:
    """Yield the lines that end in a newline, one by one; skip an unterminated last line.

    Not splitlines(): JSON text may contain U+2028 and similar characters, which do not end a line here.
    """
    parts: list[bytes] = []
    num_bytes, number = 0, 0
    for block in read_blocks(path, what):
        *ended, rest = block.split(b"\n")
        for end in ended:
            number += 1
            line = b"".join((*parts, end))
            parts, num_bytes = [], 0
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"the {what} {path} is not text (line {number} is not UTF-8); give a UTF-8 text file"
                ) from None
        parts.append(rest)
        num_bytes += len(rest)
        if num_bytes > MAX_LINE_BYTES:
            raise InputError(
                f"the {what} {path} line {number + 1} has more than {format_bytes(MAX_LINE_BYTES)}; "
                "give a file that earlybird wrote"
            )


def read_open(descriptor: int, path: str | Path, what: str, most_bytes: int) -> bytes:
    """Return the content of an open file, as `read_bytes` returns the content of `path`, which is its
    name."""
    with _readable(path, what):
        return b"".join(_bounded_blocks(descriptor, path, what, most_bytes, 0))


def read_blocks(
    path: str | Path,
    what: str,
    most_bytes: int | None = None,
    memory_per_byte: float = 0,
    begin: int = 0,
) -> Iterator[bytes]:
    """Yield the content of `path`, a regular file, a pipe up to its end, or a terminal, in blocks.

    Raise InputError, with nothing read, for devices, which may have no end or act when they are opened,
    sockets, folders and a file that has more than `most_bytes` or does not fit into memory; for a pipe to
    which nobody writes, and for one that exceeds these limits or is silent for too long.

    Parameters
    ----------
    most_bytes : largest size; None if memory is the only limit.
    memory_per_byte : bytes of memory that the caller takes for each byte; 0 if it keeps nothing of a block.
    begin : number of bytes at the beginning of a regular file to skip.
    """
    with _readable(path, what):
        descriptor = _open_to_read(path, what)
        try:
            if begin:
                os.lseek(descriptor, begin, os.SEEK_SET)
            yield from _bounded_blocks(descriptor, path, what, most_bytes, memory_per_byte)
        finally:
            os.close(descriptor)


def _bounded_blocks(
    descriptor: int, path: str | Path, what: str, most_bytes: int | None, memory_per_byte: float
) -> Iterator[bytes]:
    status = os.fstat(descriptor)
    _require_size(status.st_size, path, what, most_bytes, memory_per_byte)
    num_bytes = 0
    for block in _blocks_of(descriptor, status, path, what):
        num_bytes += len(block)
        # Files of /proc have a size of 0, and a file may grow.
        if most_bytes is not None and num_bytes > most_bytes:
            raise _too_large(path, what, f"more than {format_bytes(most_bytes)}", most_bytes)
        if most_bytes is None and num_bytes > status.st_size:
            _require_size(num_bytes, path, what, most_bytes, memory_per_byte)
        yield block


def _blocks_of(descriptor: int, status: os.stat_result, path: str | Path, what: str) -> Iterator[bytes]:
    if not stat.S_ISFIFO(status.st_mode):
        return iter(lambda: _waited_block(descriptor, path, what), b"")
    if _kept_pipes is None:
        return iter(lambda: _pipe_block(descriptor, path, what), b"")
    number = (status.st_dev, status.st_ino)
    if number not in _kept_pipes:
        _kept_pipes[number] = _Pipe(descriptor)
    return _kept_pipes[number].blocks(path, what)


def _open_to_read(path: str | Path, what: str) -> int:
    """Open a file without blocking; its kind is checked before, because opening some devices has effects."""
    kind = os.stat(path).st_mode
    if not stat.S_ISCHR(kind):
        _require_readable_kind(kind, path, what)
    elif not _is_terminal(path):
        raise _wrong_kind(path, what, "a device")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not os.isatty(descriptor):
            _require_readable_kind(os.fstat(descriptor).st_mode, path, what)  # it may be another by now
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_readable_kind(mode: int, path: str | Path, what: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if (kind := _UNREADABLE.get(stat.S_IFMT(mode))) is not None:
        raise _wrong_kind(path, what, kind)


def _wrong_kind(path: str | Path, what: str, kind: str) -> InputError:
    return InputError(f"the {what} {path} is {kind}; give a regular file or a pipe")


def _is_terminal(path: str | Path) -> bool:
    """Return whether the file is the terminal of this process, as /dev/stdin is if it is not redirected."""
    device = os.stat(path).st_rdev
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError):
            if os.isatty(descriptor) and os.fstat(descriptor).st_rdev == device:
                return True
    return False


def _waited_block(descriptor: int, path: str | Path, what: str) -> bytes:
    while True:
        try:
            return os.read(descriptor, _BLOCK_BYTES)
        except BlockingIOError:
            if not _poll(descriptor, _NO_DATA_S):
                raise InputError(
                    f"the {what} {path} gave no data for {_NO_DATA_S:g} s; give a file, or a pipe that ends"
                ) from None


def _pipe_block(descriptor: int, path: str | Path, what: str) -> bytes:
    """Return a block of a pipe; an empty block is the end only if there was a writer."""
    while not (block := _waited_block(descriptor, path, what)):
        events = _poll(descriptor, _NO_WRITER_S)
        if not events:
            raise InputError(
                f"the {what} {path} is a pipe that nothing writes to; start what writes to it, or give a file"
            )
        if not events & select.POLLIN:
            return b""
    return block


def _poll(descriptor: int, wait_s: float) -> int:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return next((events for _, events in poll.poll(1000 * wait_s)), 0)


def _require_size(
    num_bytes: int, path: str | Path, what: str, most_bytes: int | None, memory_per_byte: float
) -> None:
    if most_bytes is not None and num_bytes > most_bytes:
        raise _too_large(path, what, format_bytes(num_bytes), most_bytes)
    if not memory_per_byte or num_bytes < _SMALL_BYTES:
        return
    needed, free = round(memory_per_byte * num_bytes), memory.available_memory_bytes()
    if needed > free:
        raise InputError(
            f"the {what} {path} has {format_bytes(num_bytes)}, which take about {format_bytes(needed)} of "
            f"memory, and {format_bytes(free)} are available; give a smaller file, or use a machine with "
            "more memory"
        )


def _too_large(path: str | Path, what: str, size: str, most_bytes: int) -> InputError:
    return InputError(
        f"the {what} {path} has {size}; at most {format_bytes(most_bytes)} are read, give a smaller file"
    )


@contextlib.contextmanager
def _readable(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        names = or_shipped(path) if what == "profile" else ""
        raise InputError(f"the {what} {path} does not exist; check the path{names}") from error
    except IsADirectoryError as error:
        raise InputError(f"the {what} {path} is a folder; give a file") from error
    except ValueError as error:
        raise InputError(f"the {what} {str(path)!r} has no valid name ({error}); check the path") from error
    except OSError as error:
        check = "its permissions" if isinstance(error, PermissionError) else "the path"
        raise InputError(f"the {what} {path} cannot be read: {cause_of(error)}; check {check}") from error


def shipped(path: str | Path) -> str | Path:
    """Return the file of a profile that is part of the package, if `path` is its name and no file has that
    name; otherwise return `path`."""
    is_name = str(path) in shipped_profiles() and not os.path.lexists(path)
    return _PROFILES / f"{path}.json" if is_name else path


def shipped_profiles() -> list[str]:
    """Return the names of the profiles that are part of the package."""
    return sorted(path.stem for path in _PROFILES.glob("*.json"))


def or_shipped(path: str | Path) -> str:
    """Return the end of a remedy for a profile that does not exist: the names of those that are part of the
    package; "" for what is no name."""
    is_name = Path(path).name == str(path) and not Path(path).suffix
    return f", or give one of the profiles {', '.join(shipped_profiles())}" if is_name else ""


def read_json(path: str | Path, what: str, schema: str | None = None) -> dict[str, Any]:
    """Return the JSON object in `path`, which may be the name of a profile that is part of the package;
    refuse any other schema than `schema` ("earlybird.profile/1") if it is given."""
    path = shipped(path)
    data = bytearray()
    for block in read_blocks(path, what, _MAX_JSON_BYTES, _MEMORY_PER_BYTE_OF_TEXT):
        data += block
    try:
        value = decode_large(data)
        value = parse_json(_text(data, path, what)) if value is None else value
    except json.JSONDecodeError as error:
        raise InputError(
            f"the {what} {path} is not JSON (line {error.lineno}: {error.msg}); "
            "give a file that earlybird wrote"
        ) from error
    except ValueError as error:
        raise InputError(
            f"the {what} {path} is not usable JSON ({error}); give a file that earlybird wrote"
        ) from error
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


def integer_rows(text: str, path: str | Path, what: str, header: str) -> Iterator[tuple[int, list[int]]]:
    """Yield (line number, integers) of each row of `text`, the CSV in `path`, which begins with `header`;
    empty lines are skipped.

    Raise InputError naming the line with a wrong number of columns, text instead of a number, or a number
    over 64 bits.
    """
    lines = text.split("\n")
    names = header.split(",")
    if [cell.strip() for cell in lines[0].split(",")] != names:
        raise InputError(f"{path} line 1 is {lines[0][:60]!r}; a {what} begins with the header {header!r}")
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split(",")
        if len(cells) != len(names):
            raise InputError(f"{path} line {number} has {len(cells)} columns; each row is {header}")
        bad = next((cell.strip(" \t") for cell in cells if not _INTEGER.fullmatch(cell)), None)
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
    kept = ""
    try:
        with open(path, "ab", buffering=0, opener=_no_link) as stream:
            length_before = stream.tell()
            kept = "what was complete is kept" if length_before else ""
            try:
                data = memoryview(text.encode("utf-8"))
                while data:
                    data = data[stream.write(data) :]
                os.fsync(stream.fileno())
            except BaseException:
                stream.truncate(length_before)
                raise
    except OSError as error:
        raise _cannot_write(path, error, kept) from error


def cut_unterminated_line(path: str | Path) -> int:
    """Remove an unterminated last line of `path`; return the number of bytes removed."""
    path = Path(path)
    if not path.exists():
        return 0
    try:
        with open(path, "r+b", opener=_no_link) as stream:
            size = keep = stream.seek(0, os.SEEK_END)
            while keep:
                start = max(keep - _BLOCK_BYTES, 0)
                stream.seek(start)
                if (position := stream.read(keep - start).rfind(b"\n")) >= 0:
                    keep = start + position + 1
                    break
                keep = start
            if keep < size:
                stream.truncate(keep)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return size - keep


def _no_link(path: str, flags: int) -> int:
    """Open a file of a folder that may come from others, and refuse a link, which could name any file of this
    user."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _cannot_write(path: Path, error: OSError, kept: str = "") -> Exception:
    if isinstance(error, FileNotFoundError) and path.parent.exists():  # such as /proc/x
        return InputError(f"cannot write {path}: {path.parent} does not accept files; choose another folder")
    if isinstance(error, FileNotFoundError):
        return InputError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")
    if isinstance(error, NotADirectoryError):
        return InputError(f"cannot write {path}: {path.parent} is not a folder; choose another place")
    return write_error(f"write {path}", error, kept)
