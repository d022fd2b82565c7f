"""What was built can be removed: all of it, or one MPI's, and nothing else."""

import json
import os

import pytest

from earlybird.cli import main
from earlybird.data.errors import WorkError
from earlybird.toolchain.remove import remove_builds

KEY = "0123456789ab"


@pytest.fixture
def home(tmp_path, monkeypatch, nothing_installed):
    """A home in which everything that Earlybird makes is."""
    folder = tmp_path / "home"
    files = (
        "mpi/mpich-5.0.2/installed", "mpi/mpich-4.3.0/installed", "mpi/intel-2021.18.1/installed",
        "mpi/simgrid/usr/bin/smpicc", f"native/mpich-{KEY}/features.json",
        f"native/intel-{KEY}/features.json",
        f"native/opt-mpich-bin-mpicc-{KEY}/features.json", "native/failed-build.txt", "keys/mpich",
        "keys/intel", "launchers/0a/mpiexec", "tools/0b/mpicc", "locks/install-mpich",
    )  # fmt: skip
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("" if name.startswith("locks") else "a file")
    monkeypatch.setenv("EARLYBIRD_HOME", str(folder))
    return folder


def left(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_everything_is_removed_with_the_home(home):
    removed, kept = remove_builds()
    assert not kept and not home.exists()
    assert home / "mpi" / "simgrid" in [path for path, _ in removed]
    assert all(size_bytes > 0 for path, size_bytes in removed if path.name != "locks")


def test_a_file_of_the_users_stays_with_its_folder(home):
    (home / "notes.txt").write_text("own")
    remove_builds()
    assert left(home) == ["notes.txt"]


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


def test_what_a_link_leads_to_stays(home, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "file").write_text("somebody's")
    (home / "mpi" / "openmpi-5.0.11").symlink_to(tmp_path / "shared")
    remove_builds()
    assert not home.exists() and (tmp_path / "shared" / "file").exists()


def test_a_home_whose_mpis_are_a_link_keeps_what_they_are(home, tmp_path):
    (home / "mpi").rename(tmp_path / "shared")
    (home / "mpi").symlink_to(tmp_path / "shared")
    remove_builds()
    assert (tmp_path / "shared" / "mpich-5.0.2" / "installed").exists() and not home.exists()


def test_builds_of_other_users_stay(home, monkeypatch):
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    removed, kept = remove_builds(["intel"])
    assert not removed and len(kept) == 3 and all(path.exists() for path in kept)


def test_what_cannot_be_removed_is_one_sentence(home, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(WorkError, match=r"cannot remove .*: Permission denied; .*repeat the command"):
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
