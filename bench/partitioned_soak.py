"""Random partitioned transfers, every byte checked, in launches of every kind that libearlybird knows.

Launches differ in ranks, thread level, the library's settings, numbers of lanes, whether the library keeps
what it learns, a tool underneath, and completion by Fortran where the MPI has it; each draws communicators,
datatypes, tags, numbers of partitions, info keys, threads, restarts and completion calls from a seed of its
own, which is printed when it fails.
Then two transfers of more than 2^31 bytes, where 6 GiB of memory are free.
"""

import argparse
import itertools
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.commands import chosen_flavours, say
from earlybird.data.contexts import context_variables
from earlybird.machine.flavours import Flavour
from earlybird.present.render.terminal import print_rows
from earlybird.toolchain.build import native_prefix, native_sources, require_library
from tests.partitioned import PLANS_FROM_64_BYTES, run_cases, run_ranks

TRANSFERS = 1_000_000
OF_A_LAUNCH = 10_000
LIMIT_S = 600
LARGE_CASES = [
    f"more_than_2_to_the_31_bytes_in_{number}_deliver" for number in ("one_partition", "four_partitions")
]
LARGE_MEMORY_BYTES = 6 << 30
RANKS = (2, 3, 4)
# Costs at which the three paths are tried one after another.
MIXED_PATHS = {
    "EARLYBIRD_COSTS": " ".join(
        f"{path}_protocols=0:{latency_s}:1e-7:1e6"
        for path, latency_s in (("intra_node", 3e-6), ("node_ring", 2e-6), ("node_direct", 1e-6))
    )
}
LEVELS = ("funneled", "serialized", "multiple")
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"EARLYBIRD_SEGMENTS": "partition"},
    {"EARLYBIRD_SEGMENTS": "4"},
    {"EARLYBIRD_TAG_BITS": "15"},
    {"EARLYBIRD_TAG_BITS": "15", "EARLYBIRD_TESTS_WITHOUT_TAGS": "1"},
    {"EARLYBIRD_PROGRESS_THREAD": "1"},
    PLANS_FROM_64_BYTES,
)
WITHIN_NODE: tuple[dict[str, str], ...] = (
    PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "ring"},
    PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "direct"},
    MIXED_PATHS,
)
LANES = (1, 2, 3, 4, 16)


@dataclass(frozen=True)
class Programs:
    """What a flavour's launches run: the transfers, compiled without libearlybird, and a tool that counts."""

    transfers: Path
    tool: Path
    has_fortran: bool
    cache: Path


