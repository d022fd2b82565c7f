"""Programs that hang on several virtual nodes: agents show the ranks of each node to the others."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from earlybird.launch.cluster import network, state
from earlybird.launch.other_nodes import files_of_agents
from earlybird.machine.flavours import find_flavour
from earlybird.machine.namespaces import Mode
from earlybird.toolchain.build import RECORDER, library_path
from tests.cluster import running_cluster
from tests.conftest import EARLYBIRD

pytestmark = [pytest.mark.mpi, pytest.mark.thorough]


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(2, "1gbit", "--no-check") as told:
        yield told


@pytest.fixture
def command(compiled, cluster):
    """command(mpi, mode): that of the program on two ranks of each of two nodes."""

    def make(mpi, mode):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        program = compiled(flavour, "record_stuck", ["-g"])
        arguments = ["cluster", "mpiexec", "--name", cluster["name"], "--mpi", mpi, "--layout", "2x1x2"]
        return [EARLYBIRD, *arguments, "--", program, mode]

    return make


@contextlib.contextmanager
def running(command, mpi, mode, tmp_path, *options) -> Iterator[subprocess.Popen]:
    """The command under `record` in the folder rec, once its agents show the ranks of both nodes."""
    job = subprocess.Popen(
        [EARLYBIRD, "record", "-o", "rec", "--mpi", mpi, *options, "--", *command(mpi, mode)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        end_s = time.monotonic() + 60
        while len(list(files_of_agents(tmp_path / "rec"))) < 2:
            assert time.monotonic() < end_s and job.poll() is None, job.communicate()
            time.sleep(0.2)
        yield job
    finally:
        if job.poll() is None:
            job.terminate()
            try:
                job.communicate(timeout=60)
            finally:
                if job.poll() is None:
                    job.kill()
                    job.wait()


def processes_on(cluster, number, *names) -> list[psutil.Process]:
    """The processes of a node with these names."""
    space = os.stat(f"/proc/{state.find(cluster['name']).nodes[number].process.pid}/ns/pid").st_ino
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            is_there = os.stat(f"/proc/{process.pid}/ns/pid").st_ino == space
            if is_there and process.name().startswith(names):
                found.append(process)
    return found


def where(own_process):
    return json.loads(own_process("where", "rec", "--json").stdout)


def where_says(own_process, verdict):
    """The answer, once it has the verdict."""
    end_s = time.monotonic() + 60
    while (answer := where(own_process))["verdict"] != verdict:
        assert time.monotonic() < end_s, answer["sentence"]
    return answer


def assert_nothing_is_left(cluster):
    end_s = time.monotonic() + 60
    while left := [*processes_on(cluster, 0, "page_agent"), *processes_on(cluster, 1, "page_agent")]:
        assert time.monotonic() < end_s, left
        time.sleep(0.2)


def test_a_deadlock_between_two_nodes_ends_the_job(mpi, cluster, command, own_process, tmp_path):
    result = own_process(
        "record", "-o", "rec", "--mpi", mpi, "--stuck", "2s", "--stop", "--json", "--",
        *command(mpi, "receives"), check=False, timeout=90,
    )  # fmt: skip
    answer = json.loads(result.stdout)
    assert (answer["verdict"], answer["cycle"]) == ("deadlock", [1, 3]), answer["sentence"]
    assert "ranks 0 and 2 wait for them in MPI_Allreduce no. 2" in answer["sentence"]
    assert result.returncode == 1
    assert_nothing_is_left(cluster)


def test_where_sees_the_ranks_of_other_nodes(any_mpi, cluster, command, own_process, tmp_path):
    with running(command, any_mpi, "receives", tmp_path):
        assert where_says(own_process, "deadlock")["cycle"] == [1, 3]
        agents = [agent for number in (0, 1) for agent in processes_on(cluster, number, "page_agent")]
        assert len(agents) == 2
        assert all(agent.num_fds() <= 5 for agent in agents)
    assert_nothing_is_left(cluster)
    assert not list(files_of_agents(tmp_path / "rec"))


def test_a_stopped_node_is_unreachable(any_mpi, cluster, command, own_process, tmp_path):
    with running(command, any_mpi, "receives", tmp_path):
        where_says(own_process, "deadlock")
        stopped = processes_on(cluster, 1, "record_stuck", "page_agent")
        assert len(stopped) == 3
        for process in stopped:
            process.suspend()
        try:
            answer = where_says(own_process, "unreachable")
            assert answer["guilty"] == [2, 3], answer["sentence"]
            assert "ranks 2 and 3 on node1 cannot be seen" in answer["sentence"]
        finally:
            for process in stopped:
                process.resume()
        where_says(own_process, "deadlock")


def test_a_stopped_rank_of_another_node_is_named(any_mpi, command, own_process, tmp_path):
    with running(command, any_mpi, "stopped", tmp_path):
        assert where_says(own_process, "stopped")["guilty"] == [2]


@contextlib.contextmanager
def link_down(cluster, number):
    """The link of a node is down."""
    told = state.find(cluster["name"])
    enter = Mode(told.user_namespace).enter(told.keeper.pid, "net")
    script = "from pyroute2 import IPRoute\nwith IPRoute() as route:\n    route.link('set', index="
    script += f"route.link_lookup(ifname={network.port_name(number)!r})[0], state="

    def put(is_up):
        subprocess.run(
            [*enter, sys.executable, "-c", f"{script}{'up' if is_up else 'down'!r})"], check=True, timeout=60
        )

    put(False)
    try:
        yield
    finally:
        put(True)


def test_a_link_that_is_down_is_named(any_mpi, cluster, command, own_process, tmp_path):
    with running(command, any_mpi, "exchange", tmp_path):
        where_says(own_process, "running")
        with link_down(cluster, 1):
            answer = where_says(own_process, "unreachable")
            assert answer["guilty"] == [0, 3]
            assert "node0 has sent, and that does not arrive" in answer["sentence"].replace("node1", "node0")


def test_a_node_that_vanishes_is_named_at_the_end(any_mpi, cluster, command, own_process, tmp_path):
    with running(command, any_mpi, "receives", tmp_path) as job:
        where_says(own_process, "deadlock")
        for process in processes_on(cluster, 1, "page_agent", "record_stuck"):
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        _, errors = job.communicate(timeout=60)
        assert job.returncode != 0
        assert "when the ranks ended: Unreachable: ranks 2 and 3 on node1 cannot be seen" in errors, errors
    assert_nothing_is_left(cluster)
