"""The two kinds of errors of a command: invalid input (exit 2) or failed work (exit 1)."""

import errno

# Of a command whose status 1 is a verdict (a point is slower, a node is to be left out), if it has none.
FAILED_VERDICT = 3


# Of a path that was given: it is not there, is of another kind, has no valid name or is not for this user to
# use, as is a read-only file system. Another path mends these, so that they are invalid input; a full or
# broken disk is failed work.
_OF_THE_PATH = frozenset((
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES,
    errno.EPERM, errno.EROFS, errno.ENXIO, errno.ENODEV,
))  # fmt: skip


def is_of_the_path(error: OSError) -> bool:
    """Return whether another path would avoid the error, so that InputError must be raised."""
    return error.errno in _OF_THE_PATH


def cause_of(error: OSError) -> str:
    """Return the reason that the system gives, as part of a sentence: "no space left on device"."""
    cause = str(error.strerror)
    return cause if cause[1:2].isupper() else f"{cause[:1].lower()}{cause[1:]}"


class EarlybirdError(Exception):
    """The base of every reported error: one sentence that states the value given, the values allowed and the
    remedy."""

    exit_status = 1


class InputError(EarlybirdError):
    """An error of the input, raised before anything is started or written."""

    exit_status = 2


class WorkError(EarlybirdError):
    """A failure of the work (a job died, data was invalid, a disk is full); completed measurements are
    kept."""

    exit_status = 1


class WriteError(WorkError):
    """A failure to write a result."""


def write_error(what: str, error: OSError, kept: str = "") -> EarlybirdError:
    """Return the error for something that cannot be written; `what` is such as "create the folder x", and
    `kept` names the part that exists nevertheless."""
    if is_of_the_path(error):
        return InputError(f"cannot {what}: {cause_of(error)}; choose a place you may write to")
    remedy = f"{kept}, free some space and try again" if kept else "free some space and try again"
    return WriteError(f"cannot {what}: {cause_of(error)}; {remedy}")


class Unknown(InputError):
    """An error: a point lacks a value from which the requested result is computed."""
