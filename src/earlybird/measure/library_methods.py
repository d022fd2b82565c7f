"""Which methods an MPI and libearlybird provide, and which launches measure them."""

from collections.abc import Sequence

from earlybird.data.methods import EARLYBIRD, OWN_CALLS
from earlybird.data.shell_commands import quoted
from earlybird.measure.groups import Library, Resources


def is_here(method: str, resources: Resources) -> bool:
    """Return whether the MPI, or the launcher that draws times, has this method."""
    library = resources.library
    if library is None:
        return method in resources.drawn_methods
    needed = {"partitioned": library.partitioned, "stream": library.streams}
    return library.earlybird if method.startswith("earlybird") else needed.get(method, True)


def unavailable_reason(method: str, resources: Resources) -> str:
    library = resources.library
    if library is None:
        drawn = ", ".join(sorted(resources.drawn_methods))
        return f"the launcher synthetic draws times of {drawn} only; leave it out"
    if method.startswith("earlybird"):
        return (
            f"libearlybird is not built for {library.name}; leave it out, or run `earlybird build --mpi "
            f"{quoted(library.name)}`"
        )
    what = (
        "no partitioned communication of its own" if method == "partitioned" else "no streams (MPIX_Stream)"
    )
    return f"{library.name} has {what}; leave it out, or give an --mpi that has, such as mpich"


def launches_of(methods: Sequence[str]) -> list[tuple[tuple[str, ...], bool]]:
    """Return the methods of each kind of launch, and whether it gets libearlybird, which would replace the
    MPI's own `partitioned`. Both kinds have the other methods."""
    common = tuple(method for method in methods if method not in (EARLYBIRD, OWN_CALLS))
    found = []
    if OWN_CALLS in methods or EARLYBIRD not in methods:
        found.append(((*common, *(method for method in methods if method == OWN_CALLS)), False))
    if EARLYBIRD in methods:
        found.append(((*common, EARLYBIRD), True))
    return found


def remark_without_own_calls(library: Library) -> str:
    return f"{library.name} has no partitioned communication of its own: only libearlybird's is measured"
