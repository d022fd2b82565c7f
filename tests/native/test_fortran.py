"""Fortran programs with libearlybird, in each binding of each MPI that has them and a compiler here.

The wheels of MPICH and Open MPI have no Fortran; Debian's libmpich-dev and libopenmpi-dev have, and what else
is on PATH may have.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from earlybird.data.errors import EarlybirdError
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import WHEELS, Flavour, find_flavour
from earlybird.toolchain.build import RECORDER, has_library, library_path, native_sources
from tests.partitioned import Outcome, run_cases, run_ranks
from tests.recordings import start_recording

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
SOURCES = native_sources() / "tests" / "fortran"
# Wrappers on PATH; the first two can be installed side by side.
ON_PATH = ("mpicc.mpich", "mpicc.openmpi", "mpicc")
BINDINGS = {"mpif": "include 'mpif.h'", "mpi": "use mpi", "f08": "use mpi_f08"}
OPTIONS = ("-O1", "-g", "-ffree-line-length-none", "-fallow-argument-mismatch")
# What some modules have wrong, by what the compiler says of it.
MISTAKES = {
    r"argument .flag. .*LOGICAL": "-DPARRIVED_FLAG_IS_INTEGER",  # `use mpi` of MPICH 4.0.2, Intel MPI 2021.18
    r"generic .mpi_psend_init": "-DINFO_IS_MISSING",  # `use mpi_f08` of Open MPI 5.0.7
}
CASES = tuple(re.findall(r"^ {4}case \('(\w+)'(?!\w)", (SOURCES / "cases.F90").read_text(), re.MULTILINE))
SEVERAL = ("waitall", "testall", "waitany", "testany", "waitsome", "testsome")
CASES = tuple(case for case in CASES if case not in SEVERAL) + SEVERAL
SYMBOLS = ("wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome", "get_status")


@dataclass(frozen=True, eq=False)
class Fortran:
    """An MPI with a Fortran compiler, and libearlybird for it."""

    flavour: Flavour
    compiler: tuple[str, ...]
    library: Path
    has_partitioned: bool
    folder: Path

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess:
        return subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env=self.flavour.environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )

    def c_object(self, name: str) -> Path:
        made = self.folder / f"{name}.o"
        if not made.exists():
            header = f"-I{native_sources() / 'include'}"
            result = self.run([self.flavour.mpicc, "-c", header, SOURCES / f"{name}.c", "-o", made])
            assert result.returncode == 0, result.stderr
        return made

    def link_arguments(self) -> list[str]:
        folder = self.library.parent
        return ["-Wl,--no-as-needed", f"-L{folder}", "-learlybird", f"-Wl,-rpath,{folder}"]

    def compile(self, binding: str, name: str, *more: str | Path, linked: bool = False) -> Path:
        """The program `name` for a binding; the test skips where this compiler cannot use the binding."""
        why = _lacks(self, binding)
        if why:
            pytest.skip(f"{BINDINGS[binding]!r} does not compile here: {why}")
        label = "-".join([name, binding, *(["linked"] if linked else [])])
        program, modules = self.folder / label, self.folder / f"modules-{label}"
        if program.exists():
            return program
        modules.mkdir(exist_ok=True)
        command = [*self.compiler, *OPTIONS, f"-DBINDING_{binding.upper()}", f"-I{SOURCES}", "-J", modules]
        if self.has_partitioned:
            command += ["-DOWN_PARTITIONED"]
        module = (
            [native_sources() / "include" / "earlybird_f08.f90"]
            if binding == "f08" and name == "cases"
            else []
        )
        rest = [SOURCES / f"{name}.F90", *more, "-o", program, *(self.link_arguments() if linked else [])]
        result = self.run([*command, *([] if self.has_partitioned else module), *rest])
        for mistake, define in MISTAKES.items():
            if re.search(mistake, result.stderr):
                result = self.run([*command, define, *module, *rest])
        assert result.returncode == 0, result.stderr
        return program

    def preloaded(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library)}

    def cases(self, binding: str, linked: bool) -> Path:
        return self.compile(binding, "cases", self.c_object("crossing"), linked=linked)


@cache
def _lacks(fortran: Fortran, binding: str) -> str:
    """Why the compiler cannot use a binding; empty where it can."""
    probe = fortran.folder / f"probe-{binding}.F90"
    probe.write_text(f"{BINDINGS[binding]}\nend\n")
    result = fortran.run([*fortran.compiler, *OPTIONS, probe, "-o", probe.with_suffix("")])
    return result.stderr.strip().splitlines()[-2:][0] if result.returncode != 0 else ""


def _beside(mpicc: Path, name: str, otherwise: str = "") -> Path | None:
    """What belongs to an mpicc, under its suffix: mpicc.mpich has mpif90.mpich and mpiexec.mpich."""
    found = mpicc.with_name(mpicc.name.replace("mpicc", name))
    return found if found.exists() else (mpicc.with_name(otherwise) if otherwise else None)


def _side_by_side(mpicc: Path, folder: Path) -> Path:
    """A folder where the commands of one MPI have their usual names."""
    for name in ("mpicc", "mpif90", "mpiexec"):
        real = _beside(mpicc, name)
        if real is None:
            pytest.skip(f"there is no {name} beside {mpicc}")
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
        script.chmod(0o755)
    return folder / "mpicc"


def _build_library(flavour: Flavour, folder: Path) -> tuple[Path, bool]:
    """The library alone, for an MPI that `earlybird build` need not know."""
    configure = ["cmake", "-S", native_sources(), "-B", folder, f"-DMPI_C_COMPILER={flavour.mpicc}"]
    targets = ("earlybird", "earlybird_recorder")
    for command in (configure, ["cmake", "--build", folder, "--target", *targets, "-j2"]):
        made = subprocess.run(command, env=flavour.environment(), capture_output=True, text=True, timeout=150)
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return folder / "libearlybird.so", '"has_partitioned": true' in (folder / "features.json").read_text()


def _module_arguments(flavour: Flavour) -> list[str]:
    """Intel MPI's wheel has modules for several gfortrans, where its mpif90 does not look."""
    version = subprocess.run(["gfortran", "-dumpversion"], capture_output=True, text=True).stdout.strip()
    folders = sorted(
        (flavour.mpicc.parents[1] / "include" / "mpi" / "gfortran").glob(f"{version.split('.')[0]}.*")
    )
    return [f"-I{folders[-1]}"] if folders else []


