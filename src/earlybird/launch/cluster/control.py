"""Bring a cluster up and take it down."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from earlybird.data.errors import EarlybirdError, InputError, WorkError
from earlybird.data.units import size_argument
from earlybird.launch.cluster import network, state
from earlybird.launch.cluster.state import Cluster
from earlybird.machine import namespaces

_UP_LIMIT_S = 60.0
_DOWN_LIMIT_S = 10.0
# Below, a few frames are all that passes in the time of a measurement; above, the kernel's interface ends.
MIN_RATE_BYTES_PER_S = 10e6 / 8
MAX_RATE_BYTES_PER_S = 32e9 / 8

Measure = Callable[[Cluster], dict[str, Any]]


def up(
    name: str,
    num_nodes: int,
    rate_bytes_per_s: float,
    measure: Measure | None = None,
    *,
    send_buffer_bytes: int = network.SEND_BUFFER_BYTES,
) -> Cluster:
    """Start a cluster of `num_nodes` whose links carry `rate_bytes_per_s` on the wire, each way.

    The link measurements of `measure` are kept in the cluster's file. A cluster whose start or measurement
    fails or is interrupted is removed completely.

    Raises InputError if the numbers are invalid, the name is taken or a permission is missing, WorkError if
    the kernel refuses a part of it.
    """
    state.check_name(name)
    if not 2 <= num_nodes <= network.MAX_NODES:
        raise InputError(f"--nodes is {num_nodes}; give 2 to {network.MAX_NODES}")
    if not MIN_RATE_BYTES_PER_S <= rate_bytes_per_s <= MAX_RATE_BYTES_PER_S:
        raise InputError(
            f"--rate is {8 * rate_bytes_per_s:g} bit/s; give 10mbit to 32gbit, such as 200mbit, at which the "
            "link and not the CPU is the limit"
        )
    smallest, largest = network.MIN_SEND_BUFFER_BYTES, network.MAX_SEND_BUFFER_BYTES
    if not smallest <= send_buffer_bytes <= largest:
        raise InputError(
            f"--send-buffer is {send_buffer_bytes} bytes; give {size_argument(smallest)} to "
            f"{size_argument(largest)}"
        )
    mode = namespaces.require_mode()
    lock = state.claim(name)
    try:
        keeper = _start_keeper(name, num_nodes, rate_bytes_per_s, send_buffer_bytes, mode, lock)
    finally:
        os.close(lock)
    try:
        _await_ready(keeper)
        cluster = state.load(name)
        if not os.access(cluster.agent, os.X_OK):
            raise InputError(
                f"{cluster.agent} cannot be executed: /tmp is mounted noexec; MPI reaches the nodes by that "
                "command, so remount /tmp with exec"
            )
        if measure is not None:
            cluster = replace(cluster, link=measure(cluster))
            state.save(cluster)
        return cluster
    except BaseException:
        _take_back(name, keeper)
        raise


def _take_back(name: str, keeper: subprocess.Popen) -> None:
    """End a partly started cluster `name`; return when it has ended."""
    keeper.kill()  # its nodes are killed with it
    keeper.wait()
    with contextlib.suppress(
        EarlybirdError, OSError
    ):  # no file was written yet, and the nodes' numbers are unknown
        _ended(state.load(name))
    state.all_running()  # clears its folder away


def down(name: str) -> None:
    """End the cluster `name` and every process in it; return when they have ended.

    Raises WorkError if some do not end in bounded time.
    """
    cluster = state.find(name)
    for number in (signal.SIGTERM, signal.SIGKILL):  # a keeper that is killed takes its nodes with it
        with contextlib.suppress(ProcessLookupError):
            os.kill(cluster.keeper.pid, number)
        if _ended(cluster):
            state.all_running()  # clears its folder away
            return
    raise WorkError(
        f"processes of the cluster {cluster.name} did not end in {2 * _DOWN_LIMIT_S:g} s; "
        f"look at process {cluster.keeper.pid} and its children, then try again"
    )


def _ended(cluster: Cluster) -> bool:
    """Return whether keeper and nodes end within `_DOWN_LIMIT_S`."""
    end_s = time.monotonic() + _DOWN_LIMIT_S
    while not all(process.ended() for process in (cluster.keeper, *(n.process for n in cluster.nodes))):
        if time.monotonic() > end_s:
            return False
        time.sleep(0.01)
    return True


def _start_keeper(name, num_nodes, rate_bytes_per_s, send_buffer_bytes, mode, lock) -> subprocess.Popen:
    return subprocess.Popen(
        [
            *mode.unshare("net"), sys.executable, "-P", "-m", "earlybird.launch.cluster.keeper", name,
            str(num_nodes), repr(rate_bytes_per_s), str(send_buffer_bytes),
            "user" if mode.user_namespace else "root",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[lock],
        start_new_session=True,  # it outlives the terminal
        cwd="/",
    )  # fmt: skip


def _await_ready(keeper: subprocess.Popen) -> None:
    timer = threading.Timer(_UP_LIMIT_S, keeper.kill)
    timer.daemon = True
    timer.start()
    try:
        if keeper.stdout.readline().strip() == "ready":
            return
        errors = keeper.stderr.read().strip().splitlines()
    finally:
        timer.cancel()
    keeper.wait()
    why = errors[-1] if errors else "its keeper ended without an error message"
    if keeper.returncode == -signal.SIGKILL:
        why = f"it took more than {_UP_LIMIT_S:g} s"
    raise WorkError(f"the cluster could not be started: {why}; run `earlybird doctor`")
