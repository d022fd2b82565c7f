"""What a pattern means on a layout, against counts by hand."""

import json

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern, save_pattern
from earlybird.patterns.traffic import traffic

# On 2x2x1: ranks 0 and 1 on the sockets of node 0, 2 and 3 on those of node 1.
PATTERN = Pattern(np.array([0, 0, 2, 3]), np.array([1, 2, 3, 0]), np.array([10, 200, 3000, 40]))


def test_messages_and_bytes_are_counted_by_level_and_by_receiving_node():
    found = traffic(PATTERN, parse_layout("2x2x1"))
    assert found.messages == {"intra_socket": 0, "inter_socket": 2, "inter_node": 2}
    assert found.bytes == {"intra_socket": 0, "inter_socket": 3010, "inter_node": 240}
    assert found.node_bytes.tolist() == [[0, 10, 40], [0, 3000, 200]]
    assert found.rank_bytes.tolist() == [40, 10, 200, 3000] and found.rank_messages.tolist() == [1, 1, 1, 1]


def test_show_prints_it(tmp_path, in_process):
    save_pattern(PATTERN, tmp_path / "p.csv")
    shown = in_process("show", tmp_path / "p.csv", "--layout", "2x2x1")
    assert "across sockets         2  2.94 KiB  92.6 %" in shown.stdout
    value = json.loads(in_process("show", tmp_path / "p.csv", "--layout", "2x2x1", "--json").stdout)
    assert value["most_bytes_received"] == 3000 and value["nodes"][1]["inter_node_bytes"] == 200


def test_ranks_outside_the_layout_are_refused():
    with pytest.raises(InputError, match="the pattern contains rank 2"):
        traffic(PATTERN, parse_layout("1x1x2"))
