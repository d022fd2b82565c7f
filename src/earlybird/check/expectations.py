"""Values that nodes must have, however slow all of them are: those of an earlier check, or given ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from earlybird.check.measured import Measured
from earlybird.check.outliers import low_median
from earlybird.check.plan import CheckPlan
from earlybird.check.suspicions import least_effects
from earlybird.data import units
from earlybird.data.baseline import FOLDER as BASELINES
from earlybird.data.baseline import find_baseline
from earlybird.data.check import (
    BANDWIDTH,
    COMPUTATION,
    EXPECTED,
    INCAST,
    LATENCY,
    NODE,
    OUTCAST,
    Check,
    Finding,
    load_check,
    measure_text,
)
from earlybird.data.errors import InputError

_RATES = (BANDWIDTH, INCAST, OUTCAST)
MEASURES = (BANDWIDTH, LATENCY, COMPUTATION, INCAST, OUTCAST)


@dataclass(frozen=True)
class Expected:
    """The expected values, by measure: bytes/s or seconds of every node, or of single hosts.

    `size_bytes`, `cast_bytes`, `nodes` : sizes and number of nodes of the check that the values are from; 0
    for given values.
    """

    source: str = "--expect"
    of_all: Mapping[str, float] = field(default_factory=dict)
    of_hosts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    size_bytes: int = 0
    cast_bytes: int = 0
    nodes: int = 0

    def size_with(self, size_bytes: int | None) -> int | None:
        """Return the size of messages, that of the check if there is one; raise InputError if another size is
        given."""
        if self.size_bytes and size_bytes not in (None, self.size_bytes):
            raise InputError(
                f"--size is {units.format_bytes(size_bytes)} and the check of --expect had messages of "
                f"{units.format_bytes(self.size_bytes)}, so bandwidths would differ for that reason; "
                "omit --size"
            )
        return self.size_bytes or size_bytes

    def findings(
        self, measured: Measured, hosts: Sequence[str], plan: CheckPlan, min_effect: float
    ) -> list[Finding]:
        """Return the nodes that are slower than expected by more than the minimum effect."""
        effect, latency_effect = least_effects(measured, min_effect)
        own = self._comparable(plan)
        values = _of_nodes(
            measured.latency_s, measured.send_s, measured.incast_s, measured.outcast_s, measured.compute_s,
            plan.size_bytes, plan.cast_bytes * (plan.nodes - 1),
        )  # fmt: skip
        found = []
        for node, host in enumerate(hosts):
            for measure in MEASURES:
                value = float(values[measure][node])
                expected = own.of_hosts.get(host, {}).get(measure, own.of_all.get(measure, np.nan))
                least = latency_effect if measure == LATENCY else effect
                slower = expected / value if measure in _RATES else value / expected
                if slower > 1 + least:
                    finding = Finding(NODE, (host,), measure, value, expected, self._cause(measure), EXPECTED)
                    found.append(finding)
        return found

    def _cause(self, measure: str) -> str:
        return f"by {self.source}; what changed on all nodes, or in the network?"

    def _comparable(self, plan: CheckPlan) -> "Expected":
        """Return these values without incasts and outcasts if these were of other messages or another number
        of nodes."""
        if not self.nodes or (self.cast_bytes, self.nodes) == (plan.cast_bytes, plan.nodes):
            return self

        def kept(values: Mapping[str, float]) -> dict[str, float]:
            return {key: value for key, value in values.items() if key not in (INCAST, OUTCAST)}

        of_hosts = {host: kept(values) for host, values in self.of_hosts.items()}
        return replace(self, of_all=kept(self.of_all), of_hosts=of_hosts)


def expected_of_check(check: Check, source: str) -> Expected:
    """Return the values of each host in the check, and for other hosts the median of the nodes that were as
    fast as the others."""

    def known(values: Sequence[float] | np.ndarray) -> np.ndarray:
        array = np.array(values, dtype=float)
        return np.where(array > 0, array, np.nan)

    incast_s, outcast_s, compute_s = (
        known([getattr(node, name) for node in check.nodes])
        for name in ("incast_s", "outcast_s", "compute_s")
    )
    values = _of_nodes(
        known(check.latency_s), known(check.send_s), incast_s, outcast_s, compute_s,
        check.size_bytes, check.bytes_of_cast,
    )  # fmt: skip
    good = [host not in check.bad_hosts() for host in check.hosts]
    of_all = {
        measure: float(np.nanmedian(of_nodes[good]))
        for measure, of_nodes in values.items()
        if not np.isnan(of_nodes[good]).all()
    }
    of_hosts = {
        host: {
            measure: float(of_nodes[k]) for measure, of_nodes in values.items() if not np.isnan(of_nodes[k])
        }
        for k, host in enumerate(check.hosts)
        if good[k]
    }
    nodes = check.measured_nodes or len(check.nodes)
    return Expected(source, of_all, of_hosts, check.size_bytes, check.cast_bytes, nodes)


def parse_figure(text: str) -> tuple[str, float] | None:
    """Return the measure and its value for `bandwidth=11GB/s`; None for a text without a value, such as a
    path."""
    name, equals, value = text.partition("=")
    if not equals or Path(text).exists():
        return None
    if name not in MEASURES:
        raise InputError(
            f"--expect is {text!r}; give {', '.join(f'{one}=VALUE' for one in MEASURES)}, or an earlier "
            "check: check.json, its folder or its name in baselines/"
        )
    what = f"{name} of --expect"
    if units.is_plain_number(value):  # a latency of 2 would be 2 seconds, which every link passes
        example = "11GB/s" if name in _RATES else "2us"
        raise InputError(f"{what} is {value!r} without a unit; give one, such as {example}")
    number = (
        units.parse_bandwidth(value, what) if name in _RATES else units.parse_duration(value, what, "2us")
    )
    if not number > 0:
        raise InputError(f"{what} is {value!r}; give more than 0")
    return name, number


def with_figures(expected: Expected | None, figures: Mapping[str, float]) -> Expected | None:
    """Return `expected` with the given figures for every host, which replace those of a check."""
    if not figures:
        return expected
    said = ", ".join(f"{name} {measure_text(name, value)}" for name, value in figures.items())
    before = expected or Expected(f"--expect {said}")
    of_hosts = {
        host: {key: value for key, value in values.items() if key not in figures}
        for host, values in before.of_hosts.items()
    }
    return replace(before, of_all={**before.of_all, **figures}, of_hosts=of_hosts)


def _of_nodes(
    latency_s: np.ndarray,
    send_s: np.ndarray,
    incast_s: np.ndarray,
    outcast_s: np.ndarray,
    compute_s: np.ndarray,
    size_bytes: int,
    bytes_of_cast: int,
) -> dict[str, np.ndarray]:
    """Return arrays (N,) by measure; NaN where nothing was measured. For links it is the median of a node."""
    return {
        BANDWIDTH: size_bytes / _medians(send_s),
        LATENCY: _medians(latency_s),
        COMPUTATION: compute_s,
        INCAST: bytes_of_cast / incast_s,
        OUTCAST: bytes_of_cast / outcast_s,
    }


def _medians(values: np.ndarray) -> np.ndarray:
    both = np.concatenate([values, values.T], axis=1)
    medians = np.full(len(values), np.nan)
    known = ~np.isnan(both).all(axis=1)
    medians[known] = low_median(both[known], axis=1)
    return medians


def expected_values(texts: Sequence[str]) -> Expected | None:
    """Return the values that `--expect` gives, at most one check and figures; None without any."""
    figures = {}
    checks = []
    for text in texts:
        if (figure := parse_figure(text)) is not None:
            figures[figure[0]] = figure[1]
        else:
            checks.append(text)
    if len(checks) > 1:
        raise InputError(f"--expect names {len(checks)} checks, {checks[0]} and {checks[1]}; give one")
    expected = expected_of_check(*_named_check(checks[0])) if checks else None
    return with_figures(expected, figures)


def _named_check(text: str) -> tuple[Check, str]:
    """Return the check of a file, a folder or a name, and its display name."""
    path = Path(text)
    if path.is_dir():
        path = path / "check.json"
        if not path.exists():
            raise InputError(f"--expect {text} has no check.json; give the folder of a check that completed")
    elif not path.exists():
        path = find_baseline(text, BASELINES)
    return load_check(path), f"the check {text}"
