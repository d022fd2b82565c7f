"""What the samples of a check say about every link and node: matrices by sender and receiver."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.check.tournament import opponent
from earlybird.data.run import Sample

# Three quarters of the messages take at least as long: a busy moment does not make a link slow.
QUARTILE = 0.25
_MESSAGES_OF_ITERATION = 2  # that a rank sends: one alone, and one while it receives
_MAX_SEGMENT_BYTES = 1 << 16
_SHARE_OF_DEVICE = 0.25  # of the bytes of the busiest device of a node


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements of N nodes; NaN where nothing was measured.

    Attributes
    ----------
    latency_s, send_s, both_s : (N, N) as in `data.check.Check`.
    sent, sent_again : (N, N) TCP segments that the sender has sent, and those that it had to send again.
    incast_s, outcast_s : (N,) seconds.
    compute_s, compute_cpu_s, slowest_cpu : (N,) for the slowest core the time of the computation, its CPU
        time, and the number of the core.
    clock_offset_s, clock_drift : (N,) relative to the first node.
    clock_error_s, clock_drift_error : half of the round trip; the error of the drift from two such errors.
    facts : facts of each node; empty if they were not collected.
    shares_cores : whether ranks of several nodes share cores: latencies then include the scheduler.
    """

    latency_s: np.ndarray
    send_s: np.ndarray
    both_s: np.ndarray
    sent: np.ndarray
    sent_again: np.ndarray
    incast_s: np.ndarray
    outcast_s: np.ndarray
    compute_s: np.ndarray
    compute_cpu_s: np.ndarray
    slowest_cpu: np.ndarray
    clock_offset_s: np.ndarray
    clock_drift: np.ndarray
    clock_error_s: float
    clock_drift_error: float
    facts: tuple[dict[str, Any], ...]
    shares_cores: bool = False

    @property
    def num_nodes(self) -> int:
        return len(self.latency_s)

    @property
    def lost_share(self) -> np.ndarray:
        """The (N, N) share of the sent segments that was lost."""
        return self.sent_again / np.maximum(self.sent, 1.0)

    def with_load(self, load: float | None) -> "Measured":
        """Return the measurements with this load of others on every node, if it is known: nodes that share a
        machine count each other among the others."""
        if load is None:
            return self
        return replace(self, facts=tuple({**one, "load_of_others": load} for one in self.facts))

    def among(self, nodes: Sequence[int], num_nodes: int) -> "Measured":
        """Return the measurements with these numbers of the nodes, among others without measurements."""
        arrays: dict[str, Any] = {}
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                arrays[name] = _nothing(*[num_nodes] * values.ndim)
                arrays[name][np.ix_(*[list(nodes)] * values.ndim)] = values
        facts: list[dict[str, Any]] = [{} for _ in range(num_nodes)]
        for node, one in zip(nodes, self.facts, strict=False):
            facts[node] = one
        return replace(self, **arrays, facts=tuple(facts))

    def filled_with(self, before: "Measured") -> "Measured":
        """Return this measurement, with the values of an earlier one where this one has none."""
        names = [name for name in vars(self) if isinstance(getattr(self, name), np.ndarray)]
        arrays = {
            name: np.where(np.isnan(getattr(self, name)), getattr(before, name), getattr(self, name))
            for name in names
        }
        return replace(self, **arrays, facts=self.facts or before.facts)


def measured_from(samples: Sequence[Sample], num_nodes: int) -> Measured:
    """Return the measurements from the samples of one launch; missing parts are NaN."""
    matrices = {name: _nothing(num_nodes, num_nodes) for name in ("latency_s", "send_s", "both_s")}
    matrices |= {name: _nothing(num_nodes, num_nodes) for name in ("sent", "sent_again")}
    casts = {"incast": _nothing(num_nodes), "outcast": _nothing(num_nodes)}
    of_nodes: dict[str, Any] = {}
    for sample in samples:
        part = sample.config["part"]
        if part == "pairs":
            _add_round(matrices, sample, num_nodes)
        elif part in casts:
            casts[part][sample.config["root"]] = np.quantile(sample.extra["root_times_s"], QUARTILE)
        else:
            # Clocks are compared before the first point and after the last: at least the timed region apart.
            interval_s = sum(float(np.sum(one.times_s)) for one in samples)
            of_nodes = _nodes(sample, interval_s)
    nothing: dict[str, Any] = {
        name: _nothing(num_nodes)
        for name in ("compute_s", "compute_cpu_s", "slowest_cpu", "clock_offset_s", "clock_drift")
    }
    return Measured(
        **dict[str, Any](matrices), incast_s=casts["incast"], outcast_s=casts["outcast"],
        **(nothing | {"facts": (), "clock_error_s": 0.0, "clock_drift_error": 0.0} | of_nodes),
        shares_cores=any(sample.oversubscribed for sample in samples),
    )  # fmt: skip


