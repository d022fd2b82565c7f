"""Node counts: predictions of one exchange with its ranks on different numbers of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data.levels import LEVELS
from earlybird.data.schema import (
    Bytes,
    Estimate,
    Extra,
    NotNegative,
    Rank,
    Ranks,
    Record,
    decode,
)

SCHEMA = "earlybird.node-counts/1"


@dataclass(frozen=True)
class NodeCount(Record):
    """The predicted times of an exchange on `nodes` nodes.

    Attributes
    ----------
    time_s : time of the slowest rank, with its 95 % interval if the profile has replicates.
    intra_node_s, inter_node_s : the parts of that time, which add up to it and to `overlap_s`, if that is
        given.
    level_bytes : bytes of all messages, by level.
    nodes : number of nodes.
    slowest_rank : the lowest rank with the largest time.
    overlap_s : the overlap of the two parts.
    """

    nodes: Ranks
    layout: str
    time_s: Estimate
    intra_node_s: NotNegative
    inter_node_s: NotNegative
    slowest_rank: Rank
    level_bytes: dict[str, Bytes]
    extra: Extra = field(default_factory=dict)
    overlap_s: NotNegative | None = None

    def share(self, level: str) -> float:
        """Return the fraction of all bytes; 0 if there are none."""
        return self.level_bytes.get(level, 0) / max(sum(self.level_bytes.values()), 1)

    @property
    def inter_node_bytes(self) -> int:
        return self.level_bytes.get(LEVELS[-1], 0)


@dataclass(frozen=True)
class NodeCounts(Record):
    """The predictions of one model for an exchange on several numbers of nodes.

    Attributes
    ----------
    counts : one prediction for each number of nodes.
    """

    schema: ClassVar[str] = SCHEMA

    model: str
    ranks: Ranks
    counts: tuple[NodeCount, ...]
    profile_id: str = ""
    pattern_sha256: str = ""
    notes: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.counts:
            raise ValueError("counts is missing or empty; give a number of nodes")

    def fastest_first(self) -> list[NodeCount]:
        """Return the predictions, the smallest time first."""
        return sorted(self.counts, key=lambda count: count.time_s.value)


def node_counts_from_json(value: Mapping[str, Any], where: str = "the node counts") -> NodeCounts:
    """Build NodeCounts from their JSON object; raise InputError if a part is missing."""
    return decode(value, NodeCounts, where, "make it again with `earlybird predict --nodes --json`")
