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
# Of the two ends of a TCP connection; about half of each holds data, the rest is the kernel's. By default up
# to 2 MB leave while the processor does other work, as from a network card that reads memory itself. Little
# is in flight, so that connections share a link evenly.
SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES = 4 << 20, 256 << 10
MIN_SEND_BUFFER_BYTES, MAX_SEND_BUFFER_BYTES = 64 << 10, 64 << 20


def subnet() -> str:
    return str(_SUBNET)


def head_address() -> str:
    return str(_SUBNET[-2])


def node_address(node: int) -> str:
    return str(_SUBNET[1 + node])


def payload_bytes_per_s(rate_bytes_per_s: float) -> float:
    """Return the rate that TCP can carry over frames of 1500 bytes at this rate on the wire."""
    return rate_bytes_per_s * PAYLOAD_BYTES / FRAME_BYTES


def port_name(node: int) -> str:
    """Return the name of the bridge's end of a node's pair."""
    return f"port{node}"
