"""Headline figures of Gillis et al. 2023 compared with `measure pipeline --reproduce gillis`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.report.material import Material, MeasuredRun, number_or_none
from earlybird.report.parts import Table, table_of
from earlybird.report.texts import ratio, value_and_spread
from earlybird.report.views import provenance
from earlybird.report.views.pipelines import Pipeline, reproduces
from earlybird.report.views.points import Point

NAME = "gillis"
# The measurement setup of the paper, from its section 4.
PAPER = (
    "Paper: MPICH with UCX 1.13.1 between two nodes of MeluXina (AMD EPYC 7H12 of 64 cores; HDR200 "
    "InfiniBand: 25 GB/s, 1.22 us), each thread bound to its own core, means of 150 iterations. The paper "
    "measured its improved partitioned communication; here libearlybird takes that place, and the "
    "partitioned communication of the MPI is listed as well. "
    "The paper does not state the buffer size of figures 4 to 7; here it is the smallest buffer."
)
_BRIEF = ("figure", "times of", "threads", "contexts", "paper", "here")
_OTHERS = ("earlybird", "partitioned", "many")


@dataclass(frozen=True)
class _Found:
    """What a pipeline measured of a headline: the number here, and those of other methods and sizes."""

    here: str
    others: Sequence[str]
    point: Point
    method: str = "earlybird"


@dataclass(frozen=True)
class _Headline:
    """A number printed in a figure of the paper, the measured pipelines that correspond to it, and their
    number. `threads` and `vcis` are the paper's."""

    figure: int
    ratio: str
    printed: str
    threads: int
    vcis: int
    is_like: Callable[[Pipeline], bool]
    find: Callable[[Pipeline], _Found | None]


_Row = tuple[_Headline, Pipeline | None, _Found | None]


def paper_tables(measured: Sequence[Pipeline]) -> list[Table]:
    """Paper and measurement, one table per MPI and level of a run that reproduces the paper."""
    reproducing = sorted((pipeline for pipeline in measured if pipeline.reproduces == NAME), key=_place)
    return [_table(list(group)) for _, group in groupby(reproducing, key=_place)]


def brief_paper_tables(measured: Sequence[Pipeline]) -> list[Table]:
    """The same tables with fewer columns, for the terminal."""
    return [table.columns(_BRIEF) for table in paper_tables(measured)]


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
    rows: list[_Row] = []
    for headline in _HEADLINES:
        like = [(headline, one, headline.find(one)) for one in measured if headline.is_like(one)]
        rows += [row for row in like if row[2]] or [(headline, None, None)]
    where = f"{measured[0].label}, {labels.level(measured[0].setting.level)}"
    star = " (*: more threads than cores)" if any(pipeline.oversubscribed for pipeline in measured) else ""
    columns: dict[str, Callable[[_Row], str]] = {
        "figure": lambda row: str(row[0].figure),
        "times of": lambda row: row[0].ratio,
        "threads": lambda row: _threads(*row[:2]),
        "contexts": lambda row: _contexts(*row[:2]),
        "partitions": lambda row: str(row[1].setting.partitions) if row[1] else "-",
        "delay": lambda row: row[1].setting.late() if row[1] else "-",
        "buffer": lambda row: format_bytes(row[2].point.size_bytes) if row[2] else "-",
        "method": lambda row: labels.method(row[2].method) if row[2] else "-",
        "paper": lambda row: row[0].printed,
        "here": lambda row: row[2].here if row[2] else "not measured",
        "other values here": lambda row: ("; ".join(row[2].others) if row[2] else "") or "-",
    }
    return table_of(f"Figures of Gillis et al. 2023, paper and here: {where}{star}", rows, columns, wide=True)


def _threads(headline: _Headline, pipeline: Pipeline | None) -> str:
    if pipeline is None:
        return "-"
    threads = str(pipeline.setting.threads) + " *" * pipeline.oversubscribed
    return threads + f" (paper: {headline.threads})" * (pipeline.setting.threads != headline.threads)


def _contexts(headline: _Headline, pipeline: Pipeline | None) -> str:
    if pipeline is None:
        return "-"
    differs = headline.vcis > 1 and pipeline.setting.vcis != headline.vcis
    return pipeline.setting.contexts() + f" (paper: {headline.vcis})" * differs


def _mpi_versus_improved(pipeline: Pipeline) -> _Found | None:
    """How much longer the MPI's partitioned communication takes than the improved one."""
    points = [point for point in pipeline.points if {"partitioned", "earlybird"} <= point.speed_up.keys()]
    if not points:
        return None
    ratios = [point.speed_up["earlybird"].value / point.speed_up["partitioned"].value for point in points]
    return _Found(ratio(ratios[0]), [f"{min(ratios):.2f} to {max(ratios):.2f} over all sizes"], points[0])


def _early_bird(pipeline: Pipeline) -> _Found | None:
    """The speed-up of the largest buffer over a single message."""
    points = [point for point in pipeline.points if "earlybird" in point.speed_up]
    if not points:
        return None
    gains, theory = points[-1].speed_up, points[-1].ideal_speed_up
    others = [f"equation (4) {theory:.2f}"] * (theory is not None)
    others += [f"{labels.method(name)} {gains[name].value:.2f}" for name in _OTHERS[1:] if name in gains]
    return _Found(value_and_spread(gains["earlybird"], ratio), others, points[-1])


def _aggregated(pipeline: Pipeline) -> _Found | None:
    """The penalty of the largest bound of aggregated messages."""
    bounds = [method for method in pipeline.methods() if method.startswith("earlybird:")]
    return _penalty(pipeline, bounds[-1]) if bounds else None


def _penalty(pipeline: Pipeline, method: str = "earlybird") -> _Found | None:
    """How much longer the smallest buffer takes than as a single message."""
    points = [point for point in pipeline.points if method in point.speed_up]
    if not points:
        return None
    gains = points[0].speed_up
    others = [
        f"{labels.method(name)} {1 / gains[name].value:.2f}"
        for name in _OTHERS
        if name != method and name in gains
    ]
    here = value_and_spread(gains[method].inverse(), ratio)
    return _Found(here, others, points[0], method)


def _is_early(pipeline: Pipeline) -> bool:
    """Whether all partitions are ready at once."""
    return not any(pipeline.setting.delay)


def _is_one_each(pipeline: Pipeline) -> bool:
    """Whether several threads have one partition each, all ready at once."""
    return pipeline.setting.partitions == pipeline.setting.threads > 1 and _is_early(pipeline)


_COST = "partitioned / single"
_HEADLINES = (
    _Headline(4, "the MPI's / improved", "3.18", 1, 1,
              lambda one: one.setting.partitions == 1, _mpi_versus_improved),
    _Headline(5, _COST, "29.76", 32, 1,
              lambda one: _is_one_each(one) and one.setting.vcis <= 1, _penalty),
    _Headline(6, _COST, "4.04", 32, 32,
              lambda one: _is_one_each(one) and one.setting.vcis > 1, _penalty),
    _Headline(7, _COST, "3.13", 4, 1, _is_early, _aggregated),
    _Headline(8, "single / partitioned", "2.54 (theory 2.67)", 4, 1,
              lambda one: one.setting.gamma_s_per_byte > 0, _early_bird),
)  # fmt: skip
