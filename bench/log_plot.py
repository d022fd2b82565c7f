"""A plot of several curves with two logarithmic axes, as SVG."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 200, 20, 50  # margins
TEXT, GRID = "#222", "#ddd"


class Curve(NamedTuple):
    """Points (x, y), all above 0, in one colour, with a dashed line if `dashed`."""

    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False


class _Axis(NamedTuple):
    """Positions between `begin` and `end` for values between `low` and `high`."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + share * (self.end - self.begin), 1)


def log_plot(
    curves: Mapping[str, Curve], x_label: str, y_label: str, y_text: Callable[[float], str] = "{:g}".format
) -> str:
    """The SVG of `curves` by name: a tick of x for every x of a point, one of y, with `y_text`, for every
    power of ten. Raises ValueError without two different x."""
    ticks_x = sorted({x for curve in curves.values() for x, _ in curve.points})
    if len(ticks_x) < 2:
        raise ValueError("the curves have fewer than two different x")
    all_y = [y for curve in curves.values() for _, y in curve.points]
    lowest, highest = math.floor(math.log10(min(all_y))), math.ceil(math.log10(max(all_y)))
    highest = max(highest, lowest + 1)
    x_axis = _Axis(ticks_x[0], ticks_x[-1], LEFT, WIDTH - RIGHT)
    y_axis = _Axis(10.0**lowest, 10.0**highest, HEIGHT - BOTTOM, TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="{TEXT}" role="img" aria-label={quoteattr(f"{y_label} by {x_label}")}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for x in ticks_x:
        at = x_axis.at(x)
        lines += [_line(at, TOP, at, HEIGHT - BOTTOM), _text(at, HEIGHT - BOTTOM + 18, f"{x:g}", "middle")]
    for power in range(lowest, highest + 1):
        at = y_axis.at(10.0**power)
        lines += [_line(LEFT, at, WIDTH - RIGHT, at), _text(LEFT - 8, at + 4, y_text(10.0**power), "end")]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    lines += [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, "middle"),
        f'<g transform="translate(16 {middle}) rotate(-90)">{_text(0, 0, y_label, "middle")}</g>',
    ]
    for number, (name, curve) in enumerate(curves.items()):
        lines += _drawn(curve, x_axis, y_axis)
        lines += _legend(name, curve, TOP + 14 + 22 * number)
    return "\n".join([*lines, "</svg>", ""])


def _drawn(curve: Curve, x_axis: _Axis, y_axis: _Axis) -> Iterator[str]:
    places = [(x_axis.at(x), y_axis.at(y)) for x, y in curve.points]
    path = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" {_stroke(curve)}/>'
    for x, y in places:
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{curve.colour}"/>'


def _legend(name: str, curve: Curve, y: float) -> Iterator[str]:
    x = WIDTH - RIGHT + 14
    yield f'<line x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}" {_stroke(curve)}/>'
    yield _text(x + 34, y + 4, name, "start")


def _stroke(curve: Curve) -> str:
    return f'stroke="{curve.colour}" stroke-width="2"' + (' stroke-dasharray="6 4"' if curve.dashed else "")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GRID}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
