"""Statistics: the meaning of a single time of a launch, if not every iteration is known."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

MEAN: Final = "mean"
MEDIAN: Final = "median"
# The largest over ranks of each rank's mean over iterations: at most the mean of the slowest rank's times.
SLOWEST_RANK_MEAN: Final = "slowest_rank_mean"
Statistic = Literal["mean", "median", "slowest_rank_mean"]
# What is shown of measured iterations and launches, the default first.
SHOWN: Mapping[str, Statistic] = {MEDIAN: MEDIAN, MEAN: MEAN}

# As people read them.
STATISTICS: Mapping[str, str] = {
    MEAN: "mean over iterations",
    MEDIAN: "median over iterations",
    SLOWEST_RANK_MEAN: "mean over iterations of the slowest rank",
}


def statistic_of(
    statistic: Statistic | None, iterations: int, quantity: str, launch: Mapping[str, Any]
) -> Statistic | None:
    """Return the statistic of a sample; None if its times are times of single iterations.

    Parameters
    ----------
    statistic : statistic that the sample states.
    launch : launch of the sample: earlier versions stored one statistic there for all samples of an import,
        also for completions, which are the slowest rank's means in the texts of OSU and IMB.
    """
    of_launch = launch.get("statistic")
    if statistic is not None or iterations > 1 or of_launch not in (MEAN, MEDIAN):
        return statistic
    tool = str(launch.get("tool", ""))
    if tool.startswith(("ReproMPI", "table")):  # has all iterations, here a single one
        return None
    return SLOWEST_RANK_MEAN if tool and quantity == "completion" else of_launch


def statistics_text(values: Iterable[tuple[str, Statistic | None]]) -> str:
    """Return a text that names the statistics of values, and the quantity of each if these differ; "" for
    iterations alone.

    `values` are pairs of a quantity and the statistic of its value.
    """
    quantities: dict[str, dict[str, None]] = {}
    for quantity, statistic in values:
        if statistic:
            quantities.setdefault(STATISTICS[statistic], {})[quantity.replace("_", " ")] = None
    if len(quantities) < 2:
        return "".join(quantities)
    return ", ".join(f"{statistic} ({', '.join(names)})" for statistic, names in quantities.items())
