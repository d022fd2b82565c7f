"""The switches between simulated nodes: their links, and the links that a message passes."""

from dataclasses import dataclass
from typing import NamedTuple

from earlybird.data.schema import Bandwidth, NotNegative, Ranks, Record

MAX_LINKS = 10**6


class Link(NamedTuple):
    """A link between two switches; each direction has the whole bandwidth, in bytes/s, by default the
    bandwidth of a NIC."""

    name: str
    bandwidth_bytes_per_s: float | None


class Hop(NamedTuple):
    """The passage of a link, from its first switch to its second (UP) or back."""

    link: str
    up: bool


@dataclass(frozen=True)
class FatTree(Record):
    """A network with two levels of switches: every leaf switch has one link to each of the spine switches.

    Attributes
    ----------
    nodes_per_leaf : divides `nodes`; consecutive nodes have the same leaf switch.
    uplinks_per_leaf : number of spine switches; each leaf switch has one link to each of them. A message to
        node d goes over spine switch d modulo this number (D-mod-k). As many uplinks as `nodes_per_leaf` give
        full bisection, half as many a network tapered 2:1.
    bandwidth_bytes_per_s : bandwidth of each direction of an uplink; by default the bandwidth of a node's
        NIC.
    hop_latency_s : latency added for each link between switches.
    """

    nodes_per_leaf: Ranks
    uplinks_per_leaf: Ranks
    bandwidth_bytes_per_s: Bandwidth | None = None
    hop_latency_s: NotNegative = 0.0

    def check(self, nodes: int) -> None:
        """Raise ValueError unless `nodes_per_leaf` divides `nodes` and the number of links is allowed."""
        if nodes % self.nodes_per_leaf:
            raise ValueError(
                f"the fat tree has {self.nodes_per_leaf} nodes per leaf switch, which does not divide the "
                f"{nodes} nodes; give a divisor"
            )
        _check_number(nodes // self.nodes_per_leaf * self.uplinks_per_leaf)

    def links(self, nodes: int) -> list[Link]:
        return [
            Link(self._uplink(leaf, spine), self.bandwidth_bytes_per_s)
            for leaf in range(nodes // self.nodes_per_leaf)
            for spine in range(self.uplinks_per_leaf)
        ]

    def route(self, src: int, dst: int) -> list[Hop]:
        """Return the links between switches from node `src` to node `dst`."""
        first, last = src // self.nodes_per_leaf, dst // self.nodes_per_leaf
        spine = dst % self.uplinks_per_leaf
        if first == last:
            return []
        return [Hop(self._uplink(first, spine), True), Hop(self._uplink(last, spine), False)]

    def _uplink(self, leaf: int, spine: int) -> str:
        return f"leaf{leaf}-spine{spine}"


@dataclass(frozen=True)
class Dragonfly(Record):
    """A network of groups of routers: the routers of a group are linked all to all, and so are the groups.

    Attributes
    ----------
    groups, routers_per_group, nodes_per_router : numbers whose product is the number of nodes; consecutive
        nodes have the same router, consecutive routers the same group.
    links_between_groups : number of parallel links of each pair of groups, dealt to the routers of a group in
        turn. A message to node d takes link d modulo this number, with at most one local link before and one
        after it: a minimal route.
    local_bandwidth_bytes_per_s, global_bandwidth_bytes_per_s : bandwidth of each direction of a link within
        and between groups; by default the bandwidth of a node's NIC.
    hop_latency_s : latency added for each link between routers.
    """

    groups: Ranks
    routers_per_group: Ranks
    nodes_per_router: Ranks
    links_between_groups: Ranks = 1
    local_bandwidth_bytes_per_s: Bandwidth | None = None
    global_bandwidth_bytes_per_s: Bandwidth | None = None
    hop_latency_s: NotNegative = 0.0

    def check(self, nodes: int) -> None:
        """Raise ValueError unless the routers have exactly `nodes` nodes and the number of links is
        allowed."""
        product = self.groups * self.routers_per_group * self.nodes_per_router
        if product != nodes:
            raise ValueError(
                f"the dragonfly has {self.groups} groups of {self.routers_per_group} routers with "
                f"{self.nodes_per_router} nodes each, which is {product}, and the machine has {nodes} nodes; "
                "give numbers whose product is that"
            )
        within = self.groups * self.routers_per_group * (self.routers_per_group - 1) // 2
        _check_number(within + self.groups * (self.groups - 1) // 2 * self.links_between_groups)

    def links(self, nodes: int) -> list[Link]:
        groups, routers = range(self.groups), range(self.routers_per_group)
        local = [
            Link(self._local(group, one, other), self.local_bandwidth_bytes_per_s)
            for group in groups for one in routers for other in routers if one < other
        ]  # fmt: skip
        return local + [
            Link(self._global(one, other, number), self.global_bandwidth_bytes_per_s)
            for one in groups for other in groups if one < other
            for number in range(self.links_between_groups)
        ]  # fmt: skip

    def route(self, src: int, dst: int) -> list[Hop]:
        """Return the links between routers from node `src` to node `dst`."""
        (first, start), (last, end) = self._router(src), self._router(dst)
        if first == last:
            return self._within(first, start, end)
        number = dst % self.links_between_groups
        return [
            *self._within(first, start, self._gateway(first, last, number)),
            Hop(self._global(min(first, last), max(first, last), number), first < last),
            *self._within(last, self._gateway(last, first, number), end),
        ]

    def _router(self, node: int) -> tuple[int, int]:
        """Return the group of a node, and its router in the group."""
        return divmod(node // self.nodes_per_router, self.routers_per_group)

    def _gateway(self, group: int, other: int, number: int) -> int:
        """Return the router of `group` that has a link to the `other` group."""
        port = (other - group - 1) % self.groups * self.links_between_groups + number
        return port % self.routers_per_group

    def _within(self, group: int, start: int, end: int) -> list[Hop]:
        if start == end:
            return []
        return [Hop(self._local(group, min(start, end), max(start, end)), start < end)]

    def _local(self, group: int, one: int, other: int) -> str:
        return f"group{group}-router{one}-router{other}"

    def _global(self, one: int, other: int, number: int) -> str:
        return f"group{one}-group{other}-link{number}"


def _check_number(links: int) -> None:
    if links > MAX_LINKS:
        raise ValueError(f"it has {links} links between switches; give at most {MAX_LINKS}")
