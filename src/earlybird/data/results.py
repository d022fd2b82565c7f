"""Result: what was measured about one method at one point, the row of the one table of results."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from earlybird.data import files
from earlybird.data.errors import InputError

_STATE = ("launches", "noisy", "oversubscribed")
_KNOWN = {
    "kernel", "quantity", "method", "time_s", "time_low_s", "time_high_s", "coverage", "speed_up",
    "speed_up_low", "speed_up_high", "speed_up_coverage", "reference", "through", "fitted_s", "figures",
    *_STATE,
}  # fmt: skip


class Estimate(NamedTuple):
    """A median over launches and its interval, defined in `compare.intervals`."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """A value without an interval."""
        return cls(value, value, value)

    def inverse(self) -> "Estimate":
        """The estimate of 1/x."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low)


@dataclass(frozen=True)
class Result:
    """One method at one point, over all launches.

    Attributes
    ----------
    method : the method or algorithm; "" if the kernel has only one.
    config : the other values that identify the point, such as `mpi`, `level` and `size_bytes`.
    time_s : median over iterations, then over launches.
    coverage, speed_up_coverage : how often such an interval contains the median: 0.97 with 6 launches, 0.75
        with 3.
    speed_up : time of `reference` / time of this method, from times of the same rounds; None for the
        reference itself, and if no launch measured both.
    through : the method by which they are compared if no launch measured both; else "".
    noisy : launches in which the time did not converge.
    fitted_s : time that a fitted model predicts, or None.
    figures : further values of this kernel, such as `bandwidth_bytes_per_s`.
    """

    kernel: str
    quantity: str
    method: str
    config: Mapping[str, Any]
    time_s: Estimate
    coverage: float
    launches: int
    noisy: int = 0
    oversubscribed: bool = False
    speed_up: Estimate | None = None
    speed_up_coverage: float = 0.0
    reference: str = ""
    through: str = ""
    fitted_s: float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """`converged`, or in how many launches it was `noisy`; and whether ranks or threads shared cores."""
        text = f"noisy in {self.noisy}" if self.noisy else "converged"
        return text + (", oversubscribed" if self.oversubscribed else "")

    def row(self) -> dict[str, Any]:
        """The result as one flat row, for CSV and JSON."""
        row = self.to_json()
        return row | row.pop("figures", {})

    def to_json(self) -> dict[str, Any]:
        value = {"kernel": self.kernel, "quantity": self.quantity, **self.config, "method": self.method}
        value |= dict(zip(("time_s", "time_low_s", "time_high_s"), self.time_s, strict=True))
        value["coverage"] = self.coverage
        names = ("speed_up", "speed_up_low", "speed_up_high")
        value |= dict(zip(names, self.speed_up or (None, None, None), strict=True))
        value["speed_up_coverage"] = self.speed_up_coverage if self.speed_up else None
        value |= {"reference": self.reference, "through": self.through}
        value |= {name: getattr(self, name) for name in _STATE}
        if self.fitted_s is not None:
            value["fitted_s"] = self.fitted_s
        return value | ({"figures": dict(self.figures)} if self.figures else {})


def result_from_json(value: Any, where: str = "the result") -> Result:
    """Build a Result from its JSON object; raises InputError if it is incomplete."""
    try:
        value = files.with_current_keys(value)
        speed_up = None
        if value.get("speed_up") is not None:
            speed_up = _estimate(value["speed_up"], value["speed_up_low"], value["speed_up_high"])
        result = Result(
            str(value["kernel"]),
            str(value["quantity"]),
            str(value["method"]),
            {key: item for key, item in value.items() if key not in _KNOWN},
            _estimate(value["time_s"], value["time_low_s"], value["time_high_s"]),
            float(value["coverage"]),
            int(value["launches"]),
            int(value["noisy"]),
            bool(value["oversubscribed"]),
            speed_up,
            float(value.get("speed_up_coverage") or 0.0),
            str(value.get("reference", "")),
            str(value.get("through", "")),
            None if value.get("fitted_s") is None else float(value["fitted_s"]),
            dict(value.get("figures", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where} is incomplete ({error!r}); fit the runs again with `earlybird fit`"
        ) from error
    return result


def results_from_json(values: Any, where: str) -> list[Result]:
    """The results in a JSON list; raises InputError if it is none."""
    if not isinstance(values, list):
        raise InputError(f"{where}: 'results' must be a list; fit the runs again with `earlybird fit`")
    return [result_from_json(value, f"{where}, result {k}") for k, value in enumerate(values)]


def results_to_json(results: Iterable[Result]) -> list[dict[str, Any]]:
    return [result.to_json() for result in results]


def _estimate(*values: Any) -> Estimate:
    estimate = Estimate(*map(float, values))
    if not all(math.isfinite(value) and value >= 0 for value in estimate):
        raise ValueError(f"{values} are not times or ratios")
    return estimate
