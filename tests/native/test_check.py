"""The kernel of `earlybird check`: who meets whom, whose times are whose, and what a node is."""

import os
from pathlib import Path

import numpy as np
import pytest

from earlybird.check.measured import measured_from
from earlybird.check.plan import make_plan
from earlybird.check.tournament import num_rounds, opponent
from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine import hardware
from earlybird.machine.flavours import find_flavour

pytestmark = pytest.mark.mpi
RULES = Rules(budget_s=0.005, min_iterations=3)


def launch(mpi, tmp_path, ranks, plan=None):
    """All parts among the ranks of one node."""
    plan = plan or make_plan(ranks, size_bytes=4096)
    points = plan.points(mpi)
    points[-1] |= {"shared_machine": 1}
    request = Request("0", "check", points, parse_layout(f"1x1x{ranks}"), RULES, None, 300, 120)
    launched = MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)
    assert launched.cause is None, launched.record
    assert all(sample.validated for sample in launched.samples)
    return launched.samples


def test_every_pair_and_every_root_is_measured(mpi, tmp_path):
    measured = measured_from(launch(mpi, tmp_path, 4), 4)
    off_diagonal = ~np.eye(4, dtype=bool)
    for values in (measured.latency_s, measured.send_s, measured.both_s):
        assert (values[off_diagonal] > 0).all() and np.isnan(np.diag(values)).all()
    assert (measured.incast_s > 0).all() and (measured.outcast_s > 0).all()


def test_with_an_odd_number_of_ranks_one_pauses_in_each_round(any_mpi, tmp_path):
    samples = [one for one in launch(any_mpi, tmp_path, 3) if one.config["part"] == "pairs"]
    assert len(samples) == num_rounds(3)
    for sample in samples:
        times_s = np.array(sample.extra["pair_times_s"]).reshape(-1, 3, 3)
        pausing = [opponent(rank, sample.config["round"], 3) == rank for rank in range(3)]
        assert (times_s == 0).all(axis=(0, 2)).tolist() == pausing


def test_a_node_is_described_as_it_is(any_mpi, tmp_path, monkeypatch):
    monkeypatch.setenv("UCX_EARLYBIRD_TEST", "a 'b'")
    (sample,) = [one for one in launch(any_mpi, tmp_path, 2) if one.config["part"] == "nodes"]
    first, second = sample.extra["facts"]
    cores = hardware.cores_by_socket()
    assert first["cores"] == second["cores"] == sum(map(len, cores))
    assert first["shm_bytes"] == pytest.approx(
        os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
    )
    assert first["kernel"] == os.uname().release
    assert first["settings"]["UCX_EARLYBIRD_TEST"] == "a 'b'"
    assert "mpi" in first["mpi_file"]
    devices = {name for name in os.listdir("/sys/class/net") if name != "lo"}
    assert devices >= set(first["interfaces"]) - {name for name in first["interfaces"] if ":" in name}
    for name, one in first["interfaces"].items():
        assert one["state"] and (
            ":" in name or one["mtu"] == int(Path("/sys/class/net", name, "mtu").read_text())
        )
    assert first["load_of_others"] >= 0
    # What each rank did last, for a launch that hangs; both are on one host.
    (beat,) = tmp_path.glob("beat.*")
    count, stage, partner = map(int, beat.read_text().split())
    assert beat.name == f"beat.{os.uname().nodename}" and count >= 1 and 0 <= stage <= 5 and partner >= -1
    assert 0 < min(first["compute_cpu_s"]) <= 1.01 * max(first["compute_s"])
    # Both read one clock.
    assert abs(sample.extra["clock_offsets_s"][1]) < 0.1


def test_a_node_has_the_name_that_its_launcher_states(any_mpi, tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_NODE_NAME_IN", "SLURMD_NODENAME")
    for name, expected in (("n7", "n7"), ("", os.uname().nodename)):
        monkeypatch.setenv("SLURMD_NODENAME", name)
        (tmp_path / expected).mkdir()
        plan = make_plan(2, size_bytes=4096)
        request = Request("0", "check", plan.points(any_mpi), parse_layout("1x1x2"), RULES, None, 300, 120)
        launched = MpiexecLauncher(find_flavour(any_mpi)).launch(
            request, tmp_path / expected, lambda *_: None
        )
        assert [entry["host"] for entry in launched.record["placement"]] == [expected] * 2
        assert [path.name for path in (tmp_path / expected).glob("beat.*")] == [f"beat.{expected}"]


def test_a_wrong_clock_and_its_drift_are_measured(any_mpi, tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_TEST_CLOCK", "0:0,3:1e-3")
    measured = measured_from(launch(any_mpi, tmp_path, 2), 2)
    assert measured.clock_offset_s[1] > 3 and measured.clock_offset_s[0] == 0
    assert measured.clock_drift[1] == pytest.approx(1e-3, rel=0.5)
