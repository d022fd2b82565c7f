"""`earlybird import`: makes a run of what other benchmarks printed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, make_group
from earlybird.cli.options.values import OneOf
from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.labels import counted, listed
from earlybird.data.levels import LEVELS
from earlybird.data.run import UNNAMED_HOST
from earlybird.data.shell_commands import path_argument
from earlybird.data.tables import THUNE_HEADER
from earlybird.interop.imb_outputs import read_imb
from earlybird.interop.imported import Imported
from earlybird.interop.imports import UNKNOWN, Measured, Read, import_run
from earlybird.interop.osu_outputs import read_osu
from earlybird.interop.pingpong_table import read_pingpong_table
from earlybird.interop.profile_table import import_profiles
from earlybird.interop.reprompi import read_repro
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Outputs, as printed; each is one launch.")
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help="Run folder to create.")]
MpiOption = Annotated[
    str, typer.Option(help="The MPI that was measured: mpich, craympich-8.1 or mpich+MPIR_CVAR_X=1.")
]
LevelOption = Annotated[str, typer.Option(help="Where the two ranks of a pair were."), OneOf(*LEVELS)]


@dataclass(frozen=True)
class Circumstances:
    """The conditions of the measurement, besides the MPI, that the texts do not state."""

    host: Annotated[str, typer.Option(help="The machine, so that runs of others are not compared.")] = (
        UNNAMED_HOST
    )
    version: Annotated[str, typer.Option(help="Version of the MPI.")] = ""
    started: Annotated[
        str | None,
        typer.Option(
            help="When it was measured (ISO 8601), by which `history` orders runs.  [default: as "
            "the output says, or now]"
        ),
    ] = None


def osu(
    *,
    sources: FilesArgument,
    mpi: MpiOption,
    level: LevelOption,
    output: OutputOption,
    ranks: Annotated[
        int | None, typer.Option(min=1, help="Ranks of a collective, which OSU does not print.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Window of osu_bw and osu_bibw (their -W), which they do not print.  [default: 64]"
        ),
    ] = None,
    circumstances: Circumstances,
    json: bool = AS_JSON,
) -> None:
    """Import outputs of the OSU Micro-Benchmarks, also with -f, -c and -z 50.

    osu_latency becomes a ping-pong, osu_bw and osu_mbw_mr a message rate of processes, a blocking,
    persistent or neighbourhood collective a collective. osu_bibw, osu_multi_lat, osu_latency_mt and
    osu_latency_mp keep names of their own: `compare` and `show` take them. Of all iterations only the mean is
    printed, with -z 50 the median, too, which is preferred: a file is one launch with one value per point.
    Outputs of buffers in a GPU and of other tests are refused.
    """
    read = _one_launch(partial(read_osu, ranks=ranks, window=window))
    _import(sources, read, Measured(mpi, **vars(circumstances), level=level), output, json)


def imb(
    *,
    sources: FilesArgument,
    mpi: MpiOption,
    level: LevelOption,
    output: OutputOption,
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Window of Uniband and Biband (-window_size), if the output does not repeat its arguments.  "
            "[default: 256, before 2021.2 64]",
        ),
    ] = None,
    circumstances: Circumstances,
    json: bool = AS_JSON,
) -> None:
    """Import outputs of the Intel MPI Benchmarks (IMB-MPI1).

    PingPong becomes a ping-pong, Uniband a message rate of processes, a collective a collective, completed
    when its slowest rank is (t_max). PingPing, Sendrecv, Exchange and Biband keep names of their own:
    `compare` and `show` take them. A file is one launch with one value per point. Options in its calling
    sequence that change what is measured are part of the points; outputs of IMB-P2P and other parts are
    refused.
    """
    read = _one_launch(partial(read_imb, window=window))
    _import(sources, read, Measured(mpi, **vars(circumstances), level=level), output, json)


def repro(
    *,
    sources: FilesArgument,
    mpi: MpiOption,
    output: OutputOption,
    circumstances: Circumstances,
    json: bool = AS_JSON,
) -> None:
    """Import outputs of ReproMPI (mpibenchmark), also with -v.

    A file is one launch with all iterations of its collectives, the slowest rank's time of each; with -v the
    times of every rank too. Iterations that missed their window are left out. Summaries are refused.
    """
    _import(sources, _one_launch(read_repro), Measured(mpi, **vars(circumstances)), output, json)


def table(
    *,
    source: Annotated[
        Path, typer.Argument(metavar="FILE.csv", help="Columns level,placement,pairs,bytes,time_s.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Run folder to create; of Table I, folder of profiles.")
    ],
    mpi: MpiOption = UNKNOWN,
    circumstances: Circumstances,
    json: bool = AS_JSON,
) -> None:
    """Import a table of ping-pong times of another site, or of fitted parameters.

    time_s is half a round trip with so many pairs at once; placements, such as other pairs of nodes, are
    launches. One pair becomes a ping-pong that reuses its buffers, several pairs keep a name of their own; to
    fit contention, give the table to `earlybird fit`. A table laid out as Table I of Thune et al. 2023
    becomes a profile for each CPU.
    """
    header = files.read_text(source, "table").partition("\n")[0].strip()
    if header == ",".join(THUNE_HEADER):
        given: dict[str, object] = {"mpi": mpi != UNKNOWN, "host": circumstances.host != UNNAMED_HOST}
        given |= {"version": circumstances.version, "started": circumstances.started}
        if useless := [name for name, is_given in given.items() if is_given]:
            raise InputError(
                f"{source} is laid out as Table I of Thune et al. 2023, whose profiles have no "
                f"{listed(useless)}; omit {listed([f'--{name}' for name in useless])}"
            )
        _import_profiles(source, output, json)
        return
    measured = Measured(mpi, **vars(circumstances))
    _import([source], lambda _, where: read_pingpong_table(where), measured, output, json)


def _import_profiles(source: Path, output: Path, json: bool) -> None:
    """Make the profiles, and say what to do with one."""
    written = import_profiles(source, output)
    note(
        f"wrote {output}: {counted(len(written), 'profile')}; next: earlybird predict --profile "
        f"{path_argument(written[0])}"
    )
    if json:
        print_json({"profiles": list(map(str, written))})


def _one_launch(read: Callable[[str, str], Imported]) -> Read:
    """Return the reader of texts that are one launch each."""
    return lambda text, where: [read(text, where)]


def _import(sources: Sequence[Path], read: Read, measured: Measured, output: Path, json: bool) -> None:
    """Create the run, and print a summary of its content."""
    imports = import_run(sources, read, measured, output)
    launches = counted(imports.launches, "launch", "launches")
    note(f"wrote {output}: {counted(imports.values, 'value')} from {launches}")
    for remark in imports.remarks:
        note(remark)
    run = path_argument(output)
    note(f"next: earlybird show {run}, or earlybird compare {run} OTHER_RUN/")
    if json:
        print_json({"run": str(output), "launches": imports.launches, "values": imports.values})


command = make_group(
    [
        (
            "osu",
            osu,
            "earlybird import osu latency-1.txt latency-2.txt --mpi mpich --level inter_node -o site",
        ),
        ("imb", imb, "earlybird import imb imb.txt --mpi intel --level intra_socket -o site"),
        ("repro", repro, "earlybird import repro reprompi-1.txt reprompi-2.txt --mpi mpich -o site"),
        ("table", table, "earlybird import table blue_waters_pingpong.csv --mpi craympich -o site"),
    ],
    name="import",
    help="Make a run of what other benchmarks printed.",
)
