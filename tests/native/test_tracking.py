"""What threads share below MPI_THREAD_MULTIPLE: a segment is complete once, one thread at a time enters MPI.

Programs compiled of the parts that decide it: a thread that uses plain stores meets others again and again,
where in a whole program it meets them once.
"""

import subprocess
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import native_sources

PROGRAMS = Path(__file__).parent / "programs"
COUNTING = ("wire/tracking.c", "process/thread.c", "segmentation/segment.c")
LOCKING = ("channel/issue.c", "process/thread.c", "segmentation/segment.c")
ROUNDS = 800
SANITIZERS = pytest.mark.parametrize("sanitizer", ["", pytest.param("thread", marks=pytest.mark.thorough)])


def run(folder, compiler, environment, program, parts, sanitizer, threads):
    """Compile the program with these parts of the library, and run it, without the MPI's libraries."""
    flags = ["-O2", "-pthread", *([f"-fsanitize={sanitizer}"] if sanitizer else [])]
    sources = [PROGRAMS / program, *(native_sources() / "partitioned" / part for part in parts)]
    compiling = [compiler, *flags, "-D_GNU_SOURCE", "-I", native_sources(), "-c", *sources]
    subprocess.run(compiling, check=True, timeout=60, env=environment, cwd=folder)
    built = folder / "program"
    subprocess.run(["cc", *flags, *folder.glob("*.o"), "-o", built], check=True, timeout=60)
    for number in threads:
        ran = subprocess.run([built, str(number), str(ROUNDS)], capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, "")


@SANITIZERS
def test_a_segment_is_complete_once_when_its_owner_and_other_threads_count(tmp_path, sanitizer):
    run(tmp_path, "cc", None, "count_beside_owner.c", COUNTING, sanitizer, (1, 2, 4))


@pytest.mark.mpi
@SANITIZERS
def test_one_thread_at_a_time_enters_the_mpi_and_every_segment_is_sent(any_mpi, tmp_path, sanitizer):
    mpi = find_flavour(any_mpi)
    run(
        tmp_path, mpi.mpicc, mpi.environment(), "lock_of_favourite.c", LOCKING, sanitizer, (1, 2, 4)
    )  # fmt: skip
