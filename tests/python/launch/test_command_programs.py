"""When every rank of a launch is known to be reached, and when one program of several is not."""

import os
import subprocess
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.launch import command_programs, execution, interpose
from earlybird.machine.flavours import Flavour
from tests.python.launch.conftest import compile_program, make_libmpi


def flavour(family: str = "mpich") -> Flavour:
    return Flavour(family, family, "5.0", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))


def programs_of(*arguments: str, family: str = "mpich") -> command_programs.CommandPrograms:
    return command_programs.programs_of(arguments, flavour(family), os.environ)


@pytest.fixture
def programs(some_programs, monkeypatch):
    """The programs of the fixture, in the working folder."""
    monkeypatch.chdir(some_programs)


@pytest.mark.parametrize(
    "command",
    [
        "mpiexec ./app",
        "mpiexec -n 2 ./app ./script --input ./foreign.txt",
        "mpiexec -l ./app",
        "mpiexec -genv A sh -n 2 ./app",
        "mpiexec --env A=sh -n 2 ./app",
        "mpiexec --mca btl self,vader -n 2 ./app",
        "mpiexec -n 1 ./app : -n 1 ./other",
        "srun --mpi=pmi2 -N 2 -n 2 ./app",
        "aprun -n 2 ./app",
        "jsrun -n 1 -E A=1 ./app",
        "flux run -n 2 ./app",
        "ibrun -n 2 ./app",
    ],
)
def test_a_launch_of_programs_of_this_mpi_is_a_whole_job(programs, command):
    found = programs_of(*command.split())
    assert found.is_whole_job and not found.sentences


@pytest.mark.parametrize(
    "command",
    [
        "./app",  # by itself, or as a rank of a launcher outside
        "mpiexec",
        "mpiexec --version",
        "mpiexec -n 2 ./script",
        "mpiexec -l ./script ./app",
        "mpiexec -n 2 ./plain ./app",
        "mpiexec -n 2 sh -c ./app",
        "mpiexec -n 2 env A=1 ./app",
        "mpiexec -n 2 ./absent ./app",
        "mpiexec -l sh ./app",
        "mpiexec -n 2 python3 ./app",
        "mpiexec -n 2 ./unnumbered",
        "mpiexec -n 1 ./app : -n 1 ./script",
        "mpiexec -n 1 ./app :",
        "mpiexec -configfile ./conf ./app",
        "srun --multi-prog ./conf",
        "flux alloc ./app",
        "sh -c mpiexec ./app",
        "./script mpiexec ./app",
    ],
)
def test_a_launch_with_a_doubt_is_not(programs, command):
    assert not programs_of(*command.split()).is_whole_job


@pytest.mark.parametrize("other", ["./inside", "./foreign"])
def test_one_program_of_several_that_is_not_reached_is_named_in_one_sentence(programs, other):
    for command in (f"mpiexec ./app : {other} : {other}", f"srun {other} : ./app"):
        found = programs_of(*command.split())
        (sentence,) = found.sentences
        assert other in sentence and "./app" not in sentence
        assert not found.is_whole_job
        assert found.other_mpi == (other == "./foreign")


def test_what_a_person_says_of_the_whole_job_stays(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path))
    library = Path("/lib/libearlybird.so")
    arguments, around = ["/mpi/bin/mpiexec", "./app"], {"PATH": "/bin"}
    for environment, expected in ((around, "1"), (around | {"EARLYBIRD_WHOLE_JOB": "0"}, "0")):
        found = programs_of(*arguments)
        _, inner = interpose.wrap(arguments, flavour(), environment, found, library)
        assert inner["EARLYBIRD_WHOLE_JOB"] == expected
    _, inner = interpose.wrap(
        arguments, flavour(), around, programs_of("mpiexec", "./script"), Path("/lib/libearlybird.so")
    )
    assert "EARLYBIRD_WHOLE_JOB" not in inner


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/usr/bin/env python3\n", True),
        ("#!/venv/bin/python\n", True),
        ("#!/bin/sh\nexec python3 -m solver\n", True),
        ("#!/bin/sh\n./app\n", False),
        ("python data\n", False),
    ],
)
def test_a_script_that_runs_python_loads_its_mpi_late(tmp_path, monkeypatch, text, expected):
    (tmp_path / "script").write_text(text)
    (tmp_path / "script").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert programs_of("mpiexec", "-n", "2", "./script", family="openmpi").loads_mpi == expected


def test_a_python_loads_its_mpi_late_and_a_file_of_that_name_does_not(tmp_path, programs):
    assert programs_of("mpiexec", "-n", "2", "python3", "-c", "pass").loads_mpi
    (tmp_path / "python.sh").write_text("#!/bin/sh\n")
    (tmp_path / "python.sh").chmod(0o755)
    assert not programs_of("mpiexec", "-n", "2", str(tmp_path / "python.sh")).loads_mpi
    assert not programs_of("mpiexec", "-n", "2", "./app").loads_mpi


