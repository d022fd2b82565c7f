"""Communicators of sessions are the MPI's own business: they may be used after MPI_Finalize."""

import re

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import has_library, library_path
from tests.partitioned import run_ranks

pytestmark = pytest.mark.mpi

SERVED = re.compile(r"^ +\d+ +(?:sends|receives)", re.MULTILINE)  # rows of EARLYBIRD_STATS


@pytest.mark.parametrize(
    ("how", "ends"),
    [
        (how, ends)
        for how in ("itself", "duplicate", "split", "group", "merged")
        for ends in ("after", "before")
    ]
    + [("alone", "never")],
)
def test_what_is_made_of_a_sessions_communicator_is_left_to_the_mpi(mpi, compiled, how, ends):
    if (mpi, how) == ("openmpi", "alone"):
        pytest.skip("Open MPI 5.0.11's own partitioned calls crash without MPI_Init")
    flavour = find_flavour(mpi)
    if not has_library(flavour):
        pytest.skip(f"libearlybird is not built for {mpi}")
    env = {"LD_PRELOAD": str(library_path(flavour)), "EARLYBIRD_STATS": "1"}
    command = [compiled(flavour, "sessions"), how, *(["MPI_Finalize"] if ends == "before" else [])]
    status, output = run_ranks(flavour, 2, command, env, timeout_s=60)
    assert (status, output.count("right 12\n")) == (0, 2), output
    assert not SERVED.search(output), output
