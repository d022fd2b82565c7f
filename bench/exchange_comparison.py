"""What comparisons of predicted with replayed exchanges share: the profile, the replays and the table."""

import argparse
import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.compare.times import exchange_samples, measured_times
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.data.run import Run, Sample
from earlybird.data.simulated_machine import SimulatedMachine
from earlybird.data.units import format_bandwidth
from earlybird.machine.flavours import SIMULATED
from earlybird.present.render.terminal import print_rows

# What is listed next to the models: the times of another launch.
LAUNCH = "(a launch)"
# Of simulated NICs: 25 Gbit/s, which two cores fill.
LINK_LIMITS_BYTES_PER_S = 3.125e9


def save_patterns(patterns: Mapping[str, Pattern], folder: Path) -> dict[str, Path]:
    """Write each pattern to a file in `folder`."""
    paths = {what: folder / f"{what.replace(' ', '-')}.npz" for what in patterns}
    for what, path in paths.items():
        save_pattern(patterns[what], path)
    return paths


def measured_profile(where: Sequence[Any], folder: Path, budgets: Mapping[str, str]) -> Path:
    """The profile of a machine: its suites, each with its budget, measured with the options `where`."""
    folder.mkdir()
    for suite, budget in budgets.items():
        earlybird("measure", suite, "--quick", "--budget", budget, *where, "-o", folder / suite)
    profile = folder / "profile.json"
    earlybird("fit", *(folder / suite for suite in budgets), "-o", profile)
    return profile


class Place(NamedTuple):
    """Where exchanges are replayed.

    Attributes
    ----------
    description : for headings.
    options : of commands there.
    profile : measured there.
    rounds : in which alternatives are replayed by turns; simulated times do not vary.
    """

    description: str
    options: Sequence[Any]
    profile: Path
    folder: Path
    rounds: int


def link_limited_machine(
    nodes: int, cores: int, nic_bytes_per_s: float = LINK_LIMITS_BYTES_PER_S
) -> SimulatedMachine:
    """Nodes of one socket, on one switch."""
    default = SimulatedMachine(nodes=nodes, sockets=1, cores=cores)
    # A single message between nodes gets what the NIC or the core moves.
    one = min(nic_bytes_per_s, default.levels["intra_socket"].bandwidth_bytes_per_s)
    between = replace(default.levels["inter_node"], bandwidth_bytes_per_s=one)
    return replace(
        default,
        nic_bandwidth_bytes_per_s=nic_bytes_per_s,
        levels=default.levels | {"inter_node": between},
        sources={},
    )


