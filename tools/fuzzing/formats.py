"""The formats that the commands read: for each its original files, and the commands that read them."""

import contextlib
import importlib.util
import io
import itertools
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earlybird.cli import main
from earlybird.data.tables import PINGPONG_HEADER
from tools.configured import ROOT

RECORDED = ROOT / "tests" / "recorded"
GOLDEN = RECORDED / "golden"
BENCHMARKS = RECORDED / "benchmarks"


@dataclass(frozen=True)
class Format:
    """A fuzz target: `files` that are changed, those next to them (`others`), and `commands` that read all.

    `files` and `others` are paths in a folder of their own, where the commands run.
    """

    files: Callable[[], Mapping[str, bytes]]
    commands: tuple[str, ...]
    others: Callable[[], Mapping[str, bytes]] = dict
    needs: str = ""  # a Python package
    changes_arguments: bool = False


class Refused(Exception):
    """A command that makes originals has failed."""


def golden(name: str) -> Callable[[], dict[str, bytes]]:
    """The golden file or folder NAME-1, as NAME.json or NAME."""
    return lambda: of_path(next(GOLDEN.glob(f"{name}-1*")), name)


def of_path(path: Path, name: str) -> dict[str, bytes]:
    """The content of a file, as NAME with its suffix, or of the files of a folder."""
    if path.is_dir():
        return {f"{name}/{one.name}": one.read_bytes() for one in sorted(path.iterdir())}
    return {name + path.suffix: path.read_bytes()}


def folder(name: str, new: str) -> Callable[[], dict[str, bytes]]:
    """A golden folder with the name `new`."""
    return lambda: of_path(GOLDEN / name, new)


def under(name: str, given: Callable[[], Mapping[str, bytes]]) -> Callable[[], dict[str, bytes]]:
    return lambda: {f"{name}/{path}": content for path, content in given().items()}


def renamed(given: Callable[[], Mapping[str, bytes]], name: str) -> Callable[[], dict[str, bytes]]:
    """A single file with another name."""
    return lambda: dict(zip([name], given().values(), strict=True))


def together(*parts: Callable[[], Mapping[str, bytes]]) -> Callable[[], dict[str, bytes]]:
    return lambda: {name: content for part in parts for name, content in part().items()}


def text(**files: str) -> Callable[[], dict[str, bytes]]:
    """Files of these texts: `mesh_graph` is mesh.graph."""
    return lambda: {name.replace("_", "."): content.encode() for name, content in files.items()}


def made(
    given: Callable[[], Mapping[str, bytes]], command: str, output: str = ""
) -> Callable[[], dict[str, bytes]]:
    """What a command writes to the file or folder `output` (stdout: to made.json), from the files given."""

    def make() -> dict[str, bytes]:
        with _folder(given()) as path:
            stdout = _output_of(command.split())
            if not output:
                return {"made.json": stdout.encode()}
            path /= output
            return of_path(path, output) if path.is_dir() else {output: path.read_bytes()}

    return make


@contextlib.contextmanager
def _folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A temporary folder with these files, which is the current one."""
    current = Path.cwd()
    path = Path(tempfile.mkdtemp(prefix="earlybird-fuzz-"))
    write_files(path, files)
    os.chdir(path)
    try:
        yield path
    finally:
        os.chdir(current)
        shutil.rmtree(path, ignore_errors=True)


def write_files(above: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (above / name).parent.mkdir(parents=True, exist_ok=True)
        (above / name).write_bytes(content)


def _output_of(arguments: list[str]) -> str:
    before = sys.argv
    sys.argv = ["earlybird", *arguments]
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            main.run()
    except SystemExit as ended:
        if ended.code:
            raise Refused(f"{shlex.join(arguments)}: {err.getvalue().strip()[-200:]}") from None
    finally:
        sys.argv = before
    return out.getvalue()


def _planted() -> dict[str, bytes]:
    """A profile of all levels."""
    profile = json.loads((ROOT / "tests" / "e2e" / "profile.json").read_bytes())
    levels = profile["levels"]
    levels |= dict.fromkeys(("inter_socket", "inter_node"), levels["intra_socket"])
    profile["replays"] = [{"level": "inter_node", "error": {"queue": 0.1, "fair": 0.2}, "run_id": "replay"}]
    return {"planted.json": json.dumps(profile).encode()}


def _pattern() -> dict[str, bytes]:
    return {"pattern.csv": (GOLDEN / "pattern-1.csv").read_bytes()}


def _collective_run() -> dict[str, bytes]:
    from tests.collective_runs import planted_s, write_run

    with _folder({}) as path:
        methods = ("binomial", "linear", "own-pipeline:1024")
        write_run(path / "run", planted_s, methods=methods, operations=("bcast", "reduce"), ranks=(2, 4, 8))
        return of_path(path / "run", "run")


def _default_collectives() -> dict[str, bytes]:
    """A run of the MPI's own choice of operations that can replace each other."""
    from tests.collective_runs import write_run

    with _folder({}) as path:
        operations = ("bcast", "scatter", "allgather", "gather", "reduce", "allreduce")
        write_run(
            path / "run", lambda operation, method, node, socket, size_bytes: 1e-5 + size_bytes * 1e-9,
            methods=("default",), operations=operations, ranks=(4,), launches=5,
        )  # fmt: skip
        return of_path(path / "run", "run")


