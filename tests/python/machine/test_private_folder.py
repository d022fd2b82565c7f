"""Folders below a shared one are used only if no other user can have made or changed what is in them."""

import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from earlybird.data.errors import EarlybirdError, InputError
from earlybird.launch.cluster import state
from earlybird.launch.cluster.state import Cluster, Node, Process
from earlybird.machine import private_folder

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
OTHER = 12345


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The folder of all clusters, which is not there yet."""
    path = tmp_path / "clusters"
    monkeypatch.setattr(state, "_folder_of_all", lambda: path)
    return path


@pytest.fixture
def outside(tmp_path):
    """What is not to be touched, under every name that is used."""
    folder = tmp_path / "outside"
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        for file in ("cluster.json", "agent", "job", "hosts"):
            (folder / name / file).write_text("kept")
    (folder / ".lock").write_text("kept")
    return folder


def cluster(name="one"):
    process = Process.of(os.getpid())
    return Cluster(name, 1e6, 1 << 20, process, False, (Node("node0", "10.0.0.1", process),))


def contents(folder):
    """What tells a changed file, also if it was changed back."""
    return {
        path: (status := path.lstat()) and (status.st_ino, status.st_ctime_ns) for path in folder.rglob("*")
    }


def use(name="one"):
    """Everything that is done with the folder, and the agent that was given to an MPI."""
    lock = state.claim(name)
    try:
        state.save(cluster(name))
        with state.opened(name) as folder:
            folder.write_text("hosts", "10.0.0.1 node0")
            folder.write_text(state.AGENT, "#!/bin/sh\n", mode=0o700)
        state.begin_job(cluster(name))
        agent = state.load(name).agent
        assert state.job_on(cluster(name)) is not None and len(state.all_running()) == 1
    finally:
        os.close(lock)
    assert state.all_running() == []
    return agent


def test_a_folder_is_made_for_this_user_alone_and_removed_when_empty(path):
    lock = state.claim("one")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path / "one")] == [0o700, 0o700]
    os.close(lock)
    assert state.all_running() == [] and not path.exists()
    assert use() == path / "one" / "agent" and not path.exists()


def test_a_link_that_another_process_swaps_in_is_not_followed(path, outside):
    """Between a check of a path and the use of it, whatever was checked can be replaced."""
    before = contents(outside)
    ended = threading.Event()

    def swap():
        while not ended.is_set():
            for name in (path, path / "one"):
                try:
                    aside = name.with_name("aside")
                    os.rename(name, aside)
                    os.symlink(outside / name.name if name != path else outside, name)
                    time.sleep(0.0005)
                    os.unlink(name)
                    os.rename(aside, name)
                    time.sleep(0.0005)
                except OSError:
                    continue

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(60):
            try:
                use()
            except (EarlybirdError, OSError, AssertionError):
                continue
    finally:
        ended.set()
        thread.join()
    assert contents(outside) == before


@pytest.mark.parametrize("part", ["", "one", ".lock"])
def test_a_link_in_place_of_a_part_is_refused(path, outside, part):
    before = contents(outside)
    if part:
        path.mkdir(mode=0o700)
    (path / part).symlink_to(outside / part)
    if part == "one":
        use()  # what is left of a cluster is replaced
    else:
        with pytest.raises(InputError, match=r"clusters\S* is not a (folder of your own|file)"):
            use()
    assert contents(outside) == before


@pytest.mark.parametrize("name", ["cluster.json", "agent", "job", "hosts", ".cluster.json.new"])
def test_a_link_in_a_folder_of_a_cluster_is_not_followed(path, outside, name):
    before = contents(outside)
    lock = state.claim("one")
    (path / "one" / name).symlink_to(outside / "one" / "job")
    try:
        state.save(cluster())
        if name == "job":
            with pytest.raises(InputError, match="job is not a file"):
                state.begin_job(cluster())
        with state.opened("one") as folder:
            folder.write_text(state.AGENT, "#!/bin/sh\n", mode=0o700)
        state.load("one")
    finally:
        os.close(lock)
    state.all_running()
    assert contents(outside) == before


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o720, 0o702])
def test_a_folder_that_others_may_write_to_is_refused(path, mode):
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(InputError, match="may be written by other users"):
        state.all_running()
    assert list(path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused(path):
    path.write_text("kept")
    with pytest.raises(InputError, match="not a folder of your own"):
        state.all_running()
    assert path.read_text() == "kept"


def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(path):
    path.mkdir(mode=0o700)
    os.mkfifo(path / ".lock")
    with pytest.raises(InputError, match="is not a file"):
        state.all_running()


def test_a_folder_that_others_can_replace_is_refused(path):
    path.parent.chmod(0o777)
    with pytest.raises(InputError, match=r"others can replace .*chmod \+t"):
        state.all_running()
    path.parent.chmod(0o1777)
    assert state.all_running() == []
    path.parent.chmod(0o700)


@as_root
@pytest.mark.parametrize("part", ["", ".lock"])
def test_what_belongs_to_another_user_is_refused(path, part):
    path.mkdir(mode=0o700)
    (path / ".lock").write_text("kept")
    os.chown(path / part, OTHER, OTHER)
    with pytest.raises(InputError, match="not a folder of your own"):
        state.all_running()
    assert (path / ".lock").read_text() == "kept"


@pytest.mark.parametrize("way", ["link", "writable", pytest.param("owner", marks=as_root)])
def test_an_agent_of_others_is_not_given_to_an_mpi(path, outside, way):
    lock = state.claim("one")
    agent = path / "one" / "agent"
    agent.write_text("#!/bin/sh\n")
    agent.chmod(0o700)
    assert cluster().agent == agent
    if way == "link":
        agent.unlink()
        agent.symlink_to(outside / "one" / "agent")
    elif way == "writable":
        agent.chmod(0o770)
    else:
        os.chown(agent, OTHER, OTHER)
    with pytest.raises(InputError):
        _ = cluster().agent
    os.close(lock)
    state.all_running()


def test_a_second_process_does_not_measure_on_a_cluster(path):
    code = (
        "import sys; from pathlib import Path; from earlybird.launch.cluster import state;"
        "state._folder_of_all = lambda: Path(sys.argv[1]);"
        "state.begin_job(state.load('one')); print('begun', flush=True); sys.stdin.read()"
    )
    lock = state.claim("one")
    state.save(cluster())
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "begun\n"
        assert str(other.pid) in (state.job_on(cluster()) or "")
        with pytest.raises(InputError, match=f"process {other.pid} .* is measuring on the cluster one"):
            state.begin_job(cluster())
        other.communicate()
    assert state.job_on(cluster()) is None
    state.begin_job(cluster())
    os.close(lock)
    state.all_running()


def test_a_text_is_there_whole_or_as_it_was(path):
    with private_folder.opened(path, make=True) as folder:
        folder.write_text("file", "first")
        descriptor = folder.open("file", os.O_RDONLY)
        folder.write_text("file", "second", mode=0o640)
        assert os.read(descriptor, 99) == b"first" and folder.read_text("file") == "second"
        os.close(descriptor)
        assert folder.names() == ["file"] and stat.S_IMODE((path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "earlybird.cluster/1"}', "{", "\x00"])
def test_what_is_no_state_of_a_cluster_is_refused(path, text):
    lock = state.claim("one")
    try:
        with state.opened("one") as folder:
            folder.write_text("cluster.json", text)
        with pytest.raises(InputError, match="is not the state of a cluster"):
            state.load("one")
    finally:
        os.close(lock)


def test_what_is_read_of_a_file_is_bounded(path, monkeypatch):
    monkeypatch.setattr(private_folder, "_MAX_BYTES", 8)
    with private_folder.opened(path, make=True) as folder:
        folder.write_text("file", "nine byte")
        with pytest.raises(InputError, match="at most 8 B are read"):
            folder.read_text("file")
