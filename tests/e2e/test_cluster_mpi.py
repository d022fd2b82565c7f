"""Real MPI between virtual nodes: the network is used, its rate is the limit, failures are reported."""

import json
import os
import signal
import subprocess
import time

import psutil
import pytest

from earlybird.data.layout import Layout
from earlybird.data.run import Run
from earlybird.launch.cluster import network, state
from earlybird.launch.cluster.state import LINKS
from earlybird.launch.host_files import placement_file
from earlybird.launch.process import MARKER
from earlybird.machine import hardware
from earlybird.machine.flavours import find_flavour
from tests.cluster import EARLYBIRD, break_bridge, break_node, new_name, require_cluster, running_cluster
from tests.conftest import require_mpi

pytestmark = pytest.mark.mpi

RATE = "80mbit"
# What is no MPI program and ends at once leaves Open MPI's mpiexec waiting for ever in one or two launches of
# a hundred, see open-mpi/ompi#10586.
STAY = "sleep 0.5"
PAYLOAD_BYTES_PER_S = 80e6 / 8 * 1448 / 1514


@pytest.fixture(scope="module")
def cluster():
    """Four nodes; the links are slow, so that they and not the cores are the limit."""
    with running_cluster(4, RATE, "--no-check") as told:
        yield told


def launcher(cluster) -> list[str]:
    return ["--launcher", f"cluster:{cluster['name']}", "--quiet"]


def hosts_of(run: Run) -> list[list[str]]:
    return [[rank["host"] for rank in launch["placement"]] for launch in run.launches()]


@pytest.mark.thorough
def test_messages_between_nodes_take_the_link_on_every_mpi(mpi, cluster, in_process, tmp_path):
    in_process(
        "measure", "pingpong", "--levels", "inter_node", "--sizes", "8,1MiB", "--launches", "1",
        "--budget", "2s", "--mpi", mpi, *launcher(cluster), "-o", tmp_path / "run",
    )  # fmt: skip
    run = Run.open(tmp_path / "run")
    assert hosts_of(run) == [["node0", "node1"]]
    (launch,) = run.launches()
    assert launch["launcher"] == "cluster"
    links = "virtual links of 80 Mbit/s each way, TCP reno with buffers of 4 MiB and 256 KiB"
    assert launch["network"] == links and LINKS.fullmatch(links)[1] == "80"
    assert launch["link"]["expected_bytes_per_s"] == pytest.approx(PAYLOAD_BYTES_PER_S)
    assert launch["clock"]["residual_s"] == 0.0
    assert launch["link_at_start"] == {}  # --no-check
    sample = next(sample for sample in run.samples() if sample.config["size_bytes"] == 1 << 20)
    # The link is the limit: never faster, but for the bucket of the first bytes.
    assert (1 << 20) / sample.median_s() < 1.03 * PAYLOAD_BYTES_PER_S
    # All of it went over the links.
    sent = (1 << 20) * len(sample.times_s)
    for received in launch["node_received_bytes"][:2]:
        assert received > sent
    assert launch["node_received_bytes"][2] < sent


def test_processes_of_a_node_share_its_link(any_mpi, cluster, in_process, tmp_path):
    told = in_process(
        "measure", "contention", "--levels", "inter_node", "--competitors", "1,4", "--sizes", "256KiB",
        "--launches", "1", "--budget", "2s", "--mpi", any_mpi, *launcher(cluster), "-o", tmp_path / "run",
        "--json",
    )  # fmt: skip
    by_count = {point["competitors"]: point for point in json.loads(told.stdout)["points"]}
    assert set(by_count) == {1, 4}
    for point in by_count.values():
        # A busy machine gets less; links that were not shared would let four times as much through.
        assert 0 < point["bandwidth_bytes_per_s"] < 2.5 * PAYLOAD_BYTES_PER_S
    # Eight ranks share the cores of one machine, whatever their hosts are called.
    assert by_count[4]["oversubscribed"] is (len(os.sched_getaffinity(0)) < 8)


