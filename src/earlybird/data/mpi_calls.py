"""Families of MPI calls, by name."""

# Calls that a program repeats until something has happened. The recorder marks the same ones, EB_CALL_POLL.
POLLS = frozenset(
    {
        "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe", "MPI_Parrived",
        "MPI_Request_get_status", "MPI_Request_get_status_all", "MPI_Request_get_status_any",
        "MPI_Request_get_status_some",
    }
)  # fmt: skip

# Calls that receive a message and return when it has come: what follows may depend on it.
BLOCKING_RECEIVES = frozenset({"MPI_Recv", "MPI_Mrecv", "MPI_Sendrecv", "MPI_Sendrecv_replace"})

# Calls that return when requests are complete.
COMPLETIONS = frozenset({"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"})

# Calls that start a message to or from another rank and return at once.
STARTS = frozenset(
    {
        "MPI_Isend", "MPI_Ibsend", "MPI_Issend", "MPI_Irsend", "MPI_Irecv", "MPI_Imrecv", "MPI_Isendrecv",
        "MPI_Isendrecv_replace", "MPI_Start", "MPI_Startall",
    }
)  # fmt: skip

# Calls for partitions of a message, which neither start nor complete it.
OF_PARTITIONS = frozenset({"MPI_Pready", "MPI_Pready_range", "MPI_Pready_list", "MPI_Parrived"})

# Calls that send messages to single ranks, where a program could call MPI_Psend_init instead.
SENDS = frozenset(
    {
        "MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Isend", "MPI_Ibsend", "MPI_Issend",
        "MPI_Irsend", "MPI_Sendrecv", "MPI_Isendrecv", "MPI_Send_init", "MPI_Bsend_init", "MPI_Ssend_init",
        "MPI_Rsend_init", "MPI_Psend_init",
    }
)  # fmt: skip

# Blocking collectives that models describe, and their operation.
OPERATIONS = {
    "MPI_Bcast": "bcast", "MPI_Reduce": "reduce", "MPI_Allreduce": "allreduce", "MPI_Allgather": "allgather",
    "MPI_Alltoall": "alltoall", "MPI_Gather": "gather", "MPI_Scatter": "scatter", "MPI_Barrier": "barrier",
}  # fmt: skip


def base_name(call: str) -> str:
    """Return the name without the `_c` of large counts."""
    return call.removesuffix("_c")
