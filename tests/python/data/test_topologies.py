"""Topologies of neighbourhood collectives: how many neighbours a rank has."""

import pytest

from earlybird.data.errors import InputError
from earlybird.data.topologies import num_neighbours, parse_topology


@pytest.mark.parametrize(
    ("topology", "ranks", "expected"),
    [
        ("ring", 2, 1),
        ("ring", 3, 2),
        ("grid-5", 4, 2),  # 2x2: the same rank on both sides
        ("grid-5", 6, 3),
        ("grid-5", 7, 2),  # 1x7
        ("grid-5", 9, 4),
        ("grid-9", 4, 3),
        ("grid-9", 6, 5),
        ("grid-9", 12, 8),
        ("random-4", 5, 4),
    ],
)
def test_a_neighbour_on_both_sides_counts_once(topology, ranks, expected):
    assert num_neighbours(topology, ranks) == expected


def test_names_are_checked():
    assert parse_topology("random-04", "--topology") == "random-4"
    for text in ("torus", "random-", "random-0", "random-x", "grid-7", ""):
        with pytest.raises(InputError, match=r"--topology has .*; give ring, grid-5, grid-9, or random-K"):
            parse_topology(text, "--topology")
    with pytest.raises(InputError, match="random-4 needs more than 4 ranks and 4 were asked for"):
        num_neighbours("random-4", 4)
