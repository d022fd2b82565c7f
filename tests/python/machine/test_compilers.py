"""A compiler gets the launcher of its own MPI, whatever both are called and whatever else is installed."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from earlybird.cli import main
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.launch import execution
from earlybird.launch.choice import built_flavours, choose_flavour
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine import discovery, flavours
from earlybird.machine.compilers import is_compiler_name

BANNERS = {
    "mpich": "HYDRA build details:\n    Version:    {}\n    Configure options:  '--prefix=/opt/openmpi'\n",
    "openmpi": "mpiexec (OpenRTE) {}\n",
    "intel": "Intel(R) MPI Library for Linux* OS, Version {} Build 20230302 (id: 0)\n",
    "slurm": "slurm {}\n",
}
HEADERS = {
    "mpich": '#define MPICH_VERSION "{}"\n',
    "intel": '#define I_MPI_VERSION "{}"\n#define MPICH_VERSION "3.4a2"\n',
    "mvapich": '#define MVAPICH_VERSION "4.0"\n#define MPICH_VERSION "{}"\n',
}


@pytest.fixture
def machine(tmp_path, monkeypatch, nothing_installed):
    """A machine whose only MPIs are those that a test makes; its PATH is its folder `bin`."""
    root = tmp_path / "machine"
    (root / "bin").mkdir(parents=True)
    for name in ("sh", "cat", "echo", "true"):
        (root / "bin" / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(root / "bin"))
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(discovery, "PLACES", (str(root / "lib*" / "*mpi*" / "bin"),))
    for name in os.environ:
        if discovery._VARIABLE.fullmatch(name):
            monkeypatch.delenv(name)
    return Machine(root)


class Machine:
    def __init__(self, root: Path) -> None:
        self.root = root

    def program(self, path: str, text: str) -> Path:
        program = self.root / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        return program

    def launcher(self, path: str, family: str, version: str) -> Path:
        return self.program(path, f'#!/bin/sh\necho "{BANNERS[family].format(version)}"\n')

    def compiler(self, path: str, family: str, version: str) -> Path:
        """A wrapper that names the folder of its header."""
        folder = self.root / "include" / path.replace("/", "-")
        folder.mkdir(parents=True)
        if family == "openmpi":
            parts = zip(("MAJOR", "MINOR", "RELEASE"), version.split("."), strict=True)
            header = "".join(f"#define OMPI_{part}_VERSION {number}\n" for part, number in parts)
        else:
            header = HEADERS[family].format(version)
        (folder / "mpi.h").write_text(header)
        return self.program(path, f"#!/bin/sh\necho gcc -I{folder} -lmpi\n")

    def link(self, path: str, target: str) -> Path:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(self.root / target)
        return self.root / path

    def side_by_side(self) -> None:
        """MPICH and Open MPI as Debian installs both, Open MPI being the one of the alternatives system."""
        self.compiler("bin/mpicc.mpich", "mpich", "4.0.2")
        self.compiler("bin/mpicc.openmpi", "openmpi", "4.1.4")
        self.launcher("bin/mpiexec.hydra", "mpich", "4.0.2")
        self.launcher("bin/orterun", "openmpi", "4.1.4")
        self.link("bin/mpiexec.mpich", "bin/mpiexec.hydra")
        self.link("bin/mpiexec.openmpi", "bin/orterun")
        for name, target in (("mpicc", "mpi"), ("mpiexec", "mpiexec")):
            self.link(f"etc/alternatives/{target}", f"bin/{name}.openmpi")
            self.link(f"bin/{name}", f"etc/alternatives/{target}")


def paired(path: Path) -> tuple[str, str, str]:
    flavour = flavours.find_flavour(str(path))
    return flavour.family, flavour.version, os.path.basename(os.path.realpath(flavour.mpiexec))


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("mpicc.mpich", ("mpich", "4.0.2", "mpiexec.hydra")),
        ("mpicc.openmpi", ("openmpi", "4.1.4", "orterun")),
        ("mpicc", ("openmpi", "4.1.4", "orterun")),
    ],
)
def test_mpis_side_by_side_keep_their_launchers(machine, name, pair):
    machine.side_by_side()
    assert paired(machine.root / "bin" / name) == pair


def test_alternatives_of_compiler_and_launcher_may_differ(machine):
    machine.side_by_side()
    (machine.root / "etc" / "alternatives" / "mpi").unlink()
    machine.link("etc/alternatives/mpi", "bin/mpicc.mpich")
    assert paired(machine.root / "bin" / "mpicc") == ("mpich", "4.0.2", "mpiexec.hydra")
    # Without the names of Debian, hydra's own is left.
    (machine.root / "bin" / "mpiexec.mpich").unlink()
    flavours._describe.cache_clear()
    assert paired(machine.root / "bin" / "mpicc") == ("mpich", "4.0.2", "mpiexec.hydra")


@pytest.mark.parametrize(
    ("compiler", "launcher"),
    [
        ("mpicc-mpich-mp", "mpiexec-mpich-mp"),
        ("mpicc-openmpi-gcc-4.1", "mpirun-openmpi"),
        ("mpicc.mpich-x", "mpiexec.mpich-x"),
        ("mpicc-4.2", "mpiexec-4.2"),
        ("mpicc_mpich", "mpiexec_mpich"),
        ("mpiicx", "mpiexec.hydra"),
        ("mpicc_abi", "mpirun"),
    ],
)
def test_what_a_compilers_name_ends_in_leads_to_its_launcher(machine, compiler, launcher):
    machine.compiler(f"bin/{compiler}", "mpich", "4.2.1")
    machine.launcher(f"bin/{launcher}", "mpich", "4.2.1")
    machine.launcher("bin/mpiexec", "openmpi", "5.0.1")
    assert paired(machine.root / "bin" / compiler) == ("mpich", "4.2.1", launcher)


def test_a_launcher_is_found_by_the_link_and_by_the_header_of_its_compiler(machine):
    machine.compiler("lib64/openmpi/bin/mpicc", "openmpi", "4.1.4")
    machine.launcher("lib64/openmpi/bin/mpiexec", "openmpi", "4.1.4")
    machine.launcher("bin/mpiexec", "mpich", "4.2.1")
    linked = machine.link("bin/mpicc", "lib64/openmpi/bin/mpicc")
    assert (
        flavours.find_flavour(str(linked)).mpiexec == machine.root / "lib64" / "openmpi" / "bin" / "mpiexec"
    )
    # A script of the site's, which calls the compiler of an MPI elsewhere.
    script = machine.program("bin/mpicc-site", f"#!/bin/sh\nexec {machine.root}/lib64/openmpi/bin/mpicc\n")
    (machine.root / "lib64" / "openmpi" / "include").mkdir()
    header = machine.root / "include" / "lib64-openmpi-bin-mpicc" / "mpi.h"
    header.rename(machine.root / "lib64" / "openmpi" / "include" / "mpi.h")
    machine.program(
        "lib64/openmpi/bin/mpicc", f"#!/bin/sh\necho cc -I{machine.root}/lib64/openmpi/include -lmpi\n"
    )
    assert (
        flavours.find_flavour(str(script)).mpiexec == machine.root / "lib64" / "openmpi" / "bin" / "mpiexec"
    )


def test_versions_tell_two_mpis_of_one_family_apart(machine, monkeypatch):
    machine.compiler("bin/mpicc", "openmpi", "5.0.6")
    machine.launcher("bin/mpiexec", "openmpi", "4.1.4")
    with pytest.raises(InputError, match=r"is Open MPI 5\.0\.6's.*mpiexec is Open MPI 4\.1\.4's; install"):
        flavours.find_flavour("system")
    machine.launcher("module/bin/mpiexec", "openmpi", "5.0.6")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{machine.root}/module/bin")
    assert flavours.find_flavour("system").mpiexec == machine.root / "module" / "bin" / "mpiexec"


@pytest.mark.parametrize(
    ("family", "version", "banner"), [("intel", "2021.9.0", "2021.9"), ("mvapich", "3.4a3", "2.3.7")]
)
def test_versions_that_are_counted_otherwise_are_not_taken_for_others(machine, family, version, banner):
    compiler = machine.compiler("bin/mpicc", family, version)
    machine.launcher("bin/mpiexec", family if family == "intel" else "mpich", banner)
    assert flavours.find_flavour(str(compiler)).version == banner


def test_a_compiler_without_a_launcher_of_its_family_is_refused_with_what_there_is(machine):
    machine.compiler("bin/mpicc.mpich", "mpich", "4.0.2")
    machine.launcher("bin/mpiexec", "openmpi", "4.1.4")
    with pytest.raises(InputError) as raised:
        flavours.find_flavour("mpicc.mpich")
    sentence = str(raised.value)
    assert f"{machine.root}/bin/mpicc.mpich is MPICH 4.0.2's" in sentence
    assert f"{machine.root}/bin/mpiexec is Open MPI 4.1.4's" in sentence
    assert "install the mpiexec of MPICH 4.0.2 or put its folder on PATH" in sentence


def test_a_sites_launcher_goes_with_any_compiler(machine):
    machine.compiler("bin/mpicc.mpich", "mpich", "4.0.2")
    machine.launcher("bin/mpiexec", "openmpi", "4.1.4")
    machine.launcher("bin/srun", "slurm", "23.11")
    assert paired(machine.root / "bin" / "mpicc.mpich") == ("mpich", "4.0.2", "srun")


@pytest.mark.parametrize("family", ["mpich", "intel"])
def test_a_launcher_of_another_release_is_taken_before_a_sites_and_reported(
    machine, family, monkeypatch, capsys
):
    compiler = machine.compiler("bin/mpicc", family, "4.0.2")
    machine.launcher("bin/mpiexec", family, "4.2.1")
    machine.launcher("bin/srun", "slurm", "23.11")
    assert paired(compiler) == (family, "4.0.2", "mpiexec")
    assert f"its launcher {machine.root}/bin/mpiexec is" in flavours.find_flavour("system").warning
    monkeypatch.setattr("earlybird.cli.commands.doctor.is_built", lambda flavour: True)
    assert "but its launcher" in doctor(monkeypatch, capsys)
    remarks = []
    choose_flavour("system", remarks.append)
    assert remarks[0].startswith("warning: ")
    # Its own release comes first, wherever it is on PATH.
    own = machine.launcher("module/bin/mpiexec", family, "4.0.2")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{own.parent}")
    flavours._describe.cache_clear()
    assert flavours.find_flavour("system").mpiexec == own and not flavours.find_flavour("system").warning


def test_a_launcher_that_fails_is_not_taken_for_a_sites(machine):
    machine.compiler("mine/bin/mpicc", "mpich", "4.0.2")
    machine.program("mine/bin/mpiexec", "#!/bin/sh\necho 'mpiexec: libhwloc.so.15 is missing'\nexit 1\n")
    machine.program("bin/mpirun", "#!/bin/sh\necho a launcher of the site\n")
    assert paired(machine.root / "mine" / "bin" / "mpicc")[2] == "mpirun"
    # One that is known comes before it.
    machine.launcher("bin/mpiexec.hydra", "mpich", "4.0.2")
    flavours._describe.cache_clear()
    assert paired(machine.root / "mine" / "bin" / "mpicc")[2] == "mpiexec.hydra"
    for path in ("bin/mpirun", "bin/mpiexec.hydra"):
        (machine.root / path).unlink()
    flavours._describe.cache_clear()
    with pytest.raises(InputError, match=r"mine/bin/mpiexec does not work \(--version ends with status 1\)"):
        flavours.find_flavour(str(machine.root / "mine" / "bin" / "mpicc"))


@pytest.mark.parametrize("flag", ["-I{}/a/mpi/include", "-L{}/open/lib64", "-Iopen/include", "-I{}/open/x"])
def test_launchers_are_run_where_the_mpi_is_and_nowhere_above_or_where_others_write(
    machine, flag, monkeypatch
):
    for folder in ("a/mpi/include", "open/include", "open/lib64", "open/x"):
        (machine.root / folder).mkdir(parents=True)
    (machine.root / "open").chmod(0o777)
    for folder in ("a", "open", "."):
        machine.program(f"{folder}/bin/mpiexec", f"#!/bin/sh\necho run >> {machine.root}/log\n")
    machine.program("site/mpicc", f"#!/bin/sh\necho gcc {flag.format(machine.root)} -lmpi\n")
    monkeypatch.chdir(machine.root)
    (machine.root / "bin" / "mpiexec").unlink()
    with pytest.raises(InputError, match="there is no mpiexec"):
        flavours.find_flavour(str(machine.root / "site" / "mpicc"))
    assert not (machine.root / "log").exists()


def test_ranks_of_this_machine_are_not_started_by_a_sites_launcher(machine):
    compiler = machine.compiler("bin/mpicc", "mpich", "4.0.2")
    machine.launcher("bin/srun", "slurm", "23.11")
    launcher = MpiexecLauncher(flavours.find_flavour(str(compiler)))
    with pytest.raises(InputError, match=r"has no mpiexec here.*give --launcher srun"):
        launcher.check(parse_layout("1x1x2"))


def test_a_compiler_that_does_not_answer_is_waited_for_once_and_briefly(machine, monkeypatch):
    monkeypatch.setattr(discovery, "ANSWER_LIMIT_S", 0.2)
    for number in range(3):
        machine.program(f"lib{number}/mympi/bin/mpicc", "#!/bin/sh\n/bin/sleep 600\n")
    usable, unusable = discovery.find_mpis([])
    assert not usable and len(unusable) == 3
    assert all("does not answer in 0.2 s" in cause for _, cause in unusable)


def test_the_mpi_of_a_job_is_found_by_the_builds_without_a_search(
    machine, monkeypatch, tmp_path, describe_build
):
    names = [str(machine.compiler(f"{name}/bin/mpicc", "mpich", "4.0.2")) for name in ("a", "b")]
    for name in ("a", "b", "c"):
        machine.launcher(f"{name}/bin/mpiexec", "mpich", "4.0.2")
        build = tmp_path / "home" / "native" / f"x-{name * 12}"
        describe_build(build, str(machine.root / name / "bin" / "mpicc"))
    monkeypatch.setattr(discovery, "find_mpis", None)
    monkeypatch.setattr("earlybird.launch.choice.is_built", lambda flavour: True)
    assert [flavour.name for flavour in built_flavours()] == names
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{machine.root}/b/bin")
    assert [flavour.name for flavour in built_flavours()] == ["system", *reversed(names)]


def test_without_headers_the_library_that_is_linked_gives_the_family(machine):
    (machine.root / "lib").mkdir()
    (machine.root / "lib" / "libmpi.so.40.30.4").write_text("")
    (machine.root / "lib" / "libmpich.so.12.2.0").write_text("")
    machine.link("lib/libmpi.so", "lib/libmpi.so.40.30.4")
    machine.link("lib/libmpich.so", "lib/libmpich.so.12.2.0")
    for name, library in (("mpicc.a", "mpi"), ("mpicc.b", "mpich")):
        machine.program(f"bin/{name}", f"#!/bin/sh\necho gcc -L{machine.root}/lib -l{library}\n")
    machine.launcher("bin/mpiexec", "openmpi", "4.1.4")
    machine.launcher("bin/mpirun", "mpich", "4.0.2")
    assert paired(machine.root / "bin" / "mpicc.a") == ("openmpi", "4.1.4", "mpiexec")
    assert paired(machine.root / "bin" / "mpicc.b") == ("mpich", "4.0.2", "mpirun")


def test_inside_exec_the_plain_names_are_the_chosen_mpis(machine):
    machine.side_by_side()
    machine.program("bin/mpif90.mpich", "#!/bin/sh\necho the Fortran of MPICH\n")
    environment = flavours.find_flavour("mpicc.mpich").environment()

    def run(*command: str) -> str:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "HYDRA" in run("mpiexec") and "HYDRA" in run("mpirun")
    assert "bin-mpicc.mpich" in run("mpicc") and "Fortran of MPICH" in run("mpif90")
    # Where the names are its own already, nothing is put before them.
    plain = flavours.find_flavour("mpicc.openmpi").environment()
    assert plain["PATH"].split(os.pathsep)[0] == str(machine.root / "bin")


def test_without_a_folder_to_write_to_an_mpi_is_used_and_its_names_are_in_doubt(machine, monkeypatch, capsys):
    machine.side_by_side()

    def refuse(*arguments):
        raise InputError("cannot write")

    monkeypatch.setattr(flavours, "scripts_folder", refuse)
    environment = flavours.find_flavour("mpicc.mpich").environment()
    assert environment["PATH"].split(os.pathsep)[0] == str(machine.root / "bin")
    remarks = []
    execution.prepare(execution.Request(["true"], "mpicc.mpich", no_interpose=True), remarks.append)
    assert "mpicc and mpiexec may be another MPI's: cannot write" in remarks[-1]


def doctor(monkeypatch, capsys, *options: str) -> str:
    monkeypatch.setattr("sys.argv", ["earlybird", "doctor", *options])
    with pytest.raises(SystemExit):
        main.run()
    return capsys.readouterr().out


def test_doctor_lists_every_mpi_once_and_those_that_cannot_be_used(machine, monkeypatch, capsys):
    machine.side_by_side()
    machine.compiler("lib64/mympi/bin/mpicc", "openmpi", "5.0.6")
    machine.launcher("lib64/mympi/bin/mpiexec", "openmpi", "5.0.6")
    for name in ("mpicc", "mpiicx"):  # two compilers of one MPI
        machine.compiler(f"oneapi/2021.9/bin/{name}", "intel", "2021.9.0")
    machine.launcher("oneapi/2021.9/bin/mpiexec", "intel", "2021.9")
    monkeypatch.setenv("I_MPI_ROOT", str(machine.root / "oneapi" / "2021.9"))
    monkeypatch.setenv("EBROOTOPENMPI", str(machine.root / "easybuild"))
    lonely = machine.compiler("easybuild/bin/mpicc", "openmpi", "5.0.3")
    found = json.loads(doctor(monkeypatch, capsys, "--json"))
    bin_folder = machine.root / "bin"
    assert [(each["name"], each["family"], each["version"]) for each in found["flavours"]] == [
        ("system", "openmpi", "4.1.4"),
        (f"{bin_folder}/mpicc.mpich", "mpich", "4.0.2"),
        (f"{machine.root}/lib64/mympi/bin/mpicc", "openmpi", "5.0.6"),
        (f"{machine.root}/oneapi/2021.9/bin/mpicc", "intel", "2021.9"),
    ]
    (unusable,) = found["unusable"]
    assert unusable["mpicc"] == str(lonely) and "Open MPI 5.0.3" in unusable["cause"]
    table = doctor(monkeypatch, capsys)
    assert f"earlybird build --mpi {bin_folder}/mpicc.mpich" in table
    assert "mpiexec.mpich" in table and "unusable" in table


@pytest.mark.parametrize("name", ["mpicc", "mpicc.mpich", "mpiicx", "mpicc-4.1", "mpicc_abi"])
def test_compilers_of_c_are_known_by_their_names(name):
    assert is_compiler_name(name)


@pytest.mark.parametrize("name", ["mpiccx", "mpicxx", "mpif90", "smpicc", "gcc", "mpiexec"])
def test_other_programs_are_no_compilers_of_c(name):
    assert not is_compiler_name(name)


@pytest.mark.parametrize("lines", ["", "exit 1", "echo hello"])
def test_a_program_that_is_no_compiler_is_not_taken_for_the_mpi_on_path(machine, lines):
    machine.compiler("bin/mpicc", "openmpi", "4.1.4")
    machine.launcher("bin/mpiexec", "openmpi", "4.1.4")
    other = machine.program("other/bin/mpicc", f"#!/bin/sh\n{lines}\n")
    with pytest.raises(InputError, match=r"is no MPI compiler.*give the path of an mpicc"):
        flavours.find_flavour(str(other))
