"""Motifs by setting, the points of each, and how their times scale with the ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

from earlybird.compare.motifs import Scaling, cells_text, compared_with_best, mapping_of, scaling
from earlybird.compare.ratios import Ratio
from earlybird.data import labels
from earlybird.data.kernels import MOTIFS
from earlybird.data.levels import MAPPINGS
from earlybird.data.methods import FUNNELLED
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.data.units import format_seconds, number_or_none, whole_number
from earlybird.present.core import points
from earlybird.present.core.parts import grouped
from earlybird.present.core.points import Measured, Point, groups

if TYPE_CHECKING:  # the records of all inputs of reports would be imported by every `earlybird measure`
    from earlybird.present.material import Material

WEAK = "weak"


@dataclass(frozen=True, kw_only=True)
class Setting(points.Setting):
    """The computation and exchange of a motif, without cells and partitions; values that a motif lacks are 0
    and ""."""

    motif: str
    scaling: str = "strong"
    ranks: int
    map_by: str
    threads: int
    variables: int
    stencil: int = 0
    periodic: str = ""
    buffers: str = ""
    compute_s: float
    noise: str = "none"
    noise_share: float = 0.0

    @property
    def noise_text(self) -> str:
        return labels.noise(self.noise, self.noise_share)

    def selectors(self) -> dict[str, tuple[str, Any]]:
        """Return the text of the value of every selector, and its sort key."""
        mapped = MAPPINGS.index(self.map_by) if self.map_by in MAPPINGS else len(MAPPINGS)
        return {
            "motif": (self.motif, MOTIFS.index(self.motif)),
            "scaling": (self.scaling, self.scaling),
            "ranks": (str(self.ranks), self.ranks),
            "mapped by": (self.map_by, (mapped, self.map_by)),
            "threads": (str(self.threads), self.threads),
            "variables": (str(self.variables), self.variables),
            "stencil": (str(self.stencil or "-"), self.stencil),
            "periodic": (self.periodic or "-", self.periodic),
            "buffers": (self.buffers or "-", self.buffers),
            "computation": (format_seconds(self.compute_s), self.compute_s),
            "noise": (self.noise_text, (self.noise_share > 0, self.noise, self.noise_share)),
        }


@dataclass(frozen=True)
class Motif(Measured[Setting]):
    """A motif as a run measured it with an MPI and a setting, from the smallest to the largest grid."""

    @property
    def name(self) -> str:
        return self.setting.motif

    @property
    def sends(self) -> bool:
        """True if there are messages: a single rank has none."""
        return any(result.figures.get("sent_bytes") for result in self.points[-1].results.values())

    def settings_of_points(self) -> list[list[str]]:
        """Return the cells of each point, `8x8x8`, and what else differs between points of the same cells."""
        configs = [point.config for point in self.points]
        settings = []
        for config in configs:
            same = [other for other in configs if other["cells"] == config["cells"]]
            more = [
                text.format(config.get(key))
                for key, text in _OF_POINTS.items()
                if len({other.get(key) for other in same}) > 1
            ]
            settings.append([config["cells"], *more])
        return settings

    def names_of_points(self) -> list[str]:
        """Return the settings of each point as one text: `32x32x32, 4 partitions`."""
        return [", ".join(settings) for settings in self.settings_of_points()]

    def library_gain(self, point: Point) -> tuple[str, Ratio] | None:
        """Return the fastest of the other styles at a point, and its time over that of libearlybird."""
        at_point = [sample for sample in self.samples if sample.config == point.config]
        return compared_with_best(grouped(at_point, lambda sample: sample.method))


# What may differ between the points of a setting with the same cells.
_OF_POINTS = {
    "process_grid": "grid {}",
    "partitions": "{} partitions",
    "planes_per_block": "{} planes in a block",
    "layout": "{}",
}


def _without_ranks(motif: Motif) -> dict[str, str]:
    """Return the values of the selectors that the scaling with the ranks has."""
    return {name: text for name, text in motif.choice().items() if name != "ranks"}


@dataclass(frozen=True)
class ScalingOf:
    """The scaling of the styles of a motif, with everything but the ranks the same. `first` has the fewest
    ranks; `cells` are those of all ranks together, or of each with weak scaling; `partitions` are None if all
    have the same."""

    first: Motif
    cells: str
    partitions: int | None
    scalings: tuple[Scaling, ...]

    def cells_text(self) -> str:
        """Return `16x16x16 cells each in 4 partitions`."""
        each = " each" if self.first.setting.scaling == WEAK else ""
        return f"{self.cells} cells{each}" + (f" in {self.partitions} partitions" if self.partitions else "")

    def methods(self) -> list[str]:
        return sorted({scaled.result.method for scaled in self.scalings}, key=labels.method_order)

    def of(self, method: str) -> list[Scaling]:
        return [scaled for scaled in self.scalings if scaled.result.method == method]

    def choice(self) -> dict[str, str]:
        return _without_ranks(self.first)


def setting_text(motif: Motif, with_ranks: bool = True) -> str:
    """Return `halo3d, MPICH, 4 ranks of 2 threads, stencil of 7 points, 1 ms of computation`, without the
    defaults."""
    setting = motif.setting
    threads = labels.counted(setting.threads, "thread")
    parts = [
        motif.name,
        motif.label,
        f"{labels.counted(setting.ranks, 'rank')} of {threads}" if with_ranks else threads,
        f"mapped by {setting.map_by}" if setting.map_by != MAPPINGS[0] else "",
        "weak scaling" if setting.scaling == WEAK else "",
        labels.counted(setting.variables, "variable") if setting.variables > 1 else "",
        f"stencil of {setting.stencil} points" if setting.stencil else "",
        "periodic" if setting.periodic == "yes" else "",
        "derived datatypes" if setting.buffers == "derived" else "",
        f"{format_seconds(setting.compute_s)} of computation" if setting.compute_s else "",
        f"noise {setting.noise_text}" if setting.noise_share else "",
    ]
    return ", ".join(part for part in parts if part)


def motifs(material: "Material") -> list[Motif]:
    """Return the motifs of every run, MPI and setting, sorted by setting."""
    all_groups = groups(material, _setting)
    # One label for all settings of a run and MPI: scaling compares settings that other runs may not have.
    label_of: dict[tuple[int, str], str] = {}
    for group in all_groups:
        key = id(group.run), group.mpi
        label_of[key] = max(label_of.get(key, ""), group.label, key=len)
    measured = [
        Motif(
            label_of[id(group.run), group.mpi], group.mpi, group.run, group.setting, tuple(group.samples),
            _points(group.results()),
        )
        for group in all_groups
    ]  # fmt: skip
    return sorted(
        measured, key=lambda motif: (MOTIFS.index(motif.name), *vars(motif.setting).values(), motif.label)
    )


def _points(results: Iterable[Result]) -> tuple[Point, ...]:
    def size(point: Point) -> tuple[Any, ...]:
        numbers = [int(number) for number in point.config["cells"].split("x")]
        return prod(numbers), numbers, *(str(point.config.get(key, "")) for key in _OF_POINTS)

    alike = grouped(results, lambda result: tuple(sorted(result.config.items())))
    return tuple(
        sorted((Point({result.method: result for result in same}) for same in alike.values()), key=size)
    )


def by_interest(measured: Sequence[Motif]) -> list[Motif]:
    """Return the motifs and MPIs in turn, of each the setting first that shows most: with messages, the
    reference, a core for each thread, several threads, and the largest speed-up of the largest grid."""

    def merit(motif: Motif) -> tuple[Any, ...]:
        point = motif.points[-1]
        gain = max((gain.value for gain in point.speed_up.values()), default=0.0)
        alone = motif.oversubscribed, motif.setting.threads == 1
        return motif.sends, FUNNELLED in point.results, *(not value for value in alone), gain

    alike = grouped(measured, lambda motif: (motif.name, motif.mpi)).values()
    in_turn = zip_longest(*(sorted(group, key=merit, reverse=True) for group in alike))
    return [motif for motif in chain.from_iterable(in_turn) if motif is not None]


def scalings(measured: Sequence[Motif]) -> list[ScalingOf]:
    """Return the scaling of every motif, MPI and setting that was measured with several numbers of ranks."""
    alike = grouped(measured, lambda motif: tuple(_without_ranks(motif).values()))
    scaled = []
    for same in alike.values():
        first = min(same, key=lambda motif: motif.setting.ranks)
        rows = scaling(
            result for motif in same for point in motif.points for result in point.results.values()
        )
        several = len({row.result.config["partitions"] for row in rows}) > 1
        by_size = grouped(rows, lambda row: (cells_text(row.result.config), row.result.config["partitions"]))
        for (cells, partitions), group in by_size.items():
            scaled.append(ScalingOf(first, cells, partitions if several else None, tuple(group)))
    return scaled


def _setting(sample: Sample) -> Setting | None:
    """Return the setting of a sample; None if it is of another kernel or its configuration is incomplete."""
    config = sample.config
    numbers = [number_or_none(config.get(key)) for key in ("partitions", "size_bytes")]
    texts = [config.get(key) for key in ("cells", "process_grid")]
    if sample.kernel not in MOTIFS or sample.method is None or None in (*numbers, *map(_triple, texts)):
        return None
    return Setting.from_config({**config, "motif": sample.kernel, "map_by": mapping_of(config)})


def _triple(text: Any) -> tuple[int, ...] | None:
    numbers = [whole_number(number) for number in str(text).split("x")]
    return tuple(map(int, filter(None, numbers))) if len(numbers) == 3 and all(numbers) else None
