"""A prediction inside a node says when caches would hold the buffers that the profile has in memory."""

from dataclasses import replace

import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import REUSED, Level, Profile, Protocol
from earlybird.predict.reuse import MIN_BYTES, reuse_note

SIZE, CACHE = 1 << 18, 1 << 22


def pattern(size=SIZE, count=1, src=0, dst=1):
    return Pattern([src] * count, [dst] * count, [size] * count)


def profile(reused_s=None, rates=None, caches=(1 << 15, CACHE)):
    protocol = Protocol(latency_s=0.0, bandwidth_bytes_per_s=rates or {1: 1e9, 2: 1.5e9})
    levels = {
        name: Level(name, (protocol,), extra={REUSED: reused_s} if reused_s else {})
        for name in ("intra_socket", "inter_node")
    }
    return Profile(levels, machine={"caches": [{"size_bytes": size} for size in caches]})


def note(messages, of, layout="1x1x2"):
    return reuse_note(messages, parse_layout(layout), of)


def test_the_ratio_is_that_of_the_measured_reuse():
    text = note(pattern(), profile({"1": {str(SIZE): SIZE / 4e9}}))
    assert (
        "one of 256 KiB is then up to 4.0 times as fast, as `earlybird measure contention --buffers reuse` "
        "measured" in text
    )
    assert note(pattern(), profile({"1": {str(SIZE): SIZE / 1.2e9}})) is None


@pytest.mark.parametrize("size", [SIZE // 2, 2 * SIZE])
def test_a_size_out_of_the_measured_range_has_no_ratio(size):
    assert note(pattern(size), profile({"1": {str(SIZE): SIZE / 4e9}})) is None
    measured_s = {str(SIZE // 4): 1e-6, str(4 * SIZE): 1e-6}
    assert "times as fast" in note(pattern(size), profile({"1": measured_s}))


def test_where_it_was_not_measured_the_command_is_named():
    assert "which `earlybird measure contention --buffers reuse` measures" in note(pattern(), profile())
    assert note(pattern(), profile(rates={1: 1e9})) is None  # of ping-pong alone


@pytest.mark.parametrize(
    ("messages", "of", "layout"),
    [
        (pattern(size=MIN_BYTES - 1), profile(), "1x1x2"),
        (pattern(), profile(), "2x1x1"),
        (pattern(count=9), profile(), "1x1x2"),  # more than the cache holds
        (pattern(), profile(caches=()), "1x1x2"),
        (Pattern([], [], []), profile(), "1x1x2"),
    ],
)
def test_nothing_is_said_without_messages_that_a_cache_would_hold(messages, of, layout):
    assert note(messages, of, layout) is None


def test_what_only_another_level_has_does_not_count():
    of = profile({"1": {str(SIZE): SIZE / 4e9}})
    assert note(pattern(), replace(of, levels={"inter_node": of.levels["inter_node"]})) is None
