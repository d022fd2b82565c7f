"""Makes a run of what other benchmarks printed: each output is one launch."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from earlybird import __version__
from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.labels import FLAVOURS, OTHER_MPIS, counted, listed, percent
from earlybird.data.levels import LEVELS
from earlybird.data.mpi_settings import split_settings
from earlybird.data.run import UNNAMED_HOST, Run, Sample, sample_from_json
from earlybird.data.statistics import STATISTICS, Statistic
from earlybird.interop.imported import Imported, positive
from earlybird.interop.line_prefixes import bare

UNKNOWN = "unknown"
_FEW_VALUES = 3

_Launch = tuple[Path, str, Imported]  # a file, its text, and what a launch in it holds
Read = Callable[[str, str], Sequence[Imported]]  # text, name of the file -> what each launch in it holds


@dataclass(frozen=True)
class Measured:
    """The properties of a measurement that a text does not state: `started` is a time in ISO 8601."""

    mpi: str = UNKNOWN
    host: str = UNNAMED_HOST
    version: str = ""
    started: str | None = None
    level: str = LEVELS[0]

    def __post_init__(self) -> None:
        """Raise InputError unless the MPI begins with the name of an MPI, which a label or settings may
        follow."""
        name, hyphen, label = split_settings(self.mpi)[0].partition("-")
        known = (*(flavour for flavour in FLAVOURS if flavour != "system"), *OTHER_MPIS, UNKNOWN)
        if name not in known or (hyphen and not re.fullmatch(r"[\w.-]+", label)):
            raise InputError(
                f"--mpi is {self.mpi!r}; give one of {', '.join(known)}, with a label after a hyphen if "
                "needed, such as mpich-4.2, or with its settings, such as mpich+MPIR_CVAR_X=1"
            )


@dataclass(frozen=True)
class Imports:
    """The number of launches and values that a run was made of, and remarks."""

    launches: int
    values: int
    remarks: tuple[str, ...]


def import_run(sources: Sequence[Path], read: Read, measured: Measured, output: Path) -> Imports:
    """Create the run folder `output` from the launches that `read` finds in the files."""
    texts = [_whole_text(source) for source in sources]
    launches = [
        (source, text, imported)
        for text, source in zip(texts, sources, strict=True)
        for imported in read(bare(text), str(source))
    ]
    _refuse_repeated(launches)
    _refuse_other_datatypes(launches)
    _refuse_other_statistics(launches)
    points = [point for _, _, imported in launches for point in positive(imported.points)]
    if not points:
        raise InputError(f"every value in {', '.join(map(str, sources))} was printed as 0; nothing to import")
    samples = [
        _samples(imported, f"import-{number}", measured, source)
        for number, (source, _, imported) in enumerate(launches)
    ]

    def save_launches(folder: Path) -> None:
        run = Run(folder, {})
        for number, (source, text, imported) in enumerate(launches):
            run.append_launch({
                "id": f"import-{number}", "launcher": "import", "flavour": measured.mpi,
                "version": measured.version, "tool": f"{imported.tool} {imported.version}".strip(),
                "hidden": imported.hidden, "file": source.name,
                "sha256": hashlib.sha256(text.encode()).hexdigest(), "datatype": imported.datatype,
            })  # fmt: skip
            run.append_samples(samples[number])

    dates = [imported.started.isoformat() for _, _, imported in launches if imported.started is not None]
    started = measured.started or min(dates, default=None)
    Run.create(
        output, machine={"host": measured.host}, command=["earlybird", "import", *map(str, sources)], seed=0,
        earlybird=__version__, settings={"imported": True, "mpi": measured.mpi}, contents=save_launches,
        **({} if started is None else {"started": _time(started)}),
    )  # fmt: skip
    remarks = []
    if zeros := sum(len(imported.points) for _, _, imported in launches) - len(points):
        remarks.append(f"left out: {counted(zeros, 'value')} printed as 0")
    remarks += [
        f"warning: {hidden}" for hidden in dict.fromkeys(imported.hidden for _, _, imported in launches)
    ]
    if rough := [point.rounding for point in points if point.rounding]:
        remarks.append(
            f"warning: {counted(len(rough), 'value')} printed with one digit, rounded by up to "
            f"{percent(max(rough))}"
        )
    return Imports(len(launches), len(points), tuple(remarks))


def _refuse_repeated(launches: Sequence[_Launch]) -> None:
    """Raise InputError for a launch that is given twice: two launches print the same few values by chance,
    but not the same table, whatever text a log wrote before its lines."""
    first: dict[str, Path] = {}
    for source, text, imported in launches:
        before = first.setdefault(bare(text), source)
        is_table = len(imported.points) > _FEW_VALUES
        if before is not source and (is_table or before.resolve() == source.resolve()):
            raise InputError(
                f"{source} and {before} hold the same text; a file is a launch: give each one once"
            )


def _refuse_other_datatypes(launches: Sequence[_Launch]) -> None:
    """Raise InputError for launches of several datatypes."""
    first: dict[str, Path] = {}
    for source, _, imported in launches:
        if imported.datatype:
            first.setdefault(imported.datatype, source)
    if len(first) > 1:
        raise InputError(
            f"{listed([f'{source} has {datatype}' for datatype, source in first.items()])}, which are no "
            "launches of one measurement; import each datatype into a run of its own"
        )


def _refuse_other_statistics(launches: Sequence[_Launch]) -> None:
    """Raise InputError for means and medians that would be launches of one point."""
    first: dict[tuple, tuple[Path, Statistic]] = {}
    for source, _, imported in launches:
        for point in imported.points:
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


def _samples(imported: Imported, launch: str, measured: Measured, source: Path) -> list[Sample]:
    """Return the samples of a launch; raise InputError for values that a run cannot have."""
    samples = []
    for point in positive(imported.points):
        level = {} if point.kernel == COLLECTIVE.name else {"level": measured.level}
        config = {"mpi": measured.mpi, **level, **point.config}
        ranks_s = point.rank_times_s
        value = {
            "kernel": point.kernel, "quantity": point.quantity, "config": config, "launch": launch,
            "times_s": point.times_s.tolist(), "method": point.method, "statistic": point.statistic,
            "rank_times_s": None if ranks_s is None else ranks_s.tolist(), "rounding": point.rounding,
        }  # fmt: skip
        samples.append(sample_from_json(value, f"{source}, a value of {point.kernel}"))
    return samples
