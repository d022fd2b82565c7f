"""The findings of Temucin et al. 2022 on Sweep3D and Halo3D, next to the measurements here."""

from collections.abc import Sequence
from dataclasses import dataclass

from earlybird.data import labels
from earlybird.data.kernels import HALO3D, SWEEP3D
from earlybird.data.methods import EARLYBIRD, FUNNELLED, MULTIPLE, OWN_CALLS
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.papers.paper import Row
from earlybird.papers.temucin.statements import Found, judged, statement_rows
from earlybird.papers.temucin.throughput import TITLES, Throughput, throughput
from earlybird.papers.verdicts import (
    SAME,
    Judgement,
    Truth,
    at_least,
    exceeds,
    is_close,
    mostly,
    no,
    quotient,
    value_text,
    verdict,
)
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.parts import grouped

NOTES = (
    "Motifs: the paper's styles single-threaded, multithreaded and partitioned are here those in which one "
    "thread communicates, in which every thread does, and the two kinds of partitioned calls. All of them "
    "compute on all threads. Ratios of throughputs are medians over rounds of the same launches."
)
# Published: at most so many times the throughput of a single thread, and what 64 times the computation costs.
PAPER_GAIN, PAPER_LOSS, PAPER_MORE = 15.1, 0.168, 64
_PARTITIONED = (EARLYBIRD, OWN_CALLS)
_WITHOUT = "motifs need an MPI, and partitioned calls an MPI 4.0 or libearlybird"

# The throughput of a style over that of another, by the size of the largest message.
_Ratios = list[tuple[str, Estimate]]


@dataclass(frozen=True)
class _Statement:
    """A finding of the paper on `motif`: the throughput of `methods` over that of `other`."""

    quantity: str
    paper: str
    motif: str
    methods: Sequence[str]
    other: str
    holds: Judgement

    def found(self, measured: Sequence[Throughput]) -> list[Found]:
        """Return the values of each MPI and method."""
        return [
            self._judged(label, method, group)
            for label, group in _by_mpi(measured).items()
            for method in self.methods
        ]

    def _judged(self, label: str, method: str, group: Sequence[Throughput]) -> Found:
        """Judge the ratios with the fewest threads that have the method: with more, threads share cores in
        the paper too."""
        like = (one for one in group if one.setting.motif == self.motif and method in one.methods())
        one = min(like, key=lambda one: one.setting.threads, default=None)
        if one is None:
            return Found(label, method)
        return judged(label, method, self._ratios(one, method), self.holds, ratio_text, one.crowded)

    def _ratios(self, one: Throughput, method: str) -> _Ratios:
        ratios = [(point, one.ratio(point, method, self.other)) for point in one.points]
        return [(format_bytes(point.size_bytes), found.estimate) for point, found in ratios if found]


def _by_mpi(measured: Sequence[Throughput]) -> dict[str, list[Throughput]]:
    """Return what was measured by MPI, and by run if several runs measured the same MPI."""
    runs = {(one.mpi, one.run.name) for one in measured}
    several = {mpi for mpi, _ in runs if sum(mpi == other for other, _ in runs) > 1}
    return grouped(measured, lambda one: labels.flavour(one.mpi) + f", {one.run.name}" * (one.mpi in several))


def _is_faster(ratio: Estimate) -> Truth:
    return exceeds(ratio, 1 + SAME)


def _is_as_fast(ratio: Estimate) -> Truth:
    return no(exceeds(Estimate.exact(1 / (1 + SAME)), ratio))


def _gains(ratios: Sequence[Estimate]) -> Truth:
    """Return whether one of the ratios reaches that of the paper."""
    return at_least(1, [exceeds(ratio, PAPER_GAIN * (1 - SAME)) for ratio in ratios])


_STATEMENTS = (
    _Statement(
        "all threads communicating, over one thread", "mostly faster",
        SWEEP3D.name, (MULTIPLE,), FUNNELLED, mostly(_is_faster),
    ),
    _Statement(
        "partitioned, over all threads communicating", "mostly as fast",
        SWEEP3D.name, _PARTITIONED, MULTIPLE, mostly(_is_as_fast),
    ),
    _Statement(
        "partitioned, over one thread, largest messages", "faster",
        SWEEP3D.name, _PARTITIONED, FUNNELLED, lambda ratios: _is_faster(ratios[-1]),
    ),
    _Statement(
        "partitioned, over one thread, largest throughput", f"up to {PAPER_GAIN}x",
        SWEEP3D.name, _PARTITIONED, FUNNELLED, _gains,
    ),
    _Statement(
        "the styles, over one thread", "differ little", HALO3D.name, (MULTIPLE, *_PARTITIONED), FUNNELLED,
        mostly(lambda ratio: is_close(ratio, 1.0)),
    ),
)  # fmt: skip


def motif_rows(measured: Sequence[Throughput]) -> list[Row]:
    """Return the findings of the paper next to those of every MPI."""
    rows = [
        row
        for one in _STATEMENTS
        for row in statement_rows(TITLES[one.motif], one.quantity, one.paper, one.found(measured), _WITHOUT)
    ]
    more = [found for label, group in _by_mpi(measured).items() for found in _more_computation(label, group)]
    quantity = f"{PAPER_MORE} times the computation: throughput lost, largest messages"
    return rows + statement_rows("Halo3D", quantity, f"{100 * PAPER_LOSS:.1f} %", more, _WITHOUT)


def _more_computation(label: str, group: Sequence[Throughput]) -> list[Found]:
    """Return the loss of many threads, each with the computation of one, compared with a single thread."""
    halo = [one for one in group if one.setting.motif == HALO3D.name]
    alone = [one for one in halo if one.setting.threads == 1]
    most = max(halo, key=lambda one: one.setting.threads, default=None)
    methods = [method for method in _PARTITIONED if most is not None and method in most.methods()]
    if most is None or not alone or most.setting.threads == 1:
        return []
    return [found for method in methods if (found := _loss(label, alone[0], most, method))]


def _loss(label: str, alone: Throughput, most: Throughput, method: str) -> Found | None:
    """Compare the largest messages: launches of different numbers of threads have medians to compare."""
    before, after = throughput(alone.points[-1], FUNNELLED), throughput(most.points[-1], method)
    if before is None or after is None or alone.points[-1].size_bytes != most.points[-1].size_bytes:
        return None
    kept = quotient(after, before)
    loss, threads = Estimate(1 - kept.value, 1 - kept.high, 1 - kept.low), most.setting.threads
    note = (
        f"one thread {format_bandwidth(before.value)}, {threads} threads with {threads} times the "
        f"computation {format_bandwidth(after.value)}"
    )
    note = "; ".join(filter(None, [note, most.crowded]))
    outcome = verdict(no(exceeds(loss, PAPER_LOSS + SAME)))
    return Found(label, method, value_text(loss, outcome, labels.percent), outcome, note)
