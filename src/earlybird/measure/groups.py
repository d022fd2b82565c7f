"""The parts of suites: groups of points, options, and the resources to measure on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from earlybird.data.collective_algorithms import Forcing
from earlybird.data.errors import InputError
from earlybird.data.kernels import KERNELS, sweep_blocks, sweep_steps
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.methods import MANY, SINGLE
from earlybird.data.pattern import Pattern
from earlybird.measure.options import FIELDS, SuiteOption

MIB = 1 << 20

# The methods of pipelines whose times follow from latency and bandwidth.
DRAWN_METHODS = frozenset((SINGLE, MANY))

# Communication contexts of the MPICH that PyPI has, 5.0.2, those of streams included: 32 end its MPI_Init.
MPICH_WHEEL_CONTEXTS = 31

# Processes of a virtual node that receive at once: they share its link, however few its cores are.
VIRTUAL_COMPETITORS = 4
# How long one message, or those of all ranks in a timed region, may keep a virtual node's link busy.
_LINK_S = 0.1
# About how fast one core reads memory that is in no cache, and the caches of a machine that does not describe
# them; native/harness/machine/caches.cpp empties caches by reading twice as much as they hold.
_READ_BYTES_PER_S = 8e9
_ASSUMED_CACHE_BYTES = 68 * MIB
# `EARLYBIRD_STARTS_UNTIL_SETTLED` of native/include/earlybird.h.
_SETTLING_STARTS = 110
# Delay of each rank in turn to determine the tree of an algorithm; half of it, and at most twice as many
# ranks, beyond this many ranks.
_VERIFICATION_DELAY_S, _VERIFICATION_RANKS = 0.1, 8


@dataclass(frozen=True)
class Group:
    """The points that one launch can measure together: same kernel, same placement, same methods (if it has
    any).

    `link_bytes_per_s` is the rate of the links that its messages take; None if unknown. `threads`: number per
    rank, None: the launcher's number; `vcis`: communication contexts requested from each rank's MPI, None:
    its default; `streams`: number of MPIX_Stream for which further contexts are reserved. `preload`: the
    ranks get libearlybird. `environment` are further variables of the launch, `settings` the control
    variables by which its methods differ. `verifies`: verify the tree of each method once. `mean_over_ranks`:
    the time of a collective is the mean of the ranks' times, not that of the last. `flush_s`: time to empty
    the caches before an iteration of a point with `cache=cold`.
    """

    kernel: str
    layout: Layout
    points: tuple[dict[str, Any], ...]
    pattern: Pattern | None = None
    methods: tuple[str, ...] = ()
    link_bytes_per_s: float | None = None
    threads: int | None = None
    vcis: int | None = None
    streams: int = 0
    preload: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Forcing] = field(default_factory=dict)
    verifies: bool = False
    mean_over_ranks: bool = False
    flush_s: float = 0.0

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"there is no kernel {self.kernel!r}; describe it in data/kernels.py")

    @property
    def num_methods(self) -> int:
        """The number of samples of each point and launch."""
        return max(len(self.methods), 1)

    @property
    def verification_s(self) -> float:
        """The cost of verifying the tree of each method; see native/kernels/collective.cpp."""
        num_ranks = self.layout.num_ranks
        delay_s = _VERIFICATION_DELAY_S if num_ranks <= _VERIFICATION_RANKS else _VERIFICATION_DELAY_S / 2
        return len(self.methods) * min(num_ranks, 2 * _VERIFICATION_RANKS) * delay_s

    def link_s(self, point: Mapping[str, Any]) -> float:
        """Return the minimum time for which an iteration of `point` with each method keeps a link busy."""
        if self.link_bytes_per_s is None:
            return 0.0
        link_bytes = KERNELS[self.kernel].link_bytes(point, self.layout, self.pattern)
        return self.num_methods * link_bytes / self.link_bytes_per_s

    def computing_s(self, point: Mapping[str, Any]) -> float:
        """Return for how long the threads of an iteration of `point` with each method compute and empty the
        caches."""
        of_one = point.get("compute_s", 0.0) * (1 + point.get("noise_share", 0.0)) * sweep_steps(point)
        return len(self.methods) * (of_one + (self.flush_s if is_cold(point) else 0.0))

    def settling_s(self, point: Mapping[str, Any]) -> float:
        """Return for how long libearlybird is measured before it has settled, if threads compute."""
        settles = sum(method.startswith("earlybird") for method in self.methods)
        return settles * _settling_iterations(point) * self.computing_s(point) / max(len(self.methods), 1)


def is_cold(point: Mapping[str, Any]) -> bool:
    """Return whether the caches are emptied before each iteration of `point`."""
    return point.get("cache") == "cold"


def _settling_iterations(point: Mapping[str, Any]) -> int:
    """Return the number of iterations until every request was started often enough, see `runs_until` in
    native/kernels/motifs/halo.cpp and native/kernels/sweep3d.cpp: the requests of derived datatypes, of two
    copies of the cells, are started in turn; those of a sweep for every second block."""
    if "planes_per_block" in point:
        return -(-_SETTLING_STARTS // max(sweep_blocks(point) // 2, 1))
    return 2 * _SETTLING_STARTS if point.get("buffers") == "derived" else _SETTLING_STARTS


class Options(SimpleNamespace):
    """The options of a user: `quick`, `launcher_threads`, which ranks have if the suite compares none, and
    the value of each `SuiteOption` by its `field`; None leaves the choice to the suite."""

    def __init__(self, **given: Any) -> None:
        if unknown := given.keys() - {"quick", "launcher_threads"} - FIELDS:
            raise TypeError(f"no option of a suite sets {', '.join(sorted(unknown))}")
        super().__init__(**{"quick": False, "launcher_threads": 1} | given)

    def __getattr__(self, field: str) -> None:
        if field not in FIELDS:
            raise AttributeError(f"no option of a suite sets {field}")

    def changed(self, **given: Any) -> "Options":
        """Return these options with some of them replaced."""
        return Options(**vars(self) | given)


@dataclass(frozen=True)
class Library:
    """The properties of the measured MPI that a suite needs to know.

    Attributes
    ----------
    name : name of the MPI flavour.
    partitioned : whether it has partitioned communication.
    streams : whether it has MPIX_Stream.
    persistent_collectives : whether it has the persistent collectives of MPI 4.0.
    earlybird : whether libearlybird is built for it.
    """

    name: str
    partitioned: bool = True
    streams: bool = True
    persistent_collectives: bool = True
    earlybird: bool = True


@dataclass(frozen=True)
class Resources:
    """The resources of a launcher: the available levels, and the cores of a group on each (socket, socket,
    node).

    Ranks beyond `cores_per_socket` of a node are on its next socket; None puts all on one socket.
    `link_bytes_per_s` is the rate of a virtual node's link; None if unlimited. `family` is that of the MPI
    (`mpich`, `openmpi`, `intel`) and `library` its properties; None if times are drawn, for the pipeline
    methods `drawn_methods`. `memory_bytes` is available to the ranks of a node, None if unknown; `sockets`
    are those of a node. `cache_bytes` is what the caches of a core hold, shared ones included. `shares_cores`
    returns whether ranks of a layout wait for a core that others use.
    """

    cores: Mapping[str, int]
    cores_per_socket: int | None = None
    link_bytes_per_s: float | None = None
    nodes: int = 1
    family: str | None = None
    library: Library | None = None
    drawn_methods: frozenset[str] = DRAWN_METHODS
    memory_bytes: int | None = None
    sockets: int = 1
    cache_bytes: int = _ASSUMED_CACHE_BYTES
    shares_cores: Callable[[Layout], bool] = field(default=lambda layout: False, compare=False)

    @property
    def flush_s(self) -> float:
        """The time to empty the caches of a rank."""
        return 2 * self.cache_bytes / _READ_BYTES_PER_S

    @classmethod
    def of(
        cls,
        cores_per_socket: int,
        sockets: int,
        nodes: int = 1,
        link_bytes_per_s: float | None = None,
    ) -> "Resources":
        """Return the resources of `nodes` identical nodes, each with `sockets` of `cores_per_socket`."""
        cores = {"intra_socket": cores_per_socket}
        if sockets > 1:
            cores["inter_socket"] = cores_per_socket
        if nodes > 1:
            cores["inter_node"] = cores_per_socket * sockets
            if link_bytes_per_s is not None:
                # Where links are slower than the cores that they share, more ranks than cores still measure
                # the link.
                cores["inter_node"] = max(cores["inter_node"], VIRTUAL_COMPETITORS)
        return cls(cores, cores_per_socket, link_bytes_per_s, nodes, sockets=sockets)


@dataclass(frozen=True)
class Suite:
    """A suite of measurements. `groups(options, resources, mpi)` lists what to measure; `takes` are its own
    options, besides those of every suite; `budgets_s` the default time for one MPI, without and with --quick;
    a `simulated` suite runs on simulated ranks although it compares threads; for a suite that `draws_threads`
    the launcher synthetic draws times of any number of threads; `remarks(options, resources)` are sentences
    on what these options measure."""

    name: str
    help: str
    takes: tuple[SuiteOption, ...]
    groups: Callable[[Options, Resources, str], list[Group]]
    example: str
    budgets_s: tuple[float, float] = (60.0, 20.0)
    simulated: bool = False
    draws_threads: bool = False
    remarks: Callable[[Options, Resources], list[str]] = lambda options, resources: []

    @property
    def compares_threads(self) -> bool:
        """True if the suite measures several thread counts."""
        return any(option.name == "threads" for option in self.takes)


def pair_layout(level: str, competitors: int, resources: Resources) -> Layout:
    """Return pairs r, r + P/2 whose two ranks are on one socket (P = `competitors`, at least 2), on two
    sockets, or on two nodes (P/2 = `competitors`)."""
    if level == "intra_socket":
        return parse_layout(f"1x1x{max(2, competitors)}")
    if level == "inter_socket":
        return parse_layout(f"1x2x{competitors}")
    per_socket = resources.cores_per_socket or competitors
    if competitors <= per_socket or resources.link_bytes_per_s is not None:
        return parse_layout(f"2x1x{competitors}")
    rank = np.arange(2 * competitors)
    node, socket = rank // competitors, rank % competitors // per_socket
    return Layout(node, socket, f"2 nodes of {competitors} ranks")


def cores_per_rank(level: str, resources: Resources) -> int:
    """Return the cores for the threads of one of the two ranks; virtual nodes share the cores of one
    machine."""
    of_group = resources.cores_per_socket or resources.cores[level]
    if level == "intra_socket" or resources.link_bytes_per_s is not None:
        return max(of_group // 2, 1)
    return of_group if level == "inter_socket" else resources.cores[level]


def levels_of(options: Options, resources: Resources) -> tuple[str, ...]:
    """Return the requested levels, by default all that are available; raise InputError for an unavailable
    one."""
    if options.levels is None:
        return tuple(resources.cores)
    for level in options.levels:
        if level not in resources.cores:
            raise InputError(
                f"--levels has {level!r}, which is not available; the levels are {', '.join(resources.cores)}"
            )
    return options.levels


def link_of(level: str, resources: Resources) -> float | None:
    """Return the rate of the links that messages of `level` use; None if unlimited."""
    return resources.link_bytes_per_s if level == "inter_node" else None


def hangs_with_contexts(level: str, resources: Resources) -> bool:
    """Return whether the MPI hangs with several contexts, as MPICH 5.0.2 over a virtual cluster's TCP. By UCX
    MPI_Init does not return, nor on one host with UCX_TLS=tcp,self and MPIR_CVAR_NOLOCAL=1. By libfabric
    (MPIR_CVAR_CH4_NETMOD=ofi) it does, and two threads with a communicator each ended 11 of 11 times, but two
    of two runs of msgrate with two threads stalled."""
    return resources.family == "mpich" and link_of(level, resources) is not None


def refuse_hanging(given: str) -> NoReturn:
    """Raise InputError where `hangs_with_contexts` holds; `given` is the option and its value."""
    raise InputError(
        f"{given} and MPICH hangs in MPI_Init with several contexts between nodes of a virtual cluster; "
        "leave it out, give --levels intra_socket, or measure another --mpi"
    )


def carried_bytes(size_bytes: int, level: str, resources: Resources, shares: int = 1) -> int:
    """Return `size_bytes`, or one of `shares` of the bytes that a virtual link carries in `_LINK_S`, if that
    is less."""
    link = link_of(level, resources)
    return size_bytes if link is None else min(size_bytes, max(1, round(_LINK_S * link / shares)))


def powers(last: int, factor: int, first: int = 1) -> tuple[int, ...]:
    """Return first, first*factor, ... up to `last`."""
    sizes, size = [], first
    while size <= last:
        sizes.append(size)
        size *= factor
    return tuple(sizes)


def refuse_large(sizes: Sequence[int]) -> None:
    """Raise InputError for a message whose size exceeds an MPI count."""
    if max(sizes, default=0) >= 1 << 31:
        raise InputError(
            f"a message has {max(sizes)} bytes; the kernels send at most {(1 << 31) - 1} in one message: "
            "give smaller ones"
        )
