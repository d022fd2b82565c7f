"""Figures of collectives: time of each algorithm against ranks and size, by mapping, and the fastest one."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from earlybird.compare.ranking import is_clearly_faster
from earlybird.data import labels
from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.methods import OWN
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import MethodLines, line, measured_text, method_name, size_x, time_hover
from earlybird.present.core.maps import Cell, method_map
from earlybird.present.core.parts import Figure, grouped
from earlybird.present.core.points import Point, methods_of, results_of
from earlybird.present.core.text import best_by_size, crowded_sentence
from earlybird.present.material import ReferenceCurve
from earlybird.present.subjects.collectives.answer import best_text
from earlybird.present.subjects.collectives.view import Collective, base, drawn_sizes, map_order, sized

MAX_LINES = 10  # visible lines; the legend shows the others on request
MAX_MAP_ROWS = 16  # rank counts
# From this number of ranks, published regressions (fitted to hundreds of ranks) are visible by default.
REFERENCE_RANKS = 32
_MAPPING_LOOKS = {"core": ("solid", "circle"), "socket": ("dash", "square"), "node": ("dot", "diamond")}


def collective_figures(
    k: int, collective: Collective, measured: Sequence[Collective], references: Sequence[ReferenceCurve]
) -> list[Figure]:
    """Draw the times of an operation, MPI and mapping against ranks for each drawn size, and against size."""
    figures = []
    for size_bytes in drawn_sizes(collective, measured):
        wanted = collective.operation, collective.map_by, size_bytes
        known = [curve for curve in references if (curve.operation, curve.map_by, curve.size_bytes) == wanted]
        figures.append(_ranks_figure(f"collective-ranks-{k}-{size_bytes}", collective, size_bytes, known))
    return figures + (
        [_size_figure(f"collective-size-{k}", collective)] if len(collective.sizes()) > 1 else []
    )


def _ranks_figure(
    id: str, collective: Collective, size_bytes: int, references: Sequence[ReferenceCurve]
) -> Figure:
    title = f"Time against ranks, {format_bytes(size_bytes)}: {collective.setting_text}"
    points, choice = collective.of_size(size_bytes), sized(collective, size_bytes)
    if len(points) < 2 and len(collective.sizes()) > 1:
        ranks = labels.counted(points[0].ranks, "rank")
        reason = f"Only {ranks} were measured with this size; see the figure against size."
        return Figure(id, title, "", absence=reason, choice=choice)
    published = [_reference_trace(curve, points[-1].ranks) for curve in references]
    axis = axes.log_count_axis([point.ranks for point in points], "ranks")
    among = f"Among {labels.counted(points[-1].ranks, 'rank')}"
    sentence = f"{among}, {best_text(points[-1])}."
    return _figure(id, title, points, lambda point: point.ranks, axis, sentence, choice, published)


def _size_figure(id: str, collective: Collective) -> Figure:
    """Draw times at the largest number of ranks measured with several sizes."""
    counts = collective.ranks()
    ranks = next((count for count in reversed(counts) if len(collective.of_ranks(count)) > 1), counts[-1])
    points = collective.of_ranks(ranks)
    sizes = [point.size_bytes for point in points]
    title = f"Time against size, {labels.counted(ranks, 'rank')}: {collective.setting_text}"
    sentence = best_by_size("algorithm", collective.best_methods(ranks), sizes)
    return _figure(id, title, points, size_x, axes.size_axis(sizes), sentence, collective.choice(), ())


def _figure(
    id: str,
    title: str,
    points: Sequence[Point],
    x: Callable[[Point], float],
    axis: dict[str, Any],
    sentence: str,
    choice: dict[str, str],
    published: Sequence[dict[str, Any]],
) -> Figure:
    methods = methods_of(points)
    shown = _shown(methods, points)
    lines = MethodLines(points, methods, x, shown)
    hidden = len(methods) - len(shown)
    references = published and published[0]["visible"] == "legendonly"
    remarks = {
        f"Time until the last rank completes. {measured_text(results_of(points))}": True,
        "Open markers: Earlybird's algorithms, on point-to-point calls, for comparison; the MPI cannot "
        "select them.": any(map(labels.is_own, methods)),
        "Dashed, without markers: the fitted model.": lines.fitted,
        f"{labels.counted(hidden, 'more algorithm')} hidden: click the legend to show them.": hidden,
        "Published regressions, fitted to hundreds of ranks, are hidden: click the legend.": references,
        crowded_sentence("ranks"): any(point.oversubscribed for point in points),
    }
    times_s = [*lines.times_s, *_visible_times(published, lines.times_s)]
    return Figure(
        id,
        title,
        " ".join(remark for remark, is_true in remarks.items() if is_true),
        [*lines.data, *lines.fitted, *published],
        axes.layout(axis, axes.log_time_axis(times_s, "completion")),
        sentence=sentence,
        choice=choice,
    )


def _shown(methods: Sequence[str], points: Sequence[Point]) -> list[str]:
    """Return at most MAX_LINES: the MPI's default, the fastest at any point, then those at the last point."""
    fastest = {point.fastest() for point in points}
    last = points[-1].time_s

    def priority(method: str) -> tuple[bool, bool, float]:
        return method != DEFAULT, method not in fastest, last[method].value if method in last else math.inf

    return sorted(methods, key=priority)[:MAX_LINES]


