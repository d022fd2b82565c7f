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

    def gain(self, way: str) -> float | None:
        """How many times as fast as the MPI's own choice; None where that was not measured. By medians of
        launches where no times were taken in turn."""
        if way in self.gains:
            return self.gains[way][0]
        if way == DEFAULT or not {way, DEFAULT} <= self.time_s.keys() or self.time_s[way][0] <= 0:
            return None
        return self.time_s[DEFAULT][0] / self.time_s[way][0]

    def speeds(self, ways: Iterable[str]) -> dict[str, Spread]:
        """Of `ways`: as times of the MPI's own choice where all of them were taken in turn with it, else
        1/s."""
        here = [way for way in ways if way in self.time_s]
        in_turn = {DEFAULT: (1.0, 1.0, 1.0)} | dict(self.gains)
        if all(way in in_turn for way in here):
            return {way: in_turn[way] for way in here}
        return fastest.inverse({way: self.time_s[way] for way in here})

    def fastest(self) -> str:
        speeds = self.speeds(self.time_s)
        return max(speeds, key=lambda way: speeds[way][0]) if speeds else next(iter(self.time_s))


@dataclass(frozen=True)
class Collective:
    """What one run measured of one operation of an MPI, its ranks mapped in one way; points by ranks, then
    size."""

    mpi: str
    label: str
    operation: str
    map_by: str
    points: tuple[CollectivePoint, ...]

    def ways(self) -> list[str]:
        """The MPI's own choice first, ours after the MPI's."""
        return sorted({way for point in self.points for way in point.time_s}, key=words.way_order)

    def mpi_ways(self) -> list[str]:
        """Without ours."""
        return [way for way in self.ways() if not is_own(way)]

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

    def best_ways(self, ranks: int, ways: Sequence[str]) -> list[str]:
        """The best of `ways` at each size, the MPI's own choice until another is clearly faster."""
        return fastest.best_ways(self._speeds(ranks, ways), DEFAULT)

    def crossovers(self, ranks: int, ways: Sequence[str]) -> list[Crossover]:
        sizes = [point.size_bytes for point in self.of_ranks(ranks)]
        return fastest.crossovers(sizes, self._speeds(ranks, ways), DEFAULT)

    def _speeds(self, ranks: int, ways: Sequence[str]) -> list[dict[str, Spread]]:
        return [point.speeds(ways) for point in self.of_ranks(ranks)]

    def errors(self) -> Iterator[tuple[CollectivePoint, str, float]]:
        """(fitted - measured)/measured of every point and way that has a fitted model."""
        for point in self.points:
            for way, fitted_s in point.fitted_s.items():
                if way in point.time_s and point.time_s[way][0] > 0:
                    yield point, way, fitted_s / point.time_s[way][0] - 1

    def order(self) -> tuple:
        return (operation_order(self.operation), self.label, map_order(self.map_by))


def is_own(way: str) -> bool:
    """Whether it is ours, on point-to-point calls, and no setting of the MPI."""
    return way.startswith(words.OWN)


def base(way: str) -> str:
    """`pipeline` of `pipeline:8192`, `own-pipeline` of `own-pipeline:8192`."""
    return way.partition(":")[0]


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
    if (sample.kernel, sample.quantity) != (KERNEL, TIMED) or sample.way is None:
        return False
    ranks, size = (number_or_none(sample.config.get(key)) for key in ("ranks", "size_bytes"))
    return "operation" in sample.config and None not in (ranks, size) and ranks >= 1 and size >= 0


def _points(samples: Sequence[Sample], fitted: Mapping[tuple, float]) -> tuple[CollectivePoint, ...]:
    at: dict[tuple[int, int], dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        where = int(sample.config["ranks"]), int(sample.config["size_bytes"])
        at[where][sample.way].append(sample)
    points = []
    for (ranks, size_bytes), ways in sorted(at.items()):
        model = {way: fitted.get(found[0].point()) for way, found in ways.items()}
        of_all = [sample for found in ways.values() for sample in found]
        points.append(
            CollectivePoint(
                ranks,
                size_bytes,
                {way: fastest.spread([one.median_s() for one in found]) for way, found in ways.items()},
                {way: gain for way in ways if (gain := _gain(ways, way)) is not None},
                {way: time_s for way, time_s in model.items() if time_s is not None},
                len({sample.launch for sample in of_all}),
                any(sample.oversubscribed for sample in of_all),
            )
        )
    return tuple(points)


def _gain(ways: Mapping[str, Sequence[Sample]], way: str) -> Spread | None:
    """Over the MPI's own choice; where no launch held both, by way of one of ours that was beside either."""
    default = ways.get(DEFAULT, ())
    if way == DEFAULT or not default:
        return None
    if gain := fastest.paired_gain(default, ways[way]):
        return gain
    for common in (ways[name] for name in sorted(ways) if is_own(name)):
        found, of_default = fastest.paired_gain(common, ways[way]), fastest.paired_gain(common, default)
        if found and of_default:
            return found[0] / of_default[0], found[1] / of_default[2], found[2] / of_default[1]
    return None
