"""An exchange whose times by the staircase are kept while ranks move and messages change their sizes."""

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.models.compiled import ChangingExchange
from earlybird.predict.parts import bandwidth_up_to, table

# Bandwidths are kept for as many ranks on a node as there are, and lists for each place that a rank may have.
MAX_RANKS, MAX_SOCKETS = 100_000, 10_000_000
MIXED = "per-level"


def changing_exchange(pattern: Pattern, layout: Layout, profile: Profile, mixed: str) -> ChangingExchange:
    """Return the exchange, with capacity for the nodes and sockets of `layout`.

    Raises InputError if the profile lacks a level that has messages or has no levels, if `mixed` is not
    MIXED, and if there are too many ranks, nodes or sockets.
    """
    room = int(layout.node.max()) + 1, int(layout.socket.max()) + 1
    if mixed != MIXED or layout.num_ranks > MAX_RANKS:
        raise InputError(
            f"slowest_now_s needs mixed {MIXED!r} and at most {MAX_RANKS} ranks; this exchange has "
            f"{mixed!r} and {layout.num_ranks}"
        )
    if room[0] * room[1] > MAX_SOCKETS:
        raise InputError(
            f"the layout has nodes up to {room[0] - 1} and sockets up to {room[1] - 1}, with room for "
            f"{room[0] * room[1]} sockets; number them from 0, for at most {MAX_SOCKETS}"
        )
    level = layout.level(pattern.src, pattern.dst)
    used = [profile.level(name) for k, name in enumerate(LEVELS) if (level == k).any()]
    known = next(iter([*used, *profile.levels.values()]), None)
    if known is None:
        raise InputError("the profile has no levels; give one that `earlybird fit` wrote")
    # A level that is absent has no message yet; `Predictor.slowest_now_s` looks whether one came to it.
    filled = [profile.levels.get(name, known) for name in LEVELS]
    protocols = [item for one in filled for item in one.protocols]
    inside, outside = (
        bandwidth_up_to([[table(one, item) for one in part for item in one.protocols]], layout.num_ranks)[0]
        for part in (filled[:2], filled[2:])
    )
    return ChangingExchange(
        layout.node, layout.socket, *room, pattern.src, pattern.dst, pattern.bytes,
        np.cumsum([0, *(len(one.protocols) for one in filled)]),
        np.array([item.min_bytes for item in protocols]), np.array([item.latency_s for item in protocols]),
        np.array([bool(item.sender_waits) for item in protocols]), inside, outside,
    )  # fmt: skip
