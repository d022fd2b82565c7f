"""Cores and sockets as the kernel's folders tell them."""

import os

import pytest

from earlybird.data import memory
from earlybird.machine import hardware


@pytest.fixture
def cpu_folder(tmp_path, monkeypatch):
    """Make a folder like /sys/devices/system/cpu from (package, core) of every hardware thread."""

    def make(*threads: tuple[int, int], allowed=None):
        for cpu, (package, core) in enumerate(threads):
            topology = tmp_path / f"cpu{cpu}" / "topology"
            topology.mkdir(parents=True)
            (topology / "physical_package_id").write_text(f"{package}\n")
            (topology / "core_id").write_text(f"{core}\n")
        usable = set(range(len(threads)) if allowed is None else allowed)
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: usable)
        return tmp_path

    return make


# Two sockets with two cores of two hardware threads: cpu 0..3 the first threads, 4..7 the second.
TWO_SOCKETS = [(0, 0), (0, 1), (1, 0), (1, 1)] * 2


def test_one_hardware_thread_of_each_core_is_used(cpu_folder):
    assert hardware.cores_by_socket(cpu_folder(*TWO_SOCKETS)) == [[0, 1], [2, 3]]


def test_neighbouring_cpus_may_be_one_core(cpu_folder):
    folder = cpu_folder((0, 0), (0, 0), (0, 1), (0, 1))
    assert hardware.cores_by_socket(folder) == [[0, 2]]


def test_only_cores_this_process_may_use_count(cpu_folder):
    folder = cpu_folder(*TWO_SOCKETS, allowed={1, 5, 7})
    assert hardware.cores_by_socket(folder) == [[1], [7]]


def test_sockets_are_renumbered_without_gaps(cpu_folder):
    assert hardware.cores_by_socket(cpu_folder((3, 0), (7, 0), (7, 1))) == [[0], [1, 2]]


def test_a_kernel_without_a_socket_counts_as_one_socket(cpu_folder):
    # ARM guests say -1.
    folder = cpu_folder((-1, 0), (-1, 1))
    assert hardware.usable_cores(folder) == [hardware.Core(0, 0), hardware.Core(1, 0)]


def test_without_topology_every_cpu_is_a_core(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    assert hardware.cores_by_socket(tmp_path) == [[0, 1, 2]]


def test_the_machine_describes_itself():
    output = hardware.describe()
    assert output["cores"] == sum(output["cores_per_socket"]) >= 1
    assert output["sockets"] == len(output["cores_per_socket"])
    assert output["hardware_threads"] >= output["cores"]
    assert 0 < memory.available_memory_bytes() <= output["memory_bytes"]


def test_a_cpu_limit_is_read_from_either_kind_of_control_group(tmp_path):
    assert hardware.cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert hardware.cpu_quota(tmp_path) == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert hardware.cpu_quota(tmp_path) is None
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("400000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert hardware.cpu_quota(tmp_path) == 4
