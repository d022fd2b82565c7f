"""What was built can be removed: all of it, or one MPI's, and nothing else."""

import fcntl
import json
import os
import threading

import pytest

from earlybird.cli import main
from earlybird.data.errors import InputError, WorkError
from earlybird.toolchain.install import locked
from earlybird.toolchain.remove import IN_USE, NOT_MADE, OTHER_USERS, remove_builds

KEY = "0123456789ab"
KEY_FILE = f"{KEY}\nx86_64\n0.1.0\n/opt/mpi/bin/mpicc 1 2"


@pytest.fixture
def home(tmp_path, monkeypatch, nothing_installed):
    """A home in which everything that Earlybird makes is."""
    folder = tmp_path / "home"
    files = (
        "mpi/mpich-5.0.2/installed", "mpi/mpich-4.3.0/installed", "mpi/intel-2021.18.1/installed",
        "mpi/simgrid/usr/bin/smpicc", f"native/mpich-{KEY}/features.json",
        f"native/intel-{KEY}/features.json",
        f"native/opt-mpich-bin-mpicc-{KEY}/features.json", "native/failed-build.txt", "keys/mpich",
        "keys/intel", "launchers/0a0b0c0d/mpiexec", "tools/01234567/mpicc", "locks/install-mpich",
        "native/.build-abc_0123/log.txt", "mpi/.new-abc_0123/libsimgrid.deb",
    )  # fmt: skip
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        texts = {"locks": "", "keys": KEY_FILE}
        (folder / name).write_text(texts.get(name.partition("/")[0], "a file"))
    monkeypatch.setenv("EARLYBIRD_HOME", str(folder))
    return folder


def left(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_everything_is_removed_with_the_home(home):
    removed, kept = remove_builds()
    assert not kept and not home.exists()
    assert home / "mpi" / "simgrid" in [path for path, _ in removed]
    assert all(size_bytes > 0 for path, size_bytes in removed if path.name != "locks")


def test_files_of_the_users_stay_with_their_folders_and_are_listed(home, monkeypatch, capsys):
    own = (
        "notes.txt", "mpi/my-mpich/bin/mpicc", "mpi/mpich-mine/installed", "mpi/intel-2020/data",
        "native/notes", f"native/data-{KEY}/results.csv", "keys/id_rsa", "launchers/start.sh",
        "launchers/mine/mpiexec", "tools/convert.py", "locks/door.txt", "locks/build-notes",
    )  # fmt: skip
    for name in own:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("own")
    _, kept = remove_builds()
    assert left(home) == sorted(own)
    assert set(kept.values()) == {NOT_MADE} and len(kept) == len(own) - 1  # the home is not listed
    note = run(monkeypatch, capsys).err
    assert f"{home}/mpi/intel-2020" in note and "3 more stay, because Earlybird did not make them" in note


def test_folders_of_the_users_that_are_empty_stay(tmp_path, monkeypatch):
    for name in ("tools", "mpi"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path))
    assert remove_builds() == ([], {}) and (tmp_path / "tools").is_dir() and (tmp_path / "mpi").is_dir()


def test_where_the_home_that_is_given_is_read_only_nothing_else_is_removed(home, tmp_path, monkeypatch):
    given = tmp_path / "shared"
    given.mkdir()
    before = left(home)
    for variable, folder in (("XDG_DATA_HOME", home.parent), ("EARLYBIRD_HOME", given)):
        monkeypatch.setenv(variable, str(folder))
    home.rename(home.with_name("earlybird"))
    may_write = os.access  # root may write anywhere
    monkeypatch.setattr(os, "access", lambda path, mode: path != given and may_write(path, mode))
    with pytest.raises(InputError, match=rf"EARLYBIRD_HOME is {given}, in which you may not remove anything"):
        remove_builds()
    assert left(home.with_name("earlybird")) == before


def test_what_another_process_builds_stays_with_its_lock(home):
    (home / "locks" / f"build-mpich-{KEY}").touch()
    with open(home / "locks" / f"build-mpich-{KEY}") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        _, kept = remove_builds()
        assert kept == {
            home / "native" / f"mpich-{KEY}": IN_USE, home / "locks" / f"build-mpich-{KEY}": IN_USE
        }  # fmt: skip
        assert (home / "native" / f"mpich-{KEY}" / "features.json").exists()
        assert (home / "native" / ".build-abc_0123").exists() and not (home / "mpi" / "mpich-5.0.2").exists()
    assert not remove_builds()[1] and not home.exists()


