"""The exchanges of Thune et al. 2023 that fit on any machine: figure 3, Table II, figure 5, and a mesh."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample
from earlybird.data.units import format_bytes
from earlybird.measure.groups import MIB, Group, Options, Resources, carried_bytes, link_of, powers
from earlybird.measure.suites import exchange_group
from earlybird.patterns.pairs import pairs_exchange
from earlybird.patterns.random_exchange import random_exchange

FIGURE_3, MIDDLE = "figure3", "middle_bytes"
# The sizes of the three pairs, in halves of the middle size s.
_HALVES = (4, 2, 1)
PAIRS = ("2s", "s", "s/2")
_LARGEST_BYTES, _SMALLEST_BYTES = 2 * MIB, 2
_MAX_S_BYTES = 512 * MIB  # twice as much is still the count of a message
# Of Table II's exchange on one socket: messages of each rank; its volumes per rank are 0.05 to 0.5 MB.
_NEIGHBOURS, _VOLUMES_BYTES = 3, (50_000, 500_000)
_MAX_PER_SOCKET, _MIN_PER_SOCKET = 32, 4
# Of its realistic exchanges: messages per rank, and their sizes.
_MESSAGES_PER_RANK, _MESSAGE_BYTES = {"inter_socket": 3.4, "inter_node": 15.5}, (300, 500_000)
# Of the meshes of Tables III and IV: about the volume of each process in Table III. With fewer parts, ranks
# have few neighbours; with more, making the pattern takes minutes.
MESH, _PART_BYTES = "tables3-4-mesh", 500_000
_MIN_PARTS, _MAX_PARTS = 8, 1024
_CELLS_PER_PART, _FEWEST_PER_PART, _CELLS = 1000, 100, 32_000


@dataclass(frozen=True)
class Exchange:
    """A replay: the step's name, and the exchange on a layout."""

    step: str
    pattern: Pattern
    layout: Layout


def sweep_layout() -> Layout:
    """Return the layout of the six ranks of figure 3: on one socket."""
    return parse_layout(f"1x1x{2 * len(_HALVES)}")


