"""Our ping-pong compared with the Intel MPI Benchmarks' on the same MPI: interleaved, medians of ratios.

IMB-MPI1 comes inside the Intel MPI wheel and runs on that MPI alone. Both send the same buffer again and
again (`buffers=reuse` here, IMB's default) and the cores are the same. IMB prints the mean over all round
trips, so ours is taken as the mean over steady iterations as well.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import print_table
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.units import format_bytes, format_seconds
from earlybird.launch import mpiexec, placement
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine import flavours, hardware
from earlybird.models.statistics import median_ratio_interval

LAUNCHES = 12
LOG2_LARGEST = 22
SIZES_BYTES = [1 << k for k in range(LOG2_LARGEST + 1)]
RESULT = Path("bench-imb-pingpong.json")


def main() -> int:
    """Compare, print the table, keep every launch's figures in RESULT; 0 also when no IMB is here."""
    try:
        flavour = flavours.find_flavour("intel")
        launcher = MpiexecLauncher(flavour)
        launcher.check(parse_layout("1x1x2"))
    except InputError as error:
        note(f"imb-pingpong skipped: {error}")
        return 0
    ours, theirs = [], []
    for launch in range(LAUNCHES):
        # Which goes first alternates, so that neither always meets what the other left.
        for turn in (0, 1):
            if (launch + turn) % 2:
                theirs.append(_imb(flavour))
            else:
                ours.append(_earlybird(launcher))
        note(f"launch {launch + 1} of {LAUNCHES}")
    RESULT.write_text(json.dumps({"size_bytes": SIZES_BYTES, "earlybird_s": ours, "imb_s": theirs}, indent=1))
    _report(np.array(ours), np.array(theirs), flavour)
    return 0


def _report(ours: np.ndarray, theirs: np.ndarray, flavour: flavours.Flavour) -> None:
    rows, ratios = [], []
    for k, size in enumerate(SIZES_BYTES):
        ratio, low, high = median_ratio_interval(ours[:, k], theirs[:, k])
        ratios.append(ratio)
        mine, other = (format_seconds(float(np.median(times[:, k]))) for times in (ours, theirs))
        rows.append([format_bytes(size), mine, other, f"{ratio:.3f}", f"{low:.3f}..{high:.3f}"])
    print(f"\nhalf round trip, Intel MPI {flavour.version}, {LAUNCHES} interleaved launches of each")
    print_table(["size", "earlybird", "IMB-MPI1", "ratio", "95 %"], rows)
    worst = int(np.argmax(np.abs(np.array(ratios) - 1)))
    where = format_bytes(SIZES_BYTES[worst])
    print(f"median over sizes {np.median(ratios):.3f}, worst {ratios[worst]:.3f} at {where}")


def _earlybird(launcher: MpiexecLauncher) -> list[float]:
    same = {"mpi": "intel", "level": "intra_socket", "buffers": "reuse"}
    points = [same | {"size_bytes": size} for size in SIZES_BYTES]
    request = Request("0", "pingpong", points, parse_layout("1x1x2"), Rules(budget_s=0.1, min_iterations=50))
    with tempfile.TemporaryDirectory() as folder:
        launched = launcher.launch(request, Path(folder), lambda *output: None)
    if launched.cause is not None:
        raise SystemExit(f"the ping-pong died: {launched.cause}")
    return [float(np.mean(sample.steady_times_s())) for sample in launched.samples]


def _imb(flavour: flavours.Flavour) -> list[float]:
    layout = parse_layout("1x1x2")
    binding = placement.bind_local(layout, hardware.cores_by_socket())
    with tempfile.TemporaryDirectory() as folder:
        start = mpiexec.invocation(flavour, 2, binding, Path(folder), oversubscribed=False)
    words = [
        *start.before_program,
        str(flavour.mpicc.parent / "IMB-MPI1"),
        "-msglog",
        f"0:{LOG2_LARGEST}",
        "PingPong",
    ]
    environment = flavour.environment() | start.env
    finished = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=True)
    # Its times have two decimals of a microsecond, too few for small messages; its MB/s (1e6 B/s) tell more.
    rows = re.findall(r"^\s+(\d+)\s+\d+\s+[\d.]+\s+([\d.]+)\s*$", finished.stdout, re.MULTILINE)
    megabytes_per_s = {int(size): float(rate) for size, rate in rows}
    return [size * 1e-6 / megabytes_per_s[size] for size in SIZES_BYTES]
