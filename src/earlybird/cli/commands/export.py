"""`earlybird export`: writes messages, placements, models and results in the formats of other tools."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.shell_commands import path_argument, quoted
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note

if TYPE_CHECKING:  # numpy would be imported for every help text
    from earlybird.data.pattern import Pattern
    from earlybird.data.recording import PairTotals
    from earlybird.data.run import Run


class Target(StrEnum):
    """`--to`."""

    matrix_market = "matrix-market"
    goal = "goal"
    chrome_trace = "chrome-trace"
    mpich = "mpich"
    openmpi = "openmpi"
    intel = "intel"
    slurm = "slurm"
    rank_order = "rank-order"
    simulated_machine = "simulated-machine"
    simgrid_platform = "simgrid-platform"
    loggps = "loggps"
    osu = "osu"
    openmetrics = "openmetrics"


_PLACEMENTS = (Target.mpich, Target.openmpi, Target.intel, Target.slurm, Target.rank_order)
_BOUND = (Target.mpich, Target.intel, Target.slurm)
_MODELS = (Target.simulated_machine, Target.simgrid_platform, Target.loggps)
_RESULTS = (Target.osu, Target.openmetrics)
_MESSAGES = (Target.matrix_market, Target.goal)


class Quantity(StrEnum):
    """`--quantity`."""

    bytes = "bytes"
    messages = "messages"


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="REC|PATTERN|LAYOUT|PROFILE|RUN",
            help="Folder of a recording or a run, or the file of a pattern, of a layout (rank,node,socket) "
            "or of a profile.",
        ),
    ],
    to: Annotated[Target | None, typer.Option(help="Format to write.  [required]")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="File to write, with osu: folder to create.  [required]", metavar="FILE"
        ),
    ] = None,
    quantity: Annotated[
        Quantity | None, typer.Option(help="What the matrix contains.  [default: bytes]")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(help="Of a layout: the names of its nodes: node1,node2 or a file.")
    ] = None,
    cpus: Annotated[
        str | None,
        typer.Option(
            help="Of a layout: the CPUs of each socket of a node, as lscpu lists them, to bind its ranks to "
            "them: 0-15/16-31."
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(help="Of a profile: nodes x sockets x cores of a socket, such as 4x2x16."),
    ] = None,
    combined: Annotated[
        bool, typer.Option("--combined", help="In GOAL, one message for each pair of ranks.")
    ] = False,
    json: bool = AS_JSON,
) -> None:
    """Write messages, a placement, a model or results in a format of another tool.

    Of a recording or a pattern, matrix-market is the communication matrix: the row sends to the column; ranks
    count from 1. goal is a schedule for LogGOPSim in which every rank posts all of its receives and sends at
    once. chrome-trace is a timeline of the calls and messages that `earlybird record --events` kept, for
    https://ui.perfetto.dev.
    For CSV use `earlybird show REC --format csv`, for a pattern `earlybird pattern recording`.

    A layout, such as `earlybird advise layout` writes, becomes a file that places each rank: for the mpiexec
    of mpich, openmpi or intel, for slurm, or as rank-order, the keys of an MPI_Comm_split that renumbers the
    ranks of a job inside the program. The command to use it is printed. It binds ranks to their sockets: that
    of openmpi by itself, those of mpich, intel and slurm with --cpus, to one CPU of the socket each.

    A profile becomes the simulated-machine of --launcher simgrid, a simgrid-platform, or the parameters of
    the LogGPS model.

    A run becomes openmetrics for Prometheus, or osu: for each launch the tables that the OSU Micro-Benchmarks
    print, a file for each, which `earlybird import osu` reads.
    """
    if to is None:
        what, targets = _formats_of(source)
        raise InputError(f"--to is missing; of the {what} {source} give one of {', '.join(targets)}")
    if output is None:
        raise InputError(f"-o is missing; give the {'folder' if to == Target.osu else 'file'} to write")
    if shape is not None and to not in (Target.simulated_machine, Target.simgrid_platform):
        raise InputError(f"--shape is of a machine to simulate; omit it with --to {to}")
    if cpus is not None and to not in _BOUND:
        why = ": its file binds ranks to sockets without them" if to == Target.openmpi else ""
        raise InputError(f"--cpus binds the ranks of mpich, intel and slurm; omit it with --to {to}{why}")
    if to in _MODELS:
        _refuse_options(to, quantity, combined, hosts)
        _write_model(source, to, shape, output, json)
        return
    if to in _RESULTS:
        _refuse_options(to, quantity, combined, hosts)
        _write_results(source, to, output, json)
        return
    if to in _PLACEMENTS:
        _refuse_options(to, quantity, combined)
        _write_placement(source, to, hosts, cpus, output, json)
        return
    if hosts is not None:
        raise InputError(f"--hosts names the nodes of a layout; omit it with --to {to}")
    if to != Target.matrix_market and quantity is not None:
        raise InputError(f"--quantity is about the matrix; leave it out with --to {to}")
    if to == Target.matrix_market and combined:
        raise InputError("a matrix has one entry per pair of ranks anyway; leave out --combined")
    if to == Target.chrome_trace and combined:
        raise InputError("a trace has every message; leave out --combined")
    if to == Target.goal:
        num_ranks, count = _write_goal(source, output, combined)
    elif to == Target.chrome_trace:
        num_ranks, count = _write_chrome_trace(source, output)
    else:
        num_ranks, count = _write_matrix(source, output, quantity or Quantity.bytes)
    what = {Target.goal: "messages", Target.chrome_trace: "events"}.get(to, "entries")
    if json:
        print_json({"file": str(output), "format": str(to), "ranks": num_ranks, what: count})
    note(f"wrote {output}: {num_ranks} ranks, {count} {what}")


def _formats_of(source: Path) -> tuple[str, tuple[Target, ...]]:
    """What `source` is, and the formats it can be written in."""
    from earlybird.data import files, profile, recording
    from earlybird.data.layout import LAYOUT_HEADER
    from earlybird.data.run import Run

    source = Path(files.shipped(source))
    if not source.exists():
        raise InputError(f"{source} does not exist; check the path")
    if (source / recording.SUMMARY).exists():
        return "recording", (*_MESSAGES, Target.chrome_trace)
    if source.is_dir():
        Run.open(source)  # or refuses another folder
        return "run", _RESULTS
    suffix = files.suffix_of(source)
    if suffix == ".json":
        files.read_json(source, "profile", profile.SCHEMA)
        return "profile", _MODELS
    if suffix == ".csv" and files.read_text(source, "layout").startswith(LAYOUT_HEADER):
        return "layout", _PLACEMENTS
    return "pattern", _MESSAGES


def _refuse_options(to: Target, quantity: Quantity | None, combined: bool, hosts: str | None = None) -> None:
    if quantity is not None or combined:
        option = "--combined" if combined else "--quantity"
        raise InputError(f"{option} is about messages, which --to {to} does not write; omit it")
    if hosts is not None:
        raise InputError(f"--hosts names the nodes of a layout; omit it with --to {to}")


def _write_model(source: Path, to: Target, shape: str | None, output: Path, json: bool) -> None:
    from earlybird.cli.options.mesh import three_sides
    from earlybird.data import files
    from earlybird.data.profile import load_profile
    from earlybird.interop.profile_models import changed_costs, loggps, simulated_machine
    from earlybird.launch.simgrid import platform_xml

    profile = load_profile(source)
    if to == Target.loggps:
        found = {"profile": profile.id, "levels": loggps(profile)}
        files.write_json(output, found)
        note(f"wrote {output}: L, o, g, G and S of {len(found['levels'])} levels")
    else:
        if shape is None:
            raise InputError("--shape is missing; give nodes x sockets x cores, such as --shape 4x2x16")
        machine = simulated_machine(profile, *three_sides(shape, "--shape"))
        for changed in changed_costs(profile, machine):
            note(f"warning: {changed}")
        if to == Target.simulated_machine:
            files.write_json(output, machine.to_json())
            note(f"wrote {output}; use it with: --launcher {quoted(f'simgrid:{output}')}")
        else:
            files.write_text(output, platform_xml(machine))
            note(f"wrote {output}: {machine.shape}, nodes x sockets x cores; each core is a host")
    if json:
        print_json({"file": str(output), "format": str(to)})


def _write_results(source: Path, to: Target, output: Path, json: bool) -> None:
    from earlybird.data.run import Run

    run = Run.open(source)
    num_files = _write_osu(run, output) if to == Target.osu else _write_openmetrics(run, output)
    if json:
        print_json({"file": str(output), "format": str(to), "files": num_files})


def _write_openmetrics(run: "Run", output: Path) -> int:
    """The number of files written."""
    from earlybird.compare.results import results
    from earlybird.data import files
    from earlybird.data.kernels import EXCHANGE
    from earlybird.data.run import require_validated
    from earlybird.interop.openmetrics import openmetrics_text

    samples = [sample for sample in run.samples() if sample.kernel != EXCHANGE.name]
    if not samples:
        raise InputError(f"{run.path} has no results; give a run folder that `earlybird measure` wrote")
    require_validated(samples)
    found = results(samples)
    files.write_text(output, openmetrics_text(found, run.header))
    note(f"wrote {output}: {counted(len(found), 'point')}")
    return 1


def _write_osu(run: "Run", output: Path) -> int:
    """The number of files written: of each launch one for each table."""
    from earlybird.data import files, folders
    from earlybird.data.kernels import MSGRATE
    from earlybird.data.methods import PROCESSES
    from earlybird.data.run import require_validated
    from earlybird.interop.osu_tables import ONE_COLUMN, is_osu, osu_files

    if output.exists():
        raise InputError(f"{output} exists already; choose another folder")
    samples = run.samples()
    require_validated(samples)
    texts = osu_files(samples)
    left_out = sorted({sample.kernel for sample in samples if not is_osu(sample)})
    if not texts:
        has = f"has {', '.join(left_out)}, of which OSU has no table" if left_out else "has no results"
        raise InputError(
            f"{run.path} {has}; give a run of {', of '.join(ONE_COLUMN)}, or of {MSGRATE.name} with "
            f"--methods {PROCESSES}"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with folders.create_whole(output) as folder:
        for name, text in texts.items():
            files.write_text(folder / name, text)
    if left_out:
        note(f"left out {', '.join(left_out)} or methods of them: OSU has no such table")
    note(f"wrote {output}: {counted(len(texts), 'file')}; `earlybird import osu` reads those of one table")
    return len(texts)


def _write_placement(
    source: Path, to: Target, hosts: str | None, cpus: str | None, output: Path, json: bool
) -> None:
    from earlybird.data import files
    from earlybird.data.layout import parse_layout
    from earlybird.launch.host_files import parse_cpus, placement_file
    from earlybird.launch.hosts import parse_hosts

    if files.suffix_of(source) != ".csv":
        raise InputError(f"{source} is no layout; give a CSV with the header rank,node,socket")
    if to == Target.rank_order and hosts is not None:
        raise InputError("--to rank-order needs no --hosts: it renumbers ranks where they are; omit it")
    layout = parse_layout(str(source))
    names = () if hosts is None else parse_hosts(hosts)
    made = placement_file(layout, to, names, None if cpus is None else parse_cpus(cpus))
    files.write_text(output, made.text)
    use = made.use.format(file=path_argument(output), ranks=layout.num_ranks)
    if json:
        print_json({"file": str(output), "format": str(to), "ranks": layout.num_ranks, "use": use})
    note(f"wrote {output}: {layout.num_ranks} ranks; use it with: {use}")
    if made.binding:
        note(f"warning: {output}: {made.binding}")


def _write_goal(source: Path, output: Path, combined: bool) -> tuple[int, int]:
    """The number of ranks and of messages written."""
    from earlybird.data import files
    from earlybird.interop.goal import goal_schedule
    from earlybird.patterns.recorded import exchange_of

    totals, num_ranks, pattern = _load(source)
    if pattern is None or combined:
        pattern, left_out = exchange_of(totals, combined=combined)
        if left_out:
            note(f"left out {left_out} messages from a rank to itself")
    files.write_text(output, goal_schedule(pattern, num_ranks))
    return num_ranks, pattern.num_messages


def _write_matrix(source: Path, output: Path, quantity: Quantity) -> tuple[int, int]:
    """The number of ranks and of entries written."""
    from earlybird.interop.matrix_market import save_matrix

    totals, num_ranks, _ = _load(source)
    pairs = totals.by_pair()
    save_matrix(output, pairs.src, pairs.dst, getattr(pairs, quantity), num_ranks, str(quantity))
    return num_ranks, len(pairs.src)


def _write_chrome_trace(source: Path, output: Path) -> tuple[int, int]:
    """The number of ranks and of events written."""
    from earlybird.analysis.waits import traced
    from earlybird.data import files, units
    from earlybird.data.recording import SUMMARY, load_recording
    from earlybird.interop.chrome_trace import chrome_trace

    if not (source / SUMMARY).exists():
        raise InputError(f"{source} is no recording; give the folder of `earlybird record --events 10000`")
    recording = load_recording(source)
    joined = traced(recording)
    if joined is None:
        raise InputError(
            f"{source} has no events; record the program again with `earlybird record --events 10000`"
        )
    if joined.clocks.uncertainty_s:
        by = units.format_seconds(joined.clocks.uncertainty_s)
        note(f"warning: times of different nodes may be apart by {by} and the drift of their clocks")
    if unconnected := joined.clocks.unconnected:
        note(
            f"warning: no messages in both directions connect the clocks of {len(unconnected)} ranks with "
            f"that of the first one, such as of rank {unconnected[0]}: they have times of their own"
        )
    with files.replace_when_complete(output) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        stream.writelines(chrome_trace(joined.events, joined.matches, recording))
    return len(recording.ranks), len(joined.events)


def _load(source: Path) -> "tuple[PairTotals, int, Pattern | None]":
    """Sums of messages, the number of ranks, and the pattern if `source` is one."""
    import numpy as np

    from earlybird.analysis.gaps import lost_parts
    from earlybird.data.pattern import load_pattern
    from earlybird.data.recording import PairTotals, load_recording

    if source.is_dir():
        recording = load_recording(source)
        for sentence in lost_parts(recording):
            note(f"warning: {sentence}")
        if not recording.ranks:
            raise InputError(f"{source} has no messages, as nothing was recorded; record the program again")
        one_sided = int(recording.one_sided().messages.sum())
        if one_sided:
            note(
                f"left out {one_sided} transfers of MPI_Put, MPI_Get and the like; `earlybird pattern "
                "recording --one-sided` includes them in a pattern, which export takes, too"
            )
        return recording.sent(), recording.size, None
    if not source.exists():
        raise InputError(f"the recording or pattern {source} does not exist; check the path")
    pattern = load_pattern(source)
    if not pattern.num_messages:
        raise InputError(f"{source} has no messages; give a pattern with at least one")
    ones = np.ones_like(pattern.src)
    totals = PairTotals(pattern.src, pattern.dst, -ones, ones, pattern.bytes)
    return totals, pattern.num_ranks_named, pattern


command = make_command(
    export, name="export", example="earlybird export rec --to matrix-market -o communication.mtx"
)
