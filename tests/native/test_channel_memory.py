"""The memory of a partitioned request stays within the figures of docs/partitioned.md."""

import re

import pytest

from earlybird.machine.flavours import find_flavour
from tests.partitioned import run_cases, run_ranks, suite_program

pytestmark = pytest.mark.mpi
# The figures of docs/partitioned.md per request, per partition and per segment.
REQUEST_BYTES, SEGMENT_BYTES, PARTITION_BYTES = 2200, 80, 6
# For a sender that tries candidates, as in the third start.
SEARCH_BYTES = {"sender": 3000, "receiver": 0}
NUM_REQUESTS = 50


@pytest.fixture(scope="session")
def held_bytes(compiled):
    """held_bytes(mpi, partitions, bytes of each, multiple): what the library holds per request, by side."""

    def measured(mpi: str, num_partitions: int, partition_bytes: int, multiple: bool) -> dict[str, int]:
        flavour = find_flavour(mpi)
        # -rdynamic: the library must find the program's malloc before the system's.
        program = compiled(flavour, "channel_memory", ("-rdynamic",), linked=True)
        arguments = (NUM_REQUESTS, num_partitions, partition_bytes, 3, int(multiple))
        # The costs decide whether a sender keeps the times of its partitions: here it does.
        env = {"EARLYBIRD_COSTS": "intra_node_protocols=0:1e-6:1e-7:1e9"}
        status, output = run_ranks(flavour, 2, [program, *arguments], env, 60)
        assert status == 0, output[-2000:]
        return {side: int(n) for side, n in re.findall(r"^(\w+) holds (\d+)", output, re.MULTILINE)}

    return measured


def test_a_request_of_thousands_of_partitions_takes_some_bytes_of_each(mpi, held_bytes):
    small, large = (held_bytes(mpi, num, 256, False) for num in (1, 4096))
    for side in ("sender", "receiver"):
        assert 0 < small[side] <= REQUEST_BYTES
        assert large[side] <= REQUEST_BYTES + 4 * SEGMENT_BYTES + SEARCH_BYTES[side] + 4096 * PARTITION_BYTES
        assert large[side] > 4096 * 4  # the partitions are counted at all


@pytest.mark.one_mpi
def test_a_cache_line_for_each_partition_is_a_sender_s_alone(mpi, held_bytes):
    """Of up to 256 partitions, where threads may meet."""
    held = held_bytes(mpi, 256, 4096, True)
    assert held["sender"] <= REQUEST_BYTES + 4 * SEGMENT_BYTES + SEARCH_BYTES["sender"] + 256 * 64
    assert held["receiver"] <= REQUEST_BYTES + 4 * SEGMENT_BYTES + 256 * PARTITION_BYTES


def run_size_cases(names: list[str], env: dict[str, str] | None = None) -> None:
    if not suite_program(find_flavour("mpich")).exists():
        pytest.skip("mpich is not built")
    found = run_cases(find_flavour("mpich"), 2, names, env=env, timeout_s=100, max_launches=2)
    assert {name: outcome for name, outcome in found.items() if outcome.status != "ok"} == {}


def test_more_segments_than_16_bits_name_deliver():
    """On MPICH: the time of Open MPI grows with the square of the messages that are expected at once."""
    case = "a_request_of_more_segments_than_16_bits_name_delivers"
    run_size_cases([case], {"EARLYBIRD_SEGMENTS": "partition"})


@pytest.mark.thorough
def test_more_partitions_than_have_states_deliver_and_take_a_bit_of_each():
    run_size_cases(
        [
            "a_request_of_2_to_the_31_empty_partitions_takes_a_bit_of_each_ready_one",
            "a_request_of_a_million_partitions_delivers",
            "a_request_of_a_million_partitions_with_gaps_delivers",
        ]
    )
