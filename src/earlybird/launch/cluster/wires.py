"""Makes the wires of a cluster: one bridge, a pair of devices to every node, their rate limited in both
directions."""

from collections.abc import Sequence

from pyroute2 import IPRoute

from earlybird.launch.cluster import network

# What may leave at once after a pause: free bandwidth that would hide the early-bird effect, so as little as
# the rate can be kept with. With 50 us, acknowledgements among data took a quarter of the bandwidth.
_MIN_BURST_BYTES = 2 * network.FRAME_BYTES
_BURST_S = 200e-6
# The queue of a link: all that 512 connections can have in flight, so that no packet is dropped, as in
# networks of large machines.
_QUEUE_BYTES = 512 * network.RECEIVE_BUFFER_BYTES


def make_bridge() -> None:
    """Create the loopback device and the bridge with the head's address in the head's network namespace."""
    with IPRoute() as route:
        route.link("set", index=_index(route, "lo"), state="up")
        route.link("add", ifname=network.BRIDGE, kind="bridge")
        bridge = _index(route, network.BRIDGE)
        route.addr("add", index=bridge, address=network.head_address(), prefixlen=network.PREFIX_LENGTH)
        route.link("set", index=bridge, state="up")


def connect_nodes(pids: Sequence[int], rate_bytes_per_s: float) -> None:
    """Create a device pair between the bridge and every node, whose network namespace is that of its process
    in `pids`."""
    with IPRoute() as route:
        bridge = _index(route, network.BRIDGE)
        for node, pid in enumerate(pids):
            port = network.port_name(node)
            route.link(
                "add", ifname=port, kind="veth", peer={"ifname": network.NODE_DEVICE, "net_ns_pid": pid}
            )
            index = _index(route, port)
            # What this end sends is what the node receives: without it, many senders would flood one
            # receiver.
            _shape(route, index, rate_bytes_per_s)
            route.link("set", index=index, master=bridge, state="up")
    for node, pid in enumerate(pids):
        with IPRoute(netns=f"/proc/{pid}/ns/net") as route:
            route.link("set", index=_index(route, "lo"), state="up")
            index = _index(route, network.NODE_DEVICE)
            route.addr(
                "add", index=index, address=network.node_address(node), prefixlen=network.PREFIX_LENGTH
            )
            _shape(route, index, rate_bytes_per_s)
            route.link("set", index=index, state="up")


def _shape(route: IPRoute, index: int, rate_bytes_per_s: float) -> None:
    burst_bytes = max(_MIN_BURST_BYTES, round(rate_bytes_per_s * _BURST_S))
    # Frames travel in bundles that fit the bucket. Larger ones would be taken apart: at 1 Gbit/s four nodes
    # then kept two cores so busy that their links carried half of what they should.
    route.link("set", index=index, gso_max_size=min(65536, max(network.FRAME_BYTES, burst_bytes // 2)))
    route.tc(
        "add",
        "tbf",
        index=index,
        handle="1:",
        rate=f"{round(8 * rate_bytes_per_s)}bit",
        burst=burst_bytes,
        limit=_QUEUE_BYTES,
    )


def _index(route: IPRoute, name: str) -> int:
    return route.link_lookup(ifname=name)[0]
