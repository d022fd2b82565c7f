"""Methods of sending that several packages refer to by name."""

from collections.abc import Mapping
from typing import Any

# Pipelines: one message after the last partition is ready, or one for each when it is.
SINGLE, MANY = "single", "many"
# Pipelines by libearlybird with segments of the user's choice: of whole partitions up to so many bytes, a
# number of segments, or one for each partition.
AGGREGATED, SEGMENTED, PER_PARTITION = "earlybird:", "earlybird-segments:", "earlybird-partition"
# Of pipelines: whether only the main thread of the receiving rank receives, or all its threads do.
ONE_RECEIVES, THREADS_RECEIVE = "one", "threads"
RECEIVERS = (ONE_RECEIVES, THREADS_RECEIVE)
# Message rates: what the threads of a rank share; two thread levels below MPI_THREAD_MULTIPLE.
SHARED, PER_THREAD, CONTEXTS, PROCESSES = "shared", "per-thread", "per-thread-contexts", "processes"
FUNNELED, SERIALIZED = "funneled", "serialized"
LOWER_LEVELS = (FUNNELED, SERIALIZED)
MSGRATE_METHODS = (SHARED, PER_THREAD, CONTEXTS, *LOWER_LEVELS, PROCESSES)

# Motifs: how threads exchange the messages of a step with their neighbours.
FUNNELLED, PERSISTENT, MULTIPLE, OWN_CALLS, EARLYBIRD = (
    "funnelled", "persistent", "multiple", "partitioned", "earlybird",
)  # fmt: skip
STYLES = (FUNNELLED, PERSISTENT, MULTIPLE, OWN_CALLS, EARLYBIRD)
# Packing: where the doubles of a message are, and the calls or loops that move them. The MPI's and our own.
PACKINGS = ("contiguous", "strided", "indexed")
PACK, UNPACK, LOOP_PACK, LOOP_UNPACK = "pack", "unpack", "loop-pack", "loop-unpack"
PACKING_METHODS = (PACK, UNPACK, LOOP_PACK, LOOP_UNPACK)
CACHES = ("hot", "cold")
# How computing times differ; native/kernels/computing/noise.hpp says what each of them is.
NO_NOISE = "none"
NOISE_MODELS = (NO_NOISE, "single", "uniform", "gaussian")


def receivers_of(config: Mapping[str, Any]) -> str:
    """Return which threads of the receiving rank of a pipeline receive."""
    return config.get("receivers") or ONE_RECEIVES


def library_settings(method: str) -> dict[str, str]:
    """Return the variables of libearlybird that make it send with the method `method`."""
    if method == PER_PARTITION:
        return {"EARLYBIRD_SEGMENTS": "partition"}
    for prefix, name in ((AGGREGATED, "EARLYBIRD_AGGR_SIZE"), (SEGMENTED, "EARLYBIRD_SEGMENTS")):
        if method.startswith(prefix):
            return {name: method.removeprefix(prefix)}
    return {}
