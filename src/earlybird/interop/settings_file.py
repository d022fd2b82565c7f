"""Writes the settings that select an MPI's algorithms, and describes how to use them."""

import re
from pathlib import Path

from earlybird.data import files, labels
from earlybird.data.collective_configuration import (
    SELECTION_SUFFIXES,
    Configuration,
    Region,
    by_operation,
    describe,
)
from earlybird.data.errors import InputError
from earlybird.data.shell_commands import quoted


def write_settings(settings: Configuration | None, path: Path) -> list[str]:
    """Write the settings that select an MPI's algorithms; return remarks on what they set, and how to use
    them."""
    if settings is None:
        raise InputError(
            f"there are no settings to write to {path}: the profile contains no algorithm of Open MPI, "
            "MPICH or Intel MPI; omit --config, or measure some with --algorithm linear,pipeline,binomial"
        )
    remarks: list[str] = []
    for suffix, text in settings.files.items():
        files.write_text(path.with_name(path.name + suffix), text)
    whole = str(path.resolve())
    text = re.sub(r'(?<==)"FILE([^"]*)"', lambda named: quoted(whole + named[1]), settings.text)
    files.write_text(path, text)
    if stale := _unused_files(settings, path):
        remarks.append(f"{path} does not use {labels.listed(stale)}; remove what an earlier --config wrote")
    if settings.idle:
        why = ", as no other algorithm that the file can set was measured to be clearly faster on these ranks"
        why = "" if settings.left_out else why
        remarks.append(
            f"wrote {path}, which sets nothing, so that there is nothing to use: the default stays{why}"
        )
    else:
        remarks += [f"{path} sets {text}" for text in _in_force(settings)]
        remarks.append(f"wrote {path}; use it with: {settings.use.replace('FILE', quoted(whole))}")
    for reason in dict.fromkeys(settings.left_out.values()):
        omitted = [region for region, why in settings.left_out.items() if why == reason]
        remarks.append(f"warning: {reason}, so {path} does not cover: {_named(omitted, settings)}")
    return remarks


def _unused_files(settings: Configuration, path: Path) -> list[str]:
    """Return the files that MPICH's settings at `path` may have had, and that these settings do not use."""
    if settings.kind != "shell":
        return []
    others = [
        path.with_name(path.name + suffix) for suffix in SELECTION_SUFFIXES if suffix not in settings.files
    ]
    return [str(other) for other in others if other.exists()]


def _in_force(settings: Configuration) -> list[str]:
    """Return a description of what is set for each operation, and for which operations nothing is set."""
    in_force = [
        _named(regions, settings)
        for operation, regions in by_operation(settings.regions).items()
        if operation in settings.changed
    ]
    others = [operation for operation in settings.operations if operation not in settings.changed]
    return [*in_force, f"nothing for {labels.listed(others)}"] if others else in_force


def _named(regions: list[Region], settings: Configuration) -> str:
    """Return a description of the regions of each operation, which is named if the settings are for
    several."""
    if len(settings.operations) == 1:
        return describe(regions)
    return "; ".join(
        f"{operation}: {describe(of_operation)}" for operation, of_operation in by_operation(regions).items()
    )
