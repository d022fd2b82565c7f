"""`earlybird export`: writes messages, placements, models and results in the formats of other tools."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.cli.options.values import OneOf, Parsed
from earlybird.data.errors import InputError
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import parse_triple
from earlybird.interop import exports
from earlybird.interop.exports import (
    FOLDERS,
    FORMATS,
    LAYOUT,
    SIMGRID_TRACE,
    Exported,
    Writer,
    formats_of,
)
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="REC|PATTERN|LAYOUT|PROFILE|RUN",
            help="Folder of a recording or a run, or the file of a pattern, of a layout (rank,node,socket) "
            "or of a profile.",
        ),
    ],
    to: Annotated[str | None, typer.Option(help="Format to write.  [required]"), OneOf(*FORMATS)] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write, with osu and simgrid-trace: folder to create.  [required]",
            metavar="FILE",
        ),
    ] = None,
    quantity: Annotated[
        str | None,
        typer.Option(help="What the matrix contains.  [default: bytes]"),
        OneOf("bytes", "messages"),
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(help="Of a layout: the names of its nodes: node1,node2 or a file.")
    ] = None,
    cpus: Annotated[
        str | None,
        typer.Option(
            help="Of a layout: the CPUs of each socket of a node, as lscpu lists them, to bind its ranks to "
            "them: 0-15/16-31."
        ),
    ] = None,
    shape: Annotated[
        tuple[int, int, int] | None,
        typer.Option(help="Of a profile: nodes x sockets x cores of a socket, such as 4x2x16."),
        Parsed(parse_triple),
    ] = None,
    combined: Annotated[
        bool, typer.Option("--combined", help="In GOAL, one message for each pair of ranks.")
    ] = False,
    json: bool = AS_JSON,
) -> None:
    """Write messages, a placement, a model or results in a format of another tool.

    Of a recording or a pattern, matrix-market is the communication matrix: the row sends to the column; ranks
    count from 1. goal is a schedule for LogGOPSim in which every rank posts all of its receives and sends at
    once. chrome-trace is a timeline of the calls and messages that `earlybird record --events` kept, for
    https://ui.perfetto.dev. simgrid-trace is the calls that `--events all` kept, without their times but with
    the time between them, for `smpirun -replay`.
    For CSV use `earlybird show REC --format csv`, for a pattern `earlybird pattern recording`.

    A layout, such as `earlybird advise layout` writes, becomes a file that places each rank: for the mpiexec
    of mpich, openmpi or intel, for slurm, or as rank-order, the keys of an MPI_Comm_split that renumbers the
    ranks of a job inside the program. The command to use it is printed. It binds ranks to their sockets: that
    of openmpi by itself, those of mpich, intel and slurm with --cpus, to one CPU of the socket each.

    A profile becomes the simulated-machine of --launcher simgrid, a simgrid-platform, or the parameters of
    the LogGPS model.

    A run becomes openmetrics for Prometheus, or osu: for each launch the tables that the OSU Micro-Benchmarks
    print, a file for each, which `earlybird import osu` reads.
    """
    if to is None:
        what, formats = formats_of(source)
        if not formats:
            raise InputError(f"{source} is a {what}, which no format takes; give its pattern or another run")
        raise InputError(f"--to is missing; of the {what} {source} give one of {', '.join(formats)}")
    given = {"quantity": quantity, "combined": combined, "hosts": hosts, "cpus": cpus, "shape": shape}
    exports.check(source, to, given)
    if output is None:
        raise InputError(f"-o is missing; give the {'folder' if to in FOLDERS else 'file'} to write")
    exported = exports.export(source, to, output, given, _launch_writer(to))
    if json:
        print_json({"file": str(output), "format": to} | exported.facts)
    note(f"wrote {output}: {exported.text}")
    for remark in exported.remarks:
        note(remark)


def _launch_writer(to: str) -> Writer | None:
    """Return the writer of a format that the package `launch` knows; None if it is another one."""
    if LAYOUT in FORMATS[to].sources:
        return partial(_write_placement, to=to)
    if to == SIMGRID_TRACE:
        return _write_replay_trace
    if to == "simgrid-platform":
        from earlybird.interop.model_exports import write_platform
        from earlybird.launch.simgrid import platform_xml

        return partial(write_platform, platform_xml=platform_xml)
    return None


def _write_replay_trace(source: Path, output: Path) -> Exported:
    from earlybird.data.labels import counted
    from earlybird.data.recording import load_counted
    from earlybird.record.operations import operations_of
    from earlybird.record.replay_trace import INDEX, write_replay_trace

    operations = operations_of(load_counted(source), with_threads=False)
    made = write_replay_trace(operations, output)
    use = (
        f"smpirun -np {operations.size} -platform PLATFORM.xml -hostfile HOSTS -replay "
        f"{path_argument(output / INDEX)}"
    )
    remarks: tuple[str, ...] = ()
    if made.num_kept:
        remarks = (
            f"warning: {counted(made.num_kept, 'collective call')} not of all ranks, or without an action, "
            "have their recorded cost",
        )
    text = f"{counted(made.num_actions, 'action')} of {operations.size} ranks; use it with: {use}"
    return Exported({"actions": made.num_actions, "ranks": operations.size, "use": use}, text, remarks)


def _write_placement(
    source: Path, output: Path, *, to: str, hosts: str | None = None, cpus: str | None = None
) -> Exported:
    from earlybird.data import files
    from earlybird.data.layout import parse_layout
    from earlybird.launch.host_files import parse_cpus, placement_file
    from earlybird.launch.hosts import parse_hosts

    layout = parse_layout(str(source))
    names = () if hosts is None else parse_hosts(hosts)
    made = placement_file(layout, to, names, None if cpus is None else parse_cpus(cpus))
    files.write_text(output, made.text)
    use = made.use.format(file=path_argument(output), ranks=layout.num_ranks)
    remarks = (f"warning: {output}: {made.binding}",) if made.binding else ()
    text = f"{layout.num_ranks} ranks; use it with: {use}"
    return Exported({"ranks": layout.num_ranks, "use": use}, text, remarks)


command = make_command(
    export, name="export", example="earlybird export rec --to matrix-market -o communication.mtx"
)
