"""The script by which a batch system measures: `measure` and `replay` print it with --print-script."""

import math
import shlex
import sys
from pathlib import Path

import typer

from earlybird.data.errors import InputError

KINDS = ("slurm",)
# What the script sets by itself, or what has no meaning in it.
_OWN = {"print_script", "output", "launcher", "quiet"}
_MARGIN_S = 300.0

_SLURM = """\
#!/bin/bash
# Written by `earlybird {command} --print-script slurm`; submit it with sbatch.
# Adapt to the site: --time, a line "#SBATCH --partition=..." or "--account=...", the MPI's module, PATH.
# All nodes must see this folder; run `earlybird build` on the login node before.
#SBATCH --job-name=earlybird
#SBATCH --nodes={nodes}
#SBATCH --exclusive
#SBATCH --time={time}
#SBATCH --output=earlybird-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
set -e
PATH=$PATH:{folder}

if [ -e {run}/run.json ]; then  # requeued or submitted again: go on where it stopped
  {resume}
else
  {begin}
fi
"""


def check_kind(kind: str, *, launcher: str, hosts: str | None, resume: bool) -> None:
    """Raise InputError for an unknown kind of script, or options that a script leaves no room for."""
    if kind not in KINDS:
        raise InputError(f"--print-script is {kind!r}; the scripts there are: {', '.join(KINDS)}")
    if launcher not in ("local", "srun") or hosts is not None:
        raise InputError(
            "a Slurm script starts ranks with srun on the nodes Slurm gives; leave --launcher and --hosts out"
        )
    if resume:
        raise InputError(
            "--print-script and --resume were given; leave --resume out: the script continues its run itself"
        )


def print_slurm_script(
    context: typer.Context, run: Path, nodes: int, budget_s: float, *, next_words: list[str] | None = None
) -> None:
    """Print the script that does what the command line of `context` says in an allocation of `nodes`.

    `next_words` is the earlybird command that makes something of the run.
    """
    name = str(context.info_name)
    begin = ["earlybird", name, *_given_words(context), "--launcher", "srun", "-o", str(run)]
    # What a run was begun with it keeps; a profile to compare with, and how to print, it does not.
    resume = ["earlybird", name, "--resume", *_given_words(context, {"profile", "format", "json"})]
    minutes = math.ceil((2 * budget_s + _MARGIN_S) / 60)
    text = _SLURM.format(
        command=name,
        nodes=nodes,
        time=f"{minutes // 60:02d}:{minutes % 60:02d}:00",
        folder=shlex.quote(str(Path(sys.argv[0]).absolute().parent)),
        run=shlex.quote(str(run)),
        begin=shlex.join(begin),
        resume=shlex.join([*resume, "-o", str(run)]),
    )
    print(text + (shlex.join(["earlybird", *next_words]) + "\n" if next_words else ""), end="")


def _given_words(context: typer.Context, only: set[str] | None = None) -> list[str]:
    """The words of a command line that were given, without those a script sets by itself."""
    options, arguments = [], []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is None or source.name != "COMMANDLINE" or parameter.name in _OWN:
            continue
        if only is not None and parameter.name not in only:
            continue
        value = context.params[parameter.name]
        values = [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]
        if parameter.param_type_name == "argument":
            arguments += values
        elif parameter.is_flag:
            options.append(parameter.opts[0])
        else:
            options += [word for one in values for word in (_longest(parameter.opts), one)]
    # A name that begins with a dash, after --, would be taken for an option.
    if any(word.startswith("-") for word in arguments):
        raise InputError(f"{' '.join(arguments)} begins with a dash; write ./ before the name of a file")
    return [*arguments, *options]


def _longest(names: list[str]) -> str:
    return max(names, key=len)
