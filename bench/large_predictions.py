"""What commands take that predict exchanges of 8192 ranks: 27 million messages, and nodes of one rank.

Exchanges between near ranks as those of `predictor`, 3296 and 335 messages of a rank, in a compressed `.npz`,
by its assumed profile. A command is `earlybird predict FILE.npz --profile P --layout LAYOUT --model MODEL
--json`: elapsed and processor time, and its largest memory. Two minutes, half of it for making the exchanges.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.commands import watched
from bench.predictor import MEAN_SIZE_BYTES, PER_RANK, UNEVENNESS, assumed_profile
from earlybird.data.pattern import save_pattern
from earlybird.data.units import format_bytes, format_seconds
from earlybird.patterns.near_exchange import near_exchange
from earlybird.present.render.terminal import print_rows

RANKS, MANY_PER_RANK = 8192, 3296
# Messages of a rank, layout, model.
COMMANDS = (
    (MANY_PER_RANK, "64x2x64", "staircase"),
    (MANY_PER_RANK, "64x2x64", "fair"),
    (MANY_PER_RANK, "64x2x64", "queue"),
    (PER_RANK, f"{RANKS}x1x1", "fair"),
)


def main(arguments: Sequence[str] = ()) -> int:
    """Print a row for each command, medians of the rounds."""
    parser = argparse.ArgumentParser(prog="python -m bench large-predictions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args(list(arguments))
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; give 1 or more")
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows(Path(folder), options.rounds)
    print_rows(["messages", "layout", "model", "elapsed", "processor", "memory"], rows, left=["model"])
    return 0


def _rows(folder: Path, rounds: int) -> list[list[str]]:
    profile, num_messages = folder / "profile.json", {}
    profile.write_text(json.dumps(assumed_profile(0)))
    for per_rank in (PER_RANK, MANY_PER_RANK):
        pattern = near_exchange(RANKS, per_rank, mean_size_bytes=MEAN_SIZE_BYTES, unevenness=UNEVENNESS)
        save_pattern(pattern, folder / f"{per_rank}.npz")
        num_messages[per_rank] = pattern.num_messages
    rows = []
    for per_rank, layout, model in COMMANDS:
        path = folder / f"{per_rank}.npz"
        options = "--profile", profile, "--layout", layout, "--model", model, "--json"
        found = [watched("predict", path, *options) for _ in range(rounds)]
        columns = ((one.elapsed_s, one.processor_s, one.memory_bytes) for one in found)
        elapsed_s, processor_s, memory_bytes = np.median(list(columns), axis=0).tolist()
        messages = f"{num_messages[per_rank] / 1e6:.2f} M"
        rows.append([
            messages, layout, model, format_seconds(elapsed_s), format_seconds(processor_s),
            format_bytes(memory_bytes),
        ])  # fmt: skip
    return rows
