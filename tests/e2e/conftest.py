"""What several files of commands as a user types them share."""

import pytest

from earlybird.data.errors import EarlybirdError
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import is_built


@pytest.fixture
def simgrid():
    """Skips where SimGrid, which is optional, is not here."""
    try:
        built = is_built(find_flavour("simgrid"))
    except EarlybirdError:
        built = False
    if not built:
        pytest.skip("SimGrid is not built; run `earlybird build --mpi simgrid`")
