"""The suites `halo3d`, `sweep3d` and `comb`: applications reduced to their computation and communication, in
several styles."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.methods import EARLYBIRD, FUNNELLED, OWN_CALLS, PERSISTENT, STYLES
from earlybird.data.units import format_bytes, parse_triple
from earlybird.machine.flavours import SIMULATED
from earlybird.measure import computing
from earlybird.measure.collective import first_ranks
from earlybird.measure.groups import Group, Options, Resources, powers, refuse_large
from earlybird.measure.library_methods import (
    is_here,
    launches_of,
    remark_without_own_calls,
    unavailable_reason,
)
from earlybird.measure.motif_options import (
    BLOCKS,
    CELLS,
    DEFAULT_RANKS,
    DERIVED,
    MORE_CELLS,
    NO,
    PACKED,
    PARTITIONS,
    SCALINGS,
    STRONG,
    YES,
    MotifKind,
)
from earlybird.measure.motif_shapes import (
    Triple,
    block_of,
    cells_bytes,
    largest_face_bytes,
    largest_halo_bytes,
    near_cubic,
    triple_text,
)

# Seen with SMPI 3.32: ranks end when a small persistent message is started again before it was received.
_SMPI_LOSES = "SMPI loses persistent messages that run ahead of their receivers"

_MAX_PARTITIONS = 1024  # by the tags, see `most_chunks` of native/kernels/motifs/style.hpp
_MAX_VARIABLES = 4096
# Ranks beyond which a machine that is not simulated measures its scheduler; and, simulated, by default.
_MAX_RANKS, _MAX_PER_CORE, _SIMULATED_RANKS = 64, 8, 64
# Copies of the cells that a style has, and about what a serial computation to compare with needs; for a sweep
# that is computed apart.
_COPIES = 3


def remarks(kind: MotifKind, options: Options, resources: Resources) -> list[str]:
    """List which styles are left out and why, and what is oversubscribed."""
    library = resources.library
    if library is None:
        return []
    if resources.family == SIMULATED:
        styles = labels.listed(_simulated_styles(kind))
        cause = _SMPI_LOSES if kind.sweeps else "simulated ranks have one thread and no partitioned calls"
        return [f"{cause}: of {kind.kernel} only {styles} can be measured"] if options.methods is None else []
    placed = list(_points(kind, options, resources, ""))
    found = []
    if options.methods is None and not library.partitioned:
        found.append(remark_without_own_calls(library))
    elif options.methods is None:
        causes = {_failure_of_own_calls(point, resources) for point, _ in placed} - {None}
        found += [f"{OWN_CALLS} is left out where {library.name} {cause}" for cause in sorted(causes)]
    if options.partitions is None and any(point["partitions"] < PARTITIONS for point, _ in placed):
        fewest = min(point["partitions"] for point, _ in placed)
        found.append(
            f"{kind.kernel}: messages have {labels.counted(fewest, 'partition')} or more, not {PARTITIONS}: "
            "a rank has no more planes or angles, or --buffers derived allows only equal parts of them"
        )
    shared = [point for point, _ in placed if point["partitions"] < point["threads"]]
    if shared:
        most = max(shared, key=lambda point: point["threads"] / point["partitions"])
        found.append(
            f"{kind.kernel}: {labels.counted(most['partitions'], 'partition')} of {most['threads']} threads: "
            "threads share a partition, which one of them sends when all have computed their planes of it"
        )
    if any(point["ranks"] == 1 and point.get("periodic") != YES for point, _ in placed):
        found.append(f"{kind.kernel} on 1 rank sends nothing: it has no neighbour")
    cores = _cores_per_socket(resources)
    if any(_most_on_socket(layout, resources) * point["threads"] > cores for point, layout in placed):
        found.append(
            f"some points have more ranks or threads on a socket than its {labels.counted(cores, 'core')}: "
            "these sleep instead of computing, and their samples are marked oversubscribed"
        )
    return found


def motif_groups(kind: MotifKind, options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return launches with and without libearlybird, all styles of each interleaved."""
    methods = _methods(kind, options, resources)
    alike: dict[tuple[Any, ...], tuple[Layout, list[dict[str, Any]]]] = {}
    for point, layout in _points(kind, options, resources, mpi):
        for chosen, preload in launches_of(_of_point(methods, point, options, resources)):
            key = (layout.text, point["threads"], chosen, preload)
            alike.setdefault(key, (layout, []))[1].append(point)
    return [
        Group(
            kind.kernel, layout, tuple(points), methods=chosen, threads=threads, preload=preload,
            link_bytes_per_s=resources.link_bytes_per_s if layout.num_nodes > 1 else None,
        )
        for (_, threads, chosen, preload), (layout, points) in alike.items()
    ]  # fmt: skip


