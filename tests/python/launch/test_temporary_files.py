"""What killed jobs leave in /tmp is removed, and nothing of a job that lives."""

import fcntl
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from earlybird.launch import shared_memory, temporary_files
from earlybird.launch.recorded_command import run_recorded
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


def test_a_file_of_reports_goes_with_its_process_and_none_is_no_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, young, other = (tmp_path / name for name in ("earlybird-shared-a", "earlybird-shared-b", "other"))
    for path in (killed, young, other):
        path.touch()
    with shared_memory.reports() as first:
        for path in (killed, other, first):
            os.utime(path, (0, 0))
        with shared_memory.reports() as second:
            assert set(tmp_path.iterdir()) == {first, second, young, other}
    assert set(tmp_path.iterdir()) == {young, other}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with shared_memory.reports() as absent:
        assert absent is None


def test_a_command_runs_where_no_temporary_file_can_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    script = 'test -z "${EARLYBIRD_RECORD_SHARED+set}" && exit 3'
    assert run_recorded("/bin/sh", ["sh", "-c", script], {}, False) == 3


def test_the_signal_of_a_broken_lease_does_not_end_the_tests(tmp_path, monkeypatch):
    (tmp_path / "mpich_shm_left").write_bytes(bytes(4096))
    came, control = [], fcntl.fcntl

    def disturbed(descriptor, command, argument):
        result = control(descriptor, command, argument)
        signal.raise_signal(signal.SIGIO)
        return result

    monkeypatch.setattr(fcntl, "fcntl", disturbed)
    before = signal.signal(signal.SIGIO, lambda number, frame: came.append(number))
    try:
        assert left_files.remove_left(time.time() - 60, tmp_path) == ["mpich_shm_left"]
        assert came == []
        signal.raise_signal(signal.SIGIO)
        assert came == [signal.SIGIO]
    finally:
        signal.signal(signal.SIGIO, before)


def test_tests_leave_the_folders_of_daemons(tmp_path, monkeypatch, no_other_proxy):
    """In a container that shares /tmp, a live one of another has no process here."""
    monkeypatch.setattr(left_files.temporary_files.remove_left, "__defaults__", (tmp_path, Path("/proc")))
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f"ompi.{ended.pid}").mkdir()
    left_files.remove_left(time.time() - 60, tmp_path)
    assert (tmp_path / f"ompi.{ended.pid}").exists()


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
