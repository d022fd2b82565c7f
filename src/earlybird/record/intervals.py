"""How far a simulated time may be off: the interval of a run with changes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any
from zlib import crc32

import numpy as np

from earlybird.data.profile import REUSED, Level, Profile
from earlybird.data.recording import MIN_CORE_WAIT
from earlybird.models.program import Operation
from earlybird.record.collective_costs import UNKNOWN_RANGE, CostRatios, revealed_ratios
from earlybird.record.conditions import Conditions, ideal_s, simulate_run
from earlybird.record.network import moves_alone
from earlybird.record.operations import Operations

# Draws of a profile that are simulated for the interval, and the largest program of which more is simulated
# than the run as recorded and with the changes.
MAX_REPLICATES, MAX_REPLICATED_OPERATIONS = 20, 1_000_000
# Of the run: collectives that cost less need no interval of their own.
MIN_COLLECTIVE_SHARE = 0.05
_INTERVAL = (0.025, 0.975)
_QUANTILE = NormalDist().inv_cdf  # scipy.stats takes long to import
# The standard deviation of a normal distribution, as a multiple of the median of its absolute values.
_DEVIATION_OVER_MEDIAN = 1 / _QUANTILE(0.75)
# Of what messages take.
_MAX_NETWORK_ERROR = 0.5
_NINE_OF_TEN = _QUANTILE(0.95)
# The deviation of `fair` for the slowest rank where messages between nodes share links: nine of ten replays
# are within 12.3 % in docs/results/exchanges.md, and within 1.0 % in docs/results/simulation.md.
_SHARING_DEVIATION, _SIMULATED_SHARING_DEVIATION = 0.123 / _NINE_OF_TEN, 0.010 / _NINE_OF_TEN


def _widening(launches: int) -> float:
    """Return by how much the spread of medians of resampled launches is too narrow: the interval of Student's
    t for so many launches, over that of their resamples."""
    from scipy.stats import t

    if launches < 2:
        return 1.0
    ratio = float(t.ppf(_INTERVAL[1], launches - 1)) / _QUANTILE(_INTERVAL[1])
    return ratio * float(np.sqrt(launches / (launches - 1)))


def _sharing_deviation(profile: Profile) -> float:
    errors = [replay.error["fair"] for replay in profile.replays if "fair" in replay.error]
    if errors:
        return _DEVIATION_OVER_MEDIAN * float(np.median(errors))
    return _SIMULATED_SHARING_DEVIATION if moves_alone(profile) else _SHARING_DEVIATION


def _normal(*seed: Any) -> float:
    return float(np.random.default_rng(crc32(repr(seed).encode())).standard_normal())


def _drawn_level(level: Level, drawn: Level, name: str, k: int, sharing: float) -> Level:
    """Return a level as the k-th draw has it: the deviation of the resampled launches, widened if these are
    few; that of sizes which were left out of the fit, a factor of each protocol; and that of messages which
    share links, a factor of the bandwidth between nodes."""
    if len(drawn.protocols) != len(level.protocols):
        return drawn
    power = _widening(int(level.extra.get("launches") or 0))
    error = _DEVIATION_OVER_MEDIAN * float(level.extra.get("held_out_error") or 0.0)

    def widened(fitted: float, resampled: float) -> float:
        return fitted * (resampled / fitted) ** power if fitted > 0 and resampled > 0 else resampled

    shared = 1.0
    if level.name == "inter_node":
        shared = float(np.exp(sharing * _normal(name, "shared", k)))
    protocols = []
    for number, (item, other) in enumerate(zip(level.protocols, drawn.protocols, strict=True)):
        factor = float(np.exp(error * _normal(name, level.name, number, k)))
        bandwidth = {
            n: widened(rate, other.bandwidth_bytes_per_s.get(n, rate)) / (factor * shared)
            for n, rate in item.bandwidth_bytes_per_s.items()
        }
        latency_s = widened(item.latency_s, other.latency_s) * factor
        protocols.append(replace(item, latency_s=latency_s, bandwidth_bytes_per_s=bandwidth))
    return replace(level, protocols=tuple(protocols))


def _drawn_profile(profile: Profile, name: str, k: int, sharing: float) -> Profile:
    levels = profile.replicates[k].levels if k < len(profile.replicates) else {}
    return replace(
        profile,
        levels={
            key: _drawn_level(level, levels.get(key, level), name, k, sharing)
            for key, level in profile.levels.items()
        },
    )


def _drawn(given: Conditions, k: int, sharing: float) -> Conditions:
    """Return the conditions with the k-th draw of their profile, the same one with and without parameters
    that are set, and of how many of the buffers inside a node caches hold."""
    name = given.measured.id
    profile, measured = (_drawn_profile(of, name, k, sharing) for of in (given.profile, given.measured))
    reuse = given.reuse * float(np.random.default_rng(k).random())
    return replace(
        given, profile=profile, measured=measured, fitted=given.measured, reuse=reuse, priced=None
    )  # fmt: skip


def _is_uncertain(profile: Profile) -> bool:
    return (
        bool(profile.replicates)
        or "inter_node" in profile.levels
        or any(
            level.extra.get(key) for level in profile.levels.values() for key in ("held_out_error", REUSED)
        )
    )


def _drawn_times_s(operations: Operations, given: Conditions, sharing: float = 0.0) -> np.ndarray:
    """Return the simulated seconds with each draw of the profile."""
    return np.array(
        [simulate_run(operations, _drawn(given, k, sharing))[1].end_of_run_s for k in range(MAX_REPLICATES)]
    )


# Several changes of one program are compared with the same run.
_drawn_times_before_s = lru_cache(maxsize=1)(_drawn_times_s)


def _spread(
    operations: Operations, before: Conditions, simulated: Operations, after: Conditions, ratio: float
) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of both times over draws of the profiles, relative to `ratio`; 1
    and 1 if nothing is known of their error, or if the simulations would take long."""
    is_uncertain = _is_uncertain(before.profile) or _is_uncertain(after.profile)
    if not is_uncertain or len(operations.operation) > MAX_REPLICATED_OPERATIONS:
        return 1.0, 1.0
    sharing = 0.0
    if after.layout.num_ranks > 2:
        # As recorded it is part of the known error, which a run shares less the more it changes.
        sharing = _sharing_deviation(after.measured) * (1 - min(ratio, 1 / ratio))
    before_s = _drawn_times_before_s(operations, before)
    after_s = _drawn_times_s(simulated, after, sharing)
    low, high = np.quantile(after_s / before_s / ratio, _INTERVAL).tolist()
    return min(low, 1.0), max(high, 1.0)