def _kernels() -> dict[str, bytes]:
    """A run of the kernels that no launcher here can run."""
    from tests.kernel_runs import write_run

    with _folder({}) as path:
        return of_path(write_run(path / "run"), "run")


def _archive() -> dict[str, bytes]:
    stream = io.BytesIO()
    np.savez_compressed(
        stream, src=np.array([3, 0, 1]), dst=np.array([0, 1, 2]), bytes=np.array([8, 4096, 70000])
    )
    return {"pattern.npz": stream.getvalue()}


def _monitoring() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((RECORDED / "openmpi-monitoring").glob("app.*"))}


def _eztrace() -> dict[str, bytes]:
    traces = RECORDED / "eztrace"
    return {
        str(path.relative_to(traces)): path.read_bytes()
        for path in sorted(traces.rglob("*")) if path.is_file() and path.suffix != ".c"
    }  # fmt: skip


def shown(name: str, *more: str, page: bool = True) -> tuple[str, ...]:
    """The commands that print a file, then others."""
    printed = (f"show {name}", f"show {name} --json", f"show {name} --format csv")
    pages = (f"report {name} -o page.html", f"report {name} --terminal") if page else ()
    return (*printed, *pages, *more)


def _benchmarks(kind: str, options: str = "") -> Format:
    """The outputs of another benchmark; those with a summary alone are refused."""
    paths = [path for path in sorted(BENCHMARKS.glob(f"{kind}_*.txt")) if "summary" not in path.name]
    commands = []
    for path in paths:
        ranks = "--ranks 2" if kind == "osu" and "neighbor" not in path.name else ""
        commands.append(f"import {kind} {path.name} {options} {ranks} --mpi mpich -o site --json")
    return Format(lambda: {path.name: path.read_bytes() for path in paths}, tuple(commands))


_MTX = "%%MatrixMarket matrix coordinate real general\n% a remark\n4 4 3\n1 4 100000\n2 1 200000\n3 4 8\n"
_GRAPH_MTX = "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n2 1\n3 2\n4 3\n4 1\n"
_GRAPH = "% a mesh\n6 7 11 1\n1 2 1 4 1\n2 1 1 3 1 5 1\n1 2 1 6 1\n1 1 1 5 1\n1 2 1 4 1 6 1\n1 3 1 5 1\n"
_DECK = (
    "SPECGRID\n 2 2 2 1 F /\nBOX\n 1 2 1 2 1 1 /\nACTNUM\n 3*1 1 /\nENDBOX\nPORO\n 8*0.2 /\n"
    "EQUALS\n 'ACTNUM' 1 1 1 2* 2 2 /\n/\nSKIP\nENDSKIP\nINCLUDE\n 'more.inc' /\nEND\n"
)
_HOSTS = "node1 slots=2 max_slots=4\nnode2:4\n# and\nnode3 4\nnode4 slots=1\n"
_NODES = "rank,node,socket\n0,0,0\n1,1,0\n2,2,0\n3,3,0\n"
_RANKS = "rank 0=node1 slot=0\nrank 1=node2 slot=0:0-1\n"
_PINGPONG = ",".join(PINGPONG_HEADER) + "\n" + "".join(
    f"{level},{placement},{pairs},{size},{(1e-6 + size * 1e-9) * pairs:g}\n"
    for level in ("intra_socket", "inter_node") for placement in (1, 2) for pairs in (1, 2, 4)
    for size in (0, 8, 1024, 65536, 1 << 20)
)  # fmt: skip
_THUNE = (
    "cpu,level,latency_us,bw_sp_gbs,bw_mp_2_gbs,bw_mp_4_gbs,bw_mp_8_gbs,bw_mp_16_gbs,bw_max_gbs\n"
    "Some CPU,intra_socket,2.3,7.5,14.6,25.5,32.5,45.0,54.0\n"
    "Some CPU,inter_socket,4.4,6.5,13.7,17.8,18.3,19.7,22.7\n"
)

