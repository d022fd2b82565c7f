"""The staircase of whole exchanges against a simulation of every message as (7) to (9) assume."""

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.predict import predict_exchange

TAU_S = 1.5e-6


def shared_evenly(sizes, bytes_per_s_of):
    """When each of `sizes` is complete, if n that are not share bytes_per_s_of(n) evenly: event by event."""
    left, complete, now_s = dict(enumerate(map(float, sizes))), {}, 0.0
    while left:
        rate = bytes_per_s_of(len(left)) / len(left)
        step_s = min(left.values()) / rate
        now_s += step_s
        left = {k: bytes_left - rate * step_s for k, bytes_left in left.items()}
        for k in [k for k, bytes_left in left.items() if bytes_left <= 1e-9 * sizes[k]]:
            complete[k] = now_s
            del left[k]
    return [complete[k] for k in range(len(sizes))]


def simulated(pattern, group, table, waits):
    """The receiving processes of a group share BW(N), (7); the messages of one share its mean rate, (9)."""
    messages = list(zip(pattern.src.tolist(), pattern.dst.tolist(), pattern.bytes.tolist(), strict=True))
    receive_s = {}
    for number in set(group):
        volume = {}
        for _, dst, size in messages:
            if size and group[dst] == number:
                volume[dst] = volume.get(dst, 0) + size
        times_s = shared_evenly(
            list(volume.values()), lambda n: np.interp(n, list(table), list(table.values()))
        )
        receive_s |= dict(zip(volume, times_s, strict=True))
    done_s = [receive_s.get(rank, 0.0) for rank in range(len(group))]
    for rank, time_s in receive_s.items():
        mine = [(src, size) for src, dst, size in messages if dst == rank and size]
        volume = sum(size for _, size in mine)
        complete_s = shared_evenly([size for _, size in mine], lambda n, v=volume, t=time_s: v / t)
        for (src, _), message_s in zip(mine, complete_s, strict=True):
            if waits:
                done_s[src] = max(done_s[src], message_s)
    for _, dst, _ in messages:
        done_s[dst] += TAU_S
    return done_s


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(("level", "layout"), [("intra_socket", "1x1x12"), ("inter_node", "12x1x1")])
@pytest.mark.parametrize("seed", range(5))
def test_exchanges_of_one_level_are_simulated_message_by_message(level, layout, waits, seed):
    rng = np.random.default_rng(seed)
    src = rng.integers(0, 12, 40)
    sizes = rng.integers(0, 10**7, 40) * (rng.random(40) > 0.1)
    pattern = Pattern(src, (src + rng.integers(1, 12, 40)) % 12, sizes)
    # Not monotone, with holes, and constant beyond 9.
    table = {1: 1e10, 2: 1.7e10, 5: 2.1e10, 9: 1.9e10}
    protocol = Protocol(name="only", latency_s=TAU_S, sender_waits=waits, bandwidth_bytes_per_s=table)
    places = parse_layout(layout)
    predicted = predict_exchange(pattern, places, Profile({level: Level(level, (protocol,))}), "staircase")
    group = (places.socket if level == "intra_socket" else places.node).tolist()
    assert predicted.time_s == pytest.approx(simulated(pattern, group, table, waits), rel=1e-9)


def test_several_nodes_are_groups_of_their_own():
    """Ranks 0 to 3 of one node send to those of two others: only receivers of the same node compete."""
    pattern = Pattern(np.array([0, 1, 2, 3, 0]), np.array([4, 5, 6, 8, 9]), np.array([9, 4, 7, 5, 6]) * 10**5)
    table = {1: 1e9, 4: 3e9}
    protocol = Protocol(name="only", latency_s=TAU_S, sender_waits=True, bandwidth_bytes_per_s=table)
    profile = Profile({"inter_node": Level("inter_node", (protocol,))})
    places = parse_layout("3x1x4")
    expected_s = simulated(pattern, places.node.tolist(), table, waits=True)
    assert predict_exchange(pattern, places, profile, "staircase").time_s == pytest.approx(
        expected_s, rel=1e-9
    )
