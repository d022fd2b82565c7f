"""`earlybird import`: makes a run of what other benchmarks printed."""

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from earlybird import __version__
from earlybird.cli.options.command import AS_JSON, make_group
from earlybird.cli.options.values import OneOf
from earlybird.data import files
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.labels import FLAVOURS, OTHER_MPIS, counted, listed, percent
from earlybird.data.levels import LEVELS
from earlybird.data.mpi_settings import split_settings
from earlybird.data.profile import save_profile
from earlybird.data.run import UNNAMED_HOST, Run, Sample, sample_from_json
from earlybird.data.shell_commands import path_argument
from earlybird.data.statistics import STATISTICS, Statistic
from earlybird.data.tables import THUNE_HEADER, load_thune_table
from earlybird.interop.imb_outputs import read_imb
from earlybird.interop.imported import Imported, positive
from earlybird.interop.line_prefixes import bare
from earlybird.interop.osu_outputs import read_osu
from earlybird.interop.pingpong_table import read_pingpong_table
from earlybird.interop.reprompi import read_repro
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Outputs, as printed; each is one launch.")
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help="Run folder to create.")]
UNKNOWN = "unknown"
MpiOption = Annotated[
    str, typer.Option(help="The MPI that was measured: mpich, craympich-8.1 or mpich+MPIR_CVAR_X=1.")
]
LevelOption = Annotated[str, typer.Option(help="Where the two ranks of a pair were."), OneOf(*LEVELS)]
HostOption = Annotated[str, typer.Option(help="The machine, so that runs of others are not compared.")]
VersionOption = Annotated[str, typer.Option(help="Version of the MPI.")]
StartedOption = Annotated[
    str | None,
    typer.Option(
        help="When it was measured (ISO 8601), by which `history` orders runs.  [default: as "
        "the output says, or now]"
    ),
]

_FEW_VALUES = 3


def osu(
    sources: FilesArgument,
    mpi: MpiOption,
    level: LevelOption,
    output: OutputOption,
    ranks: Annotated[
        int | None, typer.Option(help="Ranks of a collective, which OSU does not print.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            help="Window of osu_bw and osu_bibw (their -W), which they do not print.  [default: 64]"
        ),
    ] = None,
    host: HostOption = UNNAMED_HOST,
    version: VersionOption = "",
    started: StartedOption = None,
    json: bool = AS_JSON,
) -> None:
    """Import outputs of the OSU Micro-Benchmarks, also with -f, -c and -z 50.

    osu_latency becomes a ping-pong, osu_bw and osu_mbw_mr a message rate of processes, a blocking,
    persistent or neighbourhood collective a collective. osu_bibw, osu_multi_lat, osu_latency_mt and
    osu_latency_mp keep names of their own: `compare` and `show` take them. Of all iterations only the mean is
    printed, with -z 50 the median, too, which is preferred: a file is one launch with one value per point.
    Outputs of buffers in a GPU and of other tests are refused.
    """
    _check({"--ranks": ranks, "--window": window})
    read = partial(read_osu, ranks=ranks, window=window)
    _import(sources, _one(read), mpi, level, output, host, version, started, json)


def imb(
    sources: FilesArgument,
    mpi: MpiOption,
    level: LevelOption,
    output: OutputOption,
    window: Annotated[
        int | None,
        typer.Option(
            help="Window of Uniband and Biband (-window_size), if the output does not repeat its arguments.  "
            "[default: 256, before 2021.2 64]"
        ),
    ] = None,
    host: HostOption = UNNAMED_HOST,
    version: VersionOption = "",
    started: StartedOption = None,
    json: bool = AS_JSON,
) -> None:
    """Import outputs of the Intel MPI Benchmarks (IMB-MPI1).

    PingPong becomes a ping-pong, Uniband a message rate of processes, a collective a collective, completed
    when its slowest rank is (t_max). PingPing, Sendrecv, Exchange and Biband keep names of their own:
    `compare` and `show` take them. A file is one launch with one value per point. Options in its calling
    sequence that change what is measured are part of the points; outputs of IMB-P2P and other parts are
    refused.
    """
    _check({"--window": window})
    _import(sources, _one(partial(read_imb, window=window)), mpi, level, output, host, version, started, json)


