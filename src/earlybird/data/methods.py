"""Methods of sending that several packages refer to by name."""

# Pipelines: one message after the last partition is ready, or one for each when it is.
SINGLE, MANY = "single", "many"
# Message rates: what the threads of a rank share.
SHARED, PER_THREAD, CONTEXTS, PROCESSES = "shared", "per-thread", "per-thread-contexts", "processes"
MSGRATE_METHODS = (SHARED, PER_THREAD, CONTEXTS, PROCESSES)

# Motifs: how threads exchange the messages of a step with their neighbours.
FUNNELLED, PERSISTENT, MULTIPLE, OWN_CALLS, EARLYBIRD = (
    "funnelled", "persistent", "multiple", "partitioned", "earlybird",
)  # fmt: skip
STYLES = (FUNNELLED, PERSISTENT, MULTIPLE, OWN_CALLS, EARLYBIRD)
# How computing times differ; native/kernels/computing/noise.hpp says what each of them is.
NO_NOISE = "none"
NOISE_MODELS = (NO_NOISE, "single", "uniform", "gaussian")
