"""Tests of which counts of messages matter."""

import random
from collections import Counter

import numpy as np
import pytest

from earlybird.data import recorded_page
from earlybird.data.recorded_page import Page, read_page
from earlybird.data.unsettled_channels import _Ends, unsettled_channels
from tests.stuck_job import pages_of_a_job

SIZE, NUM = 5, 12


def _pages(seed: int) -> tuple[dict[int, Page], dict[tuple[int, int, int, int], int], set]:
    """Return pages whose counts, tags and communicators are drawn, how many messages are left of each
    combination, and those of which more than that matters."""
    draw = random.Random(seed)
    left: Counter = Counter()
    kept = set()
    pages = {}
    for rank, data in enumerate(pages_of_a_job(SIZE, {0: 1, 1: 0}, NUM)):
        page = np.frombuffer(data, recorded_page._PAGE).copy()
        page["head"]["num_communicators"] = 2
        page["communicators"][0, 1]["number"], page["communicators"][0, 1]["identity"] = 2, 0
        for row in page["channels"][0, :NUM]:
            row["peer"], row["tag"] = draw.randrange(SIZE), draw.randrange(2)
            row["communicator"] = draw.choice((1, 1, 1, 2, 3))
            row["sent"], row["received"] = draw.randrange(2), draw.randrange(2)
            tag, peer, identity = int(row["tag"]), int(row["peer"]), 7 * (row["communicator"] == 1)
            left[rank, peer, identity, tag] += int(row["sent"])
            left[peer, rank, identity, tag] -= int(row["received"])
            kept |= {(rank, peer, 0, tag), (peer, rank, 0, tag)} if identity == 0 else set()
        request = page["requests"][0, 0]
        page["keys"][0, 0], request["kind"], request["communicator"] = 1, 1, 1
        request["peer"], request["tag"] = draw.randrange(SIZE), 0
        kept.add((rank, int(request["peer"]), 7, 0))
        pages[rank] = Page(page.tobytes())
    return pages, left, kept


@pytest.mark.one_mpi
@pytest.mark.parametrize("seed", range(30))
def test_only_what_is_left_or_open_is_kept(seed):
    pages, left, kept = _pages(seed)
    kept |= {key for key, num in left.items() if num}
    for rank, rows in unsettled_channels(pages).items():
        expected = [
            row
            for row in pages[rank].channels().tolist()
            for peer, tag, identity in [(row[2], row[3], 7 * (row[1] == 1))]
            if {(rank, peer, identity, tag), (peer, rank, identity, tag)} & kept
        ]
        assert rows.tolist() == expected


@pytest.mark.one_mpi
def test_those_with_the_same_hash_are_all_kept(monkeypatch):
    monkeypatch.setattr("earlybird.data.unsettled_channels._MIX", (np.uint64(0), np.uint64(0)))
    two = np.array([1, 2], np.uint64)
    ends = _Ends(two, np.zeros(2, np.int32), two, np.array([0, 0]), np.zeros(2, bool))
    assert ends.is_unsettled().all()


@pytest.mark.one_mpi
def test_no_page_has_no_channels():
    assert unsettled_channels({}) == {}


@pytest.mark.one_mpi
def test_a_page_is_read_without_what_is_not_in_use(tmp_path):
    (data,) = list(pages_of_a_job(1, {}))
    page = np.frombuffer(data, recorded_page._PAGE).copy()
    page["keys"][0, 1000], page["requests"][0, 1000]["peer"] = 5, 3
    page["communicators"][0, 0]["num_listed"], page["members"][0, 7] = 8, 9
    (tmp_path / "page").write_bytes(page.tobytes())
    assert read_page(tmp_path / "page") == page.tobytes()
