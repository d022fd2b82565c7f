"""Headline figures of Gillis et al. 2023 compared with `measure pipeline --reproduce gillis`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from earlybird.data import labels
from earlybird.data.results import Estimate
from earlybird.data.units import format_bytes
from earlybird.report import provenance
from earlybird.report.curves import number_or_none
from earlybird.report.material import Material, MeasuredRun
from earlybird.report.parts import Table
from earlybird.report.pipelines import Pipeline, PipelinePoint

NAME = "gillis"
PAPER_GAMMA_S_PER_BYTE = 100e-12
# The measurement setup of the paper, from its section 4.
PAPER = (
    "Paper: MPICH with UCX 1.13.1 between two nodes of MeluXina (AMD EPYC 7H12 of 64 cores; HDR200 "
    "InfiniBand: 25 GB/s, 1.22 us), each thread bound to its own core, means of 150 iterations. The paper "
    "measured its improved partitioned communication; here libearlybird takes that place, and the "
    "partitioned communication of the MPI is listed as well. "
    "The paper does not state the buffer size of figures 4 to 7; here it is the smallest buffer."
)


@dataclass(frozen=True)
class _Headline:
    """A number printed in a figure of the paper, and the measured pipelines that correspond to it."""

    figure: int
    ratio: str
    description: str
    printed: str
    is_like: Callable[[Pipeline], bool]
    cells_of: Callable[[Pipeline], list[str]]  # cells: quantity, here, other values here, buffer


@dataclass(frozen=True)
class _Row:
    """A headline and one pipeline; `pipeline` is None if nothing comparable was measured."""

    headline: _Headline
    pipeline: Pipeline | None
    cells: list[str]


def paper_tables(measured: Sequence[Pipeline]) -> list[Table]:
    """Paper and measurement, one table per MPI and level of a run that reproduces the paper."""
    return [_table(group) for group in _groups(measured)]


def brief_paper_tables(measured: Sequence[Pipeline]) -> list[Table]:
    """The same tables, shorter, for the terminal."""
    return [_brief_table(group) for group in _groups(measured)]


def conditions(material: Material) -> list[str]:
    """The setup of the paper and of each run, one line each."""
    runs = [
        run
        for run in material.runs
        if isinstance(run.header.get("settings"), dict) and run.header["settings"].get("reproduce") == NAME
    ]
    if not runs:
        return []
    return [PAPER, *(f"Here: {provenance.run_line(run)}{_threads_per_core(run)}." for run in runs)]


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


def _groups(measured: Sequence[Pipeline]) -> list[list[Pipeline]]:
    """The pipelines of runs that reproduce the paper, grouped by level and MPI."""
    reproducing = sorted((pipeline for pipeline in measured if pipeline.reproduces == NAME), key=_place)
    return [list(group) for _, group in groupby(reproducing, key=_place)]


def _place(pipeline: Pipeline) -> tuple:
    return labels.level_order(pipeline.setting.level), pipeline.setting.level, pipeline.label


def _rows(measured: Sequence[Pipeline]) -> list[_Row]:
    rows = []
    for headline in _HEADLINES:
        rows_of_headline = [
            _Row(headline, pipeline, cells)
            for pipeline in measured
            if headline.is_like(pipeline) and (cells := headline.cells_of(pipeline))
        ]
        rows += rows_of_headline or [_Row(headline, None, [headline.description, "not measured", "-", "-"])]
    return rows


def _table(measured: Sequence[Pipeline]) -> Table:
    rows = [
        [str(row.headline.figure), row.cells[0], row.headline.printed, *row.cells[1:]]
        for row in _rows(measured)
    ]
    header = ["figure", "quantity", "paper", "here", "other values here", "buffer"]
    return Table(_caption(measured), header, rows, wide=True)


def _brief_table(measured: Sequence[Pipeline]) -> Table:
    rows = []
    for row in _rows(measured):
        _, here, _, at = row.cells
        threads = (
            f"{row.pipeline.setting.threads}{' *' * row.pipeline.oversubscribed}" if row.pipeline else "-"
        )
        contexts = row.pipeline.setting.contexts() if row.pipeline else "-"
        rows.append(
            [str(row.headline.figure), row.headline.ratio, threads, contexts,
             row.headline.printed.partition(" (")[0], here.partition(" (lib")[0], at]
        )  # fmt: skip
    return Table(
        _caption(measured), ["figure", "times of", "threads", "contexts", "paper", "here", "at"], rows
    )


def _caption(measured: Sequence[Pipeline]) -> str:
    where = f"{measured[0].label}, {labels.level(measured[0].setting.level)}"
    star = " (*: more threads than cores)" if any(pipeline.oversubscribed for pipeline in measured) else ""
    return f"Figures of Gillis et al. 2023, paper and here: {where}{star}"


def _threads(pipeline: Pipeline, paper: int) -> str:
    threads = labels.counted(pipeline.setting.threads, "thread") + (" *" if pipeline.oversubscribed else "")
    return threads + (f" (paper: {paper})" if pipeline.setting.threads != paper else "")


_MPI_VERSUS_IMPROVED = (
    "1 thread, 1 partition: the MPI's partitioned communication takes … times as long as the improved one"
)


def _mpi_versus_improved(pipeline: Pipeline) -> list[str]:
    points = [point for point in pipeline.points if {"partitioned", "earlybird"} <= point.speed_up.keys()]
    if not points:
        return []
    ratios = [point.speed_up["earlybird"][0] / point.speed_up["partitioned"][0] for point in points]
    return [
        _MPI_VERSUS_IMPROVED,
        f"{ratios[0]:.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f} over all sizes",
        format_bytes(points[0].size_bytes),
    ]


def _congestion(pipeline: Pipeline) -> list[str]:
    setting = pipeline.setting
    contexts = labels.counted(setting.vcis or 1, "context")
    contexts += "" if (setting.vcis or 1) in (1, 32) else " (paper: 32)"
    quantity = f"{_threads(pipeline, 32)}, 1 partition each, {contexts}"
    return _penalty(
        pipeline, f"{quantity}: partitioned takes … times as long as a single message", "earlybird"
    )


def _aggregation(pipeline: Pipeline) -> list[str]:
    bounds = [method for method in pipeline.methods() if method.startswith("earlybird:")]
    if not bounds:
        return []
    quantity = f"{_threads(pipeline, 4)}, {pipeline.setting.partitions} partitions, aggregated"
    quantity += ": partitioned takes … times as long as a single message"
    return _penalty(pipeline, quantity, bounds[-1])


def _penalty(pipeline: Pipeline, quantity: str, method: str) -> list[str]:
    points = [point for point in pipeline.points if method in point.speed_up]
    if not points:
        return []
    others = [
        f"{labels.method(other)} {1 / points[0].speed_up[other][0]:.2f}"
        for other in ("earlybird", "partitioned", "many")
        if other != method and other in points[0].speed_up
    ]
    here = _spread(_inverse(points[0].speed_up[method]))
    if method != "earlybird":
        here += f" ({labels.method(method)})"
    return [quantity, here, "; ".join(others) or "-", format_bytes(points[0].size_bytes)]


def _early_bird(pipeline: Pipeline) -> list[str]:
    points: list[PipelinePoint] = [point for point in pipeline.points if "earlybird" in point.speed_up]
    if not points:
        return []
    last = points[-1]
    others = [f"equation (4) {last.ideal_speed_up:.2f}"] if last.ideal_speed_up is not None else []
    others += [
        f"{labels.method(method)} {last.speed_up[method][0]:.2f}"
        for method in ("many", "partitioned")
        if method in last.speed_up
    ]
    return [
        f"{_threads(pipeline, 4)}, {labels.counted(pipeline.setting.partitions, 'partition')}, the last one "
        f"late by {pipeline.setting.late()}: speed-up over a single message",
        _spread(last.speed_up["earlybird"]),
        "; ".join(others) or "-",
        format_bytes(last.size_bytes),
    ]


def _inverse(spread: Estimate) -> Estimate:
    middle, low, high = spread
    return 1 / middle, 1 / high, 1 / low


def _spread(spread: Estimate) -> str:
    middle, low, high = spread
    return f"{middle:.2f}" + (f" ({low:.2f} to {high:.2f})" if high > low else "")


def _early(pipeline: Pipeline) -> bool:
    """Whether no partition is late."""
    return pipeline.setting.gamma_s_per_byte == 0 and pipeline.setting.noise is None


def _one_each(pipeline: Pipeline) -> bool:
    """Whether several threads have one partition each, all ready at once."""
    return pipeline.setting.partitions == pipeline.setting.threads > 1 and _early(pipeline)


_HEADLINES = (
    _Headline(
        4, "the MPI's own / improved", _MPI_VERSUS_IMPROVED, "3.18",
        lambda pipeline: pipeline.setting.partitions == 1,
        _mpi_versus_improved,
    ),
    _Headline(
        5, "partitioned / single message",
        "One partition per thread: partitioned takes … times as long as a single message", "29.76",
        lambda pipeline: _one_each(pipeline) and pipeline.setting.vcis in (None, 1),
        _congestion,
    ),
    _Headline(
        6, "partitioned / single message", "The same with one context per thread", "4.04",
        lambda pipeline: _one_each(pipeline) and (pipeline.setting.vcis or 1) > 1,
        _congestion,
    ),
    _Headline(
        7, "partitioned / single message",
        "Many partitions, aggregated: partitioned takes … times as long as a single message", "3.13",
        _early,
        _aggregation,
    ),
    _Headline(
        8, "single message / partitioned",
        "The last partition late: speed-up over a single message", "2.54 (theory 2.67)",
        lambda pipeline: pipeline.setting.gamma_s_per_byte > 0,
        _early_bird,
    ),
)  # fmt: skip
