"""`earlybird check` on a virtual cluster of four nodes: planted faults are named, and what fails is said.

`python -m bench check-faults` plants every fault, also among 8 nodes, and has 50 clean checks.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import replace
from functools import partial

import pytest

from bench.node_faults import FAULTS, cpu_limit, planted
from earlybird.data.check import load_check
from earlybird.launch.cluster import state
from tests.cluster import break_node, running_cluster

LIMITS = ("--budget", "20s", "--quiet")
SHORT = ("--budget", "10s")  # where only ranks that end are looked for


@pytest.fixture(scope="module")
def cluster():
    # Slow links, so that they and not the cores are the limit.
    with running_cluster(4, "50mbit", "--no-check") as output:
        yield state.find(output["name"])


@pytest.fixture
def check(earlybird, any_mpi):
    def run(cluster, *arguments, env=None):
        launcher = ("--mpi", any_mpi, "--launcher", f"cluster:{cluster.name}")
        return earlybird("check", *launcher, *LIMITS, *arguments, check=False, env=env or {}, timeout=240)

    return run


@pytest.mark.alone  # nodes that share two cores with other tests may be slow themselves
@pytest.mark.thorough
@pytest.mark.measures_time("other work on this machine may slow a second link of node1 for seconds")
def test_faults_of_several_kinds_are_found_in_one_check_and_named(cluster, check, tmp_path, in_process):
    """Each is of node1 or of its link to node2. Those that stay until the cluster ends are planted last."""
    for name in ("slow-link", "small-shm"):
        FAULTS[name].plant(cluster, tmp_path)
    with (
        planted(FAULTS["clock"], cluster, tmp_path) as clock,
        planted(FAULTS["no-single-copy"], cluster, tmp_path),
    ):
        done = check(cluster, "-o", "checked", env=clock)
    assert done.returncode == 1, done.stderr
    found = load_check(tmp_path / "checked" / "check.json")
    # Beside other work on this machine, times are undecided.
    named = {(one.hosts, one.measure): one for one in (*found.findings, *found.undecided)}
    for name in ("slow-link", "small-shm", "clock", "no-single-copy"):
        assert (FAULTS[name].hosts, FAULTS[name].measure) in named, done.stdout
    link = named[("node1", "node2"), "bandwidth"]
    assert link.value == pytest.approx(link.expected / 2, rel=0.4)
    assert named[("node1",), "/dev/shm"].value_text == "64 MiB"
    assert "node1: clock offset +2 s, others" in done.stdout
    # node2 is slow only from node1, and not named for itself.
    assert found.bad_hosts() == ["node1"], done.stdout + done.stderr
    assert (tmp_path / "checked" / "ok.txt").read_text() == "node0\nnode2\nnode3\n"
    assert (tmp_path / "checked" / "bad.txt").read_text() == "node1\n"
    # What was measured is a run, and the check is shown and reported again.
    assert "1 of 4 nodes" in in_process("show", tmp_path / "checked" / "check.json").stdout
    samples = (tmp_path / "checked" / "samples.ndjson").read_text().splitlines()
    assert sum(json.loads(line)["config"]["part"] == "pairs" for line in samples) >= 3
    shown = in_process("show", tmp_path / "checked" / "check.json", "--json").stdout
    assert json.loads(shown)["schema"] == "earlybird.check/1"


@pytest.mark.alone
@pytest.mark.thorough
@pytest.mark.measures_time("other work may leave another node as little CPU time")
def test_little_cpu_time_and_another_mpi_are_found(cluster, check, tmp_path):
    stolen = replace(FAULTS["stolen-cpu"], before=partial(cpu_limit, share=0.08))
    try:
        with (
            planted(stolen, cluster, tmp_path),
            planted(FAULTS["mpi-version"], cluster, tmp_path),
        ):
            done = check(cluster, "--json")
    except OSError as error:
        pytest.skip(f"no CPU limit can be set here: {error}")
    found = json.loads(done.stdout)
    both = found["findings"] + found.get("undecided", [])
    named = {(tuple(one["hosts"]), one["measure"]): one for one in both}
    assert (("node1",), "computation") in named, done.stdout
    assert (("node1",), "CPU limit") in named
    assert named[("node1",), "MPI library"]["value"].startswith("MPICH Version: 4.1.2")


@contextlib.contextmanager
def struck(cluster, folder, number):
    """The rank of node2 gets a signal when a check with this current folder has begun to measure."""
    done = threading.Event()

    def rank_of_node2() -> int | None:
        """Looked for before it is to be struck, because all is measured within a second."""
        command = ["pgrep", "--ns", str(cluster.nodes[2].pid), "--nslist", "pid", "-x", "check"]
        found = subprocess.run(command, capture_output=True, text=True).stdout.split()
        return int(found[0]) if found else None

    def strike() -> None:
        pid, end_s = None, time.monotonic() + 60
        while time.monotonic() < end_s and not done.is_set():
            pid = pid or rank_of_node2()
            if pid and any(path.stat().st_size for path in folder.glob(".*/.check-*/samples.ndjson")):
                try:
                    os.kill(pid, number)
                    done.set()
                except ProcessLookupError:  # of the launch before
                    pid = None
            time.sleep(0.005)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def rest_of(tmp_path, name):
    """The check of the nodes that are left; node1 may have the faults of the first test."""
    assert (
        {"node0", "node3"}
        <= set((tmp_path / name / "ok.txt").read_text().split())
        <= {"node0", "node1", "node3"}
    )
    return load_check(tmp_path / name / "check.json")


@pytest.mark.thorough
def test_a_rank_that_is_stopped_is_named_and_the_others_are_checked(cluster, check, tmp_path):
    """Stopped in the middle of a round."""
    with struck(cluster, tmp_path, signal.SIGSTOP):
        done = check(cluster, *SHORT, "--stall-limit", "8s", "-o", "rest")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the check ended after" in done.stderr and "no point was finished for 8 s" in done.stderr
    assert (
        "node2: rank stopped, others run; it did nothing while the others waited, last seen " in done.stdout
    )
    assert rest_of(tmp_path, "rest").measured_nodes == 3


@pytest.mark.thorough
def test_the_node_of_a_rank_that_is_killed_is_named_if_mpiexec_names_it(cluster, check, tmp_path):
    with struck(cluster, tmp_path, signal.SIGKILL):
        done = check(cluster, *SHORT, "-o", "rest")
    assert "Traceback" not in done.stderr and "the check ended after" in done.stderr
    if re.search(r"mpiexec reports that .* on node2 failed: ", done.stderr):
        assert done.returncode == 1 and "node2: rank was killed, others run" in done.stdout
        assert rest_of(tmp_path, "rest").nodes[2].facts == {}
    else:
        # Another rank may have ended the job before mpiexec saw that this one was killed.
        assert "a first launch did not complete, and that did not happen again: " in done.stderr


@pytest.mark.thorough
def test_a_node_that_has_died_is_named_and_the_others_are_checked(check, tmp_path):
    with running_cluster(3, "100mbit", "--no-check") as output:
        broken = state.find(output["name"])
        break_node(output)
        done = check(broken, *SHORT, "-o", "rest")
        assert done.returncode == 1
        assert "node1: rank does not start, others start; the node no longer exists." in done.stdout
        assert (tmp_path / "rest" / "ok.txt").read_text() == "node0\nnode2\n"


def test_a_host_that_cannot_be_reached_is_named(earlybird, any_mpi, tmp_path, refused):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\necho "no route to $1" >&2\nexit 255\n')
    agent.chmod(0o700)
    hosts = ("--hosts", "far0,far1", "--agent", agent, "--mpi", any_mpi)
    done = earlybird("check", *hosts, *LIMITS, "--stall-limit", "30s", check=False, timeout=120)
    refused(done, "the host far0 cannot be reached", status=3)


def test_wrong_input_is_refused_before_anything_starts(in_process, refused, any_mpi):
    def refuse(*arguments, says):
        refused(in_process("check", "--mpi", any_mpi, *arguments, check=False), says)

    refuse(says="this job has 1 node; give at least two")
    refuse("--launcher", "synthetic:x.json", says="no node to check")
    refuse("--hosts", "a,b", "--budget", "0s", says="--budget is '0s'; give more than 0 s")
    refuse("--hosts", "a,b", "--budget", "1s", says="give more time, or fewer nodes")
    refuse("--hosts", "a,b", "--stall-limit", "0.1s", says="give a longer --stall-limit")
    refuse("--hosts", "a,b", "--min-effect", "x", says="--min-effect")
    plan = in_process("check", "--mpi", any_mpi, "--hosts", ",".join(f"n{k}" for k in range(256)), "--plan")
    assert "255 rounds of 128 pairs" in plan.stdout
