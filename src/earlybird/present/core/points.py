"""Points: the results of every method at one point, and the samples of each run, MPI and setting."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from earlybird.compare import ranking
from earlybird.compare.ranking import Crossover
from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.statistics import MEDIAN, Statistic
from earlybird.data.units import format_bytes, number_or_none
from earlybird.present.core.parts import grouped

if TYPE_CHECKING:  # the records of all inputs would be imported by every command that prints a table
    from earlybird.present.material import Material, MeasuredRun


@dataclass(frozen=True)
class Point:
    """The result of every method at one size, number of ranks and setting."""

    results: Mapping[str, Result]

    @property
    def config(self) -> Mapping[str, Any]:
        return self._any.config

    @property
    def figures(self) -> Mapping[str, Any]:
        """Return further values that all methods have in common."""
        return self._any.figures

    @property
    def size_bytes(self) -> int:
        return int(self.config["size_bytes"])

    @property
    def ranks(self) -> int:
        return int(self.config["ranks"])

    @property
    def where(self) -> str:
        """Return `1 KiB among 8 ranks` or `1 KiB in 4 partitions`."""
        size = format_bytes(self.size_bytes)
        if self._any.kernel == COLLECTIVE.name:
            return f"{size} among {labels.counted(self.ranks, 'rank')}"
        return f"{size} in {labels.counted(int(self.config['partitions']), 'partition')}"

    @property
    def time_s(self) -> dict[str, Estimate]:
        return {method: result.time_s for method, result in self.results.items()}

    @property
    def speed_up(self) -> dict[str, Estimate]:
        """Return the speed-ups over the reference of the methods that a launch compares with it."""
        return {method: result.speed_up for method, result in self.results.items() if result.speed_up}

    @property
    def fitted_s(self) -> dict[str, float]:
        """Return the times that fitted models predict."""
        times_s = {method: result.fitted_s for method, result in self.results.items()}
        return {method: time_s for method, time_s in times_s.items() if time_s is not None}

    @property
    def ideal_speed_up(self) -> float | None:
        """Return the speed-up by equation (4) of Gillis et al. 2023 at the bandwidth of a single message."""
        ideal: float | None = self.figures["ideal_speed_up"]
        return ideal

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
        """Return the method with the highest speed, clearly or not."""
        speeds = self.speeds()
        return max(speeds, key=lambda method: speeds[method].value) if speeds else next(iter(self.results))

    def best(self, reference: str) -> str:
        """Return the fastest of the methods that are clearly faster than `reference`, else `reference`;
        without it the fastest."""
        return ranking.best_methods([self.speeds()], reference)[0] or self.fastest()

    def leads(self, method: str) -> bool:
        """Return whether a method is clearly faster than every other one."""
        speeds = self.speeds()
        return all(
            ranking.is_clearly_faster(speeds[method], speed)
            for other, speed in speeds.items()
            if other != method
        )

    def only(self, methods: Iterable[str]) -> "Point":
        """Return the point with the results of these methods."""
        return Point({method: self.results[method] for method in methods if method in self.results})

    def fitted_error(self, method: str) -> float | None:
        return self.results[method].fitted_error


def results_of(points: Iterable[Point]) -> list[Result]:
    """Return the results of all points."""
    return [result for point in points for result in point.results.values()]


def methods_of(points: Iterable[Point]) -> list[str]:
    """Return the methods of all points in display order: the reference first."""
    return sorted({method for point in points for method in point.results}, key=labels.method_order)


class HasPoints(Protocol):
    """An object with the points that were measured with one setting."""

    @property
    def points(self) -> Sequence[Point]: ...


_HasPoints = TypeVar("_HasPoints", bound=HasPoints)


def rows_of(measured: Iterable[_HasPoints]) -> list[tuple[_HasPoints, Point, str]]:
    """Return every result, for tables: by setting and point, then method."""
    return [
        (series, point, method)
        for series in measured
        for point in series.points
        for method in methods_of(series.points)
        if method in point.results
    ]


def best_methods(points: Sequence[Point], reference: str) -> list[str]:
    """Return the best method at each size, "" if none was measured: `reference` until another is clearly
    faster."""
    return ranking.best_methods([point.speeds() for point in points], reference)


def crossovers(points: Sequence[Point], reference: str) -> list[Crossover]:
    """Return every change of the best method with the size."""
    sizes = [point.size_bytes for point in points]
    return ranking.crossovers(sizes, [point.speeds() for point in points], reference)


@dataclass(frozen=True)
class Group:
    """The samples of one run, MPI and setting. `label` names the MPI, and the run if several runs measured
    the same."""

    run: "MeasuredRun"
    mpi: str
    setting: Any
    label: str
    samples: list[Sample]
    statistic: Statistic = MEDIAN

    def results(self, fitted: Mapping[tuple[Any, ...], float] | None = None) -> list[Result]:
        """Return the results of the samples, in the statistic of the report."""
        return results(self.samples, fitted, self.statistic)

    def points(self, fitted: Mapping[tuple[Any, ...], float], *keys: str) -> tuple[Point, ...]:
        """Return the points sorted by these keys of the configuration."""
        at_points = grouped(
            self.results(fitted), lambda result: tuple(int(result.config[key]) for key in keys)
        )
        return tuple(
            Point({result.method: result for result in at_points[where]}) for where in sorted(at_points)
        )


def groups(material: "Material", setting_of: Callable[[Sample], Any]) -> list[Group]:
    """Return the samples that have a setting (not None), by run, MPI and setting."""
    samples_of: dict[tuple[str, Any, int], list[Sample]] = {}
    for number, run in enumerate(material.runs):
        for sample in run.samples:
            if (setting := setting_of(sample)) is not None:
                key = str(sample.config.get("mpi", "other")), setting, number
                samples_of.setdefault(key, []).append(sample)
    several = [key[:2] for key in samples_of]
    return [
        Group(
            material.runs[number],
            mpi,
            setting,
            labels.flavour(mpi) + f" ({material.runs[number].name})" * (several.count((mpi, setting)) > 1),
            samples,
            material.statistic,
        )
        for (mpi, setting, number), samples in samples_of.items()
    ]


@dataclass(frozen=True, kw_only=True)
class Setting(ABC):
    """The conditions of a measurement, apart from its MPI and size. The fields are keys of the
    configuration."""

    level: str = ""

    @property
    def level_order(self) -> int:
        return labels.level_order(self.level)

    @property
    def level_selector(self) -> tuple[str, int]:
        return labels.level(self.level), self.level_order

    @abstractmethod
    def selectors(self) -> dict[str, tuple[str, Any]]:
        """Return the text of the value of every selector of the page, and its sort key."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self | None:
        """Return the setting of a sample; None if a field without a default is missing or is no number."""
        values: dict[str, Any] = {}
        for field in fields(cls):
            value = config.get(field.name)
            number = number_or_none(value)
            if field.type is str and value:
                values[field.name] = str(value)
            elif field.type is not str and number is not None:
                values[field.name] = int(number) if field.type is int else number
            elif field.default is MISSING:
                return None
        return cls(**values)


