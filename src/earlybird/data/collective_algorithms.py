"""Collective operations, the names of their algorithms, and how to force an MPI to run one of them.

Only mpi_algorithms.py contains the variables of each MPI.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.mpi_algorithms import FAMILIES, NEEDS, PERSISTENT_FAMILIES, Algorithm, Asked
from earlybird.data.units import shortened, whole_number

OPERATIONS = (
    "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter", "barrier",
    "allgatherv", "alltoallv", "neighbor_allgather", "neighbor_alltoall", "neighbor_alltoallv",
)  # fmt: skip
ROOTED = ("bcast", "reduce", "gather", "scatter")
REDUCTIONS = ("reduce", "allreduce")
# Blocks have different sizes: points have a `skew`, the largest block divided by the mean one.
WITH_COUNTS = ("allgatherv", "alltoallv", "neighbor_alltoallv")
# Ranks communicate with their neighbours only: points have a `topology`.
WITH_TOPOLOGY = ("neighbor_allgather", "neighbor_alltoall", "neighbor_alltoallv")
# Data flows from the root down the tree; in the other rooted operations it flows up to the root.
DOWNWARD = ("bcast", "scatter")

# No model describes these: their time depends on who sends how much to whom.
UNMODELLED = tuple(dict.fromkeys((*WITH_COUNTS, *WITH_TOPOLOGY)))
# Their sizes are those of the block between two ranks, as in the OSU benchmarks, or its mean; other sizes are
# of the buffer.
PER_PAIR = ("allgather", "alltoall", "gather", "scatter", *UNMODELLED)

# The quantities of the kernel `collective`: the completion time, and the ranks that wait for a late rank.
COMPLETION, VERIFICATION = "completion", "delayed_completion"
MEAN_OVER_RANKS = "mean_over_ranks"  # on request, or imported without the times of single ranks
# A separate operation there: the cost of the reduction operator, without messages.
REDUCE_LOCAL = "reduce_local"

DEFAULT = "default"  # the MPI's free choice
OWN = "own-"
# The MPI's persistent operation, initialised once: by its free choice, or by the algorithm after the prefix.
PERSISTENT, PERSISTENT_PREFIX = "persistent", "persistent-"
_OWN_TREES = {"own-linear": "linear", "own-pipeline": "chain", "own-binomial": "binomial-doubling"}
_OWN = {
    "bcast": ("own-linear", "own-pipeline", "own-binomial"),
    "reduce": ("own-linear", "own-pipeline", "own-binomial"),
    "gather": ("own-linear",),
    "scatter": ("own-linear",),
    **dict.fromkeys(UNMODELLED, ("own-linear",)),
}


@dataclass(frozen=True)
class Method:
    """The name of an algorithm and its segment size; 0 means no segmentation."""

    name: str
    segment_bytes: int = 0

    @property
    def text(self) -> str:
        """The method as it is in samples."""
        return f"{self.name}:{self.segment_bytes}" if self.segment_bytes else self.name

    @property
    def is_own(self) -> bool:
        return self.name.startswith(OWN)

    @property
    def is_persistent(self) -> bool:
        """True if it is the MPI's persistent operation."""
        return self.name == PERSISTENT or self.name.startswith(PERSISTENT_PREFIX)

    @property
    def is_forced(self) -> bool:
        """True if the MPI must be forced to use it."""
        return not self.is_own and self.name not in (DEFAULT, PERSISTENT)


def parse_method(text: str) -> Method:
    """Parse a method: `pipeline:8192` -> name and segment size in bytes; raise InputError if the size is not
    an integer."""
    name, colon, segment = text.partition(":")
    segment_bytes = whole_number(segment) if colon else 0
    if segment_bytes is None:
        raise InputError(
            f"the algorithm {shortened(text)} has no valid segment; give bytes, such as {name[:60]}:8192"
        )
    return Method(name, segment_bytes)