@pytest.fixture(scope="module", params=[*WHEELS, *ON_PATH])
def fortran(request, tmp_path_factory) -> Fortran:
    name = request.param
    folder = tmp_path_factory.mktemp(f"fortran-{name}")
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    if name in WHEELS:
        try:
            flavour = find_flavour(name)
        except EarlybirdError as error:
            pytest.skip(str(error))
        compiler = _beside(flavour.mpicc, "mpif90")
        if compiler is None:
            pytest.skip(f"the wheel of {name} has no Fortran")
        if not has_library(flavour):
            pytest.skip(f"libearlybird is not built for {name}")
        return Fortran(
            flavour, (str(compiler), *_module_arguments(flavour)), library_path(flavour), True, folder
        )
    mpicc = shutil.which(name)
    if mpicc is None:
        pytest.skip(f"there is no {name} on PATH")
    if name == "mpicc" and any(shutil.which(other) for other in ON_PATH[:2]):
        pytest.skip("this mpicc has another name, too")
    flavour = find_flavour(str(_side_by_side(Path(mpicc), folder)))
    library, has_partitioned = _build_library(flavour, folder / "build")
    return Fortran(flavour, (str(folder / "mpif90"),), library, has_partitioned, folder)


@cache
def outcomes(fortran: Fortran, binding: str, num_ranks: int, linked: bool) -> dict[str, Outcome]:
    program = fortran.cases(binding, linked)
    env = {} if linked else fortran.preloaded()
    if fortran.flavour.family == "openmpi" and fortran.flavour.version.startswith("4."):
        env["OMPI_MCA_topo"] = "basic"  # treematch hangs at times, also without libearlybird: docs/fortran.md
    options = ["--threads"] if num_ranks > 2 else []
    return run_cases(fortran.flavour, num_ranks, CASES, options, env, program, timeout_s=150)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("case", CASES)
def test_fortran(fortran, binding, case):
    # An MPI without partitioned calls leaves those of the program open: the library is linked there.
    outcome = outcomes(fortran, binding, 2, linked=not fortran.has_partitioned)[case]
    assert outcome.status == "ok", outcome.why


@pytest.mark.parametrize("binding", BINDINGS)
def test_three_ranks_and_a_linked_library(fortran, binding):
    found = outcomes(fortran, binding, 3, linked=True)
    assert {case: outcome for case, outcome in found.items() if outcome.status != "ok"} == {}


@pytest.mark.parametrize("case", SYMBOLS)
def test_mpi_f08_of_intel_by_its_symbols(fortran, case):
    """Only Intel's own compiler can read its module mpi_f08; what that would call is called by name."""
    if fortran.flavour.family != "intel":
        pytest.skip("this compiler can read the module of the others")
    outcome = symbol_outcomes(fortran)[case]
    assert outcome.status == "ok", outcome.why