def on_places(
    name: str,
    description: str | None,
    arguments: Sequence[str],
    layout: str,
    rate: str,
    rounds: int,
    compare: Callable[[Place], None],
) -> int:
    """Call `compare` for each MPI on a virtual cluster of as many nodes as `layout` has, or for SIMULATED on
    a simulated machine; the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {name}", description=description)
    parser.add_argument(
        "--mpi", action="append",
        help=f"a flavour, or {SIMULATED} for a simulated machine; repeat for several; default all built",
    )  # fmt: skip
    mpis = parser.parse_args(list(arguments)).mpi or built_mpis()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as clusters:
        cluster = None
        for mpi in mpis:
            of_mpi, nodes = Path(folder) / mpi, parse_layout(layout).num_nodes
            if mpi == SIMULATED:
                file = Path(folder) / "machine.json"
                simulated = link_limited_machine(nodes, parse_layout(layout).num_ranks // nodes)
                file.write_text(json.dumps(simulated.to_json()))
                where = ["--launcher", f"simgrid:{file}", "--launches", 1, "--quiet"]
                links = format_bandwidth(simulated.nic_bandwidth_bytes_per_s)
            else:
                cluster = cluster or clusters.enter_context(virtual_cluster(nodes, rate))
                where, links = ["--mpi", mpi, "--launcher", f"cluster:{cluster}", "--quiet"], rate
            title = f"{mpi}, {layout} at {links}"
            say(f"{title}: measuring")
            profile = measured_profile(where, of_mpi, {"contention": "60s", "completion": "30s"})
            compare(Place(title, where, profile, of_mpi, 1 if mpi == SIMULATED else rounds))
    return 0


def replayed(
    title: str, patterns: Mapping[str, Path], profile: Path, layout: str, where: Sequence[Any], folder: Path
) -> dict[str, Any]:
    """What `replay --json` prints for each pattern, and how far its launches are from each other."""
    compared = {}
    for number, (what, path) in enumerate(patterns.items()):
        say(f"{title}: {what} ({number + 1} of {len(patterns)})")
        compared[what] = earlybird(
            "replay", path, "--layout", layout, "--profile", profile, "--budget", "5s", *where,
            "-o", folder / path.stem,
        )  # fmt: skip
        launches = exchange_samples(Run.load(folder / path.stem).samples())
        if len(launches) > 1:
            add_launches(compared[what], launches)
    return compared


def replayed_by_turns(
    variants: Mapping[str, Sequence[Any]], rounds: int, where: Sequence[Any], folder: Path
) -> dict[str, np.ndarray]:
    """Name -> (rounds,) seconds of the slowest rank: `replay` with the arguments of each variant by turns."""
    slowest_s: dict[str, list[float]] = {name: [] for name in variants}
    for k in range(rounds):
        for number, name in list(enumerate(variants))[:: 1 if k % 2 else -1]:
            found = earlybird(
                "replay", *variants[name], "--launches", 1, "--budget", "3s", *where,
                "-o", folder / f"{number}-{k}",
            )  # fmt: skip
            slowest_s[name].append(max(found["measured_s"]))
    return {name: np.array(values) for name, values in slowest_s.items()}


def describe_ratios(ratios: np.ndarray) -> list[str]:
    """Their median, and the lowest and the highest."""
    return [f"{np.median(ratios):.2f}", f"{ratios.min():.2f} .. {ratios.max():.2f}"]


def add_prediction(compared: dict[str, Any], name: str, times_s: np.ndarray) -> None:
    """Add the two errors of another prediction, (P,) seconds, to what `replay --json` prints."""
    measured_s = np.array(compared["measured_s"])
    compared["error"][name] = float(np.abs(measured_s - times_s).sum() / measured_s.sum())
    compared["slowest_error"][name] = float(times_s.max() / measured_s.max() - 1)


def add_launches(compared: dict[str, Any], launches: Sequence[Sample]) -> None:
    """Add, like a model, a launch as the prediction of the others: the median over launches of each error.

    What differs from launch to launch, no model can predict.
    """
    found = []
    for k, launch in enumerate(launches):
        others_s = measured_times([*launches[:k], *launches[k + 1 :]])
        times_s = measured_times([launch])
        found.append((np.abs(others_s - times_s).sum() / others_s.sum(), times_s.max() / others_s.max() - 1))
    errors, slowest = np.array(found).T
    compared["error"][LAUNCH] = float(np.median(errors))
    compared["slowest_error"][LAUNCH] = float(np.median(np.abs(slowest)))


def report(compared: Mapping[str, Any]) -> None:
    """Print the errors of each model over all patterns, also over the exchange of empty messages if that was
    replayed."""
    every = [_errors(one) for one in compared.values()]
    rows = []
    for model in dict.fromkeys(model for errors in every for model in errors):
        error, slowest = np.array([errors[model] for errors in every if model in errors]).T
        worst = slowest[int(np.argmax(np.abs(slowest)))]
        rows.append([
            model, f"{100 * np.median(error):.1f} %", f"{100 * error.max():.1f} %",
            f"{100 * np.median(np.abs(slowest)):.1f} %", f"{100 * np.quantile(np.abs(slowest), 0.9):.1f} %",
            f"{100 * worst:+.1f} %",
        ])  # fmt: skip
    print_rows(["model", "(11) median", "(11) worst", "slowest rank median", "9 of 10 within", "worst"], rows)


def _errors(compared: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Model -> the relative error and that of the slowest rank."""
    errors = {model: (error, compared["slowest_error"][model]) for model, error in compared["error"].items()}
    empty = compared.get("empty", {"error": {}})
    for model, error in empty["error"].items():
        errors[f"{model} over empty"] = error, empty["slowest_error"][model]
    return errors
