"""A sender may be far ahead of its receiver, whatever limits a provider has for unexpected messages."""

import subprocess
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import library_path
from tests.partitioned import run_ranks

pytestmark = pytest.mark.mpi
SOURCE = Path(__file__).parent / "programs" / "run_ahead.c"
# Between two ranks of one node, too.
OVER_TCP = {
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"},
    "intel": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"},
}


@pytest.fixture(scope="module")
def run_ahead(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run-ahead")

    def compiled(mpi: str) -> Path:
        program = folder / mpi
        if not program.exists():
            flavour = find_flavour(mpi)
            words = [flavour.mpicc, "-O1", "-w", SOURCE, "-o", program]
            subprocess.run(words, check=True, timeout=60, env=flavour.environment())
        return program

    return compiled


@pytest.mark.parametrize(("num_requests", "size_bytes"), [(65, 1024), (20, 1 << 20), (300, 100000)])
def test_requests_that_nobody_has_started_to_receive_are_delivered_over_tcp(
    mpi, run_ahead, num_requests, size_bytes
):
    flavour = find_flavour(mpi)
    env = OVER_TCP[mpi] | {"LD_PRELOAD": str(library_path(flavour))}
    # mpiexec is not to have the library: it has no MPI.
    words = ["env", *(f"{name}={value}" for name, value in env.items()), run_ahead(mpi)]
    status, told = run_ranks(flavour, 2, [*words, num_requests, size_bytes], {}, 60)
    assert status == 0 and "delivered" in told, told[-2000:]
