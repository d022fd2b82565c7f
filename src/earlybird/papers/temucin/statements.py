"""The findings of Temucin et al. 2022 with their metrics, next to the measurements here."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from earlybird.compare.partitioned import AVAILABILITY, BANDWIDTH, EARLY_BIRD, OVERHEAD
from earlybird.data import labels
from earlybird.data.methods import EARLYBIRD, NO_NOISE, OWN_CALLS, SINGLE, SINGLE_NOISE, UNIFORM_NOISE
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.papers.page import crowded_text, only_runs_of
from earlybird.papers.paper import NOT_MEASURED, Row
from earlybird.papers.temucin.noises import LESS_NOISE, MORE_NOISE, NOISES
from earlybird.papers.temucin.throughput import NAME
from earlybird.papers.verdicts import (
    Judgement,
    are_same,
    differ,
    falls,
    peaks_inside,
    rises,
    value_text,
    verdict,
)
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.parts import grouped
from earlybird.present.material import Material
from earlybird.present.subjects.partitioned.view import Metrics, metric, partitioned_metrics

NOTES = (
    "Paper: MPIPCL, partitioned calls on point-to-point messages, with Open MPI (master) and UCX 1.11 on "
    "Niagara (2 x 20 cores of Intel Skylake at 2.4 GHz, EDR InfiniBand). Its figures are curves without "
    "printed values, so its statements are compared. What may differ here: cores copy messages that do "
    "not leave a node, and threads that share a core become ready one after the other even without noise."
)
_METHODS = (EARLYBIRD, OWN_CALLS)

# The values that a statement is about, in order, with their names.
_Values = list[tuple[str, Estimate]]


@dataclass(frozen=True)
class Found:
    """The named values of a method here, and the verdict on the finding of the paper ("" if there are too
    few values)."""

    label: str
    method: str
    here: str = ""
    verdict: str = ""
    note: str = ""


@dataclass(frozen=True)
class _Statement:
    """A finding of the paper: its subject, its text, the values that show it, and whether they do."""

    figure: str
    quantity: str
    paper: str
    values: Callable[[Sequence[Metrics], str], _Values]
    holds: Judgement
    format: Callable[[float], str]

    def found(self, measured: Sequence[Metrics]) -> list[Found]:
        """Return the values of each MPI and method."""
        return [
            judged(label, method, self.values(group, method), self.holds, self.format, _crowded(group))
            for (label, _), group in grouped(measured, lambda one: (one.label, one.setting.level)).items()
            for method in _METHODS
            if any(method in one.methods() for one in group)
        ]


def _crowded(measured: Sequence[Metrics]) -> str:
    return next((crowded_text("threads", one.run) for one in measured if one.oversubscribed), "")


def judged(
    label: str,
    method: str,
    values: Sequence[tuple[str, Estimate]],
    holds: Judgement,
    text_of: Callable[[float], str],
    note: str = "",
) -> Found:
    """Return named values with the verdict on them; fewer than two have none."""
    if len(values) < 2:
        return Found(label, method)
    outcome = verdict(holds([value for _, value in values]))
    listed = ", ".join(f"{name}: {value_text(value, outcome, text_of)}" for name, value in values)
    return Found(label, method, listed, outcome, note)


def statement_rows(
    figure: str, quantity: str, paper: str, found: Sequence[Found], without: str = ""
) -> list[Row]:
    """Return a row for each MPI and method with values; if there is none, a row that says what is missing."""
    rows = [
        Row(
            figure,
            quantity,
            paper,
            one.here,
            "; ".join(filter(None, (labels.method(one.method), one.verdict, one.note))),
            one.label,
        )
        for one in found
        if one.verdict
    ]
    missing = f"{NOT_MEASURED}: {without}" if without else NOT_MEASURED
    return rows or [Row(figure, quantity, paper, note=missing)]


def reproducing(material: Material) -> list[Metrics]:
    """Return the metrics of runs that reproduce the paper."""
    return partitioned_metrics(only_runs_of(material, NAME))


def metric_rows(measured: Sequence[Metrics]) -> list[Row]:
    return [
        row
        for one in _STATEMENTS
        for row in statement_rows(one.figure, one.quantity, one.paper, one.found(measured))
    ]


def _like(
    measured: Sequence[Metrics], noise: str, cache: str = "hot", share: float | None = None
) -> list[Metrics]:
    return [
        one for one in measured
        if (one.setting.noise, one.setting.cache) == (noise, cache)
        and (share is None or abs(one.setting.noise_share - share) < 1e-9)
    ]  # fmt: skip


def _longest(found: Iterable[Metrics]) -> list[Metrics]:
    """Return the metrics with the longest computation, by partitions."""
    listed = list(found)
    longest = max((one.setting.compute_s for one in listed), default=0.0)
    return sorted(
        (one for one in listed if one.setting.compute_s == longest), key=lambda one: one.setting.partitions
    )


def _shortest(found: Iterable[Metrics]) -> list[Metrics]:
    listed = list(found)
    shortest = min((one.setting.compute_s for one in listed), default=0.0)
    return sorted(
        (one for one in listed if one.setting.compute_s == shortest), key=lambda one: one.setting.partitions
    )


def _with_late_thread(measured: Sequence[Metrics]) -> list[Metrics]:
    return _longest(_like(measured, SINGLE_NOISE, share=LESS_NOISE))


def _with_little_noise(measured: Sequence[Metrics]) -> list[Metrics]:
    return _shortest(_like(measured, UNIFORM_NOISE, share=LESS_NOISE))


def _value(one: Metrics, method: str, name: str, at: int) -> Estimate | None:
    result = one.points[at].results.get(method)
    return metric(result, name) if result else None


def _by_partitions(found: Sequence[Metrics], method: str, name: str, at: int) -> _Values:
    values = [(str(one.setting.partitions), _value(one, method, name, at)) for one in found]
    return [(f"n={text}", value) for text, value in values if value is not None]


def _by_size(found: Sequence[Metrics], method: str, name: str) -> _Values:
    """Return the values by size of the setting with most partitions."""
    if not found:
        return []
    one = found[-1]
    values = [(point.size_bytes, _value(one, method, name, k)) for k, point in enumerate(one.points)]
    return [(format_bytes(size), value) for size, value in values if value is not None]


def _ends(values: _Values) -> _Values:
    return [values[0], values[-1]] if len(values) > 1 else []


def _against_single(measured: Sequence[Metrics], method: str) -> _Values:
    found = _longest(_like(measured, NO_NOISE))
    if not found:
        return []
    both = [(name, _value(found[-1], name, BANDWIDTH, -1)) for name in (SINGLE, method)]
    return [(name, value) for name, value in both if value is not None]


def _peak(measured: Sequence[Metrics], method: str) -> _Values:
    values = _by_size(_shortest(_like(measured, UNIFORM_NOISE, share=MORE_NOISE)), method, BANDWIDTH)
    if len(values) < 3:
        return []
    return [values[0], max(values[1:-1], key=lambda pair: pair[1].value), values[-1]]


def _by_noise(measured: Sequence[Metrics], method: str) -> _Values:
    found = []
    for noise in NOISES:
        like = _longest(_like(measured, noise, share=LESS_NOISE))
        value = _value(like[-1], method, AVAILABILITY, -1) if like else None
        if value is not None:
            found.append((noise, value))
    return found


def _by_share(measured: Sequence[Metrics], method: str) -> _Values:
    found = []
    for share in (LESS_NOISE, MORE_NOISE):
        like = _shortest(_like(measured, UNIFORM_NOISE, share=share))
        value = _value(like[-1], method, EARLY_BIRD, -1) if like else None
        if value is not None:
            found.append((labels.percent(share), value))
    return found


def _overhead_of(cache: str) -> Callable[[Sequence[Metrics], str], _Values]:
    return lambda m, method: _by_partitions(_shortest(_like(m, NO_NOISE, cache)), method, OVERHEAD, 0)


_STATEMENTS = (
    *(
        _Statement(
            f"overhead, {cache} cache",
            "overhead with more partitions, smallest buffer",
            "grows",
            _overhead_of(cache),
            rises,
            ratio_text,
        )
        for cache in ("cold", "hot")
    ),
    _Statement(
        "overhead, hot cache",
        "overhead with larger buffers",
        "falls",
        lambda m, method: _ends(_by_size(_shortest(_like(m, NO_NOISE)), method, OVERHEAD)),
        falls,
        ratio_text,
    ),
    _Statement(
        "perceived bandwidth",
        "without noise, compared with a single message",
        "the same",
        _against_single,
        are_same,
        format_bandwidth,
    ),
    _Statement(
        "perceived bandwidth", "with noise, by size", "peaks at medium sizes", _peak, peaks_inside,
        format_bandwidth,
    ),
    _Statement(
        "availability (a)",
        "with more partitions, one late thread, smallest buffer",
        "grows",
        lambda m, method: _by_partitions(_with_late_thread(m), method, AVAILABILITY, 0),
        rises,
        labels.percent,
    ),
    _Statement(
        "availability (b)", "by noise model, largest buffer", "differs", _by_noise, differ, labels.percent
    ),
    _Statement(
        "availability (a)",
        "with larger buffers, one late thread",
        "falls",
        lambda m, method: _ends(_by_size(_with_late_thread(m), method, AVAILABILITY)),
        falls,
        labels.percent,
    ),
    _Statement(
        "early-bird communication",
        "with more partitions, smallest buffer",
        "grows",
        lambda m, method: _by_partitions(_with_little_noise(m), method, EARLY_BIRD, 0),
        rises,
        labels.percent,
    ),
    _Statement(
        "early-bird communication", "with more noise, largest buffer", "grows", _by_share, rises,
        labels.percent,
    ),
)  # fmt: skip
