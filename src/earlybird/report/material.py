"""Material: everything given to one report, loaded and told apart by schema."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from earlybird.data import files
from earlybird.data.advice import SCHEMA as ADVICE
from earlybird.data.advice import Advice, advice_from_json
from earlybird.data.comparison import Comparison, comparison_from_json
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern, load_pattern
from earlybird.data.prediction import Prediction, prediction_from_json
from earlybird.data.profile import Profile, profile_from_json
from earlybird.data.run import Run, Sample

PATTERN_SUFFIXES = (".csv", ".npz", ".mtx", ".mm")
ALLOWED = (
    "give run folders, profiles, predictions, comparisons, advice (.json) or patterns (.csv, .npz, .mtx)"
)


@dataclass(frozen=True)
class MeasuredRun:
    """A run folder in memory: the content of run.json, its launches and its samples."""

    name: str
    header: Mapping[str, Any]
    launches: tuple[Mapping[str, Any], ...]
    samples: tuple[Sample, ...]

    @property
    def machine(self) -> Mapping[str, Any]:
        """What run.json says of the machine; empty where it says nothing."""
        value = self.header.get("machine")
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class ReferenceCurve:
    """What a published model says of one algorithm of a collective: seconds against numbers of ranks."""

    source: str
    operation: str
    algorithm: str
    map_by: str
    size_bytes: int
    ranks: tuple[int, ...]
    time_s: tuple[float, ...]


@dataclass(frozen=True)
class Proof:
    """Whether an algorithm ran along the `tree` asked for, from who was late when a rank was: `verdict` is
    proven, contradicted or not told, `seen` what it ran along."""

    mpi: str
    operation: str
    method: str
    ranks: int
    map_by: str
    tree: str
    verdict: str
    seen: str = ""


@dataclass(frozen=True)
class Material:
    """What a report is made of; every part may be absent. Nothing in it refers to a file any more.

    `fitted_pipelines` and `fitted_collectives` hold the seconds that fitted models of the profiles say of
    what was measured, by Sample.point(); these, `references` and `proofs` are computed elsewhere: the report
    itself computes no model.
    """

    runs: tuple[MeasuredRun, ...] = ()
    profiles: tuple[Profile, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    advice: tuple[Advice, ...] = ()
    fitted_pipelines: Mapping[tuple, float] = field(default_factory=dict)
    fitted_collectives: Mapping[tuple, float] = field(default_factory=dict)
    references: tuple[ReferenceCurve, ...] = ()
    proofs: tuple[Proof, ...] = ()


def collect(paths: Iterable[str | Path]) -> Material:
    """Load run folders (with the pattern and comparison that a replay left in them), JSON files and patterns.

    A file given twice, directly and inside its run folder, counts once. Raises InputError for anything that
    is not one of ours.
    """
    parts: dict[str, list] = {
        "runs": [],
        "profiles": [],
        "predictions": [],
        "comparisons": [],
        "patterns": [],
        "advice": [],
    }
    seen: set[Path] = set()
    for path in (file for given in paths for file in _expand(Path(given))):
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        kind, value = _load(path)
        parts[kind].append(value)
    return Material(**{kind: tuple(values) for kind, values in parts.items()})


def _expand(path: Path) -> list[Path]:
    """A run folder becomes itself and what a replay left inside; its run.json stands for the folder."""
    if path.name == "run.json":
        path = path.parent
    if not path.is_dir():
        return [path]
    return [path, *(path / name for name in ("pattern.npz", "comparison.json") if (path / name).exists())]


def _load(path: Path) -> tuple[str, Any]:
    if path.is_dir():
        run = Run.open(path)
        launches = tuple(launch for launch in run.launches() if isinstance(launch, dict))
        return "runs", MeasuredRun(path.resolve().name, run.header, launches, tuple(run.samples()))
    if path.suffix in PATTERN_SUFFIXES:
        return "patterns", load_pattern(path)
    if path.exists() and path.suffix != ".json":
        raise InputError(f"{path} is not something a report is made of; {ALLOWED}")
    return _from_json(path)


def _from_json(path: Path) -> tuple[str, Any]:
    value = files.read_json(path, "file")
    readers = {
        "earlybird.profile/1": ("profiles", profile_from_json),
        "earlybird.prediction/1": ("predictions", prediction_from_json),
        "earlybird.comparison/1": ("comparisons", comparison_from_json),
        ADVICE: ("advice", advice_from_json),
    }
    schema = value.get("schema")
    if not isinstance(schema, str) or schema not in readers:
        raise InputError(f"{path} has the schema {schema!r}, which no report is made of; {ALLOWED}")
    kind, reader = readers[schema]
    noun = reader(value, f"the file {path}")
    if isinstance(noun, Comparison):
        _require_ranks(path, noun.measured_s)
    elif isinstance(noun, Prediction):
        _require_ranks(path, noun.time_s)
    return kind, noun


def _require_ranks(path: Path, times_s: np.ndarray) -> None:
    if len(times_s) == 0:
        raise InputError(f"{path} holds no ranks; make it again with the command that wrote it")