def _simulated_styles(kind: MotifKind) -> tuple[str, ...]:
    return (FUNNELLED,) if kind.sweeps else (FUNNELLED, PERSISTENT)


def _methods(kind: MotifKind, options: Options, resources: Resources) -> tuple[str, ...]:
    """Return the styles to compare, the reference first."""
    possible = _simulated_styles(kind) if resources.family == SIMULATED else STYLES
    if options.methods is None:
        return tuple(method for method in possible if is_here(method, resources))
    for method in options.methods:
        if method not in possible:
            cause = "simulated ranks have no threads and no partitioned calls"
            if method == PERSISTENT:
                cause = _SMPI_LOSES
            raise InputError(
                f"--methods has {method} and {cause}; give {' or '.join(possible)}, or another --launcher"
            )
        if not is_here(method, resources):
            raise InputError(f"--methods has {method} and {unavailable_reason(method, resources)}")
    return tuple(dict.fromkeys((FUNNELLED, *options.methods)))


def _of_point(
    methods: tuple[str, ...], point: dict[str, Any], options: Options, resources: Resources
) -> tuple[str, ...]:
    """Return the methods that can be measured at `point`; raise InputError if a requested method cannot."""
    cause = _failure_of_own_calls(point, resources)
    if cause is None or OWN_CALLS not in methods:
        return methods
    if options.methods is not None:
        raise InputError(
            f"--methods has {OWN_CALLS} and Open MPI {cause}; leave it out ({EARLYBIRD} replaces these "
            "calls), or give another --mpi"
        )
    return tuple(method for method in methods if method != OWN_CALLS)


def _failure_of_own_calls(point: dict[str, Any], resources: Resources) -> str | None:
    """Return why the MPI's own partitioned calls cannot be measured at `point`, as observed with Open MPI
    5.0.11."""
    if resources.family != "openmpi":
        return None
    if point.get("buffers") == DERIVED:
        return "delivers wrong data of derived datatypes"
    if point["ranks"] > 2 or point.get("periodic") == YES:
        return "hangs if a rank has several partitioned neighbours"
    if point["threads"] > 1:
        return "reports partitions before their data arrive if several threads wait"
    return None


def _points(
    kind: MotifKind, options: Options, resources: Resources, mpi: str
) -> Iterator[tuple[dict[str, Any], Layout]]:
    """Yield every point with the layout of its ranks."""
    with_defaults = options.changed(computes_s=options.computes_s or kind.computes_s)
    for num_ranks, grid in _grids(kind, options, resources):
        for map_by in options.map_by or MAPPINGS[:1]:
            layout = first_ranks(resources, num_ranks, map_by)
            for threads in _threads(kind, options, resources, layout, grid):
                for shape in _shapes(kind, options, grid, threads):
                    _check_memory(kind, shape, grid, layout, resources)
                    for computation in computing.computations(with_defaults):
                        place = {"mpi": mpi, "ranks": num_ranks, "layout": layout.text.replace(" ", "_")}
                        yield place | shape | {"threads": threads} | computation.config(), layout


def _grids(kind: MotifKind, options: Options, resources: Resources) -> list[tuple[int, Triple]]:
    """Return the rank counts, each with its process grid."""
    ranks = options.ranks or (None if options.process_grids else _default_ranks(resources))
    if options.process_grids is None:
        return [
            (count, near_cubic(count, kind.dimensions)) for count in _checked_ranks(ranks or (), resources)
        ]
    found = []
    for grid in options.process_grids:
        count = grid[0] * grid[1] * grid[2]
        if ranks is not None and count not in ranks:
            raise InputError(
                f"--process-grid has {triple_text(grid)}, which is {count} ranks, and --ranks has "
                f"{', '.join(map(str, ranks))}; give one of them, or a grid of as many ranks"
            )
        if kind.dimensions == 2 and grid[2] > 1:
            raise InputError(
                f"--process-grid has {triple_text(grid)} and the ranks of {kind.kernel} form a 2-D grid; "
                f"give 1 along z, such as {triple_text(near_cubic(count, 2))}"
            )
        found.append((count, grid))
    _checked_ranks([count for count, _ in found], resources)
    unmatched = sorted(set(ranks or ()) - {count for count, _ in found})
    if unmatched:
        raise InputError(
            f"--ranks has {unmatched[0]}, and no --process-grid has as many; omit --process-grid, or give "
            f"{triple_text(near_cubic(unmatched[0], kind.dimensions))} too"
        )
    return found


def _checked_ranks(ranks: Iterable[int], resources: Resources) -> Iterable[int]:
    most = max(_MAX_RANKS, _MAX_PER_CORE * _num_cores(resources))
    for num_ranks in ranks:
        if num_ranks > most:
            raise InputError(
                f"--ranks has {num_ranks}; give 1 to {most} (the cores here are {_num_cores(resources)})"
            )
    return ranks


