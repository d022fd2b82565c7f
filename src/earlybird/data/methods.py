"""Methods of sending that several packages refer to by name, and the reference of each kernel."""

from earlybird.data.collective_algorithms import DEFAULT

# Pipelines: one message after the last partition is ready.
SINGLE = "single"
# Message rates: what the threads of a rank share.
SHARED, PER_THREAD, CONTEXTS, PROCESSES = "shared", "per-thread", "per-thread-contexts", "processes"

# By kernel: speed-ups are over this method.
REFERENCES = {"pipeline": SINGLE, "partitioned": SINGLE, "collective": DEFAULT, "msgrate": SHARED}
