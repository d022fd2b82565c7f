"""Keeps the measurements of a run as a baseline: one small file, to compare later runs with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from earlybird.data import files
from earlybird.data.errors import InputError, write_error
from earlybird.data.run import Scalar
from earlybird.data.run_keys import ANY_CONFIG_TYPES
from earlybird.data.schema import OMIT_EMPTY, Extra, Record, Share, decode, require_not_negative
from earlybird.data.shell_commands import path_argument
from earlybird.data.statistics import MEDIAN, Statistic

SCHEMA = "earlybird.baseline/1"
FOLDER = Path("baselines")  # by default
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, eq=False)
class BaselinePoint(Record):
    """The times of one point of a baseline.

    Attributes
    ----------
    launch_medians_s : (L,) seconds of each launch: the median of its iterations, or the value that another
        benchmark printed, see `statistic`.
    launch_means_s, launch_slowest_rank_means_s : (L,) seconds, further statistics; None if not known.
    rounding : largest relative error of printed values that have one digit.
    statistic : the statistic over the iterations of a launch that represents it.
    """

    key_types: ClassVar[Mapping[str, Any]] = ANY_CONFIG_TYPES

    kernel: str
    quantity: str
    method: str
    config: dict[str, Scalar]
    launch_medians_s: np.ndarray
    statistic: Statistic = MEDIAN
    launch_means_s: np.ndarray | None = None
    launch_slowest_rank_means_s: np.ndarray | None = None
    rounding: Share = field(default=0.0, metadata=OMIT_EMPTY)

    def __post_init__(self) -> None:
        require_not_negative(self, "launch_medians_s", "launch_means_s", "launch_slowest_rank_means_s")
        if self.launch_medians_s.ndim != 1 or not len(self.launch_medians_s):
            raise ValueError("launch_medians_s must be a list of numbers, one for each launch")
        for name in ("launch_means_s", "launch_slowest_rank_means_s"):
            values = getattr(self, name)
            if values is not None and values.shape != self.launch_medians_s.shape:
                raise ValueError(f"{name} must have as many numbers as launch_medians_s")


@dataclass(frozen=True)
class Baseline(Record):
    """The points of one MPI in one run.

    Attributes
    ----------
    circumstances : conditions that held for all its launches, as text; see `compare.sides`.
    name : name of the baseline.
    run_id, started : id and start of the run.
    points : the points, at least one.
    """

    schema: ClassVar[str] = SCHEMA

    name: str
    run_id: str
    started: str
    mpi: str
    circumstances: dict[str, str]
    points: tuple[BaselinePoint, ...]
    extra: Extra = field(default_factory=dict)


def load_baseline(path: str | Path) -> Baseline:
    """Read a baseline; raise InputError if the file is not one."""
    return baseline_from_json(files.read_json(path, "baseline", SCHEMA), f"the baseline {path}")


def baseline_from_json(value: Mapping[str, Any], where: str = "the baseline") -> Baseline:
    """Build a Baseline from its JSON object; raise InputError if a part is missing."""
    return decode(value, Baseline, where, "save it again with `earlybird baseline save`")


def is_baseline(path: str | Path) -> bool:
    """Return whether the file is a baseline that this version reads."""
    try:
        load_baseline(path)
    except InputError:
        return False
    return True


def save_baseline(baseline: Baseline, path: str | Path) -> None:
    """Write a baseline; create its folder if it is missing."""
    make_folder(Path(path).parent)
    files.write_json(path, baseline.to_json())


def baseline_path(name: str, folder: Path) -> Path:
    """Return the file of a baseline; raise InputError for a name that is not a file name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the baseline is named {name!r}; give letters, digits, '.', '_' and '-', such as mpich-5.0"
        )
    return folder / f"{name}.json"


def find_baseline(name: str, folder: Path) -> Path:
    """Return the file of an existing baseline; raise InputError, naming the existing ones, if it does not
    exist."""
    path = baseline_path(name, folder)
    if not path.exists():
        there = sorted(file.stem for file in folder.glob("*.json") if is_baseline(file))
        known = f"; it has {', '.join(there)}" if there else ""
        raise InputError(
            f"there is no baseline {name} in {folder}{known}; save one with "
            f"`earlybird baseline save {path_argument(name)} RUN/`"
        )
    return path


def make_folder(folder: Path) -> None:
    """Create the folder of baselines if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(f"create the folder {folder}", error) from error
