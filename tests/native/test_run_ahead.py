"""A sender may be far ahead of its receiver, whatever limits a provider has for unexpected messages."""

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import library_path
from tests.partitioned import run_ranks

pytestmark = pytest.mark.mpi
# Between two ranks of one node, too.
OVER_TCP = {
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"},
    "intel": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"},
}


@pytest.mark.parametrize(("num_requests", "size_bytes"), [(65, 1024), (20, 1 << 20), (300, 100000)])
def test_requests_that_nobody_has_started_to_receive_are_delivered_over_tcp(
    mpi, compiled, num_requests, size_bytes
):
    flavour = find_flavour(mpi)
    env = OVER_TCP[mpi] | {"LD_PRELOAD": str(library_path(flavour))}
    # mpiexec is not to have the library: it has no MPI.
    command = ["env", *(f"{name}={value}" for name, value in env.items()), compiled(flavour, "run_ahead")]
    status, output = run_ranks(flavour, 2, [*command, num_requests, size_bytes], {}, 60)
    assert status == 0 and "delivered" in output, output[-2000:]
