"""Which core each rank is bound to, and whether ranks landed where they were asked to."""

import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.launch.placement import (
    bind_local,
    bind_virtual,
    is_oversubscribed,
    misplaced_ranks,
    observed_layout,
)

TWO_BY_TWO = [[0, 1], [4, 5]]


@pytest.mark.parametrize(
    ("layout", "map_by", "cpus"),
    [
        ("1x1x2", "core", (0, 1)),
        ("1x2x1", "core", (0, 4)),
        ("1x2x2", "core", (0, 1, 4, 5)),
        ("1x2x2", "socket", (0, 4, 1, 5)),
        ("1x2x2", "node", (0, 1, 4, 5)),
    ],
)
def test_every_rank_gets_a_core_of_its_socket(layout, map_by, cpus):
    binding = bind_local(parse_layout(layout, map_by), TWO_BY_TWO)
    assert (binding.name, binding.cpus) == ("core", tuple((cpu,) for cpu in cpus))


def test_cores_are_shared_when_a_socket_has_too_few():
    layout = parse_layout("1x1x5")
    binding = bind_local(layout, TWO_BY_TWO)
    assert binding.cpus == ((0,), (1,), (0,), (1,), (0,))
    assert "shared" in binding.name


def test_every_thread_of_a_rank_gets_a_core():
    binding = bind_local(parse_layout("1x2x1"), TWO_BY_TWO, threads=2)
    assert binding.cpus == ((0, 1), (4, 5))
    assert binding.by_rank


def test_threads_that_outnumber_cores_share_those_of_their_own_rank():
    binding = bind_local(parse_layout("1x2x2"), TWO_BY_TWO, threads=2)
    assert binding.cpus == ((0,), (1,), (4,), (5,))
    assert binding.name == "core, shared by threads of a rank"
    assert bind_local(parse_layout("1x1x2"), ((0, 1, 2, 3, 4),), threads=8).cpus == ((0, 1), (2, 3))
    binding = bind_local(parse_layout("1x1x3"), TWO_BY_TWO, threads=2)
    assert binding.cpus == ((0,), (1,), (0,))
    assert binding.name == "core, shared by several ranks"


def test_nodes_that_are_all_this_machine_share_its_cores_in_turn():
    binding = bind_virtual(parse_layout("2x1x1"), TWO_BY_TWO)
    assert binding.cpus == ((0,), (1,))
    binding = bind_virtual(parse_layout("2x2x2"), TWO_BY_TWO)
    assert binding.cpus == ((0,), (1,), (4,), (5,)) * 2
    assert "shared" in binding.name
    assert is_oversubscribed(parse_layout("2x2x2"), TWO_BY_TWO, one_machine=True)
    assert not is_oversubscribed(parse_layout("2x2x1"), TWO_BY_TWO, one_machine=True)


def test_ranks_that_share_cores_are_oversubscribed_though_another_socket_is_idle():
    assert is_oversubscribed(parse_layout("1x1x3"), TWO_BY_TWO)
    assert not is_oversubscribed(parse_layout("1x2x2"), TWO_BY_TWO)
    assert not is_oversubscribed(parse_layout("8x2x2"), TWO_BY_TWO)
    # A host may have sockets that this machine lacks.
    assert not is_oversubscribed(parse_layout("2x4x2"), TWO_BY_TWO)
    assert is_oversubscribed(parse_layout("2x4x3"), TWO_BY_TWO)


def test_nodes_and_sockets_that_are_not_here_are_refused():
    with pytest.raises(InputError, match="2 nodes"):
        bind_local(parse_layout("2x1x1"), TWO_BY_TWO)
    with pytest.raises(InputError, match=r"3 sockets .* has 2"):
        bind_local(parse_layout("1x3x1"), TWO_BY_TWO)


def observed(*places):
    """Placement as kernels report it, from (host, sockets) of every rank, last rank first."""
    entries = [
        {"rank": rank, "host": host, "sockets": list(sockets), "cpus": [rank]}
        for rank, (host, sockets) in enumerate(places)
    ]
    return observed_layout(entries[::-1])


def test_ranks_in_place_may_have_other_names():
    layout = parse_layout("2x2x1")
    assert misplaced_ranks(layout, observed(("z", [1]), ("z", [0]), ("a", [3]), ("a", [7]))) == []


def test_nodes_are_numbered_as_ranks_meet_them():
    assert [entry["node"] for entry in observed(("b", [0]), ("a", [0]), ("b", [0]))] == [0, 1, 0]


@pytest.mark.parametrize(
    ("layout", "places", "wrong"),
    [
        ("2x1x1", [("a", [0]), ("a", [0])], [1]),
        ("1x1x2", [("a", [0]), ("b", [0])], [1]),
        ("1x1x2", [("a", [0]), ("a", [1])], [1]),
        ("1x2x2", [("a", [0]), ("a", [1]), ("a", [1]), ("a", [1])], [1, 2, 3]),
        ("2x1x2", [("a", [0]), ("b", [0]), ("a", [0]), ("b", [0])], [1, 2, 3]),
        # Bound to two sockets: on neither.
        ("1x1x2", [("a", [0]), ("a", [0, 1])], [1]),
    ],
)
def test_misplaced_ranks_are_named(layout, places, wrong):
    found = misplaced_ranks(parse_layout(layout), observed(*places))
    assert found and set(found) <= set(wrong)
