"""Checks that an argument of the Python interface is an object of the required kind."""

import os
from typing import Any

from earlybird.data.errors import InputError


def require_kind(value: object, kinds: Any, what: str, allowed: str) -> None:
    """Raise InputError unless `value` is an instance of `kinds`, as in isinstance; `allowed` describes
    them."""
    if not isinstance(value, kinds):
        raise wrong_kind(value, what, allowed)


def require_path(value: object, what: str) -> None:
    """Raise InputError unless `value` is the path of a file or folder."""
    require_kind(value, (str, os.PathLike), what, "a path, as a str or a pathlib.Path")


def wrong_kind(value: object, what: str, allowed: str) -> InputError:
    """Return the InputError that says that `what` is not one of `allowed`."""
    given = "None" if value is None else f"of the type {type(value).__name__}"
    return InputError(f"{what} is {given}; give {allowed}")
