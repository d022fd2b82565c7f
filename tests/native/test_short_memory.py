"""If memory runs short inside the library, it reports an error or the data arrives; no rank hangs."""

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


def number(output: str, label: str) -> int:
    return int(re.search(rf"^{label} (\d+)", output, re.MULTILINE)[1])


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.one_mpi
def test_every_allocation_of_a_request_may_fail(mpi, program, who):
    flavour = find_flavour(mpi)
    status, output = run_ranks(flavour, 2, [program(flavour, "failing_memory"), who], {}, 60)
    assert status == 0, output[-2000:]
    failed = number(output, "failed")
    # Two ways to make a request (with tags at hand, announced), of plain and of packed types.
    assert failed >= 4 * 3
    assert number(output, "delivered") == 12 * (failed + 4)


@pytest.mark.parametrize("who", [0, 1])
def test_every_allocation_of_a_start_may_fail(mpi, program, who, tmp_path):
    """The program itself checks that one side's success is the other's, and the data."""
    flavour = find_flavour(mpi)
    counts = tmp_path / "counts"
    status, output = run_ranks(flavour, 2, [program(flavour, "failing_starts"), who, counts], {}, 60)
    assert status not in (None, 0, 3), output[-2000:]  # it ends by MPI_Abort
    output = counts.read_text()
    assert number(output, "failed") >= 4
    assert number(output, "delivered") >= 4 * 15
    # A first start sent from copies allocates each segment, 1, 2 or 4 by the measured costs, and their list.
    assert number(output, "retried") in ((0,) if who else (2 * (1 + 1), 2 * (2 + 1), 2 * (4 + 1)))


# Which of the allocations is refused. Those of the list of loaded objects come first in MPI_Init.
PARTS = {"init": (2, 7), "meeting": tuple(range(0, 9, 2)), "communicators": (1, 2, 3, 5)}


@pytest.mark.parametrize(("part", "who"), [("init", 0), ("meeting", 1), ("communicators", 0)])
@pytest.mark.one_mpi
def test_an_allocation_that_fails_elsewhere_ends_in_a_sentence_or_in_data(mpi, program, part, who):
    flavour = find_flavour(mpi)
    num_refused = num_ended = num_said = 0
    for allowed in PARTS[part]:
        command = [program(flavour, "failing_anywhere"), who, allowed, part]
        status, output = run_ranks(flavour, 2, command, {}, 60)
        num_refused += "refused at" in output
        assert status is not None, f"hangs with allocation {allowed} of {part}: {output[-2000:]}"
        assert status != 0 or "delivered" in output, output[-2000:]
        num_ended += status != 0
        num_said += f"earlybird: rank {who}: out of memory" in output
        # Here a rank cannot even determine whether it needs the library: all ranks run without it.
        assert (part, allowed) != ("init", 7) or "so all ranks use the MPI's own" in output
    assert num_refused >= len(PARTS[part]) - 1
    # A launcher may lose what a rank has said directly before it ended the job, but not each time.
    assert num_said > 0 or num_ended == 0, (num_said, num_ended)
