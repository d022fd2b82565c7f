"""Virtual clusters for tests: started under names of their own, ended whatever happens."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from earlybird.machine import namespaces
from earlybird.machine.namespaces import Mode

EARLYBIRD = Path(sys.executable).parent / "earlybird"


def require_cluster() -> None:
    """Skip where no cluster can be made."""
    mode = namespaces.find_mode()
    if isinstance(mode, namespaces.Refusal):
        pytest.skip(f"no virtual cluster here: {mode.cause}; {mode.remedy}")


def new_name() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


@contextlib.contextmanager
def running_cluster(nodes: int, rate: str, *arguments: str) -> Iterator[dict]:
    """The output of `cluster up --json`; afterwards none of the cluster's processes is left."""
    require_cluster()
    name = new_name()
    asked = ["cluster", "up", "--nodes", str(nodes), "--rate", rate, "--name", name, "--json", *arguments]
    result = subprocess.run([EARLYBIRD, *asked], capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    try:
        yield output
    finally:
        subprocess.run([EARLYBIRD, "cluster", "down", "--name", name], capture_output=True, timeout=180)
        assert processes_of(output) == []
        assert not folder_of(name).exists()


def folder_of(name: str) -> Path:
    """Where a cluster of this user keeps its files."""
    return Path(f"/tmp/earlybird-clusters-{os.geteuid()}") / name


def processes_of(output: dict) -> list[int]:
    """The processes that hold a cluster and are still there."""
    pids = [output["keeper"]["pid"], *(node["process"]["pid"] for node in output["nodes"])]
    return [pid for pid in pids if is_running(pid)]


def break_node(output: dict) -> None:
    """Kill node1 outright."""
    os.kill(output["nodes"][1]["process"]["pid"], signal.SIGKILL)


def break_bridge(output: dict) -> None:
    """Take the cluster's bridge away."""
    enter = Mode(output["user_namespace"]).enter(output["keeper"]["pid"], "net")
    script = "from pyroute2 import IPRoute\nwith IPRoute() as route: route.link('del', ifname='br0')"
    subprocess.run([*enter, sys.executable, "-c", script], check=True, timeout=120)


def is_running(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def devices_here() -> list[str]:
    """Network devices of the machine itself, which clusters must not add to."""
    return sorted(os.listdir("/sys/class/net"))
