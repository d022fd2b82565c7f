"""Collectives: the time of each algorithm by ranks and size, for every MPI, operation and mapping."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earlybird.data import labels
from earlybird.data.benchmark_parameters import parameter_texts
from earlybird.data.collective_algorithms import COMPLETION, DEFAULT
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.levels import MAPPINGS, UNKNOWN_MAPPING
from earlybird.data.run import Sample
from earlybird.data.units import format_bytes
from earlybird.present.core import points as views
from earlybird.present.core.parts import few
from earlybird.present.core.points import Point, groups
from earlybird.present.material import Material, MeasuredRun, number_or_none

MAX_SIZES = 5  # with figures against ranks, from the smallest to the largest; the tables have all


@dataclass(frozen=True)
class Collective:
    """An operation as a run measured it with an MPI and a mapping ("" if unknown); points by ranks, then
    size."""

    label: str
    operation: str
    map_by: str
    variant: tuple[str, ...]  # the topology of neighbours, and how the counts differ
    points: tuple[Point, ...]
    mpi: str
    run: MeasuredRun

    def methods(self) -> list[str]:
        """Return the methods, the MPI's default first, our implementations last."""
        return views.methods_of(self.points)

    def of_mpi(self) -> "Collective":
        """Return the collective without our implementations."""
        points = map(mpi_point, self.points)
        return replace(self, points=tuple(point for point in points if point.results))

    def ranks(self) -> list[int]:
        return sorted({point.ranks for point in self.points})

    def sizes(self) -> list[int]:
        return sorted({point.size_bytes for point in self.points})

    def of_ranks(self, ranks: int) -> list[Point]:
        """Return the points of a number of ranks, by size."""
        return [point for point in self.points if point.ranks == ranks]

    def of_size(self, size_bytes: int) -> list[Point]:
        """Return the points of a size, by ranks."""
        return [point for point in self.points if point.size_bytes == size_bytes]

    def best_methods(self, ranks: int) -> list[str]:
        """Return the best method at each size; the MPI's default until another is clearly faster."""
        return views.best_methods(self.of_ranks(ranks), DEFAULT)

    def choice(self) -> dict[str, str]:
        """Return the value of every selector except the size."""
        return {"operation": self.operation_text, "MPI": self.label, "mapped by": self.map_by or "-"}

    @property
    def operation_text(self) -> str:
        """`broadcast`; `neighbor_alltoallv, ring, skew 2`."""
        return ", ".join((labels.operation(self.operation), *self.variant))

    @property
    def setting_text(self) -> str:
        """`broadcast, Open MPI, mapped by node`."""
        return ", ".join(filter(None, (self.operation_text, self.label, labels.mapped_by(self.map_by))))


def mpi_point(point: Point) -> Point:
    """Return the results of the MPI's algorithms at a point."""
    return point.only(method for method in point.results if not labels.is_own(method))


def base(method: str) -> str:
    """Return `pipeline` of `pipeline:8192`, `own-pipeline` of `own-pipeline:8192`."""
    return method.partition(":")[0]


def operation_order(name: str) -> tuple[int, str]:
    """Return the place of an operation; broadcasts first, unknown ones last."""
    return _order(name, list(labels.OPERATIONS))


def map_order(name: str) -> tuple[int, str]:
    """Return the place of a mapping; unknown ones last."""
    return _order(name, MAPPINGS)


def _order(name: str, known: Sequence[str]) -> tuple[int, str]:
    return known.index(name) if name in known else len(known), name


def collectives(material: Material) -> list[Collective]:
    """Return the collectives of every run, MPI, operation and mapping; broadcasts first."""
    measured = []
    for group in groups(material, _setting):
        operation, map_by, variant = group.setting
        points = group.points(material.fitted_collectives, "ranks", "size_bytes")
        measured.append(Collective(group.label, operation, map_by, variant, points, group.mpi, group.run))
    return sorted(
        measured,
        key=lambda item: (operation_order(item.operation), item.variant, item.label, map_order(item.map_by)),
    )


def _setting(sample: Sample) -> tuple[str, str, tuple[str, ...]] | None:
    """Return operation, mapping, and the other values that distinguish points besides ranks and size."""
    if not is_timed(sample):
        return None
    config = sample.config
    variant = [str(config["topology"])] if "topology" in config else []
    variant += [f"skew {config['skew']:g}"] if "skew" in config else []
    variant += parameter_texts(config)
    mapping = str(config.get("map_by", ""))
    return str(config["operation"]), "" if mapping == UNKNOWN_MAPPING else mapping, tuple(variant)


def is_timed(sample: Sample) -> bool:
    """Return whether `sample` is a timed collective with operation, ranks and size."""
    if (sample.kernel, sample.quantity) != (COLLECTIVE.name, COMPLETION) or sample.method is None:
        return False
    ranks, size = (number_or_none(sample.config.get(key)) for key in ("ranks", "size_bytes"))
    return "operation" in sample.config and (ranks or 0) >= 1 and size is not None and size >= 0


def sized(collective: Collective, size_bytes: int) -> dict[str, str]:
    """Return the value of every selector of a figure of a size."""
    return collective.choice() | {"size": format_bytes(size_bytes)}


def drawn_sizes(collective: Collective, measured: Sequence[Collective]) -> list[int]:
    """Return at most MAX_SIZES of the sizes measured for the operation, or of its own if it has none."""
    same_operation = [other for other in measured if other.operation_text == collective.operation_text]
    for sizes in (sorted({size for other in same_operation for size in other.sizes()}), collective.sizes()):
        drawn = [sizes[k] for k in few(len(sizes), MAX_SIZES) if sizes[k] in collective.sizes()]
        if drawn:
            break
    return drawn


def choices(measured: Sequence[Collective]) -> dict[str, list[str]]:
    """Return the values of every selector, in order."""
    sizes = sorted({size for collective in measured for size in drawn_sizes(collective, measured)})
    chosen = [collective.choice() for collective in measured]
    return {name: list(dict.fromkeys(label[name] for label in chosen)) for name in chosen[0]} | {
        "size": [format_bytes(size) for size in sizes]
    }
