"""The exchanges of a report's material: each comparison, run, prediction or pattern as an `Exchange`."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from earlybird.compare import exchange_samples
from earlybird.data.comparison import Comparison
from earlybird.data.layout import Layout, layout_of_label
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.run import Sample, rank_times_of_launches
from earlybird.data.statistics import Statistic
from earlybird.present.core.parts import grouped
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.subjects.exchange.view import Exchange

# Indices of `Exchange.parts`, the one that a person asks for first: layout, MPI, packing, ranks, messages,
# pattern.
_NAMING_PARTS = (2, 3, 5, 0, 1, 4)
NONE: Mapping[str, Any] = MappingProxyType({})


def exchanges(material: Material) -> list[Exchange]:
    """Return the exchanges of comparisons, then of runs without one, then of predictions alone, then patterns
    alone."""
    patterns = {pattern.sha256(): pattern for pattern in material.patterns}
    file_of = {
        pattern.sha256(): material.name_of("patterns", k) for k, pattern in enumerate(material.patterns)
    }
    runs = {str(run.header.get("id")): run for run in material.runs}
    given = [
        compared_exchange(material.name_of("comparisons", k), comparison, runs, patterns)
        for k, comparison in enumerate(material.comparisons)
    ]
    compared = {str(comparison.extra.get("run_id", "")) for comparison in material.comparisons}
    for run in material.runs:
        if str(run.header.get("id")) not in compared and not _is_drawn_elsewhere(run, patterns):
            given += _measured_exchanges(run, patterns, material.statistic)
    for k, prediction in enumerate(material.predictions):
        source = file_of.get(prediction.pattern_sha256) or material.name_of("predictions", k)
        _add_prediction(given, predicted_exchange(source, prediction, patterns, material.layout))
    drawn = {item.digest for item in given if item.pattern is not None}
    given += [
        patterned_exchange(file_of[digest], pattern, material.layout)
        for digest, pattern in patterns.items()
        if digest not in drawn
    ]
    return _named(given)


def _is_drawn_elsewhere(run: MeasuredRun, patterns: Mapping[str, Pattern]) -> bool:
    """Return whether the exchanges of a run are the figure of a paper, as those without a pattern are."""
    settings = run.header.get("settings")
    digests = {str(sample.config.get("pattern_sha256")) for sample in run.samples}
    return isinstance(settings, dict) and bool(settings.get("reproduce")) and digests.isdisjoint(patterns)


def patterned_exchange(source: str, pattern: Pattern, where: Layout | None) -> Exchange:
    """Return the exchange of a pattern without times; raise InputError if the layout lacks one of its
    ranks."""
    if where is None:
        return Exchange(source, pattern.sha256(), pattern.num_ranks_named, pattern)
    pattern.check_ranks(where.num_ranks)
    return Exchange(source, pattern.sha256(), where.num_ranks, pattern, where.text, where=where)


def _placed(label: str, num_ranks: int, *others: Layout | None) -> Layout | None:
    """Return the layout that `label` describes, or the first of `others`, with this number of ranks."""
    layouts = (layout_of_label(label), *others)
    return next((where for where in layouts if where is not None and where.num_ranks == num_ranks), None)


def predicted_exchange(
    source: str, prediction: Prediction, patterns: Mapping[str, Pattern] = NONE, given: Layout | None = None
) -> Exchange:
    """Return the exchange of a prediction, with its pattern if known, on its layout or a given one."""
    digest, num_ranks = prediction.pattern_sha256, len(prediction.time_s)
    where = _placed(prediction.layout, num_ranks, given)
    packing = _packing_label(prediction)
    variants = ["overlap"] * (prediction.overlap_s is not None) + [packing] * bool(packing)
    model = f"{prediction.model} ({', '.join(variants)})" if variants else prediction.model
    return Exchange(
        source,
        digest,
        num_ranks,
        patterns.get(digest),
        prediction.layout or (where.text if where else ""),
        predicted_s={model: prediction.time_s},
        profile_id=prediction.profile_id,
        where=where,
        packing_s={} if prediction.packing_s is None else {packing: prediction.packing_s},
    )


def _packing_label(prediction: Prediction) -> str:
    """Return `strided packing, hot, by MPI`; "" if messages are not packed."""
    if prediction.packing_s is None:
        return ""
    layout, cache, by = (prediction.extra.get(f"packing{key}", "") for key in ("", "_cache", "_by"))
    who = {"mpi": "by MPI", "loop": "by a loop"}.get(by, "")
    return ", ".join(filter(None, [f"{layout} packing".lstrip(), cache, who]))


def _add_prediction(exchanges: list[Exchange], new: Exchange) -> None:
    """Add predicted times to the exchanges with the same pattern, ranks and, if known, layout; without one, a
    new exchange."""
    same = [
        k
        for k, exchange in enumerate(exchanges)
        if (exchange.digest, exchange.num_ranks) == (new.digest, new.num_ranks)
        and (new.digest or exchange.measured_s is None)
        and (exchange.layout == new.layout or not exchange.layout or not new.layout)
    ]
    for k in same:
        predicted_s = {**new.predicted_s, **exchanges[k].predicted_s}
        packing_s = {**new.packing_s, **exchanges[k].packing_s}
        exchanges[k] = replace(exchanges[k], predicted_s=predicted_s, packing_s=packing_s)
    if not same:
        exchanges.append(new)


def compared_exchange(
    source: str,
    comparison: Comparison,
    runs: Mapping[str, MeasuredRun] = NONE,
    patterns: Mapping[str, Pattern] = NONE,
) -> Exchange:
    """Return the exchange of a comparison, with its run and its pattern if these are known."""
    extra, num_ranks = comparison.extra, len(comparison.measured_s)
    notes, layout = extra.get("notes"), str(extra.get("layout", ""))
    texts = [*(map(str, notes) if isinstance(notes, list | tuple) else ()), comparison.describe_empty()]
    run = runs.get(str(extra.get("run_id", "")))
    digest = str(extra.get("pattern_sha256", ""))
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
        [sample for sample in _timed_samples(run) if sample.num_timed_ranks == num_ranks],
        profile_id=str(extra.get("profile_id", "")),
        where=_placed(layout, num_ranks, run.layout if run else None),
        empty=comparison.empty,
    )


def _timed_samples(run: MeasuredRun | None) -> list[Sample]:
    """Return the samples of exchanges of a run with times of ranks."""
    return [sample for sample in exchange_samples(run.samples if run else ()) if sample.num_timed_ranks]


def _measured_exchanges(
    run: MeasuredRun, patterns: Mapping[str, Pattern], statistic: Statistic
) -> list[Exchange]:
    """Return the exchanges of a run, one for each MPI, layout, pattern and number of ranks."""

    def key(sample: Sample) -> tuple[Any, ...]:
        values = (str(sample.config.get(name, "")) for name in ("mpi", "layout", "pattern_sha256"))
        return *values, sample.num_timed_ranks

    return [
        Exchange(
            run.name,
            digest,
            num_ranks,
            patterns.get(digest),
            layout,
            rank_times_of_launches(samples, statistic),
            oversubscribed=any(sample.oversubscribed for sample in samples),
            run=run,
            samples=samples,
            where=_placed(layout, num_ranks, run.layout),
            statistic=statistic,
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
        return [", ".join(filter(None, parts)) for parts in texts]

    def is_unique(names: list[str]) -> bool:
        return len(set(names)) == len(names) and all(names)

    names = next(filter(is_unique, map(names_with, range(len(differ) + 1))), names_with(len(differ)))
    unique = is_unique(names)
    return [
        replace(item, name=name if unique else f"{name or 'exchange'} #{k}")
        for k, (item, name) in enumerate(zip(all_exchanges, names, strict=True), start=1)
    ]
