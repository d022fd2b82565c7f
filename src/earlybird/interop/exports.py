"""Writes messages and results in formats of other tools, and knows which formats take what, with which
options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.layout import LAYOUT_HEADER

RECORDING, PATTERN, LAYOUT, PROFILE, RUN = "recording", "pattern", "layout", "profile", "run"

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
    """

    sources: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs_none: Mapping[str, str] = field(default_factory=dict)


_HAS_PAIRS = {"combined": "a matrix has one entry per pair of ranks anyway"}
_BINDS = {"cpus": "its file binds ranks to sockets without them"}
_STAYS = {"hosts": "it renumbers ranks where they are"}
FORMATS = {
    "matrix-market": ExportFormat((RECORDING, PATTERN), ("quantity",), _HAS_PAIRS),
    "goal": ExportFormat((RECORDING, PATTERN), ("combined",)),
    "chrome-trace": ExportFormat((RECORDING,), (), {"combined": "a trace has every message"}),
    "mpich": ExportFormat((LAYOUT,), ("hosts", "cpus")),
    "openmpi": ExportFormat((LAYOUT,), ("hosts",), _BINDS),
    "intel": ExportFormat((LAYOUT,), ("hosts", "cpus")),
    "slurm": ExportFormat((LAYOUT,), ("hosts", "cpus")),
    "rank-order": ExportFormat((LAYOUT,), (), _STAYS),
    "simulated-machine": ExportFormat((PROFILE,), ("shape",)),
    "simgrid-platform": ExportFormat((PROFILE,), ("shape",)),
    "loggps": ExportFormat((PROFILE,)),
    "osu": ExportFormat((RUN,)),
    "openmetrics": ExportFormat((RUN,)),
}


@dataclass(frozen=True)
class Exported:
    """The result of an export: `facts` for --json, `text` for people, and `remarks`."""

    facts: dict[str, Any]
    text: str
    remarks: tuple[str, ...] = ()


def check_options(to: str, given: Mapping[str, object]) -> None:
    """Raise InputError for an option that the format does not take."""
    for name, value in given.items():
        if value and name not in FORMATS[to].options:
            why = FORMATS[to].needs_none.get(name)
            raise InputError(f"--{name} {_OPTIONS[name]}; omit it with --to {to}{(why and f': {why}') or ''}")


def formats_of(source: Path) -> tuple[str, list[str]]:
    """Return the kind of `source`, and the formats in which it can be written."""
    kind = _kind_of(source)
    return kind, [name for name, described in FORMATS.items() if kind in described.sources]


def _kind_of(source: Path) -> str:
    from earlybird.data import profile, recording
    from earlybird.data.run import Run

    source = Path(files.shipped(source))
    if not source.exists():
        raise InputError(f"{source} does not exist; check the path")
    if (source / recording.SUMMARY).exists():
        return RECORDING
    if source.is_dir():
        Run.open(source)  # or refuses another folder
        return RUN
    suffix = files.suffix_of(source)
    if suffix == ".json":
        files.read_json(source, "profile", profile.SCHEMA)
        return PROFILE
    if suffix == ".csv" and files.read_text(source, "layout").startswith(LAYOUT_HEADER):
        return LAYOUT
    return PATTERN


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
