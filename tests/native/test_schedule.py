"""In which starts a request exchanges segmentation messages and searches."""

import re

import pytest

from earlybird.toolchain.build import native_sources
from tests.core_library import compile_core

SEARCHING, DOUBTED, BORROWED, ENDED = range(4)
MAX_TRIES = 38  # of a search, in starts


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return compile_core(tmp_path_factory.mktemp("core"))


def messages(core, states, is_small=False):
    """The starts with a message, if the first of them have these states and all later ones have ended."""
    starts = [core.eb_schedule_first(is_small)]
    for k in range(len(states) + 4):
        state = states[k] if k < len(states) else ENDED
        starts.append(core.eb_schedule_next(starts[-1], is_small, state))
    return starts


@pytest.mark.parametrize(
    ("is_small", "states", "expected"),
    [
        (False, [], [2, 48, 256, 512, 768]),
        (True, [], [16, 2048, 4096, 6144, 8192]),
        (False, [BORROWED], [2, 32, 48, 256, 512, 768]),
        (True, [BORROWED], [16, 32, 2048, 4096, 6144, 8192]),
        (False, [SEARCHING] * 3, [2, 3, 4, 5, 48, 256, 512, 768]),
        (False, [SEARCHING] * 45, [*range(2, 48), 256, 512, 768, 1024]),
        (False, [SEARCHING, DOUBTED, DOUBTED], [2, 3, 11, 19, 48, 256, 512, 768]),
    ],
)
def test_messages_are_at_the_beginning_once_more_a_little_later_and_then_rare(
    core, is_small, states, expected
):
    assert messages(core, states, is_small) == expected


def test_the_starts_before_a_check_are_observed(core):
    """Four of them, so that the next message after start 252 is not that of 256."""
    assert [core.eb_schedule_next(start, False, ENDED) for start in (43, 44, 251, 252)] == [48, 256, 256, 512]


def test_searches_begin_at_the_first_messages_and_once_more(core):
    begins = [start for start in range(4096) if core.eb_schedule_begins_search(start)]
    assert begins == [*range(33), 48]


def test_the_harness_measures_after_the_last_search_that_every_request_makes(core):
    text = (native_sources() / "harness/mpi/partitioned.hpp").read_text()
    settled = int(re.search(r"starts_until_settled = (\d+);", text).group(1))
    repeated = max(start for start in range(4096) if core.eb_schedule_begins_search(start))
    assert repeated + MAX_TRIES < settled < core.eb_schedule_next(repeated, False, ENDED)
