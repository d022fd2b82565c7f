"""The panels of the figures of Temucin et al. 2022: metrics against size, by partitions and noise models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.compare.partitioned import AVAILABILITY, BANDWIDTH, EARLY_BIRD, OVERHEAD
from earlybird.data import labels
from earlybird.data.methods import EARLYBIRD, NO_NOISE, OWN_CALLS, SINGLE, SINGLE_NOISE, UNIFORM_NOISE
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import error_bars, hover, line, size_x
from earlybird.present.core.parts import Figure, grouped
from earlybird.present.core.text import UNPAIRED
from earlybird.present.subjects.partitioned.figures import METRICS
from earlybird.present.subjects.partitioned.view import Metrics, Setting, metric

# The methods that a panel draws, with their line styles: the paper has one implementation.
_DASHES = {EARLYBIRD: "solid", OWN_CALLS: "dash"}
_CAPTION = (
    "Solid: libearlybird; dashed: the partitioned communication of the MPI. Bars: intervals over launches."
)


@dataclass(frozen=True)
class _Panel:
    """Part of a figure: a metric, and the settings that are its curves. They differ in partitions, or, of
    these `partitions` only, in noise models."""

    id: str
    title: str
    metric: str
    compute_s: float
    noise: str = NO_NOISE
    share: float = 0.0
    cache: str = "hot"
    partitions: int | None = None

    def shows(self, setting: Setting) -> bool:
        if (setting.cache, setting.compute_s) != (self.cache, self.compute_s):
            return False
        if setting.noise != NO_NOISE and abs(setting.noise_share - self.share) > 1e-9:
            return False
        if self.partitions is not None:
            return setting.partitions == self.partitions and setting.noise != NO_NOISE
        return setting.noise == self.noise

    def curve(self, setting: Setting) -> str:
        if self.partitions is not None:
            return f"noise {setting.noise}"
        return labels.counted(setting.partitions, "partition")


def _panels(measured: Sequence[Metrics]) -> list[_Panel]:
    """Return the panels of the paper for what was measured: its 10 and 100 ms are the shortest and longest
    computation here, its 4 and 10 % the shares of noise."""
    settings = [one.setting for one in measured]
    computes_s = sorted({setting.compute_s for setting in settings})
    shares = sorted({setting.noise_share for setting in settings if setting.noise != NO_NOISE})
    most = max(setting.partitions for setting in settings)
    short_s, long_s = computes_s[0], computes_s[-1]
    short, long = (f"{format_seconds(one)} of computation" for one in (short_s, long_s))
    overhead = [
        _Panel(f"overhead-{cache}", f"Overhead, {cache} cache, {short}", OVERHEAD, short_s, cache=cache)
        for cache in ("cold", "hot")
    ]
    bandwidth = [
        _Panel(
            f"bandwidth-{compute_s:g}-{share:g}",
            f"Perceived bandwidth, {format_seconds(compute_s)} of computation, {_noise_text(share)}",
            BANDWIDTH,
            compute_s,
            UNIFORM_NOISE if share else NO_NOISE,
            share,
        )
        for compute_s in computes_s
        for share in (0.0, *shares)
    ]
    early = [
        _Panel(
            f"early-{share:g}",
            f"Early-bird communication, {short}, {_noise_text(share)}",
            EARLY_BIRD,
            short_s,
            UNIFORM_NOISE,
            share,
        )
        for share in shares
    ]
    if not shares:
        return [*overhead, *bandwidth]
    least = f"{long}, noise {labels.percent(shares[0])}"
    availability = [
        _Panel(
            "availability-partitions",
            f"Application availability (a): one late thread, {least}",
            AVAILABILITY,
            long_s,
            SINGLE_NOISE,
            shares[0],
        ),
        _Panel(
            "availability-noise",
            f"Application availability (b): {labels.counted(most, 'partition')}, {least}",
            AVAILABILITY,
            long_s,
            share=shares[0],
            partitions=most,
        ),
    ]
    return [*overhead, *bandwidth, *availability, *early]


def _noise_text(share: float) -> str:
    return f"uniform noise {labels.percent(share)}" if share else "no noise"


def panel_figures(measured: Sequence[Metrics]) -> list[Figure]:
    """Return every panel for each MPI, those of the MPIs side by side."""
    if not measured:
        return []
    by_mpi = grouped(measured, lambda one: (one.label, one.setting.level))
    figures = []
    for panel in _panels(measured):
        for k, ((label, level), group) in enumerate(by_mpi.items()):
            shown = [one for one in group if panel.shows(one.setting)]
            title = f"{panel.title}: {label}, {labels.level(level)}"
            if shown:
                figures.append(_figure(f"temucin-{panel.id}-{k}", title, panel, shown, measured))
    return figures


def _in_order(measured: Sequence[Metrics]) -> list[Metrics]:
    return sorted(measured, key=lambda one: (one.setting.partitions, one.setting.noise))


def _figure(
    id: str, title: str, panel: _Panel, shown: Sequence[Metrics], measured: Sequence[Metrics]
) -> Figure:
    """Return the panel of `shown`, whose curves look the same in all panels of `measured`."""
    _, meaning, text, axis = METRICS[panel.metric]
    data: list[dict[str, Any]] = []
    values: list[float] = []
    order = _in_order(shown)
    curves = list(dict.fromkeys(panel.curve(one.setting) for one in _in_order(measured)))
    methods = [SINGLE] if panel.metric == BANDWIDTH else []
    for number, one in enumerate(order):
        for method in (*(methods if number == len(order) - 1 else ()), *_DASHES):
            known = [
                (point, estimate)
                for point in one.points
                if method in point.results and (estimate := metric(point.results[method], panel.metric))
            ]
            if not known:
                continue
            is_reference = method == SINGLE
            curve = labels.method(SINGLE) if is_reference else panel.curve(one.setting)
            name = axes.label(curve if is_reference else f"{curve}, {labels.method(method)}")
            look = "measured" if is_reference else axes.series(curves.index(curve))
            spreads = [estimate for _, estimate in known]
            texts = [
                hover(name, format_bytes(point.size_bytes), estimate, text, point.results[method].launches)
                for point, estimate in known
            ]
            data.append(
                line(
                    name,
                    [size_x(point) for point, _ in known],
                    [estimate.value for estimate in spreads],
                    texts,
                    axes.color(look),
                    "dot" if is_reference else _DASHES[method],
                    symbol=axes.symbol(look),
                    error_y=error_bars(spreads),
                )
            )
            values += [value for estimate in spreads for value in estimate]
    if not data:
        return Figure(id, title, "", absence=UNPAIRED)
    sizes = [point.size_bytes for one in shown for point in one.points]
    layout = axes.layout(axes.size_axis(sizes, "buffer size"), axis(values, METRICS[panel.metric][0].lower()))
    return Figure(id, title, f"{meaning} {_CAPTION}", data, layout)
