"""How the time of a prediction grows with ranks and messages, next to SimGrid's for simulating the exchange.

Exchanges between near ranks on nodes of 2 x 64: of 64 to 8192 ranks with as many messages per rank as parts
of a mesh have neighbours, and with as many as in the largest exchange of Thune et al. 2023. A prediction is a
Predictor and its first prediction, by an assumed profile. SimGrid runs the exchange once, on as many
simulated cores; from the first size on that takes longer than a minute it is left out. About three minutes.
"""

import argparse
import contextlib
import io
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.commands import say
from bench.log_plot import Curve, log_plot
from bench.predictor import (
    MEAN_SIZE_BYTES,
    PER_RANK,
    RANKS_OF_A_NODE,
    ROUNDS,
    UNEVENNESS,
    assumed_profile,
)
from earlybird.data.errors import InputError
from earlybird.data.files import write_text
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import profile_from_json
from earlybird.data.simulated_machine import parse_simulated_machine
from earlybird.data.units import format_seconds
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.simgrid import SimgridLauncher
from earlybird.machine.flavours import SIMULATED, find_flavour
from earlybird.patterns.near_exchange import near_exchange
from earlybird.predict import Predictor
from earlybird.present.render.terminal import print_table
from earlybird.toolchain.build import require_built

RANKS = tuple(1 << k for k in range(6, 14))
SPARSE = 20
MODELS = ("staircase", "fair")
MAX_SIMULATED_S = 60.0
# The kernel exchanges once: it stops after `min_iterations` if its budget is spent.
ONCE = Rules(min_iterations=1, budget_s=1e-9)
COLOURS = {"staircase": "#4c72b0", "fair": "#55a868", "SimGrid": "#dd8452"}


class Row(NamedTuple):
    """Times of one exchange: of predicting it by each of MODELS, and of simulating it, None if left out.

    `start_s` is the time of simulating a single message among as many ranks: their start.
    """

    ranks: int
    per_rank: int
    num_messages: int
    predicted_s: dict[str, float]
    simulated_s: float | None = None
    start_s: float | None = None


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; with --save also write it, and the plot, to a folder."""
    parser = argparse.ArgumentParser(prog="python -m bench predictor-growth", description=__doc__)
    parser.add_argument("--save", type=Path, help="folder for predictor-growth.txt and .svg")
    parser.add_argument("--most-ranks", type=int, default=RANKS[-1], help="default: %(default)s")
    options = parser.parse_args(list(arguments))
    ranks = [count for count in RANKS if count <= options.most_ranks]
    if len(ranks) < 2:
        parser.error(f"--most-ranks is {options.most_ranks}; give {RANKS[1]} or more")
    if options.save and not options.save.is_dir():
        parser.error(f"--save {options.save} is no folder; give one that exists")
    rows = list(_measured(ranks))
    text = table(rows)
    print(text, end="")
    if options.save:
        write_text(options.save / "predictor-growth.txt", text)
        write_text(options.save / "predictor-growth.svg", plot(rows))
    return 0


def _measured(counts: Sequence[int]) -> Iterator[Row]:
    """Both densities: the dense one only where there are enough ranks, which are too many for SimGrid."""
    simulating = _simgrid_is_built()
    for ranks in counts:
        row = _predicted(ranks, SPARSE)
        if simulating:
            row = row._replace(simulated_s=simulated_s(_pattern(ranks, SPARSE), ranks))
            simulating = row.simulated_s is not None
        if row.simulated_s is not None:
            row = row._replace(start_s=simulated_s(Pattern.from_arrays([0], [1], [1]), ranks))
        say(f"{ranks} ranks: done")
        yield row
    for ranks in counts:
        if ranks > 2 * PER_RANK:
            yield _predicted(ranks, PER_RANK)


def _simgrid_is_built() -> bool:
    try:
        require_built(find_flavour(SIMULATED))
    except InputError as error:
        say(f"without SimGrid: {error}")
        return False
    return True


def _pattern(ranks: int, per_rank: int) -> Pattern:
    return near_exchange(ranks, per_rank, mean_size_bytes=MEAN_SIZE_BYTES, unevenness=UNEVENNESS)


def _layout(ranks: int) -> str:
    nodes = max(1, ranks // RANKS_OF_A_NODE)
    return f"{nodes}x2x{ranks // nodes // 2}"


def _predicted(ranks: int, per_rank: int) -> Row:
    pattern, layout = _pattern(ranks, per_rank), parse_layout(_layout(ranks))
    profile = profile_from_json(assumed_profile(0))
    times_s: dict[str, list[float]] = {model: [] for model in MODELS}
    for _ in range(ROUNDS):
        for model in MODELS:
            begin_s = time.perf_counter()
            Predictor(pattern, layout).predict(profile, model)
            times_s[model].append(time.perf_counter() - begin_s)
    medians_s = {model: float(np.median(found)) for model, found in times_s.items()}
    return Row(ranks, per_rank, pattern.num_messages, medians_s)


def simulated_s(pattern: Pattern, ranks: int) -> float | None:
    """Elapsed time of SimGrid for one exchange of `pattern`, with the start of its ranks; None if it is
    longer than MAX_SIMULATED_S. Raises SystemExit if it fails otherwise."""
    text = _layout(ranks)
    request = Request(
        "growth", "exchange", [{}], parse_layout(text), ONCE, pattern,
        time_limit_s=MAX_SIMULATED_S, stall_limit_s=MAX_SIMULATED_S,
    )  # fmt: skip
    launcher = SimgridLauncher(find_flavour(SIMULATED), parse_simulated_machine(text))
    with tempfile.TemporaryDirectory() as folder:
        launched = launcher.launch(request, Path(folder), lambda *_: None)
    took_s: float = launched.record["duration_s"]
    if launched.cause and took_s < MAX_SIMULATED_S:
        raise SystemExit(f"SimGrid failed for {text}: {launched.cause}")
    return None if launched.cause else took_s


def table(rows: Sequence[Row]) -> str:
    """The text of the table, with what its times are."""
    cells = [
        [
            row.ranks, row.num_messages, *(format_seconds(row.predicted_s[model]) for model in MODELS),
            *("" if value is None else format_seconds(value) for value in (row.simulated_s, row.start_s)),
        ]
        for row in rows
    ]  # fmt: skip
    most = format_seconds(MAX_SIMULATED_S)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        print(f"staircase, fair: a Predictor and its first prediction, medians of {ROUNDS}")
        print(f"SimGrid: one exchange with the start of its ranks, if that takes less than {most}")
        print_table(["ranks", "messages", *MODELS, "SimGrid", "start"], cells)
    return text.getvalue()


def plot(rows: Sequence[Row]) -> str:
    """The SVG of all times by ranks; dashed: the dense exchanges."""
    curves = {}
    for per_rank in (SPARSE, PER_RANK):
        chosen = [row for row in rows if row.per_rank == per_rank]
        found = {model: [(row.ranks, row.predicted_s[model]) for row in chosen] for model in MODELS}
        found["SimGrid"] = [(row.ranks, row.simulated_s) for row in chosen if row.simulated_s is not None]
        for name, points in found.items():
            if points:
                curves[f"{name}, {per_rank} per rank"] = Curve(points, COLOURS[name], per_rank == PER_RANK)
    return log_plot(
        curves, f"ranks, each with {SPARSE} or {PER_RANK} messages in the mean", "time of one exchange",
        format_seconds,
    )  # fmt: skip
