"""The arguments that the shims add to launchers that only print them, and the programs that are reported."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.launch import command_programs, interpose
from earlybird.launch.interpose import PREFIX
from earlybird.machine.flavours import Flavour

LIBRARY = "/opt/earlybird/lib/libearlybird.so"


@pytest.mark.parametrize(
    ("name", "family", "arguments", "expected"),
    [
        ("mpiexec", "mpich", "-n 2 app -x", "-genv LD_PRELOAD {} -n 2 app -x"),
        ("mpirun", "intel", "-n 1 a : -n 1 b", "-genv LD_PRELOAD {} -n 1 a : -n 1 b"),
        ("mpiexec.hydra", "openmpi", "-n 2 app", "-genv LD_PRELOAD {} -n 2 app"),
        ("mpiexec", "mpich", "-genv LD_PRELOAD t app", "-genv LD_PRELOAD {} -genv LD_PRELOAD t:{} app"),
        ("mpiexec", "mpich", "-n 1 -env LD_PRELOAD t a", "-genv LD_PRELOAD {} -n 1 -env LD_PRELOAD t:{} a"),
        ("mpiexec", "openmpi", "-n 2 app", "-x LD_PRELOAD={} -n 2 app"),
        ("prterun", "mpich", "-n 2 app", "-x LD_PRELOAD={} -n 2 app"),
        ("mpirun", "openmpi", "-n 1 a : -n 1 b", "-x LD_PRELOAD={} -n 1 a : -x LD_PRELOAD={} -n 1 b"),
        ("mpirun", "openmpi", "-x LD_PRELOAD=t a : b", "-x LD_PRELOAD=t:{} a : -x LD_PRELOAD={} b"),
        ("mpirun", "openmpi", "a : -x LD_PRELOAD=t b", "-x LD_PRELOAD={} a : -x LD_PRELOAD=t:{} b"),
        ("srun", "mpich", "-n 2 app", "--export=ALL,LD_PRELOAD={} -n 2 app"),
        ("srun", "mpich", "a : -l b", "--export=ALL,LD_PRELOAD={} a : --export=ALL,LD_PRELOAD={} -l b"),
    ],
)  # fmt: skip
def test_the_ranks_and_nothing_else_preload_the_library(call, name, family, arguments, expected):
    got, own, _ = call(name, *arguments.split(), family=family)
    assert got == expected.format(*[LIBRARY] * expected.count("{}")).split()
    assert own == ""


def exports_of_srun(call, *arguments, **variables):
    """The arguments of srun, without the variable of its own that the shim adds to every list."""
    got, _, _ = call("srun", *arguments, **variables)
    return [re.sub(r"(?<=[=,])EARLYBIRD_NODE_NAME_IN,", "", argument) for argument in got]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--export=NONE app", "--export=LD_PRELOAD={},EARLYBIRD_STATS app"),
        ("--export=A=1,B app", "--export=A=1,B,EARLYBIRD_STATS,LD_PRELOAD={} app"),
        ("--export ALL,LD_PRELOAD=/t.so app", "--export ALL,LD_PRELOAD=/t.so:{} app"),
        # The program's own option is none of srun's.
        ("-n 2 app --export=NONE", "-n 2 app --export=NONE"),
        ("--exclusive app --export NONE", "--exclusive app --export NONE"),
        ("-l --mpi pmix -N 2 app --export=x", "-l --mpi pmix -N 2 app --export=x"),
    ],
)
def test_an_export_for_srun_is_composed_with(call, arguments, expected):
    got = exports_of_srun(call, *arguments.split(), EARLYBIRD_STATS="1")
    assert got[0] == f"--export=ALL,LD_PRELOAD={LIBRARY}"
    wanted = expected.replace("{}", LIBRARY).replace(
        f"LD_PRELOAD={LIBRARY},EARLYBIRD_STATS", f"EARLYBIRD_STATS,LD_PRELOAD={LIBRARY}"
    )
    assert got[1:] == wanted.split()


def test_an_export_in_the_environment_of_srun_is_composed_with(call):
    got = exports_of_srun(call, "app", SLURM_EXPORT_ENV="NONE", EARLYBIRD_STATS="1")
    assert got == [f"--export=EARLYBIRD_STATS,LD_PRELOAD={LIBRARY}", "app"]


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_our_variables_reach_remote_ranks_whatever_they_hold(call, family):
    costs = "intra_node_protocols=0:1e-6:1e-6:1e9,8:2:2:2 inter_node_protocols=0:1:1:1 '$x \" *"
    got, _, _ = call("mpiexec", "-n", "2", "app", family=family, EARLYBIRD_COSTS=costs)
    if family == "mpich":
        assert got[got.index("EARLYBIRD_COSTS") - 1 :][:3] == ["-genv", "EARLYBIRD_COSTS", costs]
    else:
        assert got[got.index("EARLYBIRD_COSTS") - 1] == "-x"
    assert not [word for word in got if word.startswith(PREFIX)]


@pytest.mark.parametrize(("family", "word"), [("mpich", "EARLYBIRD_STATS"), ("openmpi", "EARLYBIRD_STATS=0")])
def test_what_the_words_say_of_our_variables_stands(call, family, word):
    got, _, _ = call("mpiexec", "-x", word, "0", "app", family=family, EARLYBIRD_STATS="1")
    assert sum("EARLYBIRD_STATS" in each for each in got) == 1


@pytest.mark.parametrize(
    "preloaded",
    ["/asan.so", f"{LIBRARY}:/asan.so", f"/asan.so /old/libearlybird.so:/old/libearlybird_abi.so {LIBRARY}"],
)
def test_what_a_person_preloads_comes_first_and_the_library_once(call, preloaded):
    got, own, _ = call("mpiexec", "app", LD_PRELOAD=preloaded)
    assert got == ["-genv", "LD_PRELOAD", f"/asan.so:{LIBRARY}", "app"]
    assert own == "/asan.so"


def test_mpiexec_finds_no_shim_when_it_calls_srun_itself(call):
    _, _, path = call("mpiexec", "app")
    assert path == f"{call.real}:/usr/bin:/bin"
    # What srun starts may be a script that calls mpiexec.
    assert call("srun", "app")[2].startswith(f"{call.shims}:")


def test_words_with_blanks_and_stars_arrive_as_they_are(call):
    for family in ("mpich", "openmpi"):
        assert call("mpiexec", "app", "a b", "*", "", "$HOME", family=family)[0][-4:] == [
            "a b",
            "*",
            "",
            "$HOME",
        ]
    assert call("srun", "app", "a b", "*", "", "$HOME")[0][-4:] == ["a b", "*", "", "$HOME"]


@pytest.mark.parametrize(
    ("banner", "first"),
    [
        ("HYDRA build details: --with-openmpi", "-genv"),
        ("Intel(R) MPI Library", "-genv"),
        ("mpirun (Open MPI) 4.1.4", "-x"),
        ("Some MPI 1.0", "app"),
    ],
)
def test_a_launcher_from_elsewhere_is_asked_whose_it_is(call, tmp_path, banner, first):
    other = tmp_path / "mpirun"
    shutil.copy2(call.real / "mpirun", other)
    other.chmod(0o755)
    got, _, _ = call("mpirun", "app", BANNER=banner, **{f"{PREFIX}LAUNCHER": str(other)})
    assert got[0] == first


def test_outside_of_exec_a_shim_is_the_launcher(call):
    assert call("mpiexec", "-n", "2", "app", **{f"{PREFIX}LIBRARY": ""})[0] == ["-n", "2", "app"]


def test_a_launcher_that_is_not_there_is_reported(call):
    """Whether or not the machine has one, as from a package of its own."""
    (call.real / "orterun").unlink()
    result = subprocess.run(
        [call.shims / "orterun"], env={"PATH": f"{call.shims}:{call.real}"}, capture_output=True, text=True
    )
    assert result.returncode == 127
    assert result.stderr.startswith("earlybird: orterun is not on PATH")


FLAVOUR = Flavour("mpich", "mpich", "5.0.2", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))


def said(*arguments) -> str:
    return "\n".join(command_programs.programs_of(arguments, FLAVOUR, os.environ).sentences)


def test_a_program_of_this_mpi_is_not_reported(compiled, libmpi):
    app = compiled("app", *libmpi("libmpi.so.12"))
    assert said("mpiexec", "-n", "2", app) == ""
    assert said("mpiexec", "-n", "2", "taskset", "-c", "0", app, "--input", "/dev/null") == ""
    assert said(app) == ""


def test_a_program_of_another_mpi_is_reported_with_both_names(compiled, libmpi):
    app = compiled("app", *libmpi("libmpi.so.40"))
    for arguments in (["mpiexec", "-n", "2", app], [app], ["time", "/mpi/bin/mpiexec", "env", "A=1", app]):
        sentence = said(*arguments)
        for part in (app, "Open MPI", "libmpi.so.40", "mpich", "libmpi.so.12", "--mpi openmpi"):
            assert part in sentence
    assert command_programs.programs_of(["mpiexec", app], FLAVOUR, os.environ).other_mpi
    assert "standard's own ABI" in said(compiled("abi", *libmpi("libmpi_abi.so.0")))


def test_a_program_of_the_standards_abi_gets_its_own_library(compiled, libmpi):
    app = compiled("app", *libmpi("libmpi_abi.so.1"))
    native = compiled("native", *libmpi("libmpi.so.12"))

    def found(*arguments):
        return command_programs.programs_of(arguments, FLAVOUR, os.environ, has_abi_library=True)

    for arguments in (["mpiexec", "-n", "2", app], ["mpiexec", "-n", "1", app, ":", "-n", "1", app]):
        assert found(*arguments) == command_programs.CommandPrograms(is_whole_job=True, is_standard_abi=True)
    assert found(app) == command_programs.CommandPrograms(is_rank=True, is_standard_abi=True)
    assert found("mpiexec", native) == command_programs.CommandPrograms(is_whole_job=True)
    # One launch preloads one library.
    mixed = found("mpiexec", app, ":", native)
    assert mixed.other_mpi and not mixed.is_standard_abi and app in mixed.sentences[0]


def test_the_library_of_the_standards_abi_is_preloaded_where_it_is_the_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    found = command_programs.CommandPrograms(is_rank=True, is_standard_abi=True)
    environment = {"PATH": "/bin", "LD_PRELOAD": "/a/libearlybird_abi.so"}
    _, inner = interpose.wrap(["/app"], flavour_of(tmp_path), environment, found, Path(LIBRARY))
    assert inner["LD_PRELOAD"] == inner[f"{PREFIX}LIBRARY"] == LIBRARY.replace(".so", "_abi.so")


def test_an_mpi_behind_another_library_is_seen(compiled, libmpi, tmp_path):
    solver = compiled("libsolver.so", "-shared", "-fPIC", *libmpi("libmpi.so.12"))
    app = compiled("app", "-Wl,--no-as-needed", f"-Wl,-rpath,{tmp_path}", solver)
    assert said("mpiexec", app) == ""
    assert "uses no MPI library" in said("mpiexec", compiled("plain"))


def test_a_program_that_needs_no_mpi_is_reported_and_not_how_to_link_it(compiled):
    for name in ("hostname", compiled("plain")):
        sentence = said("mpiexec", "-n", "2", name)
        assert name in sentence and "uses no MPI library" in sentence and "mpicc" not in sentence


@pytest.mark.parametrize("first", ["mpiexec", "taskset"])
def test_a_library_among_the_arguments_is_no_program(compiled, first):
    loads = compiled("loads")
    library = compiled("libmpi.so.12", "-shared", "-fPIC", source="int MPI_Init(void) { return 0; }")
    assert said(first, "-n", "1", loads, library) == ""


@pytest.mark.parametrize("how", ["-static", "-static-pie"])
def test_a_static_program_is_reported(compiled, how):
    app = compiled("app", how)
    assert "it is linked statically" in said("mpiexec", "-n", "2", app)
    assert "it is linked statically" in said(app)
    assert not command_programs.programs_of([app], FLAVOUR, os.environ).other_mpi
    inside = compiled(
        "inside", source="int MPI_Init(void) { return 0; } int main(void) { return MPI_Init(); }"
    )
    assert "an MPI is linked into it" in said("mpiexec", inside)


@pytest.mark.parametrize(
    "arguments",
    [
        ["mpiexec", "-n", "2", "python3", "script.py"],
        ["mpiexec", "-n", "2", "sh", "-c", "true"],
        ["srun", "-n", "2", "./script"],
        ["mpiexec", "--version"],
        ["./script"],
        ["cc", "-c", "a.c"],
        ["ls"],
    ],
)
def test_nothing_is_said_where_nothing_can_be_seen(arguments, tmp_path, monkeypatch):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert said(*arguments) == ""


def test_an_exec_inside_an_exec_begins_again():
    around = {
        "PATH": "/shims:/bin:/shims",
        "LD_PRELOAD": "/asan.so:/a/libearlybird.so",
        f"{PREFIX}SHIMS": "/shims",
        f"{PREFIX}MPI": "mpich",
        "EARLYBIRD_STATS": "1",
    }
    assert interpose.without(around) == {"PATH": "/bin", "LD_PRELOAD": "/asan.so", "EARLYBIRD_STATS": "1"}
    assert interpose.without({"PATH": "/bin", "LD_PRELOAD": "/b/libearlybird.so"}) == {"PATH": "/bin"}


def test_only_launchers_that_are_here_have_a_shim(monkeypatch, tmp_path):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    (tmp_path / "mpiexec").write_text("#!/bin/sh\n")
    (tmp_path / "mpiexec").chmod(0o755)
    arguments, environment = interpose.wrap(
        [str(tmp_path / "prterun")], flavour_of(tmp_path), {"PATH": str(tmp_path)}
    )
    shims = Path(environment[f"{PREFIX}SHIMS"])
    assert sorted(path.name for path in shims.iterdir()) == [".launchers", "mpiexec", "prterun"]
    assert arguments == [str(shims / "prterun")]
    assert environment[f"{PREFIX}LAUNCHER"] == str(tmp_path / "prterun")


def flavour_of(folder: Path) -> Flavour:
    return Flavour("mpich", "mpich", "5.0.2", folder / "mpiexec", folder / "mpiexec")


@pytest.mark.parametrize(
    "launcher, family", [("mpiexec", "mpich"), ("mpiexec", "openmpi"), ("srun", "mpich")]
)
def test_a_line_of_a_value_is_no_variable(call, launcher, family):
    got, _, _ = call(launcher, "app", family=family, NOTES="a\nEARLYBIRD_FORGED=b", EARLYBIRD_STATS="1 $x")
    assert "EARLYBIRD_FORGED" not in " ".join(got)


@pytest.mark.parametrize("folder", ["a b", "a:b", "a,b", "$LIB", "${ORIGIN}", "x$PLATFORM"])
def test_a_path_that_the_dynamic_linker_would_not_find_is_refused(tmp_path, folder):
    with pytest.raises(InputError, match="cannot be preloaded"):
        interpose.wrap(["/app"], flavour_of(tmp_path), {"PATH": ""}, library=tmp_path / folder / "l.so")
