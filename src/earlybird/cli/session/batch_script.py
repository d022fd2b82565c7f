"""Prints batch scripts that run the given command line: `measure`, `replay` and `check` with
--print-script."""

import os
from collections.abc import Collection
from pathlib import Path

import typer

from earlybird.cli.options.command import given_arguments
from earlybird.cli.options.shared import PlaceOptions
from earlybird.data.run_continuation import STATED_AGAIN
from earlybird.launch import batch_script, interpose
from earlybird.measure.sides import as_stored
from earlybird.present.render.terminal import print_text

# Options that the script sets itself, or that do not apply in it; the MPIs are named in full.
_OMITTED = {"print_script", "output", "launcher", "quiet", "mpi"}
# Options that are given again to continue a run.
_GIVEN_AGAIN = {"profile", "format", "json", "env", *STATED_AGAIN}


def check_script(place: PlaceOptions, *, resume: bool = False) -> None:
    """Raise InputError for options that conflict with a script."""
    batch_script.check_options(vars(place), resume=resume)


def print_slurm_script(
    context: typer.Context, run: Path, nodes: int, budget_s: float, *, next_command: list[str] | None = None
) -> None:
    """Print a script that runs the command line of `context` in an allocation of `nodes`.

    `next_command` is the earlybird command to run afterwards.
    """
    command = context.command_path.split()[1:]  # with the suite, where it is a subcommand
    begin = [*command, *_given(context), "--launcher", "srun", "-o", str(run)]
    resume = [command[0], "--resume", *_given(context, _GIVEN_AGAIN), "-o", str(run)]
    print_text(batch_script.run_script(begin, resume, run, nodes, budget_s, next_command))


def print_check_script(context: typer.Context, output: Path | None, budget_s: float) -> None:
    """Print a script that checks all nodes of its allocation."""
    command = ["check", *_given(context), "--launcher", "srun"]
    print_text(batch_script.check_script(command, output, budget_s))


def _given(context: typer.Context, only: Collection[str] | None = None) -> list[str]:
    """Return the arguments without those that the script sets itself, and with the MPIs by names that are
    valid in the job: it has another PATH, and is not in an enclosing `exec`."""
    arguments, options = given_arguments(context, _OMITTED, only)
    given = context.params.get("mpi") or os.environ.get(interpose.FLAVOUR) or ()
    mpis = [given] if isinstance(given, str) else given
    return [*arguments, *(text for mpi in mpis for text in ("--mpi", as_stored(mpi))), *options]
