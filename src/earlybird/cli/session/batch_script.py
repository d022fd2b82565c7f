"""Batch scripts that measure: `measure`, `replay` and `check` print them with --print-script."""

import math
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import typer

from earlybird.cli.options.command import given_arguments
from earlybird.cli.options.shared import PlaceOptions
from earlybird.cli.session.sides import in_full
from earlybird.data.errors import InputError
from earlybird.data.run_continuation import STATED_AGAIN
from earlybird.data.shell_commands import command_text, path_argument, quoted
from earlybird.launch import interpose
from earlybird.launch.srun_arguments import parse_srun_arguments
from earlybird.machine.home import HOME_VARIABLE, given_home
from earlybird.present.render.terminal import print_text

# Options that the script sets itself, or that do not apply in it; the MPIs are named in full.
_OMITTED = {"print_script", "output", "launcher", "quiet", "mpi"}
# Options that are given again to continue a run.
_GIVEN_AGAIN = {"profile", "format", "json", "env", *STATED_AGAIN}
_MARGIN_S = 300.0

_SLURM = """\
#!/bin/bash
# Written by `earlybird {command} --print-script slurm`; {submit}
# Adapt to your site: --time, a line "#SBATCH --partition=..." or "--account=...", the MPI's module.
# All nodes must see this folder; run `earlybird build` on the login node first.
#SBATCH --job-name=earlybird
{requests}
#SBATCH --exclusive
#SBATCH --time={time}
#SBATCH --output=earlybird-%j.out
#SBATCH --open-mode=append
set -e
{environment}
{body}
"""

_CONTINUED = """\
if [ -e {run}/run.json ]; then  # requeued or submitted again: continue the run
  {resume}
else
  {begin}
fi\
"""


def check_script(place: PlaceOptions, *, resume: bool = False) -> None:
    """Raise InputError for options that conflict with a script."""
    if place.launcher not in ("local", "srun") or place.hosts is not None:
        raise InputError(
            "a Slurm script starts ranks with srun on the allocated nodes; omit --launcher and --hosts"
        )
    if resume:
        raise InputError(
            "--print-script and --resume are both given; omit --resume: the script continues its run itself"
        )
    parse_srun_arguments(place.srun)


def print_slurm_script(
    context: typer.Context, run: Path, nodes: int, budget_s: float, *, next_command: list[str] | None = None
) -> None:
    """Print a script that runs the command line of `context` in an allocation of `nodes`.

    `next_command` is the earlybird command to run afterwards.
    """
    command = context.command_path.split()[1:]  # with the suite, where it is a subcommand
    lines = _CONTINUED.format(
        run=path_argument(run),
        resume=_line([command[0], "--resume", *_given(context, _GIVEN_AGAIN), "-o", str(run)]),
        begin=_line([*command, *_given(context), "--launcher", "srun", "-o", str(run)]),
    )
    requests = f"#SBATCH --nodes={nodes}\n#SBATCH --requeue"
    after = f"\n{_line(next_command)}" if next_command else ""
    _print(command[0], "submit it with sbatch.", requests, budget_s, lines + after)


def print_check_script(context: typer.Context, output: Path | None, budget_s: float) -> None:
    """Print a script that checks all nodes of its allocation; its status is that of the check."""
    line = _line(["check", *_given(context), "--launcher", "srun"])
    folder = '"check-$SLURM_JOB_ID"' if output is None else path_argument(output)
    nodes = "sbatch --nodes=64 SCRIPT, or sbatch --nodelist=n[1-64] SCRIPT"
    submit = f"submit it with the nodes to check:\n#   {nodes}"
    _print("check", submit, "#SBATCH --no-requeue", budget_s, f"{line} -o {folder}")


def _print(command: str, submit: str, requests: str, budget_s: float, body: str) -> None:
    minutes = math.ceil((2 * budget_s + _MARGIN_S) / 60)
    # Sites may not pass the variables of the shell on to jobs.
    # As it is given, not where this user's builds are written to: that differs if it is read-only.
    given = given_home()
    environment = f"export {HOME_VARIABLE}={quoted(str(given))}\n" if given else ""
    text = _SLURM.format(
        command=command,
        submit=submit,
        requests=requests,
        time=f"{minutes // 60:02d}:{minutes % 60:02d}:00",
        environment=environment,
        body=body,
    )
    print_text(text)


def _line(arguments: Sequence[str]) -> str:
    """Return the command line of this installation: another `earlybird` may precede it on the job's PATH."""
    return command_text([*_own_command(), *arguments])


def _own_command() -> list[str]:
    called = Path(sys.argv[0])
    if os.sep in sys.argv[0] and called.name == "earlybird" and os.access(called, os.X_OK):
        return [str(called.absolute())]
    script = Path(sys.executable).absolute().with_name("earlybird")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "earlybird"]


def _given(context: typer.Context, only: Collection[str] | None = None) -> list[str]:
    """Return the arguments without what the script sets itself, and with the MPIs by names that mean the same
    in the job: it has another PATH, and is in no enclosing `exec`."""
    arguments, options = given_arguments(context, _OMITTED, only)
    given = context.params.get("mpi") or os.environ.get(interpose.FLAVOUR) or ()
    mpis = [given] if isinstance(given, str) else given
    return [*arguments, *(text for mpi in mpis for text in ("--mpi", in_full(mpi))), *options]
