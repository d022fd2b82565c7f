"""Exchanges: each pattern with its measured and predicted times per rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from earlybird.analysis import link_limits
from earlybird.analysis.disturbances import overload_of
from earlybird.compare import exchange_samples
from earlybird.compare.intervals import over_launches
from earlybird.data import labels
from earlybird.data.comparison import Comparison
from earlybird.data.exchange_models import model_order
from earlybird.data.layout import Layout, layout_of_label
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.run import Sample, rank_medians_of_launches
from earlybird.data.schema import Estimate
from earlybird.patterns.traffic import Traffic, traffic
from earlybird.present.core.parts import grouped
from earlybird.present.material import Material, MeasuredRun

# Indices of `Exchange.parts`, the one that a person asks for first: layout, MPI, ranks, messages, pattern.
_NAMING_PARTS = (2, 3, 0, 1, 4)


@dataclass(frozen=True)
class Exchange:
    """One exchange. All arrays have shape (P,), seconds per rank. `measured_s` is None without a measurement.

    `error` is equation (11) of Thune et al. 2023 and `slowest_error` the signed error of the slowest rank,
    both from the comparison and empty without one. `where` has the node and socket of each rank, None if
    unknown; `layout` is its text. `name` distinguishes several exchanges, "" for one.
    """

    source: str  # the name of the file or run folder that it is from
    digest: str  # of the pattern
    num_ranks: int
    pattern: Pattern | None
    layout: str = ""
    measured_s: np.ndarray | None = None
    predicted_s: Mapping[str, np.ndarray] = field(default_factory=dict)
    error: Mapping[str, float] = field(default_factory=dict)
    slowest_error: Mapping[str, float] = field(default_factory=dict)
    oversubscribed: bool = False
    notes: tuple[str, ...] = ()
    run: MeasuredRun | None = None
    samples: Sequence[Sample] = ()
    name: str = ""
    profile_id: str = ""  # of the predictions
    where: Layout | None = None

    @cached_property
    def traffic(self) -> Traffic | None:
        """The messages by level, rank and node; None if the pattern or the layout is unknown."""
        return traffic(self.pattern, self.where) if self.pattern is not None and self.where else None

    @property
    def parts(self) -> tuple[str, ...]:
        """Ranks, messages, layout, MPI and pattern, "" where unknown."""
        return (
            labels.counted(self.num_ranks, "rank"),
            labels.counted(self.pattern.num_messages, "message") if self.pattern is not None else "",
            f"layout {self.layout}" if self.layout else "",
            labels.flavour(self.mpi) if self.mpi else "",
            f"pattern {self.digest[:8]}" if self.digest else "",
        )

    @property
    def mpi(self) -> str:
        """ "" if it was not measured."""
        return str(self.samples[0].config.get("mpi", "")) if self.samples else ""

    @property
    def map_by(self) -> str:
        """How the layout numbers the ranks; "" if unknown."""
        settings = self.run.header.get("settings") if self.run else None
        return str(settings.get("map_by") or "") if isinstance(settings, dict) else ""

    @property
    def title(self) -> str:
        return ", ".join(part for part in self.parts if part)

    @property
    def link(self) -> tuple[int, float] | None:
        """The node of the busiest virtual link, and the fraction of the measured time that it is busy."""
        if self.measured_s is None:
            return None
        launches = self.run.launches if self.run else ()
        placed = next((launch for launch in reversed(launches) if launch.get("placement")), None)
        return link_limits.exchange_share(self.pattern, placed, float(self.measured_s.max()))

    @property
    def link_limited(self) -> bool:
        """Whether a virtual link was the bottleneck, even with several ranks per core."""
        return self.link is not None and self.link[1] >= link_limits.EXCHANGE_LIMIT_SHARE

    @property
    def load(self) -> float | None:
        """At the start of the run, if other work kept all cores busy."""
        return overload_of(self.run.machine) if self.run else None

    @property
    def slowest_s(self) -> Estimate | None:
        """The measured time of the slowest rank; without an interval if the samples do not have that time."""
        if self.measured_s is None:
            return None
        rank, exact = int(self.measured_s.argmax()), Estimate.exact(float(self.measured_s.max()))
        if not self.samples:
            return exact
        time_s, _ = over_launches([sample.rank_times_s[sample.warmup :, rank] for sample in self.samples])
        return time_s if time_s.low <= exact.value <= time_s.high else exact

    @property
    def timed(self) -> bool:
        """Whether a measured or predicted time exists."""
        return bool(self.series())

    def models(self) -> list[str]:
        return sorted(self.predicted_s, key=lambda name: (model_order(name), name))

    def series(self) -> dict[str, np.ndarray]:
        """The times by `measured` and by model."""
        measured = {} if self.measured_s is None else {"measured": self.measured_s}
        return measured | {model: self.predicted_s[model] for model in self.models()}

    def reference(self) -> tuple[str, np.ndarray]:
        """The times that the sentence describes: measured, or those of the first model."""
        return next(iter(self.series().items()))

    def best_first(self) -> list[str]:
        return sorted(self.error, key=lambda name: self.error[name])


def exchanges(material: Material) -> list[Exchange]:
    """Exchanges of comparisons, then of runs without one, then of predictions alone, then patterns alone."""
    patterns = {pattern.sha256(): pattern for pattern in material.patterns}
    file_of = {
        pattern.sha256(): material.name_of("patterns", k) for k, pattern in enumerate(material.patterns)
    }
    runs = {str(run.header.get("id")): run for run in material.runs}
    found = [
        _of_comparison(material.name_of("comparisons", k), comparison, runs, patterns)
        for k, comparison in enumerate(material.comparisons)
    ]
    compared = {str(comparison.extra.get("run_id", "")) for comparison in material.comparisons}
    for run in material.runs:
        found += _of_run(run, patterns) if str(run.header.get("id")) not in compared else []
    for k, prediction in enumerate(material.predictions):
        source = file_of.get(prediction.pattern_sha256) or material.name_of("predictions", k)
        _add_prediction(found, source, prediction, patterns, material.layout)
    drawn = {item.digest for item in found if item.pattern is not None}
    found += [
        _of_pattern(file_of[digest], pattern, material.layout)
        for digest, pattern in patterns.items()
        if digest not in drawn
    ]
    return _named(found)


def _of_pattern(source: str, pattern: Pattern, where: Layout | None) -> Exchange:
    if where is None:
        return Exchange(source, pattern.sha256(), pattern.num_ranks_named, pattern)
    pattern.check_ranks(where.num_ranks)
    return Exchange(source, pattern.sha256(), where.num_ranks, pattern, where.text, where=where)


def _placed(label: str, num_ranks: int, *others: Layout | None) -> Layout | None:
    """The layout that `label` describes, or the first of `others`, with so many ranks."""
    found = (layout_of_label(label), *others)
    return next((one for one in found if one is not None and one.num_ranks == num_ranks), None)


def _add_prediction(
    found: list[Exchange],
    source: str,
    prediction: Prediction,
    patterns: Mapping[str, Pattern],
    given: Layout | None,
) -> None:
    """To the exchanges with the same pattern, ranks and, if known, layout; without one, a new exchange."""
    digest, num_ranks = prediction.pattern_sha256, len(prediction.time_s)
    where = _placed(prediction.layout, num_ranks, given)
    layout = prediction.layout or (where.text if where else "")
    same = [
        k
        for k, item in enumerate(found)
        if (item.digest, item.num_ranks) == (digest, num_ranks)
        and (digest or item.measured_s is None)
        and (item.layout == layout or not item.layout or not layout)
    ]
    model = prediction.model if prediction.overlap_s is None else f"{prediction.model} (overlap)"
    for k in same:
        predicted_s = {model: prediction.time_s} | dict(found[k].predicted_s)
        found[k] = replace(found[k], predicted_s=predicted_s)
    if not same:
        predicted_s = {model: prediction.time_s}
        exchange = Exchange(source, digest, num_ranks, patterns.get(digest), layout, predicted_s=predicted_s)
        found.append(replace(exchange, profile_id=prediction.profile_id, where=where))


def _of_comparison(
    source: str, comparison: Comparison, runs: Mapping[str, MeasuredRun], patterns: Mapping[str, Pattern]
) -> Exchange:
    extra, num_ranks = comparison.extra, len(comparison.measured_s)
    digest, notes = str(extra.get("pattern_sha256", "")), extra.get("notes")
    texts = [*(map(str, notes) if isinstance(notes, list | tuple) else ()), comparison.describe_empty()]
    run = runs.get(str(extra.get("run_id", "")))
    layout = str(extra.get("layout", ""))
    return Exchange(
        source,
        digest,
        num_ranks,
        patterns.get(digest),
        layout,
        comparison.measured_s,
        comparison.predicted_s,
        comparison.error,
        comparison.slowest_error,
        extra.get("oversubscribed") is True,
        tuple(filter(None, texts)),
        run,
        [sample for sample in _timed_samples(run) if sample.rank_times_s.shape[1] == num_ranks],
        profile_id=str(extra.get("profile_id", "")),
        where=_placed(layout, num_ranks, run.layout if run else None),
    )


def _timed_samples(run: MeasuredRun | None) -> list[Sample]:
    """The exchanges of a run with times of ranks."""
    return [
        sample
        for sample in exchange_samples(run.samples if run else ())
        if sample.rank_times_s is not None and sample.rank_times_s.size
    ]


def _of_run(run: MeasuredRun, patterns: Mapping[str, Pattern]) -> list[Exchange]:
    """The exchanges of a run, one for each MPI, layout, pattern and number of ranks."""

    def key(sample: Sample) -> tuple:
        values = (str(sample.config.get(name, "")) for name in ("mpi", "layout", "pattern_sha256"))
        return *values, sample.rank_times_s.shape[1]

    return [
        Exchange(
            run.name,
            digest,
            num_ranks,
            patterns.get(digest),
            layout,
            rank_medians_of_launches(samples),
            oversubscribed=any(sample.oversubscribed for sample in samples),
            run=run,
            samples=samples,
            where=_placed(layout, num_ranks, run.layout),
        )
        for (_, layout, digest, num_ranks), samples in grouped(_timed_samples(run), key).items()
    ]


def _named(all_exchanges: list[Exchange]) -> list[Exchange]:
    """Name each of several exchanges by its file, if needed with parts that differ, or by its number."""
    if len(all_exchanges) < 2:
        return all_exchanges
    columns = list(zip(*(item.parts for item in all_exchanges), strict=True))
    differ = [k for k in _NAMING_PARTS if len(set(columns[k])) > 1]

    def names_with(count: int) -> list[str]:
        texts = [(item.source, *(item.parts[k] for k in differ[:count])) for item in all_exchanges]
        return [", ".join(text for text in one if text) for one in texts]

    def is_unique(names: list[str]) -> bool:
        return len(set(names)) == len(names) and all(names)

    names = next(filter(is_unique, map(names_with, range(len(differ) + 1))), names_with(len(differ)))
    unique = is_unique(names)
    return [
        replace(item, name=name if unique else f"{name or 'exchange'} #{k}")
        for k, (item, name) in enumerate(zip(all_exchanges, names, strict=True), start=1)
    ]
