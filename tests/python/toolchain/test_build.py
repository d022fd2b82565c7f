"""The native build: made once, under a key of everything it depends on, whole or not at all."""

import os
import threading

import pytest

from earlybird.cli import main
from earlybird.data.errors import InputError, WorkError
from earlybird.machine.flavours import Flavour, wheel_folder
from earlybird.toolchain import build, install

# Stands in for native/: nothing is compiled, one file is installed.
CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.25)
project(stand_in LANGUAGES NONE)
install(FILES features.json DESTINATION .)
"""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    folder = tmp_path / "native"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(CMAKE_LISTS)
    (folder / "features.json").write_text('{"has_partitioned": true}')
    monkeypatch.setattr(build, "native_sources", lambda: folder)
    return folder


@pytest.fixture
def flavour(tmp_path, sources, monkeypatch, nothing_installed):
    """An MPI that consists of an mpicc and a libmpi, and an empty home."""
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    for name in install.JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("bin/mpicc", "lib/libmpi.so"):
        (tmp_path / "mpi" / name).parent.mkdir(parents=True)
        (tmp_path / "mpi" / name).write_text("#!/bin/sh\n")
    mpicc = tmp_path / "mpi" / "bin" / "mpicc"
    mpicc.chmod(0o755)
    return Flavour(str(mpicc), "mpich", "1.0", mpicc, mpicc.parent / "mpiexec")


def silent(text: str) -> None:
    pass


def test_the_key_changes_with_what_a_build_depends_on(flavour, sources, tmp_path, monkeypatch):
    keys = [build.native_prefix(flavour)]

    def note_key():
        keys.append(build.native_prefix(flavour))

    (sources / "features.json").write_text("{}")
    note_key()
    (sources / "new.cpp").write_text("")
    note_key()
    (sources / "new.cpp").rename(sources / "renamed.cpp")
    note_key()
    flavour.mpicc.write_text("#!/bin/sh\n# another\n")
    note_key()
    (tmp_path / "mpi" / "lib" / "libmpi.so").write_text("another library")
    note_key()
    assert len(set(keys)) == len(keys)


def test_the_key_stays_when_nothing_that_matters_changes(flavour, sources, monkeypatch):
    before = build.native_prefix(flavour)
    os.utime(sources / "CMakeLists.txt", (1, 1))
    monkeypatch.setenv("CFLAGS", "-O0")
    assert build.native_prefix(flavour._replace(version="told otherwise")) == before


def test_the_key_is_remembered_and_computed_again_where_a_file_looks_different(flavour, sources, monkeypatch):
    before = build.native_prefix(flavour)
    monkeypatch.setattr(build, "_digest", lambda *_: pytest.fail("the sources were read again"))
    assert build.native_prefix(flavour) == before
    monkeypatch.setattr(build, "_digest", lambda *_: "another")
    os.utime(sources / "CMakeLists.txt", (1, 1))
    assert build.native_prefix(flavour).name.endswith("-another")
    # What is remembered of another version of Earlybird, or damaged, is no key.
    for path in build.home().glob("keys/*"):
        path.write_text("damaged")
    assert build.native_prefix(flavour).name.endswith("-another")


def test_an_mpi_has_one_build_however_it_is_given(flavour, tmp_path, monkeypatch):
    """As `system`, by its path, or by links to it, such as those of the alternatives system or a module."""
    mpicc = flavour.mpicc.rename(flavour.mpicc.with_name("wrapper"))
    (mpicc.parent / "mpicc.openmpi").symlink_to("wrapper")
    (tmp_path / "alternatives").mkdir()
    (tmp_path / "alternatives" / "mpi").symlink_to(mpicc.parent / "mpicc.openmpi")
    (mpicc.parent / "mpicc").symlink_to(tmp_path / "alternatives" / "mpi")
    (tmp_path / "module").symlink_to("mpi")
    paths = [mpicc.parent / "mpicc", mpicc.parent / "mpicc.openmpi", tmp_path / "module" / "bin" / "mpicc"]
    given = [
        flavour._replace(name="system"),
        *(flavour._replace(name=str(path), mpicc=path) for path in paths),
    ]
    assert len({build.native_prefix(each) for each in given}) == 1
    names = {build.built_by(each.name, each.mpicc)[0] for each in given}
    assert names == {str(mpicc.parent / "mpicc.openmpi")}
    wheel = wheel_folder("mpich") / "bin" / "mpicc"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("#!/bin/sh\n")
    by_name = flavour._replace(name="mpich", mpicc=wheel)
    assert build.native_prefix(by_name._replace(name=str(wheel))) == build.native_prefix(by_name)


def test_a_second_build_does_nothing(flavour):
    said = []
    prefix = build.build_native(flavour, said.append)
    assert build.is_built(flavour)
    assert build.features(flavour) == {"has_partitioned": True}
    before = (prefix / "features.json").stat().st_mtime_ns
    assert build.build_native(flavour, said.append) == prefix
    assert (prefix / "features.json").stat().st_mtime_ns == before
    assert len(said) == 1


def test_another_compiler_or_other_flags_build_again_under_the_same_key(flavour, monkeypatch):
    said = []
    prefix = build.build_native(flavour, said.append)
    monkeypatch.setenv("CXX", "true")
    assert build.native_prefix(flavour) == prefix
    build.build_native(flavour, said.append)
    build.build_native(flavour, said.append)
    assert len(said) == 2


def test_a_compute_node_finds_a_build_without_having_the_compilers(flavour, monkeypatch):
    build.build_native(flavour, silent)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("PATH", "/nowhere")
    assert build.is_built(flavour)
    build.build_native(flavour, silent)


def test_a_build_of_new_sources_leaves_the_old_one_to_whoever_runs_it(flavour, sources):
    old = build.build_native(flavour, silent)
    (sources / "more.cpp").write_text("")
    new = build.build_native(flavour, silent)
    assert new != old
    assert sorted(path.name for path in old.parent.iterdir()) == sorted([old.name, new.name])


def test_a_fuzz_target_is_no_part_of_a_build(flavour, sources):
    prefix = build.build_native(flavour, silent)
    (sources / "fuzz").mkdir()
    (sources / "fuzz" / "target.cpp").write_text("")
    assert build.native_prefix(flavour) == prefix


def test_mpis_with_long_like_ended_paths_keep_a_build_each(flavour, tmp_path):
    ending = "share/" + "x" * 60 + "/bin/mpicc"
    first, second = (flavour._replace(name=f"/opt/{which}/{ending}") for which in ("one", "two"))
    build.build_native(first, silent)
    second.mpicc.write_text("#!/bin/sh\n# second\n")
    build.build_native(second, silent)
    assert len([path for path in (tmp_path / "home" / "native").iterdir() if path.is_dir()]) == 2


def test_a_failing_build_is_one_sentence_and_leaves_nothing_half_made(flavour, sources, tmp_path):
    with open(sources / "CMakeLists.txt", "a") as stream:
        stream.write('message(STATUS "Looking for a lamp - not found")\n')
        stream.write('message(FATAL_ERROR "Could not pass: the moon is in the way")\n')
    with pytest.raises(WorkError) as raised:
        build.build_native(flavour, silent)
    sentence = str(raised.value)
    assert raised.value.exit_status == 1
    assert "\n" not in sentence and "the moon is in the way" in sentence and str(flavour.mpicc) in sentence
    log = tmp_path / "home" / "native" / "failed-build.txt"
    assert str(log) in sentence and log.exists()
    assert [path for path in log.parent.iterdir() if path.is_dir()] == []
    assert not build.is_built(flavour)


def test_files_of_killed_compilers_end_with_the_build(flavour, monkeypatch):
    used, run = [], build._run

    def run_and_note(command, environment, *more):
        used.append(environment["TMPDIR"])
        run(command, environment, *more)

    monkeypatch.setattr(build, "_run", run_and_note)
    prefix = build.build_native(flavour, silent)
    assert used and all(folder.startswith(f"{prefix.parent}/") for folder in used)
    assert not any(os.path.exists(folder) for folder in used)


def test_a_build_cut_short_is_made_again(flavour):
    prefix = build.native_prefix(flavour)
    (prefix / "bin").mkdir(parents=True)
    assert not build.is_built(flavour)
    build.build_native(flavour, silent)
    assert build.is_built(flavour) and not (prefix / "bin").exists()


def test_two_builds_at_once_make_one(flavour):
    said, prefixes = [], []
    threads = [
        threading.Thread(target=lambda: prefixes.append(build.build_native(flavour, said.append)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert prefixes == [build.native_prefix(flavour)] * 2
    assert len(said) == 1


@pytest.mark.parametrize("variable", install.JOB_VARIABLES)
def test_compute_nodes_do_not_build(flavour, monkeypatch, variable):
    monkeypatch.setenv(variable, "17")
    with pytest.raises(InputError, match=r"earlybird build .* on the login node"):
        build.build_native(flavour, silent)
    with pytest.raises(InputError, match=r"earlybird build .* on the login node"):
        build.kernel_path(flavour, "pingpong")


def test_compute_nodes_use_what_is_built(flavour, monkeypatch):
    prefix = build.build_native(flavour, silent)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert build.build_native(flavour, silent) == prefix
    assert build.kernel_path(flavour, "pingpong") == prefix / "bin" / "pingpong"


def test_an_absent_build_is_named_with_the_command_that_makes_it(flavour):
    with pytest.raises(InputError, match=f"run `earlybird build --mpi {flavour.name}`$"):
        build.require_built(flavour)


def test_measuring_with_an_mpi_that_is_not_built_leaves_no_run_folder(flavour, tmp_path, monkeypatch, capsys):
    mpiexec = flavour.mpicc.parent / "mpiexec"
    mpiexec.write_text("#!/bin/sh\necho HYDRA build details: Version: 1.0\n")
    for path in (flavour.mpicc, mpiexec):
        path.chmod(0o755)
    arguments = ["measure", "pingpong", "--mpi", str(flavour.mpicc), "-o", str(tmp_path / "run")]
    monkeypatch.setattr("sys.argv", ["earlybird", *arguments])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert end.value.code == 2
    assert "earlybird build --mpi" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_home_that_cannot_be_written_is_named(flavour, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(InputError, match="set EARLYBIRD_HOME"):
        build.build_native(flavour, silent)


def test_a_wheel_that_cannot_be_installed_is_one_sentence(flavour, tmp_path, monkeypatch):
    monkeypatch.setitem(install.flavours.WHEELS, "mpich", ("mpich==0.0.0.dev0",))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(WorkError, match="cannot install mpich from PyPI") as raised:
        install.install_flavour("mpich", silent)
    assert "\n" not in str(raised.value)
    assert not install.flavours.is_installed("mpich")


def test_an_administrators_build_is_used_by_who_may_not_write_there(flavour, tmp_path, monkeypatch):
    """Whatever compilers that user has, and without a lock or a key beside the build."""
    shared = tmp_path / "home"
    prefix = build.build_native(flavour, silent)
    before = {path: path.lstat().st_mtime_ns for path in shared.rglob("*")}
    monkeypatch.setattr("earlybird.machine.home.installation_homes", lambda: [shared])
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("CXX", "true")
    assert build.is_built(flavour) and build.native_prefix(flavour) == prefix
    assert build.build_native(flavour, lambda text: pytest.fail(text)) == prefix
    assert {path: path.lstat().st_mtime_ns for path in shared.rglob("*")} == before
    # Other sources are built in the user's own home, which then comes first.
    (build.native_sources() / "more.cpp").write_text("")
    own = build.build_native(flavour, silent)
    assert own.is_relative_to(tmp_path / "own") and build.native_prefix(flavour) == own