def main(arguments: Sequence[str] = ()) -> int:
    """Run so many transfers on each MPI and print a table; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m bench partitioned-soak", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--transfers", type=int, default=TRANSFERS, help=f"of each MPI; default {TRANSFERS}")
    parser.add_argument("--seed", type=int, default=1, help="of the first launch; default 1")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="of each MPI at most; default no limit"
    )
    parser.add_argument(
        "--within-node",
        action="store_true",
        help="only launches whose data travels without messages: each path forced, and both tried in turn",
    )
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES, help=f"to draw from; default {LANES}")
    options = parser.parse_args(list(arguments))
    flavours = chosen_flavours(options.mpi)
    for flavour in flavours:
        require_library(flavour)
    rows = [_soak(flavour, options) for flavour in flavours]
    print_rows(["MPI", "transfers", "launches", "with a tool", "Fortran", "minutes", "failed"], rows)
    return 0


def _soak(flavour: Flavour, options: argparse.Namespace) -> list[object]:
    random_of_launches = random.Random(options.seed)
    done = launches = with_tool = 0
    begin_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        programs = _compile(flavour, Path(folder))
        for seed in itertools.count(options.seed):
            if done >= options.transfers or time.monotonic() - begin_s > 60 * options.minutes:
                break
            uses_tool = random_of_launches.random() < 0.3
            lanes = random_of_launches.choice(options.lanes)
            settings = WITHIN_NODE if options.within_node else SETTINGS + WITHIN_NODE
            env = random_of_launches.choice(settings)
            done += _launch(flavour, programs, seed, random_of_launches, uses_tool, lanes, env)
            launches += 1
            with_tool += uses_tool
            if launches % 10 == 0:
                say(f"{flavour.name}: {done} of {options.transfers} transfers")
    if not options.within_node:
        _send_large(flavour)
    minutes = (time.monotonic() - begin_s) / 60
    fortran = "yes" if programs.has_fortran else "not there"
    return [flavour.name, done, launches, with_tool, fortran, f"{minutes:.1f}", 0]


def _launch(
    flavour: Flavour,
    programs: Programs,
    seed: int,
    draw: random.Random,
    uses_tool: bool,
    lanes: int,
    env: dict[str, str],
) -> int:
    """How many transfers a launch checked; ends the program when it failed."""
    ranks, level = draw.choice(RANKS), draw.choice(LEVELS)
    # Half of the launches without contexts for the lanes.
    contexts = lanes if flavour.family == "mpich" and draw.random() < 0.5 else None
    cache = draw.choice(("off", str(programs.cache)))
    env = env | {"EARLYBIRD_LANES": str(lanes), "EARLYBIRD_CACHE": cache}
    env |= context_variables(flavour.family, contexts)
    library = native_prefix(flavour) / "lib" / "libearlybird.so"
    preloaded = [library, *([programs.tool] if uses_tool else [])]
    arguments = ["--transfers", OF_A_LAUNCH, "--seed", seed, "--level", level, "--seconds", LIMIT_S]
    command = ["env", f"LD_PRELOAD={' '.join(map(str, preloaded))}", programs.transfers, *arguments]
    status, output = run_ranks(flavour, ranks, command, env, LIMIT_S)
    counted = re.search(r"^transfers (\d+)", output, re.MULTILINE)
    if status != 0 or counted is None:
        say(output[-3000:])
        sys.exit(
            f"partitioned-soak: {flavour.name}, {ranks} ranks, {level}, {env}, tool {uses_tool}: seed {seed} "
            f"ended with status {status}"
        )
    return int(counted[1])


def _send_large(flavour: Flavour) -> None:
    """Ends the program when a transfer of more than 2^31 bytes failed."""
    if psutil.virtual_memory().available < LARGE_MEMORY_BYTES:
        say(
            f"{flavour.name}: no transfer of more than 2^31 bytes, because less than 6 GiB of memory are free"
        )
        return
    for name, outcome in run_cases(flavour, 2, LARGE_CASES, timeout_s=240).items():
        if outcome.status != "ok":
            sys.exit(f"partitioned-soak: {flavour.name}, {name}: {outcome.status}, {outcome.why}")


def _compile(flavour: Flavour, folder: Path) -> Programs:
    sources = native_sources() / "tests"
    program, tool = folder / "transfers", folder / "tool.so"
    own = [sources / f"{name}.c" for name in ("partitioned_stress", "case", "report")]
    arguments = [flavour.mpicc, "-std=gnu11", "-O1", "-D_GNU_SOURCE", f"-I{sources.parent / 'include'}", *own]
    arguments += ["-pthread", "-ldl", "-o", program]
    fortran = ["-DWITH_FORTRAN", "-lmpifort"]
    has_fortran = _compiles(flavour, [*arguments, *fortran])
    if not has_fortran and not _compiles(flavour, arguments):
        sys.exit(f"partitioned-soak: {sources / 'partitioned_stress.c'} does not compile for {flavour.name}")
    (folder / "tool.c").write_text(TOOL)
    if not _compiles(flavour, [flavour.mpicc, "-shared", "-fPIC", folder / "tool.c", "-o", tool]):
        sys.exit(f"partitioned-soak: the tool does not compile for {flavour.name}")
    cache = folder / "cache"
    cache.mkdir()
    return Programs(program, tool, has_fortran, cache)


def _compiles(flavour: Flavour, arguments: Sequence[object]) -> bool:
    made = subprocess.run([str(word) for word in arguments], env=flavour.environment(), capture_output=True)
    return made.returncode == 0


# Below libearlybird, which calls the MPI past it; the program's other calls pass through it.
TOOL = """#include <mpi.h>
static long num_sends;
int MPI_Isend(const void *data, int num, MPI_Datatype type, int peer, int tag, MPI_Comm c, MPI_Request *r) {
  num_sends++;
  return PMPI_Isend(data, num, type, peer, tag, c, r);
}
int MPI_Waitall(int num, MPI_Request *requests, MPI_Status *statuses) {
  num_sends += num;
  return PMPI_Waitall(num, requests, statuses);
}
"""
