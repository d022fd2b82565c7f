"""What tests of projections share: the recording of a ring on two nodes, profiles and variations."""

from dataclasses import replace

from earlybird.data.advice import Advice, Alternative
from earlybird.data.layout import parse_layout
from earlybird.data.profile import profile_from_json
from earlybird.data.schema import Estimate
from earlybird.record.costs import Placement
from tests import recordings

MEMORY, NETWORK = 1e9, 1e8  # bytes/s
EACH = 10**7
# The network moves a message in 0.1 s and memory in 0.01 s; ranks 1 and 3 send by the one and receive by the
# other. By node, every node receives two messages at once.
NOW_S = 0.11
HALVES = recordings.in_memory(4, recordings.ring(4, 1, EACH), host=lambda rank: f"n{rank // 2}")


def profile(memory=MEMORY, network=NETWORK, latency_s=0.0):
    def level(bandwidth):
        line = {"latency_s": latency_s, "bandwidth_bytes_per_s": {"1": bandwidth}}
        return {"protocols": [line]}

    levels = {"intra_socket": level(memory), "inter_socket": level(memory), "inter_node": level(network)}
    return profile_from_json({"schema": "earlybird.profile/1", "levels": levels})


def place(text, map_by="core"):
    return Placement(parse_layout(text, map_by), text, map_by)


def changes_of(projection, kind, phase=1):
    return [one for one in projection.phases[phase - 1].changes if one.kind == kind]


def polling(recording, tests):
    """The same where each rank calls MPI_Testall `tests` times, and not MPI_Waitall once."""
    name = {recordings.CALLS[recordings.WAITALL]: "MPI_Testall"}
    ranks = {}
    for rank, one in recording.ranks.items():
        entries = one.entries.copy()
        entries["calls"][entries["call"] == recordings.WAITALL] = tests
        calls = tuple(name.get(call, call) for call in one.calls)
        ranks[rank] = replace(one, entries=entries, calls=calls)
    return replace(recording, ranks=ranks)


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


def default_alone():
    """Advice on a collective of which the profile has the default alone, which takes what was recorded."""
    exact = Estimate.exact
    default = Alternative("default", exact(0.0125), exact(1.0), "nothing: this is the default of the MPI")
    return Advice("collective", {}, "default", (default,))


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
