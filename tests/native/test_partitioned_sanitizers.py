"""The partitioned library and its suite instrumented by AddressSanitizer, UBSan and ThreadSanitizer."""

import shutil
import subprocess
import sysconfig

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import native_sources
from tests.conftest import BUILT
from tests.partitioned import run_cases, run_ranks

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(280)]

# What the MPI keeps until the end of the process or hands between threads: nothing of libearlybird or of the
# programs is named here.
LEAKS = "".join(f"leak:{name}\n" for name in ("libmpi", "libfabric", "libuc", "libhwloc", "libpmi", "ld-"))
RACES = "".join(f"{kind}:libmpi.so.12\n" for kind in ("called_from_lib", "race", "deadlock", "mutex"))
CASES = [
    "pready_out_of_order_delivers_every_partition",
    "unequal_partition_counts_deliver_every_byte",
    "count_zero_completes_with_an_empty_status",
    "derived_types_deliver_every_byte_and_leave_gaps_alone",
    "a_type_freed_after_init_still_describes_the_data",
    "duplicated_communicators_deliver_and_may_be_freed_after_init",
    "nonblocking_duplicates_deliver",
    "every_tag_up_to_tag_ub_delivers",
    "generations_of_channels_match",
    "waitsome_completes_a_mixture_of_requests",
    "testany_completes_a_mixture_of_requests_one_by_one",
    "misuse_of_a_request_gives_its_error_class",
    "four_threads_make_partitions_of_one_request_ready",
    "four_threads_make_partitions_of_several_requests_ready",
    "threads_make_partitions_ready_while_another_waits",
    "threads_poll_for_their_partitions",
    "threads_run_channels_of_their_own",
]


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def instrumented(request, tmp_path_factory):
    """The instrumented programs for MPICH and the environment they run in."""
    if "mpich" not in BUILT:
        pytest.skip("MPICH, on which the sanitizers are run, is not built")
    flavour = find_flavour("mpich")
    folder = tmp_path_factory.mktemp("sanitized")
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["cc", f"-fsanitize={request.param}", probe, "-o", folder / "probe"])
    if built.returncode != 0 or subprocess.run([folder / "probe"]).returncode != 0:
        pytest.skip(f"the compiler here cannot build or run programs with -fsanitize={request.param}")
    cmake = shutil.which("cmake", path=sysconfig.get_path("scripts")) or "cmake"
    for words in (
        ["-S", native_sources(), "-B", folder / "build", f"-DMPI_C_COMPILER={flavour.mpicc}",
         f"-DEARLYBIRD_SANITIZE={request.param}"],
        ["--build", folder / "build", "-j", "2", "--target", "partitioned_cases", "partitioned_stress"],
    ):  # fmt: skip
        made = subprocess.run([cmake, *words], env=flavour.environment(), capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
    (folder / "leaks.txt").write_text(LEAKS)
    (folder / "races.txt").write_text(RACES)
    env = {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=66",
        "LSAN_OPTIONS": f"suppressions={folder / 'leaks.txt'}:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"suppressions={folder / 'races.txt'}:exitcode=66:ignore_noninstrumented_modules=1",
        "EARLYBIRD_TESTS_PATIENCE": "10",
    }
    return flavour, folder / "build" / "tests", env


def test_random_transfers_are_clean_under_the_sanitizers(instrumented):
    flavour, programs, env = instrumented
    words = ["--transfers", "3000", "--seed", "77", "--seconds", "10"]
    status, told = run_ranks(flavour, 2, [programs / "partitioned_stress", *words], env, 120)
    assert status == 0, told[-6000:]
    assert "Sanitizer" not in told and "runtime error" not in told, told[-6000:]


def test_cases_are_clean_under_the_sanitizers(instrumented):
    flavour, programs, env = instrumented
    status, told = run_ranks(flavour, 2, [programs / "partitioned_cases", *CASES], env, 200)
    assert status == 0, told[-6000:]
    assert "Sanitizer" not in told and "runtime error" not in told, told[-6000:]


def test_two_thread_channels_deliver_under_the_sanitizers_per_partition(instrumented):
    flavour, programs, env = instrumented
    found = run_cases(
        flavour,
        2,
        ["four_threads_make_partitions_of_one_request_ready", "threads_poll_for_their_partitions"],
        env=env | {"EARLYBIRD_SEGMENTS": "partition"},
        program=programs / "partitioned_cases",
        max_launches=1,
    )
    assert {name: outcome for name, outcome in found.items() if outcome.status != "ok"} == {}
