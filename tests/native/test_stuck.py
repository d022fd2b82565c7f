"""Programs that hang in a planted way, and some that only seem to: what `record --stuck` and `where` say."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from earlybird.analysis.stuck.verdict import judge
from earlybird.data import recorded_page
from earlybird.launch.running_ranks import look, shared_pages
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, features, library_path
from tests.conftest import EARLYBIRD, assert_refused
from tests.stuck_job import pages_of_a_job, until_said

pytestmark = pytest.mark.mpi


@pytest.fixture
def command(compiled):
    """command(mpi, mode): that of the program on four ranks."""

    def make(mpi, mode):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        program = compiled(flavour, "record_stuck", ["-g"])
        oversubscribe = ["--oversubscribe"] * (flavour.family == "openmpi")
        return ["mpiexec", "-n", "4", *oversubscribe, str(program), mode]

    return make


def stuck(own_process, command, mpi, mode, *options, limit="1s"):
    """The status and the JSON of `record --stuck`."""
    result = own_process(
        "record", "-o", f"rec-{len(options)}", "--mpi", mpi, "--stuck", limit, *options, "--json", "--",
        *command(mpi, mode), check=False, timeout=90,
    )  # fmt: skip
    return result, json.loads(result.stdout)


def test_a_deadlock_ends_the_job(any_mpi, own_process, command):
    result, answer = stuck(own_process, command, any_mpi, "receives", "--stop")
    assert result.returncode == 1
    assert answer["schema"] == "earlybird.where/1"
    assert (answer["verdict"], answer["guilty"], answer["cycle"]) == ("deadlock", [1, 3], [1, 3])
    assert "rank 1 is in MPI_Recv from rank 3, tag 5 (main (record_stuck.c:" in answer["sentence"]
    assert "ranks 0 and 2 wait for them in MPI_Allreduce no. 2" in answer["sentence"]
    assert answer["sentence"] in result.stderr
    thread = answer["threads"][1]
    assert thread["pending"] == [{"peer": 3, "tag": 5, "communicator": "MPI_COMM_WORLD", "bytes": 8}]
    assert (thread["rank"], thread["call"]) == (1, "MPI_Recv")
    assert thread["since_s"] >= 1


PLANTED = {
    "idle": ("deadlock", [1, 3], "rank 1 is in MPI_Recv from rank 3, tag 5"),
    "sends": ("buffering", [0, 1, 2, 3], "are in MPI_Send"),
    "intercomm": ("deadlock", [0, 2], "MPI_Barrier no. 2 of a communicator of ranks 0 and 1"),
    "tag": ("mismatch", [1, 0], "with tag 5"),
    "peer": ("mismatch", [1, 0], "to rank 2"),
    "communicator": ("mismatch", [1, 0], "on MPI_COMM_WORLD"),
    "missing": ("missing", [1, 0], "rank 0 has not sent it"),
    "skipped": ("collective", [2], "rank 2 has not entered it"),
    "different": ("collective", [0], "rank 0 has entered MPI_Barrier"),
    "order": ("collective", [0, 3], "rank 3 has not entered it"),
    "waitall": (
        "missing",
        [1, 0],
        "MPI_Waitall for MPI_Irecv in main (record_stuck.c:",
    ),
    "waitany": ("missing", [1, 0], "from rank 0, tag 26"),
    "probe": ("missing", [1, 0, 2, 3], "MPI_Probe from any rank, tag 9"),
    "sendrecv": ("mismatch", [3, 2], "MPI_Sendrecv from rank 0"),
}


# What Intel MPI completes, the second one on a busy machine after about a second.
ENDS_WITH_SOME = {
    "different": "leaves MPI_Barrier although another rank calls MPI_Allreduce",
    "sends": "takes the messages of others while it sends",
}


# On every MPI one of each verdict, and what depends on its handles and on what it sends by itself.
EVERYWHERE = ("sends", "different", "waitall", "probe", "communicator")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mode",
    [mode if mode in EVERYWHERE else pytest.param(mode, marks=pytest.mark.one_mpi) for mode in PLANTED],
)
def test_planted_hangs(mpi, own_process, command, mode):
    result, answer = stuck(own_process, command, mpi, mode, "--stop")
    if mode in ENDS_WITH_SOME and result.returncode == 0:
        pytest.skip(f"this MPI {ENDS_WITH_SOME[mode]}")
    verdict, guilty, text = PLANTED[mode]
    assert (answer["verdict"], answer["guilty"]) == (verdict, guilty), answer["sentence"]
    assert text.replace("are in", "is in") in answer["sentence"].replace("are in", "is in")
    assert result.returncode == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("fence", "rank 0 is in MPI_Win_fence no. 2 of window 1 of MPI_COMM_WORLD"),
        ("epoch", "rank 0 is in MPI_Win_wait for MPI_Win_complete of rank 2 on window 1 of MPI_COMM_WORLD"),
    ],
)
def test_epochs_that_do_not_end(mpi, own_process, command, mode, text):
    program = until_said("one-sided", text, command(mpi, mode))
    result, answer = stuck(own_process, lambda *_: program, mpi, mode, "--stop")
    assert (answer["verdict"], answer["guilty"][0]) == ("one-sided", 2), answer["sentence"]
    assert text in answer["sentence"]
    assert result.returncode != 1


@pytest.mark.thorough
def test_a_partition_that_is_never_ready(mpi, own_process, command):
    if not features(find_flavour(mpi)).get("has_partitioned"):
        pytest.skip("this MPI has no partitioned communication")
    program = until_said("partitioned", "3 of 4 partitions ready, not partition 3", command(mpi, "partition"))
    result, answer = stuck(own_process, lambda *_: program, mpi, "partition", "--stop")
    assert (answer["verdict"], answer["guilty"]) == ("partitioned", [1]), answer["sentence"]
    assert "3 of 4 partitions ready, not partition 3" in answer["sentence"]
    assert result.returncode != 1


@pytest.mark.thorough
@pytest.mark.measures_time("a rank is late for three seconds, in which that is to be said")
def test_a_call_that_an_error_handler_left_does_not_stay_open(mpi, own_process, command):
    result, answer = stuck(own_process, command, mpi, "jumps", "--stop")
    assert result.returncode == 0, answer.get("sentence")
    assert (answer["verdict"], answer["guilty"]) == ("computing", [2]), answer["sentence"]
    assert "MPI_Barrier" in answer["sentence"]


@pytest.mark.thorough
def test_a_rank_that_ends_without_finalize_is_said_whatever_the_status(mpi, own_process, command):
    result = own_process("record", "-o", "rec", "--mpi", mpi, "--", *command(mpi, "exit"), check=False)
    assert "when the ranks ended: " in result.stderr and "rank 2 " in result.stderr, result.stderr


@pytest.mark.thorough
def test_exec_watches_a_command_and_records_nothing(any_mpi, own_process, command, tmp_path):
    watched = ["exec", "--mpi", any_mpi, "--stuck", "1s", "--stop", "-o", "rec", "--"]
    result = own_process(*watched, *command(any_mpi, "receives"), check=False, timeout=90)
    assert result.returncode == 1 and "Deadlock" not in result.stdout
    assert "Deadlock: rank 1 is in MPI_Recv from rank 3, tag 5 (main (record_stuck.c:" in result.stderr
    assert "deadlock" in own_process("show", "rec", "--json").stdout
    result = own_process(*watched[:-2], "rec-2", "--", *command(any_mpi, "small"), timeout=90)
    assert not (tmp_path / "rec-2").exists()
    synchronous = [*watched[:-2], "rec-3", "--synchronous", "--", *command(any_mpi, "small")]
    result = own_process(*synchronous, check=False, timeout=90)
    assert result.returncode == 1 and "Buffering: " in result.stderr


def test_exec_says_what_stuck_needs(in_process):
    program = ["--", "true"]
    assert_refused(in_process("exec", "--stop", *program, check=False), "--stop is for --stuck")
    assert_refused(in_process("exec", "-o", "rec", *program, check=False), "-o is for --stuck")
    assert_refused(in_process("exec", "--stuck", "5s", *program, check=False), "needs a folder")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mode", [*(pytest.param(x, marks=pytest.mark.one_mpi) for x in ("computes", "spins")), "polls"]
)
def test_ranks_that_compute_are_not_stopped(mpi, own_process, command, mode):
    result, answer = stuck(own_process, command, mpi, mode, "--stop")
    assert result.returncode == 0, answer.get("sentence")
    assert answer.get("verdict") in (None, "computing"), answer.get("sentence")


@pytest.mark.thorough
def test_a_stopped_rank_is_named_and_goes_on(mpi, own_process, command):
    program = until_said("stopped", "rank 2", command(mpi, "stopped"))
    result, answer = stuck(own_process, lambda *_: program, mpi, "stopped", "--stop")
    assert (answer["verdict"], answer["guilty"]) == ("stopped", [2]), answer["sentence"]
    assert result.returncode not in (0, 1)


@pytest.mark.thorough
def test_standard_sends_may_be_made_synchronous(mpi, own_process, command):
    result, answer = stuck(own_process, command, mpi, "small", "--stop")
    assert result.returncode == 0, answer.get("sentence")
    result, answer = stuck(own_process, command, mpi, "small", "--synchronous", "--stop", "--interpose")
    assert (result.returncode, answer["verdict"]) == (1, "buffering"), answer["sentence"]


@pytest.mark.thorough
def test_where_looks_at_a_job_that_hangs_and_leaves_it(any_mpi, own_process, command, tmp_path):
    job = subprocess.Popen(
        [EARLYBIRD, "record", "-o", "rec", "--mpi", any_mpi, "--", *command(any_mpi, "receives")],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        end_s = time.monotonic() + 60
        while not ((tmp_path / "rec").exists() and judge(look(tmp_path / "rec")).verdict == "deadlock"):
            assert time.monotonic() < end_s and job.poll() is None
            time.sleep(0.2)
        result = own_process("where", "rec")
        assert result.stdout.startswith("Deadlock: rank 1 is in MPI_Recv from rank 3, tag 5")
        assert "Where the ranks are" in result.stdout
        assert json.loads(own_process("where", "rec", "--json").stdout)["cycle"] == [1, 3]
        assert job.poll() is None
        os.kill(job.pid, signal.SIGTERM)
        _, errors = job.communicate(timeout=60)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    assert "when the ranks ended: Deadlock: rank 1 is in MPI_Recv from rank 3, tag 5" in errors
    assert not shared_pages(tmp_path / "rec")
    assert_refused(own_process("where", "rec", check=False), "is finished", "earlybird show rec")


_FORTRAN = """
program hang
  implicit none
  include 'mpif.h'
  integer :: rank, error, buffer
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  if (rank < 2) call receive()
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
contains
  subroutine receive()
    call MPI_Recv(buffer, 1, MPI_INTEGER, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine
end program
"""


@pytest.mark.thorough
def test_a_fortran_program_that_hangs(mpi, own_process, command, tmp_path):
    launch = command(mpi, "receives")[:-2]
    flavour = find_flavour(mpi)
    (tmp_path / "hang.f90").write_text(_FORTRAN)
    build = [flavour.mpicc.with_name("mpif90"), "-g", "-fallow-argument-mismatch", "hang.f90", "-o", "hang"]
    try:
        subprocess.run(
            build, check=True, capture_output=True, timeout=60, env=flavour.environment(), cwd=tmp_path
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no Fortran program can be compiled for this MPI")
    program = [*launch, str(tmp_path / "hang")]
    result, answer = stuck(own_process, lambda *_: program, mpi, "hang", "--stop")
    assert (answer["verdict"], answer["cycle"]) == ("deadlock", [0, 1]), answer["sentence"]
    assert "rank 0 is in MPI_Recv from rank 1, tag 5 (receive" in answer["sentence"]
    assert "(hang.f90:13)" in answer["sentence"]
    assert result.returncode == 1


# A file system on which a page may not be mapped.
_OF_NFS = """
#include <string.h>
#include <sys/vfs.h>
int fstatfs(int file, struct statfs *system) {
  (void)file;
  memset(system, 0, sizeof *system);
  system->f_type = 0x6969;
  return 0;
}
"""


@pytest.mark.thorough
def test_pages_are_in_shared_memory_where_none_may_be_mapped(
    any_mpi, own_process, command, tmp_path, preload_source
):
    preload_source(any_mpi, _OF_NFS)
    result, answer = stuck(own_process, command, any_mpi, "receives", "--stop")
    assert (result.returncode, answer["verdict"], answer["cycle"]) == (1, "deadlock", [1, 3])
    recording = tmp_path / "rec-1"
    assert {path.stat().st_size for path in recording.glob("*.open")} == {4096}
    assert not shared_pages(recording)


def test_where_refuses_what_is_no_running_recording(in_process, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path, text in (("file", "is a file"), ("folder", "recording"), ("absent", "absent")):
        assert_refused(in_process("where", path, check=False), text)
    assert_refused(
        in_process("record", "--stop", "-o", "rec", "--", "true", check=False), "--stop is for --stuck"
    )


@pytest.mark.one_mpi
def test_an_agent_removes_no_pages_of_another_namespace(mpi, tmp_path):
    agent = library_path(find_flavour(mpi)).parents[1] / "libexec" / "earlybird" / "page_agent"
    if not agent.exists():
        pytest.skip(f"the recorder is not built for {mpi}")
    space = os.stat("/proc/self/ns/pid").st_ino
    with subprocess.Popen(["true"]) as ended:
        (page,) = pages_of_a_job(1, {}, pid=os.getpid())
    spaces = {"own": space, "stale": space, "other": space + 1}
    folders = {
        name: Path(f"/dev/shm/earlybird-{os.geteuid()}-{os.getpid():08x}{number:08x}-{of:x}")
        for number, (name, of) in enumerate(spaces.items())
    }
    try:
        for name, folder in folders.items():
            folder.mkdir(mode=0o700)
            data = np.frombuffer(page, recorded_page._PAGE).copy()
            data["head"]["pid"], data["head"]["pid_namespace"] = ended.pid, spaces[name]
            if name != "own":
                (folder / "rank-0.open").write_bytes(data.tobytes())
        start = 'exec 3< "$1"; exec "$0" "$1" "$2" 1'
        subprocess.run(["bash", "-c", start, agent, folders["own"], tmp_path / "rank-0.pages"], check=True)
        until = time.monotonic() + 60
        while folders["own"].exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not folders["stale"].exists()
        assert (folders["other"] / "rank-0.open").exists()
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
