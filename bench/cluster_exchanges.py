"""Irregular exchanges over a virtual cluster, predicted by every model and replayed on real MPI.

Random patterns, meshes, halos, hubs and dense exchanges, at a rate where the link and not the cores is the
limit: 42 patterns, none of which a model was fitted to. About eight minutes for an MPI.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from bench.exchange_patterns import exchanges
from earlybird.cli.output.printing import print_table
from earlybird.data.pattern import save_pattern

LAUNCHES = 3


def main(words: Sequence[str] = ()) -> int:
    """Measure, predict and replay; print the errors and keep them in a file."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster-exchanges", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks-per-node", type=int, default=2, help="times --nodes, a power of two")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--scale", type=float, default=1.0, help="of most message sizes")
    parser.add_argument(
        "--json", type=Path, default=Path("bench-cluster-exchanges.json"), help="file to write"
    )
    options = parser.parse_args(list(words))
    ranks = options.nodes * options.ranks_per_node
    if options.nodes < 2 or options.ranks_per_node < 1 or ranks & (ranks - 1):
        parser.error(f"{options.nodes} x {options.ranks_per_node} are {ranks} ranks, not a power of two")
    layout = f"{options.nodes}x1x{options.ranks_per_node}"
    found: dict[str, Any] = {"layout": layout, "rate": options.rate, "scale": options.scale, "mpis": {}}
    with tempfile.TemporaryDirectory() as folder, virtual_cluster(options.nodes, options.rate) as name:
        patterns = {}
        for what, pattern in exchanges(ranks, options.scale).items():
            patterns[what] = Path(folder) / f"{what.replace(' ', '-')}.npz"
            save_pattern(pattern, patterns[what])
        for mpi in options.mpi or built_mpis():
            found["mpis"][mpi] = _compare(mpi, name, layout, patterns, Path(folder) / mpi)
            options.json.write_text(json.dumps(found, indent=1))
            print(f"\n{mpi}, {layout} at {options.rate}: {len(patterns)} patterns")
            _report(found["mpis"][mpi])
    return 0


def _compare(mpi: str, name: str, layout: str, patterns: dict[str, Path], folder: Path) -> dict[str, Any]:
    say(f"{mpi}: measuring the cluster")
    folder.mkdir()
    where = ["--mpi", mpi, "--launcher", f"cluster:{name}", "--quiet"]
    runs = [folder / "contention", folder / "completion"]
    for run, budget in zip(runs, ("60s", "30s"), strict=True):
        earlybird(
            "measure", run.name, "--quick", "--launches", LAUNCHES, "--budget", budget, *where, "-o", run
        )
    profile = folder / "profile.json"
    earlybird("fit", *runs, "-o", profile)
    compared = {}
    for number, (what, path) in enumerate(patterns.items()):
        say(f"{mpi}: {what} ({number + 1} of {len(patterns)})")
        compared[what] = earlybird(
            "replay", path, "--layout", layout, "--profile", profile, "--launches", LAUNCHES,
            "--budget", "5s", *where, "-o", folder / path.stem,
        )  # fmt: skip
    return compared


def _report(compared: dict[str, Any]) -> None:
    """The errors of each model over all patterns."""
    rows = []
    for model in next(iter(compared.values()))["error"]:
        error = np.array([one["error"][model] for one in compared.values()])
        slowest = np.array([one["slowest_error"][model] for one in compared.values()])
        worst = slowest[int(np.argmax(np.abs(slowest)))]
        rows.append([
            model, f"{100 * np.median(error):.1f} %", f"{100 * error.max():.1f} %",
            f"{100 * np.median(np.abs(slowest)):.1f} %", f"{100 * np.quantile(np.abs(slowest), 0.9):.1f} %",
            f"{100 * worst:+.1f} %",
        ])  # fmt: skip
    print_table(
        ["model", "(11) median", "(11) worst", "slowest rank median", "9 of 10 within", "worst"], rows
    )
