"""The published tables are consistent; exchanges of a refined grid get the paper's volume in the mean."""

import numpy as np
import pytest

from bench import paper_tables
from bench.paper_tables import PaperRow, bytes_per_cell, inside_nodes, paper_rows, partitioned, with_link
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol


def row_of(ranks, volume_mb):
    return PaperRow(
        "III", "Kunpeng 920-6426", ranks, f"1x1x{ranks}", 1, 1, volume_mb, None, None, 100, 0, 0, 0.1
    )


def test_the_rows_of_the_paper_are_consistent():
    rows = paper_rows()
    assert [sum(row.table == table for row in rows) for table in ("III", "IV")] == [17, 8]
    for row in rows:
        assert row.place.num_ranks == row.ranks
        assert row.on_percent + row.off_percent + row.inter_percent == pytest.approx(100, abs=1.01)
        assert (row.inter_percent > 0) == (row.place.num_nodes > 1)
        assert row.messages / row.ranks <= row.most_messages < row.ranks and 0.05 < row.error < 0.25
        assert (row.most_mb is None) == (row.table == "III")


def test_a_cell_has_the_same_bytes_in_all_rows_of_a_mesh():
    one = Pattern(np.array([0]), np.array([1]), np.array([1000]))
    patterns = {(2, 4): one, (2, 8): one}
    # 50 and 800 bytes a cell.
    assert bytes_per_cell([row_of(4, 0.05), row_of(8, 0.8)], patterns, 2) == 200


def test_a_refined_grid_is_partitioned_by_the_command(tmp_path):
    (tmp_path / "mask").write_text("ACTNUM\n1 1 /\n")
    pattern, usage = partitioned(tmp_path / "mask", "2x1x1", 4, 2, tmp_path)
    assert pattern.triples().tolist() == [[0, 1, 16], [1, 0, 16]]
    assert usage.processor_s > 0 and usage.memory_bytes > 1e6


def test_messages_inside_nodes_are_those_that_table_i_describes():
    pattern = Pattern(np.array([0, 0, 2]), np.array([1, 2, 3]), np.array([10, 200, 3000]))
    assert inside_nodes(pattern, parse_layout("2x2x1")).bytes.tolist() == [10, 3000]
    across = Level("inter_socket", (Protocol(latency_s=2e-6, bandwidth_bytes_per_s={1: 1e9}),))
    (link,) = with_link(Profile({"inter_socket": across})).level("inter_node").protocols
    assert link.latency_s == 2e-6 and link.bandwidth_bytes_per_s[2] == 2 * link.bandwidth_bytes_per_s[1]


def test_without_the_data_it_is_skipped(tmp_path, capsys):
    assert paper_tables.main(["--data", str(tmp_path)]) == 0
    assert "norne_actnum.prop and thune_table1.csv" in capsys.readouterr().err
