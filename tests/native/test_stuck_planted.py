"""Programs that hang in further planted ways: threads, sub-communicators, roots, mpi4py, and on two nodes."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, library_path
from tests.cluster import running_cluster
from tests.conftest import EARLYBIRD

pytestmark = [pytest.mark.mpi, pytest.mark.thorough]

PLANTED = {
    "threads": ("deadlock", [0, 1], "rank 0 is in MPI_Recv from rank 1, tag 3"),
    "rows": ("collective", [0, 1, 3, 2], "MPI_Barrier no. 1 of a communicator of ranks 0 and 1"),
    "roots": ("collective", [3], "root 3"),
    "ssends": ("deadlock", [0, 1, 2, 3], "MPI_Ssend"),
    "unreceived": ("missing", [0, 1], "rank 1"),
    "persistent": ("mismatch", [1, 0], "with tag 40"),
    "grid": ("mismatch", [3, 1], "on MPI_COMM_WORLD"),
}
# On every MPI what depends on how it waits in threads, and in which collective.
EVERYWHERE = ("threads", "roots")
# On two nodes one of each way to wait: for messages, for a collective, for requests of a sub-communicator.
ON_NODES = ("rows", "ssends", "persistent", "grid")
PYTHON = """
from mpi4py import MPI
world = MPI.COMM_WORLD
def exchange():
    return world.recv(source=1 - world.rank, tag=5)
if world.rank < 2:
    exchange()
world.Barrier()
"""


@pytest.fixture
def program(compiled):
    """program(mpi): the compiled program."""

    def make(mpi):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        return compiled(flavour, "stuck_planted", ["-g", "-pthread"])

    return make


def answer_of(own_process, mpi, *command, limit="1s", **more):
    """The status and the JSON of `record --stuck --stop`."""
    result = own_process(
        "record", "-o", "rec", "--mpi", mpi, "--stuck", limit, "--stop", "--json", "--", *command,
        check=False, timeout=90, **more,
    )  # fmt: skip
    return result, json.loads(result.stdout)


def launch(mpi, num=4):
    oversubscribe = ["--oversubscribe"] * (find_flavour(mpi).family == "openmpi")
    return ["mpiexec", "-n", str(num), *oversubscribe]


def assert_planted(result, answer, mode):
    verdict, guilty, text = PLANTED[mode]
    assert (answer["verdict"], answer["guilty"]) == (verdict, guilty), answer["sentence"]
    assert text in answer["sentence"]
    assert result.returncode == 1


@pytest.mark.parametrize(
    "mode",
    [mode if mode in EVERYWHERE else pytest.param(mode, marks=pytest.mark.one_mpi) for mode in PLANTED],
)
def test_planted_hangs(mpi, own_process, program, mode, tmp_path):
    result, answer = answer_of(own_process, mpi, *launch(mpi), program(mpi), mode)
    for _ in range(4):
        # MPICH alone, too, ends this program with an error now and then where cores are shared: a rank leaves
        # MPI_Finalize although a message to it was not received.
        if mode != "unreceived" or answer["verdict"] != "ended":
            break
        shutil.rmtree(tmp_path / "rec")
        result, answer = answer_of(own_process, mpi, *launch(mpi), program(mpi), mode)
    assert_planted(result, answer, mode)


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(2, "1gbit", "--no-check") as told:
        yield told


@pytest.mark.one_mpi
@pytest.mark.parametrize("mode", ON_NODES)
def test_planted_hangs_on_two_nodes(mpi, own_process, program, cluster, mode):
    nodes = [EARLYBIRD, "cluster", "mpiexec", "--name", cluster["name"], "--mpi", mpi, "--layout", "2x1x2"]
    assert_planted(*answer_of(own_process, mpi, *nodes, "--", program(mpi), mode, limit="2s"), mode)


def test_a_program_of_mpi4py_that_hangs(mpi, own_process, program, tmp_path):
    program(mpi)
    script = tmp_path / "hang.py"
    script.write_text(PYTHON)
    flavour = find_flavour(mpi)
    begins = "from mpi4py import MPI; print(MPI.Get_library_version())"
    tried = subprocess.run(
        [EARLYBIRD, "exec", "--mpi", mpi, "--", *launch(mpi, 1), sys.executable, "-c", begins],
        capture_output=True, text=True, timeout=60, env=os.environ, cwd=tmp_path,
    )  # fmt: skip
    if tried.returncode:
        pytest.skip(f"mpi4py does not run with {flavour.name} here")
    result, answer = answer_of(own_process, mpi, *launch(mpi), sys.executable, script)
    assert (answer["verdict"], answer["cycle"]) == ("deadlock", [0, 1]), answer["sentence"]
    assert "rank 0 is in MPI_" in answer["sentence"] and "from rank 1, tag 5" in answer["sentence"]
    assert "(exchange (hang.py:5)" in answer["sentence"]
    assert result.returncode == 1
