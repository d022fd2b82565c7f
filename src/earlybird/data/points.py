"""A point in plain terms: what its kernel measured, without what all points of a list share."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds

_SHOWN_FIRST = ("operation", "level", "map_by", "ranks", "competitors", "size_bytes")


def point_texts(points: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """A text for each (kernel, method, configuration), which no other point has.

    Values that all points have in common are left out, except for the kernel.
    """
    names = {name for *_, config in points for name in config}
    varying = {name for name in names if len({str(config.get(name)) for *_, config in points}) > 1}
    order = [name for name in _SHOWN_FIRST if name in varying]
    order += sorted(varying - set(order) - _implied(points, varying))
    return [
        " ".join([kernel, *([method] if method else []), *_values(config, order)])
        for kernel, method, config in points
    ]


def _implied(points: Sequence[tuple[str, str, Mapping[str, Any]]], varying: set[str]) -> set[str]:
    """Values that follow from others: how often an operation is repeated, from what it is."""
    rest = varying - {"repeats"}
    seen: dict[str, set[str]] = {}
    for kernel, method, config in points:
        key = str((kernel, method, sorted((name, str(config.get(name))) for name in rest)))
        seen.setdefault(key, set()).add(str(config.get("repeats")))
    return {"repeats"} if all(len(values) == 1 for values in seen.values()) else set()


def _values(config: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    return [_value(name, config[name]) for name in order if config.get(name) is not None]


def _value(name: str, value: Any) -> str:
    if name == "size_bytes":
        return format_bytes(value)
    if name == "level":
        return labels.level(value)
    if name == "operation":
        return str(value)
    if name == "competitors":
        return f"N={value}"
    if name.endswith("_s") and isinstance(value, float | int):
        return f"{name.removesuffix('_s')}={format_seconds(value)}"
    return f"{name}={value}"
