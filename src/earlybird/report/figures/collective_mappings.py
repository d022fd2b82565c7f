"""Figures that compare process mappings: each algorithm with each measured mapping."""

from collections.abc import Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.units import format_bytes
from earlybird.report.collective_choices import drawn_sizes, sized
from earlybird.report.collectives import Collective, CollectivePoint, base, map_order
from earlybird.report.figures import axes
from earlybird.report.figures.collectives import hover
from earlybird.report.parts import Figure

LOOKS = {"core": ("solid", "circle"), "socket": ("dash", "square"), "node": ("dot", "diamond")}


def mapping_figures(measured: Sequence[Collective]) -> list[Figure]:
    """Figures for every operation and MPI with several mappings."""
    groups: dict[tuple[str, str], list[Collective]] = {}
    for collective in measured:
        groups.setdefault((collective.operation, collective.label), []).append(collective)
    figures = []
    for k, group in enumerate(group for group in groups.values() if len(group) > 1):
        for size_bytes in sorted(
            {size for collective in group for size in drawn_sizes(collective, measured)}
        ):
            figure = _mapping_figure(f"collective-mapping-{k}-{size_bytes}", group, size_bytes)
            figures += [figure] if figure else []
    return figures


def _mapping_figure(id: str, group: Sequence[Collective], size_bytes: int) -> Figure | None:
    parts = [
        (collective, collective.of_size(size_bytes))
        for collective in sorted(group, key=lambda collective: map_order(collective.map_by))
    ]
    parts = [(collective, points) for collective, points in parts if len(points) > 1]
    if len(parts) < 2:
        return None
    data, times_s = [], []
    for collective, points in parts:
        for method in _typical(collective):
            cells = [point for point in points if method in point.time_s]
            data.append(_mapping_trace(collective, method, cells))
            times_s += [point.time_s[method][0] for point in cells]
    counts = [point.ranks for _, points in parts for point in points]
    first = parts[0][0]
    chosen = {name: text for name, text in sized(first, size_bytes).items() if name != "mapped by"}
    return Figure(
        id,
        f"Time by mapping, {format_bytes(size_bytes)}: {labels.operation(first.operation)}, {first.label}",
        "Colour: the algorithm. Line style and marker: the mapping. Medians over iterations, then launches.",
        data,
        axes.layout(axes.log_count_axis(counts, "ranks"), axes.log_time_axis(times_s, "completion")),
        wide=True,
        sentence=_mapping_sentence(parts),
        choice=chosen,
    )


def _typical(collective: Collective) -> list[str]:
    """One method per base algorithm: the MPI's, or ours if the MPI has none; the first segment size."""
    chosen: dict[str, str] = {}
    for method in [*collective.mpi_methods(), *collective.methods()]:
        chosen.setdefault(base(method).removeprefix(labels.OWN), method)
    return list(chosen.values())


def _mapping_trace(collective: Collective, method: str, cells: Sequence[CollectivePoint]) -> dict[str, Any]:
    dash, mark = LOOKS.get(collective.map_by, ("longdash", "x"))
    name = axes.label(f"{labels.capital(labels.method(method))}, by {collective.map_by}")
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
    """The time ratio of the slowest to the fastest mapping at the most ranks, for one common method."""
    shared = set.intersection(*({point.ranks for point in points} for _, points in parts))
    methods = set.intersection(*(set(_typical(collective)) for collective, _ in parts))
    if not shared or not methods:
        return "The mappings were measured with different ranks or algorithms."
    ranks = max(shared)
    method = DEFAULT if DEFAULT in methods else min(methods, key=labels.method_order)
    times_s = {
        collective.map_by: point.time_s[method][0]
        for collective, points in parts
        for point in points
        if point.ranks == ranks and method in point.time_s
    }
    if len(times_s) < 2:
        return "The mappings were measured with different ranks or algorithms."
    slow, fast = max(times_s, key=times_s.get), min(times_s, key=times_s.get)
    return (
        f"Among {labels.counted(ranks, 'rank')}, {labels.method(method)} takes "
        f"{times_s[slow] / times_s[fast]:.2f} times as long with ranks mapped by {slow} as by {fast}."
    )
