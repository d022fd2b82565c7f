"""The partitioned library and its cases under AddressSanitizer with UBSan, and under ThreadSanitizer."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from earlybird.data.errors import EarlybirdError
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import native_sources
from tests.native.test_partitioned import FAMILIES, IN_SHARED_MEMORY
from tests.partitioned import run_ranks

pytestmark = [pytest.mark.mpi, pytest.mark.thorough, pytest.mark.timeout(300)]
# One flavour in the suite, for the time that it takes: our code is looked at, the MPIs stay as they are.
FLAVOURS = os.environ.get("EARLYBIRD_SANITIZED_MPI", "mpich").split()
MEMORY, THREADS = "address,undefined", "thread"

# What MPIs leave behind at exit. The names are of their libraries and of those that come with them: a leak of
# ours is allocated from none of these, and nothing of ours calls vasprintf, where stacks of Open MPI end.
LEAKS_OF_OTHERS = (
    "libmpi", "libopen-pal", "libpmix", "libhwloc", "libevent", "libfabric", "libuc", "vasprintf",
)  # fmt: skip
OPTIONS = {
    # Races inside the MPI are its own business, and so is the order that its locks make: ours must be right
    # without.
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "LSAN_OPTIONS": "print_suppressions=0",
    # UCX puts itself before madvise and locks a lock there: glibc's call at the end of a thread comes when
    # ThreadSanitizer has forgotten the thread, and crashes.
    "UCX_MEM_EVENTS": "no",
    # PMIx shares memory at an address that ThreadSanitizer has for itself (Open MPI 5.0).
    "PMIX_MCA_gds": "hash",
    "EARLYBIRD_TESTS_PATIENCE": "10",
}
# A hundred thousand requests try the number of tags, not the memory.
MEMORY_FAMILIES = (
    "order",
    "type",
    "communicator",
    "matching",
    "mixture",
    "error",
    "ending",
    "counting",
    "thread",
)
MEMORY_CASES = [
    case for family in MEMORY_FAMILIES for case in FAMILIES[family] if "hundred_thousand" not in case
]
PROGRESS_CASES = [
    "ranks_that_wait_for_their_sends_first_all_receive",
    "twenty_sends_complete_while_the_receiver_is_elsewhere",
]
STRESS = ["--transfers", "1500", "--seed", "77", "--seconds", "5"]


@dataclass(frozen=True)
class Sanitized:
    """The instrumented programs of one flavour."""

    mpi: str
    build: Path
    prefix: tuple[str, ...]  # arguments before each program

    def run(self, program: str, arguments: Sequence[str], env: dict[str, str] | None = None) -> None:
        """Fails when a sanitizer reports anything, and when the program itself fails."""
        reports = self.build / f"reports-of-{len(list(self.build.glob('reports-of-*')))}"
        reports.mkdir()
        leaks = self.build / "leaks_of_others.txt"
        leaks.write_text("".join(f"leak:{name}\n" for name in LEAKS_OF_OTHERS))
        options = OPTIONS | {"LSAN_OPTIONS": f"{OPTIONS['LSAN_OPTIONS']}:suppressions={leaks}"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            options[name] += f":log_path={reports / 'rank'}:exitcode=66"
        if self.prefix:  # UCX's trial of process_vm_readv crashes ThreadSanitizer there, 6 launches of 20
            options["UCX_TLS"] = "posix,sysv,self"
        command = [*self.prefix, self.build / "tests" / program, *arguments]
        status, output = run_ranks(find_flavour(self.mpi), 2, command, options | (env or {}), 200)
        found = "\n".join(path.read_text(errors="replace") for path in sorted(reports.iterdir()))
        assert not found, found[:6000]
        assert status == 0, output[-6000:]


def _runnable(sanitizer: str, folder: Path) -> tuple[str, ...]:
    """Arguments before a program that make this sanitizer work here; skips the test when none do."""
    probe, source = folder / "probe", folder / "probe.c"
    source.write_text("int main(void) { return 0; }\n")
    compiler = os.environ.get("CC", "cc").split()
    made = subprocess.run(
        [*compiler, f"-fsanitize={sanitizer}", source, "-o", probe], capture_output=True, text=True
    )
    why = made.stderr
    # A libtsan that is older than the kernel's habit of many random bits finds memory where it wants none.
    prefixes = [(), ("setarch", "-R")] if shutil.which("setarch") else [()]
    for prefix in prefixes if made.returncode == 0 else ():
        ran = subprocess.run([*prefix, probe], capture_output=True, text=True)
        if ran.returncode == 0:
            return prefix
        why = ran.stderr
    pytest.skip(f"-fsanitize={sanitizer} does not work here: {' '.join(why.split())[:300]}")


_found: dict[str, list[str]] = {}  # by MPI, what the first configuration found out about it


def _probed(build: Path) -> list[str]:
    """Arguments of CMake with what a configuration in `build` found out: the same for every sanitizer."""
    lines = (build / "CMakeCache.txt").read_text().splitlines()
    return [f"-D{line}" for line in lines if re.match(r"(HAS|IS|PARTITIONED)_\w+:INTERNAL=", line)]


def _build(mpi: str, sanitizer: str, folder: Path) -> Sanitized:
    try:
        flavour = find_flavour(mpi)
    except EarlybirdError as error:
        pytest.skip(str(error))
    prefix, build = _runnable(sanitizer, folder), folder / "build"
    cmake = shutil.which("cmake", path=sysconfig.get_path("scripts")) or "cmake"
    ninja = shutil.which("ninja", path=sysconfig.get_path("scripts")) or shutil.which("ninja")
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []
    for command in (
        ["-S", native_sources(), "-B", build, *generator, f"-DMPI_C_COMPILER={flavour.mpicc}",
         f"-DEARLYBIRD_SANITIZE={sanitizer}", *_found.get(mpi, ())],
        ["--build", build, "--parallel", "2", "--target", "partitioned_cases", "partitioned_stress"],
    ):  # fmt: skip
        made = subprocess.run([cmake, *command], env=flavour.environment(), capture_output=True, text=True)
        assert made.returncode == 0, (made.stdout + made.stderr)[-6000:]
    _found.setdefault(mpi, _probed(build))
    return Sanitized(mpi, build, prefix)


@pytest.fixture(scope="module", params=FLAVOURS)
def for_memory(request, tmp_path_factory):
    return _build(request.param, MEMORY, tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="module", params=FLAVOURS)
def for_threads(request, tmp_path_factory):
    return _build(request.param, THREADS, tmp_path_factory.mktemp("threads"))


def test_cases_leave_no_fault_of_memory(for_memory):
    for_memory.run("partitioned_cases", MEMORY_CASES)


def test_random_transfers_leave_no_fault_of_memory(for_memory):
    for_memory.run("partitioned_stress", STRESS, {"EARLYBIRD_LANES": "2"})


def test_lanes_leave_no_fault_of_memory(for_memory):
    for_memory.run("partitioned_cases", FAMILIES["lane"], {"EARLYBIRD_LANES": "3"})


def test_shared_memory_leaves_no_fault_of_memory(for_memory):
    cases = [case for family in ("order", "type", "ending", "thread") for case in FAMILIES[family]]
    for_memory.run("partitioned_cases", cases, IN_SHARED_MEMORY)
    for_memory.run("partitioned_stress", STRESS, IN_SHARED_MEMORY | {"EARLYBIRD_STATS": "1"})


def test_threads_in_shared_memory_do_not_race(for_threads):
    for_threads.run("partitioned_cases", FAMILIES["thread"], IN_SHARED_MEMORY)
    for_threads.run("partitioned_cases", ["--level", "funneled", *FAMILIES["level"]], IN_SHARED_MEMORY)
    for_threads.run("partitioned_stress", STRESS, IN_SHARED_MEMORY)


def test_threads_on_several_lanes_do_not_race(for_threads):
    for_threads.run("partitioned_cases", [*FAMILIES["lane"], *FAMILIES["thread"]], {"EARLYBIRD_LANES": "3"})


def test_threads_do_not_race(for_threads):
    for_threads.run("partitioned_cases", FAMILIES["thread"])


def test_threads_side_by_side_below_multiple_do_not_race(for_threads):
    for_threads.run("partitioned_cases", ["--level", "funneled", *FAMILIES["level"]])


def test_the_progress_thread_does_not_race(for_threads):
    for_threads.run("partitioned_cases", PROGRESS_CASES, {"EARLYBIRD_PROGRESS_THREAD": "1"})


def test_random_transfers_do_not_race(for_threads):
    for_threads.run("partitioned_stress", STRESS)


def test_what_is_recorded_beside_a_progress_thread_does_not_race(for_threads, tmp_path):
    env = {"EARLYBIRD_TRACE": str(tmp_path / "trace.json"), "EARLYBIRD_STATS": "1", "EARLYBIRD_LANES": "2"}
    for_threads.run("partitioned_stress", STRESS, env | {"EARLYBIRD_PROGRESS_THREAD": "1"})