def _reference_trace(curve: ReferenceCurve, most: int) -> dict[str, Any]:
    name = axes.label(f"{curve.source}, {labels.method(curve.algorithm)}")
    texts = [
        f"{name}<br>{labels.counted(ranks, 'rank')}: {format_seconds(time_s)}"
        for ranks, time_s in zip(curve.ranks, curve.time_s, strict=True)
    ]
    times_s = [time_s if time_s > 0 else None for time_s in curve.time_s]  # may be negative for few ranks
    visible = True if most >= REFERENCE_RANKS else "legendonly"
    color, dash = axes.color(curve.algorithm), "10px,3px,2px,3px"
    return line(name, curve.ranks, times_s, texts, color, dash, width=1.4, legendrank=2500, visible=visible)


def _visible_times(published: Sequence[dict[str, Any]], measured: Sequence[float]) -> list[float]:
    """Return the times of the visible regressions, without values far below all measured times."""
    least = min((time_s for time_s in measured if time_s > 0), default=0.0) / 10
    drawn = [time_s for trace in published if trace["visible"] is True for time_s in trace["y"]]
    return [time_s for time_s in drawn if time_s is not None and time_s >= least]


def mapping_figures(measured: Sequence[Collective]) -> list[Figure]:
    """Draw each algorithm with each mapping, for every operation and MPI with several mappings."""
    groups = grouped(measured, lambda collective: (collective.operation_text, collective.label))
    return [
        _mapping_figure(f"collective-mapping-{k}-{size_bytes}", parts, size_bytes)
        for k, group in enumerate(group for group in groups.values() if len(group) > 1)
        for size_bytes in sorted({size for collective in group for size in drawn_sizes(collective, measured)})
        if len(parts := [item for item in group if len(item.of_size(size_bytes)) > 1]) > 1
    ]


def _mapping_figure(id: str, group: Sequence[Collective], size_bytes: int) -> Figure:
    data, times_s = [], []
    group = sorted(group, key=lambda collective: map_order(collective.map_by))
    for collective in group:
        dash, mark = _MAPPING_LOOKS.get(collective.map_by, ("longdash", "x"))
        for method in _typical(collective):
            points = [point for point in collective.of_size(size_bytes) if method in point.results]
            name = f"{method_name(method)}, by {axes.label(collective.map_by)}"
            texts = [time_hover(name, point, method) for point in points]
            medians_s = [point.time_s[method].value for point in points]
            ranks, color = [point.ranks for point in points], axes.color(method)
            data.append(line(name, ranks, medians_s, texts, color, dash, symbol=mark))
            times_s += medians_s
    drawn = [point for collective in group for point in collective.of_size(size_bytes)]
    means = any(result.mean_of_iterations for result in results_of(drawn))
    counts = [point.ranks for point in drawn]
    first = group[0]
    return Figure(
        id,
        f"Time by mapping, {format_bytes(size_bytes)}: {first.operation_text}, {first.label}",
        "Colour: the algorithm. Line style and marker: the mapping. "
        + (
            "Means over the iterations of all launches."
            if means
            else "Medians over iterations, then launches."
        ),
        data,
        axes.layout(axes.log_count_axis(counts, "ranks"), axes.log_time_axis(times_s, "completion")),
        wide=True,
        sentence=_mapping_sentence(group, size_bytes),
        choice={name: text for name, text in sized(first, size_bytes).items() if name != "mapped by"},
    )


