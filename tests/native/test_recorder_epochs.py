"""Exchanges whose partners change from epoch to epoch are recorded one by one, and steps of all ranks are one
phase."""

import pytest

from earlybird.analysis.phase_names import distinctions
from earlybird.data.phases import find_phases
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.patterns.recorded_epochs import exchanges_of_phase
from earlybird.toolchain.build import RECORDER, library_path
from tests.recorded_traffic import RANKS

pytestmark = pytest.mark.mpi
STEPS = 8
UP = [(rank, rank + 1) for rank in range(RANKS - 1)]
DOWN = [(dst, src) for src, dst in UP]


@pytest.fixture(scope="module")
def recorded(compiled, tmp_path_factory):
    """recorded(mpi): what record_turns does, recorded once for each MPI."""
    made = {}

    def record(mpi, run):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        if mpi not in made:
            folder = tmp_path_factory.mktemp("turns") / "rec"
            launch = ["mpiexec", "-n", RANKS, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
            program = compiled(flavour, "record_turns", ["-rdynamic"])
            run("record", "-o", folder, "--mpi", mpi, "--", *launch, program, STEPS, timeout=120)
            made[mpi] = load_recording(folder)
        return made[mpi]

    return record


@pytest.fixture
def phases_of(recorded, own_process):
    """phases_of(mpi, level): the recording, and its phases of that level that have messages."""

    def find(mpi, level):
        recording = recorded(mpi, own_process)
        return recording, [
            phase
            for phase in find_phases(recording)
            if phase.region == level and phase.sent(recording).messages.sum()
        ]

    return find


def exchanges(recording, phase):
    """By their pairs, how often each exchange was."""
    made = exchanges_of_phase(recording, phase)
    patterns = [made.exchange(number).pattern for number in range(len(made))]
    assert all((pattern.bytes == 1000).all() for pattern in patterns)
    pairs = [tuple(sorted(zip(one.src.tolist(), one.dst.tolist(), strict=True))) for one in patterns]
    return dict(zip(pairs, made.counts.tolist(), strict=True))


@pytest.mark.one_mpi
def test_each_turn_of_a_shift_is_an_exchange_of_its_own(mpi, phases_of):
    recording, (phase,) = phases_of(mpi, 1)
    turns = [tuple((rank, (rank + by) % RANKS) for rank in range(RANKS)) for by in range(1, RANKS)]
    assert exchanges(recording, phase) == dict.fromkeys(turns, STEPS)


@pytest.mark.one_mpi
def test_ranks_at_the_ends_of_a_line_take_part_in_the_exchanges_of_both_directions(mpi, phases_of):
    recording, (phase,) = phases_of(mpi, 2)
    assert set(phase.epochs_of.values()) == {2 * STEPS}
    assert exchanges(recording, phase) == dict.fromkeys((tuple(UP), tuple(sorted(DOWN))), STEPS)


@pytest.mark.one_mpi
def test_no_epoch_reaches_from_one_step_of_a_blocking_exchange_to_the_next(mpi, phases_of):
    recording, phases = phases_of(mpi, 3)
    assert [set(phase.epochs_of.values()) for phase in phases] == [{STEPS}] * 2
    found = [exchanges(recording, phase) for phase in phases]
    assert sorted(pairs for one in found for pairs in one) == sorted([tuple(UP), tuple(sorted(DOWN))])
    names = distinctions(recording, phases)
    assert sorted(names.values()) == ["to rank +1", "to rank -1"]
