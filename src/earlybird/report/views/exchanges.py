"""Exchanges of chapters 3 and 4: each pattern with its measured and predicted times per rank."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.compare.intervals import over_launches
from earlybird.data import labels
from earlybird.data.pattern import Pattern
from earlybird.data.results import Estimate
from earlybird.data.run import Sample, rank_medians_of_launches
from earlybird.report.material import Material, MeasuredRun
from earlybird.report.views import links
from earlybird.report.views.provenance import is_loaded, load_of


@dataclass(frozen=True)
class Exchange:
    """One exchange. All arrays have shape (P,), seconds per rank. `measured_s` is None without a measurement.

    `error` is equation (11) of Thune et al. 2023 and `slowest_error` the signed error of the slowest rank,
    both from the comparison and empty without one. `name` distinguishes several exchanges, "" for one.
    """

    source: str  # the name of the file or run folder that it is from
    parts: tuple[str, ...]
    num_ranks: int
    pattern: Pattern | None
    measured_s: np.ndarray | None
    predicted_s: Mapping[str, np.ndarray]
    error: Mapping[str, float]
    slowest_error: Mapping[str, float]
    oversubscribed: bool
    notes: tuple[str, ...]
    name: str = ""
    link: tuple[int, float] | None = None  # busiest link: node and utilization (`links.exchange_share`)
    load: float | None = None  # at the start of the run, if other work kept all cores busy
    slowest_s: Estimate | None = None  # measured time of the slowest rank with its interval over launches

    @property
    def title(self) -> str:
        """Ranks, messages, layout, MPI and pattern, as far as known."""
        return ", ".join(part for part in self.parts if part)

    @property
    def link_limited(self) -> bool:
        """Whether a virtual link was the bottleneck, even with several ranks per core."""
        return self.link is not None and self.link[1] >= links.EXCHANGE_LIMIT_SHARE

    @property
    def timed(self) -> bool:
        """Whether a measured or predicted time exists."""
        return self.measured_s is not None or bool(self.predicted_s)

    def models(self) -> list[str]:
        return sorted(self.predicted_s, key=lambda name: (labels.model_order(name), name))

    def series(self) -> dict[str, np.ndarray]:
        """The times by `measured` and by model."""
        measured = {} if self.measured_s is None else {"measured": self.measured_s}
        return measured | {model: self.predicted_s[model] for model in self.models()}

    def best_first(self) -> list[str]:
        return sorted(self.error, key=lambda name: self.error[name])

    def reference(self) -> tuple[str, np.ndarray]:
        """The times that the sentence describes: measured, or those of the first model."""
        return next(iter(self.series().items()))


def exchanges(material: Material) -> list[Exchange]:
    """Exchanges of comparisons, then of runs without one, then of predictions alone, then patterns alone."""
    patterns = {pattern.sha256(): pattern for pattern in material.patterns}
    pattern_names = {
        pattern.sha256(): material.name_of("patterns", k) for k, pattern in enumerate(material.patterns)
    }
    result, used = _from_comparisons(material, patterns)
    compared = {str(comparison.extra.get("run_id", "")) for comparison in material.comparisons}
    for run in material.runs:
        if str(run.header.get("id")) not in compared:
            result += _from_samples(run, patterns)
    by_pattern: dict[tuple[str, int], dict[str, np.ndarray]] = defaultdict(dict)
    first_file: dict[tuple[str, int], str] = {}
    for k, prediction in enumerate(material.predictions):
        if k not in used:
            key = (prediction.pattern_sha256, len(prediction.time_s))
            by_pattern[key].setdefault(prediction.model, prediction.time_s)
            first_file.setdefault(key, material.name_of("predictions", k))
    for (digest, num_ranks), predicted_s in by_pattern.items():
        match = next(
            (k for k, item in enumerate(result) if not item.predicted_s and _same(item, digest, num_ranks)),
            None,
        )
        if match is None:
            source = pattern_names.get(digest) or first_file[digest, num_ranks]
            pattern = patterns.get(digest)
            result.append(_exchange(source, pattern, num_ranks, digest, predicted_s=predicted_s))
        else:
            result[match] = replace(result[match], predicted_s=predicted_s)
    drawn = {id(item.pattern) for item in result}
    result += [
        _exchange(pattern_names[digest], pattern, pattern.num_ranks_named, digest)
        for digest, pattern in patterns.items()
        if id(pattern) not in drawn
    ]
    return _named(result)


def _same(item: Exchange, digest: str, num_ranks: int) -> bool:
    return item.pattern is not None and item.pattern.sha256() == digest and item.num_ranks == num_ranks


def _from_comparisons(material: Material, patterns: Mapping[str, Pattern]) -> tuple[list[Exchange], set[int]]:
    """The exchanges of the comparisons, and the indices of the predictions that belong to them."""
    runs = {str(run.header.get("id")): run for run in material.runs}
    result, used = [], set()
    for number, comparison in enumerate(material.comparisons):
        digest = str(comparison.extra.get("pattern_sha256", ""))
        predicted_s = dict(comparison.predicted_s)
        for k, prediction in enumerate(material.predictions):
            if prediction.pattern_sha256 == digest and prediction.time_s.shape == comparison.measured_s.shape:
                used.add(k)
                predicted_s.setdefault(prediction.model, prediction.time_s)
        run = runs.get(str(comparison.extra.get("run_id", "")))
        samples = _timed_samples(run, len(comparison.measured_s)) if run else []
        mpi = str(samples[0].config.get("mpi", "")) if samples else ""
        oversubscribed = comparison.extra.get("oversubscribed") is True
        notes = comparison.extra.get("notes", ())
        result.append(
            _exchange(
                material.name_of("comparisons", number),
                patterns.get(digest) if digest else None,
                len(comparison.measured_s),
                digest,
                comparison.measured_s,
                predicted_s,
                dict(comparison.error),
                dict(comparison.slowest_error),
                oversubscribed=oversubscribed,
                notes=tuple(str(note) for note in notes) if isinstance(notes, list | tuple) else (),
                layout=str(comparison.extra.get("layout", "")),
                mpi=mpi,
                run=run,
                samples=samples,
            )
        )
    return result, used


def _launch_of(run: MeasuredRun | None) -> Mapping[str, Any] | None:
    """The last launch of a run that has a placement."""
    launches = run.launches if run else ()
    return next((launch for launch in reversed(launches) if launch.get("placement")), None)


def _timed_samples(run: MeasuredRun, num_ranks: int) -> list[Sample]:
    """The exchanges of a run with the times of `num_ranks` ranks."""
    return [
        sample
        for sample in run.samples
        if sample.kernel == "exchange"
        and sample.rank_times_s is not None
        and sample.rank_times_s.shape[1:] == (num_ranks,)
        and sample.rank_times_s.size
    ]


def _from_samples(run: MeasuredRun, patterns: Mapping[str, Pattern]) -> list[Exchange]:
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for sample in run.samples:
        if sample.kernel == "exchange" and sample.rank_times_s is not None and sample.rank_times_s.size:
            config = sample.config
            key = (
                str(config.get("mpi", "")),
                str(config.get("layout", "")),
                str(config.get("pattern_sha256", "")),
                sample.rank_times_s.shape[1],
            )
            groups[key].append(sample)
    return [
        _exchange(
            run.name,
            patterns.get(digest),
            num_ranks,
            digest,
            rank_medians_of_launches(group),
            layout=layout,
            mpi=mpi,
            oversubscribed=any(sample.oversubscribed for sample in group),
            run=run,
            samples=group,
        )
        for (mpi, layout, digest, num_ranks), group in groups.items()
    ]


def _exchange(
    source: str,
    pattern: Pattern | None,
    num_ranks: int,
    digest: str,
    measured_s: np.ndarray | None = None,
    predicted_s: Mapping[str, np.ndarray] | None = None,
    error: Mapping[str, float] | None = None,
    slowest_error: Mapping[str, float] | None = None,
    *,
    oversubscribed: bool = False,
    notes: tuple[str, ...] = (),
    layout: str = "",
    mpi: str = "",
    run: MeasuredRun | None = None,
    samples: Sequence[Sample] = (),
) -> Exchange:
    parts = (
        labels.counted(num_ranks, "rank"),
        labels.counted(pattern.num_messages, "message") if pattern is not None else "",
        f"layout {layout}" if layout else "",
        labels.flavour(mpi) if mpi else "",
        f"pattern {digest[:8]}" if digest else "",
    )
    return Exchange(
        source,
        parts,
        num_ranks,
        pattern,
        measured_s,
        predicted_s or {},
        error or {},
        slowest_error or {},
        oversubscribed,
        notes,
        link=(
            None
            if measured_s is None
            else links.exchange_share(pattern, _launch_of(run), float(measured_s.max()))
        ),
        load=load_of(run.machine) if run is not None and is_loaded(run.machine) else None,
        slowest_s=None if measured_s is None else _slowest_s(samples, measured_s),
    )


def _slowest_s(samples: Sequence[Sample], measured_s: np.ndarray) -> Estimate:
    """The time of the slowest rank; without an interval if the samples are not those of `measured_s`."""
    rank, exact = int(measured_s.argmax()), Estimate.exact(float(measured_s.max()))
    if not samples:
        return exact
    time_s, _ = over_launches([sample.rank_times_s[sample.warmup :, rank] for sample in samples])
    return time_s if time_s.low <= exact.value <= time_s.high else exact


def _named(all_exchanges: list[Exchange]) -> list[Exchange]:
    """Name each of several exchanges by its file, by the parts in which they differ, or by its number."""
    if len(all_exchanges) < 2:
        return all_exchanges
    sources = [item.source for item in all_exchanges]
    if all(sources) and len(set(sources)) == len(sources):
        return [replace(item, name=item.source) for item in all_exchanges]
    differ = [
        k for k in range(len(all_exchanges[0].parts)) if len({item.parts[k] for item in all_exchanges}) > 1
    ]
    names = [
        ", ".join(text for text in (item.source, *(item.parts[k] for k in differ)) if text)
        for item in all_exchanges
    ]
    unique = len(set(names)) == len(names) and all(names)
    return [
        replace(item, name=name if unique else f"{name or 'exchange'} #{k}")
        for k, (item, name) in enumerate(zip(all_exchanges, names, strict=True), start=1)
    ]
