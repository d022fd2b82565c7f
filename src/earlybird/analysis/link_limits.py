"""Whether a virtual link, and not the shared cores, was the bottleneck of a measurement."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from earlybird.data.kernels import EXCHANGE
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample
from earlybird.data.units import number_or_none

# A sample is link-limited if its bytes keep the link busy for at least this fraction of its time.
LIMIT_SHARE = 0.9
# For exchanges: even with fast cores, an exchange rarely keeps its busiest link busy all the time.
EXCHANGE_LIMIT_SHARE = 0.75


def limited_samples(
    samples: Iterable[Sample], launches: Iterable[Mapping[str, Any]], patterns: Iterable[Pattern]
) -> list[Sample]:
    """Return the samples of a run with more ranks than cores whose bottleneck was the link. `patterns` are
    the known patterns of exchanges."""
    by_id = {str(launch.get("id")): launch for launch in launches}
    by_digest = {pattern.sha256(): pattern for pattern in patterns}
    return [
        sample
        for sample in samples
        if sample.oversubscribed and _is_limited(sample, by_id.get(sample.launch, {}), by_digest)
    ]


def _is_limited(sample: Sample, launch: Mapping[str, Any], patterns: Mapping[str, Pattern]) -> bool:
    if sample.kernel != EXCHANGE.name:
        return _link_share(sample, _link_bytes_per_s(launch)) >= LIMIT_SHARE
    pattern = patterns.get(str(sample.config.get("pattern_sha256")))
    busiest = exchange_share(pattern, launch, sample.median_s())
    return busiest is not None and busiest[1] >= EXCHANGE_LIMIT_SHARE


def _link_bytes_per_s(launch: Mapping[str, Any]) -> float | None:
    """Return the TCP bandwidth of each link of the launch; None except on virtual clusters."""
    link = launch.get("link") or launch.get("link_at_start")
    return number_or_none(link.get("expected_bytes_per_s")) or None if isinstance(link, Mapping) else None


def _link_share(sample: Sample, rate: float | None) -> float:
    """Return the fraction of its time for which a sample between two nodes keeps a link busy."""
    size_bytes = number_or_none(sample.config.get("size_bytes"))
    count = number_or_none(sample.config.get("competitors", 1))
    if rate is None or sample.config.get("level") != "inter_node" or not size_bytes or not count:
        return 0.0
    return count * size_bytes / rate / max(sample.median_s(), 1e-12)


def exchange_share(
    pattern: Pattern | None, launch: Mapping[str, Any] | None, time_s: float
) -> tuple[int, float] | None:
    """Return the node that sends or receives the most, and the fraction of `time_s` for which its link is
    busy; None if nodes or links are unknown."""
    rate = _link_bytes_per_s(launch) if launch else None
    node = {place.get("rank"): place.get("node") for place in (launch or {}).get("placement") or ()}
    if pattern is None or rate is None or not time_s > 0 or None in node.values():
        return None
    if not set(range(pattern.num_ranks_named)) <= node.keys():
        return None
    of_rank = np.array([node[rank] for rank in range(pattern.num_ranks_named)], dtype=np.int64)
    src, dst = of_rank[pattern.src], of_rank[pattern.dst]
    across = src != dst
    if not across.any():
        return None
    ends = (np.bincount(end[across], pattern.bytes[across]) for end in (src, dst))
    busiest = max(ends, key=np.max)
    return int(busiest.argmax()), float(busiest.max()) / rate / time_s