def _nothing(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan)


def _add_round(matrices: dict[str, np.ndarray], sample: Sample, num_nodes: int) -> None:
    times_s = np.array(sample.extra["pair_times_s"]).reshape(-1, num_nodes, 3)
    quartiles_s = np.quantile(times_s, QUARTILE, axis=0)
    # Fewer segments than its messages need are those of other traffic: another network carries the messages.
    needed = _MESSAGES_OF_ITERATION * len(times_s) * sample.config["size_bytes"] / _MAX_SEGMENT_BYTES
    for one in range(num_nodes):
        other: int = opponent(one, sample.config["round"], num_nodes)
        if other == one:
            continue
        # Both measure the same round trips.
        matrices["latency_s"][one, other] = (quartiles_s[one][0] + quartiles_s[other][0]) / 2
        matrices["send_s"][one, other] = quartiles_s[one][1]
        # Both wait for both messages, but one of them begins a latency earlier. The shortest, because an MPI
        # may send one message after the other, as Open MPI often does over TCP.
        matrices["both_s"][one, other] = times_s[:, [one, other], 2].max(axis=1).min()
        sent, sent_again = sample.extra["segments"][one] if "segments" in sample.extra else (0, 0)
        if sent > needed:
            matrices["sent"][one, other], matrices["sent_again"][one, other] = sent, sent_again


def _nodes(sample: Sample, clock_interval_s: float) -> dict[str, Any]:
    facts = tuple(sample.extra["facts"])
    error_s = float(sample.extra["clock_round_trip_s"]) / 2
    slowest = [int(np.argmax(one["compute_s"])) for one in facts]

    def of_slowest(key: str) -> np.ndarray:
        return np.array([one[key][k] for one, k in zip(facts, slowest, strict=True)], dtype=float)

    return {
        "compute_s": of_slowest("compute_s"),
        "compute_cpu_s": of_slowest("compute_cpu_s"),
        "slowest_cpu": of_slowest("cpus"),
        "clock_offset_s": np.array(sample.extra["clock_offsets_s"], dtype=float),
        "clock_drift": np.array(sample.extra["clock_drifts"], dtype=float),
        "clock_error_s": error_s,
        "clock_drift_error": 2 * error_s / clock_interval_s,
        "facts": _with_devices(facts),
    }


def _with_devices(facts: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the facts with the network device that carried the messages in place of the counters.

    Among devices that share the messages of a node, that which most nodes use is returned: which of them
    carried more bytes is chance.
    """
    all_carried = [_carried_bytes(one) for one in facts]
    usual = Counter(max(one, key=one.__getitem__) for one in all_carried if one).most_common(1)
    described = []
    for one, carried in zip(facts, all_carried, strict=True):
        kept = {
            key: value for key, value in one.items() if key not in ("device_bytes", "device_bytes_before")
        }
        if carried:
            most = max(carried, key=carried.__getitem__)
            shares = carried.get(usual[0][0], 0.0) >= _SHARE_OF_DEVICE * carried[most]
            kept["device"] = usual[0][0] if shares else most
        described.append(kept)
    return tuple(described)


def _carried_bytes(facts: dict[str, Any]) -> dict[str, float]:
    """Return the bytes that each network device carried between the first point and the last."""
    before, after = facts.get("device_bytes_before", {}), facts.get("device_bytes", {})
    return {
        name: count - before.get(name, 0.0)
        for name, count in after.items()
        if name != "lo" and count > before.get(name, 0.0)
    }
