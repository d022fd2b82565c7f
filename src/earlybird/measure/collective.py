"""The suite `collective`: collective operations by every algorithm asked for, ours, the MPI's, its choice."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data.collective_algorithms import (
    OPERATIONS,
    PER_PAIR,
    REDUCE_LOCAL,
    REDUCTIONS,
    ROOTED,
    WITH_COUNTS,
    WITH_TOPOLOGY,
    Method,
    elements,
    forcing,
    parse_method,
    unmet_requirement,
)
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.labels import counted
from earlybird.data.layout import Layout, is_shape, parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.topologies import DEFAULT_TOPOLOGY, num_neighbours, parse_topology
from earlybird.data.units import format_bytes, number_in, parse_bytes, shortened, whole_number
from earlybird.machine.flavours import SIMULATED
from earlybird.measure.collective_methods import (
    ALGORITHM_SETS,
    DEFAULT_ALGORITHMS,
    DEFAULT_OPERATIONS,
    applies,
    launches,
    methods_of,
)
from earlybird.measure.groups import MIB, Group, Options, Resources, carried_bytes, powers, refuse_large
from earlybird.measure.options import SuiteOption, byte_counts, listed, number, sizes_option, split

VERIFY_CHOICES = ("largest", "all", "none")
# The time of a collective: until the last rank is done, or the mean of the times of the ranks. Both are kept.
COMPLETION, MEAN = "completion", "mean"
STATISTICS = (COMPLETION, MEAN)
_LARGEST_BYTES = MIB
_MIN_RANKS = 4  # that are tried however few cores there are
# Ranks per core beyond which times show only the scheduler.
_MAX_PER_CORE, _MAX_RANKS = 8, 64
_SKEW = 4  # the default, if a rank has many blocks


def _algorithm(text: str) -> str:
    """Return `pipeline:8192` for `pipeline:8KiB`; names without a segment size are unchanged."""
    name, colon, segment = text.partition(":")
    if not colon:
        return name
    return Method(name, parse_bytes(segment, f"--algorithm has {text}, its segment")).text


def _skew(text: str) -> float:
    """Return 4 for `4`, 1.5 for `1.5`."""
    try:
        skew = number_in(text)
    except ValueError:
        skew = math.nan
    if not 1 <= skew < math.inf:
        raise InputError(
            f"--skew has {text!r}; give the largest block divided by the mean block, 1 or more, such as 1,4"
        )
    return _whole_if_possible(skew)


def _whole_if_possible(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _parse_ranks(text: str, _: Mapping[str, Any]) -> tuple[int, ...]:
    """Parse `2,4,8` and ranges such as `2..8`."""

    def parse(item: str) -> Iterable[int]:
        ends = [whole_number(end) for end in item.split("..", 1)]
        first, last = ends[0], ends[-1]
        if first is None or last is None or first > last:
            raise InputError(f"--ranks has {shortened(item)}; give rank counts, such as 2..8 or 2,4,8")
        return range(first, last + 1)

    return split(text, parse)


def _layout(text: str, _: Mapping[str, Any]) -> str:
    """Return the text of a layout; refuse a file."""
    if not is_shape(text):
        raise InputError(f"--layout is {text!r}; give nodes x sockets x ranks of a socket, such as 4x1x1")
    return parse_layout(text).text


def _statistic(text: str, _: Mapping[str, Any]) -> str:
    if text not in STATISTICS:
        raise InputError(f"--statistic is {shortened(text)}; give {' or '.join(STATISTICS)}")
    return text


COLLECTIVE_OPTIONS = (
    SuiteOption("op", f"One or more of {', '.join(OPERATIONS)}.  [default: {', '.join(DEFAULT_OPERATIONS)}]",
                "operations", choices=OPERATIONS),
    SuiteOption("algorithm", "Algorithms, such as linear,pipeline:8KiB,own-binomial; own (all of "
                "Earlybird's), persistent (the persistent operation), all-persistent, all or default.  "
                f"[default: default,{','.join(DEFAULT_ALGORITHMS)} "
                "for bcast and reduce, else all]",
                "algorithms", listed(_algorithm)),
    SuiteOption("ranks", "Rank counts, such as 2..8 or 2,4,8.  [default: 2, 4, 8 .. all cores, at least 4]",
                "ranks", _parse_ranks),
    sizes_option("1 B to 1 MiB", "buffers; for (all)gather, scatter, alltoall of blocks per pair of ranks, "
                 "with counts of the mean block"),
    SuiteOption("skew", "Of alltoallv, allgatherv, neighbor_alltoallv: the largest block divided by the mean "
                f"block, such as 1,4.  [default: {_SKEW}, at most half the number of blocks]",
                "skews", listed(_skew)),
    SuiteOption("topology", "Of neighbor_...: ring, grid-5, grid-9 (periodic 2-D grids, without and with "
                f"corners) or random-K, K neighbours of each rank.  [default: {DEFAULT_TOPOLOGY}]",
                "topologies", listed(lambda text: parse_topology(text, "--topology"))),
    SuiteOption("segments", "Segment sizes of segmented algorithms, such as 0,8KiB.  "
                "[default: 8KiB for pipelines of all, own and the default, else 0]", "segments_bytes",
                byte_counts("--segments")),
    SuiteOption("map-by", "core, socket or node; several separated by commas.  [default: core]", "map_by",
                choices=MAPPINGS),
    SuiteOption("layout", "Nodes x sockets x ranks of a socket that the ranks fill, such as 4x1x1.  "
                "[default: all cores]", "layout", _layout),
    SuiteOption("root", "The root rank.  [default: 0]", "root", number("--root", "a rank, such as 0")),
    SuiteOption("verify", f"Rank counts at which to verify the tree: {', '.join(VERIFY_CHOICES)}.  "
                f"[default: {VERIFY_CHOICES[0]}]", "verify", values=VERIFY_CHOICES),
    SuiteOption("statistic", "The time of a collective: completion, until the last rank is done, or mean, "
                f"over the ranks; the other one is kept too.  [default: {COMPLETION}]", "statistic",
                _statistic, values=STATISTICS),
)  # fmt: skip


def collective_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return every operation among the first P ranks of the whole machine, with each mapping and every
    algorithm.

    Methods are interleaved in one launch, except those that an MPI reads when it starts.
    """
    if options.launcher_threads > 1:
        raise InputError(
            f"--threads is {options.launcher_threads} and collective measures one thread of every rank; "
            "leave --threads out"
        )
    options, resources = _on_layout(options, resources)
    if resources.family is None:  # a script, for an MPI that is seen later: the one with most algorithms
        resources = replace(resources, family="openmpi")
    operations = options.operations or DEFAULT_OPERATIONS
    mappings = options.map_by or ("core",)
    ranks = options.ranks or _default_ranks(resources)
    _check_ranks(ranks, options, operations, resources)
    _check_variants(options, operations, resources)
    result = []
    for operation in operations:
        methods = methods_of(operation, options, resources)
        for map_by in mappings:
            for num_ranks in ranks:
                layout = first_ranks(resources, num_ranks, map_by)
                points = _points(operation, options, methods, resources, mpi, layout, map_by)
                verifies = operation in ROOTED and _verifies(options, num_ranks, ranks)
                made = _groups(points, methods, layout, resources, verifies)
                is_mean = options.statistic == MEAN
                result += [replace(group, mean_over_ranks=is_mean) for group in made]
    _refuse_never(result, options, operations, resources)
    if set(operations) & set(REDUCTIONS) and resources.family != SIMULATED:  # where reductions take no time
        result.append(_reduce_local(options, resources, mpi, min(ranks), mappings[0]))
    return result


