"""Read the input of a fit: median times of runs of one context, without points that do not count."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from earlybird.compare.results import results
from earlybird.data import files, kernels
from earlybird.data.benchmark_parameters import parameter_texts
from earlybird.data.collective_algorithms import unmodelled_hint
from earlybird.data.errors import InputError
from earlybird.data.labels import listed
from earlybird.data.levels import LEVELS
from earlybird.data.measure_commands import ANYWHERE, MESSAGES, LaunchOptions, measure_command
from earlybird.data.methods import ONE_RECEIVES, SEGMENTED, THREADS_RECEIVE, receivers_of
from earlybird.data.packing_form import PackingForm
from earlybird.data.results import Result
from earlybird.data.run import Run, Sample, as_completion, require_validated
from earlybird.data.shell_commands import command_text, no_option
from earlybird.data.statistics import MEAN
from earlybird.data.tables import PINGPONG_HEADER, THUNE_HEADER, load_pingpong_table
from earlybird.data.units import MIN_S
from earlybird.fit import pipelined
from earlybird.fit.collective_samples import (
    CollectiveReader,
    Collectives,
    is_collective,
    without_iterations,
)
from earlybird.fit.config_values import config_value
from earlybird.fit.launches import launch_context
from earlybird.fit.packing import packing_forms

_TABLE_COLUMNS = ("source", "level", "n", "size_bytes", "launch", "time_s", "oversubscribed", "converged")
_COMPLETION_COLUMNS = ("level", "size_bytes", "receiver", "launch", "share", "oversubscribed", "pairs")


def measure_hint(launch: LaunchOptions) -> str:
    """Return the instruction that names what to run first."""
    return f"run `{measure_command(MESSAGES, {}, launch)}` first"


@dataclass(frozen=True)
class Observations:
    """The times of one context.

    Attributes
    ----------
    table : one row per point and launch with the columns source ("contention", "pingpong", or "pipeline": the
        method `single` of pipelines, at levels without the other sources), level, n
        (processes of a group receiving at once), size_bytes, launch, time_s (median of the steady
        iterations), oversubscribed, converged.
    reused : the rows of contention with one message at once from the same buffer, at levels with other rows.
    completions : one row per point and launch with the columns level, size_bytes, receiver ("prompt" or
        "late"), launch, share (time until the send was complete over time until the message had arrived,
        median of the steady iterations), oversubscribed, pairs (that send at once).
    pipelines : one row per point, method and launch with the columns of `pipelined.COLUMNS`.
    receivers : which threads of the receiving rank received in `pipelines`.
    packings : costs of packing data.
    collectives : times of collectives; if there are any, `table` may be empty.
    thresholds_bytes : level -> control variable -> the protocol switch that the MPI library reports.
    runs : {"id", "sha256"} of each run read.
    link_bytes_per_s : the TCP rate of a virtual cluster's links; None if there is none.
    warnings : caveats of these times.
    results : the measured results of pipelines, collectives and message rates, which advice is compared with.
    launch : the options of `measure` with which the first run was launched.
    """

    table: pandas.DataFrame
    reused: pandas.DataFrame = field(default_factory=lambda: _table([]))
    completions: pandas.DataFrame = field(default_factory=lambda: _completion_table([]))
    pipelines: pandas.DataFrame = field(default_factory=lambda: _pipeline_table([]))
    receivers: str = ONE_RECEIVES
    packings: tuple[PackingForm, ...] = ()
    collectives: Collectives = field(default_factory=Collectives)
    thresholds_bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Mapping[str, str], ...] = ()
    link_bytes_per_s: float | None = None
    warnings: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    launch: LaunchOptions = ANYWHERE


@dataclass(frozen=True)
class LevelTimes:
    """The times of one level as an array.

    Attributes
    ----------
    n : (K,) processes of a group receiving at once, ascending.
    size_bytes : (S,) ascending.
    time_s : (L, K, S) seconds of every launch; NaN where a launch did not measure the point.
    oversubscribed : (K,) whether each n was measured with more ranks than cores.
    """

    name: str
    n: np.ndarray
    size_bytes: np.ndarray
    time_s: np.ndarray
    oversubscribed: np.ndarray

    def median_s(self) -> np.ndarray:
        """Return the (K, S) medians over launches."""
        return median_over_launches(self.time_s)


def median_over_launches(time_s: np.ndarray) -> np.ndarray:
    """Reduce (..., L, K, S) to the medians (..., K, S); NaN where no launch has the point."""
    ordered = np.sort(time_s, axis=-3)  # NaN sorts last
    count = np.isfinite(ordered).sum(axis=-3, keepdims=True)
    low, high = np.maximum(count - 1, 0) // 2, count // 2
    middle = np.take_along_axis(ordered, low, axis=-3) + np.take_along_axis(ordered, high, axis=-3)
    return middle[..., 0, :, :] / 2


def _launch_options(runs: Iterable[Run], mpi: str | None) -> LaunchOptions:
    settings = next((run.header["settings"] for run in runs if run.header.get("settings")), {})
    given = mpi or settings.get("mpi")
    # A run may have several MPIs, of which a fit has one.
    return LaunchOptions.of_settings({**settings, "mpi": given if isinstance(given, str) else None})


def read_runs(paths: Iterable[str | Path], mpi: str | None = None) -> Observations:
    """Read run folders of one context; `mpi` selects the samples of one of several MPIs.

    Raises InputError if a folder is not a run, no sample is of use for a model, or the contexts differ;
    WorkError if a sample received wrong data.
    """
    runs = [Run.open(path) for path in paths]
    names = ", ".join(str(run.path) for run in runs)
    launch = _launch_options(runs, mpi)
    collected = CollectiveReader(runs)
    samples: list[tuple[Run, Sample]] = []
    compared: list[Sample] = []
    for run in runs:
        for sample in map(as_completion, run.each_sample()):
            if mpi is not None and sample.config.get("mpi") != mpi:
                continue
            if is_collective(sample) and sample.validated:
                collected.add(run, sample)
            if _is_advised(sample):
                compared.append(replace(sample, launch=f"{run.id}/{sample.launch}", rank_times_s=None))
            samples.append((run, without_iterations(sample) if is_collective(sample) else sample))
    if mpi is not None and not samples:
        found = {str(sample.config.get("mpi")): None for run in runs for sample in run.each_sample()}
        raise InputError(f"{names}: no samples of {mpi}; give one of {', '.join(found) or 'another run'}")
    timed = _calibrating(samples)
    reused = _of_reused_buffers(samples, timed)
    completed = [(run, sample) for run, sample in samples if _is_completion(sample)]
    receivers = _receivers_to_fit(sample for _, sample in samples)
    piped = [
        (run, sample)
        for run, sample in samples
        if _is_pipeline(sample) and receivers_of(sample.config) == receivers
    ]
    compared = [
        sample
        for sample in compared
        if sample.kernel != kernels.PIPELINE.name or receivers_of(sample.config) == receivers
    ]
    packed = [(run, sample) for run, sample in samples if _is_input(sample, "packings")]
    used = (
        timed
        + reused
        + completed
        + piped
        + packed
        + [(run, sample) for run, sample in samples if is_collective(sample)]
    )
    require_validated(sample for _, sample in used)
    threads = _threads_of_launches(runs)
    pipelines = _pipeline_table(
        [_pipeline(run, sample, threads.get((run.id, sample.launch), 1)) for run, sample in piped]
    )
    untimed = {s.config.get("level") for _, s in piped} - {s.config.get("level") for _, s in timed}
    bulk = _plainest(pipelines[(pipelines.method == "single") & pipelines.level.isin(untimed)])
    table = _table(
        [_observation(run, sample) for run, sample in timed] + [_bulk(row) for row in bulk.itertuples()]
    )
    collectives = collected.collectives()
    if table.empty and not len(collectives) and collectives.left_out:
        raise InputError(f"{names}: {unmodelled_hint(collectives.left_out)}")
    if table.empty and not len(collectives) and packed:
        together = command_text(["earlybird", "fit", "RUN", *(no_option(run.path) for run in runs)])
        raise InputError(
            f"{names}: packing without messages, to whose times predictions add it; measure messages with "
            f"`{measure_command(MESSAGES, {}, launch)}`, then run `{together}`"
        )
    if table.empty and not len(collectives):
        raise InputError(
            f"{names}: no contention samples and no ping-pong samples"
            f"{', and no pipelines with the method single' if piped else _noise_note(samples)}; "
            f"{measure_hint(launch)}"
        )
    completions = _completion_table([_completion(run, sample) for run, sample in completed])
    shared = launch_context(runs, used, names)
    return Observations(
        table=table,
        reused=_table([_observation(run, sample) for run, sample in reused]),
        completions=completions,
        pipelines=pipelines,
        receivers=receivers,
        packings=tuple(packing_forms(packed)),
        collectives=collectives,
        thresholds_bytes=shared.thresholds_bytes,
        machine=runs[0].header.get("machine", {}),
        context=shared.context,
        runs=tuple({"id": run.id, "sha256": run.sha256()} for run in runs),
        link_bytes_per_s=shared.link_bytes_per_s,
        warnings=(
            *shared.warnings,
            *_receiver_warnings(samples, receivers),
            *_bulk_warnings(bulk, launch),
            *_ping_pong_warnings(timed),
        ),
        results=tuple(results(compared)),
        launch=launch,
    )


def read_table(path: str | Path) -> Observations:
    """Read a table `level,placement,pairs,bytes,time_s`, see `data.tables.load_pingpong_table`."""
    return Observations(table=load_pingpong_table(path), context={"source": Path(path).name})


def level_times(table: pandas.DataFrame) -> list[LevelTimes]:
    """Return the levels of a table, inner to outer, contention data before ping-pongs (see `select`)."""
    return [_to_array(name, rows) for name in LEVELS if len(rows := select(table[table.level == name]))]


def pingpong_times(table: pandas.DataFrame) -> list[LevelTimes]:
    """Return the levels of a table with a ping-pong of a single pair, with only those times."""
    single = table[(table.source == kernels.PINGPONG.name) & (table.n == 1)]
    return [
        _to_array(name, rows)
        for name in LEVELS
        if len(rows := _without_oversubscribed(single[single.level == name]))
    ]


def select(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows of a level that count: oversubscribed rows and ping-pongs only for an n without other
    rows.

    A ping-pong waits for every reply and the contention benchmark streams: their times must not share a line.
    """
    rows = _without_oversubscribed(rows)
    streamed = rows.n[rows.source == kernels.CONTENTION.name].unique()
    return rows[(rows.source == kernels.CONTENTION.name) | ~rows.n.isin(streamed)]


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


