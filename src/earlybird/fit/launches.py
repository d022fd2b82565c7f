"""What the launches of a fit's runs have in common: its context; runs that differ in it are refused."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.profile import USUAL_CONTEXT
from earlybird.data.run import Run, Sample
from earlybird.data.units import format_bandwidth

_LAUNCH_KEYS = ("flavour", "version", "launcher")
# Kept where all launches agree; a difference here does not change what messages cost.
_NOTED_KEYS = ("library_version", "thread_level")
_MACHINE_KEYS = ("cpu_model", "cores")
# Where a point-to-point message between host buffers changes its protocol. A library tells dozens of limits
# of other transports, collectives and devices besides: one of those in the right place is a coincidence.
_INSIDE_A_NODE = (
    "btl_sm_eager_limit",
    "btl_vader_eager_limit",
    "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD",
    "MPIR_CVAR_CH4_IPC_XPMEM_P2P_THRESHOLD",
)
_THRESHOLDS = {
    "intra_socket": _INSIDE_A_NODE,
    "inter_socket": _INSIDE_A_NODE,
    "inter_node": ("btl_tcp_eager_limit",),
}
# Variables that differ from launch to launch without a difference in what messages cost.
_BOOKKEEPING = re.compile(r"(SLURM_|EARLYBIRD_|PMI)|.*_ALLOW_RUN_AS_ROOT")
# What the launcher sets by itself, for launch records that do not say so (`set_by_launcher`).
_BY_LAUNCHER = re.compile(
    r"MPIR_CVAR_POLLS_BEFORE_YIELD$|OMPI_MCA_mpi_yield_when_idle$"
    r"|I_MPI_THREAD_YIELD$|I_MPI_FABRICS$|I_MPI_PIN"
)
# What forces algorithms of collectives, one by one or as a whole.
_FORCING = re.compile(
    r"I_MPI_ADJUST_|(OMPI_MCA_)?coll(_|$)"
    r"|MPIR_CVAR_(I?(BCAST|REDUCE|ALLREDUCE|ALLGATHER|ALLTOALL|GATHER|SCATTER|BARRIER)_|DEVICE_COLLECTIVES$|COLLECTIVE_)"
)
# How far from what was asked a figure of a link check counts as deviating, as the check itself does.
LINK_TOLERANCE = 0.05
_OLD_TRANSPORTS = {"shared memory": "intra-node", "network": "inter-node"}


@dataclass(frozen=True)
class LaunchContext:
    """`context` as a profile holds it; by level, where the MPI says that protocols change; the rate of
    virtual links and what their checks found."""

    context: dict[str, Any]
    thresholds_bytes: dict[str, dict[str, int]]
    link_bytes_per_s: float | None
    warnings: tuple[str, ...]


def launch_context(runs: Sequence[Run], used: Sequence[tuple[Run, Sample]], names: str) -> LaunchContext:
    """Of the launches that the samples `used` are of; InputError where they differ in what matters."""
    launches = _launches_of(runs, used)
    context = _common(launches.values(), _LAUNCH_KEYS, names)
    _common((run.header.get("machine", {}) for run in runs), _MACHINE_KEYS, names)
    _require_one_environment(launches.values(), names)
    by_level = _launches_by_level(used, launches)
    between_nodes = by_level.get("inter_node", [])
    return LaunchContext(
        context=context
        | _unusual(launches.values(), names)
        | _transport(by_level, names)
        | _placement(by_level)
        | _noted(list(launches.values())),
        thresholds_bytes=_thresholds(by_level, _control_variables(launches.values(), names)),
        link_bytes_per_s=_link_bytes_per_s(between_nodes),
        warnings=_link_warnings(between_nodes),
    )


def _launches_of(runs, used) -> dict[tuple[str, str], Mapping[str, Any]]:
    wanted = {(run.id, sample.launch) for run, sample in used}
    launches = {
        (run.id, str(launch.get("id"))): _without_settings_of_points(launch)
        for run in runs
        for launch in run.launches()
    }
    return {key: launch for key, launch in launches.items() if key in wanted}


def _without_settings_of_points(launch: Mapping[str, Any]) -> Mapping[str, Any]:
    """A launch of pipelines without its threads and contexts, or of collectives without what forces their
    algorithms: points say those, models are fitted to each."""
    if launch.get("kernel") == "collective":
        # What a person forces is not what the points say: `default` is another algorithm then.
        ours = launch.get("set_by_launcher")
        variables = {
            "environment": lambda name: ours is None or name in ours,
            "control_variables": lambda name: True,
        }
        return dict(launch) | {
            key: {
                name: value
                for name, value in launch[key].items()
                if not (_FORCING.match(name) and is_ours(name))
            }
            for key, is_ours in variables.items()
            if isinstance(launch.get(key), Mapping)
        }
    if launch.get("kernel") != "pipeline":
        return launch
    ours = {*(launch.get("set_by_launcher") or ()), "MPIR_CVAR_CH4_NUM_VCIS"}
    variables = {k: v for k, v in (launch.get("control_variables") or {}).items() if k not in ours}
    return {k: v for k, v in launch.items() if k != "threads_per_rank"} | {"control_variables": variables}


def _launches_by_level(used, launches) -> dict[str, list[Mapping[str, Any]]]:
    keys: dict[str, dict[tuple[str, str], None]] = {}
    for run, sample in used:
        key = run.id, sample.launch
        level = sample.config["level"] if "level" in sample.config else _outermost(launches.get(key, {}))
        keys.setdefault(level, {})[key] = None
    return {level: [launches[key] for key in members if key in launches] for level, members in keys.items()}


def _outermost(launch) -> str:
    """The level of a launch whose ranks use all levels that there are between them."""
    places = [(entry.get("node"), entry.get("socket")) for entry in launch.get("placement") or ()]
    if len({node for node, _ in places}) > 1:
        return "inter_node"
    return "inter_socket" if len(set(places)) > 1 else "intra_socket"


def _transport(by_level, names: str) -> dict[str, Any]:
    """One transport per level, since messages inside a node and between nodes travel differently."""
    transports: dict[str, str] = {}
    for level, launches in by_level.items():
        told = ({"transport": _transport_of(launch)} for launch in launches)
        if common := _common(told, ("transport",), f"{names}, {level}"):
            transports[level] = common["transport"]
    if len(set(transports.values())) == 1:
        return {"transport": next(iter(transports.values()))}
    return {"transport": transports} if transports else {}


def _transport_of(launch) -> str | None:
    name = launch.get("transport")
    return None if name == "unknown" else _OLD_TRANSPORTS.get(name, name)


def _placement(by_level) -> dict[str, Any]:
    """level -> the layouts measured and what their ranks were bound to, in the order of the launches."""
    words = {
        level: [
            f"{launch['layout']} bound to {launch['binding']}"
            for launch in launches
            if "layout" in launch and "binding" in launch
        ]
        for level, launches in by_level.items()
    }
    placement = {level: list(dict.fromkeys(found)) for level, found in words.items() if found}
    return {"placement": placement} if placement else {}


def _require_one_environment(launches, names: str) -> None:
    """Refuse launches whose users set MPI's variables differently; one without a record agrees with any."""
    told = [launch for launch in launches if isinstance(launch.get("environment"), Mapping)]
    variables = {name: None for launch in told for name in launch["environment"]}
    for name in variables:
        if _BOOKKEEPING.match(name):
            continue
        values = {launch["environment"].get(name) for launch in told if not _set_by_launcher(launch, name)}
        if len(values) > 1:
            one, other = sorted("not set" if value is None else repr(value) for value in values)[:2]
            raise InputError(
                f"{names}: the environment variable {name} is {one} in one part and {other} in another; "
                "a profile holds for one context: fit them apart"
            )


