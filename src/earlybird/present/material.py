"""Material: all inputs of one report, loaded and classified by schema."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earlybird.data import files, labels
from earlybird.data.advice import Advice, CollectivesAdvice
from earlybird.data.check import Check
from earlybird.data.collective_algorithms import family_of
from earlybird.data.comparison import Comparison
from earlybird.data.errors import InputError
from earlybird.data.guidelines import GuidelineChecks
from earlybird.data.history import History
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.node_counts import NodeCounts
from earlybird.data.pattern import Pattern, load_pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import Profile
from earlybird.data.recording import SUMMARY, Recording, load_recording
from earlybird.data.run import Run, Sample, as_completion
from earlybird.data.run_comparison import RunComparison
from earlybird.data.shell_commands import path_argument
from earlybird.data.simulated_program import SimulatedProgram
from earlybird.data.statistics import MEDIAN, Statistic
from earlybird.data.tolerance import Tolerance
from earlybird.data.units import number_or_none as number_or_none
from earlybird.present.registry import KINDS, kind_of, nouns

PATTERN_SUFFIXES = (".csv", ".npz", ".mtx", ".mm")
ALLOWED = (
    f"give run folders, recordings, a {nouns([kind for kind in KINDS.values() if kind.part])} (.json) or "
    "patterns (.csv, .npz, .mtx)"
)


@dataclass(frozen=True)
class MeasuredRun:
    """A run folder in memory: the content of run.json, the launches and the samples. `path` is for commands,
    "" if the run did not come from a folder. `layout` is the layout of a replay."""

    name: str
    header: Mapping[str, Any]
    launches: tuple[Mapping[str, Any], ...]
    samples: tuple[Sample, ...]
    path: str = ""
    layout: Layout | None = None

    @property
    def machine(self) -> Mapping[str, Any]:
        """Return the machine in run.json; empty if it has none."""
        value = self.header.get("machine")
        return value if isinstance(value, dict) else {}

    def family(self, mpi: str) -> str | None:
        """Return the family of one of its MPIs, by the launches that measured it; None if unknown."""
        used = {sample.launch for sample in self.samples if sample.config.get("mpi") == mpi}
        return next((family_of(launch) for launch in self.launches if launch.get("id") in used), None)


@dataclass(frozen=True)
class ReferenceCurve:
    """A published model of one collective algorithm: seconds against number of ranks."""

    source: str
    operation: str
    algorithm: str
    map_by: str
    size_bytes: int
    ranks: tuple[int, ...]
    time_s: tuple[float, ...]


@dataclass(frozen=True)
class Verification:
    """A check that an algorithm used the requested communication `tree`, derived from which ranks a delayed
    rank delays: `verdict` is "confirmed", "contradicted" or "not verified", `seen` the observed tree."""

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
    """The inputs of a report, without references to files; every part may be empty.

    `fitted_pipelines` and `fitted_collectives` are the seconds that the fitted models of the profiles predict
    for the measured points, by Sample.point(). These, `references` and `verifications` are computed
    elsewhere: the report evaluates no model. `layout` is where the ranks of patterns and predictions run that
    do not know it themselves. `statistic` is what is shown of measured times. `names` are those of
    the files of each part, in order, as the user gave them, and `paths` are what a command accepts for them.
    `remarks` say what of the files was left out.
    """

    runs: tuple[MeasuredRun, ...] = ()
    profiles: tuple[Profile, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    node_counts: tuple[NodeCounts, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    advice: tuple[Advice, ...] = ()
    simulations: tuple[SimulatedProgram, ...] = ()
    recordings: tuple[Recording, ...] = ()
    run_comparisons: tuple[RunComparison, ...] = ()
    histories: tuple[History, ...] = ()
    guidelines: tuple[GuidelineChecks, ...] = ()
    checks: tuple[Check, ...] = ()
    fitted_pipelines: Mapping[tuple[Any, ...], float] = field(default_factory=dict)
    fitted_collectives: Mapping[tuple[Any, ...], float] = field(default_factory=dict)
    references: tuple[ReferenceCurve, ...] = ()
    verifications: tuple[Verification, ...] = ()
    layout: Layout | None = None
    statistic: Statistic = MEDIAN
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def name_of(self, part: str, k: int) -> str:
        """Return the name of the file of the k-th item of a part; "" if it did not come from a file."""
        return _item(self.names, part, k)

    def named(self, part: str) -> list[tuple[Any, str]]:
        """Return the items of a part, each with the name of its file if there are several, else \"\"."""
        items = getattr(self, part)
        return [
            (item, (self.name_of(part, k) or f"#{k + 1}") if len(items) > 1 else "")
            for k, item in enumerate(items)
        ]

    def path_of(self, part: str, k: int) -> str:
        """Return the path of the file of the k-th item of a part; "" if it did not come from a file."""
        return _item(self.paths, part, k)


def _item(texts: Mapping[str, tuple[str, ...]], part: str, k: int) -> str:
    known = texts.get(part, ())
    return known[k] if k < len(known) else ""


