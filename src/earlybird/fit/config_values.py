"""Values of a sample's config, with errors that name the run and the key."""

from collections.abc import Callable
from typing import Any, TypeVar

from earlybird.data.errors import InputError
from earlybird.data.run import Run, Sample
from earlybird.data.shell_commands import quoted

Value = TypeVar("Value")


def config_value(
    run: Run, sample: Sample, key: str, convert: Callable[[Any], Value], default: Value | None = None
) -> Value:
    """Return the value of `key` in the config of a sample of `run`, or `default`.

    Raises InputError where it is missing without a default, and where `convert`, such as int, refuses it.
    """
    if key not in sample.config:
        if default is not None:
            return default
        if (run.header.get("settings") or {}).get("imported"):
            raise InputError(
                f"{run.path} is imported, and its texts do not say the {key} of a {sample.kernel}: no model "
                f"can be fitted to it; measure it with `earlybird measure {quoted(sample.kernel)}`"
            )
        raise InputError(f"{run.path}: a {sample.kernel} sample has no {key} in its config; measure again")
    value = sample.config[key]
    try:
        return convert(value)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{run.path}: a {sample.kernel} sample has no usable {key} in its config, but {value!r}; measure "
            "again"
        ) from error
