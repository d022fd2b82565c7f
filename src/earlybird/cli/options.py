"""The options that every command that starts ranks spells and explains alike."""

from pathlib import Path
from typing import Annotated

import typer

MpiOption = Annotated[
    str | None, typer.Option("--mpi", help="mpich, openmpi, intel, system or an mpicc; the first built.")
]
LauncherOption = Annotated[str, typer.Option("--launcher", help="local, srun or synthetic:PROFILE.json.")]
HostsOption = Annotated[str | None, typer.Option("--hosts", help="Hosts for mpiexec: node1,node2 or a file.")]
RunOption = Annotated[Path | None, typer.Option("-o", "--output", help="Run folder to make.")]
TimeLimitOption = Annotated[str, typer.Option("--time-limit", help="End a launch after this long.")]
StallLimitOption = Annotated[
    str, typer.Option("--stall-limit", help="End a launch that finishes no point for this long.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run named by -o as it was begun.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
