"""The regression coefficients of Insaghi (paper): reference models of two collectives."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Regression:
    """A printed table of a regression; for tables 7 and 8, the two rows of an algorithm and mapping.

    Attributes
    ----------
    form : 1, 2 or 3, see docs/collective-models.md.
    logarithm : whether the regression is of ln T (forms 1 and 2) or log2 T (form 3), T in microseconds.
    terms, estimates, std_errors, t_values, p_values : columns of the table, as printed.
    """

    table: str
    operation: str
    algorithm: str
    map_by: str
    form: int
    logarithm: bool
    terms: tuple[str, ...]
    estimates: tuple[float, ...]
    std_errors: tuple[float, ...]
    t_values: tuple[float, ...]
    p_values: tuple[float, ...]


@dataclass(frozen=True)
class Insaghi:
    """The machine and the regressions of Insaghi (paper); R squared by table, where it is printed."""

    source: str
    break_ranks: int
    machine: dict[str, int]
    ranks: tuple[int, int]
    regressions: tuple[Regression, ...]
    r_squared: dict[str, float]


def _regression(value: dict[str, Any]) -> Regression:
    items: dict[str, Any] = {
        key: tuple(item) if isinstance(item, list) else item for key, item in value.items()
    }
    return Regression(**items)


@cache
def load_insaghi() -> Insaghi:
    """Return the published regressions of Insaghi (paper), from a file of the package."""
    value: dict[str, Any] = json.loads(resources.files(__package__).joinpath("insaghi.json").read_text())
    return Insaghi(
        value["source"],
        value["break_ranks"],
        value["machine"],
        tuple(value["ranks"]),
        tuple(map(_regression, value["regressions"])),
        value["r_squared"],
    )