_OF_RECORDINGS = shown(
    "rec",
    "pattern recording rec -o made.csv --json",
    "pattern recording rec --all --combined --one-sided -o made.npz",
    "export rec --to matrix-market -o made.mtx",
    "export rec --to goal -o made.goal",
    "record --merge rec --json",
)
_OF_RUN = shown("run", "baseline save name run --folder kept", "export run --to openmetrics -o made.prom")
_OF_TWO_RUNS = (
    "compare run before --anyway --json",
    "compare before run --anyway -o changes.json --format markdown",
    "compare run before --anyway --format junit",
)
_FITTED_RUN = (
    "fit run -o made.json --json",
    "fit run -o made.json --paper --model-selection",
    "export run --to osu -o texts",
)
_OF_EXCHANGES = (
    "predict pattern.csv --profile profile.json --layout 2x1x2 --json",
    "predict pattern.csv --profile profile.json --layout 1x1x4 --model queue",
    "predict pattern.csv --profile profile.json --layout 1x1x4 --model fair --tolerance --json",
    "predict pattern.csv --profile profile.json --layout 1x1x4 --sensitivity --json",
    "predict pattern.csv --profile profile.json --nodes 1 --set intra_socket.bandwidth=2x",
    "advise layout pattern.csv --profile profile.json --layout 1x1x4 --swaps 20 --json",
    "advise aggregate pattern.csv --profile profile.json --layout 2x1x2 --json",
)
_TO_MODELS = (
    "export profile.json --to loggps -o made.json",
    "export profile.json --to simulated-machine --shape 1x1x4 -o made.json",
    "export profile.json --to simgrid-platform --shape 1x1x4 -o made.xml",
)
_OF_PIPELINES = (
    "predict pipeline --threads 4 --size 1MiB --gamma 100us/MB --profile profile.json --json",
    "advise pipeline --threads 4 --size 1MiB --gamma 100us/MB --profile profile.json --json",
    "measure pingpong pipeline --quick --launcher synthetic:profile.json --quiet -o run --json",
)
_OF_COLLECTIVES = (
    "predict collective --op bcast --ranks 8 --size 1KiB --profile profile.json --json",
    "predict collective --op reduce --ranks 8 --size 64KiB --profile profile.json --map-by node --reference",
    "advise collective --op bcast --ranks 8 --size 1KiB --profile profile.json --json",
    "advise collective --op all --ranks 8 --profile profile.json --config rules",
)
_OF_LAYOUTS = (
    "predict pattern.csv --profile planted.json --layout layout.csv --json",
    "predict pattern.csv --machine 2x2x2 --layout layout.csv --json",
    "show pattern.csv --layout layout.csv --json",
    "report pattern.csv --layout layout.csv -o page.html",
    "export layout.csv --to mpich --hosts a,b -o made.txt --json",
    "export layout.csv --to openmpi --hosts a,b -o made.txt --json",
    "export layout.csv --to rank-order -o made.txt --json",
)
_ARGUMENTS = (
    "predict pipeline --threads 4 --size 1MiB --gamma 100us/MB --profile planted.json --partitions 16 --json",
    "gain --threads 8 --theta 8 --bandwidth 25GB/s --gamma 1000us/MB --size 64MiB --json",
    "gain --bandwidth 200gbit --ai 1/13 --ci 0.5 --frequency 3.5GHz --epsilon 0.1 --json",
    "pattern halo --grid 2x2x2 --cells 8x8x8 --neighbours 26 -o made.csv --json",
    "pattern random --ranks 8 --messages 100 --max-size 64KiB -o made.csv --json",
    "pattern near --ranks 64 --per-rank 6 --mean-size 4KiB -o made.npz --json",
    "pattern mesh --parts 4 --cells 1000 --bytes-per-cell 8 -o made.csv --json",
    "predict pattern.csv --profile planted.json --layout 1x1x4 --set intra_socket.latency=1us --json",
    "predict pattern.csv --machine 2x1x2 --layout 2x1x2 --json",
    "export layout.csv --to slurm --hosts a,b --cpus 0-15/16-31 -o made.txt",
    "measure pingpong --sizes 8,1KiB --launches 2 --budget 1s -o new --launcher synthetic:planted.json",
    "compare run before --min-effect 3% --level 3% --json",
)
_SYNTHETIC = "--quick --seed 1 --launcher synthetic:planted.json --quiet"
_MANY = made(_planted, f"measure pingpong completion pipeline -o run {_SYNTHETIC}", "run")
_RUN = made(_planted, f"measure pingpong --sizes 8,1024,64KiB --launches 5 -o run {_SYNTHETIC}", "run")
_BEFORE = made(
    _planted, f"measure pingpong --sizes 8,1024,64KiB --launches 5 -o before {_SYNTHETIC}", "before"
)
_COLLECTIVE_PROFILE = made(_collective_run, "fit run -o profile.json", "profile.json")
_IN_NIGHTS = " ".join(f"night{night}" for night in range(6))