def _num_cores(resources: Resources) -> int:
    nodes = 1 if _has_virtual_nodes(resources) else resources.nodes
    return nodes * resources.sockets * _cores_per_socket(resources)


def _cores_per_socket(resources: Resources) -> int:
    return resources.cores_per_socket or 1


def _has_virtual_nodes(resources: Resources) -> bool:
    """Return whether the nodes share the cores and the memory of one machine."""
    return resources.link_bytes_per_s is not None


def _most_on_socket(layout: Layout, resources: Resources) -> int:
    """Return the most ranks on one socket."""
    socket = layout.socket if _has_virtual_nodes(resources) else layout.socket_group()
    return int(np.bincount(socket).max())


def _default_ranks(resources: Resources) -> tuple[int, ...]:
    most = _SIMULATED_RANKS if resources.family == SIMULATED else DEFAULT_RANKS
    # Virtual nodes may have fewer cores than there are nodes: a rank for each.
    return powers(max(2, min(max(_num_cores(resources), resources.nodes), most)), 2, 2)


def _threads(
    kind: MotifKind, options: Options, resources: Resources, layout: Layout, grid: Triple
) -> tuple[int, ...]:
    """Return the numbers of threads; by default one per core of a rank, but at most as many as can share its
    cells."""
    if resources.family == SIMULATED:
        if options.threads not in (None, (1,)):
            raise InputError(
                f"--threads has {max(options.threads or ())}, and a simulated rank has one thread; omit "
                "--threads"
            )
        return (1,)
    if options.threads:
        return options.threads
    cores = 1
    if not _has_virtual_nodes(resources):
        cores = _cores_per_socket(resources) // _most_on_socket(layout, resources)
    return (max(options.launcher_threads, _sharing_threads(kind, options, grid, cores)),)


