"""Selects the launcher and the MPI from a command's options."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from earlybird.data import labels, memory
from earlybird.data.errors import InputError
from earlybird.data.levels import LEVELS
from earlybird.data.mpi_settings import split_settings
from earlybird.data.profile import Profile, load_profile
from earlybird.data.shell_commands import command_text
from earlybird.data.simulated_machine import parse_simulated_machine
from earlybird.launch.choice import choose_flavour, simulated_flavour
from earlybird.launch.cluster import link, state
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.hosts import parse_hosts
from earlybird.launch.launcher import Launcher
from earlybird.launch.local import MpiexecLauncher
from earlybird.launch.several import SeveralMpis, launchers_in
from earlybird.launch.simgrid import SimgridLauncher
from earlybird.launch.slurm import SrunLauncher, num_allocated_nodes
from earlybird.launch.srun_arguments import parse_srun_arguments
from earlybird.machine import flavours, hardware
from earlybird.machine.control_variables import PREFIX, control_variables
from earlybird.measure.groups import DRAWN_METHODS, Library, Resources
from earlybird.measure.synthetic_times import synthetic_launcher
from earlybird.toolchain.build import features, has_library, require_built

Note = Callable[[str], None]  # prints a remark
_LAUNCHERS = ("local", "srun", "cluster", "simgrid", "synthetic")
_SAME_LAUNCHER = {"slurm": "srun", "mpiexec": "local", "mpirun": "local"}


def ignore(text: str) -> None:
    """Discard a remark."""


def launchers_of(
    settings: Mapping[str, Any], seed: int, note: Note = ignore
) -> tuple[Launcher, dict[str, Resources]]:
    """Make the launcher for the one MPI of the settings or for several, with the resources by flavour."""
    names = settings["mpi"] if isinstance(settings["mpi"], list) else [settings["mpi"]]
    compared = tuple(dict.fromkeys(variable for name in names for variable in split_settings(name or "")[1]))
    made = [make_launcher(settings | {"mpi": name}, seed, note, compared) for name in names]
    launchers = tuple(launcher for launcher, _ in made)
    resources = {launcher.flavour: of_mpi for launcher, of_mpi in made}
    if len(made) == 1:
        return launchers[0], resources
    if launchers[0].name == "synthetic":
        raise InputError(
            f"--mpi is given {len(made)} times, but the launcher synthetic draws times without an MPI; "
            "omit --mpi"
        )
    if len(resources) < len(made):
        raise InputError(f"--mpi {names[0]} and the other --mpi are the same MPI; give different ones")
    return SeveralMpis(launchers), resources


def _require_cluster_again(settings: Mapping[str, Any]) -> None:
    """Raise InputError if the cluster of the run is not running; the message has the command that starts it
    again."""
    kind, _, name = settings["launcher"].partition(":")
    links = state.LINKS.fullmatch(settings.get("network") or "")
    if kind != "cluster" or links is None or name in [cluster.name for cluster in state.all_running()]:
        return
    restart = ["earlybird", "cluster", "up", "--nodes", str(settings.get("nodes", "N"))]
    restart += ["--rate", f"{links[1]}mbit", "--name", name]
    if links[2]:
        restart += ["--send-buffer", links[2].replace(" ", "")]
    raise InputError(
        f"the cluster {name} of this run is not running; start it again with `{command_text(restart)}`"
    )


def make_launcher(
    settings: Mapping[str, Any], seed: int = 0, note: Note = ignore, compared: tuple[str, ...] = ()
) -> tuple[Launcher, Resources]:
    """Make the launcher, with its resources, from the settings of a run: `launcher`, `mpi`, `hosts`, `agent`,
    `srun` and `threads`; runs of earlier versions lack some of them.

    `note` prints warnings; `compared` are variables that other launchers of the run set.
    """
    mpi, variables = split_settings(settings.get("mpi") or "")
    launcher, resources = _launcher_of(settings | {"mpi": mpi or None}, seed, note)
    resources = replace(resources, shares_cores=launcher.shares_cores)
    if not variables and not compared:
        return launcher, resources
    if variables and launcher.name == "synthetic":
        raise InputError(
            f"--env has {next(iter(variables))}, but the launcher synthetic draws times without an MPI; "
            "omit it"
        )
    mpi_of = getattr(launcher, "mpi", None)
    if mpi_of is None:
        return launcher, resources
    for name in variables:
        _note_if_unknown(name, mpi_of, note)
    of_mpi: Any = launcher
    return replace(of_mpi, mpi=mpi_of._replace(settings=variables, compared=compared)), resources


def _note_if_unknown(name: str, mpi: flavours.Flavour, note: Note) -> None:
    """Print a remark if the MPI does not know a control variable, and so ignores it."""
    if not name.startswith(PREFIX):
        return
    known = control_variables(mpi)
    if known is not None and name not in known:
        near = difflib.get_close_matches(name, sorted(known), 1)
        guess = f"; the nearest that it has is {near[0]}" if near else ""
        has_not = f"{mpi.name} {mpi.version} has no variable {name}"
        note(f"warning: {has_not}, so --env {name} changes nothing{guess}")


def _launcher_of(settings: Mapping[str, Any], seed: int, note: Note) -> tuple[Launcher, Resources]:
    _require_cluster_again(settings)
    text, mpi, hosts, agent = (settings.get(name) for name in ("launcher", "mpi", "hosts", "agent"))
    threads = settings.get("threads", 1)
    kind, _, argument = text.partition(":")
    if threads < 1:
        raise InputError(f"--threads is {threads}; give 1 or more threads per rank")
    if hosts is not None and text != "local":
        raise InputError(f"--hosts applies to mpiexec, but the launcher is {text!r}; omit one of them")
    srun = settings.get("srun")
    if srun is not None and text != "srun":
        raise InputError(
            f"--srun has arguments for srun, but the launcher is {text!r}; add --launcher srun, or omit it"
        )
    if agent is not None and hosts is None:
        raise InputError(
            f"--agent {agent} starts processes on --hosts, which is missing; give --hosts, or omit --agent"
        )
    if kind == "synthetic" and argument:
        profile = load_profile(argument)
        return synthetic_launcher(profile, seed), _assumed_resources(profile)
    if text == "local":
        flavour = _built(choose_flavour(mpi, note))
        names = parse_hosts(hosts) if hosts is not None else ()
        return MpiexecLauncher(flavour, names, agent, threads), _resources(flavour, max(len(names), 1))
    if text == "srun":
        flavour = _built(choose_flavour(mpi, note))
        given = parse_srun_arguments(srun)
        nodes = num_allocated_nodes(given.component) or 1
        return SrunLauncher(flavour, threads, srun=given), _resources(flavour, nodes)
    if kind == "cluster":
        return _cluster_launcher(argument, threads, settings, note)
    if is_simulated(text):
        return _simgrid_launcher(argument, mpi, threads)
    meant = labels.nearest(kind, [*_LAUNCHERS, *_SAME_LAUNCHER])
    raise InputError(
        labels.with_guess(
            f"--launcher is {text!r}",
            _SAME_LAUNCHER.get(meant, meant),
            "give local, srun, cluster:NAME, simgrid:NODESxSOCKETSxCORES or synthetic:PROFILE.json",
        )
    )


def _simgrid_launcher(machine_text: str, mpi: str | None, threads: int) -> tuple[Launcher, Resources]:
    machine = parse_simulated_machine(machine_text)
    if threads > 1:
        raise InputError(f"--threads is {threads}, but a simulated rank has one thread; omit --threads")
    flavour = _built(simulated_flavour(mpi))
    resources = Resources.of(machine.cores, machine.sockets, machine.nodes)
    return SimgridLauncher(flavour, machine), _with_library(resources, flavour)


def _cluster_launcher(
    name: str, threads: int, settings: Mapping[str, Any], note: Note
) -> tuple[Launcher, Resources]:
    cluster = state.find(name)
    flavour = _built(choose_flavour(settings.get("mpi"), note))
    left_out = frozenset(cluster.lost_nodes() if settings.get("without_dead_nodes") else ())
    cluster.require_whole(left_out)
    state.begin_job(cluster)
    resources = _resources(flavour, len(cluster.nodes), link_bytes_per_s=cluster.rate_bytes_per_s)
    return ClusterLauncher(flavour, cluster, threads=threads, left_out=left_out), resources


def with_link_measured(launcher: Launcher, note: Note = ignore) -> Launcher:
    """Return `launcher` with the measured link bandwidth if it is of a virtual cluster; warn if that differs
    from the configured bandwidth."""
    parts = launchers_in(launcher)
    if not isinstance(parts[0], ClusterLauncher):
        return launcher
    measured = link.measure_link(parts[0].cluster, counts=(1,))
    if mismatch := link.describe_mismatch(measured):
        note(f"warning: {mismatch}")
    checked = tuple(replace(part, link=measured) for part in parts)
    return SeveralMpis(checked) if len(checked) > 1 else checked[0]


def network_of(launcher: Launcher) -> str | None:
    """Return the network to store in a run, which must be the same to continue it; None except for virtual
    clusters and simulated machines."""
    first = launchers_in(launcher)[0]
    return first.network if isinstance(first, ClusterLauncher | SimgridLauncher) else None


def is_simulated(launcher_text: str) -> bool:
    """Return whether `--launcher` states that ranks are simulated by SimGrid."""
    return launcher_text.partition(":")[0] == "simgrid"


def machine_of(launcher: Launcher) -> dict[str, Any]:
    """Return the provenance of a run: the description of this machine, or of the one that `launcher`
    simulates."""
    if not isinstance(launcher, SimgridLauncher):
        return hardware.describe()
    machine = launcher.machine
    return {
        "host": "simulated",
        "cpu_model": f"{machine.shape} cores simulated by SimGrid {launcher.mpi.version}",
        "cores": machine.sockets * machine.cores,
        "cores_per_socket": [machine.cores] * machine.sockets,
        "sockets": machine.sockets,
        "nodes": machine.nodes,
        "simulated": machine.to_json(),
    }


def _built(flavour: flavours.Flavour) -> flavours.Flavour:
    require_built(flavour)
    return flavour


def _resources(flavour: flavours.Flavour, nodes: int, link_bytes_per_s: float | None = None) -> Resources:
    cores = hardware.cores_by_socket()
    resources = Resources.of(min(len(socket) for socket in cores), len(cores), nodes, link_bytes_per_s)
    if cache_bytes := hardware.cache_bytes():
        resources = replace(resources, cache_bytes=cache_bytes)
    return _with_library(resources, flavour)


def _with_library(resources: Resources, flavour: flavours.Flavour) -> Resources:
    capabilities = features(flavour)
    library = Library(
        flavour.name,
        partitioned=capabilities.get("has_partitioned", False),
        streams=capabilities.get("has_streams", False),
        persistent_collectives=capabilities.get("has_persistent_collectives", False),
        earlybird=has_library(flavour),
    )
    memory_bytes = memory.available_memory_bytes()
    return replace(resources, family=flavour.family, library=library, memory_bytes=memory_bytes)


def _assumed_resources(profile: Profile) -> Resources:
    from earlybird.predict.pipelined import FROM_LEVELS, method_models

    def largest(level: str) -> int:
        return max(max(protocol.bandwidth_bytes_per_s) for protocol in profile.levels[level].protocols)

    cores = {level: largest(level) for level in LEVELS if level in profile.levels}
    if not cores:
        raise InputError(
            "the profile of --launcher synthetic has no levels, from which it computes times; give a profile "
            "that was fitted to `measure pingpong contention`"
        )
    # Methods measured on every level; DRAWN_METHODS follow from latency and bandwidth.
    measured = [
        {model.method for model in method_models(profile, level, 1) if model.source != FROM_LEVELS}
        for level in cores
    ]
    return Resources(cores, drawn_methods=DRAWN_METHODS.union(set.intersection(*measured)))
