"""Where memory runs short inside the library a request is not made, and an error says so."""

import re
import subprocess
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import library_path
from tests.partitioned import run_ranks

pytestmark = pytest.mark.mpi
SOURCE = Path(__file__).parent / "programs" / "failing_memory.c"


@pytest.mark.parametrize("who", [0, 1])
def test_every_allocation_of_a_request_may_fail(mpi, tmp_path, who):
    flavour, program = find_flavour(mpi), tmp_path / "failing_memory"
    lib = library_path(flavour).parent
    # -rdynamic: the program's malloc is to be found before the system's, by the library too.
    words = [flavour.mpicc, "-O1", "-w", "-rdynamic", SOURCE, "-o", program, "-ldl"]
    words += [f"-L{lib}", "-Wl,--no-as-needed", "-learlybird", f"-Wl,-rpath,{lib}"]
    subprocess.run(words, check=True, timeout=60, env=flavour.environment())
    status, told = run_ranks(flavour, 2, [program, who], {}, 60)
    assert status == 0, told[-2000:]
    failed, delivered = (
        int(re.search(rf"^{word} (\d+)", told, re.MULTILINE)[1]) for word in ("failed", "delivered")
    )
    # Two ways to make a request (with tags at hand, announced), of plain and of packed types.
    assert failed >= 4 * 3
    assert delivered == 12 * (failed + 4)
