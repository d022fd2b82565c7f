"""Headline figures of Gillis et al. 2023 compared with `measure pipeline --reproduce gillis`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.points import Point
from earlybird.present.core.table import Table, text_table
from earlybird.present.material import Material, MeasuredRun, number_or_none
from earlybird.present.subjects.pipelines.tables import star_of
from earlybird.present.subjects.pipelines.view import Pipeline, reproduces
from earlybird.present.subjects.provenance import view as provenance

NAME = "gillis"
# The measurement setup of the paper, from its section 4.
PAPER = (
    "Paper: MPICH with UCX 1.13.1 between two nodes of MeluXina (AMD EPYC 7H12 of 64 cores; HDR200 "
    "InfiniBand: 25 GB/s, 1.22 us), each thread bound to its own core, means of 150 iterations. The paper "
    "measured its improved partitioned communication; here libearlybird takes that place, and the "
    "partitioned communication of the MPI is listed as well. "
    "The paper does not state the buffer size of figures 4 to 7; here it is the smallest buffer."
)
_COLUMNS = ("figure", "times of", "paper", "here", "other values here", "buffer", "method", "threads",
            "paper's threads", "contexts", "paper's contexts", "partitions", "delay rate")  # fmt: skip
_BRIEF = ("figure", "times of", "threads", "contexts", "paper", "here", "buffer")
_OTHERS = ("earlybird", "partitioned", "many")
_Cells = dict[str, str]  # by column


@dataclass(frozen=True)
class _Headline:
    """A number printed in a figure of the paper, with the paper's `threads` and contexts `vcis` (0: not
    stated), the measured pipelines that correspond to it, and their numbers here ({} if not measured)."""

    figure: int
    ratio: str
    printed: str
    threads: int
    vcis: int
    is_like: Callable[[Pipeline], bool]
    find: Callable[[Pipeline], _Cells]

    def rows(self, measured: Sequence[Pipeline]) -> list[list[str]]:
        """A row for each pipeline like it; a row without numbers if there is none."""
        paper = {"figure": str(self.figure), "times of": self.ratio, "paper": self.printed}
        paper |= {"paper's threads": str(self.threads), "paper's contexts": str(self.vcis or "-")}
        like = [(one, found) for one in measured if self.is_like(one) and (found := self.find(one))]
        rows = [paper | _setting(one) | found for one, found in like]
        return [
            [row.get(name, "-") for name in _COLUMNS] for row in rows or [paper | {"here": "not measured"}]
        ]


def paper_tables(measured: Sequence[Pipeline]) -> list[Table]:
    """Paper and measurement, one table per MPI and level of a run that reproduces the paper."""
    reproducing = sorted((pipeline for pipeline in measured if pipeline.reproduces == NAME), key=_place)
    return [_table(list(group)) for _, group in groupby(reproducing, key=_place)]


def brief_paper_tables(measured: Sequence[Pipeline]) -> list[Table]:
    """The same tables with fewer columns, for the terminal."""
    return [table.only(lambda column: column.head in _BRIEF) for table in paper_tables(measured)]


def conditions(material: Material) -> list[str]:
    """The setup of the paper and of each run, one line each."""
    runs = [run for run in material.runs if reproduces(run) == NAME]
    here = [f"Here: {provenance.run_line(run)}{_threads_per_core(run)}." for run in runs]
    return [PAPER, *here] if runs else []


def _threads_per_core(run: MeasuredRun) -> str:
    """The largest number of threads per core; the paper has one."""
    cores = number_or_none(run.machine.get("cores"))
    most = 0.0
    for launch in run.launches:
        places = [place for place in launch.get("placement") or () if isinstance(place, dict)]
        # The nodes of a virtual cluster share one machine.
        machines = 1 if launch.get("network") else len({str(place.get("host")) for place in places})
        threads = number_or_none(launch.get("threads_per_rank")) or 1
        most = max(most, threads * len(places) / max(machines, 1))
    return f"; at most {most / cores:.3g} threads per core" if cores and most else ""


def _place(pipeline: Pipeline) -> tuple:
    return pipeline.setting.level_order, pipeline.setting.level, pipeline.label


def _table(measured: Sequence[Pipeline]) -> Table:
    where = f"{measured[0].label}, {labels.level(measured[0].setting.level)}"
    caption = f"Figures of Gillis et al. 2023, paper and here: {where}{star_of(measured)}"
    rows = [row for headline in _HEADLINES for row in headline.rows(measured)]
    return text_table(caption, _COLUMNS, rows, wide=True)


def _setting(pipeline: Pipeline) -> _Cells:
    setting = pipeline.setting
    return {
        "threads": str(setting.threads) + " *" * pipeline.oversubscribed,
        "contexts": setting.contexts(),
        "partitions": str(setting.partitions),
        "delay rate": setting.late(),
    }


def _found(point: Point, here: str, others: Sequence[str], method: str = "earlybird") -> _Cells:
    cells = {"buffer": format_bytes(point.size_bytes), "method": labels.method(method), "here": here}
    return cells | {"other values here": "; ".join(others) or "-"}


def _mpi_versus_improved(pipeline: Pipeline) -> _Cells:
    """How much longer the MPI's partitioned communication takes than the improved one."""
    points = [point for point in pipeline.points if {"partitioned", "earlybird"} <= point.speed_up.keys()]
    if not points:
        return {}
    ratios = [point.speed_up["earlybird"].value / point.speed_up["partitioned"].value for point in points]
    return _found(
        points[0], ratio_text(ratios[0]), [f"{min(ratios):.2f} to {max(ratios):.2f} over all sizes"]
    )


