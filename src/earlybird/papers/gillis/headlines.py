"""The values that figures 4 to 8 of Gillis et al. 2023 print, next to those of the same pipelines here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from earlybird.data import labels
from earlybird.data.methods import AGGREGATED, EARLYBIRD, MANY, ONE_RECEIVES, OWN_CALLS, PER_PARTITION
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes
from earlybird.papers.page import crowded_text, only_runs_of, runs_of
from earlybird.papers.paper import NOT_MEASURED, Row
from earlybird.papers.verdicts import is_close, quotient, verdict
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.points import Point
from earlybird.present.material import Material, MeasuredRun, number_or_none
from earlybird.present.subjects.pipelines.view import Pipeline, pipelines
from earlybird.present.subjects.provenance import view as provenance

NAME = "gillis"
# The measurement setup of the paper, from its section 4.
SETUP = (
    "Paper: MPICH with UCX 1.13.1 between two nodes of MeluXina (AMD EPYC 7H12 of 64 cores; HDR200 "
    "InfiniBand: 25 GB/s, 1.22 us), each thread bound to its own core, means of 150 iterations. The paper "
    "measured its improved partitioned communication; here libearlybird takes that place, and the "
    "partitioned communication of the MPI is listed as well. "
    "The paper does not state the buffer size of figures 4 to 7; here it is the smallest buffer."
)
_OTHERS = (EARLYBIRD, PER_PARTITION, OWN_CALLS, MANY)
_PAPER_LEVEL = "inter_node"


@dataclass(frozen=True)
class _Found:
    """A ratio measured here, with the buffer and method that have it, and other values."""

    ratio: Estimate
    point: Point
    method: str = EARLYBIRD
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Headline:
    """A number printed in a figure of the paper, with the paper's `threads` and contexts `vcis` (0: not
    stated), the measured pipelines that correspond to it, and the value there (None if not measured).
    `without` is why this machine may have none, and what would."""

    figure: int
    ratio: str
    printed: str
    threads: int
    vcis: int
    is_like: Callable[[Pipeline], bool]
    find: Callable[[Pipeline], _Found | None]
    without: str

    @property
    def quantity(self) -> str:
        contexts = f", {labels.counted(self.vcis, 'context')}" if self.vcis else ""
        return f"{self.ratio}, {labels.counted(self.threads, 'thread')}{contexts}"

    def rows(self, measured: Sequence[Pipeline]) -> list[Row]:
        """Return a row for each corresponding pipeline; a row without a value if there is none."""
        figure = f"figure {self.figure}"
        like = [(one, found) for one in measured if self.is_like(one) and (found := self.find(one))]
        return [
            Row(
                figure,
                self.quantity,
                self.printed,
                with_interval(found.ratio, ratio_text),
                self._note(one, found),
                one.label,
            )
            for one, found in like
        ] or [Row(figure, self.quantity, self.printed, note=f"{NOT_MEASURED}: {self.without}")]

    def _note(self, pipeline: Pipeline, found: _Found) -> str:
        setting = pipeline.setting
        differs = []
        if setting.level != _PAPER_LEVEL:
            differs.append(f"{labels.level(setting.level)} (paper: {labels.level(_PAPER_LEVEL)})")
        if setting.threads != self.threads:
            differs.append(f"{labels.counted(setting.threads, 'thread')} (paper: {self.threads})")
        if setting.receivers == ONE_RECEIVES and setting.threads > 1:
            differs.append("one thread receives")
        if setting.vcis > 1 and setting.vcis != self.vcis:
            differs.append(f"{setting.vcis} contexts (paper: {self.vcis})")
        if pipeline.oversubscribed:
            differs.append(crowded_text("threads", pipeline.run))
        close = verdict(is_close(found.ratio, float(self.printed.split()[0])))
        method = f"{labels.method(found.method)}, {format_bytes(found.point.size_bytes)}"
        delay = f", delay rate {setting.late()}" if setting.gamma_s_per_byte else ""
        return "; ".join([method + delay, close, *found.others, *differs])


def reproducing(material: Material) -> list[Pipeline]:
    """Return the pipelines of runs that reproduce the paper, by MPI."""
    return pipelines(only_runs_of(material, NAME))


def headline_rows(measured: Sequence[Pipeline]) -> list[Row]:
    return [row for headline in HEADLINES for row in headline.rows(measured)]


def conditions(material: Material) -> list[str]:
    """Return the setup of the paper and of each run, one line each."""
    here = [f"Here: {provenance.run_line(run)}{_threads_per_core(run)}." for run in runs_of(material, NAME)]
    return [SETUP, *here]


def _threads_per_core(run: MeasuredRun) -> str:
    """Return the largest number of threads per core; the paper has one."""
    cores = number_or_none(run.machine.get("cores"))
    most = 0.0
    for launch in run.launches:
        places = [place for place in launch.get("placement") or () if isinstance(place, Mapping)]
        # The nodes of a virtual cluster share one machine.
        machines = 1 if launch.get("network") else len({str(place.get("host")) for place in places})
        threads = number_or_none(launch.get("threads_per_rank")) or 1
        most = max(most, threads * len(places) / max(machines, 1))
    return f"; at most {most / cores:.3g} threads per core" if cores and most else ""


def _mpi_versus_improved(pipeline: Pipeline) -> _Found | None:
    """Return how much longer the MPI's partitioned communication takes than the improved one."""
    points = [point for point in pipeline.points if {OWN_CALLS, EARLYBIRD} <= point.speed_up.keys()]
    if not points:
        return None
    pairs = [(point.speed_up[EARLYBIRD], point.speed_up[OWN_CALLS]) for point in points]
    ratios = [improved.value / own.value for improved, own in pairs]
    others = f"{min(ratios):.2f} to {max(ratios):.2f} over all sizes"
    improved, own = pairs[0]
    return _Found(quotient(improved, own), points[0], others=(others,))