def _sharing_threads(kind: MotifKind, options: Options, grid: Triple, most: int) -> int:
    """Return the most threads, up to `most`, among which the angles or planes of a rank can be divided at all
    points."""
    if kind.sweeps:
        return max(1, min(most, *(options.variables or (kind.variables,))))
    planes = {cells[2] // grid[2] for *_, cells in _cells(options, grid)}
    derived = DERIVED in (options.cell_buffers or kind.buffers)
    found = (k for k in range(most, 0, -1) if all(k <= n and not (derived and n % k) for n in planes))
    return next(found, 1)


def _shapes(kind: MotifKind, options: Options, grid: Triple, threads: int) -> Iterator[dict[str, Any]]:
    """Yield the keys of a point that describe its cells and messages."""
    for scaling, given, cells in _cells(options, grid):
        if any(number < ranks for number, ranks in zip(cells, grid, strict=True)):
            raise InputError(
                f"--cells has {triple_text(given)} and the process grid is {triple_text(grid)}: a rank "
                f"needs a cell along each dimension; give {triple_text(grid)} or more, or another "
                "--process-grid"
            )
        for variables in options.variables or (kind.variables,):
            if variables > _MAX_VARIABLES:
                raise InputError(f"--variables has {variables}; give 1 to {_MAX_VARIABLES}")
            base = {
                "scaling": scaling, "process_grid": triple_text(grid), "cells": triple_text(cells),
                "variables": variables,
            }  # fmt: skip
            if kind.sweeps:
                yield from _sweeps(options, base, cells, grid, threads)
            else:
                yield from _halos(kind, options, base, cells, grid, threads)


def _cells(options: Options, grid: Triple) -> Iterator[tuple[str, Triple, Triple]]:
    """Yield the scaling, the cells as given, and the cells of all ranks."""
    for scaling in options.scalings or SCALINGS[:1]:
        for given in options.cells or ((CELLS,) if options.quick else (CELLS, MORE_CELLS)):
            yield scaling, given, given if scaling == STRONG else _product(given, grid)


def _product(cells: Triple, grid: Triple) -> Triple:
    x, y, z = (number * ranks for number, ranks in zip(cells, grid, strict=True))
    return x, y, z


def _halos(
    kind: MotifKind, options: Options, base: dict[str, Any], cells: Triple, grid: Triple, threads: int
) -> Iterator[dict[str, Any]]:
    planes = cells[2] // grid[2]
    for stencil in map(int, options.stencils or (kind.stencil,)):
        for periodic in options.periodic or (NO,):
            for buffers in options.cell_buffers or kind.buffers:
                # The partitions of a derived datatype are equal: padding would be other cells.
                equal = None if buffers == PACKED else planes if cells[2] % grid[2] == 0 else 0
                for partitions in _partitions(options, threads, planes, _PLANES, equal, may_share=True):
                    size = largest_halo_bytes(
                        cells, grid, base["variables"], stencil, periodic == YES, partitions
                    )
                    refuse_large([size])
                    yield base | {
                        "stencil": stencil, "periodic": periodic, "buffers": buffers,
                        "partitions": partitions, "size_bytes": size,
                    }  # fmt: skip


def _sweeps(
    options: Options, base: dict[str, Any], cells: Triple, grid: Triple, threads: int
) -> Iterator[dict[str, Any]]:
    planes = options.planes_per_block
    if planes is None:
        planes = -(-cells[2] // BLOCKS)
    if not 1 <= planes <= cells[2]:
        raise InputError(
            f"--planes-per-block is {planes} and there are {cells[2]} planes; give 1 to {cells[2]}"
        )
    for partitions in _partitions(options, threads, base["variables"], _ANGLES, None):
        size = largest_face_bytes(cells, grid, base["variables"], planes, partitions)
        refuse_large([size])
        yield base | {"planes_per_block": planes, "partitions": partitions, "size_bytes": size}


# What partitions divide, and the option for more of it.
_PLANES, _ANGLES = ("planes of cells along z", "--cells along z"), ("--variables", "--variables")


def _partitions(
    options: Options,
    threads: int,
    most: int,
    of: tuple[str, str],
    equal: int | None,
    *,
    may_share: bool = False,
) -> tuple[int, ...]:
    """Return the numbers of partitions: multiples of the threads, up to the `most` planes or angles of a
    rank; and divisors of `equal`, which is 0 if blocks have different sizes. Where threads `may_share` a
    partition, also numbers that divide the threads."""
    what, option = of
    limit = min(most, _MAX_PARTITIONS)
    if threads > most and not (may_share and options.partitions):
        raise InputError(
            f"{threads} threads are more than the {most} {what} of a rank; give at most {most} --threads, or "
            f"more {option}"
        )
    for partitions in options.partitions or ():
        if partitions % threads and not (may_share and threads % partitions == 0):
            divisors = f", or numbers that divide {threads}, each of which threads share" if may_share else ""
            raise InputError(
                f"--partitions has {partitions}, which {threads} threads do not share evenly; give "
                f"multiples of {threads}, such as {-(-partitions // threads) * threads}{divisors}"
            )
        if partitions > _MAX_PARTITIONS:
            raise InputError(
                f"--partitions has {partitions}; give at most {limit}: with more, the partitions of up to 26 "
                "neighbours would need more tags than MPI guarantees"
            )
        if partitions > most:
            raise InputError(
                f"--partitions has {partitions} and a rank has {most} {what}; give at most {most}, or more "
                f"{option}"
            )
        if not _fits(partitions, equal):
            raise InputError(
                f"--partitions has {partitions} and --buffers derived sends equal partitions; give --cells "
                "that are a multiple of ranks times partitions along z, or --buffers packed"
            )
    if options.partitions:
        return options.partitions
    wanted = threads * -(-PARTITIONS // threads)
    found = [k for k in range(threads, min(wanted, limit) + 1, threads) if _fits(k, equal)]
    if not found:
        raise InputError(
            f"{threads} threads do not share the {most} {what} of a rank evenly, and --buffers derived sends "
            "equal partitions; give --cells that ranks times threads divide along z, or --buffers packed"
        )
    return (found[-1],)


def _fits(partitions: int, equal: int | None) -> bool:
    return equal is None or (equal > 0 and equal % partitions == 0)


def _check_memory(
    kind: MotifKind, shape: dict[str, Any], grid: Triple, layout: Layout, resources: Resources
) -> None:
    """Raise InputError if the cells of all styles exceed the memory."""
    if resources.memory_bytes is None:
        return
    cells = parse_triple(shape["cells"], "--cells", "32x32x32")
    block, variables = block_of(cells, grid), shape["variables"]
    # No launch has both kinds of partitioned calls.
    styles = len(_simulated_styles(kind)) if resources.family == SIMULATED else len(STYLES) - 1
    of_rank_bytes = styles * _COPIES * cells_bytes(block, variables)
    verified = ""
    if kind.sweeps:
        of_rank_bytes += cells_bytes(cells, variables)
        verified = f" and to verify them, for which each rank computes all {triple_text(cells)}"
    needed_bytes = _most_on_machine(layout, resources) * of_rank_bytes
    if needed_bytes > resources.memory_bytes:
        raise InputError(
            f"--cells {triple_text(block)} of each rank with {variables} variables need "
            f"{format_bytes(needed_bytes)} in {labels.counted(styles, 'style')}{verified}, and "
            f"{format_bytes(resources.memory_bytes)} are free; give fewer cells, --variables or --ranks"
        )


def _most_on_machine(layout: Layout, resources: Resources) -> int:
    """Return the most ranks that share a memory: all of virtual or simulated nodes."""
    if resources.family == SIMULATED or _has_virtual_nodes(resources):
        return layout.num_ranks
    return int(np.bincount(layout.node).max())
