"""Batch scripts that measure: `measure` and `replay` print them with --print-script."""

import math
import sys
from pathlib import Path

import typer

from earlybird.cli.options.command import given_arguments
from earlybird.cli.options.shared import PlaceOptions, SessionOptions
from earlybird.cli.output.printing import print_text
from earlybird.data.errors import InputError
from earlybird.data.shell_commands import command_text, path_argument

KINDS = ("slurm",)
# Options that the script sets itself, or that do not apply in it.
_OMITTED = {"print_script", "output", "launcher", "quiet"}
_MARGIN_S = 300.0

_SLURM = """\
#!/bin/bash
# Written by `earlybird {command} --print-script slurm`; submit it with sbatch.
# Adapt to your site: --time, a line "#SBATCH --partition=..." or "--account=...", the MPI's module, PATH.
# All nodes must see this folder; run `earlybird build` on the login node first.
#SBATCH --job-name=earlybird
#SBATCH --nodes={nodes}
#SBATCH --exclusive
#SBATCH --time={time}
#SBATCH --output=earlybird-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
set -e
PATH=$PATH:{folder}

if [ -e {run}/run.json ]; then  # requeued or submitted again: continue the run
  {resume}
else
  {begin}
fi
"""


def check_script(place: PlaceOptions, session: SessionOptions) -> None:
    """Raise InputError for an unknown kind of script, or options that conflict with it."""
    if session.print_script not in KINDS:
        raise InputError(f"--print-script is {session.print_script!r}; choose from: {', '.join(KINDS)}")
    if place.launcher not in ("local", "srun") or place.hosts is not None:
        raise InputError(
            "a Slurm script starts ranks with srun on the allocated nodes; omit --launcher and --hosts"
        )
    if session.resume:
        raise InputError(
            "--print-script and --resume are both given; omit --resume: the script continues its run itself"
        )


def print_slurm_script(
    context: typer.Context, run: Path, nodes: int, budget_s: float, *, next_command: list[str] | None = None
) -> None:
    """Print a script that runs the command line of `context` in an allocation of `nodes`.

    `next_command` is the earlybird command to run afterwards.
    """
    command = context.command_path.split()  # with the suite, where it is a subcommand
    begin = [*command, *_given(context), "--launcher", "srun", "-o", str(run)]
    # A run stores the options it was started with, except the profile to compare with and the output format.
    resume = [*command[:2], "--resume", *_given(context, {"profile", "format", "json"})]
    minutes = math.ceil((2 * budget_s + _MARGIN_S) / 60)
    text = _SLURM.format(
        command=command[1],
        nodes=nodes,
        time=f"{minutes // 60:02d}:{minutes % 60:02d}:00",
        folder=path_argument(Path(sys.argv[0]).absolute().parent),
        run=path_argument(run),
        begin=command_text(begin),
        resume=command_text([*resume, "-o", str(run)]),
    )
    print_text(text + (command_text(["earlybird", *next_command]) + "\n" if next_command else ""))


def _given(context: typer.Context, only: set[str] | None = None) -> list[str]:
    """Without what the script sets itself."""
    arguments, options = given_arguments(context, _OMITTED, only)
    return [*arguments, *options]