def _set_by_launcher(launch, name: str) -> bool:
    listed = launch.get("set_by_launcher")
    return bool(_BY_LAUNCHER.match(name)) if listed is None else name in listed


def _common(descriptions: Iterable[Mapping[str, Any]], keys: tuple[str, ...], names: str) -> dict[str, Any]:
    """What all descriptions say under `keys`; a description that lacks a key agrees with any value."""
    common: dict[str, Any] = {}
    for description in descriptions:
        for key in keys:
            value = description.get(key)
            if value is None:
                continue
            if common.setdefault(key, value) != value:
                raise InputError(
                    f"{names}: {key} is {common[key]!r} in one part and {value!r} in another; "
                    "a profile holds for one context: fit them apart"
                )
    return common


def _unusual(launches, names: str) -> dict[str, Any]:
    """The keys of `USUAL_CONTEXT` where all launches say something else."""
    told = (
        {key: usual if launch.get(key) is None else launch[key] for key, usual in USUAL_CONTEXT.items()}
        for launch in launches
    )
    common = _common(told, tuple(USUAL_CONTEXT), names)
    return {key: value for key, value in common.items() if value != USUAL_CONTEXT[key]}


def _link_bytes_per_s(launches) -> float | None:
    # One network for all, see `_unusual`, so any launch that tells stands for the others.
    links = [launch.get("link") for launch in launches]
    rates = (link.get("expected_bytes_per_s") for link in links if isinstance(link, Mapping))
    return next((rate for rate in rates if rate), None)