def test_a_process_that_waits_for_a_lock_that_is_removed_gets_another(home):
    path = home / "locks" / "install-mpich"
    has_it = threading.Event()

    def wait():
        with locked("install-mpich"), open(path) as stream, pytest.raises(BlockingIOError):
            has_it.set()
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with open(path) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        waiting = threading.Thread(target=wait)
        waiting.start()
        path.unlink()
    waiting.join(30)
    assert has_it.is_set()


def test_the_build_of_another_mpi_with_the_same_label_stays(home, describe_build):
    for key, name in (("0" * 12, "/opt/a/b-mpicc"), ("1" * 12, "/opt/a-b-mpicc")):
        build = home / "native" / f"opt-a-b-mpicc-{key}"
        describe_build(build, name)
        (build / "features.json").write_text("{}")
    removed, _ = remove_builds(["/opt/a/b-mpicc"])
    assert [path.name for path, _ in removed] == ["opt-a-b-mpicc-000000000000"]


def test_one_mpi_is_removed_in_every_version_and_no_other(home):
    before = set(left(home))
    removed, _ = remove_builds(["mpich"])
    assert [str(path.relative_to(home)) for path, _ in removed] == [
        f"native/mpich-{KEY}", "mpi/mpich-4.3.0", "mpi/mpich-5.0.2", "keys/mpich",
    ]  # fmt: skip
    gone = {name for name in before if "/mpich" in name and not name.startswith("locks")}
    assert set(left(home)) - {f"locks/build-mpich-{KEY}"} == before - gone


def test_the_build_of_an_mpi_that_is_gone_is_removed_by_its_path(home):
    removed, _ = remove_builds(["/opt/mpich/bin/mpicc"])
    assert [path.name for path, _ in removed] == [f"opt-mpich-bin-mpicc-{KEY}"]


def test_links_stay_with_what_they_lead_to(home, tmp_path):
    (home / "mpi").rename(tmp_path / "shared")
    (home / "mpi").symlink_to(tmp_path / "shared")
    (home / "native" / f"openmpi-{KEY}").symlink_to(tmp_path / "shared")
    _, kept = remove_builds()
    assert kept == dict.fromkeys([home / "mpi", home / "native" / f"openmpi-{KEY}"], NOT_MADE)
    assert (tmp_path / "shared" / "mpich-5.0.2" / "installed").exists()


def test_builds_of_other_users_stay(home, monkeypatch):
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    removed, kept = remove_builds(["intel"])
    assert not removed and len(kept) == 3 and all(path.exists() for path in kept)
    assert set(kept.values()) == {OTHER_USERS}


def test_what_cannot_be_removed_is_one_sentence(home, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(WorkError, match=r"cannot remove .*: permission denied; .*repeat the command"):
        remove_builds(["intel"])


def run(monkeypatch, capsys, *arguments: str):
    monkeypatch.setattr("sys.argv", ["earlybird", "build", "--remove", *arguments])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert not end.value.code
    return capsys.readouterr()


def test_the_command_prints_what_it_freed(home, monkeypatch, capsys):
    result = json.loads(run(monkeypatch, capsys, "--json", "--mpi", "intel").out)
    assert result["home"] == str(home) and result["kept"] == []
    assert result["freed_bytes"] == sum(item["size_bytes"] for item in result["removed"]) > 0
    output = run(monkeypatch, capsys).out.splitlines()
    assert output[-1].endswith(f"freed in {home}") and all(
        line.startswith("removed ") for line in output[:-1]
    )
    assert run(monkeypatch, capsys).out == f"nothing to remove in {home}\n"
    assert not home.exists()


def test_what_is_built_beside_the_installation_stays(home, tmp_path, monkeypatch, capsys):
    shared = tmp_path / "prefix" / "share" / "earlybird"
    (shared / "mpi" / "mpich-5.0.2").mkdir(parents=True)
    monkeypatch.setattr("earlybird.machine.home.installation_homes", lambda: [shared])
    assert f"what is in {shared} stays" in run(monkeypatch, capsys).err
    assert (shared / "mpi" / "mpich-5.0.2").exists() and not home.exists()
