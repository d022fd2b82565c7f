"""Options shared by several commands."""

from pathlib import Path
from typing import Annotated

import typer

MpiOption = Annotated[
    str | None,
    typer.Option(
        "--mpi", help="mpich, openmpi, intel, system or the path of an mpicc.  [default: the first built]"
    ),
]
MpisOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mpi",
        help="mpich, openmpi, intel, system or the path of an mpicc; repeat it to compare several.  "
        "[default: the first built]",
    ),
]
LauncherOption = Annotated[
    str, typer.Option("--launcher", help="local, srun, cluster:NAME, simgrid:2x2x64 or synthetic:PROFILE.")
]
HostsOption = Annotated[str | None, typer.Option("--hosts", help="Hosts for mpiexec: node1,node2 or a file.")]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", help="Program that starts processes on --hosts, called like ssh.  [default: ssh]"
    ),
]
ThreadsOption = Annotated[int, typer.Option("--threads", help="Threads per rank, each on its own core.")]
RunOption = Annotated[Path | None, typer.Option("-o", "--output", help="Run folder to create.")]
TimeLimitOption = Annotated[str, typer.Option("--time-limit", help="Time limit of a launch.")]
StallLimitOption = Annotated[
    str,
    typer.Option(
        "--stall-limit",
        help="End a launch that completes no point for this long, time in Slurm's queue included.",
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue the run in -o with the options it was started with.")
]
PrintScriptOption = Annotated[
    str | None, typer.Option("--print-script", help="slurm: print a script for sbatch and measure nothing.")
]
ProfilesOption = Annotated[
    list[str], typer.Option("--profile", help="Profile written by fit; repeat to combine levels.")
]
LevelOption = Annotated[
    str | None,
    typer.Option(
        "--level", help="intra_socket, inter_socket or inter_node.  [default: the outermost with pipelines]"
    ),
]
ShareOption = Annotated[
    str | None,
    typer.Option("--share", help="fair: what gets an equal share, message or process.  [default: message]"),
]
MixedOption = Annotated[
    str | None,
    typer.Option(
        "--mixed",
        help="Order of messages from inside and outside a socket: per-level or union.  [default: per-level]",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print no progress on stderr.")]
