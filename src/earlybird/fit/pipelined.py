"""Fit the joined model to pipelines: one parameter set for each method, level, threads and contexts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas

from earlybird.data.methods import ONE_RECEIVES, PER_PARTITION, THREADS_RECEIVE
from earlybird.data.pipeline_form import JoinedParameters, JoinedProtocol, Pipeline, PipelineForm
from earlybird.data.units import whole_number
from earlybird.fit import resampling
from earlybird.fit.stepwise import (
    MaxOfLines,
    errors_left_out,
    has_enough,
    relative_errors,
    search,
    with_another_protocol,
)
from earlybird.models.pipelined import possible_messages, share_beyond

# The columns of a table of pipelines, one row per point and launch; `vcis` is 0 for the MPI's default.
COLUMNS = ("method", "level", "threads", "vcis", "size_bytes", "partitions", "gamma_s_per_byte", "launch",
           "time_s", "oversubscribed")  # fmt: skip
GROUP = ["method", "level", "threads", "vcis"]
POINT = ["size_bytes", "partitions", "gamma_s_per_byte"]

# The messages of a method, if known; for other methods both are tried and the better one is kept.
MESSAGES: dict[str, tuple[str, ...]] = {"single": ("one",), "many": ("each",), "earlybird": ("planned",),
                                       PER_PARTITION: ("each",)}  # fmt: skip
EITHER = ("one", "each")
# Errors below this neither decide between structures nor increase the weight of a point.
ERROR_FLOOR = 0.01
# The fit alternates between lines and groupings until neither changes, at most this often.
MAX_TURNS = 12
MIN_POINTS = 4
ENOUGH_LAUNCHES = 5  # for a useful interval
SEED = 20230807
# A line that does not rise with the size does not determine the bandwidth. The bandwidth term then gets this
# share of the time at the largest message, which keeps the bandwidth finite.
MIN_BANDWIDTH_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class _Points:
    """The measured points, (n,) each; times are medians over launches."""

    size_bytes: np.ndarray
    partitions: np.ndarray
    delay_s: np.ndarray
    time_s: np.ndarray

    @property
    def partition_bytes(self) -> np.ndarray:
        return self.size_bytes / self.partitions

    def only(self, chosen: np.ndarray) -> "_Points":
        return _Points(*(values[chosen] for values in vars(self).values()))


@dataclass(frozen=True)
class _Structure:
    """The set of parameters of a form.

    Attributes
    ----------
    messages : the messages that the method sends, see `models.pipelined.possible_messages`.
    min_bytes : message sizes at which protocols begin.
    own_latency : true if every protocol has a separate latency; else all share one.
    shares_slope : (C,) index of the protocol whose bandwidth each uses.
    """

    messages: str | int
    min_bytes: tuple[int, ...] = (0,)
    shares_slope: tuple[int, ...] = (0,)
    own_latency: bool = False
    burst_bytes: int | None = None
    overlap: bool = False
    per_partition: bool = False

    @property
    def has_overhead(self) -> bool:
        # For a single message, overhead and latency are indistinguishable.
        return self.messages != "one"

    def num_parameters(self) -> int:
        protocols = len(self.min_bytes)
        switches = protocols - 1
        latencies = protocols if self.own_latency or not self.has_overhead else 1
        overheads = protocols if self.has_overhead else 0
        slopes = len(set(self.shares_slope))
        return (
            switches + latencies + overheads + slopes
            + 2 * (self.burst_bytes is not None) + self.overlap + self.per_partition
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Fit:
    structure: _Structure
    parameters: np.ndarray
    criterion: float

    @property
    def num_parameters(self) -> int:
        return self.structure.num_parameters()


def pipeline_forms(table: pandas.DataFrame, receivers: str = ONE_RECEIVES) -> list[PipelineForm]:
    """Fit the joined model of every method, level, number of threads and of contexts in `table` (see
    COLUMNS), in which the threads `receivers` received.

    Parameters are not negative and minimise the mean relative error of the medians over launches. The search
    starts with a latency, an overhead per message and a bandwidth. It adds a further protocol, a separate
    latency for each, a separate bandwidth beyond some buffer size, an overlap below 1 or a cost per
    partition, one at a time, while 2 n ln(mean relative error + ERROR_FLOOR) + p ln n falls (n points, p
    parameters). Methods with fewer than MIN_POINTS points are left out.
    """
    launches = _Launches(table)
    draws, _ = resampling.draws(table, GROUP, SEED)
    forms = []
    for key, rows in table.groupby(GROUP, sort=False):
        points = launches.points(key)
        if len(points.time_s) >= MIN_POINTS:
            resampled = [launches.points(key, draw) for draw in draws] if rows.launch.nunique() > 1 else []
            what = dict(zip(GROUP, key, strict=True))
            forms.append(_form(what, rows, points, resampled, receivers))
    return forms


def warnings(table: pandas.DataFrame) -> list[str]:
    """Return the caveats of the forms of `table`, and the reasons why a method has none."""
    texts = []
    few: dict[str, list[str]] = {}
    single: dict[str, list[str]] = {}
    for (method, level, *_), rows in table.groupby(GROUP, sort=False):
        if len(rows[POINT].drop_duplicates()) < MIN_POINTS:
            few.setdefault(level, []).append(method)
        elif method != "single" and rows.partitions.nunique() == 1:
            single.setdefault(level, []).append(method)
    for level, methods in few.items():
        texts.append(
            f"{level}: pipelines of {', '.join(dict.fromkeys(methods))} have fewer than {MIN_POINTS} points, "
            "too few for a model; measure more --sizes, --partitions or --gamma"
        )
    for (level, threads), rows in table[table.oversubscribed.astype(bool)].groupby(["level", "threads"]):
        texts.append(
            f"{level}: {len(rows)} samples of pipelines with {threads} thread{'' if threads == 1 else 's'} "
            "had more of them than cores, so they show the scheduler too"
        )
    for level, methods in single.items():
        texts.append(
            f"{level}: pipelines of {', '.join(dict.fromkeys(methods))} have one number of partitions, which "
            "does not separate the latency from the cost per message; measure several, --partitions 1,4,32"
        )
    for level, rows in table.groupby("level", sort=False):
        launches = rows.groupby([*GROUP, *POINT]).launch.nunique()
        rough = launches[launches < ENOUGH_LAUNCHES]
        if len(rough):
            texts.append(
                f"{level}: {len(rough)} of {len(launches)} points of pipelines have fewer than "
                f"{ENOUGH_LAUNCHES} launches ({rough.min()} at least), so intervals are too narrow; "
                f"measure {ENOUGH_LAUNCHES} or more"
            )
    return texts


def _form(
    what: dict[str, Any],
    rows: pandas.DataFrame,
    points: _Points,
    resampled: Sequence[_Points],
    receivers: str,
) -> PipelineForm:
    fit = min(
        (_search(points, messages) for messages in _messages_of(what["method"])), key=lambda f: f.criterion
    )
    design = _design(points, fit.structure)
    errors = relative_errors(design.predict_s(fit.parameters), points.time_s)
    extra: dict[str, Any] = {"error": float(np.median(errors)), "points": len(points.time_s)}
    for name, values in (("held_out_error", points.partitions), ("held_out_error_sizes", points.size_bytes)):
        error = _held_out_error(points, fit, values)
        extra |= {} if error is None else {name: error}
    if rows.oversubscribed.any():
        extra["oversubscribed"] = True
    return PipelineForm(
        what=Pipeline(
            method=str(what["method"]),
            level=str(what["level"]),
            threads=int(what["threads"]),
            vcis=int(what["vcis"]) or None,
            receivers=None if receivers == ONE_RECEIVES else THREADS_RECEIVE,
        ),
        parameters=_parameters(points, fit.structure, fit.parameters),
        range={name: (_number(rows[name].min()), _number(rows[name].max())) for name in POINT},
        replicates=tuple(_parameters(points, fit.structure, _refit(drawn, fit)) for drawn in resampled),
        extra=extra,
    )


def _messages_of(method: str) -> tuple[str | int, ...]:
    name, _, bound = method.partition(":")
    if messages := whole_number(bound):
        return (messages,)
    return MESSAGES.get(name, ("each",) if name.startswith("rma-") or name == "stream" else EITHER)


class _Launches:
    """The times of every method as medians over launches. The value of `single` is the plain median; that of
    another method is the median ratio to the `single` of the same launch, times the median of `single`.
    Launches differ, and not every launch has every method: the ratio keeps differences between launches apart
    from those between methods.
    """

    def __init__(self, table: pandas.DataFrame):
        self._time_s = {
            key: rows.pivot_table(index=POINT, columns="launch", values="time_s", aggfunc="median")
            for key, rows in table.groupby(GROUP, sort=False)
        }

    def points(self, key: tuple, draw: Sequence[str] | None = None) -> _Points:
        """Return the points of the method, level, threads and contexts `key` in the drawn launches (None:
        each once).
        """
        times = _drawn(self._time_s[key], draw)
        time_s = times.median(axis=1)
        bulk = self._time_s.get(("single", *key[1:]))
        if bulk is not None and key[0] != "single":
            bulk = _drawn(bulk, draw).reindex(times.index)
            ratio = (times / bulk.loc[:, ~bulk.columns.duplicated()].reindex(columns=times.columns)).median(
                axis=1
            )
            time_s = (ratio * bulk.median(axis=1)).fillna(time_s)
        time_s = time_s.dropna()
        size, partitions, gamma = (
            np.array(time_s.index.get_level_values(name), dtype=float) for name in POINT
        )
        return _Points(size, partitions, gamma * size / partitions, time_s.to_numpy())


def _drawn(times: pandas.DataFrame, draw: Sequence[str] | None) -> pandas.DataFrame:
    return times if draw is None else times[[launch for launch in draw if launch in times.columns]]


def _search(points: _Points, messages: str | int) -> _Fit:
    def larger(best: _Fit) -> Iterator[_Fit]:
        return (
            _fit(points, structure, best)
            for structure in _larger(points, best.structure)
            if has_enough(len(points.time_s), structure.num_parameters())
        )

    return search(_fit(points, _Structure(messages)), larger, len(points.time_s))


def _larger(points: _Points, structure: _Structure) -> Iterator[_Structure]:
    """Yield the structures with one more element."""
    sizes = _message_sizes(points, structure.messages)
    for starts in with_another_protocol(structure.min_bytes, sizes):
        yield replace(structure, min_bytes=starts, shares_slope=_shared_slopes(starts, sizes))
    if len(structure.min_bytes) > 1 and structure.has_overhead and not structure.own_latency:
        yield replace(structure, own_latency=True)
    if structure.burst_bytes is None:
        for size in np.unique(points.size_bytes)[1:-1]:
            yield replace(structure, burst_bytes=int(size))
    if structure.has_overhead and not structure.overlap:
        yield replace(structure, overlap=True)
    if not structure.per_partition and len(np.unique(points.partitions)) > 1:
        yield replace(structure, per_partition=True)


def _message_sizes(points: _Points, messages: str | int) -> np.ndarray:
    """Return the message sizes that can affect the times, ascending."""
    if messages == "one":
        return np.unique(points.size_bytes)
    if isinstance(messages, int):
        sizes = [
            trains.size_bytes[..., -1]
            for trains in possible_messages(
                messages, points.partitions, points.partition_bytes, points.delay_s
            )
        ]
        return np.unique(sizes)
    return np.unique(np.concatenate([points.partition_bytes, points.size_bytes]))


def _shared_slopes(starts: Sequence[int], sizes: np.ndarray) -> tuple[int, ...]:
    """Return the index of the protocol whose bandwidth each protocol uses: a first protocol with a single
    size uses that of the next one, any other its own.
    """
    alone = len(starts) > 1 and np.count_nonzero(sizes < starts[1]) < 2
    return tuple(max(c, 1) if alone else c for c in range(len(starts)))


def _design(points: _Points, structure: _Structure) -> MaxOfLines:
    possible = possible_messages(
        structure.messages, points.partitions, points.partition_bytes, points.delay_s
    )
    features, offsets_s = zip(*(_lines(points, structure, trains) for trains in possible), strict=True)
    return MaxOfLines(np.array(features), np.array(offsets_s))


def _lines(points: _Points, structure: _Structure, trains) -> tuple[np.ndarray, np.ndarray]:
    """Return (2, n, p) and (2, n): the time if all messages follow each other, and if only the last one
    counts.
    """
    starts = np.array(structure.min_bytes)
    protocol = np.searchsorted(starts, trains.size_bytes, side="right") - 1  # (n, 2)
    of_protocol = (protocol[..., None] == np.arange(len(starts))).astype(float)  # (n, 2, C)
    counts = np.stack([trains.count, np.where([False, True], trains.count, 0.0)])  # (2, n, 2)
    number = np.einsum("bnm,nmc->bnc", counts, of_protocol)
    volume = np.einsum("bnm,nm,nmc->bnc", counts, trains.size_bytes, of_protocol)
    latency = of_protocol[:, -1, :]
    if structure.has_overhead and not structure.own_latency:
        latency = latency.sum(axis=1, keepdims=True)
    columns = [np.broadcast_to(latency, (2, *latency.shape))]
    if structure.has_overhead:
        columns.append(number)
    slopes = np.array(structure.shares_slope)
    columns.append(np.stack([volume[..., slopes == k].sum(axis=-1) for k in np.unique(slopes)], axis=-1))
    if structure.burst_bytes is not None:
        share = share_beyond(points.size_bytes, structure.burst_bytes)
        columns.append((volume.sum(axis=-1) * share)[..., None])
    if structure.per_partition:
        columns.append(np.broadcast_to(points.partitions[:, None], (2, len(points.partitions), 1)))
    head_start_s = np.stack([points.delay_s, np.zeros_like(points.delay_s)])
    if structure.overlap:
        columns.append(head_start_s[..., None])  # its parameter is 1 - overlap
    return np.concatenate(columns, axis=-1), -head_start_s


def _fit(points: _Points, structure: _Structure, start: _Fit | None = None) -> _Fit:
    design = _design(points, structure)
    guess = _guess(points, structure) if start is None else _carried(start, structure)
    parameters, error = _refine(design, points.time_s, guess, structure.overlap)
    count = len(points.time_s)
    criterion = 2 * count * np.log(error + ERROR_FLOOR) + structure.num_parameters() * np.log(count)
    return _Fit(structure, parameters, float(criterion))


def _refine(
    design: MaxOfLines, time_s: np.ndarray, guess: np.ndarray, has_overlap: bool
) -> tuple[np.ndarray, float]:
    """Return the parameters and their mean relative error. Given the message and grouping that determine each
    time, the model is linear: the fit alternates between these and the parameters. Weights make squared
    errors count like absolute errors.
    """
    error = relative_errors(design.predict_s(guess), time_s)
    best, least = guess, float(error.mean())
    parameters = guess
    for _ in range(MAX_TURNS):
        weight = 1 / np.sqrt(np.maximum(error, 2 * ERROR_FLOOR)) / time_s
        found = design.fit(design.deciding(parameters), time_s, weight)
        if has_overlap:
            found[-1] = min(found[-1], 1.0)
        error = relative_errors(design.predict_s(found), time_s)
        if error.mean() < least:
            best, least = found, float(error.mean())
        if np.allclose(found, parameters, rtol=1e-4, atol=0):
            break
        parameters = found
    return best, least


def _columns(structure: _Structure) -> list[tuple[str, int]]:
    """Return the name and the protocol of every parameter, in the order of `_lines`."""
    protocols = range(len(structure.min_bytes))
    own = structure.own_latency or not structure.has_overhead
    names = [("latency", c) for c in (protocols if own else (0,))]
    names += [("overhead", c) for c in protocols] if structure.has_overhead else []
    names += [("slope", c) for c in sorted(set(structure.shares_slope))]
    names += [("beyond", 0)] if structure.burst_bytes is not None else []
    names += [("per_partition", 0)] if structure.per_partition else []
    return names + ([("lost_overlap", 0)] if structure.overlap else [])


def _guess(points: _Points, structure: _Structure) -> np.ndarray:
    """Return initial parameters of the smallest structure: half of the shortest time, half of the median
    slope.
    """
    slope = float(np.median(points.time_s / points.size_bytes.clip(1)))
    known = {"latency": points.time_s.min() / 2, "overhead": points.time_s.min() / 10, "slope": slope / 2}
    return np.array([known.get(name, 0.0) for name, _ in _columns(structure)])


def _carried(start: _Fit, structure: _Structure) -> np.ndarray:
    """Return the parameters of a smaller structure; new ones are copied from the protocol around them."""
    old = dict(zip(_columns(start.structure), start.parameters, strict=True))
    old_starts = np.array(start.structure.min_bytes)
    values = []
    for name, c in _columns(structure):
        before = int(np.searchsorted(old_starts, structure.min_bytes[c], side="right") - 1)
        if name == "slope":
            before = start.structure.shares_slope[before]
        values.append(old.get((name, before), old.get((name, 0), 0.0)))
    return np.array(values)


def _held_out_error(points: _Points, fit: _Fit, values: np.ndarray) -> float | None:
    """Return the median relative error with each of `values` left out in turn, for the same structure."""

    def errors_of(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        left_out = points.only(test)
        parameters = _refit(points.only(train), fit)
        return relative_errors(_design(left_out, fit.structure).predict_s(parameters), left_out.time_s)

    error = float(np.median(errors_left_out(values, errors_of)))
    return None if np.isnan(error) else error


def _refit(points: _Points, fit: _Fit) -> np.ndarray:
    design = _design(points, fit.structure)
    return _refine(design, points.time_s, fit.parameters, fit.structure.overlap)[0]


def _parameters(points: _Points, structure: _Structure, parameters: np.ndarray) -> JoinedParameters:
    found = dict(zip(_columns(structure), (float(one) for one in parameters), strict=True))
    largest = [*(start - 1 for start in structure.min_bytes[1:]), int(points.size_bytes.max())]
    protocols = []
    for c, start in enumerate(structure.min_bytes):
        latency_s = found.get(("latency", c), found[("latency", 0)])
        overhead_s = found.get(("overhead", c), 0.0)
        least = MIN_BANDWIDTH_SHARE * (latency_s + overhead_s) / max(largest[c], 1)
        slope = max(found["slope", structure.shares_slope[c]], least, 1e-18)
        cost = {"latency_s": latency_s, "overhead_s": overhead_s, "bandwidth_bytes_per_s": 1 / slope}
        protocols.append(JoinedProtocol(min_bytes=start, **cost))
    return JoinedParameters(
        structure.messages,
        tuple(protocols),
        found.get(("per_partition", 0), 0.0),
        1.0 - found.get(("lost_overlap", 0), 0.0),
        structure.burst_bytes,
        found.get(("beyond", 0), 0.0),
    )


def _number(value: Any) -> int | float:
    return int(value) if float(value).is_integer() else float(value)