def _typical(collective: Collective) -> list[str]:
    """Return a method for each algorithm: the MPI's, or ours if the MPI has none; the first segment size."""
    chosen: dict[str, str] = {}
    for method in sorted(collective.methods(), key=labels.is_own):
        chosen.setdefault(base(method).removeprefix(OWN), method)
    return list(chosen.values())


def _mapping_sentence(group: Sequence[Collective], size_bytes: int) -> str:
    """Return how much faster the fastest mapping is than the slowest, with the most ranks and one method."""
    times_s: dict[tuple[int, str], dict[str, Estimate]] = {}
    for collective in group:
        for point in collective.of_size(size_bytes):
            for method in {*_typical(collective)} & point.results.keys():
                by_mapping = times_s.setdefault((point.ranks, method), {})
                by_mapping[collective.map_by] = point.time_s[method]
    common = [key for key, by_mapping in times_s.items() if len(by_mapping) == len(group)]
    if not common:
        return "The mappings were measured with different ranks or algorithms."
    most = max(ranks for ranks, _ in common)
    ranks, method = min(
        (key for key in common if key[0] == most), key=lambda key: labels.method_order(key[1])
    )
    by_mapping = times_s[ranks, method]
    slow, fast = (pick(by_mapping, key=lambda mapping: by_mapping[mapping].value) for pick in (max, min))
    among, name = f"Among {labels.counted(ranks, 'rank')}", labels.method(method)
    if not is_clearly_faster(by_mapping[fast].inverse(), by_mapping[slow].inverse()):
        time = format_seconds(by_mapping[fast].value)
        return f"{among}, no mapping is clearly faster than another with {name} ({time})."
    ratio = by_mapping[slow].value / by_mapping[fast].value
    return f"{among}, {name} is {ratio:.2f} times as fast with ranks mapped by {fast} as by {slow}."


def map_figures(k: int, collective: Collective) -> list[Figure]:
    """Draw maps of the best MPI algorithm, and of the best including ours if that is one of ours."""
    of_mpi = collective.of_mpi()
    kinds = [("mpi", "of the MPI's algorithms", of_mpi)]
    if collective.methods() != of_mpi.methods():
        kinds.append(("all", "of all algorithms, including Earlybird's", collective))
    figures, drawn = [], []
    for kind, which, algorithms in kinds:
        cells = _best_cells(algorithms)
        best = {where: cell.best for where, cell in cells.items()}
        if len(algorithms.methods()) < 2 or best in drawn:
            continue
        drawn.append(best)
        id, title = f"collective-best-{kind}-{k}", f"The best {which}: {collective.setting_text}"
        figures.append(method_map(id, title, "algorithm", "ranks", cells, collective.choice()))
    return [figure for figure in figures if figure]


def _best_cells(collective: Collective) -> dict[tuple[int, int], Cell]:
    """Return the best by ranks and size; of too many rank counts, the ends and the powers of two."""
    counts = collective.ranks()
    if len(counts) > MAX_MAP_ROWS:
        powers = [count for count in counts if count & (count - 1) == 0]
        counts = sorted({counts[0], counts[-1], *powers})
    return {
        (ranks, point.size_bytes): Cell(base(method), point, method)
        for ranks in counts
        for point, method in zip(collective.of_ranks(ranks), collective.best_methods(ranks), strict=True)
        if method
    }
