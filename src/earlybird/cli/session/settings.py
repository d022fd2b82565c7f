"""Writes the settings that select an MPI's algorithms, and prints how to use them."""

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
from earlybird.present.render.notes import note


def write_settings(settings: Configuration | None, path: Path) -> None:
    """Write the settings that select an MPI's algorithms, and report how to use them."""
    if settings is None:
        raise InputError(
            f"there are no settings to write to {path}: the profile contains no algorithm of Open MPI, "
            "MPICH or Intel MPI; omit --config, or measure some with --algorithm linear,pipeline,binomial"
        )
    for suffix, text in settings.files.items():
        files.write_text(path.with_name(path.name + suffix), text)
    whole = str(path.resolve())
    text = re.sub(r'(?<==)"FILE([^"]*)"', lambda named: quoted(whole + named[1]), settings.text)
    files.write_text(path, text)
    if stale := _unused_files(settings, path):
        note(f"{path} does not use {labels.listed(stale)}; remove what an earlier --config wrote")
    if settings.idle:
        why = ", as no other algorithm that the file can set was measured to be clearly faster on these ranks"
        why = "" if settings.left_out else why
        note(f"wrote {path}, which sets nothing, so that there is nothing to use: the default stays{why}")
    else:
        for text in _in_force(settings):
            note(f"{path} sets {text}")
        note(f"wrote {path}; use it with: {settings.use.replace('FILE', quoted(whole))}")
    for reason in dict.fromkeys(settings.left_out.values()):
        omitted = [region for region, why in settings.left_out.items() if why == reason]
        note(f"warning: {reason}, so {path} does not cover: {_named(omitted, settings)}")


def _unused_files(settings: Configuration, path: Path) -> list[str]:
    """The files that MPICH's settings at `path` may have had, and that these settings do not."""
    if settings.kind != "shell":
        return []
    others = [
        path.with_name(path.name + suffix) for suffix in SELECTION_SUFFIXES if suffix not in settings.files
    ]
    return [str(other) for other in others if other.exists()]


def _in_force(settings: Configuration) -> list[str]:
    """What is set for each operation, and for which nothing is."""
    found = [
        _named(regions, settings)
        for operation, regions in by_operation(settings.regions).items()
        if operation in settings.changed
    ]
    others = [operation for operation in settings.operations if operation not in settings.changed]
    return [*found, f"nothing for {labels.listed(others)}"] if others else found


def _named(regions: list[Region], settings: Configuration) -> str:
    """The regions of each operation, which is named if the settings are for several."""
    if len(settings.operations) == 1:
        return describe(regions)
    found = by_operation(regions).items()
    return "; ".join(f"{operation}: {describe(of_operation)}" for operation, of_operation in found)