def _nights() -> dict[str, bytes]:
    """The same run in several nights."""
    files = {}
    for (name, content), night in itertools.product(_BEFORE().items(), range(6)):
        if name.endswith("run.json"):
            header = {"started": f"2026-11-{night + 10}T01:00:00+00:00", "id": f"night{night}"}
            content = json.dumps(json.loads(content) | header).encode()
        files[name.replace("before", f"night{night}")] = content
    return files


def _of_pattern(name: str) -> tuple[str, ...]:
    return shown(
        name,
        f"show {name} --layout 2x1x2 --json",
        f"report {name} --layout 2x1x2 -o page.html",
        f"predict {name} --profile planted.json --layout 1x1x4 --json",
        f"predict {name} --machine 2x1x2 --layout 2x1x2 --json",
        f"pattern convert {name} -o made.npz --json",
        f"export {name} --to matrix-market -o made.mtx",
        f"export {name} --to goal -o made.goal --combined",
        f"advise layout {name} --profile planted.json --layout 1x1x4 --swaps 20 -o made.csv",
        f"advise aggregate {name} --profile planted.json --layout 2x1x2 --json",
    )


def _of_mesh(mesh: str) -> tuple[str, ...]:
    return (
        f"pattern mesh {mesh} --parts 2 -o made.csv --json",
        f"pattern mesh {mesh} --parts 2 --halo-width 2 -o made.mtx --partition-out parts.txt",
        f"advise partition {mesh} --layout 1x1x2 --seeds 2 --profile planted.json --json",
    )


def _of_hosts(*mpis: str) -> tuple[str, ...]:
    return tuple(f"export layout.csv --to {mpi} --hosts hosts.txt -o made.txt --json" for mpi in mpis)