@dataclass(frozen=True)
class Forcing:
    """The variables that force an MPI to use one algorithm.

    Attributes
    ----------
    environment : variables of the environment of the launch.
    communicator : control variables (MPI_T) to write before the communicator is created.
    call : control variables to write before calls; they affect every communicator.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    communicator: Mapping[str, str] = field(default_factory=dict)
    call: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, dict[str, str]]:
        """Return the control variables as in the request of a kernel."""
        kinds = {"communicator": dict(self.communicator), "call": dict(self.call)}
        return {kind: variables for kind, variables in kinds.items() if variables}


# MPIs whose `default` stays their free choice in a launch that forces other methods.
STAYS_FREE = ("mpich", "openmpi")
FAMILY_NAMES = {
    "mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI", "simgrid": "SimGrid's SMPI",
}  # fmt: skip


def family_of(launch: Mapping[str, Any]) -> str | None:
    """Return the MPI family of a launch record, from the library version string."""
    version = str(launch.get("library_version", ""))
    signs = {"Intel": "intel", "Open MPI": "openmpi", "MPICH": "mpich", "SMPI": "simgrid"}
    return next((family for sign, family in signs.items() if version.startswith(sign)), None)


def own_algorithms(operation: str) -> tuple[str, ...]:
    """Return the names of Earlybird's algorithms, which use point-to-point calls and are available with every
    MPI."""
    return _OWN.get(operation, ())


def mpi_algorithms(family: str | None, operation: str) -> tuple[str, ...]:
    """Return the names of the algorithms that an MPI of `family` (mpich, openmpi, intel) can be forced to
    use."""
    return tuple(FAMILIES.get(family or "", {}).get(operation, ()))


def persistent_algorithms(family: str | None, operation: str) -> tuple[str, ...]:
    """Return the names of the algorithms of persistent operations, with their prefix, that an MPI of `family`
    can be forced to use."""
    return tuple(
        PERSISTENT_PREFIX + name for name in PERSISTENT_FAMILIES.get(family or "", {}).get(operation, ())
    )


def find_algorithm(family: str | None, operation: str, name: str) -> Algorithm:
    """Return the MPI's algorithm `name`; raise InputError, listing the known ones, if there is none."""
    known = _known_algorithms(family, operation)
    if name in known:
        return known[name]
    available = ", ".join((*known, *own_algorithms(operation), DEFAULT))
    raise InputError(
        f"there is no algorithm {name!r} of {operation} that {FAMILY_NAMES.get(family or '')} can be forced "
        f"to use; give {available}"
    )


def _known_algorithms(family: str | None, operation: str) -> dict[str, Algorithm]:
    persistent = PERSISTENT_FAMILIES.get(family or "", {}).get(operation, {})
    return {
        **FAMILIES.get(family or "", {}).get(operation, {}),
        **{PERSISTENT_PREFIX + name: algorithm for name, algorithm in persistent.items()},
    }


def is_segmented(family: str | None, operation: str, name: str) -> bool:
    """Return whether this algorithm, Earlybird's or the MPI's, supports segmentation."""
    if name.startswith(OWN):
        return name in ("own-pipeline", "own-binomial")
    return Method(name).is_forced and find_algorithm(family, operation, name).segmented is not None


def tree_of(family: str | None, operation: str, name: str) -> str | None:
    """Return the tree (models/trees.py) of this algorithm, Earlybird's or the MPI's; None if its tree is
    another or unknown."""
    if name.startswith(OWN):
        return _OWN_TREES.get(name) if operation in ROOTED else None
    algorithm = _known_algorithms(family, operation).get(name)
    return None if algorithm is None else algorithm.tree


def unmodelled_hint(operations: Iterable[str]) -> str:
    """Return why there is no model of `operations`, and which command compares their algorithms instead."""
    return (
        f"no model describes {' and '.join(operations)}, whose time depends on the counts and on who are "
        "neighbours; `earlybird show RUN` and `earlybird report RUN` compare the measured algorithms"
    )


