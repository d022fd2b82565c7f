"""Programs that hang in collectives on files, in persistent collectives and in locks of windows."""

import json

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import RECORDER, features, library_path
from tests.stuck_job import until_said

pytestmark = [pytest.mark.mpi, pytest.mark.thorough]


@pytest.mark.parametrize(
    ("mode", "verdict", "text"),
    [
        ("persistent", "deadlock", "no. 2 of persistent collective 1 of MPI_COMM_WORLD"),
        ("file", "deadlock", "MPI_File_open"),
        ("file-request", "deadlock", "of file 1 of MPI_COMM_WORLD"),
        # The places of objects are the recorder's own, whatever the MPI.
        pytest.param(
            "many-persistent",
            "deadlock",
            "no. 1 of persistent collective 101 of MPI_COMM_WORLD",
            marks=pytest.mark.one_mpi,
        ),
        pytest.param("many-files", "deadlock", "of file 101 of MPI_COMM_WORLD", marks=pytest.mark.one_mpi),
        ("lock", "one-sided", "rank 0 holds the lock (MPI_Win_lock in "),
    ],
)
def test_a_rank_that_does_not_come(mpi, own_process, compiled, tmp_path, mode, verdict, text):
    flavour = find_flavour(mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {mpi}")
    if "persistent" in mode and not features(flavour).get("has_persistent_collectives"):
        pytest.skip("this MPI has no persistent collectives")
    program = [compiled(flavour, "record_objects", ["-g"]), mode, tmp_path / "file"]
    oversubscribe = ["--oversubscribe"] * (flavour.family == "openmpi")
    command = ["mpiexec", "-n", "4", *oversubscribe, *map(str, program)]
    if verdict != "deadlock":  # a program that is not certain to wait forever is not stopped
        command = until_said(verdict, text, command)
    result = own_process(
        "record", "-o", "rec", "--mpi", mpi, "--stuck", "1s", "--stop", "--json", "--", *command,
        check=False, timeout=90,
    )  # fmt: skip
    answer = json.loads(result.stdout)
    assert text in answer["sentence"]
    assert answer["verdict"] == verdict, answer["sentence"]
    if mode == "file-request" and flavour.family != "openmpi":  # which writes without the other ranks
        assert "MPI_Wait for MPI_File_iwrite_at_all no. 2" in answer["sentence"]
    assert "rank 2 holds" not in answer["sentence"]
    assert answer["guilty"][0] == 0
    assert answer["cycle"] == ([0, 1] if mode == "lock" else [0, 2])
    assert (result.returncode == 1) == (verdict == "deadlock")
