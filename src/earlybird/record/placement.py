"""Where the ranks of a recorded program ran, and where else they could."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.recording import Recording


@dataclass(frozen=True)
class Placement:
    """A layout, with the text and mapping from which it was made."""

    layout: Layout
    text: str
    map_by: str = "core"


def recorded_place(recording: Recording) -> Placement:
    """Return the layout of the recording: its hosts in the order of their first ranks, with one socket each.

    Raises InputError if a rank is missing: its host is unknown.
    """
    if recording.missing or not recording.ranks:
        raise InputError(
            f"{len(recording.missing)} ranks left no file, so their nodes are unknown; give --layout"
        )
    hosts = [recording.ranks[rank].host for rank in range(recording.size)]
    number = {host: k for k, host in enumerate(dict.fromkeys(hosts))}
    node = np.array([number[host] for host in hosts], dtype=np.int64)
    num_nodes = len(number)
    for map_by in ("core", "node") if recording.size % num_nodes == 0 else ():
        text = f"{num_nodes}x1x{recording.size // num_nodes}"
        if np.array_equal(parse_layout(text, map_by).node, node):
            return Placement(parse_layout(text, map_by), text, map_by)
    text = f"{labels.counted(num_nodes, 'host')} as recorded"
    return Placement(Layout(node, np.zeros_like(node), text), text)


def other_mappings(place: Placement) -> list[Placement]:
    """Return the same nodes filled in other orders, if they differ."""
    try:
        places = [Placement(parse_layout(place.text, map_by), place.text, map_by) for map_by in MAPPINGS]
    except InputError:  # a file, or a layout that has no text
        return []
    return distinct([place, *places])[1:]


def distinct(places: Sequence[Placement]) -> list[Placement]:
    """Return the places without those that are the same as an earlier one."""
    kept: list[Placement] = []
    for place in places:
        if not any(_is_same(place.layout, other.layout) for other in kept):
            kept.append(place)
    return kept


def _is_same(layout: Layout, other: Layout) -> bool:
    return np.array_equal(layout.node, other.node) and np.array_equal(layout.socket, other.socket)
