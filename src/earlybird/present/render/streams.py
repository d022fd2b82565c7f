"""The standard streams: what commands write to them is plain text, and none of them is missing."""

import errno
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from earlybird.data.plain_text import plain


class PlainStream:
    """A text stream that writes text as `show` makes it: with controls and invisible characters as escapes.

    On a stream of `notices` (stderr), text that cannot be written is lost: a full disk or a closed pipe there
    is no reason to lose a measurement.
    """

    def __init__(self, stream: Any, notices: bool = False, show: Callable[[str], str] = plain):
        self.stream, self.notices, self._show = stream, notices, show

    def write(self, text: str) -> int:
        try:
            self.stream.write(self._show(text))
        except OSError:
            self._give_up()
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Discard the buffered and any further text; raise the current OSError unless this is for notices."""
        if not self.notices:
            raise
        discard(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class ClosedStream:
    """The stdout of a command that was started without one: printing results raises OSError, as if the disk
    were full."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        if text:
            raise OSError(errno.EBADF, "stdout is closed")
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_streams() -> None:
    """Open the standard streams that are closed, and make stdout and stderr plain; to be called before
    anything opens a file. What is printed on a closed stdout is an OSError, and on a closed stderr lost.

    Otherwise a file, or the connection to an MPI's launcher, would get the number of a closed stream, and
    messages of this and of other programs would be written into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        is_closed = not _is_open(number)
        if is_closed:
            _open_null(number)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, buffering=1, closefd=False))
        if is_closed and name == "stdout":
            sys.stdout = ClosedStream(sys.stdout)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, PlainStream):
            # Characters that the encoding of a stream lacks are no reason to fail either.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, PlainStream(stream, notices=name == "stderr"))


def drawing(stream: Any) -> Any:
    """Return `stream` for output that draws on a terminal with escapes of its own, and gets only plain
    text."""
    is_plain = isinstance(stream, PlainStream)
    return PlainStream(stream.stream, stream.notices, show=str) if is_plain else stream


def discard(stream: Any) -> None:
    """Redirect `stream` to the null device: buffered text could not be written at the end of the process
    either."""
    _open_null(stream.fileno())


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _open_null(number: int) -> None:
    """Open a file descriptor that writes to nowhere; child processes inherit it."""
    null = os.open(os.devnull, os.O_RDWR)
    if null == number:
        os.set_inheritable(null, True)
    else:
        os.dup2(null, number)
        os.close(null)