FORMATS: dict[str, Format] = {
    "advice": Format(golden("advice"), shown("advice.json")),
    "arguments": Format(
        dict,
        _ARGUMENTS,
        together(_planted, _pattern, golden("layout"), _RUN, _BEFORE),
        changes_arguments=True,
    ),
    "baseline": Format(
        together(
            lambda: {"kept/monday.json": (GOLDEN / "baseline-1.json").read_bytes()},
            under("kept", made(_RUN, "baseline save name run --folder .", "name.json")),
        ),
        (
            *shown("kept/monday.json", page=False),
            "baseline list --folder kept --json",
            "compare run --baseline name --folder kept --anyway --json",
        ),
        _RUN,
    ),
    "check": Format(golden("check"), shown("check.json", "show check.json --format junit")),
    "collective-prediction": Format(
        made(_COLLECTIVE_PROFILE, _OF_COLLECTIVES[0]), shown("made.json", page=False)
    ),
    "collective-profile": Format(_COLLECTIVE_PROFILE, shown("profile.json", *_OF_COLLECTIVES)),
    "collective-run": Format(_collective_run, (*_OF_RUN, *_FITTED_RUN)),
    "collectives-advice": Format(golden("collectives-advice"), shown("collectives-advice.json")),
    "compared-run": Format(_RUN, (*_OF_RUN, *_OF_TWO_RUNS), _BEFORE),
    "comparison": Format(golden("comparison"), shown("comparison.json")),
    "deck": Format(
        text(deck_grdecl=_DECK, more_inc="PERMX\n 8*1 /\n"), _of_mesh("deck.grdecl --dims 2x2x2"), _planted
    ),
    "default-collective-run": Format(_default_collectives, shown("run", "compare run --guidelines --json")),
    "graph": Format(text(mesh_graph=_GRAPH), _of_mesh("mesh.graph"), _planted),
    "graph-mtx": Format(text(mesh_mtx=_GRAPH_MTX), _of_mesh("mesh.mtx"), _planted),
    "guidelines": Format(
        golden("guidelines"), shown("guidelines.json", "show guidelines.json --format junit")
    ),
    "history": Format(golden("history"), shown("history.json")),
    "hosts": Format(text(hosts_txt=_HOSTS), _of_hosts("mpich", "openmpi", "slurm"), text(layout_csv=_NODES)),
    "imb": _benchmarks("imb", "--level intra_socket"),
    "imported-run": Format(folder("imported-run-1", "run"), _OF_RUN),
    "kernels-run": Format(_kernels, (*_OF_RUN, *_FITTED_RUN[2:], "compare run run --json")),
    "layout": Format(
        golden("layout"), (*shown("layout.csv", page=False), *_OF_LAYOUTS), together(_planted, _pattern)
    ),
    "many-suites": Format(_MANY, (*_OF_RUN, *_FITTED_RUN)),
    "monitoring": Format(
        _monitoring,
        (
            "pattern monitoring app -o made.csv --json",
            "pattern monitoring app -o made.npz --internal --combined",
        ),
    ),
    "nights": Format(
        _nights,
        (
            f"history {_IN_NIGHTS} --json",
            f"history {_IN_NIGHTS} --format otava",
            f"history {_IN_NIGHTS} -o history.json",
        ),
    ),
    "node-counts": Format(golden("node-counts"), shown("node-counts.json")),
    "osu": _benchmarks("osu", "--level intra_socket"),
    "otf2": Format(_eztrace, ("pattern otf2 eztrace_log.otf2 -o made.csv --json",), needs="otf2"),
    "pattern": Format(_pattern, _of_pattern("pattern.csv"), _planted),
    "pattern-mtx": Format(text(pattern_mtx=_MTX), _of_pattern("pattern.mtx"), _planted),
    "pattern-npz": Format(_archive, _of_pattern("pattern.npz"), _planted),
    "pingpong-table": Format(
        text(times_csv=_PINGPONG),
        ("import table times.csv --mpi mpich -o site --json", "fit times.csv -o made.json --json"),
    ),
    "pipeline-prediction": Format(
        made(renamed(_planted, "profile.json"), _OF_PIPELINES[0]), shown("made.json", page=False)
    ),
    "pipeline-profile": Format(
        made(_MANY, "fit run -o profile.json", "profile.json"),
        shown("profile.json", *_OF_PIPELINES, _TO_MODELS[0]),
    ),
    "prediction": Format(golden("prediction"), shown("prediction.json")),
    "profile": Format(
        renamed(_planted, "profile.json"),
        shown("profile.json", *_OF_EXCHANGES, *_TO_MODELS, *_OF_PIPELINES),
        _pattern,
    ),
    "profile-with-forms": Format(golden("profile"), _OF_EXCHANGES[1:5], _pattern),
    "projection": Format(golden("projection"), shown("projection.json", page=False)),
    "rank-file": Format(text(hosts_txt=_RANKS), _of_hosts("mpich"), golden("layout")),
    "recording": Format(folder("recording-1", "rec"), _OF_RECORDINGS, _planted),
    "recording-events": Format(
        folder("recording-1-trace-2", "rec"),
        (
            *_OF_RECORDINGS,
            "export rec --to chrome-trace -o made.json",
            "predict program rec --profile planted.json --balance all --progress --json",
            "predict program rec --profile planted.json --trace made.json",
            "advise program rec --profile planted.json --to-layout 2x1x1 --json",
        ),
        _planted,
    ),
    "replay": Format(
        lambda: of_path(RECORDED / "epyc-two-cores" / "mpich" / "replay", "run"),
        shown(
            "run",
            "show run/pattern.npz --json",
            "compare run run --json",
            "fit measured run -o made.json --json",
        ),
        lambda: of_path(RECORDED / "epyc-two-cores" / "mpich" / "run", "measured"),
    ),
    "repro": _benchmarks("repro"),
    "resumed-run": Format(
        _RUN,
        (
            "measure -o run --resume --json",
            "measure --against run -o again --launcher synthetic:planted.json --quiet",
        ),
        _planted,
    ),
    "run": Format(folder("run-1", "run"), _OF_RUN),
    "run-comparison": Format(
        golden("run-comparison"), shown("run-comparison.json", "show run-comparison.json --format junit")
    ),
    "simulated-program": Format(golden("simulated-program"), shown("simulated-program.json", page=False)),
    "simulated-machine": Format(
        golden("simulated-machine"),
        ("predict pattern.csv --machine simulated-machine.json --layout 2x1x2 --json",),
        _pattern,
    ),
    "thune-table": Format(text(table_csv=_THUNE), ("import table table.csv -o site --json",)),
    "tolerance": Format(golden("tolerance"), shown("tolerance.json")),
}


def available() -> dict[str, Format]:
    """The formats whose packages are installed."""
    return {
        name: one for name, one in FORMATS.items() if not one.needs or importlib.util.find_spec(one.needs)
    }
