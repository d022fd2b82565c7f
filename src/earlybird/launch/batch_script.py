"""Writes Slurm scripts that start ranks with srun on the allocated nodes."""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.shell_commands import command_text, path_argument, quoted
from earlybird.launch.srun_arguments import parse_srun_arguments
from earlybird.machine.home import HOME_VARIABLE, given_home

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


def check_options(place: Mapping[str, Any], *, resume: bool = False) -> None:
    """Raise InputError for options that conflict with a script."""
    if place["launcher"] not in ("local", "srun") or place["hosts"] is not None:
        raise InputError(
            "a Slurm script starts ranks with srun on the allocated nodes; omit --launcher and --hosts"
        )
    if resume:
        raise InputError(
            "--print-script and --resume are both given; omit --resume: the script continues its run itself"
        )
    parse_srun_arguments(place["srun"])


def run_script(
    begin: Sequence[str],
    resume: Sequence[str],
    run: Path,
    nodes: int,
    budget_s: float,
    then: Sequence[str] | None = None,
) -> str:
    """Return a script that runs the earlybird command `begin` in an allocation of `nodes`, or `resume` if the
    folder `run` is there, and afterwards the command `then`."""
    lines = _CONTINUED.format(run=path_argument(run), resume=_line(resume), begin=_line(begin))
    requests = f"#SBATCH --nodes={nodes}\n#SBATCH --requeue"
    after = f"\n{_line(then)}" if then else ""
    return _script(begin[0], "submit it with sbatch.", requests, budget_s, lines + after)


def check_script(command: Sequence[str], output: Path | None, budget_s: float) -> str:
    """Return a script that checks all nodes of its allocation and exits with the status of the check."""
    folder = '"check-$SLURM_JOB_ID"' if output is None else path_argument(output)
    nodes = "sbatch --nodes=64 SCRIPT, or sbatch --nodelist=n[1-64] SCRIPT"
    submit = f"submit it with the nodes to check:\n#   {nodes}"
    return _script("check", submit, "#SBATCH --no-requeue", budget_s, f"{_line(command)} -o {folder}")


def _script(command: str, submit: str, requests: str, budget_s: float, body: str) -> str:
    minutes = math.ceil((2 * budget_s + _MARGIN_S) / 60)
    # Sites may not pass the variables of the shell on to jobs.
    # As it is given, not where this user's builds are written to: that differs if it is read-only.
    given = given_home()
    environment = f"export {HOME_VARIABLE}={quoted(str(given))}\n" if given else ""
    return _SLURM.format(
        command=command,
        submit=submit,
        requests=requests,
        time=f"{minutes // 60:02d}:{minutes % 60:02d}:00",
        environment=environment,
        body=body,
    )


def _line(arguments: Sequence[str]) -> str:
    """Return the command line of this installation: another `earlybird` may precede it on the job's PATH."""
    return command_text([*_own_command(), *arguments])


def _own_command() -> list[str]:
    called = Path(sys.argv[0])
    if os.sep in sys.argv[0] and called.name == "earlybird" and os.access(called, os.X_OK):
        return [str(called.absolute())]
    script = Path(sys.executable).absolute().with_name("earlybird")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "earlybird"]
