"""Advice on collectives, applied: `default` among 8 virtual nodes, with what --config writes and without.

Profiles are fitted to runs as `collective-accuracy --keep` makes them. Jobs with and without the settings are
launches of their own; in each our binomial tree runs in turn with `default`: their ratio is what is compared.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.collective_accuracy import NODES, RATE, SIZES, measure_runs
from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.data.units import format_bytes
from earlybird.present.render.terminal import print_rows

OPERATIONS = ("bcast", "reduce")
REFERENCE, CHOICE = "own-binomial", "default"
LAUNCHES = 3


def main(arguments: Sequence[str] = ()) -> int:
    """For each run: fit, advise, measure `default` twice, print what was predicted and what was gained."""
    parser = argparse.ArgumentParser(prog="python -m bench collective-advice", description=__doc__)
    parser.add_argument("--from", dest="runs", type=Path, nargs="+", help="runs, one per MPI; else made")
    options = parser.parse_args(list(arguments))
    with tempfile.TemporaryDirectory() as scratch:
        runs = options.runs or measure_runs(built_mpis(), Path(scratch), quick=True)
        with virtual_cluster(NODES, RATE) as name:
            for run in runs:
                folder = Path(scratch) / f"{run.name}-advised"
                folder.mkdir()
                _check(run, folder, name)
    return 0


def _check(run: Path, folder: Path, cluster: str) -> None:
    profile = folder / "profile.json"
    earlybird("fit", run, "-o", profile)
    rows = []
    for operation in OPERATIONS:
        say(f"{run.name}: {operation}, as it comes and as advised")
        config = folder / f"{operation}.rules"
        about = ("--op", operation, "--ranks", NODES, "--map-by", "node", "--mpi-only", "--profile", profile)
        advice = earlybird("advise", "collective", *about, "--config", config)
        plain = _ratios(operation, run.name, cluster, folder / f"{operation}-plain", {})
        output = _ratios(
            operation, run.name, cluster, folder / f"{operation}-told",
            _environment(advice["config"]["use"].replace("FILE", str(config))),
        )  # fmt: skip
        for size in plain:
            method = _set(advice["config"]["regions"], size)
            predicted = earlybird("advise", "collective", *about, "--size", size)["ranked"]
            alike = (one for one in predicted if one["algorithm"] == method.partition(":")[0])
            speed_up = next(alike, {}).get("speed_up")
            rows.append([
                operation, format_bytes(size), method, "" if speed_up is None else f"{speed_up:.2f}",
                f"{plain[size] / output[size]:.2f}",
            ])  # fmt: skip
    print(
        f"\n{run.name}, {NODES} nodes at {RATE}: the time of `default` over that under the settings advised"
    )
    print_rows(["", "size", "advised", "predicted", "measured"], rows)


def _set(regions: Sequence[dict[str, Any]], size: int) -> str:
    """The method that the settings select at `size`."""
    for one in regions:
        if one["from_bytes"] <= size and (one["to_bytes"] is None or size <= one["to_bytes"]):
            return one["method"]
    return CHOICE


def _environment(use: str) -> dict[str, str]:
    """What `use`, a line for a job script, adds to the environment."""
    script = f"{use} >/dev/null && env -0"
    found = subprocess.run(["/bin/sh", "-c", f"set -a; {script}"], capture_output=True, check=True).stdout
    pairs = (item.split("=", 1) for item in found.decode().split("\0") if "=" in item)
    return {name: value for name, value in pairs if os.environ.get(name) != value and name.isidentifier()}


def _ratios(
    operation: str, mpi: str, cluster: str, run: Path, environment: dict[str, str]
) -> dict[int, float]:
    """Times of `default` over those of our binomial tree, by size."""
    measured = earlybird(
        "measure", "collective", "--op", operation, "--algorithm", REFERENCE, "--ranks", NODES, "--map-by",
        "node", "--sizes", SIZES, "--verify", "none", "--mpi", mpi, "--launcher", f"cluster:{cluster}",
        "--launches", LAUNCHES, "--budget", "10s", "--quiet", "-o", run, env=environment,
    )  # fmt: skip
    times_s = {
        (point["size_bytes"], point["method"]): point["time_s"]
        for point in measured["points"]
        if point["operation"] == operation
    }
    return {size: s / times_s[size, REFERENCE] for (size, method), s in times_s.items() if method == CHOICE}
