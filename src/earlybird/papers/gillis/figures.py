"""Figures 4 to 8 of Gillis et al. 2023, drawn from this machine with the statistic of the paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.compare.intervals import over_launches
from earlybird.data.methods import SINGLE
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.statistics import MEAN
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.papers.gillis.headlines import (
    has_contexts,
    is_aggregated,
    is_contended,
    is_late,
    is_of_one_thread,
)
from earlybird.present.core import axes
from earlybird.present.core.lines import hover, line, method_name, size_x, spread_traces
from earlybird.present.core.parts import Figure
from earlybird.present.subjects.pipelines.view import Pipeline, setting_text

_STATISTIC = (
    "As in the paper: the mean over all iterations, shaded its 90 % interval by Student's t. The interval of "
    "a time that contains 0 is shaded to the edge. "
)
_LINK = (
    "Dotted: the time at the bandwidth of a single message of the largest buffer, where the paper draws that "
    "of its link."
)


@dataclass(frozen=True)
class _Drawing:
    """A figure of the paper: which pipelines it shows, and whether it draws bandwidths."""

    figure: int
    title: str
    shows: Callable[[Pipeline], bool]
    with_bandwidth: bool = False


_DRAWINGS = (
    _Drawing(4, "one thread, one partition", is_of_one_thread),
    _Drawing(5, "a partition per thread", lambda one: is_contended(one) and not has_contexts(one)),
    _Drawing(6, "a partition and a context per thread", lambda one: is_contended(one) and has_contexts(one)),
    _Drawing(7, "aggregated partitions", is_aggregated),
    _Drawing(8, "the last partition late", is_late, with_bandwidth=True),
)


def paper_figures(measured: Sequence[Pipeline]) -> list[Figure]:
    """Return each figure of the paper for every MPI; one without data says so."""
    figures = []
    for drawing in _DRAWINGS:
        like = [pipeline for pipeline in measured if drawing.shows(pipeline)]
        for k, pipeline in enumerate(like):
            figures.append(_figure(f"gillis-{drawing.figure}-{k}", drawing, pipeline))
        if not like:
            reason = "No run has its points; the table says what it needs."
            title = f"Figure {drawing.figure}: {drawing.title}"
            figures.append(Figure(f"gillis-{drawing.figure}", title, "", absence=reason))
    return figures


def mean_estimate(samples: Sequence[Sample]) -> Estimate | None:
    """Return the mean over the iterations of all launches, and its 90 % interval by Student's t; None if
    there are fewer than two."""
    launches = [sample.steady_times_s() for sample in samples]
    return over_launches(launches, MEAN)[0] if sum(map(len, launches)) > 1 else None


def _means(pipeline: Pipeline) -> dict[str, list[tuple[Any, Estimate]]]:
    """Return the means of each method, by point."""
    if pipeline.run is None:
        return {}
    by_point: dict[tuple, list[Sample]] = {}
    for sample in pipeline.run.samples:
        by_point.setdefault(sample.point(), []).append(sample)
    found: dict[str, list[tuple[Any, Estimate]]] = {}
    for method in pipeline.methods():
        for point in pipeline.points:
            if method not in point.results:
                continue
            samples = [
                sample
                for samples in by_point.values()
                if samples[0].method == method and samples[0].config == point.results[method].config
                for sample in samples
            ]
            if (mean := mean_estimate(samples)) is not None:
                found.setdefault(method, []).append((point, mean))
    return found


def _figure(id: str, drawing: _Drawing, pipeline: Pipeline) -> Figure:
    title = f"Figure {drawing.figure}: {drawing.title}, {setting_text(pipeline)}"
    means = _means(pipeline)
    if not means:
        return Figure(id, title, "", absence="The run has no two iterations of any method.")
    sizes = [point.size_bytes for point in pipeline.points]
    if drawing.with_bandwidth:
        return _bandwidth_figure(id, title, pipeline, means, sizes)
    data, times_s = _traces(means, lambda _, mean: mean, format_seconds)
    rate = _single_rate(means)
    if rate is not None:
        at_rate = [size / rate for size in sizes]
        texts = [f"{format_bytes(s)} at {format_bandwidth(rate)}: {format_seconds(s / rate)}" for s in sizes]
        data.append(
            line("Bandwidth of a single message", sizes, at_rate, texts, axes.color("measured"), "dot")
        )
        times_s += at_rate
    y = axes.log_time_axis(times_s, "time")
    return Figure(id, title, _STATISTIC + _LINK, data, axes.layout(axes.size_axis(sizes, "buffer size"), y))


def _bandwidth_figure(
    id: str,
    title: str,
    pipeline: Pipeline,
    means: Mapping[str, list[tuple[Any, Estimate]]],
    sizes: Sequence[int],
) -> Figure:
    """Draw bandwidths, and the one that equation (4) gives."""

    def bandwidth(point: Any, mean: Estimate) -> Estimate:
        size = point.size_bytes
        return Estimate(size / mean.value, size / mean.high, size / max(mean.low, 1e-12))

    data, rates = _traces(means, bandwidth, format_bandwidth)
    known = [(p, mean) for p, mean in means.get(SINGLE, ()) if p.ideal_speed_up is not None]
    if known:
        theory = [p.ideal_speed_up * p.size_bytes / mean.value for p, mean in known]
        texts = [f"equation (4): {format_bandwidth(rate)}" for rate in theory]
        at = [p.size_bytes for p, _ in known]
        data.append(line("Equation (4)", at, theory, texts, axes.color("measured"), "dash"))
        rates += theory
    return Figure(
        id,
        title,
        _STATISTIC + "Dashed: what equation (4) makes of the bandwidth of a single message.",
        data,
        axes.layout(axes.size_axis(sizes, "buffer size"), axes.log_bandwidth_axis(rates, "bandwidth")),
    )


def _traces(
    means: Mapping[str, list[tuple[Any, Estimate]]],
    value_of: Callable[[Any, Estimate], Estimate],
    text: Callable[[float], str],
) -> tuple[list[dict[str, Any]], list[float]]:
    """Return the line of every method, and all values."""
    data: list[dict[str, Any]] = []
    values: list[float] = []
    for method, points in means.items():
        name, spreads = method_name(method), [value_of(point, mean) for point, mean in points]
        texts = [
            hover(name, format_bytes(point.size_bytes), spread, text, point.results[method].launches)
            for (point, _), spread in zip(points, spreads, strict=True)
        ]
        data += spread_traces(method, name, [size_x(point) for point, _ in points], spreads, texts)
        values += [number for spread in spreads for number in spread]
    return data, values


def _single_rate(means: Mapping[str, list[tuple[Any, Estimate]]]) -> float | None:
    """Return the bandwidth of a single message of the largest buffer."""
    points = means.get(SINGLE)
    if not points:
        return None
    point, mean = points[-1]
    return point.size_bytes / mean.value if mean.value > 0 else None