def _early_bird(pipeline: Pipeline) -> _Cells:
    """The speed-up of the largest buffer over a single message."""
    points = [point for point in pipeline.points if "earlybird" in point.speed_up]
    if not points:
        return {}
    gains, theory = points[-1].speed_up, points[-1].ideal_speed_up
    others = [f"ideal speed-up {theory:.2f}"] if theory is not None else []
    others += [f"{labels.method(name)} {gains[name].value:.2f}" for name in _OTHERS[1:] if name in gains]
    return _found(points[-1], with_interval(gains["earlybird"], ratio_text), others)


def _aggregated(pipeline: Pipeline) -> _Cells:
    """The penalty of the largest bound of aggregated messages."""
    bounds = [method for method in pipeline.methods() if method.startswith("earlybird:")]
    return _penalty(pipeline, bounds[-1]) if bounds else {}


def _penalty(pipeline: Pipeline, method: str = "earlybird") -> _Cells:
    """How much longer the smallest buffer takes than as a single message."""
    points = [point for point in pipeline.points if method in point.speed_up]
    if not points:
        return {}
    gains = points[0].speed_up
    names = [name for name in _OTHERS if name != method and name in gains]
    others = [f"{labels.method(name)} {1 / gains[name].value:.2f}" for name in names]
    return _found(points[0], with_interval(gains[method].inverse(), ratio_text), others, method)


def _is_early(pipeline: Pipeline) -> bool:
    """Whether all partitions are ready at once."""
    return not any(pipeline.setting.delay)


def _is_one_each(pipeline: Pipeline) -> bool:
    """Whether several threads have one partition each, all ready at once."""
    return pipeline.setting.partitions == pipeline.setting.threads > 1 and _is_early(pipeline)


_COST = "partitioned / single"
_HEADLINES = (
    _Headline(4, "the MPI's / improved", "3.18", 1, 0,
              lambda one: one.setting.partitions == 1, _mpi_versus_improved),
    _Headline(5, _COST, "29.76", 32, 1,
              lambda one: _is_one_each(one) and one.setting.vcis <= 1, _penalty),
    _Headline(6, _COST, "4.04", 32, 32,
              lambda one: _is_one_each(one) and one.setting.vcis > 1, _penalty),
    _Headline(7, _COST, "3.13", 4, 0, _is_early, _aggregated),
    _Headline(8, "single / partitioned", "2.54 (theory 2.67)", 4, 0,
              lambda one: one.setting.gamma_s_per_byte > 0, _early_bird),
)  # fmt: skip
