"""Jobs of which only some ranks have the library end as without it, and partitions are delivered."""

import os
import re
import socket
import subprocess
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from earlybird.machine.flavours import Flavour, find_flavour
from tests.conftest import require_mpi
from tests.partitioned import launch_command, run_ranks, start_environment

pytestmark = pytest.mark.mpi
# How a rank comes to have no library: arguments of the compiler.
LINKED, PLAIN = (), None
VARIANTS = {
    "member": LINKED,
    "without_the_library": PLAIN,
    "calls_PMPI_Init": ("-DPMPI",),
    "brings_its_own_MPI_Init": ("-DOWN_INIT",),
    "opens_a_session_before": ("-DSESSION",),
}
FOREIGN = [name for name in VARIANTS if name not in ("member", "opens_a_session_before")]


@pytest.fixture(scope="module")
def variant(compiled):
    """variant(flavour, name): the program, compiled as one of VARIANTS."""

    def of_name(flavour: Flavour, name: str) -> Path:
        options = VARIANTS[name]
        return compiled(flavour, "part_of_job", options or (), linked=options is not PLAIN)

    return of_name


def launch(flavour: Flavour, programs: list[Path], pairs: str, env: dict[str, str] | None = None):
    """Runs a job with one rank of each of the programs."""
    first, *options = launch_command(flavour, 1)
    command = [first]
    for k, program in enumerate(programs):
        command += [*([":", "-n", "1"] if k else options), str(program), pairs]
    process = subprocess.Popen(
        command,
        env=start_environment(flavour, len(programs)) | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            output, _ = process.communicate(timeout=5)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
        pytest.fail(f"the job hangs: {output[-2000:]}")
    return process.returncode, output


def delivered(output: str) -> list[int]:
    # mpiexec may insert the output of a rank into a line of another.
    return sorted(map(int, re.findall(r"delivered (\d+)\n", output)))


@pytest.mark.parametrize("foreign", FOREIGN)
def test_ranks_with_the_library_deliver_beside_one_without_it(mpi, variant, foreign):
    flavour = find_flavour(mpi)
    member, other = variant(flavour, "member"), variant(flavour, foreign)
    # Two share every communicator but the one of half of the ranks.
    for programs, pairs in (([member, member, other], "0,1"), ([other, member, member], "2,1")):
        status, output = launch(flavour, programs, pairs)
        assert status == 0, output[-2000:]
        assert delivered(output) == [0, 0, 6], output[-2000:]


def test_a_rank_that_opened_a_session_before_mpi_init_is_left_to_the_mpi(mpi, variant):
    if mpi == "intel":
        pytest.skip("Intel MPI 2021.18 refuses MPI_Init after a session")
    flavour = find_flavour(mpi)
    member, other = variant(flavour, "member"), variant(flavour, "opens_a_session_before")
    # Rank 0 must not be the one: MPICH 5.0.2 hangs there by itself.
    status, output = launch(flavour, [member, member, other], "0,1")
    assert status == 0 and delivered(output) == [0, 0, 6], output[-2000:]


# Two more trees; an MPI changes none.
ANOTHER = (pytest.mark.one_mpi, pytest.mark.thorough)


@pytest.mark.parametrize(
    "absent", [{0, 2}, pytest.param({0, 1, 4}, marks=ANOTHER), pytest.param({3}, marks=ANOTHER)]
)
def test_ranks_without_the_library_anywhere_in_the_tree_are_passed_over(mpi, variant, absent):
    flavour = find_flavour(mpi)
    member, other = variant(flavour, "member"), variant(flavour, "without_the_library")
    programs = [other if rank in absent else member for rank in range(7)]
    ours = [rank for rank in range(7) if rank not in absent]
    pairs = ",".join(f"{a},{b}" for a, b in pairwise(ours))
    status, output = launch(flavour, programs, pairs)
    assert status == 0, output[-2000:]
    # On the communicator of odd or even ranks, a pair that is both adds a transfer.
    expected = sorted([0] * (len(absent) + 1) + [6 + (a % 2 == b % 2) for a, b in pairwise(ours)])
    assert delivered(output) == expected, output[-2000:]


def test_a_job_without_partners_of_the_library_is_the_mpi_s_own(mpi, variant):
    flavour = find_flavour(mpi)
    programs = [variant(flavour, "member"), variant(flavour, "without_the_library")]
    status, output = launch(flavour, programs, "")
    assert status == 0 and delivered(output) == [0, 0], output[-2000:]
    if mpi == "openmpi":
        return  # its own partitioned calls wait for every rank of MPI_COMM_WORLD (5.0.11)
    status, output = launch(flavour, programs, "0,1")
    assert status == 0 and delivered(output) == [0, 6], output[-2000:]
    assert output.count("does not have libearlybird (rank 1 of their communicator)") == 1


def test_where_nobody_knows_who_has_the_library_a_person_may_say_so(any_mpi, variant):
    flavour = find_flavour(any_mpi)
    member = variant(flavour, "member")
    if flavour.family == "openmpi":
        pytest.skip("Open MPI has PMIx always")
    hidden = {"I_MPI_PMI_LIBRARY": ""}
    for extra, prints in (({}, True), ({"EARLYBIRD_WHOLE_JOB": "1"}, False)):
        env = hidden | {"EARLYBIRD_STATS": "1"} | extra
        status, output = run_ranks(flavour, 2, [member, "0,1"], env, 60)
        assert status == 0 and delivered(output) == [0, 6], output[-2000:]
        assert ("set EARLYBIRD_WHOLE_JOB=1" in output) == prints
        assert ("earlybird: partitioned communication\n" in output) != prints


def test_a_rank_that_is_switched_off_meets_the_others_of_a_whole_job(any_mpi, variant):
    flavour = find_flavour(any_mpi)
    if flavour.family == "openmpi":
        pytest.skip("Open MPI has PMIx always")
    member = variant(flavour, "member")
    command = ["sh", "-c", f'[ "$PMI_RANK" != 0 ] || export EARLYBIRD_OFF=1; exec {member} 2,1']
    env = {"I_MPI_PMI_LIBRARY": "", "EARLYBIRD_WHOLE_JOB": "1", "EARLYBIRD_STATS": "1"}
    status, output = run_ranks(flavour, 3, command, env, 60)
    assert status == 0 and delivered(output) == [0, 0, 6], output[-2000:]
    assert "earlybird: partitioned communication\n" in output


_ANSWERS = {
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
    "get_appnum": "cmd=appnum appnum=0",
    "get_my_kvsname": "cmd=my_kvsname kvsname=kvs",
    "put": "cmd=put_result rc=0 msg=success",
    "barrier_in": "cmd=barrier_out rc=0",
    "finalize": "cmd=finalize_ack rc=0",
}


class HydraOfAnotherRelease:
    """Answers the ranks of a node as Hydra 4 does, which passes values on in barriers alone."""

    def __init__(self, num_ranks: int) -> None:
        self._values = {"PMI_process_mapping": f"(vector,(0,1,{num_ranks}))"}
        self._kept: dict[str, str] = {}
        self._barrier = threading.Barrier(
            num_ranks, action=lambda: self._values.update(self._kept), timeout=60
        )

    def answer(self, rank: socket.socket) -> None:
        """Answer one rank, line by line, until it ends."""
        with rank, rank.makefile("rw") as lines:
            for line in lines:
                given = dict(part.split("=", 1) for part in line.split())
                if given["cmd"] == "put":
                    self._kept[given["key"]] = given["value"]
                if given["cmd"] == "barrier_in":
                    self._barrier.wait()
                if given["cmd"] == "get":
                    value = self._values.get(given["key"])
                    found = (
                        f"rc=0 msg=success value={value}" if value else "rc=-1 msg=not_found value=unknown"
                    )
                    answer = f"cmd=get_result {found}"
                else:
                    answer = _ANSWERS.get(given["cmd"], f"cmd={given['cmd']} rc=-1")
                lines.write(f"{answer}\n")
                lines.flush()


def test_a_launcher_that_does_not_pass_on_who_has_the_library_is_named(variant):
    require_mpi("mpich")
    flavour = find_flavour("mpich")
    hydra, ranks, threads = HydraOfAnotherRelease(2), [], []
    for rank in range(2):
        ours, its = socket.socketpair()
        number = its.fileno()
        variables = {
            "PMI_FD": number,
            "PMI_RANK": rank,
            "PMI_SIZE": 2,
            "MPI_LOCALNRANKS": 2,
            "MPI_LOCALRANKID": rank,
        }
        threads.append(threading.Thread(target=hydra.answer, args=(ours,), daemon=True))
        threads[-1].start()
        with its:
            ranks.append(
                subprocess.Popen(
                    [str(variant(flavour, "member")), "0,1"],
                    pass_fds=[number],
                    stdout=subprocess.PIPE,
                    env=start_environment(flavour, 2) | {key: str(value) for key, value in variables.items()},
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
    try:
        output = "".join(rank.communicate(timeout=60)[0] for rank in ranks)
    finally:
        for rank in ranks:
            rank.kill()
    assert delivered(output) == [0, 6], output
    assert output.count("the launcher is of another release than the MPI") == 1
    assert "does not have libearlybird" not in output
