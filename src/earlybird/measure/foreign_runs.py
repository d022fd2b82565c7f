"""Refuses what a run folder does not choose, as it may come from others: commands, paths, hosts and variables
of the environment, which the command line must name again."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import options_of, split_settings
from earlybird.data.run import Run
from earlybird.data.run_continuation import STATED_AGAIN, is_tuning
from earlybird.data.shell_commands import command_text
from earlybird.launch import interpose
from earlybird.launch.choice import choose_flavour
from earlybird.machine.flavours import full_name


def refuse_unstated(
    run: Run,
    settings: Mapping[str, Any],
    place: Mapping[str, Any],
    *,
    mpis: Sequence[str],
    stated_mpis: Sequence[str],
    stated_variables: Sequence[str] = (),
    has_env: bool = True,
) -> None:
    """Raise InputError, quoting the options, if `settings` of `run` would execute a program that the command
    line, whose options are in `place`, does not name.

    `mpis` are the MPIs to be measured, with their settings. The names of flavours refer to installations of
    this user or to the MPI on PATH. Another mpicc, given by its path or its name on PATH, must be among
    `stated_mpis` (of --mpi), or be that of an enclosing `exec` or of the MPI that is chosen without --mpi; a
    setting must be among those or `stated_variables` (of --env).
    """
    missing: list[str] = []
    if any(unstated(mpi, stated_mpis, stated_variables) for mpi in mpis):
        missing += options_of(mpis, has_env=has_env)
    for name in STATED_AGAIN:
        if settings.get(name) is not None and place.get(name) is None:
            missing += [f"--{name}", str(settings[name])]
    if missing:
        raise InputError(
            f"a run folder may come from others, so programs, hosts and variables are not taken from "
            f"{run.path}; if you trust what it names, add `{command_text(missing)}`"
        )


def unstated(mpi: str, stated_mpis: Sequence[str] = (), stated_variables: Sequence[str] = ()) -> bool:
    """Return whether `mpi`, with its settings, executes a program that is not stated."""
    stated = [split_settings(mpi) for mpi in stated_mpis]
    names = {full_name(name) for name, _ in stated} | {os.environ.get(interpose.FLAVOUR)}
    variables = {f"{name}={value}" for _, of_mpi in stated for name, value in of_mpi.items()}
    name, settings = split_settings(mpi)
    name = full_name(name)  # of a compiler on PATH, too
    needed = {text for text in (f"{key}={value}" for key, value in settings.items()) if not is_tuning(text)}
    is_other = os.sep in name and name not in names and name != _chosen_without_name()
    return is_other or not needed <= variables | set(stated_variables)


def _chosen_without_name() -> str | None:
    """Return the name of the MPI that is chosen without --mpi."""
    try:
        return choose_flavour(None).name
    except InputError:
        return None
