"""Run: a folder of raw measurements (`run.json`, `launches.ndjson`, `samples.ndjson`), append-only."""

import contextlib
import hashlib
import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
import numpy as np

from earlybird.data import files, folders, json_text, locks
from earlybird.data.collective_algorithms import COMPLETION, MEAN_OVER_RANKS
from earlybird.data.errors import InputError, Unknown, WorkError, write_error
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.kinds import require_path
from earlybird.data.parameters import Parameters
from earlybird.data.run_keys import CONFIG_TYPES, SampleKeys, check_header, check_launch
from earlybird.data.schema import OMIT_EMPTY, Count, Extra, Record, Share, decode
from earlybird.data.statistics import MEAN, MEDIAN, Statistic, statistic_of
from earlybird.data.units import MAX_BYTES

SCHEMA = "earlybird.run/1"
_APPENDED = ("launches.ndjson", "samples.ndjson")
# A time from the clock of one node to that of another may be below 0, by what their comparison is off.
_MAX_CLOCK_ERROR_S = 1.0
UNNAMED_HOST = "imported"  # of runs that were imported without the name of a machine


if TYPE_CHECKING:
    import pandas as pd

    Scalar = Any  # which type a key has depends on the kernel, which its readers know
else:
    Scalar = str | int | float | bool | None