def test_an_incast_is_limited_by_the_link_of_the_receiver(any_mpi, cluster, in_process, tmp_path):
    """Four nodes to one: shaping only what leaves a node would let it through at three times the rate."""
    size_bytes = 300_000
    (tmp_path / "incast.csv").write_text(
        "src,dst,bytes\n" + "".join(f"{rank},0,{size_bytes}\n" for rank in (1, 2, 3))
    )
    told = in_process(
        "replay", "incast.csv", "--layout", "4x1x1", "--launches", "1", "--budget", "2s", "--mpi", any_mpi,
        *launcher(cluster), "-o", tmp_path / "run", "--json",
    )  # fmt: skip
    assert json.loads(told.stdout)
    (sample,) = Run.open(tmp_path / "run").samples()
    # Its clock begins when it leaves the barrier, which may be late on a busy machine.
    least_s = 3 * size_bytes / (2.5 * PAYLOAD_BYTES_PER_S)
    assert sample.median_s() > least_s


@pytest.mark.parametrize(
    ("map_by", "hosts"),
    [("core", ["node0", "node0", "node1", "node1"]), ("node", ["node0", "node1", "node0", "node1"])],
)
def test_ranks_sit_where_the_layout_says(mpi, cluster, earlybird, map_by, hosts):
    """`replay` and `measure` start theirs by the same arguments."""
    arguments = ["cluster", "mpiexec", "--name", cluster["name"], "--mpi", mpi, "--layout", "2x1x2"]
    tell = f"echo ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} $(hostname); {STAY}"
    told = earlybird(*arguments, "--map-by", map_by, "--", "sh", "-c", tell)
    assert sorted(told.stdout.splitlines()) == [f"{rank} {host}" for rank, host in enumerate(hosts)]


