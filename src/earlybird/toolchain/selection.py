"""Finds the trees by which an installed MPICH selects its algorithms."""

from collections.abc import Mapping
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.mpich_selection import Selection, find_selection
from earlybird.machine.flavours import NAMES, find_flavour
from earlybird.toolchain.build import names_of_builds


def selection_of(context: Mapping[str, Any]) -> Selection | None:
    """Return the trees in the library of the MPICH in the context of a profile; None if it is not
    installed."""
    name, version = context.get("flavour"), context.get("version")
    # A profile may come from others: the path of a compiler in it is run only if this user has built with it.
    if not isinstance(name, str) or (name not in NAMES and name not in names_of_builds()):
        return None
    try:
        flavour = find_flavour(name)
    except InputError:
        return None
    if flavour.family != "mpich" or flavour.version != version:
        return None
    return find_selection(flavour.mpicc.resolve().parent.parent)
