"""Messages inside a node that are predicted from memory, while caches would hold their buffers."""

import numpy as np

from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import REUSED, Level, Profile
from earlybird.data.units import format_bytes

# Smaller messages take mostly latency, wherever their buffers are.
MIN_BYTES = 1 << 16
# How many times as fast messages with reused buffers are at the least, if that is to be said.
MIN_RATIO = 1.5
# Patterns with more messages are not looked at, which would take longer than the remark is worth.
MAX_MESSAGES = 1 << 20
_MEASURE = "`earlybird measure contention --buffers reuse`"


def reuse_note(pattern: Pattern, layout: Layout, profile: Profile) -> str | None:
    """Return, as a sentence, that a prediction is of buffers that no cache holds, while a replay, which sends
    the same ones again, has them in its caches; None if that makes no difference that is known.

    Contention is measured with a place of its own for each message, and levels are fitted to that.
    """
    caches = [int(cache.get("size_bytes") or 0) for cache in profile.machine.get("caches") or ()]
    if not caches or pattern.num_messages > MAX_MESSAGES:
        return None
    node_of = np.asarray(layout.node)
    inside = node_of[pattern.src] == node_of[pattern.dst]
    if not inside.any() or int(pattern.bytes[inside].max()) < MIN_BYTES:
        return None
    # A message is read by its sender and written by its receiver.
    of_node = 2 * np.bincount(node_of[pattern.src[inside]], pattern.bytes[inside])
    if of_node.max() > max(caches):
        return None
    used = np.unique(layout.levels_of_messages(pattern.src[inside], pattern.dst[inside]))
    levels = [profile.levels[LEVELS[number]] for number in used.tolist() if LEVELS[number] in profile.levels]
    measured = [level for level in levels if level.extra.get(REUSED)]
    size = int(pattern.bytes[inside].max())
    ratio = max((_ratio(level, size) for level in measured), default=0.0)
    begin = (
        "messages inside a node are predicted with a place in memory for each, but caches hold the buffers "
        "of this exchange, which `replay` and most programs use again"
    )
    if ratio >= MIN_RATIO:
        return (
            f"{begin}: one of {format_bytes(size)} is then up to {ratio:.1f} times as fast, as {_MEASURE} "
            "measured"
        )
    is_of_contention = any(len(p.bandwidth_bytes_per_s) > 1 for level in levels for p in level.protocols)
    if not measured and is_of_contention:
        return f"{begin}: it may be several times as fast, which {_MEASURE} measures"
    return None


def _ratio(level: Level, size_bytes: int) -> float:
    """Return how many times as fast the bytes of a message of about this size are with reused buffers, the
    largest ratio of all N; 0 for a size out of the range that was measured."""
    ratios = [0.0]
    protocol = [item for item in level.protocols if item.min_bytes <= size_bytes][-1]
    for n, times_s in level.extra[REUSED].items():
        sizes = np.array(sorted(int(size) for size in times_s if int(size) > 0))
        if not len(sizes) or not sizes[0] <= size_bytes <= sizes[-1]:
            continue
        nearest = int(sizes[np.argmin(abs(np.log(sizes / size_bytes)))])
        rate = float(np.interp(int(n), *protocol.bandwidth_table()))
        fitted_s = protocol.latency_s + int(n) * nearest / rate
        ratios.append(fitted_s / times_s[str(nearest)])
    return max(ratios)