def collective_cost_share(operations: Operations, chosen: np.ndarray) -> float:
    """Return the cost of the collectives that are chosen, without their waiting, as a part of the run
    of all ranks."""
    is_collective = np.array([bool(name) for name in operations.collective], bool) & chosen
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    enters = enters[is_collective[operations.argument[enters]]]
    run_s = operations.recorded_s * operations.size
    return float(operations.own_s[enters].sum()) / run_s if run_s else 0.0


def _with_costs(
    operations: Operations, simulated: Operations, given: Conditions, ratios: CostRatios, time_s: float,
    spread: tuple[float, float],
) -> tuple[float, float]:  # fmt: skip
    """Return the spread of a simulated time with another network: collectives that take a part of the run may
    cost what the ends of their ratios say, and those of which nothing is known nothing or twice as much."""
    is_exact = (ratios.low == ratios.value) & (ratios.high == ratios.value)
    shares = [collective_cost_share(of, ~is_exact) for of in (operations, simulated)]
    if not time_s or max(shares) < MIN_COLLECTIVE_SHARE:
        return spread
    enters = np.flatnonzero(simulated.operation == Operation.ENTER)
    of = simulated.argument[enters]
    low, high = spread
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = (
            np.nan_to_num(ratios.low / ratios.value, nan=UNKNOWN_RANGE[0]),
            np.nan_to_num(ratios.high / ratios.value, nan=UNKNOWN_RANGE[1]),
        )
    for end in ends:
        seconds = np.array(given.compute_s, float)
        seconds[enters] *= end[of]
        ratio = simulate_run(simulated, replace(given, compute_s=seconds))[1].end_of_run_s / time_s
        low, high = min(low, spread[0] * ratio), max(high, spread[1] * ratio)
    return low, high


def _computes_otherwise(operations: Operations, simulated: Operations) -> bool:
    """Return whether ranks compute for another time between the same operations."""
    if len(operations.operation) != len(simulated.operation):
        return False
    is_compute = operations.operation == Operation.COMPUTE
    return not np.array_equal(operations.own_s[is_compute], simulated.own_s[is_compute])


def has_other_network(before: Conditions, after: Conditions) -> bool:
    return after.profile is not before.profile or after.layout is not before.layout


def interval_s(
    operations: Operations, before: Conditions, before_s: float, simulated: Operations, after: Conditions,
    after_s: float, ratios: CostRatios, core_wait_share: float | None,
) -> tuple[float, float]:  # fmt: skip
    """Return the interval of a simulated time with changes.

    The error of the simulation as recorded may be that of messages: it grows with their part of the run.

    Parameters
    ----------
    operations, before, before_s : the run as recorded, and its simulated time.
    simulated, after, after_s : what is simulated with the changes.
    ratios : by how much longer collectives take.
    core_wait_share : of the recorded run in which ranks waited for cores.
    """
    spread = (1.0, 1.0)
    is_changed = before_s > 0 and after_s > 0 and after is not before
    if is_changed:
        spread = _spread(operations, before, simulated, after, after_s / before_s)
    if not has_other_network(before, after) and _computes_otherwise(operations, simulated):
        ratios = revealed_ratios(operations, before)
        spread = _with_costs(operations, simulated, after, ratios, after_s, spread)
    elif has_other_network(before, after):
        spread = _with_costs(operations, simulated, after, ratios, after_s, spread)
    if after is not before and after_s == before_s and spread == (1.0, 1.0):
        return after_s, after_s  # the changes change nothing
    error = error_of(operations, before_s)
    is_small = len(operations.operation) <= MAX_REPLICATED_OPERATIONS
    if error and is_changed and is_small:
        shares = (network_share(operations, before), network_share(simulated, after))
        error = max(error, min(error / shares[0], _MAX_NETWORK_ERROR) * shares[1] if shares[0] else 0.0)
    return widened(after_s, spread, error, core_wait_share)


def network_share(operations: Operations, given: Conditions) -> float:
    """Return the part of the simulated run that it would not take on an ideal network."""
    program, run = simulate_run(operations, given)
    run_s = run.end_of_run_s
    return max(1 - ideal_s(operations, program) / run_s, 0.0) if run_s else 0.0


def error_of(operations: Operations, as_recorded_s: float) -> float:
    return abs(as_recorded_s / operations.recorded_s - 1) if operations.recorded_s else 0.0


def widened(
    time_s: float, spread: Sequence[float], error: float, core_wait_share: float | None
) -> tuple[float, float]:
    """Return an interval less and plus the error of the simulation as recorded. Where ranks waited for cores,
    a change may end all of that, or double it."""
    low_s, high_s = time_s * max(spread[0] - error, 0.0), time_s * (spread[1] + error)
    share = core_wait_share or 0.0
    return (low_s * (1 - share), high_s * (1 + share)) if share >= MIN_CORE_WAIT else (low_s, high_s)