def _link_warnings(launches) -> tuple[str, ...]:
    """What a check of a virtual cluster's links before measuring found that was not asked for: once for each
    check, since all launches of a session hold the same one."""
    checks: dict[str, list[Mapping[str, Any]]] = {}
    for launch in launches:
        link = launch.get("link")
        if isinstance(link, Mapping) and link.get("matches") is False:
            checks.setdefault(json.dumps(link, sort_keys=True), []).append(launch)
    return tuple(_link_warning(found, len(launches)) for found in checks.values())


def _link_warning(launches, of_launches: int) -> str:
    link, begun = launches[0]["link"], launches[0].get("link_at_start")
    asked, told = link.get("expected_bytes_per_s"), _link_figures(link)
    said = f", asked {format_bandwidth(asked)} and found {', '.join(told)}" if asked and told else ""
    kept = isinstance(begun, Mapping) and begun.get("matches") is True
    before = ", other than the longer check when the cluster was started" if kept else ""
    return (
        f"inter_node: one check of the virtual links, which lasts a second before measuring, deviated{said}"
        f"{before}; it stands in the record of {len(launches)} of {of_launches} launches. It tells of that "
        "second, when cores may have been busy, not of the samples: compare the bandwidths fitted here with "
        "what was asked, and measure again where they deviate too"
    )


def _link_figures(link: Mapping[str, Any]) -> list[str]:
    """What a check found to deviate, or all of it where no figure does alone."""
    asked = link.get("expected_bytes_per_s")
    streams = link.get("slowest_node_bytes_per_s") or {}
    found = {
        f"at the slowest node with {n} stream{'s' if int(n) > 1 else ''}": rate for n, rate in streams.items()
    }
    found["where all sent to one"] = link.get("incast_bytes_per_s")
    known = {where: rate for where, rate in found.items() if rate}
    off = {where: rate for where, rate in known.items() if asked and abs(rate / asked - 1) > LINK_TOLERANCE}
    return [f"{format_bandwidth(rate)} {where}" for where, rate in (off or known).items()]


def _noted(launches) -> dict[str, Any]:
    values = {key: [launch[key] for launch in launches if key in launch] for key in _NOTED_KEYS}
    return {
        key: found[0] for key, found in values.items() if found and all(item == found[0] for item in found)
    }


def _control_variables(launches, names: str) -> dict[str, Any]:
    told = [launch.get("control_variables") or {} for launch in launches]
    return _common(told, tuple(dict.fromkeys(name for values in told for name in values)), names)


def _thresholds(by_level, variables: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    found = {
        level: {
            name: int(variables[name])
            for name in _THRESHOLDS[level]
            if isinstance(variables.get(name), int | float) and variables[name] > 0
        }
        for level in by_level
    }
    return {level: limits for level, limits in found.items() if limits}