def collect(
    paths: Iterable[str | Path],
    layout: Layout | None = None,
    read_pattern: Callable[[Path], Pattern] = load_pattern,
) -> Material:
    """Load run folders (with the pattern and comparison that a replay left in them), recordings, JSON files
    and patterns, these with `read_pattern`.

    A file given twice, directly and inside its run folder, counts once. Raises InputError for any other kind
    of file.
    """
    kinds = ("runs", "profiles", "predictions", "tolerances", "node_counts", "comparisons", "patterns",
             "advice", "simulations", "recordings", "run_comparisons", "histories", "guidelines",
             "checks")  # fmt: skip
    items_of: dict[str, list[tuple[Any, str, str]]] = {kind: [] for kind in kinds}
    given = [path.parent if path.name in ("run.json", SUMMARY) else path for path in map(Path, paths)]
    name_of = _short_names(given)
    seen: set[Path] = set()
    for argument in given:
        for path in _expand(argument):
            if _real(path) not in seen:
                seen.add(_real(path))
                kind, values = _load(path, name_of[_real(argument)], read_pattern)
                items_of[kind] += [(value, name_of[_real(argument)], _path_text(path)) for value in values]
    parts: dict[str, Any] = {kind: tuple(value for value, _, _ in items) for kind, items in items_of.items()}
    readable = [profile.readable() for profile in parts["profiles"]]
    parts["profiles"] = tuple(profile for profile, _ in readable)
    return Material(
        **parts,
        remarks=tuple(remark for _, remark in readable if remark),
        layout=layout,
        names={kind: tuple(name for _, name, _ in items) for kind, items in items_of.items()},
        paths={kind: tuple(path for _, _, path in items) for kind, items in items_of.items()},
    )


def _real(path: Path) -> Path:
    """Return a path without links; of a loop of links, which `Path.resolve` fails for, a path that is refused
    when it is read."""
    return Path(os.path.realpath(path))


def _path_text(path: Path) -> str:
    """Return `path` for a command: relative to the working directory if it is inside, else as given."""
    whole, here = _real(path), Path.cwd()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(path)


def _short_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the last part of each resolved path, with as many folders as distinguish it from the others."""
    whole = {_real(path) for path in paths}
    names = {}
    for path in whole:
        others = [other.parts for other in whole - {path}]
        tails = (path.parts[-count:] for count in range(1, len(path.parts) + 1))
        own = next(tail for tail in tails if all(tail != other[-len(tail) :] for other in others))
        names[path] = str(Path(*own))
    return names


def _expand(path: Path) -> list[Path]:
    """Return a run folder and the files of a replay or a check inside it."""
    if not path.is_dir():
        return [path]
    inside = ("pattern.npz", "comparison.json", "check.json")
    return [path, *(path / name for name in inside if (path / name).exists())]


def _load(path: Path, name: str, read_pattern: Callable[[Path], Pattern]) -> tuple[str, Sequence[Any]]:
    """Return the part of the material, and the items for it."""
    if (path / SUMMARY).exists():
        return "recordings", [load_recording(path)]
    if path.is_dir():
        run = Run.open(path)
        launches = tuple(launch for launch in run.launches() if isinstance(launch, dict))
        layout = parse_layout(str(path / "layout.csv")) if (path / "layout.csv").exists() else None
        # The page shows completions of collectives, whichever time the run was stopped by.
        samples = tuple(map(as_completion, run.samples()))
        return "runs", [MeasuredRun(name, run.header, launches, samples, _path_text(path), layout)]
    suffix = files.suffix_of(path)
    if suffix in PATTERN_SUFFIXES:
        return "patterns", [read_pattern(path)]
    if path.exists() and suffix != ".json":
        raise InputError(f"{path} is not an input of a report; {ALLOWED}")
    return _from_json(path)


def _from_json(path: Path) -> tuple[str, Sequence[Any]]:
    value = files.read_json(path, "file")
    schema = value.get("schema")
    kind = kind_of(schema)
    if kind is None or not kind.part:
        show = f", or print it with `earlybird show {path_argument(path)}`" if kind else ""
        raise InputError(
            f"{path} has the schema {schema!r}, which is not an input of a report; {ALLOWED}{show}"
        )
    item = kind.read(value, path)
    return kind.part, item.pieces() if isinstance(item, CollectivesAdvice) else [item]


def profile_mpi(profile: Profile) -> str:
    return str(profile.context.get("flavour") or profile.context.get("mpi") or "other")


def labelled_profiles(material: Material) -> list[tuple[Profile, str]]:
    """Return each profile with its flavour, and with the name of its file if several share a flavour."""
    names = [profile_mpi(profile) for profile in material.profiles]
    return [
        (
            profile,
            ("the profile" if name == "other" else labels.flavour(name))
            + (f" ({material.name_of('profiles', k) or k + 1})" if names.count(name) > 1 else ""),
        )
        for k, (name, profile) in enumerate(zip(names, material.profiles, strict=True))
    ]
