"""Folders of results appear whole or not at all, and of two processes that want one the second is refused."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from earlybird.data import folders, locks
from earlybird.data.errors import InputError
from earlybird.data.recording import load_recording, recording_into
from earlybird.data.run import Run
from tests.recordings import start_recording


def create(path, **more):
    return Run.create(path, machine={}, command=[], seed=1, **more)


def test_a_run_is_there_only_with_all_that_belongs_to_it(tmp_path):
    """A replay that is killed while its pattern is written could not be continued, and was in the way."""

    def write(folder):
        assert not (tmp_path / "run").exists()
        (folder / "pattern.npz").write_bytes(b"pattern")

    run = create(tmp_path / "run", contents=write)
    assert sorted(path.name for path in run.path.iterdir()) == ["pattern.npz", "run.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_in_the_folder_of_a_project_is_of_its_group(tmp_path, monkeypatch):
    """Also while another thread makes files: the umask is of the whole process."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project").chmod(0o2775)
    (tmp_path / "project" / "ordinary").mkdir()
    monkeypatch.setattr(os, "umask", None)
    run = create(tmp_path / "project" / "run")
    assert run.path.stat().st_mode == (tmp_path / "project" / "ordinary").stat().st_mode
    assert run.path.stat().st_mode & stat.S_ISGID


def test_what_fails_leaves_nothing(tmp_path):
    def fail(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create(tmp_path / "run", contents=fail)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_killed_while_it_creates_a_run_is_not_in_the_way(tmp_path):
    code = (
        "import os, sys; from earlybird.data.run import Run; kill = lambda folder: os.kill(os.getpid(), 9);"
        "Run.create(sys.argv[1], machine={}, command=[], seed=1, contents=kill)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "run"]).returncode == -9
    assert not (tmp_path / "run").exists()
    create(tmp_path / "run")


def test_of_two_processes_that_create_one_run_the_second_is_refused(tmp_path):
    with pytest.raises(InputError, match="exists already"):
        create(tmp_path / "run", contents=lambda folder: create(tmp_path / "run") and None)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_nothing_is_replaced(tmp_path, kind):
    path = tmp_path / "run"
    {"file": path.touch, "link": lambda: path.symlink_to("nowhere"), "folder": path.mkdir}[kind]()
    with pytest.raises(InputError, match="exists already"):
        create(path)


def test_of_two_processes_that_record_into_one_folder_the_second_is_refused(tmp_path):
    """Before the first rank writes, too, when the folder looks like one that nobody needs."""
    with (
        recording_into(tmp_path / "rec", {"command": ["first"]}),
        pytest.raises(InputError, match="another earlybird is recording into"),
    ):
        start_recording(tmp_path / "rec", {"command": ["second"]})
    assert load_recording(tmp_path / "rec").command == ("first",)
    start_recording(tmp_path / "rec", {"command": ["second"]})
    assert load_recording(tmp_path / "rec").command == ("second",)
    assert [path.name for path in tmp_path.iterdir()] == ["rec"]


def test_a_lock_is_not_inherited(tmp_path):
    """Daemons that a recorded program leaves would keep it."""
    (tmp_path / "file").touch()
    with folders.locked(tmp_path / "file"):
        child = subprocess.Popen(["sleep", "10"])
    with folders.locked(tmp_path / "file"):
        child.kill()
    child.wait()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP])
def test_where_a_file_system_has_no_locks_nothing_is_locked(tmp_path, monkeypatch, number):
    def flock(file, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / "file").touch()
    with folders.locked(tmp_path / "file"), folders.locked(tmp_path / "file"):
        pass


def test_a_file_that_was_replaced_meanwhile_is_not_taken_for_the_locked_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.touch()
    real = fcntl.flock

    def flock(file, operation):
        real(file, operation)
        path.unlink()
        path.touch()

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(locks.Locked), folders.locked(path):
        pass


def test_there_is_one_place_that_locks():
    """What a file system without locks, a reader and a removed file need is known there."""
    package = Path(folders.__file__).parents[1]
    assert [path.name for path in package.rglob("*.py") if "fcntl" in path.read_text()] == ["locks.py"]


def test_whether_a_lock_is_taken_is_asked_without_taking_it(tmp_path):
    (tmp_path / "file").touch()
    with open(tmp_path / "file") as first, open(tmp_path / "file") as second:
        assert not locks.is_taken(first.fileno()) and not locks.is_taken(second.fileno())
        locks.take(first.fileno(), waits=False)
        assert locks.is_taken(second.fileno())
        with pytest.raises(locks.Locked):
            locks.take(second.fileno(), waits=False)
