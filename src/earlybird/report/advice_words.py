"""What a piece of advice is about, and what its alternatives gain, in words; the same for every operation."""

from collections.abc import Callable, Mapping
from typing import Any

from earlybird.data.advice import Advice, Alternative
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import words

TITLES = {"pipeline": "a buffer that threads fill"}
# How what was asked is told; the rest as `key value`.
_ASKED: Mapping[str, Callable[[Any], str]] = {
    "size_bytes": format_bytes,
    "ranks": lambda value: words.counted(value, "rank"),
    "threads": lambda value: words.counted(value, "thread"),
    "level": lambda value: words.level(str(value)),
    "map_by": lambda value: f"mapped by {value}",
    "root": lambda value: f"root {value}" if value else "",
}


def by_gain(pieces: tuple[Advice, ...]) -> list[Advice]:
    """The largest predicted gain first; without one, last."""
    return sorted(pieces, key=lambda one: -(one.ranked[0].gain or 0.0))


def title(advice: Advice) -> str:
    """`a buffer that threads fill: 64 MiB, 8 threads, within a socket, gamma 100us/MB`; of a collective its
    own name, as asked for."""
    asked = [key for key in _ASKED if key in advice.asked]
    asked += [key for key in advice.asked if key not in _ASKED and key != "operation"]
    if str(advice.asked.get("layout", "")).endswith(f"by {advice.asked.get('map_by')}"):
        asked.remove("map_by")  # the layout says it
    told = [text for key in asked if (text := _told(key, advice.asked[key]))]
    operation = str(advice.asked.get("operation", advice.operation))
    name = TITLES.get(operation, words.operation(operation))
    return f"{name}: {', '.join(told)}" if told else name


def _told(key: str, value: Any) -> str:
    if value is None:
        return ""
    plain = key.removesuffix("_bytes").replace("_", " ")
    if key.endswith("_bytes") and key != "size_bytes" and _is_number(value):
        return f"{plain} {format_bytes(value)}"
    try:
        return _ASKED[key](value) if key in _ASKED else f"{plain} {value}"
    except (TypeError, ValueError):  # a file may hold text where a number is meant
        return f"{plain} {value}"


def name(method: str, extra: Mapping[str, Any]) -> str:
    """A method with the contexts that it asks of the MPI."""
    contexts = extra.get("vcis")
    return words.method(method) + (f", {words.counted(contexts, 'context')}" if _is_number(contexts) else "")


def gain(advice: Advice, one: Alternative) -> str:
    """`2.40 times as fast as one message (95 %: 2.20 to 2.60)`."""
    if one.method == advice.baseline:
        return "what it is compared with"
    if one.gain is None:
        return "a gain is not known"
    between = f" (95 %: {spread(one.gain_interval, _two_digits)})" if one.gain_interval else ""
    return f"{one.gain:.2f} times as fast as {words.method(advice.baseline)}{between}"


def takes(one: Alternative) -> str:
    """`5.9 ms (95 %: 5.8 ms to 6 ms)`."""
    between = f" (95 %: {spread(one.time_interval_s, format_seconds)})" if one.time_interval_s else ""
    return format_seconds(one.time_s) + between


def spread(interval: tuple[float, float], text: Callable[[float], str]) -> str:
    return f"{text(interval[0])} to {text(interval[1])}"


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def extrapolated(extra: Mapping[str, Any]) -> str:
    """`extrapolated in part` where the file says so, and in what where it tells: `extrapolated in ranks`."""
    value = extra.get("extrapolated")
    if isinstance(value, list) and value:
        return f"extrapolated in {extra_cell('', value)}"
    return "extrapolated in part" if value is True else ""


def gain_over(advice: Advice) -> str:
    return f"; gain over {words.method(advice.baseline)}" if advice.baseline else ""


def extra_cell(key: str, value: Any) -> str:
    """What else belongs to an alternative, as the cell of a table."""
    if value is None or isinstance(value, dict):
        return "-"
    if isinstance(value, list):
        return words.listed([str(one).replace("_bytes", "").replace("_", " ") for one in value]) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        known = {"_bytes": format_bytes, "_s": format_seconds}
        return next((text(value) for end, text in known.items() if key.endswith(end)), f"{value:.4g}")
    return str(value)