def _on_layout(options: Options, resources: Resources) -> tuple[Options, Resources]:
    """Return both arguments with `--layout` as if the machine had only these nodes, sockets and cores; with
    all ranks of the layout unless others are given."""
    if options.layout is None:
        return options, resources
    nodes, sockets, per_socket = map(int, options.layout.split("x"))
    for asked, there, what in ((nodes, resources.nodes, "node"), (sockets, resources.sockets, "socket")):
        if asked > there and resources.family is not None:  # a script runs on other nodes
            of_node = " of a node" if what == "socket" else ""
            raise InputError(
                f"--layout is {options.layout} and there {'is' if there == 1 else 'are'} "
                f"{counted(there, what)}{of_node} here; give a layout of at most {there}, or name more nodes "
                "with --hosts or --launcher"
            )
    most = nodes * sockets * per_socket
    if options.ranks and max(options.ranks) > most:
        raise InputError(
            f"--ranks has {max(options.ranks)} and --layout {options.layout} has {most}; give at most {most}"
        )
    return (
        options.changed(ranks=options.ranks or (most,)),
        replace(resources, nodes=nodes, sockets=sockets, cores_per_socket=per_socket),
    )


def first_ranks(resources: Resources, num_ranks: int, map_by: str) -> Layout:
    """Return the first `num_ranks` of as many ranks as the machine has cores, or of more if needed."""
    sockets = resources.nodes * resources.sockets
    per_socket = max(resources.cores_per_socket or 1, -(-num_ranks // sockets))
    whole = parse_layout(f"{resources.nodes}x{resources.sockets}x{per_socket}", map_by)
    if num_ranks == whole.num_ranks:
        return whole
    return Layout(whole.node[:num_ranks], whole.socket[:num_ranks], f"first {num_ranks} of {whole.text}")


def remarks(options: Options, resources: Resources) -> list[str]:
    """Return a sentence for each requested point that is not measured or measured twice."""
    options, resources = _on_layout(options, resources)
    asked = {parse_method(text).name for text in options.algorithms or () if text not in ALGORITHM_SETS}
    found = _alike(options, resources)
    if options.statistic == MEAN:
        found.append("the time, by which speed-ups are computed, is the mean over ranks, not the completion")
    for operation in options.operations or DEFAULT_OPERATIONS:
        for method in methods_of(operation, options, resources):
            if method.name not in asked or not method.is_forced:
                continue
            needed = {
                unmet_requirement(resources.family, operation, method, num_ranks, size)
                for num_ranks in options.ranks or _default_ranks(resources)
                for size in _sizes(operation, options, resources, num_ranks)
            }
            found += [
                f"{method.text} of {operation} needs {need} and is left out elsewhere"
                for need in sorted(needed - {None})
            ]
    return found


def _alike(options: Options, resources: Resources) -> list[str]:
    """Return remarks on mappings that give the same placement as another one, as on a machine with one
    socket."""
    named: dict[tuple, list[str]] = {}
    for map_by in options.map_by or ():
        placed = [
            first_ranks(resources, count, map_by) for count in options.ranks or _default_ranks(resources)
        ]
        where = tuple((tuple(one.node.tolist()), tuple(one.socket.tolist())) for one in placed)
        named.setdefault(where, []).append(map_by)
    return [
        f"--map-by {' and '.join(names)} place these ranks identically here: different times are noise"
        for names in named.values()
        if len(names) > 1
    ]


def _check_ranks(
    ranks: Sequence[int], options: Options, operations: Sequence[str], resources: Resources
) -> None:
    most = max(_MAX_RANKS, _MAX_PER_CORE * _num_cores(resources))
    for num_ranks in ranks:
        if not 2 <= num_ranks <= most:
            raise InputError(
                f"--ranks has {num_ranks}; give 2 to {most} (the cores here are {_num_cores(resources)})"
            )
    if options.root is None:
        return
    if not set(operations) & set(ROOTED):
        raise InputError(f"--root is {options.root} and {' and '.join(operations)} has no root; leave it out")
    if options.root >= min(ranks):
        raise InputError(
            f"--root is {options.root} and the fewest ranks are {min(ranks)}; give 0 to {min(ranks) - 1}"
        )


def _check_variants(options: Options, operations: Sequence[str], resources: Resources) -> None:
    """Raise InputError for a skew or a topology that no operation has, or neighbours in a simulation."""
    for option, given, having in (
        ("--skew", options.skews, WITH_COUNTS),
        ("--topology", options.topologies, WITH_TOPOLOGY),
    ):
        if given is not None and not set(operations) & set(having):
            values = ",".join(map(str, given))
            raise InputError(
                f"{option} is {values}, which only {', '.join(having)} have; leave it out, or give --op "
                f"{having[-1]}"
            )
    unsimulated = set(operations) & set(WITH_TOPOLOGY)
    if resources.family == SIMULATED and unsimulated:
        raise InputError(
            f"--op has {min(unsimulated)} and SimGrid's SMPI has no neighbourhood collectives; leave it out, "
            "or give another --launcher"
        )


def _variants(operation: str, ranks: int, options: Options) -> list[dict[str, Any]]:
    """Return what distinguishes points of one operation besides their size: topologies, and skews of
    counts."""
    result: list[dict[str, Any]] = []
    for topology in (options.topologies or (DEFAULT_TOPOLOGY,)) if operation in WITH_TOPOLOGY else (None,):
        named = {} if topology is None else {"topology": topology}
        num_blocks = ranks if topology is None else num_neighbours(topology, ranks)
        if operation not in WITH_COUNTS:
            result.append(named)
            continue
        for skew in options.skews or (_default_skew(num_blocks),):
            _check_skew(skew, operation, ranks, num_blocks)
            result.append(named | {"skew": skew})
    return result


def _default_skew(num_blocks: int) -> float:
    return _whole_if_possible(min(_SKEW, max(1, num_blocks / 2)))


def _check_skew(skew: float, operation: str, ranks: int, num_blocks: int) -> None:
    if skew > num_blocks:
        blocks = "1 block" if num_blocks == 1 else f"{num_blocks} blocks"
        raise InputError(
            f"--skew has {skew} and a rank of {operation} has {blocks} among {ranks} ranks, the largest "
            f"at most {num_blocks} times the mean; give --skew 1 to {num_blocks}, or more --ranks"
        )


def _num_cores(resources: Resources) -> int:
    return resources.nodes * resources.sockets * (resources.cores_per_socket or 1)


def _default_ranks(resources: Resources) -> tuple[int, ...]:
    """Return 2, 4, 8, ... up to the number of cores, and the number of cores."""
    most = max(_num_cores(resources), _MIN_RANKS)
    return tuple(sorted({1 << k for k in range(1, most.bit_length())} | {most}))


def _verifies(options: Options, num_ranks: int, ranks: Sequence[int]) -> bool:
    """Return whether to verify the communication tree; with two ranks all trees are identical."""
    wanted = options.verify or VERIFY_CHOICES[0]
    return num_ranks > 2 and (wanted == "all" or (wanted == "largest" and num_ranks == max(ranks)))


def _sizes(operation: str, options: Options, resources: Resources, num_ranks: int) -> tuple[int, ...]:
    if operation == "barrier":
        return (0,)
    if options.sizes_bytes is not None:
        if min(options.sizes_bytes) < 1:
            raise InputError(f"--sizes has 0 bytes and {operation} moves data; give 1 or more")
        return options.sizes_bytes
    # A link carries the message of each rank, and of each pair of ranks.
    shares = num_ranks * (num_ranks if operation in PER_PAIR else 1)
    level = "inter_node" if resources.nodes > 1 else "intra_socket"
    largest = carried_bytes(
        _LARGEST_BYTES // (num_ranks if operation in PER_PAIR else 1), level, resources, shares
    )
    return powers(largest, 16 if options.quick else 4)


def _points(
    operation: str,
    options: Options,
    methods: Sequence[Method],
    resources: Resources,
    mpi: str,
    layout: Layout,
    map_by: str,
) -> list[dict[str, Any]]:
    sizes = _sizes(operation, options, resources, layout.num_ranks)
    refuse_large(sizes)
    variants = _variants(operation, layout.num_ranks, options)
    for variant in variants:
        _check_memory(operation, variant, max(sizes), methods, layout, resources)
    root = options.root or 0 if operation in ROOTED else 0
    return [
        _point(operation, mpi, layout, map_by, size, root) | variant for variant in variants for size in sizes
    ]


def _point(operation: str, mpi: str, layout: Layout, map_by: str, size: int, root: int) -> dict[str, Any]:
    point = {
        "mpi": mpi, "operation": operation, "ranks": layout.num_ranks,
        "layout": layout.text.replace(" ", "_"), "map_by": map_by, "size_bytes": size, "root": root,
    }  # fmt: skip
    return point | ({"datatype": elements(size)[0]} if operation in (*REDUCTIONS, REDUCE_LOCAL) else {})


def _check_memory(
    operation: str,
    variant: Mapping[str, Any],
    size_bytes: int,
    methods: Sequence[Method],
    layout: Layout,
    resources: Resources,
) -> None:
    """Raise InputError if the buffers of a node's ranks exceed its memory; virtual and simulated nodes share
    one memory."""
    if resources.memory_bytes is None:
        return
    one_machine = resources.link_bytes_per_s is not None or resources.family == SIMULATED
    together = layout.node * 0 if one_machine else layout.node
    most = int(max((together == node).sum() for node in set(together.tolist())))
    needed_bytes = math.ceil(_buffers(operation, variant, most, layout.num_ranks, methods) * size_bytes)
    if needed_bytes > resources.memory_bytes:
        raise InputError(
            f"{operation} of {format_bytes(size_bytes)} among {layout.num_ranks} ranks needs "
            f"{format_bytes(needed_bytes)} on one machine and "
            f"{format_bytes(resources.memory_bytes)} are free; give smaller --sizes or fewer --ranks"
        )


def _buffers(
    operation: str, variant: Mapping[str, Any], here: int, ranks: int, methods: Sequence[Method]
) -> float:
    """Return the maximum number of buffers of the requested size that the kernel has on a machine with `here`
    of the ranks, including the root."""
    if operation == "reduce":
        # Earlybird's algorithms receive from every child into a separate buffer, for all methods at a time.
        return here + 1 + sum(method.is_own for method in methods) * (ranks - 1)
    if operation in ("gather", "scatter"):
        return here + ranks
    topology, skew = variant.get("topology"), variant.get("skew", 1)
    received = ranks if topology is None else num_neighbours(topology, ranks)
    if operation in (*WITH_COUNTS, *WITH_TOPOLOGY):
        sends_one = operation in ("allgatherv", "neighbor_allgather")
        # All ranks receive what all ranks send; fewer may receive the largest blocks of all others.
        all_received = received * (1 if here == ranks or operation == "allgatherv" else skew)
        return here * ((skew if sends_one else received) + all_received)
    of_each = {"bcast": 1, "allreduce": 2, "allgather": 1 + ranks, "alltoall": 2 * ranks}
    return here * of_each.get(operation, 0)


def _groups(
    points: Sequence[dict[str, Any]],
    methods: Sequence[Method],
    layout: Layout,
    resources: Resources,
    verifies: bool,
) -> list[Group]:
    """Return the launches of these points: separate if different methods apply, or if an MPI reads the method
    at its start."""
    operation = points[0]["operation"]
    alike: dict[tuple[Method, ...], list[dict[str, Any]]] = {}
    for point in points:
        here = tuple(method for method in methods if applies(method, methods, point, resources.family))
        alike.setdefault(here, []).append(point)
    result, confirmed = [], set()
    smallest_first = sorted(alike.items(), key=lambda one: min(point["size_bytes"] for point in one[1]))
    for here, same in smallest_first:
        # Large messages may be separate from small ones: their senders wait and appear to be below the late
        # rank.
        new = not set(here) <= confirmed
        confirmed |= set(here)
        for launch_methods, environment in launches(operation, here, layout.num_ranks, resources.family):
            settings = {
                method.text: made
                for method in launch_methods
                if (made := forcing(resources.family, operation, method, layout.num_ranks)).variables()
            }
            if not any(method.is_forced for method in launch_methods):
                # Nothing to undo: `default` then follows the user's settings.
                settings, environment = {}, {}
            result.append(
                Group(
                    COLLECTIVE.name, layout, tuple(same),
                    methods=tuple(method.text for method in launch_methods),
                    link_bytes_per_s=resources.link_bytes_per_s, environment=environment, settings=settings,
                    verifies=verifies and new,
                )
            )  # fmt: skip
    return result


def _refuse_never(
    groups: Sequence[Group], options: Options, operations: Sequence[str], resources: Resources
) -> None:
    """Raise InputError for a requested algorithm that applies at no point."""
    measured = {(group.points[0]["operation"], method) for group in groups for method in group.methods}
    for text in options.algorithms or ():
        if text in ALGORITHM_SETS:
            continue
        methods = [
            (operation, method)
            for operation in operations
            for method in methods_of(operation, options, resources)
            if method.name == parse_method(text).name
        ]
        if any((operation, method.text) in measured for operation, method in methods):
            continue
        operation, method = methods[0]
        size = max(_sizes(operation, options, resources, 2))
        needed = unmet_requirement(
            resources.family, operation, method, max(options.ranks or _default_ranks(resources)), size
        )
        raise InputError(
            f"--algorithm has {method.text}, which needs {needed}; give --ranks and --sizes that have it"
        )


def _reduce_local(options: Options, resources: Resources, mpi: str, num_ranks: int, map_by: str) -> Group:
    """Return the group that measures the cost of the reduction without any message, at the same sizes."""
    layout = first_ranks(resources, num_ranks, map_by)
    points = tuple(
        _point(REDUCE_LOCAL, mpi, layout, map_by, size, 0)
        for size in _sizes("reduce", options, resources, num_ranks)
    )
    return Group(COLLECTIVE.name, layout, points)
