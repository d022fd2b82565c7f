"""The two methods a command ends badly: the input was wrong (exit 2) or the work failed (exit 1)."""


class EarlybirdError(Exception):
    """Base of every error a person sees: one sentence saying what was given, what is allowed, what to do."""

    exit_status = 1


class InputError(EarlybirdError):
    """What the user gave is wrong; nothing was started and nothing was written."""

    exit_status = 2


class WorkError(EarlybirdError):
    """The work failed (a job died, data did not validate, a disk filled); what was measured is kept."""

    exit_status = 1
