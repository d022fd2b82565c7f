"""Headline figures of Gillis et al. 2023 beside what `measure pipeline --reproduce gillis` found here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from earlybird.data.units import format_bytes
from earlybird.report import provenance, words
from earlybird.report.curves import number_or_none
from earlybird.report.fastest import Spread
from earlybird.report.material import Material, MeasuredRun
from earlybird.report.parts import Table
from earlybird.report.pipelines import Pipeline, PipelinePoint

NAME = "gillis"
PAPER_GAMMA_S_PER_BYTE = 100e-12
# What the paper measured on, in its section 4.
PAPER = (
    "Paper: MPICH with UCX 1.13.1 between two nodes of MeluXina (AMD EPYC 7H12 of 64 cores; HDR200 "
    "InfiniBand: 25 GB/s, 1.22 us), each thread bound to a core of its own, means of 150 iterations. Its "
    "partitioned calls are the improved ones that it describes; libearlybird stands in their place here, and "
    "the MPI's own beside it. "
    "It does not say at which size figures 4 to 7 were read: here at the smallest buffer."
)


@dataclass(frozen=True)
class _Headline:
    """A number printed in a figure, and which of the measured pipelines is its like."""

    figure: int
    ratio: str
    what: str
    printed: str
    is_like: Callable[[Pipeline], bool]
    tell: Callable[[Pipeline], list[str]]  # cells: what, here, also here, at


@dataclass(frozen=True)
class _Row:
    """A headline beside one pipeline; `one` is None where nothing like it was measured."""

    headline: _Headline
    one: Pipeline | None
    cells: list[str]


def paper_tables(found: Sequence[Pipeline]) -> list[Table]:
    """Paper beside here, one table for every MPI and place of a run that reproduces the paper."""
    return [_table(group) for group in _groups(found)]


def brief_paper_tables(found: Sequence[Pipeline]) -> list[Table]:
    """The same in few words."""
    return [_brief_table(group) for group in _groups(found)]


def conditions(material: Material) -> list[str]:
    """How the paper's machine and those of the runs differ, a line each."""
    runs = [
        run
        for run in material.runs
        if isinstance(run.header.get("settings"), dict) and run.header["settings"].get("reproduce") == NAME
    ]
    if not runs:
        return []
    return [PAPER, *(f"Here: {provenance.run_line(run)}{_threads_per_core(run)}." for run in runs)]


def _threads_per_core(run: MeasuredRun) -> str:
    """How many threads the cores of a machine had at most; the paper's had one each."""
    cores = number_or_none(run.machine.get("cores"))
    most = 0.0
    for launch in run.launches:
        places = [place for place in launch.get("placement") or () if isinstance(place, dict)]
        # The nodes of a virtual cluster share one machine.
        machines = 1 if launch.get("network") else len({str(place.get("host")) for place in places})
        threads = number_or_none(launch.get("threads_per_rank")) or 1
        most = max(most, threads * len(places) / max(machines, 1))
    return f"; at most {most / cores:.3g} threads per core" if cores and most else ""


def _groups(found: Sequence[Pipeline]) -> list[list[Pipeline]]:
    """Those of a run that reproduces the paper, by MPI and place."""
    mine = sorted((one for one in found if one.reproduces == NAME), key=_place)
    return [list(group) for _, group in groupby(mine, key=_place)]


def _place(one: Pipeline) -> tuple:
    return words.level_order(one.setting.level), one.setting.level, one.label


def _rows(found: Sequence[Pipeline]) -> list[_Row]:
    rows = []
    for headline in _HEADLINES:
        told = [
            _Row(headline, one, cells)
            for one in found
            if headline.is_like(one) and (cells := headline.tell(one))
        ]
        rows += told or [_Row(headline, None, [headline.what, "not measured", "-", "-"])]
    return rows


def _table(found: Sequence[Pipeline]) -> Table:
    rows = [
        [str(row.headline.figure), row.cells[0], row.headline.printed, *row.cells[1:]] for row in _rows(found)
    ]
    header = ["figure", "what", "paper", "here", "also here", "at"]
    return Table(_caption(found), header, rows, wide=True)


def _brief_table(found: Sequence[Pipeline]) -> Table:
    rows = []
    for row in _rows(found):
        _, here, _, at = row.cells
        threads = f"{row.one.setting.threads}{' *' * row.one.oversubscribed}" if row.one else "-"
        contexts = row.one.setting.contexts() if row.one else "-"
        rows.append(
            [str(row.headline.figure), row.headline.ratio, threads, contexts,
             row.headline.printed.partition(" (")[0], here.partition(" (lib")[0], at]
        )  # fmt: skip
    return Table(_caption(found), ["figure", "times of", "threads", "contexts", "paper", "here", "at"], rows)


