"""`earlybird cluster` as a user types it: nodes and links, what ends them, and what is left (nothing)."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from earlybird.data.errors import WorkError
from earlybird.launch.cluster import control, link, network, state
from tests.cluster import (
    EARLYBIRD,
    break_bridge,
    break_node,
    devices_here,
    folder_of,
    is_running,
    new_name,
    processes_of,
    require_cluster,
    running_cluster,
)


@pytest.fixture(scope="module")
def two_nodes():
    with running_cluster(2, "100mbit", "--no-check") as told:
        yield told


@pytest.fixture(scope="module")
def run_on():
    def run(told, node, *command: str) -> str:
        arguments = ["cluster", "run", "--name", told["name"], node, "--", *command]
        result = subprocess.run([EARLYBIRD, *arguments], capture_output=True, text=True, timeout=180)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return run


def wait_until(condition, limit_s: float = 60.0) -> bool:
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


def test_every_node_has_a_name_processes_shared_memory_and_address_of_its_own(two_nodes, run_on):
    kinds = ("net", "uts", "ipc", "pid", "mnt")
    places = " ".join(f"/proc/self/ns/{kind}" for kind in kinds)
    # Only what runs in the node is seen there, its first process first.
    script = f"hostname; ls /proc | grep -c '^[0-9]'; readlink {places}; ls /dev/shm; cat /proc/net/fib_trie"
    seen = [
        run_on(two_nodes, node, "sh", "-c", before + script).splitlines()
        for node, before in (("0", "touch /dev/shm/mine; "), ("node1", ""))
    ]
    assert [lines[0] for lines in seen] == ["node0", "node1"]
    assert all(int(lines[1]) < 8 for lines in seen)
    for k, kind in enumerate(kinds, start=2):
        assert len({lines[k] for lines in seen} | {os.readlink(f"/proc/self/ns/{kind}")}) == 3
    rest = [lines[2 + len(kinds) :] for lines in seen]
    assert "mine" in rest[0] and "mine" not in rest[1] and not Path("/dev/shm/mine").exists()
    for node, lines in zip(two_nodes["nodes"], rest, strict=True):
        assert node["address"] in "\n".join(lines)


def test_tcp_in_a_node_does_not_use_the_settings_of_the_machine(two_nodes, run_on):
    settings = [
        "tcp_congestion_control", "tcp_slow_start_after_idle", "tcp_moderate_rcvbuf", "tcp_rmem", "tcp_wmem",
    ]  # fmt: skip
    paths = [f"/proc/sys/net/ipv4/{name}" for name in settings]
    buffers = [f"4096\t{size}\t{size}" for size in (network.RECEIVE_BUFFER_BYTES, network.SEND_BUFFER_BYTES)]
    for node in ("node0", "node1"):
        assert run_on(two_nodes, node, "cat", *paths).splitlines() == ["reno", "0", "0", *buffers]
    # The machine keeps its own: no machine has such buffers.
    assert Path(paths[-1]).read_text().strip() != buffers[-1]


def test_a_command_on_a_node_begins_where_the_person_stands_and_ends_with_its_own_status(two_nodes, tmp_path):
    arguments = [EARLYBIRD, "cluster", "run", "--name", two_nodes["name"], "node1", "--"]
    result = subprocess.run(
        [*arguments, "sh", "-c", "pwd; exit 7"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (result.returncode, result.stdout.strip()) == (7, str(tmp_path))


def test_a_command_with_options_needs_no_dashes_before_it(two_nodes, earlybird, in_process, refused):
    arguments = ["cluster", "run", "--name", two_nodes["name"], "node1"]
    assert earlybird(*arguments, "sh", "-c", "echo $0 $1", "-la", "--name").stdout == "-la --name\n"
    assert earlybird(*arguments, "--", "uname", "-n").stdout == "node1\n"
    refused(in_process(*arguments, "--json", "true", check=False), "--json true", "options first")
    refused(in_process(*arguments, "--", check=False), "is not a command")


def test_the_agent_runs_commands_as_ssh_would(two_nodes):
    agent = state.load(two_nodes["name"]).agent
    arguments = [agent, "-x", "-o", "node1", "echo", "'a  b'", "$((1+1))", ";", "hostname"]
    # An option's value cannot be distinguished from a host: only -o is skipped.
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert result.stdout == "a  b 2\nnode1\n"
    result = subprocess.run([agent, "node9", "true"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 255
    assert "no node node9" in result.stderr


@pytest.mark.thorough
def test_clusters_stand_side_by_side_with_the_same_addresses(two_nodes, run_on, in_process):
    """The other has the highest rate."""
    with running_cluster(3, "32gbit", "--no-check") as other:
        assert other["rate_bytes_per_s"] == 4e9
        told = json.loads(in_process("cluster", "list", "--json").stdout)["clusters"]
        rows = in_process("cluster", "list", "--format", "csv").stdout.splitlines()
        assert f"{other['name']},3,4000000000.0,,," in rows
        assert {two_nodes["name"], other["name"]} <= {cluster["name"] for cluster in told}
        assert other["nodes"][0]["address"] == two_nodes["nodes"][0]["address"]
        run_on(two_nodes, "node0", "touch", "/dev/shm/here")
        assert "here" not in run_on(other, "node0", "ls", "/dev/shm")


def test_the_end_of_a_command_is_printed_as_json(earlybird, two_nodes):
    arguments = ("cluster", "run", "--json", "--name", two_nodes["name"], "1", "--")
    done = earlybird(*arguments, "sh", "-c", "hostname; echo no >&2; exit 3", check=False)
    assert done.returncode == 3
    assert json.loads(done.stdout) == {
        "node": "node1", "exit_status": 3, "stdout": "node1\n", "stderr": "no\n",
    }  # fmt: skip


def test_down_leaves_nothing_and_the_name_is_free_again(earlybird):
    before = devices_here()
    require_cluster()
    name = new_name()
    for _ in range(2):
        told = json.loads(
            earlybird(
                "cluster", "up", "--nodes", "3", "--rate", "1gbit", "--name", name, "--no-check", "--json"
            ).stdout
        )
        assert len(processes_of(told)) == 4
        assert json.loads(earlybird("cluster", "down", "--name", name, "--json").stdout) == {"down": [name]}
        assert processes_of(told) == []
        assert devices_here() == before
        assert not folder_of(name).exists()


def test_a_dead_node_is_reported_and_a_killed_keeper_takes_the_others_with_it(earlybird, in_process, refused):
    with running_cluster(3, "100mbit", "--no-check") as told:
        name, pids = told["name"], [node["process"]["pid"] for node in told["nodes"]]
        os.kill(pids[1], signal.SIGKILL)
        assert wait_until(lambda: state.load(name).lost_nodes() == ["node1"])
        assert "lost node1" in in_process("cluster", "list").stdout
        result = in_process("cluster", "run", "--name", name, "node1", "--", "true", check=False)
        refused(result, "node1", "cluster down", status=1)
        # The others can still be looked at.
        earlybird("cluster", "run", "--name", name, "node2", "--", "true")

        sleeper = subprocess.Popen(
            [EARLYBIRD, "cluster", "run", "--name", name, "node0", "--", "sleep", "60"]
        )
        try:
            os.kill(told["keeper"]["pid"], signal.SIGKILL)
            assert wait_until(lambda: not any(is_running(pid) for pid in pids))
            assert sleeper.wait(60) != 0
        finally:
            sleeper.kill()
            sleeper.wait()
        listed = json.loads(in_process("cluster", "list", "--json").stdout)["clusters"]
        assert name not in [cluster["name"] for cluster in listed]
        refused(in_process("cluster", "run", "--name", name, "0", "--", "true", check=False), name)


@pytest.mark.thorough
@pytest.mark.measures_time("what a busy machine has kept back for longer than the test comes at once")
def test_links_are_limited_in_both_directions_for_every_stream_count():
    with running_cluster(4, "40mbit", "--no-check") as told:
        measured = link.measure_link(state.load(told["name"]), counts=(1, 4))
        expected = measured["expected_bytes_per_s"]
        assert expected == pytest.approx(40e6 / 8 * 1448 / 1514)
        # On a busy machine less gets through, and what was delayed comes at once; limited in one direction
        # alone it would be three times as much.
        for carried in [*measured["bandwidth_bytes_per_s"].values(), measured["incast_bytes_per_s"]]:
            assert 0 < carried < 2 * expected
        assert set(measured["bandwidth_bytes_per_s"]) == {"1", "4"}


def test_a_wrong_link_bandwidth_is_reported():
    measured = {
        "expected_bytes_per_s": 1e9,
        "bandwidth_bytes_per_s": {"1": 5e8},
        "slowest_node_bytes_per_s": {"1": 4e8},
        "incast_bytes_per_s": 9e8,
        "matches": False,
    }
    assert "400 MB/s" in link.describe_mismatch(measured)
    assert "lower --rate" in link.describe_mismatch(measured)
    faster = measured | {"bandwidth_bytes_per_s": {"1": 2e9}, "slowest_node_bytes_per_s": {"1": 2e9},
                         "incast_bytes_per_s": 2e9}  # fmt: skip
    assert "2 GB/s pass" in link.describe_mismatch(faster)
    assert link.describe_mismatch(measured | {"matches": True}) is None
    assert link.describe_mismatch({}) is None


@pytest.mark.parametrize("harm", ["node", "bridge"])
@pytest.mark.thorough
def test_links_that_break_while_they_are_measured_are_reported_in_time(harm, monkeypatch):
    monkeypatch.setattr(link, "_LIMIT_S", 4.0)  # of a stream, of 0.6 s; else 20 s
    with running_cluster(2, "40mbit", "--no-check") as told:
        cluster = state.load(told["name"])
        breaking = threading.Timer(0.5, break_node if harm == "node" else break_bridge, (told,))
        breaking.start()
        begin_s = time.monotonic()
        with pytest.raises(WorkError, match="links cannot be measured"):
            for _ in range(20):
                link.measure_link(cluster, counts=(1,))
        assert time.monotonic() - begin_s < 120
        breaking.join()
        # No worker is left in a node that lives.
        assert wait_until(lambda: not workers_in(told))


def workers_in(told) -> list[str]:
    node = told["nodes"][0]["process"]["pid"]
    if not is_running(node):
        return []
    own = os.readlink(f"/proc/{node}/ns/pid")
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.readlink(f"/proc/{process.pid}/ns/pid") == own and process.pid != node:
                found.append(" ".join(process.cmdline()))
    return found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--nodes", "1"], "--nodes is 1"),
        (["--nodes", "65"], "2 to 64"),
        (["--rate", "10bit"], "10 bit/s"),
        (["--rate", "1e8"], "--rate is '1e8' without a unit"),
        (["--rate", "100"], "--rate is '100' without a unit; give 10mbit to 32gbit"),
        (["--rate", "33gbit"], "32gbit"),
        (["--rate", "fast"], "--rate is 'fast'; give 10mbit to 32gbit"),
        (["--name", "../x"], "letters"),
    ],
)
def test_what_makes_no_sense_is_refused(in_process, refused, arguments, says):
    refused(in_process("cluster", "up", *arguments, check=False), says)


def test_a_name_that_is_taken_is_refused(two_nodes, in_process, refused):
    refused(in_process("cluster", "up", "--name", two_nodes["name"], check=False), two_nodes["name"], "down")


def test_a_cluster_that_is_not_there_is_refused(in_process, refused):
    name = new_name()
    refused(in_process("cluster", "down", "--name", name, check=False), name, "cluster up")
    refused(in_process("cluster", "run", "--name", name, "0", "--", "true", check=False), name)


def test_a_node_that_is_not_there_is_refused(two_nodes, in_process, refused):
    result = in_process("cluster", "run", "--name", two_nodes["name"], "node2", "--", "true", check=False)
    refused(result, "node2", "node0, node1")


def test_ctrl_c_while_links_are_measured_leaves_no_cluster():
    require_cluster()
    name = new_name()
    process = subprocess.Popen(
        [EARLYBIRD, "cluster", "up", "--name", name, "--nodes", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: (folder_of(name) / "cluster.json").exists())
    told = state.load(name).to_json()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert processes_of(told) == []
    assert not folder_of(name).exists()


@pytest.mark.parametrize("moment", ["load", "save"])
def test_a_cluster_interrupted_just_before_or_after_its_links_are_measured_is_gone(moment, monkeypatch):
    require_cluster()
    name, load, told = new_name(), state.load, {}

    def interrupted(*_):
        monkeypatch.undo()
        told.update(load(name).to_json())
        assert len(processes_of(told)) == 3
        raise KeyboardInterrupt

    monkeypatch.setattr(state, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        control.up(name, 2, 1e7, measure=lambda cluster: {})
    assert processes_of(told) == []
    assert not folder_of(name).exists()


@pytest.mark.thorough
def test_an_ordinary_user_has_clusters_in_a_user_namespace(tmp_path):
    """As root this becomes somebody without any right; anybody else already is."""
    arguments = _as_ordinary_user(tmp_path)
    name = new_name()
    up = _run([*arguments, "cluster", "up", "--name", name, "--nodes", "2", "--rate", "40mbit", "--json"])
    if "cannot be created here" in up.stderr:
        pytest.skip(up.stderr.strip())
    assert up.returncode == 0, up.stderr
    told = json.loads(up.stdout)
    try:
        assert told["user_namespace"] is True
        # Without a limit it would be a hundred times as much.
        assert told["link"]["bandwidth_bytes_per_s"]["1"] < 10 * told["link"]["expected_bytes_per_s"]
        node = _run([*arguments, "cluster", "run", "--name", name, "1", "--", "hostname"])
        assert node.stdout == "node1\n"
    finally:
        down = _run([*arguments, "cluster", "down", "--name", name])
    assert down.returncode == 0, down.stderr
    assert processes_of(told) == []


def _run(arguments) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=180)


def _as_ordinary_user(folder: Path) -> list:
    """The arguments before `earlybird`'s own that run it without privilege; skips where that cannot be."""
    if os.geteuid() != 0:
        return [EARLYBIRD]
    nobody = 65534
    packages = [path for path in sys.path if path]
    script = "import sys; sys.argv[0] = 'earlybird'; from earlybird.cli.main import run; run()"
    setpriv = ["setpriv", "--reuid", str(nobody), "--regid", str(nobody), "--clear-groups", "--inh-caps=-all"]
    environment = ["env", f"PYTHONPATH={os.pathsep.join(packages)}", f"HOME={folder}"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}"):
        arguments = [*setpriv, *environment, python, "-c", script]
        if _run([*arguments, "--version"]).returncode == 0:
            return arguments
    pytest.skip("no ordinary user can read this Python and this folder")
