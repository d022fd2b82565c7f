"""Irregular exchanges over a virtual cluster, predicted by every model and replayed on real MPI.

Random patterns and meshes over 4 nodes of 2 ranks, at a rate where the link and not the cores is the limit.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.cli.output.printing import print_table

NODES, RANKS, RATE = 4, 8, "200mbit"
LAYOUT = f"{NODES}x1x{RANKS // NODES}"
RANDOM_SEEDS = range(1, 21)
# Cells and bytes per cell of three meshes made here, so that messages have some 30 to 600 KB.
MESHES = ((20_000, 400), (60_000, 400), (150_000, 200))
LAUNCHES = 3
RESULT = Path("bench-cluster-exchanges.json")


def main() -> int:
    """Measure, predict and replay; print the errors and keep them in RESULT."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, virtual_cluster(NODES, RATE) as name:
        patterns = _patterns(Path(folder))
        for mpi in built_mpis():
            found[mpi] = _compare(mpi, name, patterns, Path(folder) / mpi)
            RESULT.write_text(json.dumps(found, indent=1))
            _report(mpi, found[mpi])
    return 0


def _patterns(folder: Path) -> dict[str, Path]:
    """8 to 48 messages of 40 to 900 KB between ranks drawn at random, and the ghost cells of three meshes."""
    made = {}
    for seed in RANDOM_SEEDS:
        made[f"random {seed}"] = path = folder / f"random-{seed}.csv"
        earlybird(
            "pattern", "random", "--ranks", RANKS, "--messages", 8 + 7 * seed % 41, "--min-size", "40kB",
            "--max-size", "900kB", "--distribution", "uniform", "--seed", seed, "-o", path,
        )  # fmt: skip
    for cells, bytes_per_cell in MESHES:
        made[f"mesh {cells}"] = path = folder / f"mesh-{cells}.csv"
        earlybird(
            "pattern", "mesh", "--parts", RANKS, "--cells", cells, "--bytes-per-cell", bytes_per_cell,
            "-o", path,
        )  # fmt: skip
    return made


def _compare(mpi: str, name: str, patterns: dict[str, Path], folder: Path) -> dict[str, Any]:
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
            "replay", path, "--layout", LAYOUT, "--profile", profile, "--launches", LAUNCHES,
            "--budget", "8s", *where, "-o", folder / path.stem,
        )  # fmt: skip
    return compared


def _report(mpi: str, compared: dict[str, Any]) -> None:
    for kind, words in (("", "patterns"), ("random", "of them random"), ("mesh", "of them meshes")):
        chosen = [one for what, one in compared.items() if what.startswith(kind)]
        rows = []
        for model in chosen[0]["error"]:
            error = [one["error"][model] for one in chosen]
            slowest = [one["slowest_error"][model] for one in chosen]
            worst = slowest[int(np.argmax(np.abs(slowest)))]
            rows.append([
                model, f"{100 * np.median(error):.1f} %", f"{100 * max(error):.1f} %",
                f"{100 * np.median(np.abs(slowest)):.1f} %", f"{100 * worst:+.1f} %",
            ])  # fmt: skip
        print(f"\n{mpi}, {LAYOUT} at {RATE}: {len(chosen)} {words}")
        print_table(["model", "(11) median", "(11) worst", "slowest rank median", "worst"], rows)
