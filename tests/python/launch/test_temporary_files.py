"""What killed jobs leave in /tmp is removed, and nothing of a job that lives."""

import mmap
import os
import shutil
import subprocess
import time

import pytest

from earlybird.launch import shared_memory, temporary_files
from earlybird.launch.temporary_files import TOPOLOGY, remove_left
from tests import left_files


@pytest.fixture
def no_other_proxy(monkeypatch):
    """Only what a test says is alive, whatever else runs on this machine."""
    monkeypatch.setattr(temporary_files, "_beginnings", list)


def test_what_was_made_since_a_job_began_is_removed(tmp_path, no_other_proxy):
    (tmp_path / f"{TOPOLOGY}abcdef").write_text("<xml/>")
    (tmp_path / "hydra_hosts").touch()
    remove_left(time.time() + 60, tmp_path, pids=())
    assert (tmp_path / f"{TOPOLOGY}abcdef").exists()  # older than the job
    remove_left(time.time() - 60, tmp_path, pids=())
    assert [path.name for path in tmp_path.iterdir()] == ["hydra_hosts"]


def test_what_a_living_proxy_may_have_made_stays(tmp_path):
    sleep = shutil.copy(shutil.which("sleep"), tmp_path / "hydra_pmi_proxy")
    proxy = subprocess.Popen([sleep, "100"])
    try:
        path = tmp_path / f"{TOPOLOGY}abcdef"
        path.touch()
        remove_left(0, tmp_path, pids=())
        assert path.exists()
    finally:
        proxy.kill()
        proxy.wait()


def test_the_folder_of_a_daemon_goes_with_it(tmp_path):
    ended, others = subprocess.Popen(["true"]), subprocess.Popen(["true"])
    ended.wait(), others.wait()
    stay = {f"ompi.{os.getpid()}", f"ompi.{others.pid}", "ompi.host.0"}
    for name in (f"ompi.{ended.pid}", *stay):
        (tmp_path / name / "0").mkdir(parents=True)
    pids = (ended.pid, os.getpid())
    remove_left(time.time() + 60, tmp_path, pids=pids)
    assert len(list(tmp_path.iterdir())) == 4  # older than the job
    remove_left(time.time() - 60, tmp_path, pids=pids)
    assert {path.name for path in tmp_path.iterdir()} == stay


def test_no_folder_is_no_fault(tmp_path):
    remove_left(0, tmp_path / "none", pids=())


def test_what_links_name_stays(tmp_path, no_other_proxy):
    """In /tmp and /dev/shm everybody makes links of any name."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    outside, shared = tmp_path / "outside", tmp_path / "shared"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("kept")
    shared.mkdir()
    (shared / f"ompi.{ended.pid}").symlink_to(outside)
    for name in (f"{TOPOLOGY}abcdef", "mpich_shm_abcdef"):
        (shared / name).symlink_to(outside / "file")
    remove_left(0, shared, pids=(ended.pid,))
    shared_memory.remove_left(0, shared, only={"/dev/shm/mpich_shm_abcdef"})
    assert (outside / "file").read_text() == "kept" and (outside / "folder").is_dir()


def test_shared_memory_that_no_process_has_is_removed(tmp_path):
    for name in ("mpich_shm_abcdef", "mpich_shm_others", "other"):
        (tmp_path / name).touch()
    ours = {"/dev/shm/mpich_shm_abcdef", "/dev/shm/other"}
    shared_memory.remove_left(time.time() + 60, tmp_path, only=ours)
    assert len(list(tmp_path.iterdir())) == 3
    shared_memory.remove_left(time.time() - 60, tmp_path, only=ours)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mpich_shm_others", "other"]


def test_tests_remove_what_no_process_has(tmp_path):
    for name in ("mpich_shm_mapped", "mpich_shm_open", "mpich_shm_left", "other"):
        (tmp_path / name).write_bytes(bytes(4096))
    with open(tmp_path / "mpich_shm_mapped", "r+b") as file:
        segment = mmap.mmap(file.fileno(), 4096)
    with segment, open(tmp_path / "mpich_shm_open", "rb"):
        assert left_files.remove_left(time.time() + 60, tmp_path) == []
        assert left_files.remove_left(time.time() - 60, tmp_path) == ["mpich_shm_left"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mpich_shm_mapped", "mpich_shm_open", "other"]
    assert len(left_files.remove_left(time.time() - 60, tmp_path)) == 2
