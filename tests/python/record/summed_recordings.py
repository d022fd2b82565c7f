"""What tests of summed recordings share: a ring on two nodes with collectives, profiles and variations."""

from dataclasses import replace

from earlybird.data.layout import parse_layout
from earlybird.data.profile import profile_from_json
from earlybird.record.placement import Placement
from tests import recordings

MEMORY, NETWORK = 1e9, 1e8  # bytes/s
EACH = 10**7
HALVES = recordings.in_memory(4, recordings.ring(4, 1, EACH), host=lambda rank: f"n{rank // 2}")


def profile(memory=MEMORY, network=NETWORK, latency_s=0.0):
    def level(bandwidth):
        line = {"latency_s": latency_s, "bandwidth_bytes_per_s": {"1": bandwidth}}
        return {"protocols": [line]}

    levels = {"intra_socket": level(memory), "inter_socket": level(memory), "inter_node": level(network)}
    return profile_from_json({"schema": "earlybird.profile/1", "levels": levels})


def place(text, map_by="core"):
    return Placement(parse_layout(text, map_by), text, map_by)


def with_calls(recording, names):
    """The recording with other calls in the place of some."""
    ranks = {}
    for rank, one in recording.ranks.items():
        calls = tuple(names.get(name, name) for name in one.calls)
        phases = {
            number: replace(
                phase, steps=tuple(replace(s, call=names.get(s.call, s.call)) for s in phase.steps)
            )
            for number, phase in one.phases.items()
        }
        ranks[rank] = replace(one, calls=calls, phases=phases)
    return replace(recording, ranks=ranks)


def collectives(num_bytes=8, **threads):
    """As HALVES, where each of 8 calls of MPI_Allreduce of a rank takes 12.5 ms."""
    recording = recordings.in_memory(
        4, recordings.ring(4, 1, EACH), host=lambda rank: f"n{rank // 2}", **threads
    )
    ranks = {}
    for rank, one in recording.ranks.items():
        entries = one.entries.copy()
        chosen = entries["call"] == recordings.ALLREDUCE
        entries["calls"][chosen], entries["bytes"][chosen] = 8, 8 * num_bytes
        ranks[rank] = replace(one, entries=entries)
    return replace(recording, ranks=ranks)
