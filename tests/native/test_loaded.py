"""libearlybird detects the loaded objects: programs of any linkage, tools, MPIs by their ABI."""

import re
import subprocess
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import ABI_LIBRARY, has_library, library_path
from tests.conftest import BUILT
from tests.partitioned import ABI_CASES, STANDARD_ABI, run_cases, run_ranks

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).parents[1] / "e2e" / "programs"
SERVES = "earlybird: partitioned communication"  # the table of EARLYBIRD_STATS
LEFT = "the MPI's own partitioned communication is used"


@pytest.fixture
def library(mpi) -> Path:
    """The built libearlybird for each MPI."""
    flavour = find_flavour(mpi)
    if not has_library(flavour):
        pytest.skip(f"libearlybird is not built for {mpi}")
    return library_path(flavour)


@pytest.fixture
def make(mpi, tmp_path):
    """make(name, source, *arguments): a program or library compiled by the MPI's wrapper."""
    flavour = find_flavour(mpi)

    def compiled(name: str, source: str, *arguments: str | Path) -> Path:
        command = [
            flavour.mpicc,
            "-w",
            "-D_GNU_SOURCE",
            PROGRAMS / source,
            *arguments,
            "-o",
            tmp_path / name,
            "-ldl",
        ]
        made = subprocess.run(command, env=flavour.environment(), capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        return tmp_path / name

    return compiled


@pytest.fixture
def launch(mpi):
    """launch(program, *preloaded, **variables): what two ranks of it print."""

    def run(program: Path, *preloaded: Path, **variables: str) -> str:
        environment = {"EARLYBIRD_STATS": "1"} | variables
        settings = [f"{name}={value}" for name, value in environment.items()]
        settings.append(f"LD_PRELOAD={':'.join(map(str, preloaded))}")
        status, output = run_ranks(find_flavour(mpi), 2, ["env", *settings, program], timeout_s=60)
        assert status == 0, output
        return output

    return run


LINKED = {
    "position_independent": ["-fPIE", "-pie"],
    "not_position_independent": ["-no-pie"],
    "sysv_hash": ["-no-pie", "-Wl,--hash-style=sysv"],
    "gnu_hash": ["-no-pie", "-Wl,--hash-style=gnu"],
    "both_hashes": ["-no-pie", "-Wl,--hash-style=both"],
    "bound_at_once": ["-no-pie", "-Wl,-z,now"],
    "by_pointer": ["-fPIE", "-pie", "-DBY_POINTER"],
    "by_pointer_not_position_independent": ["-no-pie", "-DBY_POINTER"],
    "with_the_address_of_a_call": ["-no-pie", "-DBY_ADDRESS"],
}


# How a program refers to a call is up to its linker; the first two are how most programs do.
@pytest.mark.parametrize(
    "how", [*list(LINKED)[:2], *(pytest.param(how, marks=pytest.mark.one_mpi) for how in list(LINKED)[2:])]
)
def test_a_program_is_served_however_it_is_linked(library, make, launch, how):
    output = launch(make("app", "halves.c", "-DWITH_MAIN", *LINKED[how]), library)
    assert "data right" in output and SERVES in output and LEFT not in output


@pytest.mark.one_mpi
def test_calls_in_a_library_of_the_program_are_found(library, make, launch, tmp_path):
    (tmp_path / "main.c").write_text("int app(int, char **); int main(int c, char **v) { return app(c, v); }")
    shared = make("libapp.so", "halves.c", "-DWITH_MAIN", "-Dmain=app", "-shared", "-fPIC")
    program = tmp_path / "app"
    subprocess.run(["cc", tmp_path / "main.c", shared, f"-Wl,-rpath,{tmp_path}", "-o", program], check=True)
    output = launch(program, library)
    assert "data right" in output and SERVES in output


@pytest.mark.one_mpi
def test_calls_by_dlsym_alone_are_not_seen_and_are_left_to_the_mpi(library, make, launch):
    output = launch(make("app", "halves.c", "-DWITH_MAIN", "-DBY_NAME"), library)
    assert "data right" in output and SERVES not in output
    (sentence,) = [line for line in output.splitlines() if "earlybird: " in line]
    assert sentence.endswith("the library is idle")


def test_off_leaves_everything_to_the_mpi(library, make, launch):
    program = make("app", "halves.c", "-DWITH_MAIN")
    assert SERVES in launch(program, library, EARLYBIRD_OFF="0")
    output = launch(program, library, EARLYBIRD_OFF="1")
    assert "data right" in output and "earlybird: " not in output


def assert_left(output: str, *parts: str) -> None:
    """The MPI's own calls moved the data, and one rank printed the reason."""
    assert "data right" in output and SERVES not in output, output
    (sentence,) = [line for line in output.splitlines() if "earlybird: " in line]
    for part in (*parts, LEFT):
        assert str(part) in sentence, sentence


@pytest.mark.parametrize(
    "how",
    [["-DCOUNTS_WAIT"], pytest.param(["-DCOUNTS_WAIT", "-DPASSES_ON_TO_NEXT"], marks=pytest.mark.one_mpi)],
)
def test_a_tool_before_us_has_the_calls_and_is_named(library, make, launch, how):
    program, tool = (
        make("app", "halves.c", "-DWITH_MAIN"),
        make("tool.so", "tool.c", *how, "-shared", "-fPIC"),
    )
    output = launch(program, tool, library)
    assert_left(output, "MPI_Wait", tool, "load or link libearlybird first")
    assert "tool saw waits" in output
    # Not position independent: MPI_Wait has an entry in the program, too.
    assert_left(
        launch(make("fixed", "halves.c", "-DWITH_MAIN", "-DBY_ADDRESS", "-no-pie"), tool, library), tool
    )


def test_a_tool_after_us_sees_what_is_not_ours(library, make, launch):
    program = make("app", "halves.c", "-DWITH_MAIN")
    tool = make("tool.so", "tool.c", "-DCOUNTS_WAIT", "-DCOUNTS_SEND", "-DCOUNTS_INIT", "-shared", "-fPIC")
    output = launch(program, library, tool)
    assert "data right" in output and SERVES in output and LEFT not in output
    assert "tool saw messages" in output and "tool saw waits" not in output
    assert output.count("tool began") == 2


def test_a_tool_that_starts_the_mpi_before_us_is_named(library, make, launch):
    program = make("app", "halves.c", "-DWITH_MAIN")
    tool = make("tool.so", "tool.c", "-DCOUNTS_INIT", "-shared", "-fPIC")
    output = launch(program, tool, library)
    assert "tool began" in output
    assert_left(output, "MPI_Init", tool)


@pytest.mark.one_mpi
def test_a_tool_in_the_program_is_named(library, make, launch, tmp_path):
    tool = make("tool.o", "tool.c", "-DCOUNTS_WAIT", "-c")
    program = make("app", "halves.c", "-DWITH_MAIN", tool)
    assert_left(launch(program, library), "MPI_Wait", program)


@pytest.mark.one_mpi
def test_a_linked_tool_goes_by_the_order_of_the_link(library, make, launch, tmp_path):
    tool = make("libtool.so", "tool.c", "-DCOUNTS_WAIT", "-shared", "-fPIC")
    where = [f"-Wl,-rpath,{tmp_path}:{library.parent}", "-Wl,--no-as-needed"]
    before = make("before", "halves.c", "-DWITH_MAIN", *where, tool, library)
    after = make("after", "halves.c", "-DWITH_MAIN", *where, library, tool)
    assert_left(launch(before), "MPI_Wait", tool)
    output = launch(after)
    assert "data right" in output and SERVES in output


def test_completion_that_passes_us_by_is_seen(library, make, launch, tmp_path):
    program = make("past", "halves.c", "-DWITH_MAIN", "-DBY_PROFILING_NAME")
    assert_left(launch(program, library), "PMPI_Wait", program)
    shared = make("libwait.so", "halves.c", "-DBY_LIBRARY", "-shared", "-fPIC")
    program = make("app", "halves.c", "-DWITH_MAIN", "-DBY_LIBRARY", f"-Wl,-rpath,{tmp_path}", shared)
    assert_left(launch(program, library), "PMPI_Wait", shared)


@pytest.mark.one_mpi
def test_no_message_is_printed_if_no_code_is_partitioned(library, make, launch):
    program = make("app", "where.c")
    tool = make("tool.so", "tool.c", "-DCOUNTS_WAIT", "-shared", "-fPIC")
    assert "earlybird: " not in launch(program, tool, library, EARLYBIRD_STATS="0")


# A stand-in for an MPI: it starts, has a version, and ends the process when anything else is called.
STAND_IN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int PMPI_Init(int *c, char ***v) { return 0; }
int PMPI_Get_library_version(char *to, int *length) {
  strcpy(to, getenv("VERSION"));
  *length = strlen(to);
  return 0;
}
int MPI_Init(int *c, char ***v) { return PMPI_Init(c, v); }
int MPI_Psend_init(void) { return 1; }
static int asked(void) { puts("serves"); fflush(stdout); _exit(0); }
"""
APP = """
#include <stdio.h>
int MPI_Init(int *, char ***);
int MPI_Psend_init(void);
int main(int c, char **v) {
  MPI_Init(&c, &v);
  puts("stands back");
  return c > 1 ? MPI_Psend_init() : 0;
}
"""
MPICH_DATA = "int MPIR_Dup_fn(void) { return 0; }\nint *MPI_UNWEIGHTED, *MPI_WEIGHTS_EMPTY;\n"
STANDARD_CALL = "int PMPI_Abi_get_version(int *a, int *b) { return 0; }\n"
OPENMPI_DATA = "char ompi_mpi_comm_world[1024], ompi_request_null[1024];\n"
VERSIONS = {
    "mpich": [
        "MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 12:34:45 CDT 2022",
        "MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)\nMPI BUILD INFO : Wed Nov 15",
        "MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date :\tWed March 02 22:00:00 EST 2022",
        "MVAPICH Version:        4.0\nMVAPICH Release date:   02/19/2025",
        "Intel(R) MPI Library 2021.18 for Linux* OS\n",
        "ParaStation MPI 5.9.2-1 (MPICH 4.1.1)",
        "a" * 8191,
    ],
    "openmpi": [
        "Open MPI v5.0.11, package: Open MPI root@host Distribution, ident: 5.0.11",
        "Open MPI v4.1.7a1, package: Open MPI root@hpcx-v2.21 Distribution, ident: 4.1.7a1",
        "IBM Spectrum MPI v10.4.0.3rtm4, package: IBM Spectrum MPI, ident: 10.4.0.03rtm4",
        "FUJITSU MPI Library 4.0.1 (4.0.1fj4.0.0)",
        "Open MPI v4.1.6.1, package: Open MPI bull@host Distribution, Bull",
    ],
    "standard": ["Open MPI v6.1.0, package: Open MPI root@host Distribution", "MPICH Version:      5.0.2"],
    "neither": ["MPItrampoline 5.5.0, using MPIwrapper 2.11.0", "MPICH ABI Version: 5.0.0"],
}


def names_of(library: Path, *options: str) -> list[str]:
    """Symbols that `nm` lists for others."""
    shown = subprocess.run(["nm", "-D", *options, library], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1].split("@")[0] for line in shown.splitlines()]


@pytest.fixture
def stand_in(mpi, library, tmp_path):
    """run(kind, version, without, preloaded): the ended process of a program with such a stand-in.

    `under_test`: another libearlybird than that for the MPI.
    """

    def run(
        kind: str,
        version: str,
        without: str = "",
        preloaded: Path | None = None,
        under_test: Path = library,
    ):
        folder = tmp_path / f"{kind}{without}"
        if not folder.exists():
            folder.mkdir()
            wanted = set(names_of(under_test, "--undefined-only")) - {without}
            ends = [name for name in sorted(wanted) if re.match(r"PMPI_(?!Init$|Get_library_version$)", name)]
            source = STAND_IN + "".join(f"int {name}(void) {{ return asked(); }}\n" for name in ends)
            source += {
                # Since MPI 5.0 these two have it as well.
                "mpich": MPICH_DATA + STANDARD_CALL,
                "openmpi": OPENMPI_DATA + STANDARD_CALL,
                "standard": STANDARD_CALL,
                "neither": "",
            }[kind]
            (folder / "mpi.c").write_text(source)
            (folder / "app.c").write_text(APP)
            for arguments in (
                ["-shared", "-fPIC", "-Wl,-soname,libmpi.so", "mpi.c", "-o", "libmpi.so"],
                ["app.c", "./libmpi.so", f"-Wl,-rpath,{folder}", "-o", "app"],
            ):
                subprocess.run(["cc", "-w", *arguments], cwd=folder, check=True)
        loaded = ":".join(str(path) for path in (preloaded, under_test) if path)
        environment = {"VERSION": version, "LD_PRELOAD": loaded}
        return subprocess.run([folder / "app"], env=environment, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize("kind", VERSIONS)
def test_an_mpi_is_known_by_its_abi_and_not_by_its_name(mpi, stand_in, kind):
    ours = "openmpi" if find_flavour(mpi).family == "openmpi" else "mpich"
    for version in VERSIONS[kind]:
        result = stand_in(kind, version)
        if kind == ours:
            assert (result.stdout, result.stderr, result.returncode) == ("serves\n", "", 0), version
        else:
            assert (result.stdout, result.returncode) == ("", 2), (version, result)
            assert "their handles differ" in result.stderr and version.split(",")[0][:20] in result.stderr


@pytest.mark.parametrize("kind", VERSIONS)
def test_the_library_of_the_standards_abi_serves_that_alone(mpi, library, stand_in, kind):
    under_test = library.with_name(ABI_LIBRARY)
    if mpi not in STANDARD_ABI:
        assert not under_test.exists()
        return
    for version in VERSIONS[kind]:
        result = stand_in(kind, version, under_test=under_test)
        if kind == "standard":
            assert (result.stdout, result.stderr, result.returncode) == ("serves\n", "", 0), version
        else:
            assert (result.stdout, result.returncode) == ("", 2), (version, result)
            assert "built for the MPI standard's own ABI: their handles differ" in result.stderr


def test_an_mpi_that_lacks_a_function_keeps_its_own_calls(mpi, stand_in):
    ours = "openmpi" if find_flavour(mpi).family == "openmpi" else "mpich"
    result = stand_in(ours, "MPI of long ago, 1", without="PMPI_Mrecv")
    assert (result.stdout, result.returncode) == ("stands back\n", 0)
    assert "this process runs MPI of long ago, which has no PMPI_Mrecv" in result.stderr
    # What the program alone may call, it would not have been linked without.
    assert stand_in(ours, "MPI", without="PMPI_Comm_split_type").stdout == "serves\n"


def test_every_function_of_ours_is_looked_after(mpi, library, stand_in, tmp_path):
    ours = "openmpi" if find_flavour(mpi).family == "openmpi" else "mpich"
    calls = [name for name in names_of(library, "--defined-only") if name.startswith("MPI_")]
    assert len(calls) > 30
    (tmp_path / "tool.c").write_text("int function(void) { return 0; }")
    subprocess.run(["cc", "-c", "-fPIC", "tool.c"], cwd=tmp_path, check=True)
    for name in calls:
        # Without the compiler, which takes ten times as long.
        link = ["ld", "-shared", "--defsym", f"{name}=function", "tool.o", "-o", "tool.so"]
        subprocess.run(link, cwd=tmp_path, check=True)
        result = stand_in(ours, "MPI", preloaded=tmp_path / "tool.so")
        assert result.stdout == "stands back\n", name
        # Where it is MPI_Init itself, nobody is left to say so before the first partitioned call.
        assert name == "MPI_Init" or f"{name} of {tmp_path / 'tool.so'}" in result.stderr


@pytest.mark.parametrize(
    ("program", "built"), [("mpich", "openmpi"), ("openmpi", "mpich"), ("intel", "openmpi")]
)
def test_a_program_of_the_other_kind_ends_with_a_sentence_and_status_2(tmp_path, program, built):
    if {program, built} - set(BUILT) or not has_library(find_flavour(built)):
        pytest.skip(f"needs {program} and {built}")
    flavour = find_flavour(program)
    command = [flavour.mpicc, "-w", PROGRAMS / "where.c", "-o", tmp_path / "app"]
    subprocess.run(command, env=flavour.environment(), check=True)
    environment = flavour.environment() | {"LD_PRELOAD": str(library_path(find_flavour(built)))}
    result = subprocess.run([tmp_path / "app"], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2, result
    assert "their handles differ" in result.stderr


@pytest.mark.parametrize(("program", "built"), [("intel", "mpich"), ("mpich", "intel")])
def test_a_library_serves_another_mpi_of_its_abi(program, built):
    if {program, built} - set(BUILT) or not has_library(find_flavour(built)):
        pytest.skip(f"needs {program} and {built}")
    environment = {"LD_PRELOAD": str(library_path(find_flavour(built)))}
    outcomes = run_cases(find_flavour(program), 2, ABI_CASES, env=environment)
    assert {name: one for name, one in outcomes.items() if one.status == "failed"} == {}
