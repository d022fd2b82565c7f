"""What libearlybird takes at scale: memory of 10,000 requests, starts of 1000 requests that learn together,
and MPI_Init with an empty cache, with that of an earlier run, and with none.

Two ranks in shared memory. Memory is what the library allocates and by how much the process grows, per
request, after three starts. The starts of 1000 requests are those of libearlybird, of one message per request
(EARLYBIRD_SEGMENTS=1), and of one per partition, in launches in turn, each with an empty cache; the median
over launches of the total time of starts 2 to 63 and of the last 64. A way that takes longer than a minute is
left out.
"""

import argparse
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench import mpi_comparison
from bench.commands import chosen_flavours, say
from earlybird.data.errors import WorkError
from earlybird.data.units import format_seconds
from earlybird.machine.flavours import Flavour
from earlybird.present.render.terminal import print_rows
from earlybird.toolchain.build import library_path
from tests.partitioned import run_ranks

NAME = "partitioned-scale"
PROGRAMS = Path(__file__).parents[1] / "tests" / "native" / "programs"
LAUNCHES = 5
CACHE = "EARLYBIRD_CACHE"
# Requests, partitions, bytes of each.
HELD = ((100, 4, 2048), (10_000, 4, 2048), (10_000, 32, 256))
# Requests, partitions, bytes of each, delay of the last partitions in us.
TOGETHER = ((1000, 4, 2048, 0), (1000, 4, 2048, 1000), (1000, 32, 4096, 0))
STARTS, EARLY, LAST = 160, slice(1, 63), slice(-64, None)
WAYS: dict[str, dict[str, str]] = {
    "libearlybird": {},
    "one message": {"EARLYBIRD_SEGMENTS": "1", "EARLYBIRD_NODE_PATH": "off"},
    "one per partition": {"EARLYBIRD_SEGMENTS": "partition", "EARLYBIRD_NODE_PATH": "off"},
}
LIMIT_S = 300
# Open MPI 5.0.11 takes 3 to 8 s for 32,000 messages of 4 KiB that are under way together, with or without
# libearlybird, and a hundredth of it for a tenth of them.
TOGETHER_LIMIT_S = 60


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and print the tables of each MPI."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {NAME}", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--launches", type=int, help=f"of each way; default {LAUNCHES}")
    options = parser.parse_args(list(arguments))

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="earlybird-") as folder:
            for flavour in chosen_flavours(options.mpi):
                _report(flavour, Path(folder), options.launches or LAUNCHES)

    return mpi_comparison.run(NAME, options, work)


def _report(flavour: Flavour, folder: Path, launches: int) -> None:
    held = _compile(flavour, "channel_memory", folder, "-rdynamic")
    together = _compile(flavour, "channels_together", folder)
    print(f"\n{flavour.name}: bytes per request, allocated by the library and of the process")
    rows = []
    for requests, partitions, size in HELD:
        output = _run(flavour, [held, requests, partitions, size, 3, 0], {CACHE: "off"})
        found = {key: int(num) for key, num in re.findall(r"^(\w+ \w+) (-?\d+)$", output, re.MULTILINE)}
        keys = [f"{side} {kind}" for side in ("sender", "receiver") for kind in ("holds", "resident")]
        rows.append([f"{requests:,}", partitions, size, *(f"{found[key]:,}" for key in keys)])
    print_rows(
        ["requests", "partitions", "bytes of each", "sender", "its process", "receiver", "its process"], rows
    )
    _report_together(flavour, together, folder, launches)
    _report_init(flavour, together, folder, launches)


def _report_together(flavour: Flavour, program: Path, folder: Path, launches: int) -> None:
    print(f"\n{flavour.name}: a start of all requests, median of {launches} launches")
    rows = []
    for requests, partitions, size, late_us in TOGETHER:
        totals_s: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for launch in range(launches):
            for way, variables in WAYS.items():
                if launch > 0 and way not in totals_s:
                    continue
                env = variables | {
                    CACHE: str(folder / f"{flavour.name}-{requests}-{size}-{late_us}-{launch}")
                }
                command = [program, requests, partitions, size, STARTS, late_us]
                output = _run(flavour, command, env, TOGETHER_LIMIT_S)
                taken_s = np.array([float(num) for num in re.findall(r"^start (\S+)$", output, re.MULTILINE)])
                if len(taken_s) == STARTS:
                    totals_s[way].append((float(taken_s[EARLY].mean()), float(taken_s[LAST].mean())))
            say(f"launch {launch + 1} of {launches}, {flavour.name}")
        medians = {way: np.median(np.array(of_way), axis=0) for way, of_way in totals_s.items()}
        for block, name in enumerate(("2 to 63", "the last 64")):
            times_s = [float(medians[way][block]) if way in medians else np.inf for way in WAYS]
            shown = [format_seconds(time_s) if np.isfinite(time_s) else "too long" for time_s in times_s]
            ratio = times_s[0] / min(times_s[1:])
            rows.append([requests, partitions, size, late_us, name, *shown, f"{ratio:.2f}"])
    print_rows(
        ["requests", "partitions", "bytes of each", "us late", "starts", *WAYS, "ours / the better"], rows
    )


def _report_init(flavour: Flavour, program: Path, folder: Path, launches: int) -> None:
    taken_s: dict[str, list[float]] = defaultdict(list)
    for launch in range(launches):
        cache = str(folder / f"{flavour.name}-init-{launch}")
        runs = {
            "the MPI alone": {"EARLYBIRD_OFF": "1"},
            "empty cache": {CACHE: cache},
            "kept by an earlier run": {CACHE: cache},
            "EARLYBIRD_CACHE=off": {CACHE: "off"},
        }
        for name, env in runs.items():
            output = _run(flavour, [program, 0, 1, 1, 0, 0], env)
            found = re.search(r"^init (\S+)$", output, re.MULTILINE)
            assert found is not None
            taken_s[name].append(float(found[1]))
    print(f"\n{flavour.name}: MPI_Init, median of {launches} launches")
    print_rows(
        ["cache", "time"], [[name, format_seconds(float(np.median(of)))] for name, of in taken_s.items()]
    )


def _run(
    flavour: Flavour, command: Sequence[object], env: dict[str, str], left_out_s: float | None = None
) -> str:
    """The output; what there is of it after `left_out_s`."""
    words = [str(word) for word in command]
    status, output = run_ranks(flavour, 2, words, env, left_out_s or LIMIT_S)
    if status != 0 and (status is not None or left_out_s is None):
        raise WorkError(
            f"{Path(str(command[0])).name} on {flavour.name} ended with {status}: {output[-2000:]}"
        )
    return output


def _compile(flavour: Flavour, name: str, folder: Path, *options: str) -> Path:
    program, lib = folder / f"{name}-{flavour.name}", library_path(flavour).parent
    command = [
        flavour.mpicc,
        "-O1",
        "-w",
        *options,
        PROGRAMS / f"{name}.c",
        "-o",
        program,
        "-ldl",
        f"-L{lib}",
    ]
    command += ["-Wl,--no-as-needed", "-learlybird", f"-Wl,-rpath,{lib}"]
    subprocess.run([str(word) for word in command], check=True, env=flavour.environment())
    return program
