"""What Temucin et al. 2022 found of Sweep3D and Halo3D, next to `measure partitioned --reproduce temucin`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from earlybird.data import labels
from earlybird.data.kernels import HALO3D, SWEEP3D
from earlybird.data.methods import EARLYBIRD, FUNNELLED, MULTIPLE, OWN_CALLS
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.parts import grouped
from earlybird.present.core.table import Table, text_table
from earlybird.present.subjects.papers.temucin import (
    AGREES,
    DIFFERS,
    LEFT,
    NOT_MEASURED,
    SAME,
    statement_row,
    without_repeats,
)
from earlybird.present.subjects.papers.temucin_view import Throughput, throughput

NOTES = (
    "Motifs: the paper's styles single-threaded, multithreaded and partitioned are here those in which one "
    "thread communicates, in which every thread does, and the two kinds of partitioned calls. All of them "
    "compute on all threads. Ratios of throughputs are medians over rounds of the same launches."
)
# Published: at most so many times the throughput of a single thread, and what 64 times the computation costs.
PAPER_GAIN, PAPER_LOSS, PAPER_MORE = 15.1, 0.168, 64
_PARTITIONED = (EARLYBIRD, OWN_CALLS)

# The throughput of a style over that of another, by the size of the largest message.
_Ratios = list[tuple[str, float]]


@dataclass(frozen=True)
class _Statement:
    """A finding of the paper on `motif`: the throughput of `methods` over that of `other`."""

    text: str
    motif: str
    methods: Sequence[str]
    other: str
    holds: Callable[[Sequence[float]], bool]

    def row(self, measured: Sequence[Throughput], method: str) -> list[str]:
        return statement_row(self.text, method, self._ratios(measured, method), self.holds, ratio_text)

    def _ratios(self, measured: Sequence[Throughput], method: str) -> _Ratios:
        """With the fewest threads that have the method: those with more share cores in the paper too."""
        like = (one for one in measured if one.setting.motif == self.motif and method in one.methods())
        one = min(like, key=lambda one: one.setting.threads, default=None)
        if one is None:
            return []
        ratios = [(point, one.ratio(point, method, self.other)) for point in one.points]
        return [(format_bytes(point.size_bytes), found.value) for point, found in ratios if found]


def _mostly(holds: Callable[[float], bool]) -> Callable[[Sequence[float]], bool]:
    """Whether it holds at more than half of the sizes."""
    return lambda ratios: sum(map(holds, ratios)) > len(ratios) / 2


def _is_same(value: float) -> bool:
    return max(value, 1 / value) <= 1 + SAME


_STATEMENTS = (
    _Statement(
        "Sweep3D: all threads communicating are mostly faster than one",
        SWEEP3D.name, (MULTIPLE,), FUNNELLED, _mostly(lambda value: value > 1 + SAME),
    ),
    _Statement(
        "Sweep3D: partitioned is mostly at least as fast as all threads communicating",
        SWEEP3D.name, _PARTITIONED, MULTIPLE, _mostly(lambda value: value >= 1 / (1 + SAME)),
    ),
    _Statement(
        "Sweep3D: partitioned gains over one thread with the largest messages",
        SWEEP3D.name, _PARTITIONED, FUNNELLED, lambda ratios: ratios[-1] > 1 + SAME,
    ),
    _Statement(
        f"Sweep3D: partitioned has up to {PAPER_GAIN} times the throughput of one thread",
        SWEEP3D.name, _PARTITIONED, FUNNELLED, lambda ratios: max(ratios) >= PAPER_GAIN * (1 - SAME),
    ),
    _Statement(
        "Halo3D: the styles differ little", HALO3D.name, (MULTIPLE, *_PARTITIONED), FUNNELLED,
        _mostly(_is_same),
    ),
)  # fmt: skip


def motif_paper_tables(measured: Sequence[Throughput]) -> list[Table]:
    """Paper and measurement, one table per MPI of a run that reproduces the paper."""
    return [
        text_table(
            f"Motifs of Temuçin et al. 2022 and this run: {', '.join(filter(None, (label, run)))}",
            LEFT,
            [
                *(row for statement in _STATEMENTS for row in _rows(statement, group)),
                *_more_computation(group),
            ],
            wide=True,
        )
        for (label, run), group in grouped(measured, lambda one: (one.label, one.run)).items()
    ]


def _rows(statement: _Statement, group: Sequence[Throughput]) -> list[list[str]]:
    """A row for each method; the statement only in the first."""
    measured = [method for method in statement.methods if any(method in one.methods() for one in group)]
    return without_repeats([statement.row(group, method) for method in measured or statement.methods[:1]])


def _more_computation(group: Sequence[Throughput]) -> list[list[str]]:
    """What many threads, each with the computation of one, lose compared with a single thread."""
    text = (
        f"Halo3D: {PAPER_MORE} times the computation costs at most {100 * PAPER_LOSS:.1f} % of the "
        "throughput (largest message)"
    )
    halo = [one for one in group if one.setting.motif == HALO3D.name]
    alone = [one for one in halo if one.setting.threads == 1]
    most = max(halo, key=lambda one: one.setting.threads, default=None)
    methods = [method for method in _PARTITIONED if most is not None and method in most.methods()]
    if most is None or not alone or most.setting.threads == 1 or not methods:
        return [[text, EARLYBIRD, "-", NOT_MEASURED]]
    return without_repeats([[text, method, *_loss(alone[0], most, method)] for method in methods])


def _loss(alone: Throughput, most: Throughput, method: str) -> tuple[str, str]:
    """With the largest messages: launches of different numbers of threads have medians to compare."""
    before, after = throughput(alone.points[-1], FUNNELLED), throughput(most.points[-1], method)
    if before is None or after is None or alone.points[-1].size_bytes != most.points[-1].size_bytes:
        return "-", NOT_MEASURED
    change, threads = after.value / before.value - 1, most.setting.threads
    listed = (
        f"one thread: {format_bandwidth(before.value)}, {threads} times the computation: "
        f"{format_bandwidth(after.value)} ({labels.signed_percent(change)})"
    )
    return listed, AGREES if -change <= PAPER_LOSS + SAME else DIFFERS