def _caption(found: Sequence[Pipeline]) -> str:
    where = f"{found[0].label}, {words.level(found[0].setting.level)}"
    star = " (*: more threads than cores)" if any(one.oversubscribed for one in found) else ""
    return f"Figures of Gillis et al. 2023, paper and here: {where}{star}"


def _threads(one: Pipeline, paper: int) -> str:
    threads = words.counted(one.setting.threads, "thread") + (" *" if one.oversubscribed else "")
    return threads + (f" (paper: {paper})" if one.setting.threads != paper else "")


_OLD_BESIDE_NEW = (
    "1 thread, 1 partition: the MPI's partitioned calls take … times as long as the improved ones"
)


def _old_beside_new(one: Pipeline) -> list[str]:
    points = [point for point in one.points if {"partitioned", "earlybird"} <= point.gain.keys()]
    if not points:
        return []
    ratios = [point.gain["earlybird"][0] / point.gain["partitioned"][0] for point in points]
    return [
        _OLD_BESIDE_NEW,
        f"{ratios[0]:.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f} over all sizes",
        format_bytes(points[0].size_bytes),
    ]


def _congestion(one: Pipeline) -> list[str]:
    setting = one.setting
    contexts = words.counted(setting.vcis or 1, "context")
    contexts += "" if (setting.vcis or 1) in (1, 32) else " (paper: 32)"
    what = f"{_threads(one, 32)}, 1 partition each, {contexts}"
    return _penalty(one, f"{what}: partitioned takes … times as long as one message", "earlybird")


def _aggregation(one: Pipeline) -> list[str]:
    bounds = [method for method in one.methods() if method.startswith("earlybird:")]
    if not bounds:
        return []
    what = f"{_threads(one, 4)}, {one.setting.partitions} partitions, gathered"
    what += ": partitioned takes … times as long as one message"
    return _penalty(one, what, bounds[-1])


def _penalty(one: Pipeline, what: str, method: str) -> list[str]:
    points = [point for point in one.points if method in point.gain]
    if not points:
        return []
    also = [
        f"{words.method(other)} {1 / points[0].gain[other][0]:.2f}"
        for other in ("earlybird", "partitioned", "many")
        if other != method and other in points[0].gain
    ]
    here = _spread(_inverse(points[0].gain[method]))
    if method != "earlybird":
        here += f" ({words.method(method)})"
    return [what, here, "; ".join(also) or "-", format_bytes(points[0].size_bytes)]


def _early_bird(one: Pipeline) -> list[str]:
    points: list[PipelinePoint] = [point for point in one.points if "earlybird" in point.gain]
    if not points:
        return []
    last = points[-1]
    also = [f"equation (4) {last.gain_theory:.2f}"] if last.gain_theory is not None else []
    also += [
        f"{words.method(method)} {last.gain[method][0]:.2f}"
        for method in ("many", "partitioned")
        if method in last.gain
    ]
    return [
        f"{_threads(one, 4)}, {words.counted(one.setting.partitions, 'partition')}, the last one late by "
        f"{one.setting.late()}: … times as fast as one message",
        _spread(last.gain["earlybird"]),
        "; ".join(also) or "-",
        format_bytes(last.size_bytes),
    ]


def _inverse(spread: Spread) -> Spread:
    middle, low, high = spread
    return 1 / middle, 1 / high, 1 / low


def _spread(spread: Spread) -> str:
    middle, low, high = spread
    return f"{middle:.2f}" + (f" ({low:.2f} to {high:.2f})" if high > low else "")


def _early(one: Pipeline) -> bool:
    """Nothing makes a partition late."""
    return one.setting.gamma_s_per_byte == 0 and one.setting.noise is None


def _one_each(one: Pipeline) -> bool:
    """Several threads with a partition each, all ready at once."""
    return one.setting.partitions == one.setting.threads > 1 and _early(one)


_HEADLINES = (
    _Headline(
        4, "the MPI's own / improved", _OLD_BESIDE_NEW, "3.18",
        lambda one: one.setting.partitions == 1,
        _old_beside_new,
    ),
    _Headline(
        5, "partitioned / one message",
        "Threads with a partition each: partitioned takes … times as long as one message", "29.76",
        lambda one: _one_each(one) and one.setting.vcis in (None, 1),
        _congestion,
    ),
    _Headline(
        6, "partitioned / one message", "The same with a context for each thread", "4.04",
        lambda one: _one_each(one) and (one.setting.vcis or 1) > 1,
        _congestion,
    ),
    _Headline(
        7, "partitioned / one message",
        "Many partitions gathered: partitioned takes … times as long as one message", "3.13",
        _early,
        _aggregation,
    ),
    _Headline(
        8, "one message / partitioned",
        "The last partition late: … times as fast as one message", "2.54 (theory 2.67)",
        lambda one: one.setting.gamma_s_per_byte > 0,
        _early_bird,
    ),
)  # fmt: skip
