"""The measurements for the figures of Temucin et al. 2022."""

from dataclasses import replace

from earlybird.data.kernels import PARTITIONED
from earlybird.data.methods import FUNNELLED, NO_NOISE, PERSISTENT, SINGLE_NOISE, UNIFORM_NOISE
from earlybird.measure import motifs
from earlybird.measure.groups import MIB, Group, Options, Resources, carried_bytes, powers
from earlybird.measure.motif_options import HALO3D, SWEEP3D, MotifKind
from earlybird.measure.motif_shapes import near_cubic
from earlybird.measure.partitioned import partitioned_groups
from earlybird.measure.suites import SUITES
from earlybird.papers.paper import Step
from earlybird.papers.place import outermost_level
from earlybird.papers.temucin.noises import LESS_NOISE, MORE_NOISE, NOISES

# Of the paper's figures; those with 100 ms have fewer sizes, because an iteration takes that long.
_PARTITIONS = (1, 4, 16)
_SHORT_S, _LONG_S = 10e-3, 100e-3
# Of the figures of motifs: Sweep3D in 16 partitions, Halo3D in 4 with 8 threads, and with 64 threads. How
# many ranks the paper had is not known: here 2 x 2 and 2 x 2 x 2, or 2.
_SWEEP_PARTITIONS, _SWEEP_RANKS = 16, 4
_HALO_PARTITIONS, _MORE_HALO_PARTITIONS = 4, 8
_HALO_THREADS, _MORE_HALO_THREADS, _HALO_RANKS = 8, 64, 8
_QUICK_MOTIF_S = 1e-3
# Cells along y and z of each rank. Along x there are few, so that messages are large and the cells are not.
_SWEEP_SIDES, _QUICK_SWEEP_SIDES = (4, 16, 64, 128), (4, 32, 128)
_HALO_SIDES, _QUICK_HALO_SIDES = (32, 128, 256, 512), (32, 128, 512)
_CELLS_ALONG_X = 2
_HELP = {
    "levels": "intra_socket, inter_socket or inter_node.  [default: the outermost available]",
    "sizes": "Sizes of the buffers, such as 1KiB..4MiB.  [default: 1 KiB to 4 MiB]",
    "partitions": "Numbers of partitions, the curves.  [default: 1,4,16]",
    "compute": "How long each thread computes, the shortest and the longest are used.  "
    "[default: 10ms,100ms, with --quick 10ms]",
    "noise": "Noise models of application availability.  [default: single,uniform,gaussian]",
    "noise-percent": "Strengths of the noise in percent.  [default: 4,10]",
}
TAKES = tuple(
    replace(option, help=_HELP[option.name])
    for option in SUITES[PARTITIONED.name].takes
    if option.name in _HELP
)


def plan(options: Options, resources: Resources, mpi: str) -> list[Step]:
    """Return the figures of metrics, and those of motifs where an MPI is measured, as two runs."""
    figures = _figures(options, resources)
    metrics = [group for figure in figures for group in partitioned_groups(figure, resources, mpi)]
    steps = [Step("partitioned", _without_repeats(metrics), share=2.0)]
    motif_groups = _motif_groups(options, resources, mpi)
    return [*steps, Step("motifs", motif_groups)] if motif_groups else steps


def remarks(options: Options, resources: Resources) -> list[str]:
    """List how the motifs differ from those of the paper."""
    if resources.library is None:
        return [
            "the launcher synthetic draws no times of motifs: the figures of Sweep3D and Halo3D are left out"
        ]
    sweep, halo = (_place(count, options, resources) for count in (_SWEEP_RANKS, _HALO_RANKS))
    few, more = _halo_threads(halo[1])
    found = [
        f"Sweep3D with {sweep[0]} ranks of {_sweep_threads(sweep[1])} threads in {_SWEEP_PARTITIONS} "
        f"partitions, Halo3D with {halo[0]} ranks of {few} threads in {_HALO_PARTITIONS} partitions and of "
        f"{more} in {_MORE_HALO_PARTITIONS} (paper: {_HALO_THREADS} and {_MORE_HALO_THREADS} threads)"
    ]
    for kind, one in _motifs(options, resources):
        found += motifs.remarks(kind, one, resources)
    return list(dict.fromkeys(found))


def _figures(options: Options, resources: Resources) -> list[Options]:
    """Return the options of the suite for each kind of figure."""
    level = outermost_level(options, resources)
    last = carried_bytes(4 * MIB, level, resources)
    few = options.sizes_bytes or powers(max(last, 1 << 10), 64, 1 << 10)
    sizes = options.sizes_bytes or (few if options.quick else powers(max(last, 1 << 10), 16, 1 << 10))
    counts = tuple(sorted(options.partitions or _PARTITIONS))
    most = counts[-1:]
    shares = options.noise_shares or (LESS_NOISE, MORE_NOISE)
    computes_s = options.computes_s or ((_SHORT_S,) if options.quick else (_SHORT_S, _LONG_S))
    short_s, long_s = min(computes_s), max(computes_s)
    noises = options.noise_models or NOISES
    common = options.changed(levels=(level,), sizes_bytes=sizes, partitions=counts, computes_s=(short_s,),
                             noise_shares=shares)  # fmt: skip
    # An iteration with the long computation takes long: fewer sizes.
    long = common.changed(computes_s=(long_s,), sizes_bytes=few)
    return [
        # Overhead, and perceived bandwidth without noise.
        common.changed(noise_models=(NO_NOISE,), caches=("hot", "cold")),
        # Early-bird communication, and perceived bandwidth with noise.
        common.changed(partitions=counts[1:] or counts, noise_models=(UNIFORM_NOISE,)),
        long.changed(partitions=most if options.quick else counts, noise_models=(NO_NOISE, UNIFORM_NOISE)),
        # Availability by noise model, and by partitions.
        long.changed(partitions=most, noise_models=noises, noise_shares=shares[:1]),
        long.changed(noise_models=(SINGLE_NOISE,), noise_shares=shares[:1]),
    ]


