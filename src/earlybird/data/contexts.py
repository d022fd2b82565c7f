"""Communication contexts of an MPI, which several threads can use at once: how a launch asks for them."""

from earlybird.data.errors import InputError


def context_variables(family: str, vcis: int | None, streams: int = 0) -> dict[str, str]:
    """Return the variables that request from an MPI `vcis` communication contexts, which threads can use at
    once, and further ones that `streams` MPIX_Stream can take; none for None and 0. Raise InputError if the
    MPI does not support them."""
    if family == "mpich":
        asked = {"MPIR_CVAR_CH4_NUM_VCIS": vcis, "MPIR_CVAR_CH4_RESERVE_VCIS": streams or None}
        return {name: str(count) for name, count in asked.items() if count is not None}
    if vcis is None:
        return {}
    if family == "intel":
        # With the `generic` runtime, threads identify themselves by the info key `thread_id` of a
        # communicator; `openmp` would ask libomp. Without _MAX 2021.18.1 asserts in MPI_Init_thread.
        return {"I_MPI_THREAD_SPLIT": "1", "I_MPI_THREAD_RUNTIME": "generic", "I_MPI_THREAD_MAX": str(vcis)}
    raise InputError(
        "Open MPI has no communication contexts that a program can request; leave them out, or measure "
        "MPICH or Intel MPI (--mpi mpich, --mpi intel)"
    )