def _early_bird(pipeline: Pipeline) -> _Found | None:
    """Return the speed-up of the largest buffer over a single message."""
    points = [point for point in pipeline.points if EARLYBIRD in point.speed_up]
    if not points:
        return None
    gains, theory = points[-1].speed_up, points[-1].ideal_speed_up
    others = [f"ideal speed-up {theory:.2f}"] if theory is not None else []
    others += [f"{labels.method(name)} {gains[name].value:.2f}" for name in _OTHERS[1:] if name in gains]
    return _Found(gains[EARLYBIRD], points[-1], others=tuple(others))


def _aggregated(pipeline: Pipeline) -> _Found | None:
    """Return the penalty of the largest bound of aggregated messages."""
    bounds = [method for method in pipeline.methods() if method.startswith(AGGREGATED)]
    return _penalty(pipeline, bounds[-1]) if bounds else None


def _penalty(pipeline: Pipeline, method: str = EARLYBIRD) -> _Found | None:
    """Return how much longer the smallest buffer takes than as a single message."""
    points = [point for point in pipeline.points if method in point.speed_up]
    if not points:
        return None
    gains = points[0].speed_up
    names = [name for name in _OTHERS if name != method and name in gains]
    others = tuple(f"{labels.method(name)} {1 / gains[name].value:.2f}" for name in names)
    return _Found(gains[method].inverse(), points[0], method, others)


def _is_early(pipeline: Pipeline) -> bool:
    """Return whether all partitions are ready at once."""
    return not any(pipeline.setting.delay)


def is_of_one_thread(pipeline: Pipeline) -> bool:
    return pipeline.setting.partitions == 1


def is_contended(pipeline: Pipeline) -> bool:
    """Return whether several threads have one partition each, all ready at once."""
    return pipeline.setting.partitions == pipeline.setting.threads > 1 and _is_early(pipeline)


def is_aggregated(pipeline: Pipeline) -> bool:
    return _is_early(pipeline) and any(one.startswith(AGGREGATED) for one in pipeline.methods())


def is_late(pipeline: Pipeline) -> bool:
    return pipeline.setting.gamma_s_per_byte > 0


def has_contexts(pipeline: Pipeline) -> bool:
    return pipeline.setting.vcis > 1


_COST = "partitioned / single"
_CONTENTION = "needs an MPI for which libearlybird is built, and for the paper's contention 32 cores a rank"
HEADLINES = (
    Headline(4, "the MPI's / improved", "3.18", 1, 0, is_of_one_thread, _mpi_versus_improved,
             "needs an MPI with partitioned communication of its own (MPI 4.0)"),
    Headline(5, _COST, "29.76", 32, 1,
             lambda one: is_contended(one) and not has_contexts(one), _penalty, _CONTENTION),
    Headline(6, _COST, "4.04", 32, 32, lambda one: is_contended(one) and has_contexts(one), _penalty,
             "needs contexts that a pipeline can request, and those only of MPICH (--mpi mpich)"),
    Headline(7, _COST, "3.13", 4, 0, is_aggregated, _aggregated,
             "needs an MPI for which libearlybird is built"),
    Headline(8, "single / partitioned", "2.54 (theory 2.67)", 4, 0, is_late, _early_bird,
             "needs an MPI for which libearlybird is built"),
)  # fmt: skip