def _motif_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return Sweep3D and Halo3D in the styles of the paper: one thread, all threads, and partitioned."""
    if resources.library is None:
        return []
    groups = [
        group
        for kind, one in _motifs(options, resources)
        for group in motifs.motif_groups(kind, one, resources, mpi)
    ]
    return [
        replace(group, methods=tuple(name for name in group.methods if name != PERSISTENT))
        for group in groups
    ]


def _motifs(options: Options, resources: Resources) -> list[tuple[MotifKind, Options]]:
    """Return the options of the suites of motifs: of Sweep3D for each size, of Halo3D for each number of
    threads."""
    level = outermost_level(options, resources)
    map_by = {"inter_node": "node", "inter_socket": "socket"}.get(level, "core")
    common = options.changed(
        levels=None, sizes_bytes=None, map_by=(map_by,), noise_models=(SINGLE_NOISE,),
        noise_shares=(LESS_NOISE,), computes_s=(_QUICK_MOTIF_S if options.quick else _SHORT_S,),
    )  # fmt: skip
    found = []
    ranks, cores = _place(_SWEEP_RANKS, options, resources)
    across, along, _ = near_cubic(ranks, SWEEP3D.dimensions)
    sides: tuple[int, ...] = _QUICK_SWEEP_SIDES if options.quick else _SWEEP_SIDES
    for side in _carried(sides, _SWEEP_PARTITIONS, level, resources):
        one = common.changed(
            ranks=(ranks,), threads=(_sweep_threads(cores),), partitions=(_SWEEP_PARTITIONS,),
            variables=(_SWEEP_PARTITIONS,), cells=((_CELLS_ALONG_X * across, side * along, side),),
            planes_per_block=side,
        )  # fmt: skip
        found.append((SWEEP3D, one))
    ranks, cores = _place(_HALO_RANKS, options, resources)
    across, along, up = near_cubic(ranks, HALO3D.dimensions)
    few, more = _halo_threads(cores)
    # A plane for each thread at least.
    halo_sides = tuple(max(side, more) for side in (_QUICK_HALO_SIDES if options.quick else _HALO_SIDES))
    cells = tuple(
        (_CELLS_ALONG_X * across, side * along, side * up)
        for side in _carried(halo_sides, 1, level, resources)
    )
    halo = common.changed(ranks=(ranks,), cells=cells)
    found.append((HALO3D, halo.changed(threads=(1,), partitions=(_HALO_PARTITIONS,), methods=(FUNNELLED,))))
    # As in the paper, threads share partitions.
    for threads, partitions in ((few, _HALO_PARTITIONS), (more, _MORE_HALO_PARTITIONS)):
        found.append((HALO3D, halo.changed(threads=(threads,), partitions=(partitions,))))
    return found


def _carried(sides: tuple[int, ...], variables: int, level: str, resources: Resources) -> tuple[int, ...]:
    """Return the first of `sides`, and the others whose faces are messages that a virtual link carries."""
    sizes = {side: 8 * variables * side * side for side in sides}
    return tuple(
        side
        for side, size_bytes in sizes.items()
        if side == sides[0] or carried_bytes(size_bytes, level, resources) == size_bytes
    )


def _place(most: int, options: Options, resources: Resources) -> tuple[int, int]:
    """Return the number of ranks, `most` or else 2, and the cores of each: at least 2 cores each; between
    nodes a node each."""
    level = outermost_level(options, resources)
    of_node = resources.sockets * (resources.cores_per_socket or 1)
    if level == "inter_node":
        # Virtual nodes share the cores of one machine.
        cores = 1 if resources.link_bytes_per_s is not None else of_node
        return (most if resources.nodes >= most else 2), cores
    all_cores = of_node if level == "inter_socket" else (resources.cores_per_socket or resources.cores[level])
    ranks = most if all_cores >= 2 * most else 2
    return ranks, max(all_cores // ranks, 1)


def _sweep_threads(cores: int) -> int:
    return _threads(cores, _SWEEP_PARTITIONS)


def _halo_threads(cores: int) -> tuple[int, int]:
    """Return as many threads as there are cores, and, as in the paper, 8 times as many."""
    few = _threads(cores, _HALO_THREADS)
    return few, few * (_MORE_HALO_THREADS // _HALO_THREADS)


def _threads(cores: int, most: int) -> int:
    """Return a power of two, which divides the partitions; at least 2, to compare with one."""
    return max([2, *(k for k in powers(most, 2) if k <= cores)])


def _without_repeats(groups: list[Group]) -> list[Group]:
    """Return the groups with each point once, because the figures share points."""
    seen: set[tuple] = set()
    found = []
    for group in groups:
        points = [point for point in group.points if (group.preload, *point.items()) not in seen]
        seen |= {(group.preload, *point.items()) for point in points}
        if points:
            found.append(replace(group, points=tuple(points)))
    return found
