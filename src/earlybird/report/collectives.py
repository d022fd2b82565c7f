"""Collectives: the time of each algorithm by ranks and size, for every MPI, operation and mapping."""

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
    """The time of every algorithm, until its last rank completes, at one number of ranks and size.

    `gains` are the speed-ups over the MPI's default, from times of the same rounds. `fitted_s` are the times
    that the fitted models of a profile predict.
    """

    ranks: int
    size_bytes: int
    time_s: Mapping[str, Spread]
    gains: Mapping[str, Spread]
    fitted_s: Mapping[str, float]
    num_launches: int
    oversubscribed: bool

    def gain(self, method: str) -> float | None:
        """The speed-up over the MPI's default; None if that was not measured. Computed from the medians of
        launches if no rounds contain both."""
        if method in self.gains:
            return self.gains[method][0]
        if method == DEFAULT or not {method, DEFAULT} <= self.time_s.keys() or self.time_s[method][0] <= 0:
            return None
        return self.time_s[DEFAULT][0] / self.time_s[method][0]

    def speeds(self, methods: Iterable[str]) -> dict[str, Spread]:
        """Speed of each of `methods`: the speed-up over the MPI's default if all share rounds with it, else
        1/s."""
        measured = [method for method in methods if method in self.time_s]
        relative = {DEFAULT: (1.0, 1.0, 1.0)} | dict(self.gains)
        if all(method in relative for method in measured):
            return {method: relative[method] for method in measured}
        return fastest.inverse({method: self.time_s[method] for method in measured})

    def fastest(self) -> str:
        speeds = self.speeds(self.time_s)
        return max(speeds, key=lambda method: speeds[method][0]) if speeds else next(iter(self.time_s))


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
        return sorted({method for point in self.points for method in point.time_s}, key=words.method_order)

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
        return fastest.best_methods(self._speeds(ranks, methods), DEFAULT)

    def crossovers(self, ranks: int, methods: Sequence[str]) -> list[Crossover]:
        sizes = [point.size_bytes for point in self.of_ranks(ranks)]
        return fastest.crossovers(sizes, self._speeds(ranks, methods), DEFAULT)

    def _speeds(self, ranks: int, methods: Sequence[str]) -> list[dict[str, Spread]]:
        return [point.speeds(methods) for point in self.of_ranks(ranks)]

    def errors(self) -> Iterator[tuple[CollectivePoint, str, float]]:
        """(fitted - measured)/measured of every point and method with a fitted model."""
        for point in self.points:
            for method, fitted_s in point.fitted_s.items():
                if method in point.time_s and point.time_s[method][0] > 0:
                    yield point, method, fitted_s / point.time_s[method][0] - 1

    def order(self) -> tuple:
        return (operation_order(self.operation), self.label, map_order(self.map_by))


def is_own(method: str) -> bool:
    """Whether `method` is our implementation on point-to-point calls, not an algorithm of the MPI."""
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
    """The collectives of every run, MPI, operation and mapping; broadcasts first."""
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
    """Whether `sample` is a timed collective with operation, ranks and size."""
    if (sample.kernel, sample.quantity) != (KERNEL, TIMED) or sample.method is None:
        return False
    ranks, size = (number_or_none(sample.config.get(key)) for key in ("ranks", "size_bytes"))
    return "operation" in sample.config and None not in (ranks, size) and ranks >= 1 and size >= 0


def _points(samples: Sequence[Sample], fitted: Mapping[tuple, float]) -> tuple[CollectivePoint, ...]:
    by_point: dict[tuple[int, int], dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        key = int(sample.config["ranks"]), int(sample.config["size_bytes"])
        by_point[key][sample.method].append(sample)
    points = []
    for (ranks, size_bytes), methods in sorted(by_point.items()):
        model = {method: fitted.get(group[0].point()) for method, group in methods.items()}
        of_all = [sample for group in methods.values() for sample in group]
        points.append(
            CollectivePoint(
                ranks,
                size_bytes,
                {
                    method: fastest.spread([sample.median_s() for sample in group])
                    for method, group in methods.items()
                },
                {method: gain for method in methods if (gain := _gain(methods, method)) is not None},
                {method: time_s for method, time_s in model.items() if time_s is not None},
                len({sample.launch for sample in of_all}),
                any(sample.oversubscribed for sample in of_all),
            )
        )
    return tuple(points)


def _gain(methods: Mapping[str, Sequence[Sample]], method: str) -> Spread | None:
    """Speed-up over the MPI's default; without a common launch, through one of our algorithms."""
    default = methods.get(DEFAULT, ())
    if method == DEFAULT or not default:
        return None
    if gain := fastest.paired_gain(default, methods[method]):
        return gain
    for common in (methods[name] for name in sorted(methods) if is_own(name)):
        of_method, of_default = (
            fastest.paired_gain(common, methods[method]),
            fastest.paired_gain(common, default),
        )
        if of_method and of_default:
            return of_method[0] / of_default[0], of_method[1] / of_default[2], of_method[2] / of_default[1]
    return None
