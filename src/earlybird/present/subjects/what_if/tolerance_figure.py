"""The figure of what an exchange tolerates: its time against each latency and bandwidth."""

from earlybird.data import labels
from earlybird.data.tolerance import LATENCY, Tolerance, ToleranceCurve
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.lines import line
from earlybird.present.core.parts import Figure

_LEAST_SPAN = 1.7  # of the time axis around the time now, so that it has ticks


def tolerance_figure(found: Tolerance, id: str) -> Figure:
    """The slowest rank's seconds against the factor by which a parameter is multiplied, a line for each."""
    times_s = [time_s for curve in found.curves for time_s in curve.time_s]
    factors = [factor for curve in found.curves for factor in curve.factors]
    around = [found.time_s / _LEAST_SPAN, found.time_s * _LEAST_SPAN]
    return Figure(
        id,
        "Time against latency and bandwidth",
        f"Time of the slowest rank by the {found.model} model if one parameter is multiplied by a factor. "
        "A flat line: the parameter does not matter to the exchange.",
        [_curve(curve) for curve in found.curves],
        axes.layout(
            axes.factor_axis(factors, "factor of the latency or bandwidth"),
            axes.log_time_axis([*times_s, *around], "slowest rank"),
        ),
        wide=True,
    )


def _curve(curve: ToleranceCurve) -> dict:
    name = labels.capital(curve.name)
    texts = [
        f"{curve.name}: {curve.value_text(factor)}<br><b>{format_seconds(time_s)}</b>"
        for factor, time_s in zip(curve.factors, curve.time_s, strict=True)
    ]
    dash = "dash" if curve.parameter == LATENCY else "solid"
    mark = axes.symbol(curve.level) + "-open" * (curve.parameter == LATENCY)
    return line(name, curve.factors, curve.time_s, texts, axes.color(curve.level), dash, symbol=mark)