def elements(size_bytes: int) -> tuple[str, int]:
    """Return datatype and count of a reduction of `size_bytes`: doubles if the size is a multiple of 8."""
    return ("byte", size_bytes) if size_bytes % 8 else ("double", size_bytes // 8)


def unmet_requirement(
    family: str | None, operation: str, method: Method, ranks: int, size_bytes: int
) -> str | None:
    """Return the requirement of an MPI algorithm that is not met, so that the MPI silently uses another
    algorithm; None if all are met."""
    if not method.is_forced:
        return None
    needs = find_algorithm(family, operation, method.name).needs
    if needs is None:
        return None
    requirement, holds = NEEDS[needs]
    asked = Asked(ranks, elements(size_bytes)[1], size_bytes, method.segment_bytes)
    return None if holds(asked) else requirement


def forcing(family: str | None, operation: str, method: Method, ranks: int) -> Forcing:
    """Return the variables that force an MPI of `family` to use `method` on communicators of `ranks`, on one
    node or several; for `default`, the variables that undo it."""
    if method.is_own or family not in FAMILIES:
        return Forcing()
    algorithm = find_algorithm(family, operation, method.name) if method.is_forced else None
    makers = _PERSISTENT_MAKERS if method.is_persistent else _MAKERS
    return makers[family](operation, algorithm, _Filling(method.segment_bytes, ranks))


@dataclass(frozen=True)
class _Filling:
    segment_bytes: int
    ranks: int

    def fill(self, variables: Mapping[str, str], prefix: str = "") -> dict[str, str]:
        values = {"segment": self.segment_bytes, "ranks": self.ranks, "children": self.ranks - 1}
        return {f"{prefix}{name}": value.format(**values) for name, value in variables.items()}


def _openmpi(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    """Return the variables for Open MPI. On several nodes `han` precedes `tuned`, so communicators of forced
    methods are created with another priority (writable since PR 12866 of Open MPI)."""
    prefix = f"coll_tuned_{operation}_algorithm"
    of_all = {"coll_tuned_use_dynamic_rules": "0", "coll_tuned_priority": "30", prefix: "0"}
    if algorithm is None:
        return Forcing(communicator=of_all)
    forced = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_priority": "90", prefix: str(algorithm.choice)}
    return Forcing(communicator=forced | filling.fill(algorithm.segmented or {}, f"{prefix}_"))


# With another value MPICH ignores the DEVICE_COLLECTIVE of an operation; this one is its default.
_MPICH_ENVIRONMENT = {"MPIR_CVAR_DEVICE_COLLECTIVES": "percoll"}


def _mpich(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    """Return the variables for MPICH. Unless its DEVICE_COLLECTIVE is 0, collectives in shared memory
    silently replace the algorithm after a few calls."""
    name, environment = operation.upper(), dict(_MPICH_ENVIRONMENT)
    if algorithm is None:
        free = {f"{name}_INTRA_ALGORITHM": "0", f"{name}_DEVICE_COLLECTIVE": "1"}
        return Forcing(environment, call=filling.fill(free, "MPIR_CVAR_"))
    forced = {f"{name}_INTRA_ALGORITHM": str(algorithm.choice), f"{name}_DEVICE_COLLECTIVE": "0"}
    forced |= algorithm.more
    if filling.segment_bytes:
        forced |= algorithm.segmented or {}
        environment |= filling.fill(algorithm.launch, "MPIR_CVAR_")
    return Forcing(environment, call=filling.fill(forced, "MPIR_CVAR_"))


def _intel(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    """Return the variables for Intel MPI, which reads them once, when MPI starts."""
    if algorithm is None:
        return Forcing()
    forced = {operation.upper(): str(algorithm.choice)} if algorithm.choice else {}
    forced |= algorithm.more
    if filling.segment_bytes:
        forced |= algorithm.segmented or {}
    return Forcing(environment=filling.fill(forced, "I_MPI_ADJUST_"))


def _simgrid(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    """Return the settings of SMPI, which its launcher reads from the environment."""
    return Forcing(environment=filling.fill(algorithm.more if algorithm else {}, "smpi/"))


def _mpich_persistent(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    """Return the variables for persistent operations of MPICH, which uses the algorithm of the nonblocking
    operation that is set when the persistent one is initialised."""
    if algorithm is None:
        return Forcing(_MPICH_ENVIRONMENT)
    forced = {f"I{operation.upper()}_INTRA_ALGORITHM": str(algorithm.choice), **algorithm.more}
    if filling.segment_bytes:
        forced |= algorithm.segmented or {}
    return Forcing(_MPICH_ENVIRONMENT, call=filling.fill(forced, "MPIR_CVAR_"))


def _openmpi_persistent(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    """Return the variables for persistent operations of Open MPI, whose component libnbc reads them when the
    operation is initialised."""
    if algorithm is None:
        return Forcing()
    return Forcing(call={f"coll_libnbc_i{operation}_algorithm": str(algorithm.choice)})


def _unforced(operation: str, algorithm: Algorithm | None, filling: _Filling) -> Forcing:
    return Forcing()


_MAKERS = {"mpich": _mpich, "openmpi": _openmpi, "intel": _intel, "simgrid": _simgrid}
_PERSISTENT_MAKERS = {
    "mpich": _mpich_persistent, "openmpi": _openmpi_persistent, "intel": _unforced, "simgrid": _unforced,
}  # fmt: skip
