"""Collectives: the time of each algorithm by ranks and size, for every MPI, operation and mapping."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from earlybird.compare.ranking import Crossover, best_methods, crossovers, speeds
from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.collective_algorithms import COMPLETION, DEFAULT
from earlybird.data.layout import MAPPINGS
from earlybird.data.results import Estimate, Result
from earlybird.data.run import Sample
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material, MeasuredRun


@dataclass(frozen=True)
class CollectivePoint:
    """The result of every algorithm at one number of ranks and size."""

    ranks: int
    size_bytes: int
    results: Mapping[str, Result]

    @property
    def time_s(self) -> dict[str, Estimate]:
        """Until the last rank completes."""
        return {method: result.time_s for method, result in self.results.items()}

    @property
    def fitted_s(self) -> dict[str, float]:
        """The times that fitted models predict."""
        found = {method: result.fitted_s for method, result in self.results.items()}
        return {method: time_s for method, time_s in found.items() if time_s is not None}

    @property
    def num_launches(self) -> int:
        return max(result.launches for result in self.results.values())

    @property
    def oversubscribed(self) -> bool:
        return any(result.oversubscribed for result in self.results.values())

    def speed_up(self, method: str) -> float | None:
        """Over the MPI's default; None if no launch measured both."""
        speed_up = self.results[method].speed_up
        return speed_up and speed_up.value

    def speeds(self, methods: Iterable[str]) -> dict[str, Estimate]:
        return speeds({method: self.results[method] for method in methods if method in self.results})

    def fastest(self) -> str:
        found = self.speeds(self.results)
        return max(found, key=lambda method: found[method].value) if found else next(iter(self.results))


@dataclass(frozen=True)
class Collective:
    """What one run measured of one operation of an MPI with one mapping; points by ranks, then size."""

    mpi: str
    label: str
    operation: str
    map_by: str
    points: tuple[CollectivePoint, ...]

    def methods(self) -> list[str]:
        """The MPI's default first, our implementations last."""
        return sorted({method for point in self.points for method in point.time_s}, key=labels.method_order)

    def mpi_methods(self) -> list[str]:
        """Without our implementations."""
        return [method for method in self.methods() if not is_own(method)]

    def ranks(self) -> list[int]:
        return sorted({point.ranks for point in self.points})

    def sizes(self) -> list[int]:
        return sorted({point.size_bytes for point in self.points})

    def of_ranks(self, ranks: int) -> list[CollectivePoint]:
        """The points of one number of ranks, by size."""
        return [point for point in self.points if point.ranks == ranks]

    def of_size(self, size_bytes: int) -> list[CollectivePoint]:
        """The points of one size, by ranks."""
        return [point for point in self.points if point.size_bytes == size_bytes]

    def best_methods(self, ranks: int, methods: Sequence[str]) -> list[str]:
        """The best of `methods` at each size; the MPI's default until another is clearly faster."""
        return best_methods(self._speeds(ranks, methods), DEFAULT)

    def best_at(self, point: CollectivePoint) -> str:
        """The best method at one point, the same as in tables and maps."""
        best = self.best_methods(point.ranks, self.methods())
        return best[self.of_ranks(point.ranks).index(point)] or point.fastest()

    def crossovers(self, ranks: int, methods: Sequence[str]) -> list[Crossover]:
        sizes = [point.size_bytes for point in self.of_ranks(ranks)]
        return crossovers(sizes, self._speeds(ranks, methods), DEFAULT)

    def _speeds(self, ranks: int, methods: Sequence[str]) -> list[dict[str, Estimate]]:
        return [point.speeds(methods) for point in self.of_ranks(ranks)]

    def errors(self) -> Iterator[tuple[CollectivePoint, str, float]]:
        """(fitted - measured)/measured of every point and method with a fitted model."""
        for point in self.points:
            for method, fitted_s in point.fitted_s.items():
                if point.time_s[method].value > 0:
                    yield point, method, fitted_s / point.time_s[method].value - 1

    def order(self) -> tuple:
        return (operation_order(self.operation), self.label, map_order(self.map_by))


def is_own(method: str) -> bool:
    """Whether `method` is our implementation on point-to-point calls, not an algorithm of the MPI."""
    return method.startswith(labels.OWN)


def base(method: str) -> str:
    """`pipeline` of `pipeline:8192`, `own-pipeline` of `own-pipeline:8192`."""
    return method.partition(":")[0]


def operation_order(name: str) -> tuple[int, str]:
    names = list(labels.OPERATIONS)
    return names.index(name) if name in names else len(names), name


def map_order(name: str) -> tuple[int, str]:
    return MAPPINGS.index(name) if name in MAPPINGS else len(MAPPINGS), name


def collectives(material: Material) -> list[Collective]:
    """The collectives of every run, MPI, operation and mapping; broadcasts first."""
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    runs: dict[tuple, MeasuredRun] = {}
    for number, run in enumerate(material.runs):
        for sample in run.samples:
            if is_timed(sample):
                config = sample.config
                what = (
                    str(config["operation"]),
                    str(config.get("mpi", "other")),
                    str(config.get("map_by", "")),
                )
                groups[what, number].append(sample)
                runs[what, number] = run
    result = []
    for (what, number), samples in groups.items():
        operation, mpi, map_by = what
        several = sum(other == what for other, _ in groups) > 1
        label = labels.flavour(mpi) + (f" ({runs[what, number].name})" if several else "")
        points = _points(samples, material.fitted_collectives)
        result.append(Collective(mpi, label, operation, map_by, points))
    return sorted(result, key=Collective.order)


def is_timed(sample: Sample) -> bool:
    """Whether `sample` is a timed collective with operation, ranks and size."""
    if (sample.kernel, sample.quantity) != ("collective", COMPLETION) or sample.method is None:
        return False
    ranks, size = (number_or_none(sample.config.get(key)) for key in ("ranks", "size_bytes"))
    return "operation" in sample.config and None not in (ranks, size) and ranks >= 1 and size >= 0


def _points(samples: Sequence[Sample], fitted: Mapping[tuple, float]) -> tuple[CollectivePoint, ...]:
    by_point: dict[tuple[int, int], dict[str, Result]] = defaultdict(dict)
    for result in results(samples, fitted):
        by_point[int(result.config["ranks"]), int(result.config["size_bytes"])][result.method] = result
    return tuple(
        CollectivePoint(
            ranks,
            size_bytes,
            of_methods,
        )
        for (ranks, size_bytes), of_methods in sorted(by_point.items())
    )