def repro(
    sources: FilesArgument,
    mpi: MpiOption,
    output: OutputOption,
    host: HostOption = UNNAMED_HOST,
    version: VersionOption = "",
    started: StartedOption = None,
    json: bool = AS_JSON,
) -> None:
    """Import outputs of ReproMPI (mpibenchmark), also with -v.

    A file is one launch with all iterations of its collectives, the slowest rank's time of each; with -v the
    times of every rank too. Iterations that missed their window are left out. Summaries are refused.
    """
    _import(sources, _one(read_repro), mpi, LEVELS[0], output, host, version, started, json)


def table(
    source: Annotated[
        Path, typer.Argument(metavar="FILE.csv", help="Columns level,placement,pairs,bytes,time_s.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Run folder to create; of Table I, folder of profiles.")
    ],
    mpi: MpiOption = UNKNOWN,
    host: HostOption = UNNAMED_HOST,
    version: VersionOption = "",
    started: StartedOption = None,
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
        given = {
            "--mpi": mpi != UNKNOWN,
            "--host": host != UNNAMED_HOST,
            "--version": version,
            "--started": started,
        }
        if useless := [name for name, is_given in given.items() if is_given]:
            raise InputError(
                f"{source} is laid out as Table I of Thune et al. 2023, whose profiles have no "
                f"{listed([name.removeprefix('--') for name in useless])}; omit {listed(useless)}"
            )
        _import_profiles(source, output, json)
        return
    _import(
        [source],
        lambda _, where: read_pingpong_table(where),
        mpi,
        LEVELS[0],
        output,
        host,
        version,
        started,
        json,
    )


def _import_profiles(source: Path, output: Path, json: bool) -> None:
    if output.exists():
        raise InputError(f"{output} exists already; choose another folder")
    profiles = load_thune_table(source)
    output.mkdir(parents=True)
    written = [output / (re.sub(r"[^\w.,()@+:-]", "-", cpu) + ".json") for cpu in profiles]
    try:
        for path, profile in zip(written, profiles.values(), strict=True):
            save_profile(profile, path)
    except EarlybirdError:
        shutil.rmtree(output, ignore_errors=True)
        raise
    note(
        f"wrote {output}: {counted(len(written), 'profile')}; next: earlybird predict --profile "
        f"{path_argument(written[0])}"
    )
    if json:
        print_json({"profiles": list(map(str, written))})


def _check(counts: Mapping[str, int | None]) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; give 1 or more")


def _check_mpi(mpi: str) -> None:
    """InputError unless it begins with the name of an MPI, which a label or settings may follow."""
    name, hyphen, label = split_settings(mpi)[0].partition("-")
    known = (*(one for one in FLAVOURS if one != "system"), *OTHER_MPIS, UNKNOWN)
    if name not in known or (hyphen and not re.fullmatch(r"[\w.-]+", label)):
        raise InputError(
            f"--mpi is {mpi!r}; give one of {', '.join(known)}, with a label after a hyphen if needed, such "
            "as mpich-4.2, or with its settings, such as mpich+MPIR_CVAR_X=1"
        )


Read = Callable[[str, str], Sequence[Imported]]  # text, name of the file -> what each launch in it holds


def _one(read: Callable[[str, str], Imported]) -> Read:
    """Of texts that are one launch each."""
    return lambda text, where: [read(text, where)]


def _import(
    sources: Sequence[Path],
    read: Read,
    mpi: str,
    level: str,
    output: Path,
    host: str,
    version: str,
    started: str | None,
    json: bool,
) -> None:
    _check_mpi(mpi)
    texts = [_whole_text(source) for source in sources]
    found = [
        (source, text, one)
        for text, source in zip(texts, sources, strict=True)
        for one in read(bare(text), str(source))
    ]
    _refuse_repeated(found)
    _refuse_other_datatypes(found)
    _refuse_other_statistics(found)
    if not any(positive(one.points) for _, _, one in found):
        raise InputError(f"every value in {', '.join(map(str, sources))} was printed as 0; nothing to import")
    samples = [
        _samples(one, f"import-{number}", mpi, level, source) for number, (source, _, one) in enumerate(found)
    ]
    dates = [one.started.isoformat() for _, _, one in found if one.started is not None]
    begun = started or min(dates, default=None)
    when = {} if begun is None else {"started": _time(begun)}

    def save_launches(folder: Path) -> None:
        run = Run(folder, {})
        for number, (source, text, one) in enumerate(found):
            run.append_launch({
                "id": f"import-{number}", "launcher": "import", "flavour": mpi, "version": version,
                "tool": f"{one.tool} {one.version}".strip(), "hidden": one.hidden, "file": source.name,
                "sha256": hashlib.sha256(text.encode()).hexdigest(), "datatype": one.datatype,
            })  # fmt: skip
            run.append_samples(samples[number])

    Run.create(
        output,
        machine={"host": host},
        command=["earlybird", "import", *map(str, sources)],
        seed=0,
        earlybird=__version__,
        settings={"imported": True, "mpi": mpi},
        contents=save_launches,
        **when,
    )
    count = sum(len(positive(one.points)) for _, _, one in found)
    note(f"wrote {output}: {counted(count, 'value')} from {counted(len(found), 'launch', 'launches')}")
    if zeros := sum(len(one.points) for _, _, one in found) - count:
        note(f"left out: {counted(zeros, 'value')} printed as 0")
    for hidden in dict.fromkeys(one.hidden for _, _, one in found):
        note(f"warning: {hidden}")
    if rough := [point.rounding for _, _, one in found for point in positive(one.points) if point.rounding]:
        note(
            f"warning: {counted(len(rough), 'value')} printed with one digit, rounded by up to "
            f"{percent(max(rough))}"
        )
    run = path_argument(output)
    note(f"next: earlybird show {run}, or earlybird compare {run} OTHER_RUN/")
    if json:
        print_json({"run": str(output), "launches": len(found), "values": count})


def _refuse_repeated(found: Sequence[tuple[Path, str, Imported]]) -> None:
    """Two launches print the same few values by chance, but not the same table, whatever a log wrote before
    its lines."""
    first: dict[str, Path] = {}
    for source, text, one in found:
        before = first.setdefault(bare(text), source)
        is_table = len(one.points) > _FEW_VALUES
        if before is not source and (is_table or before.resolve() == source.resolve()):
            raise InputError(
                f"{source} and {before} hold the same text; a file is a launch: give each one once"
            )


def _refuse_other_datatypes(found: Sequence[tuple[Path, str, Imported]]) -> None:
    first: dict[str, Path] = {}
    for source, _, one in found:
        if one.datatype:
            first.setdefault(one.datatype, source)
    if len(first) > 1:
        raise InputError(
            f"{listed([f'{source} has {datatype}' for datatype, source in first.items()])}, which are no "
            "launches of one measurement; import each datatype into a run of its own"
        )


def _refuse_other_statistics(found: Sequence[tuple[Path, str, Imported]]) -> None:
    """Raise InputError for means and medians that would be launches of one point."""
    first: dict[tuple, tuple[Path, Statistic]] = {}
    for source, _, one in found:
        for point in one.points:
            if point.statistic is None:
                continue
            key = (point.kernel, point.quantity, point.method, *sorted(point.config.items()))
            before, statistic = first.setdefault(key, (source, point.statistic))
            if statistic != point.statistic:
                kinds = STATISTICS[statistic], STATISTICS[point.statistic]
                raise InputError(
                    f"{before} has the {kinds[0]}, {source} the {kinds[1]}: these "
                    "are no launches of one measurement; import each kind into a run of its own"
                )


def _time(started: str) -> str:
    try:
        return datetime.fromisoformat(started).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        raise InputError(f"--started is {started!r}; give a time such as 2026-11-01T03:00") from error


def _whole_text(source: Path) -> str:
    text = files.read_text(source, "output")
    if text and not text.endswith("\n"):
        last = text.splitlines()[-1].strip()[:60]
        raise InputError(f"{source} ends within the line {last!r}; it was cut off: give the whole output")
    return text


def _samples(imported: Imported, launch: str, mpi: str, level: str, source: Path) -> list[Sample]:
    """The samples of a launch; InputError for values that a run cannot have."""
    samples = []
    for point in positive(imported.points):
        config = {"mpi": mpi} | ({} if point.kernel == COLLECTIVE.name else {"level": level}) | point.config
        ranks_s = point.rank_times_s
        value = {
            "kernel": point.kernel, "quantity": point.quantity, "config": config, "launch": launch,
            "times_s": point.times_s.tolist(), "method": point.method, "statistic": point.statistic,
            "rank_times_s": None if ranks_s is None else ranks_s.tolist(), "rounding": point.rounding,
        }  # fmt: skip
        samples.append(sample_from_json(value, f"{source}, a value of {point.kernel}"))
    return samples


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
