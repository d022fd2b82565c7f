"""Collectives: the time of each algorithm by ranks and size, of every MPI, operation and mapping measured."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from earlybird.data.run import Sample
from earlybird.report import fastest, words
from earlybird.report.curves import number_or_none
from earlybird.report.fastest import Crossover, Spread
from earlybird.report.material import Material, MeasuredRun

KERNEL, TIMED, PROOF = "collective", "completion", "delayed_completion"
DEFAULT = "default"


@dataclass(frozen=True)
class CollectivePoint:
    """One number of ranks and size: the time of every algorithm, until its last rank is through.

    `gains` tell how many times as fast as the MPI's own choice the others are, by times taken in turn;
    `fitted_s` holds what a profile's fitted model says of the algorithms that it knows.
    """

    ranks: int
    size_bytes: int
    time_s: Mapping[str, Spread]
    gains: Mapping[str, Spread]
    fitted_s: Mapping[str, float]
    num_launches: int
    oversubscribed: bool

    def gain(self, method: str) -> float | None:
        """How many times as fast as the MPI's own choice; None where that was not measured. By medians of
        launches where no times were taken in turn."""
        if method in self.gains:
            return self.gains[method][0]
        if method == DEFAULT or not {method, DEFAULT} <= self.time_s.keys() or self.time_s[method][0] <= 0:
            return None
        return self.time_s[DEFAULT][0] / self.time_s[method][0]

    def speeds(self, methods: Iterable[str]) -> dict[str, Spread]:
        """Of `methods`: as times of the MPI's own choice where all of them were taken in turn with it, else
        1/s."""
        here = [method for method in methods if method in self.time_s]
        in_turn = {DEFAULT: (1.0, 1.0, 1.0)} | dict(self.gains)
        if all(method in in_turn for method in here):
            return {method: in_turn[method] for method in here}
        return fastest.inverse({method: self.time_s[method] for method in here})

    def fastest(self) -> str:
        speeds = self.speeds(self.time_s)
        return max(speeds, key=lambda method: speeds[method][0]) if speeds else next(iter(self.time_s))


@dataclass(frozen=True)
class Collective:
    """What one run measured of one operation of an MPI, its ranks mapped in one method; points by ranks, then
    size."""

    mpi: str
    label: str
    operation: str
    map_by: str
    points: tuple[CollectivePoint, ...]

    def methods(self) -> list[str]:
        """The MPI's own choice first, ours after the MPI's."""
        return sorted({method for point in self.points for method in point.time_s}, key=words.method_order)

    def mpi_methods(self) -> list[str]:
        """Without ours."""
        return [method for method in self.methods() if not is_own(method)]

    def ranks(self) -> list[int]:
        return sorted({point.ranks for point in self.points})

    def sizes(self) -> list[int]:
        return sorted({point.size_bytes for point in self.points})

    def of_ranks(self, ranks: int) -> list[CollectivePoint]:
        """By size."""
        return [point for point in self.points if point.ranks == ranks]

    def of_size(self, size_bytes: int) -> list[CollectivePoint]:
        """By ranks."""
        return [point for point in self.points if point.size_bytes == size_bytes]

    def best_methods(self, ranks: int, methods: Sequence[str]) -> list[str]:
        """The best of `methods` at each size, the MPI's own choice until another is clearly faster."""
        return fastest.best_methods(self._speeds(ranks, methods), DEFAULT)

    def crossovers(self, ranks: int, methods: Sequence[str]) -> list[Crossover]:
        sizes = [point.size_bytes for point in self.of_ranks(ranks)]
        return fastest.crossovers(sizes, self._speeds(ranks, methods), DEFAULT)

    def _speeds(self, ranks: int, methods: Sequence[str]) -> list[dict[str, Spread]]:
        return [point.speeds(methods) for point in self.of_ranks(ranks)]

    def errors(self) -> Iterator[tuple[CollectivePoint, str, float]]:
        """(fitted - measured)/measured of every point and method that has a fitted model."""
        for point in self.points:
            for method, fitted_s in point.fitted_s.items():
                if method in point.time_s and point.time_s[method][0] > 0:
                    yield point, method, fitted_s / point.time_s[method][0] - 1

    def order(self) -> tuple:
        return (operation_order(self.operation), self.label, map_order(self.map_by))


def is_own(method: str) -> bool:
    """Whether it is ours, on point-to-point calls, and no setting of the MPI."""
    return method.startswith(words.OWN)


def base(method: str) -> str:
    """`pipeline` of `pipeline:8192`, `own-pipeline` of `own-pipeline:8192`."""
    return method.partition(":")[0]


def operation_order(name: str) -> tuple[int, str]:
    names = list(words.OPERATIONS)
    return names.index(name) if name in names else len(names), name


def map_order(name: str) -> tuple[int, str]:
    return MAPPINGS.index(name) if name in MAPPINGS else len(MAPPINGS), name


MAPPINGS = ("core", "socket", "node")


def collectives(material: Material) -> list[Collective]:
    """Every run, MPI, operation and mapping; broadcasts first."""
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    runs: dict[tuple, MeasuredRun] = {}
    for number, run in enumerate(material.runs):
        for sample in run.samples:
            if is_told(sample):
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
        label = words.flavour(mpi) + (f" ({runs[what, number].name})" if several else "")
        points = _points(samples, material.fitted_collectives)
        result.append(Collective(mpi, label, operation, map_by, points))
    return sorted(result, key=Collective.order)


def is_told(sample: Sample) -> bool:
    """Whether it is a timed collective that says what was measured."""
    if (sample.kernel, sample.quantity) != (KERNEL, TIMED) or sample.method is None:
        return False
    ranks, size = (number_or_none(sample.config.get(key)) for key in ("ranks", "size_bytes"))
    return "operation" in sample.config and None not in (ranks, size) and ranks >= 1 and size >= 0


def _points(samples: Sequence[Sample], fitted: Mapping[tuple, float]) -> tuple[CollectivePoint, ...]:
    at: dict[tuple[int, int], dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        where = int(sample.config["ranks"]), int(sample.config["size_bytes"])
        at[where][sample.method].append(sample)
    points = []
    for (ranks, size_bytes), methods in sorted(at.items()):
        model = {method: fitted.get(found[0].point()) for method, found in methods.items()}
        of_all = [sample for found in methods.values() for sample in found]
        points.append(
            CollectivePoint(
                ranks,
                size_bytes,
                {
                    method: fastest.spread([one.median_s() for one in found])
                    for method, found in methods.items()
                },
                {method: gain for method in methods if (gain := _gain(methods, method)) is not None},
                {method: time_s for method, time_s in model.items() if time_s is not None},
                len({sample.launch for sample in of_all}),
                any(sample.oversubscribed for sample in of_all),
            )
        )
    return tuple(points)


def _gain(methods: Mapping[str, Sequence[Sample]], method: str) -> Spread | None:
    """Over the MPI's own choice; where no launch held both, by way of one of ours that was beside either."""
    default = methods.get(DEFAULT, ())
    if method == DEFAULT or not default:
        return None
    if gain := fastest.paired_gain(default, methods[method]):
        return gain
    for common in (methods[name] for name in sorted(methods) if is_own(name)):
        found, of_default = fastest.paired_gain(common, methods[method]), fastest.paired_gain(common, default)
        if found and of_default:
            return found[0] / of_default[0], found[1] / of_default[2], found[2] / of_default[1]
    return None
