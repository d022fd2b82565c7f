"""`earlybird cluster`: start, list, use and stop virtual clusters on this machine."""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, FORMAT, make_group
from earlybird.cli.options.shared import LAYOUT_HELP, MapByOption, MpiOption, ThreadsOption
from earlybird.cli.session.mpi import choose_flavour
from earlybird.data import units
from earlybird.data.errors import InputError, WorkError
from earlybird.data.levels import MAPPINGS
from earlybird.launch import interpose, temporary_files
from earlybird.launch.cluster import control, link, state
from earlybird.launch.cluster.node import TEMPORARY
from earlybird.launch.cluster.state import Cluster
from earlybird.launch.variables import variables_to_set
from earlybird.present.render.data import Format, print_data, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_rows
from earlybird.toolchain.build import require_library

_END_LIMIT_S = 10.0

NameOption = Annotated[
    str, typer.Option("--name", help="Name of the cluster; optional if only one is running.")
]


def up(
    nodes: Annotated[int, typer.Option(help="Number of nodes.")] = 2,
    rate: Annotated[
        str, typer.Option(help="Bandwidth of every node's link in each direction, such as 200mbit.")
    ] = "200mbit",
    send_buffer: Annotated[
        str,
        typer.Option(help="Buffer of each TCP connection where it sends; about half of it holds data."),
    ] = "4MiB",
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
        name, nodes, _parse_rate(rate), link.measure_link if check else None,
        send_buffer_bytes=units.parse_bytes(send_buffer, "--send-buffer"),
    )  # fmt: skip
    if json:
        print_json(cluster.to_json())
    else:
        print_line(_sentence(cluster))
    if mismatch := link.describe_mismatch(cluster.link):
        note(f"warning: {mismatch}")
    suites = "pingpong contention completion"
    note(f"next: earlybird measure {suites} --quick --launcher cluster:{cluster.name} -o run")


def list_(format: Format = FORMAT) -> None:
    """List the running clusters."""
    clusters = state.all_running()
    values = [cluster.to_json() | {"lost_nodes": cluster.lost_nodes()} for cluster in clusters]
    csv = ("name", "nodes", "rate_bytes_per_s", "tcp_bytes_per_s", "latency_s", "lost_nodes")
    rows = [
        (one.name, len(one.nodes), one.rate_bytes_per_s, *_measured(one), one.lost_nodes())
        for one in clusters
    ]
    if print_data(format, {"clusters": values}, [dict(zip(csv, row, strict=True)) for row in rows], csv):
        return
    if clusters:
        header = ("name", "nodes", "rate", "TCP bandwidth", "latency", "state")
        print_rows(header, list(map(_cells, clusters)))
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
    nodes = {key: one for k, one in enumerate(cluster.nodes) for key in (str(k), one.name, one.address)}
    if node not in nodes:
        raise InputError(
            f"the cluster {cluster.name} has no node {node!r}; its nodes are "
            f"{', '.join(one.name for one in cluster.nodes)}"
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
    launcher = ClusterLauncher(choose_flavour(mpi), cluster, threads=threads)
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
        status = _run_to_completion(arguments, environment)
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


def _parse_rate(text: str) -> float:
    if units.is_plain_number(text):
        raise InputError(f"--rate is {text!r} without a unit; give 10mbit to 32gbit, such as 100mbit")
    try:
        return units.parse_bandwidth(text, "--rate")
    except InputError as error:
        raise InputError(f"--rate is {text!r}; give 10mbit to 32gbit, such as 200mbit or 2gbit") from error


def _without_dashes(command: list[str]) -> list[str]:
    """The command to run, without a leading --."""
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


def _run_to_completion(arguments: list[str], environment: Mapping[str, str]) -> int:
    """The exit status of a command; Ctrl-C terminates it with SIGTERM, so that mpiexec ends its ranks."""
    begin_s = time.time()
    process = subprocess.Popen(arguments, env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        try:
            process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    finally:
        temporary_files.remove_left(begin_s, pids=[process.pid])


def _sentence(cluster: Cluster) -> str:
    first, last = cluster.nodes[0].name, cluster.nodes[-1].name
    text = f"{cluster.name} is up: {first} to {last}, links of {_rate(cluster)} each way"
    if not cluster.link:
        return text
    measured = {n: units.format_bandwidth(rate) for n, rate in cluster.link["bandwidth_bytes_per_s"].items()}
    shared = ", ".join(f"{rate} in {n} streams" for n, rate in measured.items() if n != "1")
    expected, incast = (
        units.format_bandwidth(cluster.link[f"{name}_bytes_per_s"]) for name in ("expected", "incast")
    )
    return (
        f"{text}; TCP bandwidth {measured['1']} of {expected} ({shared}; {incast} if all send to one), "
        f"latency {units.format_seconds(cluster.link['latency_s'])}"
    )


def _measured(cluster: Cluster) -> tuple[float | None, float | None]:
    """TCP bandwidth in B/s and latency in s of one link; None if the links were not measured."""
    return cluster.link.get("bandwidth_bytes_per_s", {}).get("1"), cluster.link.get("latency_s")


def _cells(cluster: Cluster) -> list[str]:
    bandwidth, latency_s = _measured(cluster)
    measured = ["not measured", ""]
    if cluster.link:
        measured = [units.format_bandwidth(bandwidth), units.format_seconds(latency_s)]
    lost = cluster.lost_nodes()
    status = f"lost {', '.join(lost)}: stop it with down" if lost else "up"
    return [cluster.name, str(len(cluster.nodes)), _rate(cluster), *measured, status]


def _rate(cluster: Cluster) -> str:
    bits = 8 * cluster.rate_bytes_per_s
    return f"{bits / 1e9:g} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:g} Mbit/s"


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
