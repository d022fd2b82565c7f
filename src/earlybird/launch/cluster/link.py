"""Measures a cluster's network over plain TCP, without MPI, and compares it with the requested rate."""

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from earlybird.data.errors import WorkError
from earlybird.data.units import format_bandwidth
from earlybird.launch.cluster import network
from earlybird.launch.cluster.state import Cluster

TOLERANCE = 0.05
STREAM_COUNTS = (1, 2, 4)
_STREAM_S = 0.6
_LIMIT_S = 20.0
# Of a large cluster as many nodes, evenly spread, represent all: more would measure the cores.
_MAX_NODES = 8


def measure_link(cluster: Cluster, counts: Sequence[int] = STREAM_COUNTS) -> dict[str, Any]:
    """Measure rate, latency and BW(N) of the links of at most 8 nodes; return {} for one node, which has no
    link to use.

    Parameters
    ----------
    counts : the N of BW(N), streams that every node receives at once.

    Returns
    -------
    expected_bytes_per_s : rate that TCP can carry at the requested rate on the wire.
    bandwidth_bytes_per_s : N -> what a node receives while every node sends N streams to the next and
        receives as many, the median over nodes; slowest_node_bytes_per_s : the same of the slowest node.
    incast_bytes_per_s : rate that node0 receives while all others send to it.
    latency_s : half the round trip of one byte.
    matches : whether the least N of every node and the incast are within `TOLERANCE` of what was expected.

    Raises
    ------
    WorkError : a node does not answer.
    """
    import numpy as np

    if len(cluster.nodes) < 2:
        return {}
    chosen = np.linspace(0, len(cluster.nodes) - 1, min(len(cluster.nodes), _MAX_NODES)).astype(int)
    cluster = replace(cluster, nodes=tuple(cluster.nodes[k] for k in chosen))
    expected = network.payload_bytes_per_s(cluster.rate_bytes_per_s)
    rings = {n: _ring(cluster, n) for n in counts}
    incast = _incast(cluster)
    judged = np.array([*rings[min(counts)], incast])
    return {
        "expected_bytes_per_s": expected,
        "bandwidth_bytes_per_s": {str(n): float(np.median(received)) for n, received in rings.items()},
        "slowest_node_bytes_per_s": {str(n): float(np.min(received)) for n, received in rings.items()},
        "incast_bytes_per_s": incast,
        "latency_s": _latency_s(cluster),
        "matches": bool(np.all(np.abs(judged / expected - 1) <= TOLERANCE)),
    }


def describe_mismatch(link: dict[str, Any]) -> str | None:
    """Return a sentence if the links do not carry the requested rate; None if they do."""
    if link.get("matches", True):
        return None
    expected, incast = link["expected_bytes_per_s"], link["incast_bytes_per_s"]
    least_n = min(link["slowest_node_bytes_per_s"], key=int)
    slowest = min(link["slowest_node_bytes_per_s"][least_n], incast)
    asked = f"the links should carry {format_bandwidth(expected)}"
    if slowest < expected * (1 - TOLERANCE):
        return (
            f"{asked} and TCP got {format_bandwidth(slowest)} through the slowest: this machine's cores are "
            "the limit or busy with other work; choose a lower --rate, or wait"
        )
    fastest = max(link["bandwidth_bytes_per_s"][least_n], incast)
    return (
        f"{asked} and let {format_bandwidth(fastest)} pass: the rate limit fails; end the cluster with "
        "`earlybird cluster down` and start it again"
    )


def _ring(cluster: Cluster, streams: int) -> list[float]:
    """Return the bytes per second that each node receives while every node sends `streams` streams to the
    next."""
    addresses = [node.address for node in cluster.nodes]
    targets = {k: [addresses[(k + 1) % len(addresses)]] * streams for k in range(len(addresses))}
    return _stream(cluster, targets, dict.fromkeys(targets, streams))


def _incast(cluster: Cluster) -> float:
    """Return the bytes per second that the first node receives while all others send to it."""
    others = range(1, len(cluster.nodes))
    targets = {0: []} | {k: [cluster.nodes[0].address] for k in others}
    return _stream(cluster, targets, {0: len(others)} | dict.fromkeys(others, 0))[0]


def _stream(cluster: Cluster, targets: dict[int, list[str]], incoming: dict[int, int]) -> list[float]:
    asked = {
        k: {"mode": "stream", "targets": targets[k], "incoming": incoming[k], "for_s": _STREAM_S}
        for k in targets
    }
    return [answer["received_bytes_per_s"] for answer in _run_workers(cluster, asked)]


def _latency_s(cluster: Cluster) -> float:
    address = cluster.nodes[1].address
    answers = _run_workers(cluster, {0: {"mode": "ping", "address": address}, 1: {"mode": "pong"}})
    return answers[0]["latency_s"]


def _run_workers(cluster: Cluster, asked: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Run one worker (`link_worker.py`) on each node of `asked`; they begin when all of them listen."""
    command = [sys.executable, "-P", "-m", "earlybird.launch.cluster.link_worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    workers = {
        k: subprocess.Popen([*cluster.node_arguments(cluster.nodes[k]), *command], **pipes) for k in asked
    }
    timer = threading.Timer(_LIMIT_S, lambda: [worker.kill() for worker in workers.values()])
    timer.daemon = True
    timer.start()
    try:
        for k, worker in workers.items():
            _send(worker, asked[k])
        ports = {cluster.nodes[k].address: _heard(worker)["port"] for k, worker in workers.items()}
        for worker in workers.values():
            _send(worker, ports)
        return [_heard(worker) for worker in workers.values()]
    finally:
        timer.cancel()
        for worker in workers.values():
            worker.kill()
        for worker in workers.values():
            worker.communicate()


def _send(worker: subprocess.Popen, message: dict[str, Any]) -> None:
    try:
        worker.stdin.write(json.dumps(message) + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        _refuse(worker)


def _heard(worker: subprocess.Popen) -> dict[str, Any]:
    line = worker.stdout.readline()
    if not line:
        _refuse(worker)
    return json.loads(line)


def _refuse(worker: subprocess.Popen) -> None:
    worker.kill()
    errors = worker.stderr.read().strip().splitlines()
    raise WorkError(
        f"the cluster's links cannot be measured ({errors[-1] if errors else 'a node does not answer'}); "
        "look at `earlybird cluster list`, end the cluster with `earlybird cluster down` and start it again"
    )