def _table(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    table = pandas.DataFrame(rows, columns=list(_TABLE_COLUMNS))
    # Without rows pandas does not know the types of the columns.
    return table.astype({"oversubscribed": bool, "converged": bool})


_REUSES = (
    "the ping-pongs send the same buffer again and again, from the cache; messages of an application take "
    "longer"
)


_MEANS = (
    "ping-pongs have means over iterations, as another benchmark printed them: a few slow iterations make "
    "them longer than the medians of a measurement"
)


def _ping_pong_warnings(samples: Iterable[tuple[Run, Sample]]) -> list[str]:
    """Return warnings of how ping-pongs of other benchmarks differ from messages of an application."""
    ping_pongs = [sample for _, sample in samples if sample.kernel == kernels.PINGPONG.name]
    buffers = {sample.config.get("buffers", "vary"): None for sample in ping_pongs}
    others = [str(one) for one in buffers if one not in ("vary", "reuse")]
    parameters = {text: None for sample in ping_pongs for text in parameter_texts(sample.config)}
    if others or parameters:
        named = [*(f"buffers {one}" for one in others), *parameters]
        differ = [
            f"the ping-pongs were measured with {listed(named)}: messages of an application may be faster or "
            "slower"
        ]
    else:
        differ = []
    means = any(sample.statistic == MEAN for sample in ping_pongs)
    return [*([_REUSES] if "reuse" in buffers else []), *differ, *([_MEANS] if means else [])]


def _calibrating(samples: Sequence[tuple[Run, Sample]]) -> list[tuple[Run, Sample]]:
    """Return the samples from which levels are fitted; ping-pongs that reuse their buffers, as other
    benchmarks do, only where there are no others.
    """
    found = [(run, sample) for run, sample in samples if _calibrates(sample)]
    varying = [(run, sample) for run, sample in found if sample.config.get("buffers", "vary") == "vary"]
    levels = {sample.config.get("level") for _, sample in varying}
    others = [(run, sample) for run, sample in found if sample.config.get("level") not in levels]
    _refuse_variants(varying + others)
    return varying + others


def _of_reused_buffers(
    samples: Sequence[tuple[Run, Sample]], timed: Sequence[tuple[Run, Sample]]
) -> list[tuple[Run, Sample]]:
    """Return the samples of contention with reused buffers at levels that are fitted to others."""
    levels = {sample.config.get("level") for _, sample in timed if "buffers" not in sample.config}
    return [
        (run, sample)
        for run, sample in samples
        if sample.kernel == kernels.CONTENTION.name
        and sample.config.get("buffers") == "reuse"
        and sample.config.get("level") in levels
    ]


def _refuse_variants(samples: Sequence[tuple[Run, Sample]]) -> None:
    """Raise InputError if times of one level were measured with different parameters of another benchmark:
    their median would belong to no variant.
    """
    variants: dict[Any, dict[tuple[str, ...], Run]] = {}
    for run, sample in samples:
        given = tuple(parameter_texts(sample.config))
        variants.setdefault(sample.config.get("level"), {}).setdefault(given, run)
    for level, of_level in variants.items():
        if len(of_level) > 1:
            held = [f"{run.path} with {listed(given) or 'defaults'}" for given, run in of_level.items()]
            raise InputError(
                f"ping-pongs of {level} were measured in several ways: {listed(held)}; import outputs of one "
                "kind, or give only runs of one"
            )


def _receiver_warnings(samples: Iterable[tuple[Run, Sample]], receivers: str) -> list[str]:
    """Return a warning of the receiving threads whose pipeline times a profile has, unless all have one
    receiving thread.
    """
    found = {receivers_of(sample.config) for _, sample in samples if _is_pipeline(sample)}
    if THREADS_RECEIVE not in found:
        return []
    if receivers == THREADS_RECEIVE:
        return ["pipelines have receiving threads (--receivers threads), so predictions of them have too"]
    return [
        "pipelines with receiving threads (--receivers threads) are left out, because there are others with "
        "one receiving thread; give only their runs to fit them"
    ]


def _is_advised(sample: Sample) -> bool:
    has_model = sample.method is not None and not sample.method.startswith(SEGMENTED)
    return kernels.kernel_of(sample.kernel).is_advised and has_model


def _calibrates(sample: Sample) -> bool:
    return _is_input(sample, "levels")


def _is_completion(sample: Sample) -> bool:
    return _is_input(sample, "completions")


def _is_pipeline(sample: Sample) -> bool:
    """Return whether the last partition has a fixed delay; for noisy computations only the spread is known.
    No model describes a fixed number of messages.
    """
    if sample.method is not None and sample.method.startswith(SEGMENTED):
        return False
    fixed = "gamma_s_per_byte" in sample.config
    return fixed and _is_input(sample, "pipelines") and sample.method is not None


def _receivers_to_fit(samples: Iterable[Sample]) -> str:
    """Return the receivers whose times a profile has: one receiving thread, or receiving threads if there are
    no other times. A model of both would describe neither.
    """
    found = {receivers_of(sample.config) for sample in samples if _is_pipeline(sample)}
    return THREADS_RECEIVE if found == {THREADS_RECEIVE} else ONE_RECEIVES


def _is_input(sample: Sample, fit: str) -> bool:
    """Return whether a fit takes `fit` from this quantity of this kernel."""
    kernel = kernels.kernel_of(sample.kernel)
    return (kernel.fit, kernel.quantity) == (fit, sample.quantity)


def _noise_note(samples: Iterable[tuple[Run, Sample]]) -> str:
    noisy = any(
        "compute_s_per_byte" in sample.config
        for _, sample in samples
        if sample.kernel == kernels.PIPELINE.name
    )
    return ", and pipelines with full compute noise (--ai) cannot be fitted" if noisy else ""


def _threads_of_launches(runs: Iterable[Run]) -> dict[tuple[str, str], int]:
    """Return the threads per rank of every launch, for points that do not contain them."""
    return {
        (run.id, str(launch.get("id"))): launch.get("threads_per_rank") or 1
        for run in runs
        for launch in run.launches()
    }


def _pipeline(run: Run, sample: Sample, threads_of_launch: int) -> dict[str, Any]:
    value_of = partial(config_value, run, sample)
    level, gamma_s_per_byte = value_of("level", str), value_of("gamma_s_per_byte", float)
    size_bytes, partitions = value_of("size_bytes", int), value_of("partitions", int)
    threads, vcis = value_of("threads", int, threads_of_launch), value_of("vcis", int, 0)
    usable = level in LEVELS and min(size_bytes, partitions, threads) >= 1 and gamma_s_per_byte >= 0
    if not usable or sample.median_s() < MIN_S:
        raise InputError(
            f"{run.path}: a pipeline sample says level={level} size_bytes={size_bytes} "
            f"partitions={partitions} threads={threads} and a median of {sample.median_s():g} s; levels are "
            f"{', '.join(LEVELS)}, counts at least 1, times above 0: measure again"
        )
    values = (
        sample.method, level, threads, vcis, size_bytes, partitions, gamma_s_per_byte,
        f"{run.id}/{sample.launch}", sample.median_s(), sample.oversubscribed,
    )  # fmt: skip
    return dict(zip(pipelined.COLUMNS, values, strict=True))


def _pipeline_table(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=list(pipelined.COLUMNS))


def _plainest(bulk: pandas.DataFrame) -> pandas.DataFrame:
    """Return for every level the messages with the fewest threads and contexts that were measured at several
    sizes: times with more threads include the barriers between them.
    """
    kept = []
    for _, rows in bulk.groupby("level", sort=False):
        kinds = [kind for _, kind in rows.groupby(["threads", "vcis"])]
        kept.append(next((kind for kind in kinds if kind.size_bytes.nunique() > 1), rows))
    return pandas.concat(kept) if kept else bulk


def _bulk(row) -> dict[str, Any]:
    """Return a single message of a pipeline as a time of N = 1."""
    return {
        "source": kernels.PIPELINE.name,
        "level": row.level,
        "n": 1,
        "size_bytes": row.size_bytes,
        "launch": row.launch,
        "time_s": row.time_s,
        "oversubscribed": row.oversubscribed,
        "converged": True,
    }


def _bulk_warnings(bulk: pandas.DataFrame, launch: LaunchOptions) -> tuple[str, ...]:
    command = measure_command(kernels.CONTENTION.name, {}, launch)
    return tuple(
        f"{level}: latency and bandwidth come from one message at a time, the method single of pipelines; "
        f"`{command}` measures contention; fit that run together with these runs"
        for level in LEVELS
        if (bulk.level == level).any()
    )


def _completion(run: Run, sample: Sample) -> dict[str, Any]:
    level, size_bytes, receiver = (sample.config.get(key) for key in ("level", "size_bytes", "receiver"))
    times_s = sample.rank_times_s
    num_ranks = 0 if times_s is None else times_s.shape[1]
    usable = level in LEVELS and isinstance(size_bytes, int) and receiver in ("prompt", "late")
    if not usable or num_ranks < 2 or num_ranks % 2:
        raise InputError(
            f"{run.path}: a completion sample says level={level} size_bytes={size_bytes} "
            f"receiver={receiver} and has times of {num_ranks} ranks; levels are {', '.join(LEVELS)}, "
            "receivers prompt and late, and the number of ranks is even: measure again"
        )
    send_s, receive_s = np.split(times_s[sample.warmup :], 2, axis=1)
    if not (receive_s > 0).all():
        raise InputError(
            f"{run.path}: in a completion sample of {size_bytes} bytes the message arrived after "
            f"{receive_s.min():g} s; times must be above 0: measure again"
        )
    launch = f"{run.id}/{sample.launch}"
    values = (
        level,
        size_bytes,
        receiver,
        launch,
        float(np.median(send_s / receive_s)),
        sample.oversubscribed,
        num_ranks // 2,
    )
    return dict(zip(_COMPLETION_COLUMNS, values, strict=True))


def _completion_table(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    table = pandas.DataFrame(rows, columns=list(_COMPLETION_COLUMNS))
    return table.astype({"size_bytes": int, "share": float, "oversubscribed": bool, "pairs": int})


def _observation(run: Run, sample: Sample) -> dict[str, Any]:
    time_s = sample.median_s()
    level, size_bytes = config_value(run, sample, "level", str), config_value(run, sample, "size_bytes", int)
    n = config_value(run, sample, "competitors", int) if sample.kernel == kernels.CONTENTION.name else 1
    if level not in LEVELS or n < 1 or size_bytes < 0 or time_s < MIN_S:
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


def read_sources(sources: Sequence[Path], mpi: str | None = None) -> Observations:
    """Read run folders, or one table of ping-pong times; raise InputError for a mixture and for other
    files."""
    tables = [path for path in sources if path.is_file() or path.is_fifo()]
    if not tables:
        return read_runs(sources, mpi)
    if len(sources) > 1:
        raise InputError(
            f"{tables[0]} is a table, given with {len(sources) - 1} more; give one table only, or run folders"
        )
    text = files.read_text(tables[0], "table")
    if text.lstrip().startswith(("{", "[")):
        inside = tables[0].parent / "run.json"
        run = f", such as {inside.parent}" if inside.is_file() else ""
        raise InputError(
            f"{tables[0]} is JSON and no table of times; give run folders{run}, or a table with the columns "
            f"{','.join(PINGPONG_HEADER)}"
        )
    if text.partition("\n")[0].strip() == ",".join(THUNE_HEADER):
        raise InputError(
            f"{tables[0]} contains fitted parameters, not times; give run folders or a table of times"
        )
    return read_table(tables[0])
