"""Describes virtual clusters: one line each, a row of a table, and a record for programs."""

from typing import Any

from earlybird.data import units
from earlybird.launch.cluster.state import Cluster

COLUMNS = ("name", "nodes", "rate_bytes_per_s", "tcp_bytes_per_s", "latency_s", "lost_nodes")  # of CSV
HEADER = ("name", "nodes", "rate", "TCP bandwidth", "latency", "state")


def describe(cluster: Cluster) -> str:
    """Return a line of text on a cluster that was started."""
    first, last = cluster.nodes[0].name, cluster.nodes[-1].name
    text = f"{cluster.name} is up: {first} to {last}, links of {_rate(cluster)} each way"
    if not cluster.link:
        return text
    measured = {n: units.format_bandwidth(rate) for n, rate in cluster.link["bandwidth_bytes_per_s"].items()}
    shared = ", ".join(f"{rate} in {n} streams" for n, rate in measured.items() if n != "1")
    expected, incast = (
        units.format_bandwidth(cluster.link[f"{name}_bytes_per_s"]) for name in ("expected", "incast")
    )
    return (
        f"{text}; TCP bandwidth {measured['1']} of {expected} ({shared}; {incast} if all send to one), "
        f"latency {units.format_seconds(cluster.link['latency_s'])}"
    )


def _measured(cluster: Cluster) -> tuple[float | None, float | None]:
    """Return the TCP bandwidth in B/s and latency in s of one link; None if the links were not measured."""
    return cluster.link.get("bandwidth_bytes_per_s", {}).get("1"), cluster.link.get("latency_s")


def cells(cluster: Cluster) -> list[str]:
    """Return the cells of the row of `cluster`, below HEADER."""
    bandwidth, latency_s = _measured(cluster)
    measured = ["not measured", ""]
    if bandwidth is not None and latency_s is not None:
        measured = [units.format_bandwidth(bandwidth), units.format_seconds(latency_s)]
    lost = cluster.lost_nodes()
    status = f"lost {', '.join(lost)}: stop it with down" if lost else "up"
    return [cluster.name, str(len(cluster.nodes)), _rate(cluster), *measured, status]


def _rate(cluster: Cluster) -> str:
    bits = 8 * cluster.rate_bytes_per_s
    return f"{bits / 1e9:g} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:g} Mbit/s"


def record(cluster: Cluster) -> dict[str, Any]:
    """Return the row of `cluster` for CSV."""
    values = (
        cluster.name,
        len(cluster.nodes),
        cluster.rate_bytes_per_s,
        *_measured(cluster),
        cluster.lost_nodes(),
    )
    return dict(zip(COLUMNS, values, strict=True))
