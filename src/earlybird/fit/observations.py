"""What a fit starts from: the median times of runs of one context, without the points that do not count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS
from earlybird.data.run import Run, Sample, require_validated
from earlybird.data.tables import load_pingpong_table

MEASURE_HINT = "run `earlybird measure pingpong contention -o RUN` first"

_LAUNCH_KEYS = ("flavour", "version", "launcher")
# Kept where all launches agree; a difference here does not change what messages cost.
_NOTED_KEYS = ("library_version", "thread_level")
_MACHINE_KEYS = ("cpu_model", "cores")
_THRESHOLD_WORDS = ("eager", "rndv", "threshold")
# Thresholds of something else than where a point-to-point message changes its protocol.
_OTHER_WORDS = ("coll", "bcast", "gather", "scatter", "alltoall", "reduc", "barrier", "rma", "gpu", "ctxid")


@dataclass(frozen=True)
class Observations:
    """Times of one context.

    Attributes
    ----------
    table : one row per point and launch with the columns source ("contention" or "pingpong"), level, n
        (processes of a group receiving at once), size_bytes, launch, time_s (median of the steady
        iterations), oversubscribed, converged.
    thresholds_bytes : protocol switches that the MPI library tells of itself.
    runs : {"id", "sha256"} of each run read.
    """

    table: pandas.DataFrame
    thresholds_bytes: tuple[int, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class LevelTimes:
    """The times of one level as an array.

    Attributes
    ----------
    n : (K,) processes of a group receiving at once, ascending.
    size_bytes : (S,) ascending.
    time_s : (L, K, S) seconds of every launch; NaN where a launch did not measure the point.
    oversubscribed : (K,) whether that n was measured with more ranks than cores.
    """

    name: str
    n: np.ndarray
    size_bytes: np.ndarray
    time_s: np.ndarray
    oversubscribed: np.ndarray

    def median_s(self) -> np.ndarray:
        """(K, S) medians over launches."""
        return median_over_launches(self.time_s)


def median_over_launches(time_s: np.ndarray) -> np.ndarray:
    """(..., L, K, S) -> (..., K, S); NaN where no launch has the point."""
    ordered = np.sort(time_s, axis=-3)  # NaN sorts last
    count = np.isfinite(ordered).sum(axis=-3, keepdims=True)
    low, high = np.maximum(count - 1, 0) // 2, count // 2
    middle = np.take_along_axis(ordered, low, axis=-3) + np.take_along_axis(ordered, high, axis=-3)
    return middle[..., 0, :, :] / 2


def read_runs(paths: Iterable[str | Path]) -> Observations:
    """Read run folders of one context.

    Raises InputError when a folder is no run, nothing in them calibrates a model, or their contexts differ;
    WorkError when a sample received wrong data.
    """
    runs = [Run.open(path) for path in paths]
    names = ", ".join(str(run.path) for run in runs)
    used = [(run, sample) for run in runs for sample in run.samples() if _calibrates(sample)]
    if not used:
        raise InputError(
            f"{names}: no contention samples and no ping-pong samples of varying buffers; {MEASURE_HINT}"
        )
    require_validated(sample for _, sample in used)
    launches = _launches_of(runs, used)
    table = pandas.DataFrame([_observation(run, sample) for run, sample in used])
    context = _common(launches.values(), _LAUNCH_KEYS, names) | _transport(used, launches, names)
    _common((run.header.get("machine", {}) for run in runs), _MACHINE_KEYS, names)
    return Observations(
        table=table,
        thresholds_bytes=_thresholds(launches.values()),
        machine=runs[0].header.get("machine", {}),
        context=context | _noted(list(launches.values())),
        runs=tuple({"id": run.id, "sha256": run.sha256()} for run in runs),
    )


def read_table(path: str | Path) -> Observations:
    """Read a table `level,placement,pairs,bytes,time_s`, see `data.tables.load_pingpong_table`."""
    return Observations(table=load_pingpong_table(path), context={"source": Path(path).name})


def level_times(table: pandas.DataFrame) -> list[LevelTimes]:
    """The levels of a table, inner to outer, contention data before ping-pongs (see `select`)."""
    return [_to_array(name, rows) for name in LEVELS if len(rows := select(table[table.level == name]))]


def pingpong_times(table: pandas.DataFrame) -> list[LevelTimes]:
    """The levels of a table that have a ping-pong of a single pair, with that alone."""
    single = table[(table.source == "pingpong") & (table.n == 1)]
    return [
        _to_array(name, rows)
        for name in LEVELS
        if len(rows := _without_oversubscribed(single[single.level == name]))
    ]


def select(rows: pandas.DataFrame) -> pandas.DataFrame:
    """The rows of a level that count: oversubscribed ones and ping-pongs only for an n that has no other.

    A ping-pong waits for every answer, the contention benchmark streams: their times must not share a line.
    """
    rows = _without_oversubscribed(rows)
    streamed = rows.n[rows.source == "contention"].unique()
    return rows[(rows.source == "contention") | ~rows.n.isin(streamed)]


def _without_oversubscribed(rows):
    proper = rows.n[~rows.oversubscribed].unique()
    return rows[~rows.oversubscribed | ~rows.n.isin(proper)]


def _to_array(name, rows):
    medians = rows.groupby(["launch", "n", "size_bytes"]).time_s.median()
    axes = [np.sort(rows[column].unique()) for column in ("launch", "n", "size_bytes")]
    full = medians.reindex(pandas.MultiIndex.from_product(axes))
    oversubscribed = rows.groupby("n").oversubscribed.any().to_numpy()
    return LevelTimes(
        name, axes[1], axes[2], full.to_numpy().reshape([len(axis) for axis in axes]), oversubscribed
    )


def _calibrates(sample: Sample) -> bool:
    if sample.kernel == "pingpong":
        return sample.quantity == "half_round_trip" and sample.config.get("buffers", "vary") == "vary"
    return sample.kernel == "contention" and sample.quantity == "time_per_repeat"


def _observation(run: Run, sample: Sample) -> dict[str, Any]:
    config = sample.config
    time_s = sample.median_s()
    try:
        level, size_bytes = config["level"], int(config["size_bytes"])
        n = int(config["competitors"]) if sample.kernel == "contention" else 1
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{run.path}: a {sample.kernel} sample lacks a usable {error} in its config; measure again"
        ) from error
    if level not in LEVELS or n < 1 or size_bytes < 0 or time_s <= 0:
        raise InputError(
            f"{run.path}: a {sample.kernel} sample says level={level} competitors={n} "
            f"size_bytes={size_bytes} and a median of {time_s:g} s; levels are {', '.join(LEVELS)}, "
            "competitors at least 1, times above 0: measure again"
        )
    return {
        "source": sample.kernel,
        "level": level,
        "n": n,
        "size_bytes": size_bytes,
        "launch": f"{run.id}/{sample.launch}",
        "time_s": time_s,
        "oversubscribed": sample.oversubscribed,
        "converged": sample.converged,
    }


def _launches_of(runs, used) -> dict[tuple[str, str], Mapping[str, Any]]:
    wanted = {(run.id, sample.launch) for run, sample in used}
    launches = {(run.id, str(launch.get("id"))): launch for run in runs for launch in run.launches()}
    return {key: launch for key, launch in launches.items() if key in wanted}


def _transport(used, launches, names: str) -> dict[str, Any]:
    """One transport per level, since messages inside a node and between nodes travel differently."""
    keys: dict[str, set[tuple[str, str]]] = {}
    for run, sample in used:
        keys.setdefault(sample.config["level"], set()).add((run.id, sample.launch))
    found = {
        level: _common(
            (launches.get(key, {}) for key in sorted(members)), ("transport",), f"{names}, {level}"
        )
        for level, members in keys.items()
    }
    transports = {level: common["transport"] for level, common in found.items() if common}
    if len(set(transports.values())) == 1:
        return {"transport": next(iter(transports.values()))}
    return {"transport": transports} if transports else {}


def _common(descriptions: Iterable[Mapping[str, Any]], keys: tuple[str, ...], names: str) -> dict[str, Any]:
    """What all descriptions say under `keys`; a description that lacks a key agrees with any value."""
    common: dict[str, Any] = {}
    for description in descriptions:
        for key in keys:
            value = description.get(key)
            if value is None:
                continue
            if common.setdefault(key, value) != value:
                raise InputError(
                    f"{names}: {key} is {common[key]!r} in one part and {value!r} in another; "
                    "a profile holds for one context: fit them apart"
                )
    return common


def _noted(launches) -> dict[str, Any]:
    values = {key: [launch[key] for launch in launches if key in launch] for key in _NOTED_KEYS}
    return {
        key: found[0] for key, found in values.items() if found and all(item == found[0] for item in found)
    }


def _thresholds(launches) -> tuple[int, ...]:
    return tuple(
        sorted(
            {
                int(value)
                for launch in launches
                for name, value in (launch.get("control_variables") or {}).items()
                if isinstance(value, int | float) and value > 0
                if any(word in name.lower() for word in _THRESHOLD_WORDS)
                if not any(word in name.lower() for word in _OTHER_WORDS)
            }
        )
    )
