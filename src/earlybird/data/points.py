"""A point in plain terms: the measurement of its kernel, without values that all points share."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds

_SHOWN_FIRST = ("operation", "level", "map_by", "ranks", "competitors", "size_bytes")


class PointLike(Protocol):
    """The attributes that identify a point, for example of a comparison, a baseline or a history."""

    @property
    def kernel(self) -> str: ...

    @property
    def quantity(self) -> str: ...

    @property
    def method(self) -> str: ...

    @property
    def config(self) -> Mapping[str, Any]: ...


def point_texts(points: Sequence[PointLike]) -> list[str]:
    """Return a unique text for each point.

    Values that all points have in common are left out, except for the kernel; the quantity is named where a
    kernel has several.
    """
    names = {name for one in points for name in one.config}
    varying = {name for name in names if len({str(one.config.get(name)) for one in points}) > 1}
    order = [name for name in _SHOWN_FIRST if name in varying]
    order += sorted(varying - set(order) - _implied(points, varying))
    quantities: dict[str, set[str]] = {}
    for one in points:
        quantities.setdefault(one.kernel, set()).add(one.quantity)
    return [
        " ".join([
            one.kernel,
            *([one.quantity] if len(quantities[one.kernel]) > 1 else []),
            *([one.method] if one.method else []),
            *_values(one.config, order),
        ])
        for one in points
    ]  # fmt: skip


def texts_by_id(points: Sequence[PointLike]) -> dict[int, str]:
    """Return the same texts by the `id` of each point, for lists that show some of them."""
    return {id(one): text for one, text in zip(points, point_texts(points), strict=True)}


def _implied(points: Sequence[PointLike], varying: set[str]) -> set[str]:
    """Return the names of values that follow from others: the repetitions of an operation follow from the
    operation."""
    rest = varying - {"repeats"}
    seen: dict[str, set[str]] = {}
    for one in points:
        others = sorted((name, str(one.config.get(name))) for name in rest)
        key = str((one.kernel, one.quantity, one.method, others))
        seen.setdefault(key, set()).add(str(one.config.get("repeats")))
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
