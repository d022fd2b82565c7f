"""Irregular exchanges over a virtual cluster, predicted by every model and replayed on real MPI.

Random patterns, meshes, halos, hubs and dense exchanges, at a rate where the link and not the cores is the
limit: 42 patterns, none of which a model was fitted to. The row `(a launch)` compares each launch with the
others: what differs between launches, no model can predict. About eight minutes for an MPI.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.commands import built_mpis, say, virtual_cluster
from bench.exchange_comparison import measured_profile, replayed, report, save_patterns
from bench.exchange_patterns import exchanges

LAUNCHES = 3


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, predict and replay; print the errors and keep them in a file."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster-exchanges", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks-per-node", type=int, default=2, help="times --nodes, a power of two")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--send-buffer", default="4MiB", help="see earlybird cluster up")
    parser.add_argument("--scale", type=float, default=1.0, help="of most message sizes")
    parser.add_argument("--keep", type=Path, help="keep patterns, profiles and runs in this folder")
    parser.add_argument(
        "--json", type=Path, default=Path("bench-cluster-exchanges.json"), help="file to write"
    )
    options = parser.parse_args(list(arguments))
    ranks = options.nodes * options.ranks_per_node
    if options.nodes < 2 or options.ranks_per_node < 1 or ranks & (ranks - 1):
        parser.error(f"{options.nodes} x {options.ranks_per_node} are {ranks} ranks, not a power of two")
    layout = f"{options.nodes}x1x{options.ranks_per_node}"
    asked = {"layout": layout, "rate": options.rate, "send_buffer": options.send_buffer}
    found: dict[str, Any] = {**asked, "scale": options.scale, "mpis": {}}
    cluster = virtual_cluster(options.nodes, options.rate, "--send-buffer", options.send_buffer)
    with tempfile.TemporaryDirectory() as scratch, cluster as name:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        patterns = save_patterns(exchanges(ranks, options.scale), folder)
        for mpi in options.mpi or built_mpis():
            found["mpis"][mpi] = _compare(mpi, name, layout, patterns, folder / mpi)
            options.json.write_text(json.dumps(found, indent=1))
            print(f"\n{mpi}, {layout} at {options.rate}: {len(patterns)} patterns")
            report(found["mpis"][mpi])
    return 0


def _compare(mpi: str, name: str, layout: str, patterns: dict[str, Path], folder: Path) -> dict[str, Any]:
    say(f"{mpi}: measuring the cluster")
    where = ["--launches", LAUNCHES, "--mpi", mpi, "--launcher", f"cluster:{name}", "--quiet"]
    profile = measured_profile(where, folder, {"contention": "60s", "completion": "30s"})
    return replayed(mpi, patterns, profile, layout, where, folder)
