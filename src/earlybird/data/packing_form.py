"""The cost of packing or unpacking one layout of data, by size: an entry of a profile's `forms`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from earlybird.data.kernels import PACKING
from earlybird.data.methods import CACHES, PACKING_METHODS, PACKINGS
from earlybird.data.schema import Bytes, Extra, NotNegative, Record, decode, require_ascending, require_one_of

FORM = "table"


@dataclass(frozen=True, kw_only=True)
class Packed(Record):
    """The layout and method that a form of packing describes.

    Attributes
    ----------
    operation : always `packing`.
    packing : the layout of the data: contiguous, strided or indexed.
    cache : hot or cold.
    method : pack or unpack, by the MPI, or with the prefix loop- by a loop.
    """

    operation: Literal["packing"] = "packing"
    packing: str
    cache: str
    method: str
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, known in (("packing", PACKINGS), ("cache", CACHES), ("method", PACKING_METHODS)):
            require_one_of(name, getattr(self, name), known)


@dataclass(frozen=True, kw_only=True)
class PackingTimes(Record):
    """The times of packing or unpacking, by size.

    Attributes
    ----------
    size_bytes : ascending sizes of the packed data.
    time_s : time at each size; median over iterations, then over launches.
    """

    size_bytes: tuple[Bytes, ...]
    time_s: tuple[NotNegative, ...]
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.size_bytes or len(self.size_bytes) != len(self.time_s):
            raise ValueError("size_bytes and time_s must have as many values as each other, at least one")
        require_ascending([0, *self.size_bytes])


@dataclass(frozen=True, kw_only=True)
class PackingForm(Record):
    """The cost of packing or unpacking one layout of data.

    Attributes
    ----------
    what : the layout and the method.
    form : always `table`.
    parameters : the measured times.
    """

    what: Packed
    form: Literal["table"] = "table"
    parameters: PackingTimes
    extra: Extra = field(default_factory=dict)

    def times_s(self, size_bytes: np.ndarray) -> np.ndarray:
        """Return the seconds to move each of these sizes: linear between measured sizes. Smaller ones take as
        long as the smallest; beyond the largest, each byte takes as long as there; zero bytes take no
        time."""
        size = np.asarray(size_bytes, dtype=float)
        known, time_s = np.array(self.parameters.size_bytes, dtype=float), np.array(self.parameters.time_s)
        inside = np.interp(size, known, time_s)
        return np.where(size == 0, 0.0, inside * np.maximum(size / known[-1], 1.0))


def packing_form_from_json(value: Mapping[str, Any], where: str = "the form") -> PackingForm:
    """Build a PackingForm from its JSON object; check every number."""
    return decode(value, PackingForm, where)


def is_packing(form: Any) -> bool:
    what = form.get("what") if isinstance(form, Mapping) else None
    return isinstance(what, Mapping) and what.get("operation") == PACKING.name