_Setting = TypeVar("_Setting", bound=Setting)


@dataclass(frozen=True)
class Measured(Generic[_Setting]):
    """The measurements of one run of one MPI with one setting, sorted by size. `label` names the MPI, and the
    run if several runs measured the same."""

    label: str
    mpi: str
    run: "MeasuredRun"
    setting: _Setting
    samples: tuple[Sample, ...]
    points: tuple[Point, ...]

    @property
    def oversubscribed(self) -> bool:
        return any(point.oversubscribed for point in self.points)

    def methods(self) -> list[str]:
        return methods_of(self.points)

    def selectors(self) -> dict[str, tuple[str, Any]]:
        """Return the text of the value of every selector, and its sort key."""
        return {"MPI": (self.label, self.label), **self.setting.selectors()}

    def choice(self) -> dict[str, str]:
        """Return the value of every selector."""
        return {name: text for name, (text, _) in self.selectors().items()}


_Series = TypeVar("_Series", bound=Measured[Any])


def measured_series(
    kind: type[_Series],
    material: "Material",
    setting_of: Callable[[Sample], Any],
    fitted: Mapping[tuple[Any, ...], float] | None = None,
) -> list[_Series]:
    """Return the measurements of every run of every MPI and setting, sorted by setting."""
    series = [
        kind(group.label, group.mpi, group.run, group.setting, tuple(group.samples),
             group.points(fitted or {}, "size_bytes"))
        for group in groups(material, setting_of)
    ]  # fmt: skip
    return sorted(
        series, key=lambda item: (item.setting.level_order, *vars(item.setting).values(), item.label)
    )


def choices(measured: Sequence[Measured[Any]]) -> dict[str, list[str]]:
    """Return the values of every selector, in order."""
    values = grouped(
        (item for series in measured for item in series.selectors().items()), lambda item: item[0]
    )
    return {
        name: list(dict.fromkeys(text for _, (text, _) in sorted(items, key=lambda item: item[1][1])))
        for name, items in values.items()
    }
