"""Figures of collectives by mapping: each algorithm with its ranks placed in each of several methods."""

from collections.abc import Sequence
from typing import Any

from earlybird.data.units import format_bytes
from earlybird.report import axes, words
from earlybird.report.collective_choices import drawn_sizes, sized
from earlybird.report.collective_figures import hover
from earlybird.report.collectives import DEFAULT, Collective, CollectivePoint, base, map_order
from earlybird.report.parts import Figure

LOOKS = {"core": ("solid", "circle"), "socket": ("dash", "square"), "node": ("dot", "diamond")}


def mapping_figures(found: Sequence[Collective]) -> list[Figure]:
    """For every operation and MPI with several mappings: each base algorithm, with each mapping."""
    groups: dict[tuple[str, str], list[Collective]] = {}
    for one in found:
        groups.setdefault((one.operation, one.label), []).append(one)
    figures = []
    for k, group in enumerate(group for group in groups.values() if len(group) > 1):
        for size_bytes in sorted({size for one in group for size in drawn_sizes(one, found)}):
            figure = _mapping_figure(f"collective-mapping-{k}-{size_bytes}", group, size_bytes)
            figures += [figure] if figure else []
    return figures


def _mapping_figure(id: str, group: Sequence[Collective], size_bytes: int) -> Figure | None:
    parts = [(one, one.of_size(size_bytes)) for one in sorted(group, key=lambda one: map_order(one.map_by))]
    parts = [(one, points) for one, points in parts if len(points) > 1]
    if len(parts) < 2:
        return None
    data, times_s = [], []
    for one, points in parts:
        for method in _typical(one):
            cells = [point for point in points if method in point.time_s]
            data.append(_mapping_trace(one, method, cells))
            times_s += [point.time_s[method][0] for point in cells]
    counts = [point.ranks for _, points in parts for point in points]
    first = parts[0][0]
    chosen = {name: text for name, text in sized(first, size_bytes).items() if name != "mapped by"}
    return Figure(
        id,
        f"How ranks are mapped, {format_bytes(size_bytes)}: {words.operation(first.operation)}, "
        f"{first.label}",
        "Colour: the algorithm. Line and mark: the mapping. Medians over iterations, then launches.",
        data,
        axes.layout(axes.log_count_axis(counts, "ranks"), axes.log_time_axis(times_s, "completion")),
        wide=True,
        sentence=_mapping_sentence(parts),
        choice=chosen,
    )


def _typical(one: Collective) -> list[str]:
    """One method of each base algorithm: the MPI's, or ours where it has none; the first of its segments."""
    chosen: dict[str, str] = {}
    for method in [*one.mpi_methods(), *one.methods()]:
        chosen.setdefault(base(method).removeprefix(words.OWN), method)
    return list(chosen.values())


def _mapping_trace(one: Collective, method: str, cells: Sequence[CollectivePoint]) -> dict[str, Any]:
    dash, mark = LOOKS.get(one.map_by, ("longdash", "x"))
    name = axes.label(f"{words.capital(words.method(method))}, by {one.map_by}")
    return {
        "x": [point.ranks for point in cells],
        "y": [point.time_s[method][0] for point in cells],
        "mode": "lines+markers",
        "name": name,
        "line": {"color": axes.color(method), "width": 2, "dash": dash},
        "marker": {"color": axes.color(method), "size": 7, "symbol": mark},
        "hovertext": [hover(name, point, method) for point in cells],
        "hoverinfo": "text",
    }


def _mapping_sentence(parts: Sequence[tuple[Collective, Sequence[CollectivePoint]]]) -> str:
    """What the MPI's own choice, or what both have, costs more with the slower mapping at the most ranks."""
    shared = set.intersection(*({point.ranks for point in points} for _, points in parts))
    methods = set.intersection(*(set(_typical(one)) for one, _ in parts))
    if not shared or not methods:
        return "The mappings were measured with different ranks or algorithms."
    ranks = max(shared)
    method = DEFAULT if DEFAULT in methods else min(methods, key=words.method_order)
    times_s = {
        one.map_by: point.time_s[method][0]
        for one, points in parts
        for point in points
        if point.ranks == ranks and method in point.time_s
    }
    if len(times_s) < 2:
        return "The mappings were measured with different ranks or algorithms."
    slow, quick = max(times_s, key=times_s.get), min(times_s, key=times_s.get)
    return (
        f"Among {words.counted(ranks, 'rank')}, {words.method(method)} takes "
        f"{times_s[slow] / times_s[quick]:.2f} times as long with ranks mapped by {slow} as by {quick}."
    )