def sweep_pattern(middle_bytes: int) -> Pattern:
    """Return the three pairs of figure 3 for s = `middle_bytes`."""
    return pairs_exchange([halves * middle_bytes // 2 for halves in _HALVES])


def sweep_groups(options: Options, mpi: str) -> list[Group]:
    """Return the exchange of figure 3 for each s from 2 B to 2 MiB."""
    factor = 16 if options.quick else 2
    sizes = options.sizes_bytes or powers(_LARGEST_BYTES, factor, _SMALLEST_BYTES)
    if min(sizes) < _SMALLEST_BYTES or max(sizes) > _MAX_S_BYTES:
        wrong = next(size for size in sizes if not _SMALLEST_BYTES <= size <= _MAX_S_BYTES)
        raise InputError(
            f"--sizes has {labels.counted(wrong, 'byte')}, and the pairs of figure 3 exchange 2s, s and s/2; "
            f"give {_SMALLEST_BYTES} B to {format_bytes(_MAX_S_BYTES)}, such as 2..2MiB"
        )
    groups = []
    for size in sizes:
        group = exchange_group(sweep_pattern(size), sweep_layout(), mpi)
        points = tuple(dict(point) | {MIDDLE: size} for point in group.points)
        groups.append(replace(group, points=points))
    return groups


def middle_bytes(sample: Sample) -> int | None:
    """Return s of a sample of figure 3; None for another sample."""
    value = sample.config.get(MIDDLE)
    return value if isinstance(value, int) and value > 0 else None


def cores_per_socket(resources: Resources) -> int:
    """Return the cores of a socket; where these are unknown, the fewest of any group."""
    return resources.cores_per_socket or min(resources.cores.values())


def exchanges(resources: Resources) -> list[Exchange]:
    """Return the exchanges of Table II and figure 5 that the levels here allow, and that of a mesh."""
    per_socket = min(max(cores_per_socket(resources), _MIN_PER_SOCKET), _MAX_PER_SOCKET)
    sockets = 2 if "inter_socket" in resources.cores else 1
    whole = parse_layout(f"1x{sockets}x{per_socket}")
    found = [Exchange("table2-intra_socket", _on_sockets(per_socket, sockets), whole)]
    if "inter_socket" in resources.cores:
        across = _between(whole.socket, "inter_socket")
        found += [
            Exchange("table2-inter_socket", across, whole),
            Exchange("figure5-pairs", _mixed_pairs(per_socket), whole),
            # The ranks of a socket's exchange, dealt to both sockets.
            Exchange(
                "figure5-reshuffled",
                _on_sockets(per_socket, sockets),
                parse_layout(f"1x{sockets}x{per_socket}", "socket"),
            ),
        ]
    if "inter_node" in resources.cores:
        nodes = min(resources.nodes, 4)
        # Virtual nodes share the cores of one machine.
        ranks = 1 if link_of("inter_node", resources) is not None else per_socket
        layout = parse_layout(f"{nodes}x1x{max(ranks, 2)}")
        most = carried_bytes(_MESSAGE_BYTES[1], "inter_node", resources, layout.num_ranks)
        found.append(Exchange("table2-inter_node", _between(layout.node, "inter_node", most), layout))
    layout = _mesh_layout(resources)
    return [*found, Exchange(MESH, _mesh_exchange(layout.num_ranks), layout)]


def _mesh_layout(resources: Resources) -> Layout:
    """Return the layout of all cores, and of `_MIN_PARTS` ranks at least."""
    nodes, sockets = resources.nodes, 2 if "inter_socket" in resources.cores else 1
    per_socket = cores_per_socket(resources)
    if link_of("inter_node", resources) is not None:
        per_socket = 1  # virtual nodes share the cores of one machine
    groups = min(nodes * sockets, _MAX_PARTS)
    per_socket = min(max(per_socket, -(-_MIN_PARTS // groups)), max(_MAX_PARTS // groups, 1))
    return parse_layout(f"{groups // sockets}x{sockets}x{per_socket}")


@cache
def _mesh_exchange(num_parts: int) -> Pattern:
    """Return the exchange of a generated mesh in `num_parts` parts, with the paper's volume per process."""
    from earlybird.patterns.ghost import ghost_exchange  # imported late: scipy and METIS
    from earlybird.patterns.mesh import tetrahedral_mesh
    from earlybird.patterns.partition import partition_cells

    cells = min(_CELLS_PER_PART * num_parts, max(_CELLS, _FEWEST_PER_PART * num_parts))
    graph = tetrahedral_mesh(cells)
    part = partition_cells(graph, num_parts)
    sent_cells = ghost_exchange(graph, part, bytes_per_cell=1).total_bytes
    doubles = round(_PART_BYTES * num_parts / sent_cells / 8)
    return ghost_exchange(graph, part, bytes_per_cell=8 * doubles)


def _on_sockets(per_socket: int, sockets: int) -> Pattern:
    """Return the synthetic exchange of figure 4(b): each rank sends three messages to the next ranks of its
    socket, whose sizes differ from rank to rank."""
    rng = np.random.default_rng(1)
    smallest, largest = np.log(_VOLUMES_BYTES)
    neighbours = min(_NEIGHBOURS, per_socket - 1)
    src, dst, size = [], [], []
    for rank in range(per_socket * sockets):
        socket, place = divmod(rank, per_socket)
        volume = np.exp(rng.uniform(smallest, largest))
        parts = np.sort(rng.uniform(0.5, 1.5, neighbours))
        for k, part in enumerate(parts / parts.sum()):
            src.append(rank)
            dst.append(socket * per_socket + (place + k + 1) % per_socket)
            size.append(round(part * volume))
    return Pattern(np.array(src), np.array(dst), np.array(size))


def _between(group: np.ndarray, level: str, most_bytes: int = _MESSAGE_BYTES[1]) -> Pattern:
    """Return an irregular exchange between ranks of different groups, as of the parts of a mesh."""
    num_ranks = len(group)
    count = round(_MESSAGES_PER_RANK[level] * num_ranks)
    least = min(_MESSAGE_BYTES[0], most_bytes)
    drawn = random_exchange(num_ranks, 4 * count, min_size_bytes=least, max_size_bytes=most_bytes)
    chosen = np.flatnonzero(group[drawn.src] != group[drawn.dst])[:count]
    return Pattern(drawn.src[chosen], drawn.dst[chosen], drawn.bytes[chosen])


def _mixed_pairs(per_socket: int) -> Pattern:
    """Return the exchange of figure 5(b): two thirds of the ranks in pairs on their socket, the others in
    pairs across the two sockets."""
    on = 2 * (per_socket // 3) or per_socket - per_socket % 2
    src, dst, size = [], [], []
    for socket in range(2):
        begin = socket * per_socket
        for place in range(0, on, 2):
            src += [begin + place, begin + place + 1]
            dst += [begin + place + 1, begin + place]
            size += [200_000 + 10_000 * place] * 2
    for place in range(on, per_socket):
        src += [place, per_socket + place]
        dst += [per_socket + place, place]
        size += [200_000 + 10_000 * place] * 2
    return Pattern(np.array(src), np.array(dst), np.array(size))


def oversubscribed(samples: Sequence[Sample]) -> bool:
    return any(sample.oversubscribed for sample in samples)