@dataclass(frozen=True, eq=False)
class Sample(Record):
    """All iterations of one point in one launch.

    Attributes
    ----------
    extra : unknown keys, which are preserved.
    kernel, quantity : `pingpong`, `half_round_trip`; `contention`, `time_per_repeat`; `exchange`, `exchange`;
        `completion`, `completion`; `pipeline`, `time_to_solution`; `partitioned`, `in_flight`; `halo3d`,
        `sweep3d` or `comb`, `step`; `msgrate`, `time_per_window`; `collective`, `completion`,
        `delayed_completion` or `reduce_local`.
    config : the point of the [request](../developers/kernels.md#points); with kernel, quantity and `method`
        it identifies the point. Values are numbers or text, null is as absent. A key that the kernel's points
        have and this one lacks is a default (1 thread of a pipeline, root 0) or unknown: tables leave its
        cell empty, and figures that need it are left out. `mpi` is the flavour, followed by the variables of
        `--env`: `mpich+MPIR_CVAR_CH4_NUM_VCIS=2`.
    launch : `id` of a line of `launches.ndjson`.
    times_s : per operation, one per iteration: by default the time of the slowest rank; where clocks differ
        it may be below 0, which a baseline and a history refuse. `pingpong`: half of rank 0's round trip.
        `completion`: the receiver's time. `pipeline`: the
        [time-to-solution](../pipelines.md#what-is-measured) without its delay. `partitioned`: for how long at
        least one partition is in flight. `msgrate`: one window of every thread.
    warmup : leading entries of `times_s` that are kept but not used; less than the number of entries.
    batch : operations in one timed region; `times_s` is already divided by it.
    converged : whether the stop rule was satisfied.
    validated : whether the received data was correct (`pipeline`, `partitioned`, `collective`: in every
        iteration).
    oversubscribed : whether some node had more rank threads than usable cores.
    method : the method, which distinguishes alternatives with the same `config`.
    rounds : one whole number per iteration: iterations of different methods with the same number were
        interleaved.
    rank_times_s : a row per iteration, a column per rank; for `completion` the columns are sender and
        receiver.
    statistic : `import`: the statistic over iterations that the one entry of `times_s` is;
        `slowest_rank_mean` is the largest of the means of the ranks. Absent if the entries are iterations.
    rounding : `import`: largest relative error of a value that was printed with one digit.
    """

    key_types: ClassVar[Mapping[str, Any]] = CONFIG_TYPES | {"extra": SampleKeys}

    kernel: str
    quantity: str
    config: dict[str, Scalar]
    launch: str
    times_s: np.ndarray
    warmup: Annotated[int, msgspec.Meta(ge=0)] = 0
    batch: Count = 1
    converged: bool = True
    oversubscribed: bool = False
    validated: bool = True
    method: str | None = None
    rounds: np.ndarray | None = None
    rank_times_s: np.ndarray | None = None
    statistic: Statistic | None = None
    rounding: Share = field(default=0.0, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", Parameters(self.kernel, self.config))
        count = len(self.times_s)
        if self.statistic is not None and count != 1:
            raise ValueError(f"statistic is {self.statistic!r} of {count} times_s; it is of a single one")
        for name, times_s in (("times_s", self.times_s), ("rank_times_s", self.rank_times_s)):
            if times_s is not None and not times_s.min(initial=0) >= -_MAX_CLOCK_ERROR_S:
                raise ValueError(f"{name} has {times_s.min():g}; give seconds of 0 or more")
        if self.times_s.ndim != 1 or self.warmup >= count:
            raise ValueError(f"times_s must be numbers, more of them than warmup ({self.warmup})")
        if self.rank_times_s is not None and (self.rank_times_s.ndim, len(self.rank_times_s)) != (2, count):
            raise ValueError("rank_times_s must hold one row of numbers per entry of times_s")
        if self.kernel == COLLECTIVE.name:
            self._require_ranks()
        if self.rounds is not None:
            if self.rounds.shape != (count,) or np.abs(self.rounds).max() > MAX_BYTES:
                raise ValueError("rounds must hold one whole number per entry of times_s")
            object.__setattr__(self, "rounds", self.rounds.astype(np.int64))

    def _require_ranks(self) -> None:
        """Raise ValueError if the root or the times of ranks do not fit the operation."""
        ranks, root = self.config.get("ranks"), self.config.get("root", 0)
        if not isinstance(ranks, int) or not isinstance(root, int):  # refused by their types
            return
        if root >= ranks:
            raise ValueError(f"config.root is {root}; give one of {ranks} ranks")
        if self.rank_times_s is not None and self.rank_times_s.shape[1] != ranks:
            raise ValueError(
                f"rank_times_s has {self.rank_times_s.shape[1]} columns; give one for each of {ranks} ranks"
            )

    def point(self) -> tuple[Any, ...]:
        """Return the identity of the point: samples of one point differ only by launch."""
        return (self.kernel, self.quantity, self.method, tuple(sorted(self.config.items())))

    @property
    def num_timed_ranks(self) -> int:
        """The number of ranks of `rank_times_s`; 0 without it."""
        return 0 if self.rank_times_s is None else int(self.rank_times_s.shape[1])

    def steady_times_s(self) -> np.ndarray:
        """Return `times_s` without the warm-up."""
        return self.times_s[self.warmup :]

    def median_s(self) -> float:
        return float(np.median(self.steady_times_s()))


def sample_from_json(value: Any, where: str = "the sample") -> Sample:
    """Build a Sample from one line's JSON object; raise InputError if it is invalid."""
    return decode(value, Sample, where)


class Run:
    """A run folder. Only `append_*` writes to an existing one; samples and launches are never rewritten."""

    def __init__(self, path: Path, header: dict[str, Any]):
        self.path = path
        self.header = header

    @property
    def id(self) -> str:
        return self.header["id"]

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        machine: Mapping[str, Any],
        command: list[str],
        seed: int,
        contents: Callable[[Path], None] | None = None,
        **extra: Any,
    ) -> "Run":
        """Create the folder with its `run.json`, as a whole or not at all; raise InputError if the path
        exists. `contents` writes the other files into the folder that it is given."""
        path = Path(path)
        now = datetime.now(UTC)
        header = {
            "schema": SCHEMA,
            "id": f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
            "started": now.isoformat(timespec="seconds"),
            "machine": dict(machine),
            "command": list(command),
            "seed": seed,
        } | extra
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with folders.create_whole(path) as folder:
                files.write_json(folder / "run.json", header)
                if contents is not None:
                    contents(folder)
        except FileExistsError as error:
            raise InputError(f"{path} exists already; choose another name") from error
        except OSError as error:
            raise write_error(f"create the folder {path}", error) from error
        return cls(path, header)

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open an existing run folder for reading or appending."""
        path = Path(path)
        if not path.exists():
            raise InputError(f"there is no {path}; give a folder that `measure` wrote")
        if (path / "recording.json").exists():
            raise InputError(
                f"{path} is a recording, not a run; `earlybird show`, `report` and `predict program` read it"
            )
        if not (path / "run.json").exists():
            if next(path.glob("rank-*.ebr"), None) is not None:
                raise InputError(
                    f"{path} has files of ranks, but no recording.json; copy that file of `record` to it, or "
                    "record again"
                )
            raise InputError(
                f"{path} is not a run folder (no run.json in it), nor a recording (no recording.json); give "
                "a folder that `measure` wrote, or `record` for what reads recordings"
            )
        header = files.read_json(path / "run.json", "run", SCHEMA)
        if isinstance(header.get("settings"), dict):
            header["settings"] = json_text.with_current_keys(header["settings"])
        check_header(header, f"the run {path / 'run.json'}")
        if "id" not in header:
            raise InputError(f"the run {path / 'run.json'} has no id; give a folder that `measure` wrote")
        return cls(path, header)

    @classmethod
    def load(cls, path: str | Path) -> "Run":
        """Read a run from the folder that `earlybird measure` or `replay` wrote; raise InputError if it is
        invalid."""
        require_path(path, "the run to load")
        return cls.open(path)

    def frame(self) -> "pd.DataFrame":
        """Return a row for each iteration of each sample: kernel, quantity, method, launch, the
        configuration, iteration, time_s and is_warmup."""
        import pandas as pd

        parts = []
        for sample in self.samples():
            count = len(sample.times_s)
            same: dict[str, Any] = {
                "kernel": sample.kernel,
                "quantity": sample.quantity,
                "method": sample.method,
            }
            same |= {"launch": sample.launch, "oversubscribed": sample.oversubscribed} | sample.config
            values = {
                "iteration": np.arange(count), "time_s": sample.times_s,
                "is_warmup": np.arange(count) < sample.warmup,
            }  # fmt: skip
            parts.append(pd.DataFrame({name: [value] * count for name, value in same.items()} | values))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the run, so that one process at a time appends to it; raise InputError if another one does.
        The lock ends with the process."""
        for name in ("run.json", *_APPENDED):
            if (self.path / name).is_symlink():
                raise InputError(
                    f"{self.path / name} is a link, and nothing outside of a run is written; put a copy of "
                    "the file that it names in its place"
                )
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(folders.locked(self.path / "run.json"))
            except locks.Locked as error:
                raise InputError(
                    f"another earlybird is measuring into {self.path}; wait for it or end it, then try again"
                ) from error
            yield

    def cut_unterminated_lines(self) -> None:
        """Remove an incomplete last line; call before appending to an existing run."""
        for name in _APPENDED:
            files.cut_unterminated_line(self.path / name)

    def append_launch(self, launch: Mapping[str, Any]) -> None:
        files.append_lines(self.path / "launches.ndjson", [json.dumps(launch, allow_nan=False)])

    def append_samples(self, samples: Iterable[Sample]) -> None:
        lines = [json.dumps(sample.to_json(), allow_nan=False) for sample in samples]
        files.append_lines(self.path / "samples.ndjson", lines)

    def launches(self) -> list[dict[str, Any]]:
        launches = []
        for number, value in self._lines("launches.ndjson"):
            check_launch(value, f"{self.path / 'launches.ndjson'} line {number}")
            launches.append(value)
        return launches

    def samples(self) -> list[Sample]:
        """Return every complete sample, in the order written; an unterminated last line is left out."""
        return list(self.each_sample())

    def each_sample(self) -> Iterator[Sample]:
        """Yield the same samples one by one, so that times of hundreds of ranks need not be in memory
        together."""
        path = self.path / "samples.ndjson"
        settings = self.header.get("settings")
        is_imported = settings is not None and settings.get("imported")
        launches = {str(launch.get("id")): launch for launch in self.launches()} if is_imported else {}
        for number, value in self._lines(path.name):
            sample = sample_from_json(value, f"{path} line {number}")
            if launch := launches.get(sample.launch):
                statistic = statistic_of(sample.statistic, len(sample.times_s), sample.quantity, launch)
                sample = replace(sample, statistic=statistic)
            yield sample

    def sha256(self) -> str:
        """Return the digest of the samples, which identifies the data of a fitted profile."""
        path = self.path / "samples.ndjson"
        digest = hashlib.sha256()
        for block in files.read_blocks(path, "run file") if path.exists() else ():
            digest.update(block)
        return digest.hexdigest()

    def _lines(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        path = self.path / name
        if not path.exists():
            return
        for number, line in enumerate(files.read_whole_lines(path, "run file"), start=1):
            try:
                value = json_text.parse_json(line)
            except ValueError as error:
                raise InputError(
                    f"{path} line {number} is not JSON ({error}); the file was changed by hand"
                ) from error
            if not isinstance(value, dict):
                raise InputError(f"{path} line {number} is not a JSON object; the file was changed by hand")
            yield number, value


def require_validated(samples: Iterable[Sample]) -> None:
    """Raise WorkError if the received data of any sample did not match the data sent."""
    bad = [sample for sample in samples if not sample.validated]
    if bad:
        point = " ".join(f"{key}={value}" for key, value in bad[0].config.items())
        raise WorkError(
            f"{len(bad)} points received wrong data, the first is {bad[0].kernel} {point}; "
            "this MPI corrupts messages here: do not use these figures"
        )


def median_of_launches(samples: Iterable[Sample]) -> float:
    """Return the median over iterations, then over launches: the figure quoted for a point."""
    medians = [sample.median_s() for sample in samples]
    return float(np.median(medians)) if medians else math.nan


def round_ratios(a: Sample, b: Sample) -> np.ndarray:
    """Return the ratios (R,) of `a` over `b` in each interleaving round that both measured after their
    warm-up."""
    times = [
        dict(zip(sample.rounds[sample.warmup :].tolist(), sample.steady_times_s().tolist(), strict=True))
        if sample.rounds is not None
        else {}
        for sample in (a, b)
    ]
    shared = sorted(times[0].keys() & times[1].keys())
    numerator, denominator = (np.array([one[key] for key in shared]) for one in times)
    return numerator[denominator > 0] / denominator[denominator > 0]


def as_completion(sample: Sample) -> Sample:
    """Return a sample of a measured mean over ranks of a collective as a sample of its completion, computed
    from the times of the ranks; return other samples unchanged."""
    if sample.quantity != MEAN_OVER_RANKS or sample.rank_times_s is None:
        return sample
    return replace(sample, quantity=COMPLETION, times_s=np.asarray(sample.rank_times_s).max(axis=1))


def over_launches(launches: Sequence[np.ndarray], statistic: Statistic = MEDIAN) -> np.ndarray:
    """Return the median over iterations, then over launches, or the mean over the iterations of all launches.

    Each launch has an array (I, ...); the result has the shape of an iteration.
    """
    if statistic == MEAN:
        return np.asarray(np.concatenate(launches).mean(axis=0))
    return np.asarray(np.median([np.median(values, axis=0) for values in launches], axis=0))


def rank_times_of_launches(samples: Sequence[Sample], statistic: Statistic = MEDIAN) -> np.ndarray:
    """Return seconds (P,) per rank, see `over_launches`; raise Unknown unless each sample has `rank_times_s`
    of the same P ranks."""
    counts = {sample.num_timed_ranks for sample in samples}
    if len(counts) != 1 or 0 in counts:
        raise Unknown(
            f"the launches of a point have the times of {' and '.join(map(str, sorted(counts)))} ranks; give "
            "those of the same ranks"
        )
    return over_launches([np.asarray(s.rank_times_s)[s.warmup :] for s in samples], statistic)


def thread_times_of_launches(samples: Iterable[Sample], statistic: Statistic = MEDIAN) -> np.ndarray | None:
    """Return seconds (T,) per thread, see `over_launches`; None if a sample does not have the time of each of
    the same T threads."""
    launches = []
    for sample in samples:
        try:
            times_s = np.array(sample.extra.get("thread_times_s"), dtype=float)
        except (TypeError, ValueError):
            return None
        if times_s.ndim != 2 or len(times_s) != len(sample.times_s) or not (times_s > 0).all():
            return None
        launches.append(times_s[sample.warmup :])
    if not launches or len({times_s.shape[1] for times_s in launches}) > 1:
        return None
    return over_launches(launches, statistic)
