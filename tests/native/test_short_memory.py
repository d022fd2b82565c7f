"""Where memory runs short inside the library an error says so or the data arrives; no rank waits for ever."""

import functools
import re

import pytest

from earlybird.machine.flavours import find_flavour
from tests.partitioned import run_ranks

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def program(compiled):
    """program(flavour, name): linked so that the library finds the program's malloc before the system's."""
    return functools.partial(compiled, options=("-rdynamic",), linked=True)


def number(told: str, word: str) -> int:
    return int(re.search(rf"^{word} (\d+)", told, re.MULTILINE)[1])


@pytest.mark.parametrize("who", [0, 1])
def test_every_allocation_of_a_request_may_fail(mpi, program, who):
    flavour = find_flavour(mpi)
    status, told = run_ranks(flavour, 2, [program(flavour, "failing_memory"), who], {}, 60)
    assert status == 0, told[-2000:]
    failed = number(told, "failed")
    # Two ways to make a request (with tags at hand, announced), of plain and of packed types.
    assert failed >= 4 * 3
    assert number(told, "delivered") == 12 * (failed + 4)


@pytest.mark.parametrize("who", [0, 1])
def test_every_allocation_of_a_start_may_fail(mpi, program, who, tmp_path):
    """The program itself checks that one side's success is the other's, and the data."""
    flavour = find_flavour(mpi)
    counts = tmp_path / "counts"
    status, told = run_ranks(flavour, 2, [program(flavour, "failing_starts"), who, counts], {}, 60)
    assert status not in (None, 0, 3), told[-2000:]  # it ends by MPI_Abort
    told = counts.read_text()
    assert number(told, "failed") >= 4 * 3
    assert number(told, "delivered") >= 4 * 15
    # A first start that is sent from copies: memory for its segments, and for their list.
    assert number(told, "retried") == (0 if who else 2 * 3)


# Which of the allocations is refused. Those of the list of loaded objects come first in MPI_Init.
PARTS = {"init": (2, 7), "meeting": tuple(range(0, 9, 2)), "communicators": (1, 2, 3, 5)}


@pytest.mark.parametrize(("part", "who"), [("init", 0), ("meeting", 1), ("communicators", 0)])
def test_an_allocation_that_fails_elsewhere_ends_in_a_sentence_or_in_data(mpi, program, part, who):
    flavour = find_flavour(mpi)
    num_refused = num_ended = num_said = 0
    for allowed in PARTS[part]:
        words = [program(flavour, "failing_anywhere"), who, allowed, part]
        status, told = run_ranks(flavour, 2, words, {}, 20)
        num_refused += "refused at" in told
        assert status is not None, f"hangs with allocation {allowed} of {part}: {told[-2000:]}"
        assert status != 0 or "delivered" in told, told[-2000:]
        num_ended += status != 0
        num_said += f"earlybird: rank {who}: no memory is left" in told
        # Here a rank cannot even tell whether it needs the library: it is not alone in doing without.
        assert (part, allowed) != ("init", 7) or "is left to the MPI on all ranks" in told
    assert num_refused >= len(PARTS[part]) - 1
    # A launcher may lose what a rank has said directly before it ended the job, but not each time.
    assert num_said > 0 or num_ended == 0, (num_said, num_ended)
