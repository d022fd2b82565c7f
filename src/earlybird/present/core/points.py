"""Points: the results of every method at one point, and the samples of each run, MPI and setting."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from earlybird.compare import ranking
from earlybird.compare.ranking import Crossover
from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes
from earlybird.present.core.parts import grouped
from earlybird.present.material import Material, MeasuredRun


@dataclass(frozen=True)
class Point:
    """The result of every method at one size, number of ranks and setting."""

    results: Mapping[str, Result]

    @property
    def config(self) -> Mapping[str, Any]:
        return self._any.config

    @property
    def size_bytes(self) -> int:
        return int(self.config["size_bytes"])

    @property
    def ranks(self) -> int:
        return int(self.config["ranks"])

    @property
    def where(self) -> str:
        """`1 KiB among 8 ranks`, `1 KiB in 4 partitions`."""
        size = format_bytes(self.size_bytes)
        if self._any.kernel == COLLECTIVE.name:
            return f"{size} among {labels.counted(self.ranks, 'rank')}"
        return f"{size} in {labels.counted(int(self.config['partitions']), 'partition')}"

    @property
    def time_s(self) -> dict[str, Estimate]:
        return {method: result.time_s for method, result in self.results.items()}

    @property
    def speed_up(self) -> dict[str, Estimate]:
        """Over the reference, without the methods that no launch compares with it."""
        return {method: result.speed_up for method, result in self.results.items() if result.speed_up}

    @property
    def fitted_s(self) -> dict[str, float]:
        """The times that fitted models predict."""
        found = {method: result.fitted_s for method, result in self.results.items()}
        return {method: time_s for method, time_s in found.items() if time_s is not None}

    @property
    def ideal_speed_up(self) -> float | None:
        """By equation (4) of Gillis et al. 2023, at the bandwidth of a single message."""
        return self.figures["ideal_speed_up"]

    @property
    def figures(self) -> Mapping[str, Any]:
        """Further values that all methods have in common."""
        return self._any.figures

    @property
    def num_launches(self) -> int:
        return max(result.launches for result in self.results.values())

    @property
    def oversubscribed(self) -> bool:
        return any(result.oversubscribed for result in self.results.values())

    @property
    def _any(self) -> Result:
        return next(iter(self.results.values()))

    def speeds(self) -> dict[str, Estimate]:
        return ranking.speeds(self.results)

    def fastest(self) -> str:
        """The method with the highest speed, clearly or not."""
        found = self.speeds()
        return max(found, key=lambda method: found[method].value) if found else next(iter(self.results))

    def best(self, reference: str) -> str:
        """The fastest of the methods that are clearly faster than `reference`, else `reference`; without it
        the fastest."""
        return ranking.best_methods([self.speeds()], reference)[0] or self.fastest()

    def leads(self, method: str) -> bool:
        """Whether a method is clearly faster than every other one."""
        found = self.speeds()
        return all(
            ranking.is_clearly_faster(found[method], speed)
            for other, speed in found.items()
            if other != method
        )

    def only(self, methods: Iterable[str]) -> "Point":
        return Point({method: self.results[method] for method in methods if method in self.results})

    def fitted_error(self, method: str) -> float | None:
        """(fitted - measured)/measured; None without a fitted model."""
        fitted_s, time_s = self.results[method].fitted_s, self.results[method].time_s.value
        return fitted_s / time_s - 1 if fitted_s is not None and time_s > 0 else None


def methods_of(points: Iterable[Point]) -> list[str]:
    """In display order: the reference first."""
    return sorted({method for point in points for method in point.results}, key=labels.method_order)


class HasPoints(Protocol):
    """What was measured with one setting."""

    @property
    def points(self) -> Sequence[Point]: ...


_Measured = TypeVar("_Measured", bound=HasPoints)


def rows_of(measured: Iterable[_Measured]) -> list[tuple[_Measured, Point, str]]:
    """Every result, for tables: by setting and point, then method."""
    return [
        (one, point, method)
        for one in measured
        for point in one.points
        for method in methods_of(one.points)
        if method in point.results
    ]


def best_methods(points: Sequence[Point], reference: str) -> list[str]:
    """The best method at each size, "" if none was measured: `reference` until another is clearly faster."""
    return ranking.best_methods([point.speeds() for point in points], reference)


def crossovers(points: Sequence[Point], reference: str) -> list[Crossover]:
    sizes = [point.size_bytes for point in points]
    return ranking.crossovers(sizes, [point.speeds() for point in points], reference)


@dataclass(frozen=True)
class Group:
    """The samples of one run, MPI and setting. `label` names the MPI, and the run if several runs measured
    the same."""

    run: MeasuredRun
    mpi: str
    setting: Any
    label: str
    samples: list[Sample]

    def points(self, fitted: Mapping[tuple, float], *keys: str) -> tuple[Point, ...]:
        """Sorted by these keys of the configuration."""
        found = grouped(
            results(self.samples, fitted), lambda result: tuple(int(result.config[key]) for key in keys)
        )
        return tuple(Point({one.method: one for one in found[where]}) for where in sorted(found))


def groups(material: Material, setting_of: Callable[[Sample], Any]) -> list[Group]:
    """The samples that have a setting (not None)."""
    found: dict[tuple, list[Sample]] = {}
    for number, run in enumerate(material.runs):
        for sample in run.samples:
            if (setting := setting_of(sample)) is not None:
                key = str(sample.config.get("mpi", "other")), setting, number
                found.setdefault(key, []).append(sample)
    several = [key[:2] for key in found]
    return [
        Group(
            material.runs[number],
            mpi,
            setting,
            labels.flavour(mpi) + f" ({material.runs[number].name})" * (several.count((mpi, setting)) > 1),
            samples,
        )
        for (mpi, setting, number), samples in found.items()
    ]
