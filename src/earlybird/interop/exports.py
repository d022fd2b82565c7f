"""Writes messages and results in formats of other tools; lists which sources and options each format
takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.layout import LAYOUT_HEADER

RECORDING, PATTERN, LAYOUT, PROFILE, RUN = "recording", "pattern", "layout", "profile", "run"
REPLAY = "replay"  # which no format takes
SIMGRID_TRACE = "simgrid-trace"
FOLDERS = ("osu", SIMGRID_TRACE)  # formats of several files

# Options of some formats, and what they are for.
_OPTIONS = {
    "quantity": "is about the matrix of messages",
    "combined": "is about the messages of a schedule",
    "hosts": "names the nodes of a layout",
    "cpus": "binds the ranks of mpich, intel and slurm",
    "shape": "is of a machine to simulate",
}


@dataclass(frozen=True)
class ExportFormat:
    """A format of exported files.

    Attributes
    ----------
    sources : the kinds of source that can be written in it.
    options : the options in `_OPTIONS` that it takes.
    needs_none : why it needs none of the options that it does not take, by option.
    writer : `module:function` of `interop`; "" if it has to be given to `export`.
    """

    sources: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs_none: Mapping[str, str] = field(default_factory=dict)
    writer: str = ""


_HAS_PAIRS = {"combined": "a matrix has one entry per pair of ranks anyway"}
_BINDS = {"cpus": "its file binds ranks to sockets without them"}
_STAYS = {"hosts": "it renumbers ranks where they are"}
FORMATS = {
    "matrix-market": ExportFormat(
        (RECORDING, PATTERN), ("quantity",), _HAS_PAIRS, "message_exports:write_matrix"
    ),
    "goal": ExportFormat((RECORDING, PATTERN), ("combined",), writer="message_exports:write_goal"),
    "chrome-trace": ExportFormat(
        (RECORDING,), (), {"combined": "a trace has every message"}, "message_exports:write_chrome_trace"
    ),
    SIMGRID_TRACE: ExportFormat(
        (RECORDING,), (), {"combined": "a trace has every message", "shape": "its platform has one"}
    ),
    "mpich": ExportFormat((LAYOUT,), ("hosts", "cpus")),
    "openmpi": ExportFormat((LAYOUT,), ("hosts",), _BINDS),
    "intel": ExportFormat((LAYOUT,), ("hosts", "cpus")),
    "slurm": ExportFormat((LAYOUT,), ("hosts", "cpus")),
    "rank-order": ExportFormat((LAYOUT,), (), _STAYS),
    "simulated-machine": ExportFormat((PROFILE,), ("shape",), writer="model_exports:write_simulated_machine"),
    "simgrid-platform": ExportFormat((PROFILE,), ("shape",)),
    "loggps": ExportFormat((PROFILE,), writer="model_exports:write_loggps"),
    "osu": ExportFormat((RUN,), writer="exports:write_osu"),
    "openmetrics": ExportFormat((RUN,), writer="exports:write_openmetrics"),
}


@dataclass(frozen=True)
class Exported:
    """The result of an export: `facts` for --json, `text` for people, and `remarks`."""

    facts: dict[str, Any]
    text: str
    remarks: tuple[str, ...] = ()


# Writes a source into a file, with the options of its format that were given as keywords.
Writer = Callable[..., Exported]


def export(
    source: Path, to: str, output: Path, given: Mapping[str, object], writer: Writer | None = None
) -> Exported:
    """Write `source` in a format with the options that were given; `writer` if the format has none.

    The arguments must have passed `check`.
    """
    if writer is None:
        module, _, function = FORMATS[to].writer.partition(":")
        writer = getattr(import_module(f"earlybird.interop.{module}"), function)
    options = {name: value for name, value in given.items() if value not in (None, False)}
    exported: Exported = writer(source, output, **options)
    return exported


def check(source: Path, to: str, given: Mapping[str, object]) -> None:
    """Raise InputError for an option that the format does not take, and for another kind of source."""
    check_options(to, given)
    require_source(source, to)


def check_options(to: str, given: Mapping[str, object]) -> None:
    """Raise InputError for an option that the format does not take."""
    for name, value in given.items():
        if value and name not in FORMATS[to].options:
            why = FORMATS[to].needs_none.get(name)
            raise InputError(f"--{name} {_OPTIONS[name]}; omit it with --to {to}{(why and f': {why}') or ''}")


def formats_of(source: Path) -> tuple[str, list[str]]:
    """Return the kind of `source`, and the formats in which it can be written."""
    kind = _kind_of(source) or PATTERN
    return kind, [name for name, described in FORMATS.items() if kind in described.sources]


def require_source(source: Path, to: str) -> None:
    """Raise InputError unless `source` is of a kind that the format takes."""
    sources = FORMATS[to].sources
    kind = _kind_of(source, sources)
    if kind and kind not in sources:
        raise InputError(f"{source} is a {kind}, but --to {to} takes a {' or a '.join(sources)}; give one")


def _kind_of(source: Path, wanted: tuple[str, ...] = (PROFILE,)) -> str:
    """Return the kind of a source; "" of a table with another header, which its reader refuses.

    Raises InputError for a path that does not exist, which names the shipped profiles if one is `wanted`.
    """
    from earlybird.data import pattern, profile, recording
    from earlybird.data.kernels import EXCHANGE
    from earlybird.data.run import Run

    source = Path(files.shipped(source))
    if not source.exists():
        instead = files.or_shipped(source) if PROFILE in wanted else f" of the {' or '.join(wanted)}"
        raise InputError(f"{source} does not exist; check the path{instead}")
    if (source / recording.SUMMARY).exists():
        return RECORDING
    if source.is_dir():
        samples = Run.open(source).samples()  # or refuses another folder
        is_replay = samples and all(sample.kernel == EXCHANGE.name for sample in samples)
        return REPLAY if is_replay else RUN
    suffix = files.suffix_of(source)
    if suffix == ".json":
        files.read_json(source, "profile", profile.SCHEMA)
        return PROFILE
    if suffix != ".csv":
        return PATTERN
    header = files.read_text(source, "layout").partition("\n")[0].strip().replace(" ", "")
    return {LAYOUT_HEADER: LAYOUT, pattern.HEADER: PATTERN}.get(header, "")


def write_openmetrics(source: Path, output: Path) -> Exported:
    """Write the points of a run as OpenMetrics."""
    from earlybird.compare.results import results
    from earlybird.data.kernels import EXCHANGE
    from earlybird.data.run import Run, require_validated
    from earlybird.interop.openmetrics import openmetrics_text

    run = Run.open(source)
    samples = [sample for sample in run.samples() if sample.kernel != EXCHANGE.name]
    if not samples:
        raise InputError(f"{run.path} has no results; give a run folder that `earlybird measure` wrote")
    require_validated(samples)
    points = results(samples)
    files.write_text(output, openmetrics_text(points, run.header))
    return Exported({"files": 1}, counted(len(points), "point"))


def write_osu(source: Path, output: Path) -> Exported:
    """Write the tables of OSU for each launch of a run into a folder, one file per launch."""
    from earlybird.data import folders
    from earlybird.data.kernels import MSGRATE
    from earlybird.data.methods import PROCESSES
    from earlybird.data.run import Run, require_validated
    from earlybird.interop.osu_tables import ONE_COLUMN, is_osu, osu_files

    run = Run.open(source)
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
    remark = f"left out {', '.join(left_out)} or methods of them: OSU has no such table"
    written = f"{counted(len(texts), 'file')}; `earlybird import osu` reads those of one table"
    return Exported({"files": len(texts)}, written, (remark,) if left_out else ())
