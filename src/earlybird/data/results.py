"""Result: the measurements of one method at one point, the row of the one table of results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data.errors import InputError
from earlybird.data.parameters import Parameters, Values
from earlybird.data.run_keys import CONFIG_TYPES
from earlybird.data.schema import (
    OMIT_EMPTY,
    Estimate,
    Natural,
    NotNegative,
    Ranks,
    Record,
    Share,
    decode,
    estimate_keys,
)

_REMEDY = "fit the runs again with `earlybird fit`"


@dataclass(frozen=True)
class Result(Record):
    """The times of one method at one point over all launches; the keys of its `config` are on the same level
    as these.

    Attributes
    ----------
    method : the method or algorithm; "" if the kernel has only one.
    config : the other values that identify the point, such as `mpi`, `level` and `size_bytes`.
    time_s : median over iterations, then over launches; for imported runs the median of `statistic` over
        launches.
    coverage : probability that the interval of the time contains the median: 0.97 with 6 launches, 0.75 with
        3.
    speed_up_coverage : the same probability for the speed-up.
    speed_up : time of `reference` / time of this method, from times of the same rounds; None for the
        reference itself, and if no launch measured both.
    through : the method by which they are compared if no launch measured both; else "".
    noisy : number of launches in which the time did not converge.
    fitted_s : time that a fitted model predicts, or None.
    figures : further values of this kernel, such as `bandwidth_bytes_per_s`.
    statistic : the statistic that the one value of each launch is, if another benchmark printed no
        iterations; else "".
    rounding : largest relative error of values that were printed with one digit.
    mean_of_iterations : whether times and figures are means over the iterations of all launches, with 90 %
        intervals by Student's t, instead of medians.
    launches : number of launches.
    oversubscribed : whether ranks or threads shared cores.
    reference : the method that `speed_up` is relative to.
    """

    unknown_keys: ClassVar[str] = "config"

    key_types: ClassVar[Mapping[str, Any]] = CONFIG_TYPES

    kernel: str
    quantity: str
    method: str
    config: Mapping[str, Any]
    time_s: Estimate
    coverage: Share
    launches: Ranks
    noisy: Natural = 0
    oversubscribed: bool = False
    speed_up: Estimate | None = None
    speed_up_coverage: Share | None = None
    reference: str = ""
    through: str = ""
    fitted_s: NotNegative | None = None
    figures: Mapping[str, Any] = field(default_factory=dict, metadata=OMIT_EMPTY)
    statistic: str = field(default="", metadata=OMIT_EMPTY)
    rounding: Share = field(default=0.0, metadata=OMIT_EMPTY)
    mean_of_iterations: bool = field(default=False, metadata=OMIT_EMPTY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", Parameters(self.kernel, self.config))
        object.__setattr__(self, "figures", Values(self.kernel, self.figures))

    @property
    def state(self) -> str:
        """`converged`, or in how many launches it was `noisy`; and whether ranks or threads shared cores."""
        text = f"noisy in {self.noisy}" if self.noisy else "converged"
        return text + (", oversubscribed" if self.oversubscribed else "")

    @property
    def fitted_error(self) -> float | None:
        """(fitted - measured)/measured; None without a fitted model."""
        time_s = self.time_s.value
        return self.fitted_s / time_s - 1 if self.fitted_s is not None and time_s > 0 else None

    def row(self) -> dict[str, Any]:
        """Return the result as one flat row, for CSV and JSON: the values that identify it, times, speed-ups,
        the rest."""
        first = {"kernel": self.kernel, "quantity": self.quantity, **self.config, "method": self.method}
        times = (*estimate_keys("time_s"), "coverage", *estimate_keys("speed_up"), "speed_up_coverage")
        row = first | dict.fromkeys(times) | self.to_json()
        return row | row.pop("figures", {})


def results_from_json(values: Any, where: str) -> list[Result]:
    """Return the results in a JSON list; raise InputError if it is not one."""
    if not isinstance(values, list):
        raise InputError(f"{where}: 'results' must be a list; {_REMEDY}")
    return [decode(value, Result, f"{where}, result {k}", _REMEDY) for k, value in enumerate(values)]


def results_to_json(results: Iterable[Result]) -> list[dict[str, Any]]:
    return [result.to_json() for result in results]
