"""Message costs for libearlybird, EARLYBIRD_COSTS: from a profile."""

from collections.abc import Mapping
from dataclasses import dataclass

from earlybird.data.errors import InputError
from earlybird.data.profile import Level, Profile

# The levels of a profile that belong to each network.
NETWORKS = {"intra_node": ("intra_socket", "inter_socket"), "inter_node": ("inter_node",)}
# About the smallest segment of a default segmentation; the more expensive level is determined at this size.
_TYPICAL_BYTES = 1 << 16
MAX_PROTOCOLS = 16  # EB_COST_MAX_PROTOCOLS of native/partitioned/segmentation/cost.h


@dataclass(frozen=True)
class ProtocolCost:
    """The cost of one protocol: seconds per message, seconds per further message, bytes per second of one
    pair."""

    min_bytes: int
    latency_s: float
    overhead_s: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class MessageCosts:
    """The protocols of each network, `intra_node` and `inter_node`; one may be absent.

    `levels` gives the profile level of each network's costs.
    """

    networks: Mapping[str, tuple[ProtocolCost, ...]]
    levels: Mapping[str, str]

    def to_text(self) -> str:
        """Return the costs as settings: `intra_node_protocols=MIN:LATENCY_S:OVERHEAD_S:BANDWIDTH,...
        inter_node_protocols=...`."""
        return " ".join(
            f"{network}_protocols=" + ",".join(map(_entry, protocols))
            for network, protocols in self.networks.items()
        )

    def describe(self) -> str:
        """Return the source of each number."""
        sources = " and ".join(
            f"{network.replace('_', '-')} of {self.levels[network]}" for network in self.networks
        )
        return f"{sources}; each further message is assumed to cost its latency"


def costs_of_profile(profile: Profile) -> MessageCosts:
    """Return the costs of a single pair in `profile`; within a node, the costs of the more expensive level.

    Raise InputError if a level has more protocols than libearlybird supports.

    A further message costs `overhead_s` = `latency_s`, because tau of the models is per message.
    """
    networks, levels = {}, {}
    for network, names in NETWORKS.items():
        present = [profile.levels[name] for name in names if name in profile.levels]
        if present:
            level = max(present, key=_typical_cost_s)
            networks[network] = _protocols_of(level)
            levels[network] = level.name
    return MessageCosts(networks, levels)


def _entry(protocol: ProtocolCost) -> str:
    # Nine digits: no measurement has more, and the library reads 1023 characters for a network.
    numbers = protocol.latency_s, protocol.overhead_s, protocol.bandwidth_bytes_per_s
    return ":".join([str(protocol.min_bytes), *(f"{number:.9g}" for number in numbers)])


def _protocols_of(level: Level) -> tuple[ProtocolCost, ...]:
    costs: list[ProtocolCost] = []
    for protocol in level.protocols:
        counts, bandwidth = protocol.bandwidth_table()
        # A table without N = 1 begins with the fewest processes that were measured; each gets its share.
        one = float(bandwidth[0] / counts[0])
        cost = ProtocolCost(protocol.min_bytes, protocol.latency_s, protocol.latency_s, one)
        # `fit` divides a protocol at the size from which senders wait, which does not change its cost.
        if not costs or (cost.latency_s, one) != (costs[-1].latency_s, costs[-1].bandwidth_bytes_per_s):
            costs.append(cost)
    if len(costs) > MAX_PROTOCOLS:
        raise InputError(
            f"the level {level.name} has {len(costs)} protocols and libearlybird supports {MAX_PROTOCOLS}; "
            "give a profile with fewer"
        )
    return tuple(costs)


def _typical_cost_s(level: Level) -> float:
    cost = [cost for cost in _protocols_of(level) if cost.min_bytes <= _TYPICAL_BYTES][-1]
    return cost.latency_s + _TYPICAL_BYTES / cost.bandwidth_bytes_per_s
