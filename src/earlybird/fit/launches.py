"""The context that all launches of a fit have in common; runs with different contexts are rejected."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.data import kernels
from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import BOOKKEEPING, is_set_by_launcher
from earlybird.data.profile import USUAL_CONTEXT
from earlybird.data.run import Run, Sample
from earlybird.data.units import format_bandwidth

_LAUNCH_KEYS = ("flavour", "version", "launcher")
# Kept if all launches agree; differences here do not change the cost of messages.
_NOTED_KEYS = ("library_version", "thread_level")
_MACHINE_KEYS = ("cpu_model", "cores")
# Limits at which a point-to-point message between host buffers changes its protocol. Libraries also report
# dozens of limits of other transports, collectives and devices: a match with one of them is a coincidence.
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
# Variables that force algorithms of collectives.
_FORCING = re.compile(
    r"I_MPI_ADJUST_|(OMPI_MCA_)?coll(_|$)"
    r"|MPIR_CVAR_(I?(BCAST|REDUCE|ALLREDUCE|ALLGATHER|ALLTOALL|GATHER|SCATTER|BARRIER)_|DEVICE_COLLECTIVES$|COLLECTIVE_)"
)
# From this relative difference on a value of a link check deviates from the requested one, as in the check
# itself.
LINK_TOLERANCE = 0.05
_OLD_TRANSPORTS = {"shared memory": "intra-node", "network": "inter-node"}


@dataclass(frozen=True)
class LaunchContext:
    """The `context` of a profile; the protocol thresholds that the MPI reports, by level; the rate of virtual
    links; and warnings about their checks.
    """

    context: dict[str, Any]
    thresholds_bytes: dict[str, dict[str, int]]
    link_bytes_per_s: float | None
    warnings: tuple[str, ...]


def launch_context(runs: Sequence[Run], used: Sequence[tuple[Run, Sample]], names: str) -> LaunchContext:
    """Return the context of the launches of the samples `used`; raise InputError if they differ in relevant
    settings.
    """
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
    """Return a launch of pipelines without its threads and contexts, or of collectives without the variables
    that force their algorithms: the points contain these settings, and each has its own model.
    """
    if launch.get("kernel") == kernels.COLLECTIVE.name:
        # Keep what the user forces: the points do not contain it, and it changes `default`.
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
    if launch.get("kernel") != kernels.PIPELINE.name:
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
    """Return the outermost level between the ranks of a launch."""
    sockets = [(entry.get("node"), entry.get("socket")) for entry in launch.get("placement") or ()]
    if len({node for node, _ in sockets}) > 1:
        return "inter_node"
    return "inter_socket" if len(set(sockets)) > 1 else "intra_socket"


def _transport(by_level, names: str) -> dict[str, Any]:
    """Return one transport per level: messages inside a node and between nodes use different ones."""
    transports: dict[str, str] = {}
    for level, launches in by_level.items():
        reported = ({"transport": _transport_of(launch)} for launch in launches)
        if common := _common(reported, ("transport",), f"{names}, {level}"):
            transports[level] = common["transport"]
    if len(set(transports.values())) == 1:
        return {"transport": next(iter(transports.values()))}
    return {"transport": transports} if transports else {}


def _transport_of(launch) -> str | None:
    name = launch.get("transport")
    return None if name == "unknown" else _OLD_TRANSPORTS.get(name, name)


def _placement(by_level) -> dict[str, Any]:
    """Return level -> the measured layouts and the binding of their ranks, in the order of the launches."""
    descriptions = {
        level: [
            f"{launch['layout']} bound to {launch['binding']}"
            for launch in launches
            if "layout" in launch and "binding" in launch
        ]
        for level, launches in by_level.items()
    }
    placement = {level: list(dict.fromkeys(found)) for level, found in descriptions.items() if found}
    return {"placement": placement} if placement else {}


def _require_one_environment(launches, names: str) -> None:
    """Reject launches with different MPI variables of the user; a launch without a record agrees with any."""
    recorded = [launch for launch in launches if isinstance(launch.get("environment"), Mapping)]
    variables = {name: None for launch in recorded for name in launch["environment"]}
    for name in variables:
        if BOOKKEEPING.match(name):
            continue
        values = {
            launch["environment"].get(name) for launch in recorded if not is_set_by_launcher(launch, name)
        }
        if len(values) > 1:
            first, second = sorted("not set" if value is None else repr(value) for value in values)[:2]
            raise InputError(
                f"{names}: the environment variable {name} is {first} in one part and {second} in another; "
                "a profile describes one context: fit them separately"
            )


def _common(descriptions: Iterable[Mapping[str, Any]], keys: tuple[str, ...], names: str) -> dict[str, Any]:
    """Return the values of `keys` in all descriptions; a description without a key agrees with any value."""
    common: dict[str, Any] = {}
    for description in descriptions:
        for key in keys:
            value = description.get(key)
            if value is None:
                continue
            if common.setdefault(key, value) != value:
                raise InputError(
                    f"{names}: {key} is {common[key]!r} in one part and {value!r} in another; "
                    "a profile describes one context: fit them separately"
                    f"{', or select one with --mpi' if key == 'flavour' else ''}"
                )
    return common


def _unusual(launches, names: str) -> dict[str, Any]:
    """Return the entries of `USUAL_CONTEXT` that have another value in all launches."""
    reported = (
        {key: usual if launch.get(key) is None else launch[key] for key, usual in USUAL_CONTEXT.items()}
        for launch in launches
    )
    common = _common(reported, tuple(USUAL_CONTEXT), names)
    return {key: value for key, value in common.items() if value != USUAL_CONTEXT[key]}


def _link_bytes_per_s(launches) -> float | None:
    # All launches have the same network, see `_unusual`, so any launch with a rate will do.
    links = [launch.get("link") for launch in launches]
    rates = (link.get("expected_bytes_per_s") for link in links if isinstance(link, Mapping))
    return next((rate for rate in rates if rate), None)


def _link_warnings(launches) -> tuple[str, ...]:
    """Return the deviations in the checks of a virtual cluster's links before a measurement: one warning for
    each check, since all launches of a session have the same one.
    """
    checks: dict[str, list[Mapping[str, Any]]] = {}
    for launch in launches:
        link = launch.get("link")
        if isinstance(link, Mapping) and link.get("matches") is False:
            checks.setdefault(json.dumps(link, sort_keys=True), []).append(launch)
    return tuple(_link_warning(checked, len(launches)) for checked in checks.values())


def _link_warning(launches, num_launches: int) -> str:
    link, at_start = launches[0]["link"], launches[0].get("link_at_start")
    requested, measured = link.get("expected_bytes_per_s"), _link_figures(link)
    values = (
        f": requested {format_bandwidth(requested)}, measured {', '.join(measured)}"
        if requested and measured
        else ""
    )
    passed = isinstance(at_start, Mapping) and at_start.get("matches") is True
    before = "; the longer check at the start of the cluster did not" if passed else ""
    return (
        f"inter_node: one check of the virtual links, of one second before the measurement, deviated{values}"
        f"{before}; it is in the record of {len(launches)} of {num_launches} launches. It covers only that "
        "second, when cores may have been busy, and not the samples: compare the fitted bandwidths with "
        "the requested rate, and measure again if they deviate too"
    )


def _link_figures(link: Mapping[str, Any]) -> list[str]:
    """Return the deviating values of a check, or all values if none deviates on its own."""
    requested = link.get("expected_bytes_per_s")
    streams = link.get("slowest_node_bytes_per_s") or {}
    found = {
        f"at the slowest node with {n} stream{'s' if int(n) > 1 else ''}": rate for n, rate in streams.items()
    }
    found["with all nodes sending to one"] = link.get("incast_bytes_per_s")
    known = {where: rate for where, rate in found.items() if rate}
    off = {
        where: rate
        for where, rate in known.items()
        if requested and abs(rate / requested - 1) > LINK_TOLERANCE
    }
    return [f"{format_bandwidth(rate)} {where}" for where, rate in (off or known).items()]


def _noted(launches) -> dict[str, Any]:
    values = {key: [launch[key] for launch in launches if key in launch] for key in _NOTED_KEYS}
    return {
        key: found[0] for key, found in values.items() if found and all(item == found[0] for item in found)
    }


def _control_variables(launches, names: str) -> dict[str, Any]:
    reported = [launch.get("control_variables") or {} for launch in launches]
    return _common(reported, tuple(dict.fromkeys(name for values in reported for name in values)), names)


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
