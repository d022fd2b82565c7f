"""Text about a piece of advice: its title, and the time and speed-up of its alternatives."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from earlybird.compare.ranking import is_clearly_faster
from earlybird.data import labels
from earlybird.data.advice import EXTRAPOLATED, MEASURED, MODEL, Advice, Alternative, SizeRange
from earlybird.data.projection import is_bound, speed_up_text, time_text
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.text import ratio, spread

# What the values of an alternative are based on, as text.
BASES = {MEASURED: "measured", MODEL: "predicted within the measured range", EXTRAPOLATED: "extrapolated"}
LAYOUT, PARTITION, AGGREGATE = OF_EXCHANGES = ("layout", "partition", "aggregate")
TITLES = {
    "pipeline": "a buffer that threads fill",
    "program": "a recorded program",
    LAYOUT: "the layout of an exchange",
    PARTITION: "the partition of a mesh",
    AGGREGATE: "messages through leaders of nodes",
}
# How the arguments of the request are shown; others are shown as `key value`.
_ASKED: Mapping[str, Callable[[Any], str]] = {
    "size_bytes": format_bytes,
    "ranks": lambda value: labels.counted(value, "rank"),
    "threads": lambda value: labels.counted(value, "thread"),
    "level": lambda value: labels.level(str(value)),
    "map_by": lambda value: f"mapped by {value}",
    "root": lambda value: f"root {value}" if value else "",
    "gamma": lambda value: f"delay rate {value}",
}


def gain(advice: Advice) -> float:
    """The predicted speed-up; 0 without one."""
    speed_up = best(advice).speed_up
    return speed_up.value if speed_up else 0.0


def is_own(method: str) -> bool:
    """Whether it is an algorithm of Earlybird, which an MPI cannot select."""
    return method.startswith(labels.OWN)


def best(advice: Advice) -> Alternative:
    """The advised alternative among those that can be selected: the first, or if it is one of Earlybird's
    algorithms, the first of the others that is clearly faster than the reference, else the reference."""
    first = advice.ranked[0]
    others = [one for one in advice.ranked if not is_own(one.method)]
    if first in others or not others:
        return first
    inside = [one for one in others if one.basis != EXTRAPOLATED] or others
    clear = [one for one in inside if one.speed_up and is_clearly_faster(one.speed_up, Estimate.exact(1.0))]
    reference = [one for one in others if one.method == advice.baseline]
    return [*clear, *reference, *others][0]


def size_ranges(advice: Advice) -> list[SizeRange]:
    """The ranges of sizes, merged with the next one if their ends read the same."""
    merged: list[SizeRange] = []
    begin: int | None = None
    for one in advice.size_ranges:
        one = one if begin is None else replace(one, from_bytes=begin)
        begin = None
        same = one.to_bytes > one.from_bytes and _about(one.from_bytes) == _about(one.to_bytes)
        if same and merged:
            merged[-1] = replace(merged[-1], to_bytes=one.to_bytes)
        elif same and one.to_bytes < advice.size_ranges[-1].to_bytes:
            begin = one.from_bytes
        elif merged and (merged[-1].method, merged[-1].extra) == (one.method, one.extra):
            merged[-1] = replace(merged[-1], to_bytes=one.to_bytes)
        else:
            merged.append(one)
    return merged


def _about(size_bytes: float) -> str:
    """A size with two digits: crossovers are known to about 1 %."""
    return f"{float(size_bytes):.2g}"


def title(advice: Advice, without: str = "") -> str:
    """`a buffer that threads fill: 64 MiB, 8 threads, same socket, delay rate 100us/MB`; for a collective,
    the name of the operation. The argument `without` is left out."""
    order = dict.fromkeys([*_ASKED, *advice.asked])
    keys = [key for key in order if key in advice.asked and key not in ("operation", without)]
    if str(advice.asked.get("layout", "")).endswith(f"by {advice.asked.get('map_by')}"):
        keys.remove("map_by")  # the layout includes it
    texts = [text for key in keys if (text := _argument_text(key, advice.asked[key]))]
    operation = str(advice.asked.get("operation", advice.operation))
    name = TITLES.get(operation, labels.operation(operation))
    return f"{name}: {', '.join(texts)}" if texts else name


def _argument_text(key: str, value: Any) -> str:
    if value is None:
        return ""
    plain = key.removesuffix("_bytes").replace("_", " ")
    if key.endswith("_bytes") and key != "size_bytes" and _is_number(value):
        return f"{plain} {format_bytes(value)}"
    try:
        return _ASKED[key](value) if key in _ASKED else f"{plain} {value}"
    except (TypeError, ValueError):  # a file may hold text instead of a number
        return f"{plain} {value}"


def method(advice: Advice, name: str) -> str:
    """The display name of a method or algorithm; alternatives of exchanges are neither and keep their name,
    such as the layout `partitioned`."""
    return name if advice.operation in OF_EXCHANGES else labels.method(name)


def reference(advice: Advice) -> str:
    return method(advice, advice.baseline)


def name(advice: Advice, one: Alternative | SizeRange) -> str:
    """A method and the number of contexts that it requests from the MPI."""
    contexts = one.extra.get("vcis")
    return method(advice, one.method) + (
        f", {labels.counted(contexts, 'context')}" if _is_number(contexts) else ""
    )


def speed_up(advice: Advice, alternative: Alternative) -> str:
    """`speed-up 2.40 over single message (95 %: 2.20 to 2.60), measured`."""
    if alternative.speed_up is None:
        return "speed-up unknown"
    value, interval = value_and_interval(alternative)
    certain = f" (95 %: {interval})" if interval else ""
    return f"speed-up {value} over {reference(advice)}{certain}, {basis(advice, alternative)}"


def value_and_interval(alternative: Alternative) -> tuple[str, str]:
    """Format a speed-up as `2.40` and `2.20 to 2.60`; as `at least 1.09` and "" where a projection knows only
    that."""
    if alternative.speed_up is None:
        return "unknown", ""
    if is_projected_bound(alternative):
        return speed_up_text(alternative.speed_up, ratio), ""
    return ratio(alternative.speed_up.value), spread(alternative.speed_up, ratio)


def is_projected_bound(alternative: Alternative) -> bool:
    """Return whether it is a projected change with a bound of its speed-up alone."""
    speed_up = alternative.speed_up
    return "kind" in alternative.extra and speed_up is not None and is_bound(speed_up)


def basis(advice: Advice, alternative: Alternative) -> str:
    """What the values are based on: `measured`, `extrapolated`. Advice on exchanges has no measured
    range."""
    if advice.operation in OF_EXCHANGES and alternative.basis == MODEL:
        return "predicted"
    return BASES.get(alternative.basis, alternative.basis)


def value_of_time(alternative: Alternative) -> str:
    """Format the time without its interval: as `at most 890 ms` where a projection knows only that."""
    if is_projected_bound(alternative):
        return time_text(alternative.time_s, alternative.speed_up)
    return format_seconds(alternative.time_s.value)


def takes(alternative: Alternative) -> str:
    """`5.9 ms (95 %: 5.8 ms to 6 ms)`."""
    certain = "" if is_projected_bound(alternative) else _interval(alternative.time_s, format_seconds)
    return value_of_time(alternative) + certain


def takes_in_table(alternative: Alternative) -> str:
    """Format the same as `5.9 ms (5.8 ms to 6 ms)`."""
    return takes(alternative).replace("95 %: ", "")


def speed_up_in_table(alternative: Alternative) -> str:
    """Format a speed-up as `2.40 (2.20 to 2.60)`; `-` if it is unknown."""
    if alternative.speed_up is None:
        return "-"
    value, interval = value_and_interval(alternative)
    return value + (f" ({interval})" if interval else "")


def _interval(estimate: Estimate, text: Callable[[float], str]) -> str:
    interval = spread(estimate, text)
    return f" (95 %: {interval})" if interval else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def extrapolated(extra: Mapping[str, Any]) -> str:
    """`extrapolated in ranks`, or `extrapolated in part` if the file does not list the quantities."""
    value = extra.get("extrapolated")
    if isinstance(value, list) and value:
        return f"extrapolated in {extra_cell('', value)}"
    return "extrapolated in part" if value is True else ""


def extra_cell(key: str, value: Any) -> str:
    """Another value of an alternative, as text for a table cell."""
    if value is None or isinstance(value, dict):
        return "-"
    if isinstance(value, list):
        return labels.listed([str(item).replace("_bytes", "").replace("_", " ") for item in value]) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        formats = {"_bytes": format_bytes, "_s": format_seconds}
        return next((text(value) for end, text in formats.items() if key.endswith(end)), f"{value:.4g}")
    return str(value)
