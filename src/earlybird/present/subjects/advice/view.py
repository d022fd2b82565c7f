"""Text about a piece of advice: its title, and the time and speed-up of its alternatives."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.advice import EXTRAPOLATED, MEASURED, MODEL, Advice, Alternative, SizeRange
from earlybird.data.speed_ups import is_bound, speed_up_text, time_text
from earlybird.data.units import format_bytes, format_seconds, number_or_none
from earlybird.present.core.notation import interval_text, ratio_text, with_interval
from earlybird.present.core.text import NOTHING

# What the values of an alternative are based on, as text.
BASES = {MEASURED: "measured", MODEL: "predicted within the measured range", EXTRAPOLATED: "extrapolated"}
PROGRAM = "program"
OF_EXCHANGES = ("layout", "partition", "aggregate")
NOT_SELECTABLE = "for comparison; the MPI cannot select it"
# operation -> its title, and what its alternatives are
_OPERATIONS = {
    "pipeline": ("a buffer that threads fill", "method"),
    PROGRAM: ("a recorded program", "change"),
    "layout": ("the layout of an exchange", "layout"),
    "partition": ("the partition of a mesh", "partition"),
    "aggregate": ("messages through leaders of nodes", "number of leaders"),
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
_VARIABLES = re.compile(r"[A-Z]\w*=[\w./:,@+-]+( \w+=[\w./:,@+-]+)*", re.A)  # settings without a command


def gain(advice: Advice) -> float:
    """Return the speed-up of the advised alternative; 0 without one."""
    speed_up = advice.ranked[0].speed_up
    return speed_up.value if speed_up else 0.0


def operation(advice: Advice) -> str:
    """Return the name of the requested operation."""
    return str(advice.asked.get("operation", advice.operation))


def noun(advice: Advice) -> str:
    """Return the noun for the alternatives: `method`, `layout`."""
    return _OPERATIONS.get(advice.operation, ("", "algorithm"))[1]


def title(advice: Advice, without: str = "") -> str:
    """Return `a buffer that threads fill: 64 MiB, 8 threads, same socket, delay rate 100us/MB`; for a
    collective, the name of the operation. The argument `without` is left out."""
    order = dict.fromkeys([*_ASKED, *advice.asked])
    keys = [key for key in order if key in advice.asked and key not in ("operation", without)]
    if str(advice.asked.get("layout", "")).endswith(f"by {advice.asked.get('map_by')}"):
        keys.remove("map_by")  # the layout includes it
    texts = [text for key in keys if (text := _format_argument(key, advice.asked[key]))]
    name = operation(advice)
    name = _OPERATIONS[name][0] if name in _OPERATIONS else labels.operation(name)
    return f"{name}: {', '.join(texts)}" if texts else name


def _format_argument(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in _ASKED:
        return _ASKED[key](value)
    plain, is_size = (
        key.removesuffix("_bytes").replace("_", " "),
        key.endswith("_bytes") and _is_number(value),
    )
    return f"{plain} {format_bytes(value) if is_size else value}"


def _method(advice: Advice, name: str) -> str:
    """Return the display name of a method or algorithm; alternatives of exchanges are neither and keep their
    name, such as the layout `partitioned`."""
    return name if advice.operation in OF_EXCHANGES else labels.method(name)


def reference(advice: Advice) -> str:
    """Return the display name of the reference of speed-ups."""
    return _method(advice, advice.baseline)


def name(advice: Advice, alternative: Alternative | SizeRange) -> str:
    """Return a method and the number of contexts that it requests from the MPI."""
    contexts = alternative.extra.get("vcis")
    known = number_or_none(contexts)
    more = "" if known is None else f", {labels.counted(int(known), 'context')}"
    return _method(advice, alternative.method) + more


def action(advice: Advice, alternative: Alternative | SizeRange) -> str:
    """Return the action for an alternative: empty for the reference, and without a setting if the MPI cannot
    select it."""
    if alternative.method == advice.baseline:
        return alternative.action if advice.operation == PROGRAM else NOTHING
    if labels.is_own(alternative.method):
        return NOT_SELECTABLE
    is_setting = _VARIABLES.fullmatch(alternative.action)
    return f"start the job with `{alternative.action} mpiexec ...`" if is_setting else alternative.action


def describe_speed_up(advice: Advice, alternative: Alternative) -> str:
    """Return `speed-up 2.40 over single message (95 %: 2.20 .. 2.60), measured`."""
    if alternative.speed_up is None:
        return "speed-up unknown"
    value, interval = speed_up_and_interval(alternative)
    certain = f" (95 %: {interval})" if interval else ""
    return f"speed-up {value} over {reference(advice)}{certain}, {basis(advice, alternative)}"


def speed_up_and_interval(alternative: Alternative) -> tuple[str, str]:
    """Return `2.40` and `2.20 .. 2.60`; `at least 1.09` and "" where a simulation knows only that."""
    if alternative.speed_up is None:
        return "unknown", ""
    if _is_bound_alone(alternative):
        return speed_up_text(alternative.speed_up, ratio_text), ""
    return ratio_text(alternative.speed_up.value), interval_text(alternative.speed_up, ratio_text)


def _is_bound_alone(alternative: Alternative) -> bool:
    """Return whether it is a change of a program of which only a bound of the speed-up is known."""
    speed_up = alternative.speed_up
    return "kind" in alternative.extra and speed_up is not None and is_bound(speed_up)


def basis(advice: Advice, alternative: Alternative) -> str:
    """Return the basis of the values. Advice on exchanges has no measured range."""
    if advice.operation in OF_EXCHANGES and alternative.basis == MODEL:
        return "predicted"
    return BASES.get(alternative.basis, alternative.basis)


def notes(
    pieces: Sequence[Advice],
    title_of: Callable[[Advice], str],
    more: Callable[[Advice], Sequence[str]] = lambda advice: (),
) -> list[str]:
    """Return each distinct note once, after the titles of the pieces that it is about if these are not
    all."""
    titles_of: dict[str, list[str]] = {}
    for advice in pieces:
        for text in (*advice.notes, *more(advice)):
            titles_of.setdefault(text, []).append(title_of(advice))
    return [
        text if len(titles) == len(pieces) else f"{labels.listed_briefly(titles, 2)}: {text}"
        for text, titles in titles_of.items()
    ]


def format_time(alternative: Alternative) -> str:
    """Return `5.9 ms (5.8 ms .. 6 ms)`; `at most 890 ms` where a simulation knows only that."""
    if _is_bound_alone(alternative):
        return time_text(alternative.time_s, alternative.speed_up)
    return with_interval(alternative.time_s, format_seconds)


def format_speed_up(alternative: Alternative) -> str:
    """Return `2.40 (2.20 .. 2.60)`; "" if it is unknown."""
    if alternative.speed_up is None:
        return ""
    value, interval = speed_up_and_interval(alternative)
    return value + (f" ({interval})" if interval else "")


def extrapolated(extra: Mapping[str, Any]) -> str:
    """Return `in ranks`, or `in part` if the file does not list the quantities; "" if nothing is."""
    value = extra.get("extrapolated")
    if isinstance(value, list) and value:
        return f"in {format_extra('', value)}"
    return "in part" if value is True else ""


def format_extra(key: str, value: Any) -> str:
    """Return another value of an alternative as text; "" if it is unknown."""
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, list):
        return labels.listed([str(item).replace("_bytes", "").replace("_", " ") for item in value])
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        formats = {"_bytes": format_bytes, "_s": format_seconds}
        return next((text(value) for end, text in formats.items() if key.endswith(end)), f"{value:.4g}")
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
