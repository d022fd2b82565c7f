"""Settings of the user that launches need otherwise are refused before anything is measured."""

from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import Flavour
from earlybird.measure.groups import Group
from earlybird.measure.session import refuse_conflicts_of

LAYOUT = parse_layout("1x1x1")


def launcher(family: str, **settings: str) -> MpiexecLauncher:
    mpi = Flavour(family, family, "1", Path("/opt/mpicc"), Path("/opt/mpiexec"), settings=settings)
    return MpiexecLauncher(mpi)


def test_what_the_start_of_ranks_sets_is_refused():
    with pytest.raises(InputError, match=r"--env I_MPI_FABRICS=ofi has no effect .* needs I_MPI_FABRICS=shm"):
        launcher("intel", I_MPI_FABRICS="ofi").check(LAYOUT)
    launcher("intel", I_MPI_FABRICS="shm").check(LAYOUT)
    launcher("mpich", I_MPI_FABRICS="ofi").check(LAYOUT)


def test_what_points_set_is_refused():
    alone, other = launcher("mpich"), launcher("mpich", MPIR_CVAR_CH4_NUM_VCIS="1", ANY="1")

    def groups(**more):
        return [Group("msgrate", LAYOUT, ({"mpi": one.flavour},), **more) for one in (alone, other)]

    with pytest.raises(InputError, match="needs MPIR_CVAR_CH4_NUM_VCIS=4"):
        refuse_conflicts_of(groups(vcis=4), other)
    with pytest.raises(InputError, match="needs ANY=2"):
        refuse_conflicts_of(groups(environment={"ANY": "2"}), other)
    refuse_conflicts_of(groups(vcis=1), other)
    refuse_conflicts_of(groups(vcis=4), alone)
