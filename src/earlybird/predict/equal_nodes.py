"""Places the ranks of a pattern on nodes that have equally many of them, or on one node."""

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import MAX_RANKS, Layout, even_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.data.units import shortened, whole_number


def node_numbers(nodes: str) -> list[int]:
    """Return the numbers in `--nodes` without repetitions; raise InputError."""
    numbers = [whole_number(text.strip()) or 0 for text in nodes.split(",")]
    if not all(0 < number <= MAX_RANKS for number in numbers):
        raise InputError(
            f"--nodes is {shortened(nodes)}; give whole numbers from 1 to {MAX_RANKS}, such as 1,2,4"
        )
    return list(dict.fromkeys(numbers))


def equal_nodes(pattern: Pattern, nodes: int, sockets: int | None, profile: Profile, map_by: str) -> Layout:
    """Return a layout of `nodes` nodes with equally many ranks; raise InputError."""
    num_ranks = max(pattern.num_ranks_named, 1)
    try:
        return even_layout(num_ranks, nodes, sockets or len(cores_of_sockets(profile)), map_by)
    except InputError as error:
        raise InputError(
            f"{error}; the last rank of the pattern that has messages is {num_ranks - 1}"
        ) from None


def cores_of_sockets(profile: Profile) -> list[int]:
    """Return the cores of each socket of the measured machine, or [0] if they are unknown or messages between
    sockets were not measured.
    """
    cores = profile.machine.get("cores_per_socket")
    known = isinstance(cores, list) and len(cores) > 1 and "inter_socket" in profile.levels
    return cores if known else [0]


def one_node(pattern: Pattern, profile: Profile) -> tuple[Layout, str]:
    """Return one node with the ranks of `pattern`, and a remark that states this assumption.

    The ranks fill the sockets of the measured machine one after the other; all are on one socket if these are
    unknown or messages between them were not measured.
    """
    num_ranks = max(pattern.num_ranks_named, 1)
    cores = cores_of_sockets(profile)
    per_socket = max(min(cores), -(-num_ranks // len(cores))) if len(cores) > 1 else num_ranks
    per_socket = min(per_socket, num_ranks)  # fewer ranks than cores of a socket
    rank = np.arange(num_ranks)
    sockets = -(-num_ranks // per_socket)
    filled = f"{sockets} sockets of at most {per_socket}" if sockets > 1 else "one socket"
    is_full = sockets * per_socket == num_ranks
    text = f"1x{sockets}x{per_socket}" if is_full else f"1 node of {num_ranks} ranks"
    remark = f"no --layout is given: assuming 1 node of {num_ranks} ranks on {filled}"
    return Layout(np.zeros_like(rank), rank // per_socket, text), remark
