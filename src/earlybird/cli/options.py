"""The options that several commands spell and explain alike."""

from pathlib import Path
from typing import Annotated

import typer

MpiOption = Annotated[
    str | None, typer.Option("--mpi", help="mpich, openmpi, intel, system or an mpicc; the first built.")
]
LauncherOption = Annotated[
    str, typer.Option("--launcher", help="local, srun, cluster:NAME, simgrid:2x2x64 or synthetic:PROFILE.")
]
HostsOption = Annotated[str | None, typer.Option("--hosts", help="Hosts for mpiexec: node1,node2 or a file.")]
AgentOption = Annotated[
    str | None, typer.Option("--agent", help="The program that reaches --hosts as ssh does; ssh.")
]
ThreadsOption = Annotated[int, typer.Option("--threads", help="Threads of every rank, a core for each.")]
RunOption = Annotated[Path | None, typer.Option("-o", "--output", help="Run folder to make.")]
TimeLimitOption = Annotated[str, typer.Option("--time-limit", help="End a launch after this long.")]
StallLimitOption = Annotated[
    str,
    typer.Option(
        "--stall-limit", help="End a launch that finishes no point for this long, Slurm's queue included."
    ),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run named by -o as it was begun.")]
PrintScriptOption = Annotated[
    str | None, typer.Option("--print-script", help="slurm: measure nothing, print a script for sbatch.")
]
ProfilesOption = Annotated[
    list[str], typer.Option("--profile", help="What the machine's MPI costs; repeat for more levels.")
]
LevelOption = Annotated[
    str | None,
    typer.Option(
        "--level", help="intra_socket, inter_socket or inter_node; the outermost with measured pipelines."
    ),
]
ShareOption = Annotated[
    str | None,
    typer.Option("--share", help="Of the model fair, what counts alike: message or process; message."),
]
MixedOption = Annotated[
    str | None,
    typer.Option(
        "--mixed", help="Order of messages from on and off a socket: per-level or union; per-level."
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
