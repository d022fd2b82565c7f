"""The network of a cluster by name: its addresses, its devices, and what TCP can carry over its links."""

import ipaddress

BRIDGE = "br0"  # the head's device
NODE_DEVICE = "eth0"
_SUBNET = ipaddress.ip_network("10.83.0.0/24")  # private to the cluster's own namespaces: it meets no other
PREFIX_LENGTH = _SUBNET.prefixlen
MAX_NODES = 64

# The largest frame on the wire, and what of it TCP can fill: 1500 less the headers of IP and TCP with
# timestamps.
FRAME_BYTES = 1514
PAYLOAD_BYTES = 1448
CONGESTION_CONTROL = "reno"
# Of each end of a TCP connection; about half of it holds data, the rest is the kernel's.
BUFFER_BYTES = 256 << 10


def subnet() -> str:
    return str(_SUBNET)


def head_address() -> str:
    return str(_SUBNET[-2])


def node_address(node: int) -> str:
    return str(_SUBNET[1 + node])


def payload_bytes_per_s(rate_bytes_per_s: float) -> float:
    """What TCP can carry over frames of 1500 bytes at this rate on the wire."""
    return rate_bytes_per_s * PAYLOAD_BYTES / FRAME_BYTES


def port_name(node: int) -> str:
    """The bridge's end of a node's pair."""
    return f"port{node}"
