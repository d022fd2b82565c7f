"""Layouts: the three mappings as defined, the CSV form, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.data.layout import even_layout, layout_of_label, parse_layout

SIDES = st.integers(1, 5)


@given(nodes=SIDES, sockets=SIDES, ranks=SIDES)
def test_every_mapping_places_each_rank_as_its_formula_says(nodes, sockets, ranks):
    per_node = sockets * ranks
    places = {
        "core": lambda r: (r // per_node, (r % per_node) // ranks),
        "socket": lambda r: (r // per_node, (r % per_node) % sockets),
        "node": lambda r: (r % nodes, (r // nodes) // ranks),
    }
    for map_by, place in places.items():
        layout = parse_layout(f"{nodes}x{sockets}x{ranks}", map_by)
        assert layout.num_ranks == nodes * per_node
        assert list(zip(layout.node, layout.socket, strict=True)) == [
            place(r) for r in range(layout.num_ranks)
        ]


@given(nodes=SIDES, sockets=SIDES, ranks=SIDES, map_by=st.sampled_from(["core", "socket", "node"]))
def test_every_socket_gets_the_same_number_of_ranks(nodes, sockets, ranks, map_by):
    layout = parse_layout(f"{nodes}x{sockets}x{ranks}", map_by)
    assert np.bincount(layout.socket_group()).tolist() == [ranks] * (nodes * sockets)
    assert layout.num_nodes == nodes


def test_level_distinguishes_socket_node_and_beyond():
    layout = parse_layout("2x2x2")
    src, dst = np.array([0, 0, 0, 7]), np.array([1, 2, 4, 0])
    assert layout.level(src, dst).tolist() == [0, 1, 2, 2]
    assert layout.levels_of_messages(src, dst).tolist() == [0, 1, 2, 2]


def test_csv_rows_may_come_in_any_order(tmp_path):
    path = tmp_path / "layout.csv"
    path.write_text("rank,node,socket\n1,0,1\n0,5,0\n")
    layout = parse_layout(str(path))
    assert (layout.node.tolist(), layout.socket.tolist()) == ([5, 0], [0, 1])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("node,rank,socket\n", "line 1"),
        ("rank,node,socket\n", "no row for rank 0"),
        ("rank,node,socket\n0,0,0\n2,0,0\n", "no row for rank 1"),
        ("rank,node,socket\n0,0,0\n0,1,0\n", "line 3: rank 0 has a row already"),
        ("rank,node,socket\n0,0,-1\n", "line 2 has a negative"),
        ("rank,node,socket\n0,zero,0\n", "line 2: 'zero'"),
        ("rank,node,socket\n0,0\n", "line 2 has 2 columns"),
        (f"rank,node,socket\n0,{10**40},0\n", "line 2: .*64 bits"),
    ],
)
def test_bad_csv_is_refused_by_line(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        parse_layout(str(path))


@pytest.mark.parametrize(
    "text", ["", "4", "2x2", "0x1x4", "2x2x-1", "axbxc", "1x1x4x1", "999999x999999x9", "9" * 5000 + "x1x1"]
)
def test_bad_layout_is_refused(text):
    with pytest.raises(InputError, match="layout"):
        parse_layout(text)


def test_unknown_mapping_is_refused():
    with pytest.raises(InputError, match="core, socket, node"):
        parse_layout("1x1x4", "numa")


def test_mapping_of_a_csv_layout_is_refused(tmp_path):
    (tmp_path / "l.csv").write_text("rank,node,socket\n0,0,0\n")
    with pytest.raises(InputError, match="--map-by node"):
        parse_layout(str(tmp_path / "l.csv"), "node")


@pytest.mark.parametrize("map_by", ["core", "socket", "node"])
def test_ranks_that_fill_the_sockets_are_divided_as_the_layout_of_that_shape(map_by):
    found, same = even_layout(16, 4, 2, map_by), parse_layout("4x2x2", map_by)
    assert found.text == same.text
    assert np.array_equal(found.node, same.node) and np.array_equal(found.socket, same.socket)
    assert np.array_equal(layout_of_label(found.text).node, same.node)


def test_sockets_without_a_rank_are_left_out_and_the_last_may_have_fewer():
    assert even_layout(4, 4, 2).text == "4x1x1"
    uneven = even_layout(6, 2, 2)
    assert uneven.node.tolist() == [0, 0, 0, 1, 1, 1] and uneven.socket.tolist() == [0, 0, 1, 0, 0, 1]
    assert layout_of_label(uneven.text) is None and layout_of_label("places.csv") is None


def test_ranks_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match="16 ranks cannot be divided evenly among 3 nodes"):
        even_layout(16, 3)
    with pytest.raises(InputError, match=r"^1 rank cannot .* among 2 nodes; give 1 node, or a --layout$"):
        even_layout(1, 2)
    with pytest.raises(InputError, match="--map-by is 'x'"):
        even_layout(16, 4, map_by="x")
