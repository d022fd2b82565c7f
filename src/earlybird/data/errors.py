"""The two kinds of errors of a command: invalid input (exit 2) or failed work (exit 1)."""

# Of a command whose status 1 is a verdict (a point is slower, a node is to be left out), if it has none.
FAILED_VERDICT = 3


class EarlybirdError(Exception):
    """Base of every reported error: one sentence with what was given, what is allowed and what to do."""

    exit_status = 1


class InputError(EarlybirdError):
    """The input is invalid; nothing was started or written."""

    exit_status = 2


class WorkError(EarlybirdError):
    """The work failed (a job died, data was invalid, a disk is full); completed measurements are kept."""

    exit_status = 1


class WriteError(WorkError):
    """A result could not be written."""
