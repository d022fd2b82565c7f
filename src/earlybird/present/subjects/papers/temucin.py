"""What Temucin et al. 2022 found, next to `measure partitioned --reproduce temucin`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from earlybird.compare.partitioned import AVAILABILITY, BANDWIDTH, EARLY_BIRD, OVERHEAD
from earlybird.data import labels
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.present.core.notation import ratio_text
from earlybird.present.core.parts import grouped
from earlybird.present.core.table import Table, text_table
from earlybird.present.subjects.papers.temucin_view import NAME
from earlybird.present.subjects.partitioned.view import Metrics, metric

NOTES = (
    "Paper: MPIPCL, partitioned calls on point-to-point messages, with Open MPI (master) and UCX 1.11 on "
    "Niagara (2 x 20 cores of Intel Skylake at 2.4 GHz, EDR InfiniBand). Its figures are curves without "
    "printed values, so its statements are compared. What may differ here: cores copy messages that do "
    "not leave a node, and threads that share a core become ready one after the other even without noise."
)
LEFT = ("the paper finds", "method", "here", "verdict")
_METHODS = ("earlybird", "partitioned")
AGREES, DIFFERS, NOT_MEASURED = "agrees", "differs", "not measured"
# A smaller relative difference is none, nor is a smaller difference of shares.
SAME, _SAME_SHARE = 0.05, 0.02

# The values that a statement is about, in order, with their names.
_Values = list[tuple[str, float]]


@dataclass(frozen=True)
class _Statement:
    """A finding of the paper: which values show it, and whether they do."""

    text: str
    values: Callable[[Sequence[Metrics], str], _Values]
    holds: Callable[[Sequence[float]], bool]
    format: Callable[[float], str]

    def row(self, measured: Sequence[Metrics], method: str) -> list[str]:
        return statement_row(self.text, method, self.values(measured, method), self.holds, self.format)


def statement_row(
    text: str,
    method: str,
    found: Sequence[tuple[str, float]],
    holds: Callable[[Sequence[float]], bool],
    text_of: Callable[[float], str],
) -> list[str]:
    """A statement of the paper, the named values that were found here, and whether it holds for them."""
    if len(found) < 2:
        return [text, method, "-", NOT_MEASURED]
    listed = ", ".join(f"{name}: {text_of(value)}" for name, value in found)
    return [text, method, listed, AGREES if holds([value for _, value in found]) else DIFFERS]


def without_repeats(rows: list[list[str]]) -> list[list[str]]:
    """Rows of one statement, which only the first contains."""
    return [row if k == 0 else ["", *row[1:]] for k, row in enumerate(rows)]


def paper_tables(measured: Sequence[Metrics]) -> list[Table]:
    """Paper and measurement, one table per MPI and level of a run that reproduces the paper."""
    reproducing = [one for one in measured if one.reproduces == NAME]
    places = grouped(reproducing, lambda one: (one.label, one.setting.level))
    return [
        text_table(
            f"Temuçin et al. 2022 and this run: {label}, {labels.level(level)}",
            LEFT,
            [row for statement in _STATEMENTS for row in _rows(statement, group)],
            LEFT,
            wide=True,
        )
        for (label, level), group in places.items()
    ]


def _rows(statement: _Statement, group: Sequence[Metrics]) -> list[list[str]]:
    """A row for each method; the statement only in the first."""
    methods = [method for method in _METHODS if any(method in one.methods() for one in group)]
    return without_repeats([statement.row(group, method) for method in methods])


def _least_difference(values: Sequence[float]) -> float:
    return max(SAME * max(abs(value) for value in values), _SAME_SHARE)


def _rises(values: Sequence[float]) -> bool:
    return values[-1] - values[0] > _least_difference(values)


def _falls(values: Sequence[float]) -> bool:
    return _rises(values[::-1])


def _differ(values: Sequence[float]) -> bool:
    return max(values) - min(values) > _least_difference(values)


def _same(values: Sequence[float]) -> bool:
    return not _differ(values)


def _peak_inside(values: Sequence[float]) -> bool:
    """Whether the value in the middle exceeds those at both ends."""
    return values[1] > values[0] and values[1] > values[-1]


def _like(
    measured: Sequence[Metrics], noise: str, cache: str = "hot", share: float | None = None
) -> list[Metrics]:
    return [
        one for one in measured
        if (one.setting.noise, one.setting.cache) == (noise, cache)
        and (share is None or abs(one.setting.noise_share - share) < 1e-9)
    ]  # fmt: skip


def _longest(found: Iterable[Metrics]) -> list[Metrics]:
    """Those with the longest computation, by partitions."""
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


def _value(one: Metrics, method: str, name: str, at: int) -> float | None:
    result = one.points[at].results.get(method)
    estimate = metric(result, name) if result else None
    return estimate.value if estimate else None


def _by_partitions(found: Sequence[Metrics], method: str, name: str, at: int) -> _Values:
    values = [(str(one.setting.partitions), _value(one, method, name, at)) for one in found]
    return [(f"n={text}", value) for text, value in values if value is not None]


def _by_size(found: Sequence[Metrics], method: str, name: str) -> _Values:
    """Of the setting with most partitions."""
    if not found:
        return []
    one = found[-1]
    values = [(point.size_bytes, _value(one, method, name, k)) for k, point in enumerate(one.points)]
    return [(format_bytes(size), value) for size, value in values if value is not None]


def _ends(values: _Values) -> _Values:
    return [values[0], values[-1]] if len(values) > 1 else []


def _against_single(measured: Sequence[Metrics], method: str) -> _Values:
    found = _longest(_like(measured, "none"))
    if not found:
        return []
    both = [(name, _value(found[-1], name, BANDWIDTH, -1)) for name in ("single", method)]
    return [(name, value) for name, value in both if value is not None]


def _peak(measured: Sequence[Metrics], method: str) -> _Values:
    values = _by_size(_shortest(_like(measured, "uniform", share=0.1)), method, BANDWIDTH)
    if len(values) < 3:
        return []
    return [values[0], max(values[1:-1], key=lambda pair: pair[1]), values[-1]]


def _by_noise(measured: Sequence[Metrics], method: str) -> _Values:
    found = []
    for noise in ("single", "uniform", "gaussian"):
        like = _longest(_like(measured, noise, share=0.04))
        value = _value(like[-1], method, AVAILABILITY, -1) if like else None
        if value is not None:
            found.append((noise, value))
    return found


def _by_share(measured: Sequence[Metrics], method: str) -> _Values:
    found = []
    for share in (0.04, 0.1):
        like = _shortest(_like(measured, "uniform", share=share))
        value = _value(like[-1], method, EARLY_BIRD, -1) if like else None
        if value is not None:
            found.append((labels.percent(share), value))
    return found


def _overhead_of(cache: str) -> Callable[[Sequence[Metrics], str], _Values]:
    return lambda m, method: _by_partitions(_shortest(_like(m, "none", cache)), method, OVERHEAD, 0)


_STATEMENTS = (
    _Statement(
        "overhead grows with partitions (hot cache, smallest buffer)", _overhead_of("hot"), _rises, ratio_text
    ),
    _Statement(
        "overhead grows with partitions (cold cache, smallest buffer)",
        _overhead_of("cold"),
        _rises,
        ratio_text,
    ),
    _Statement(
        "overhead concerns small buffers",
        lambda m, method: _ends(_by_size(_shortest(_like(m, "none")), method, OVERHEAD)),
        _falls,
        ratio_text,
    ),
    _Statement(
        "without noise the perceived bandwidth is the ordinary one", _against_single, _same, format_bandwidth
    ),
    _Statement(
        "with noise the perceived bandwidth peaks at medium sizes",
        _peak,
        _peak_inside,
        format_bandwidth,
    ),
    _Statement(
        "availability grows with partitions (one late thread, smallest buffer)",
        lambda m, method: _by_partitions(_longest(_like(m, "single", share=0.04)), method, AVAILABILITY, 0),
        _rises,
        labels.percent,
    ),
    _Statement(
        "availability depends on the noise model (largest buffer)", _by_noise, _differ, labels.percent
    ),
    _Statement(
        "availability is smaller for very large buffers (one late thread)",
        lambda m, method: _ends(_by_size(_longest(_like(m, "single", share=0.04)), method, AVAILABILITY)),
        _falls,
        labels.percent,
    ),
    _Statement(
        "more partitions overlap more (smallest buffer)",
        lambda m, method: _by_partitions(_shortest(_like(m, "uniform", share=0.04)), method, EARLY_BIRD, 0),
        _rises,
        labels.percent,
    ),
    _Statement("more noise overlaps more (largest buffer)", _by_share, _rises, labels.percent),
)  # fmt: skip
