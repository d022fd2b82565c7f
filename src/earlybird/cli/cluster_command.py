"""`earlybird cluster`: virtual clusters on this machine, up, listed, used and down again."""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.chosen_mpi import choose_flavour
from earlybird.cli.common import FORMAT, JSON, Format, make_group, note, print_csv, print_json, print_table
from earlybird.cli.options import MpiOption, ThreadsOption
from earlybird.data import units
from earlybird.data.errors import InputError, WorkError
from earlybird.launch import interpose, temporary_files
from earlybird.launch.cluster import control, link, state
from earlybird.launch.cluster.node import TEMPORARY
from earlybird.launch.cluster.state import Cluster
from earlybird.toolchain.build import require_library

_END_LIMIT_S = 10.0

NameOption = Annotated[
    str, typer.Option("--name", help="Which cluster; not needed where only one is running.")
]


def up(
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 2,
    rate: Annotated[
        str, typer.Option(help="What every node's link carries in each direction, such as 200mbit.")
    ] = "200mbit",
    name: Annotated[str, typer.Option(help="What to call it.")] = "virtual",
    check: Annotated[bool, typer.Option(help="Measure the links: 3 s.")] = True,
    json: bool = JSON,
) -> None:
    """Start a cluster: nodes with a network, host name, processes and shared memory of their own.

    Needs root or user namespaces, `earlybird doctor` says which. `down` ends it, and so do a
    crash of its keeper and a reboot: nothing is left behind.
    """
    cluster = control.up(name, nodes, _parse_rate(rate), link.measure_link if check else None)
    if json:
        print_json(cluster.to_json())
    else:
        print(_sentence(cluster))
    if mismatch := link.describe_mismatch(cluster.link):
        note(f"warning: {mismatch}")
    suites = "pingpong contention completion"
    note(f"next: earlybird measure {suites} --quick --launcher cluster:{cluster.name} -o run")


def list_(format: Format = FORMAT, json: bool = JSON) -> None:
    """The clusters that are running."""
    clusters = state.all_running()
    if json or format is Format.json:
        told = [cluster.to_json() | {"lost_nodes": cluster.lost_nodes()} for cluster in clusters]
        print_json({"clusters": told})
        return
    if format is Format.csv:
        header = ["name", "nodes", "rate_bytes_per_s", "tcp_bytes_per_s", "latency_s", "lost_nodes"]
        print_csv(header, [_values(cluster) for cluster in clusters])
    elif clusters:
        rows = [[*_cells(cluster), _state(cluster)] for cluster in clusters]
        print_table(["name", "nodes", "rate", "TCP gets", "latency", "state"], rows)
    else:
        print("no cluster is running; start one with: earlybird cluster up --nodes 4 --rate 200mbit")


def run(
    node: Annotated[str, typer.Argument(help="Which node, such as node0 or 0.")],
    command: Annotated[list[str], typer.Argument(help="What to run there.")],
    name: NameOption = "",
) -> None:
    """Run a command on a node; the exit status is the command's own."""
    cluster = state.find(name)
    names = {key: each for k, each in enumerate(cluster.nodes) for key in (str(k), each.name, each.address)}
    if node not in names:
        raise InputError(
            f"the cluster {cluster.name} has no node {node!r}; its nodes are "
            f"{', '.join(each.name for each in cluster.nodes)}"
        )
    if not names[node].process.runs():
        raise WorkError(cluster.trouble() or f"{names[node].name} has died")
    words = _own_words(command)
    _warn_of_job(cluster)
    # Joining a node's mounts leads to its root folder; the command is to begin where the person stands.
    shell = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", os.getcwd()]
    words = [*cluster.node_words(names[node]), *shell, *words]
    os.execvpe(words[0], words, os.environ | {"TMPDIR": TEMPORARY})


def mpiexec(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments.")],
    layout: Annotated[str, typer.Option(help="NODESxSOCKETSxRANKS, ranks per socket, or a CSV.")],
    map_by: Annotated[str, typer.Option(help="How the layout numbers ranks: core, socket or node.")] = "core",
    mpi: MpiOption = None,
    threads: ThreadsOption = 1,
    name: NameOption = "",
) -> None:
    """Run an MPI program of your own on the nodes; the exit status is mpiexec's.

    Inside `earlybird exec` its ranks get libearlybird.
    """
    from earlybird.data.layout import parse_layout
    from earlybird.launch.cluster.launcher import ClusterLauncher

    cluster = state.find(name)
    launcher = ClusterLauncher(choose_flavour(mpi), cluster, threads=threads)
    where = parse_layout(layout, map_by)
    launcher.check(where)
    words = _own_words(command)
    cluster.require_whole()
    _warn_of_job(cluster)
    with tempfile.TemporaryDirectory(prefix="earlybird-") as folder:
        made = launcher.invocation(where, Path(folder))
        environment = launcher.mpi.environment() | made.env
        words = [*made.words, *words]
        if interpose.inside():
            require_library(launcher.mpi)
            words, environment = interpose.through_shim(words, launcher.mpi, environment)
        status = _run_to_its_end(words, environment)
    cluster.require_whole()  # Open MPI's mpiexec may end with 0 when a node dies
    raise typer.Exit(status)