SHARING = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  MPI_Comm node;
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &size);
  printf("%d\\n", size);
  return MPI_Finalize();
}
"""


@pytest.mark.parametrize("map_by", ["core", "node"])
def test_ranks_of_a_node_share_memory(mpi, cluster, earlybird, tmp_path, map_by):
    (tmp_path / "sharing.c").write_text(SHARING)
    earlybird("exec", "--mpi", mpi, "--no-interpose", "--", "mpicc", "sharing.c", "-o", "sharing")
    arguments = ["cluster", "mpiexec", "--name", cluster["name"], "--mpi", mpi, "--layout", "2x1x2"]
    shown = earlybird(*arguments, "--map-by", map_by, "--", "./sharing")
    assert shown.stdout.split() == ["2"] * 4


def test_a_replay_records_where_its_ranks_sat(any_mpi, cluster, in_process, tmp_path):
    (tmp_path / "pair.csv").write_text("src,dst,bytes\n0,1,1000\n1,2,1000\n2,3,0\n3,0,5\n")
    in_process(
        "replay", "pair.csv", "--layout", "2x1x2", "--map-by", "node", "--launches", "1", "--budget", "1s",
        "--mpi", any_mpi, *launcher(cluster), "-o", tmp_path / "run",
    )  # fmt: skip
    assert hosts_of(Run.open(tmp_path / "run")) == [["node0", "node1", "node0", "node1"]]


def test_a_program_of_ones_own_runs_on_the_nodes(mpi, cluster, earlybird, in_process, refused):
    arguments = ["cluster", "mpiexec", "--name", cluster["name"], "--mpi", mpi]
    # Intel MPI's mpiexec ends with 255 or with the program's own, as the end of one rank reaches it.
    failed = earlybird(*arguments, "--layout", "2x1x1", "--", "sh", "-c", f"{STAY}; exit 3", check=False)
    assert failed.returncode in ((3, 255) if mpi == "intel" else (3,))
    refused(in_process(*arguments, "--layout", "9x1x1", "--", "hostname", check=False), "9 nodes", "has 4")


def test_ctrl_c_ends_a_program_on_the_nodes(mpi, cluster, tmp_path):
    arguments = ["cluster", "mpiexec", "--name", cluster["name"], "--mpi", mpi, "--layout", "2x1x1"]
    process = subprocess.Popen(
        [
            EARLYBIRD,
            *arguments,
            "--",
            "sh",
            "-c",
            f"touch {tmp_path}/$(hostname); exec tail -f {tmp_path}/$(hostname)",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end_s = time.monotonic() + 120
    while not {"node0", "node1"} <= set(os.listdir(tmp_path)):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    end_s = time.monotonic() + 60
    while left := [one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(one.info)]:
        assert time.monotonic() < end_s, left
        time.sleep(0.05)


def test_what_the_cluster_lacks_is_refused(any_mpi, cluster, earlybird, in_process, refused, tmp_path):
    (tmp_path / "pair.csv").write_text("src,dst,bytes\n0,1,1000\n")
    arguments = ["replay", "pair.csv", "--mpi", any_mpi]
    refused(in_process(*arguments, "--layout", "5x1x1", *launcher(cluster), check=False), "5 nodes", "has 4")
    refused(in_process(*arguments, "--layout", "2x9x1", *launcher(cluster), check=False), "9 sockets")
    result = earlybird(*arguments, "--layout", "2x1x1", "--launcher", "cluster:none-such", check=False)
    refused(result, "none-such", "cluster up")


def _begin_replay(cluster, mpi, folder):
    (folder / "pattern.csv").write_text("src,dst,bytes\n0,1,100000\n1,0,100000\n")
    process = subprocess.Popen(
        [
            EARLYBIRD, "replay", "pattern.csv", "--layout", "2x1x1", "--mpi", mpi, *launcher(cluster),
            "-o", "run", "--launches", "500", "--budget", "300s",
        ],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end_s = time.monotonic() + 120
    samples = folder / "run" / "samples.ndjson"
    while not (samples.exists() and samples.stat().st_size) and process.poll() is None:
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return process


def _job_processes(folder) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            ours = MARKER in process.environ() and process.status() != psutil.STATUS_ZOMBIE
            if ours and str(folder) in " ".join(process.cmdline()):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.thorough
def test_one_measurement_at_a_time_is_on_a_cluster(any_mpi, tmp_path, earlybird, in_process, refused):
    with running_cluster(2, RATE, "--no-check") as told:
        process = _begin_replay(told, any_mpi, tmp_path)
        try:
            arguments = ["measure", "pingpong", "--mpi", any_mpi, *launcher(told), "-o", "other"]
            who = f"process {process.pid} (earlybird replay pattern.csv"
            refused(in_process(*arguments, check=False), who, told["name"], "wait")
            assert not (tmp_path / "other").exists()
            # A user may still run commands there.
            ran = earlybird("cluster", "run", "--name", told["name"], "0", "true")
            assert who in ran.stderr and "disturbs" in ran.stderr
            arguments = ["cluster", "mpiexec", "--name", told["name"], "--mpi", any_mpi, "--layout", "2x1x1"]
            ran = earlybird(*arguments, "true")
            assert who in ran.stderr and "disturbs" in ran.stderr
        finally:
            process.kill()  # what it held is free without a word from it
            process.communicate()
        assert earlybird("cluster", "run", "--name", told["name"], "0", "true").stderr == ""


@pytest.mark.thorough
def test_a_run_is_continued_on_a_cluster_like_the_one_it_was_begun_on(
    any_mpi, tmp_path, earlybird, in_process, refused
):
    name = new_name()
    arguments = ["measure", "pingpong", "--sizes", "8", "--levels", "inter_node", "--launches", "1"]
    up = f"cluster up --nodes 2 --rate 80mbit --name {name} --send-buffer 4MiB"
    require_cluster()
    earlybird(*up.split(), "--no-check")
    try:
        in_process(
            *arguments, "--mpi", any_mpi, "--budget", "1s", "--launcher", f"cluster:{name}", "-o", "run"
        )
        resume = ["measure", "--resume", "--launches", "2", "-o", "run"]
        earlybird("cluster", "down", "--name", name)
        refused(in_process(*resume, check=False), name, f"`earlybird {up}`")
        earlybird(*up.replace("80mbit", "40mbit").split(), "--no-check")
        refused(in_process(*resume, check=False), "80 Mbit/s", "40 Mbit/s")
        earlybird("cluster", "down", "--name", name)
        assert len(Run.open(tmp_path / "run").launches()) == 1
        earlybird(*up.split(), "--no-check")
        in_process(*resume)
        assert len(Run.open(tmp_path / "run").launches()) == 2
    finally:
        earlybird("cluster", "down", "--name", name, check=False)


@pytest.mark.thorough
def test_a_job_whose_node_breaks_ends_soon_and_keeps_what_it_has(mpi, tmp_path):
    _break(break_node, "node1", mpi, tmp_path)


@pytest.mark.thorough
def test_a_job_whose_bridge_breaks_ends_soon_and_keeps_what_it_has(any_mpi, tmp_path):
    _break(break_bridge, "br0", any_mpi, tmp_path)


def _break(harm, named, mpi, tmp_path):
    with running_cluster(2, RATE, "--no-check") as told:
        process = _begin_replay(told, mpi, tmp_path)
        kept = len(Run.open(tmp_path / "run").samples())
        harm(told)
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 1, stderr
        assert "Traceback" not in stderr
        (sentence,) = [line for line in stderr.splitlines() if line.startswith("earlybird: ")]
        assert named in sentence  # seen, not guessed after the stall limit
        assert "cluster down" in sentence
        assert _job_processes(tmp_path) == []
        assert len(Run.open(tmp_path / "run").samples()) >= kept > 0


def test_the_demo_refuses_ranks_that_the_nodes_do_not_share(any_mpi, cluster, in_process, refused):
    """What it does with others, `make demo` shows: with less than four cores on virtual nodes."""
    arguments = ["demo", "--mpi", any_mpi, *launcher(cluster), "--ranks", "6"]
    refused(in_process(*arguments, check=False), "4 nodes", "multiple of 4")


@pytest.mark.parametrize("name", ["mpich", "intel"])
@pytest.mark.parametrize(
    "sockets", [[0, 0, 1, 1], [0, 1, 1, 0]], ids=["nodes that are alike", "nodes that differ"]
)
def test_exported_files_bind_ranks_to_the_cpus_of_their_sockets(cluster, tmp_path, name, sockets):
    """Ranks 0 and 2 on the second node, 1 and 3 on the first; a socket is one CPU of this machine."""
    require_mpi(name)
    cpus = [core.cpu for core in hardware.usable_cores()][:2]
    if len(cpus) < 2:
        pytest.skip("one core cannot stand for two sockets")
    flavour, running = find_flavour(name), state.find(cluster["name"])
    layout = Layout.from_arrays([1, 0, 1, 0], sockets)
    made = placement_file(layout, name, ["node0", "node1"], [[cpu] for cpu in cpus])
    program = tmp_path / "where.sh"
    program.write_text("echo $PMI_RANK $(uname -n) $(taskset -pc $$ | sed 's/.*: //')\n")
    (tmp_path / "file").write_text(made.text.replace("PROGRAM", f"sh {program}"))
    use = made.use.format(file=tmp_path / "file", ranks=4).partition(", after")[0]
    _, *arguments = use.replace("PROGRAM", f"sh {program}").split()
    network_of = ["-launcher", "ssh", "-launcher-exec", str(running.agent), "-iface", network.BRIDGE]
    done = subprocess.run(
        [*running.head_arguments(), str(flavour.mpiexec), *network_of, *arguments],
        env=flavour.environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    where = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    expected = {str(k): f"node{1 - k % 2} {cpus[socket]}" for k, socket in enumerate(sockets)}
    assert where == expected, done.stderr