@cache
def symbol_outcomes(fortran: Fortran) -> dict[str, Outcome]:
    program = fortran.compile("mpi", "symbols", fortran.c_object("crossing"))
    return run_cases(fortran.flavour, 2, SYMBOLS, (), fortran.preloaded(), program, timeout_s=150)


@pytest.mark.parametrize("binding", BINDINGS)
def test_requests_of_a_C_program_complete_in_Fortran_that_is_loaded_late(fortran, binding):
    plugin = fortran.compile(binding, "plugin", "-shared", "-fPIC")
    host = fortran.folder / "host"
    made = fortran.run(
        [fortran.flavour.mpicc, fortran.c_object("host"), "-o", host, *fortran.link_arguments(), "-ldl"]
    )
    assert made.returncode == 0, made.stderr
    status, output = run_ranks(fortran.flavour, 2, [host, plugin], timeout_s=150)
    assert status == 0 and output.splitlines().count("ok") == 1, output


def test_fortran_requests_are_those_of_the_library(fortran):
    linked = not fortran.has_partitioned
    program = fortran.cases("mpif", linked)
    env = {"EARLYBIRD_STATS": "1"} | ({} if linked else fortran.preloaded())
    status, output = run_ranks(fortran.flavour, 2, [program, CASES[0]], env, 60)
    assert status == 0, output
    assert re.findall(r"^ +(\d) +(sends|receives) +(\d+)", output, re.MULTILINE) == [
        (str(rank), side, "1") for rank in (0, 1) for side in ("sends", "receives")
    ]


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("with_library", [False, True])
def test_messages_of_fortran_are_recorded(fortran, binding, with_library, tmp_path):
    """With libearlybird behind the recorder, too: calls that both have reach the recorder first, and once."""
    ranks = 2
    program = fortran.compile(binding, "messages")
    preloaded = [fortran.library.with_name(RECORDER), *([fortran.library] * with_library)]
    start_recording(tmp_path / "rec", {})
    env = {"LD_PRELOAD": " ".join(map(str, preloaded)), "EARLYBIRD_RECORD": str(tmp_path / "rec")}
    status, output = run_ranks(fortran.flavour, ranks, [program], env, 60)
    assert status == 0 and output.split().count("summed") == ranks, output
    recording = load_recording(tmp_path / "rec")
    totals = recording.sent().by_pair()
    found = [totals.src.tolist(), totals.dst.tolist(), totals.messages.tolist(), totals.bytes.tolist()]
    assert found == [[0, 1], [1, 0], [6, 6], [8 + 16 + 24 + 80 + 2 * 800] * 2]
    received = recording.received().by_pair()
    assert (received.messages.tolist(), received.bytes.tolist()) == (found[2], found[3])
    calls = {total.name: total.calls for total in recording.call_totals()}
    assert (calls["MPI_Allreduce"], calls["MPI_Isend"], calls["MPI_Finalize"]) == (ranks, 3 * ranks, ranks)


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_program_without_partitioned_calls_is_left_alone(fortran, binding):
    program = fortran.compile(binding, "ordinary")
    for env in ({}, fortran.preloaded() | {"EARLYBIRD_STATS": "1"}):
        status, output = run_ranks(fortran.flavour, 2, [program], env, 60)
        assert status == 0 and output.splitlines().count("delivered") == 2, output
        messages = [line for line in output.splitlines() if "earlybird:" in line]
        assert "wrong" not in output and len(messages) == ("EARLYBIRD_STATS" in env), output
        assert all(line.endswith("the library is idle") for line in messages)


def test_the_program_of_the_page_runs(fortran):
    page = native_sources().parent / "docs" / "fortran.md"
    if not page.exists() or not fortran.has_partitioned or _lacks(fortran, "f08"):
        pytest.skip("no page beside the sources, or no mpi_f08 with partitioned calls")
    source, program = fortran.folder / "page.f90", fortran.folder / "page"
    source.write_text(re.search(r"```fortran\n(.*?)```", page.read_text(), re.DOTALL)[1])
    made = fortran.run([*fortran.compiler, "-ffree-line-length-none", source, "-o", program])
    if "generic" in made.stderr:
        pytest.skip("this mpi_f08 lacks an argument of MPI_Psend_init")
    assert made.returncode == 0, made.stderr
    status, output = run_ranks(
        fortran.flavour, 2, [program], fortran.preloaded() | {"EARLYBIRD_STATS": "1"}, 60
    )
    assert status == 0 and re.search(r"^ +0 +sends +1 +1 +8 ", output, re.MULTILINE), output