@pytest.mark.parametrize("folder", ["lib", "lib64", "lib/x86_64-linux-gnu"])
def test_open_mpis_library_is_handed_to_the_shims(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    library = tmp_path / "mpi" / folder / "libmpi.so.40"
    library.parent.mkdir(parents=True)
    library.write_text("")
    bin_folder = tmp_path / "mpi" / "bin"
    mpi = Flavour("openmpi", "openmpi", "5.0", bin_folder / "mpicc", bin_folder / "mpiexec")
    arguments, around = ["/usr/bin/true"], {"PATH": "/bin"}
    _, inner = interpose.wrap(
        arguments, mpi, around, command_programs.CommandPrograms(loads_mpi=True), Path("/libearlybird.so")
    )
    assert inner[f"{interpose.PREFIX}LIBMPI"] == str(library)
    assert inner[f"{interpose.PREFIX}LATE"] == "yes"
    # Inside another exec it is not a person's own.
    around = inner | {"LD_PRELOAD": f"/asan.so:/libearlybird.so:{library}"}
    assert interpose.without(around)["LD_PRELOAD"] == "/asan.so"
    _, inner = interpose.wrap(
        arguments, mpi._replace(family="mpich"), {"PATH": "/bin"}, library=Path("/l.so")
    )
    assert f"{interpose.PREFIX}LIBMPI" not in inner


def launcher(folder: Path, name: str, banner: str) -> str:
    (folder / name).write_text(f"#!/bin/sh\necho '{banner}'\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def test_a_launcher_of_another_mpi_than_its_program_is_named(programs, tmp_path):
    other = launcher(tmp_path, "mpiexec.openmpi", "mpiexec.openmpi (OpenRTE) 4.1.4")
    found = programs_of(other, "-n", "2", "./app")
    (sentence,) = found.sentences
    assert found.other_mpi and not found.is_whole_job
    assert f"{other} is the launcher of Open MPI 4.1.4, but ./app is built against MPICH" in sentence
    assert "start it with /mpi/bin/mpiexec" in sentence


@pytest.mark.parametrize(
    "banner", ["HYDRA build details: Version: 4.0.2 CC: openmpi", "mpiexec of a site", "slurm 23.11"]
)
def test_a_launcher_of_the_programs_mpi_or_of_any_is_not_named(programs, tmp_path, banner):
    assert programs_of(launcher(tmp_path, "mpiexec", banner), "-n", "2", "./app").is_whole_job


@pytest.mark.parametrize(
    "name", ["mpiexec-mpich-mp", "mpirun.mpich-x", "mpiexec_openmpi", "mpiexec-4.1", "mpirun-openmpi-gcc12"]
)
def test_launchers_with_what_sites_append_to_their_names_are_launchers(name):
    assert command_programs.launcher_at(["time", f"/opt/bin/{name}", "./app"]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "mpirun_rsh",
        "mpiexec.gforker",
        "mpirun-openmpi.sh",
        "mpirun-all",
        "mpiexecutor",
        "mpirun-intel.log",
        "mpiexec-4.1.out",
        "mpiexec.log",
        "mpirun-job",
        "mpiexec-wrapper",
    ],
)
def test_programs_with_options_of_their_own_are_no_launchers(name):
    assert command_programs.launcher_at([name, "./app"]) is None


@pytest.mark.parametrize("name", ["mpirun-intel-job", "mpiexec-wrapper", "mpirun-4"])
def test_a_script_with_a_launchers_name_runs_once(programs, tmp_path, monkeypatch, name):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    script = tmp_path / name
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path}/runs\n')
    script.chmod(0o755)
    mpi = Flavour("mpich", "mpich", "5.0", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    command, environment = interpose.wrap(
        [str(script), "-n", "2"], mpi, dict(os.environ), library=tmp_path / "libearlybird.so"
    )
    command_programs.programs_of([str(script), "./app"], mpi, dict(os.environ))
    subprocess.run(command, env=environment, check=True, timeout=60)
    assert (tmp_path / "runs").read_text() == "-n 2\n"


def test_a_launcher_with_a_suffix_has_a_shim(tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    program = launcher(tmp_path, "mpiexec-mpich-mp", "HYDRA build details")
    compiler = launcher(tmp_path, "mpicc-mpich-mp", "gcc")
    mpi = Flavour("mpich", "mpich", "5.0", Path(compiler), Path(program))
    for command in ([program, "-n", "2", "app"], ["/bin/true"]):  # itself, or a script that may call it
        _, environment = interpose.wrap(command, mpi, {"PATH": str(tmp_path)})
        shims = Path(environment[f"{interpose.PREFIX}SHIMS"])
        assert (shims / "mpiexec-mpich-mp").exists()


@pytest.fixture
def built(tmp_path, monkeypatch):
    """MPICH and Open MPI, of which MPICH is the default."""
    mpis = {name: flavour(name) for name in ("mpich", "openmpi")}
    monkeypatch.setattr(execution, "choose_flavour", lambda name, note: mpis[name or "mpich"])
    monkeypatch.setattr(execution, "built_flavours", lambda: iter(mpis.values()))
    (tmp_path / "libearlybird.so").touch()
    monkeypatch.setattr(execution, "library_path", lambda mpi: tmp_path / "libearlybird.so")
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    return tmp_path


def test_without_a_choice_the_mpi_that_is_built_and_suits_the_program_is_used(built):
    app = compile_program(built, "app", *make_libmpi(built, "libmpi.so.40"))
    remarks = []
    _, _, environment = execution.prepare(execution.Request([app]), remarks.append)
    assert environment[interpose.FLAVOUR] == "openmpi"
    assert "--mpi openmpi is used" in remarks[-1]
    with pytest.raises(InputError, match="is built against Open MPI"):
        execution.prepare(execution.Request([app], "mpich", records=True), remarks.append)


def test_where_no_mpi_suits_the_program_it_is_reported_as_before(built):
    app = compile_program(built, "app", *make_libmpi(built, "libmpi_abi.so.0"))
    remarks = []
    execution.prepare(execution.Request([app]), remarks.append)
    assert any("is built against the MPI standard's own ABI" in remark for remark in remarks)
