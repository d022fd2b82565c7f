"""The file of the agent of a node: read back, and refused when it is cut or damaged."""

import struct

import pytest

from earlybird.data.node_pages import load_node_pages
from earlybird.data.rank_states import RUNS, STOPPED

PAGE = bytes(64) + b"a" * 64 + bytes(6 * 64) + b"b" * 64 + bytes(64)


def bundle(pages, serial=7, is_final=0):
    data = struct.pack("<QQQIII28x", 0x3145444F4E4245, serial, 5_000_000_000, 1000, len(pages), is_final)
    for name, page, state in pages:
        blocks = [page[at : at + 64] for at in range(0, len(page), 64)]
        bits = sum(1 << k for k, block in enumerate(blocks) if any(block))
        kept = [block for block in blocks if any(block)]
        data += struct.pack("<64sIIII", name.encode(), state, 3, len(page), len(kept))
        data += bits.to_bytes(64, "little") + b"".join(kept)
    return data


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "rank-0.pages"
    path.write_bytes(bundle([("rank-0.open", PAGE, 0), ("rank-1.open", bytes(640), 1)]))
    return path


def test_pages_are_read_back(whole):
    node = load_node_pages(whole)
    assert (node.serial, node.now_s, node.period_s, node.is_final) == (7, 5.0, 1.0, False)
    assert node.pages["rank-0.open"].data == PAGE
    assert node.pages["rank-1.open"].data == bytes(640)
    assert [page.state for page in node.pages.values()] == [RUNS, STOPPED]
    assert node.pages["rank-0.open"].num_threads == 3


def test_what_is_cut_or_damaged_is_none(whole, tmp_path):
    data = whole.read_bytes()
    assert load_node_pages(tmp_path / "absent") is None
    for length in (0, 8, 63, 64, 100, 200, len(data) - 1):
        whole.write_bytes(data[:length])
        assert load_node_pages(whole) is None or length == 64
    for at in (0, 64 + 64, 64 + 72, 64 + 76, 64 + 80):
        whole.write_bytes(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
        assert load_node_pages(whole) is None
