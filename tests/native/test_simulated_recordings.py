"""Programs that are recorded on real MPI can be simulated, whatever calls they make."""

import json

import pytest

from earlybird.data.recording import load_recording
from earlybird.data.simulated_program import simulated_program_from_json
from earlybird.machine.flavours import find_flavour
from earlybird.record.operations import operations_of
from earlybird.toolchain.build import RECORDER, library_path
from tests.python.record.test_simulation import PROFILE

pytestmark = pytest.mark.mpi
# Of any message that `record_completions` sends, which are of 8 bytes and of 128 KiB.
SIZES = {8, 1 << 17}


def test_every_way_to_complete_requests_is_simulated(any_mpi, own_process, compiled, tmp_path):
    flavour = find_flavour(any_mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {any_mpi}")
    program = compiled(flavour, "record_completions", ["-pthread", "-rdynamic"])
    launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    own_process("record", "--events", "all", "-o", "rec", "--mpi", any_mpi, "--", *launch, program)
    PROFILE.save(tmp_path / "p.json")
    result = own_process("predict", "program", "rec", "--profile", "p.json", "--progress", "--json")
    simulated = simulated_program_from_json(json.loads(result.stdout))
    operations = operations_of(load_recording(tmp_path / "rec"))
    assert simulated.num_messages == len(operations.bytes) > 0
    assert set(operations.bytes.tolist()) >= SIZES
    assert 0 < simulated.as_recorded_s < 10 * simulated.recorded_s
    assert simulated.changes == ("--progress",)
    own_process("predict", "program", "rec", "--profile", "p.json", "--aggregate", "--partitions", 2)


def test_threads_of_a_rank_are_simulated_side_by_side(any_mpi, own_process, compiled, tmp_path):
    flavour, threads, windows = find_flavour(any_mpi), 3, 5
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {any_mpi}")
    launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    command = [*launch, compiled(flavour, "record_threads", ["-pthread"]), "own", threads, windows]
    own_process("record", "--events", "all", "-o", "rec", "--mpi", any_mpi, "--", *command)
    PROFILE.save(tmp_path / "p.json")
    result = own_process("predict", "program", "rec", "--profile", "p.json", "--json")
    simulated = simulated_program_from_json(json.loads(result.stdout))
    operations = operations_of(load_recording(tmp_path / "rec"))
    # The main threads call the MPI, too.
    assert operations.thread_rank.tolist() == [0] * (threads + 1) + [1] * (threads + 1)
    assert simulated.num_messages == 2 * threads * windows * 32
    assert 0 < simulated.as_recorded_s < 10 * simulated.recorded_s
