"""`earlybird cluster`: start, list, use and stop virtual clusters on this machine."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, FORMAT, make_group
from earlybird.cli.options.shared import LAYOUT_HELP, MapByOption, MpiOption, ThreadsOption
from earlybird.cli.options.values import SIZE, Parsed, as_written
from earlybird.data.errors import InputError, WorkError
from earlybird.data.levels import MAPPINGS
from earlybird.data.units import is_plain_number, parse_bandwidth
from earlybird.launch import interpose
from earlybird.launch.choice import choose_flavour
from earlybird.launch.cluster import control, link, state, summary
from earlybird.launch.cluster.node import TEMPORARY
from earlybird.launch.cluster.state import Cluster
from earlybird.launch.process import run_to_completion
from earlybird.launch.variables import variables_to_set
from earlybird.present.render.data import Format, print_data, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_rows
from earlybird.toolchain.build import require_library

NameOption = Annotated[
    str, typer.Option("--name", help="Name of the cluster; optional if only one is running.")
]


def parse_rate(text: str, option: str) -> float:
    """Return bytes per second of a rate, which must have a unit."""
    if is_plain_number(text):
        raise InputError(f"{option} is {text!r} without a unit; give 10mbit to 32gbit, such as 100mbit")
    try:
        return parse_bandwidth(text, option)
    except InputError as error:
        raise InputError(f"{option} is {text!r}; give 10mbit to 32gbit, such as 200mbit or 2gbit") from error


def up(
    nodes: Annotated[int, typer.Option(help="Number of nodes.")] = 2,
    rate: Annotated[
        float,
        typer.Option(help="Bandwidth of every node's link in each direction, such as 200mbit."),
        Parsed(parse_rate),
    ] = as_written("200mbit"),
    send_buffer: Annotated[
        int,
        typer.Option(help="Buffer of each TCP connection where it sends; about half of it holds data."),
        SIZE,
    ] = as_written("4MiB"),
    name: Annotated[str, typer.Option(help="Name of the cluster.")] = "virtual",
    check: Annotated[bool, typer.Option(help="Measure the links, which takes 3 s.")] = True,
    json: bool = AS_JSON,
) -> None:
    """Start a cluster of virtual nodes.

    Each node has its own network, host name, processes and shared memory. This needs root or user namespaces;
    `earlybird doctor` reports which are available. `down`, a crash of the keeper process or a reboot ends the
    cluster and leaves nothing behind.
    """
    cluster = control.up(
        name, nodes, rate, link.measure_link if check else None, send_buffer_bytes=send_buffer,
    )  # fmt: skip
    if json:
        print_json(cluster.to_json())
    else:
        print_line(summary.describe(cluster))
    if mismatch := link.describe_mismatch(cluster.link):
        note(f"warning: {mismatch}")
    suites = "pingpong contention completion"
    note(f"next: earlybird measure {suites} --quick --launcher cluster:{cluster.name} -o run")


def list_(format: Format = FORMAT) -> None:
    """List the running clusters."""
    clusters = state.all_running()
    values = [cluster.to_json() | {"lost_nodes": cluster.lost_nodes()} for cluster in clusters]
    if print_data(format, {"clusters": values}, map(summary.record, clusters), summary.COLUMNS):
        return
    if clusters:
        print_rows(summary.HEADER, list(map(summary.cells, clusters)))
    else:
        print_line("no cluster is running; start one with: earlybird cluster up --nodes 4 --rate 200mbit")


def run(
    node: Annotated[str, typer.Argument(help="Node, such as node0 or 0.")],
    command: Annotated[list[str], typer.Argument(help="Command to run on the node.")],
    name: NameOption = "",
    json: Annotated[
        bool, typer.Option("--json", help="Print the exit status and output of the command as JSON.")
    ] = False,
) -> None:
    """Run a command on a node; the exit status is that of the command."""
    cluster = state.find(name)
    nodes = {
        key: member for k, member in enumerate(cluster.nodes) for key in (str(k), member.name, member.address)
    }
    if node not in nodes:
        raise InputError(
            f"the cluster {cluster.name} has no node {node!r}; its nodes are "
            f"{', '.join(member.name for member in cluster.nodes)}"
        )
    if not nodes[node].process.runs():
        raise WorkError(cluster.trouble() or f"{nodes[node].name} has died")
    arguments = _without_dashes(command)
    _warn_of_job(cluster)
    # Joining a node's mounts changes to its root folder; the command must start in the current folder.
    shell = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", os.getcwd()]
    arguments = [*cluster.node_arguments(nodes[node]), *shell, *arguments]
    environment = os.environ | {"TMPDIR": TEMPORARY}
    if not json:
        os.execvpe(arguments[0], arguments, environment)
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, errors="replace")
    streams = {"stdout": done.stdout, "stderr": done.stderr}
    print_json({"node": nodes[node].name, "exit_status": done.returncode} | streams)
    raise typer.Exit(done.returncode)


def mpiexec(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments.")],
    layout: Annotated[str, typer.Option(help=LAYOUT_HELP)],
    map_by: MapByOption = MAPPINGS[0],
    mpi: MpiOption = None,
    threads: ThreadsOption = 1,
    name: NameOption = "",
) -> None:
    """Run your MPI program on the nodes.

    The exit status is that of mpiexec. Inside `earlybird exec` its ranks load libearlybird.
    """
    from earlybird.data.layout import parse_layout
    from earlybird.launch.cluster.launcher import ClusterLauncher

    cluster = state.find(name)
    launcher = ClusterLauncher(choose_flavour(mpi, note), cluster, threads=threads)
    placement = parse_layout(layout, map_by)
    launcher.check(placement)
    arguments = _without_dashes(command)
    cluster.require_whole()
    _warn_of_job(cluster)
    with tempfile.TemporaryDirectory(prefix="earlybird-") as folder:
        invocation = launcher.invocation(placement, Path(folder))
        set_by_us = variables_to_set(launcher.mpi, invocation.env, invocation.preferred)
        environment = launcher.mpi.environment() | set_by_us
        arguments = [*invocation.before_program, *arguments]
        if interpose.inside():
            require_library(launcher.mpi)
            arguments, environment = interpose.through_shim(arguments, launcher.mpi, environment)
        status = run_to_completion(arguments, environment)
    cluster.require_whole()  # Open MPI's mpiexec may end with 0 when a node dies
    raise typer.Exit(status)


def down(
    name: NameOption = "",
    all_: Annotated[bool, typer.Option("--all", help="Stop all clusters of this user.")] = False,
    json: bool = AS_JSON,
) -> None:
    """Stop a cluster and all its processes."""
    if all_ and name:
        raise InputError(f"--all stops all clusters, but --name is {name!r}; give one of the two")
    names = [cluster.name for cluster in state.all_running()] if all_ else [state.find(name).name]
    for running in names:
        control.down(running)
        if not json:
            print_line(f"{running} is down")
    if json:
        print_json({"down": names})


def _without_dashes(command: list[str]) -> list[str]:
    """Return the command to run, without a leading --."""
    arguments = command[1:] if command[0] == "--" else command
    if not arguments or arguments[0].startswith("-"):
        raise InputError(
            f"{' '.join(command)} is not a command; give the options first, then the command and its "
            "arguments"
        )
    return arguments


def _warn_of_job(cluster: Cluster) -> None:
    if (job := state.job_on(cluster)) is not None:
        note(f"warning: {job} is measuring on the cluster {cluster.name}; this command disturbs it")


command = make_group(
    [
        ("up", up, "earlybird cluster up --nodes 4 --rate 200mbit"),
        ("list", list_, "earlybird cluster list --json"),
        ("run", run, "earlybird cluster run node0 -- hostname"),
        ("mpiexec", mpiexec, "earlybird cluster mpiexec --mpi mpich --layout 4x1x2 -- ./app"),
        ("down", down, "earlybird cluster down"),
    ],
    name="cluster",
    help="Run several nodes on this machine: a virtual cluster of Linux namespaces.",
)
# Arguments after the first positional one belong to the command to run: `cluster run node0 ls -la`.
for _name in ("run", "mpiexec"):
    command.commands[_name].allow_interspersed_args = False