def down(
    name: NameOption = "",
    all_: Annotated[bool, typer.Option("--all", help="End every cluster of this user.")] = False,
) -> None:
    """End a cluster and every process in it."""
    if all_ and name:
        raise InputError(f"--all ends every cluster and --name names {name!r}; give one of the two")
    for each in [cluster.name for cluster in state.all_running()] if all_ else [state.find(name).name]:
        control.down(each)
        print(f"{each} is down")


def _parse_rate(text: str) -> float:
    try:
        return units.parse_bandwidth(text, "--rate")
    except InputError as error:
        raise InputError(f"--rate is {text!r}; give 10mbit to 32gbit, such as 200mbit or 2gbit") from error


def _own_words(command: list[str]) -> list[str]:
    """The command to run, of what stood after the options: with or without -- before it."""
    words = command[1:] if command[0] == "--" else command
    if not words or words[0].startswith("-"):
        raise InputError(
            f"{' '.join(command)} is no command to run; give options first, then the command and its own"
        )
    return words


def _warn_of_job(cluster: Cluster) -> None:
    if (job := state.job_on(cluster)) is not None:
        note(f"warning: {job} is measuring on the cluster {cluster.name}, and what runs now disturbs it")


def _run_to_its_end(words: list[str], environment: Mapping[str, str]) -> int:
    """The exit status of a command; on Ctrl-C it is asked to end, so that mpiexec takes its ranks along."""
    begin_s = time.time()
    process = subprocess.Popen(words, env=environment)
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
        temporary_files.remove_left(begin_s)


def _sentence(cluster: Cluster) -> str:
    first, last = cluster.nodes[0].name, cluster.nodes[-1].name
    text = f"{cluster.name} is up: {first} to {last}, links of {_rate(cluster)} each way"
    if not cluster.link:
        return text
    shared = ", ".join(
        f"{units.format_bandwidth(value)} in {n} streams"
        for n, value in cluster.link["bandwidth_bytes_per_s"].items()
        if n != "1"
    )
    return (
        f"{text}; TCP gets {units.format_bandwidth(cluster.link['bandwidth_bytes_per_s']['1'])} of "
        f"{units.format_bandwidth(cluster.link['expected_bytes_per_s'])} ({shared}; "
        f"{units.format_bandwidth(cluster.link['incast_bytes_per_s'])} where all send to one), latency "
        f"{units.format_seconds(cluster.link['latency_s'])}"
    )


def _values(cluster: Cluster) -> list[Any]:
    """A line of the csv, blank where the links were not measured."""
    measured = cluster.link.get("bandwidth_bytes_per_s", {}).get("1"), cluster.link.get("latency_s")
    return [
        cluster.name,
        len(cluster.nodes),
        cluster.rate_bytes_per_s,
        *measured,
        " ".join(cluster.lost_nodes()),
    ]


def _cells(cluster: Cluster) -> list[str]:
    told = ["not measured", ""]
    if cluster.link:
        told = [
            units.format_bandwidth(cluster.link["bandwidth_bytes_per_s"]["1"]),
            units.format_seconds(cluster.link["latency_s"]),
        ]
    return [cluster.name, str(len(cluster.nodes)), _rate(cluster), *told]


def _rate(cluster: Cluster) -> str:
    bits = 8 * cluster.rate_bytes_per_s
    return f"{bits / 1e9:g} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:g} Mbit/s"


def _state(cluster: Cluster) -> str:
    lost = cluster.lost_nodes()
    return f"{', '.join(lost)} gone: end it with down" if lost else "up"


command = make_group(
    [
        ("up", up, "earlybird cluster up --nodes 4 --rate 200mbit"),
        ("list", list_, "earlybird cluster list --json"),
        ("run", run, "earlybird cluster run node0 -- hostname"),
        ("mpiexec", mpiexec, "earlybird cluster mpiexec --mpi mpich --layout 4x1x2 -- ./app"),
        ("down", down, "earlybird cluster down"),
    ],
    name="cluster",
    help="Several nodes on this one machine: a virtual cluster of Linux namespaces.",
)
# What follows the first word that is no option belongs to the command to run: `cluster run node0 ls -la`.
for _name in ("run", "mpiexec"):
    command.commands[_name].allow_interspersed_args = False
