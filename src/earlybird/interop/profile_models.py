"""A profile as the machine of a simulator, and as parameters of the LogGPS model."""

from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.layout import MAX_RANKS
from earlybird.data.levels import LEVEL_LABELS, LEVELS
from earlybird.data.profile import Level, Profile
from earlybird.data.simulated_machine import LevelCost, SimulatedMachine
from earlybird.data.units import MAX_BYTES, format_bandwidth, format_seconds


def simulated_machine(profile: Profile, nodes: int, sockets: int, cores: int) -> SimulatedMachine:
    """Return the machine whose single messages and shared links have the costs of `profile`.

    One message of a level costs what its ping-pong states. Without a ping-pong its latency is that of the
    first protocol and its bandwidth BW(1) of the last one; the shared bandwidth is the largest BW(N) of that.
    The latency of the first protocol, inside a socket, is what a message adds to the time of a rank that
    sends and receives many: half of it occupies the sender and half the receiver, without a ping-pong all of
    it the receiver. A level without measurements costs as much as the next inner one. No level is made faster
    than a core inside a socket, and none has less latency than an inner one, which a simulated machine cannot
    have: `changed_costs` states where. Raises InputError without intra_socket, or without inter_node for
    several nodes.
    """
    if nodes * sockets * cores > MAX_RANKS:
        raise InputError(
            f"a machine of {nodes}x{sockets}x{cores} has more than {MAX_RANKS} cores; give a smaller one"
        )
    inner = profile.level("intra_socket")
    middle = profile.levels.get("inter_socket", inner)
    outer = profile.level("inter_node") if nodes > 1 else profile.levels.get("inter_node", middle)
    own = {"intra_socket": inner, "inter_socket": middle, "inter_node": outer}
    costs: dict[str, LevelCost] = {}
    occupied_s, latency_s, of_core = (
        inner.protocols[0].latency_s,
        0.0,
        _single(profile, inner).bandwidth_bytes_per_s,
    )
    for name in LEVELS:
        single = _single(profile, own[name])
        latency_s = max(latency_s, single.latency_s, occupied_s)
        costs[name] = LevelCost(latency_s, min(of_core, single.bandwidth_bytes_per_s))
    if not occupied_s:
        raise InputError(
            "the profile's latency on the same socket is 0, which no simulator takes; give it a latency_s"
        )
    waiting = [item.min_bytes for item in outer.protocols if item.sender_waits]
    send_overhead_s = occupied_s / 2 if profile.ping_pong("intra_socket")[1] else 0.0
    return SimulatedMachine(
        nodes=nodes,
        sockets=sockets,
        cores=cores,
        levels=costs,
        socket_bandwidth_bytes_per_s=_bandwidths(inner)[1],
        sockets_bandwidth_bytes_per_s=_bandwidths(own["inter_socket"])[1],
        nic_bandwidth_bytes_per_s=_bandwidths(outer)[1],
        send_overhead_s=send_overhead_s,
        receive_overhead_s=occupied_s - send_overhead_s,
        eager_bytes=max(min(waiting) - 1, 0) if waiting else MAX_BYTES,
        sources={"all": f"the profile {profile.id or '(no id)'}"},
    )


def changed_costs(profile: Profile, machine: SimulatedMachine) -> list[str]:
    """Return a sentence for each cost of the profile that `machine`, which `simulated_machine` made, cannot
    have."""
    changed = []
    for name, cost in machine.levels.items():
        if (level := profile.levels.get(name)) is None:
            if name == "inter_socket" and machine.sockets > 1:
                changed.append(
                    f"{LEVEL_LABELS[name]}: the profile has no such messages; here they cost what those on "
                    "the same socket do"
                )
            continue
        own, where = _single(profile, level), LEVEL_LABELS[name]
        if cost.bandwidth_bytes_per_s < own.bandwidth_bytes_per_s:
            changed.append(
                f"{where}: the bandwidth is {format_bandwidth(cost.bandwidth_bytes_per_s)} and not "
                f"{format_bandwidth(own.bandwidth_bytes_per_s)}, because a core moves data no faster than "
                "inside a socket"
            )
        if cost.latency_s > own.latency_s:
            occupies = cost.latency_s == machine.overheads_s
            why = (
                "a message occupies its ranks so long"
                if occupies
                else "it is at least that of the levels inside"
            )
            changed.append(
                f"{where}: the latency is {format_seconds(cost.latency_s)} and not "
                f"{format_seconds(own.latency_s)}, because {why}"
            )
    return changed


def loggps(profile: Profile) -> dict[str, dict[str, Any]]:
    """Return the parameters of LogGPS for each level: L and o in seconds, G in seconds per byte, S in bytes.

    The latency of the first protocol is what a message adds to the time of a rank that sends and receives
    many, so it is 2 o, and half a round trip of the ping-pong is L + 2 o. Without a ping-pong L is that
    latency and o is 0. g is 0: messages follow each other as o and G allow. G is 1/BW(1) of the last
    protocol, S the first size whose sender waits for its receiver; None if none does.
    """
    found = {}
    for name in LEVELS:
        if (level := profile.levels.get(name)) is None:
            continue
        waiting = [item.min_bytes for item in level.protocols if item.sender_waits]
        single_s = _single(profile, level).latency_s
        overhead_s = min(level.protocols[0].latency_s, single_s) / 2 if profile.ping_pong(name)[1] else 0.0
        found[name] = {
            "L_s": single_s - 2 * overhead_s,
            "o_s": overhead_s,
            "g_s": 0.0,
            "G_s_per_byte": 1 / _bandwidths(level)[0],
            "S_bytes": min(waiting) if waiting else None,
        }
    if not found:
        raise InputError(f"the profile {profile.id or '(no id)'} has no levels; LogGPS describes messages")
    return found


def _single(profile: Profile, level: Level) -> LevelCost:
    """Return the cost of a message that no other message delays."""
    if lines := profile.ping_pong(level.name)[1]:
        return LevelCost(lines[0].latency_s, lines[-1].bandwidth_bytes_per_s)
    return LevelCost(level.protocols[0].latency_s, _bandwidths(level)[0])


def _bandwidths(level: Level) -> tuple[float, float]:
    """Return BW(1) and the largest BW(N) of the last protocol."""
    counts, rates = level.protocols[-1].bandwidth_table()
    if counts[0] != 1:
        raise InputError(
            f"level {level.name} has no bandwidth for N = 1, that of a single pair; measure it, or add it"
        )
    return float(rates[0]), float(rates.max())
