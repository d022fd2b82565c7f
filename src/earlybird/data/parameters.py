"""Parameters: the values that identify a point, some of which its version or benchmark may have left out."""

from collections.abc import Mapping
from typing import Any

from earlybird.data.errors import Unknown
from earlybird.data.kernels import kernel_of

# What the absence of a key means; every other key without a value is unknown.
_DEFAULTS = {
    "cache": "hot", "competitors": 1, "layout": "", "level": "", "map_by": "", "noise": "none",
    "noise_share": 0.0, "root": 0, "scaling": "strong", "skew": 1,
}  # fmt: skip


class Values(dict[str, Any]):
    """The values of a point of a kernel; `[name]` raises Unknown for a value that the point lacks.

    A table then leaves the cell empty, and figures that are made of the value are left out.
    """

    def __init__(self, kernel: str, values: Mapping[str, Any]):
        super().__init__(values)
        self.kernel = kernel

    def __missing__(self, name: str) -> Any:
        given = " ".join(f"{key}={value}" for key, value in self.items())
        raise Unknown(f"a point of {self.kernel} ({given}) has no {name!r}; measure it again")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, dict(self))


class Parameters(Values):
    """The configuration of a point; `[name]` returns the default, if one is declared, for a value that is
    absent or null.

    Iteration yields the values as written: two points are different if one of them has a null.
    """

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return self.__missing__(name) if value is None else value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) and super().__getitem__(str(name)) is not None

    def get(self, name: str, default: Any = None, /) -> Any:
        value = super().get(name)
        return default if value is None else value

    def __missing__(self, name: str) -> Any:
        defaults = {**_DEFAULTS, **kernel_of(self.kernel).defaults}
        return defaults[name] if name in defaults else super().__missing__(name)
