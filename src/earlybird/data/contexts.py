"""Communication contexts of an MPI, which several threads can use at once, and lanes of libearlybird, which
need them: how a launch asks for them."""

from earlybird.data.errors import InputError

_FAMILIES = ("mpich", "intel")  # of MPIs with contexts that a program can request
MAX_LANES = 16  # EB_MAX_LANES of native/partitioned/process/config.h


def has_contexts(family: str | None) -> bool:
    """Tell whether a program can request contexts of an MPI of this family."""
    return family in _FAMILIES


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


def lane_variables(family: str, lanes: int) -> dict[str, str]:
    """Return the variables that let libearlybird send on `lanes` communicators, each with a context of its
    own. Raise InputError if the MPI has no contexts that any thread can use, as lanes need."""
    if not 1 <= lanes <= MAX_LANES:
        raise InputError(f"--lanes is {lanes}; give 1 to {MAX_LANES}")
    if lanes == 1:
        return {"EARLYBIRD_LANES": "1"}
    if family != "mpich":
        # Contexts of Intel MPI belong to one thread each.
        name = {"openmpi": "Open MPI", "intel": "Intel MPI"}.get(family, family)
        raise InputError(
            f"--lanes is {lanes} and {name} has no communication contexts that any thread can use, without "
            "which lanes gain nothing; leave it out, or give --mpi mpich"
        )
    return {"EARLYBIRD_LANES": str(lanes)} | context_variables(family, lanes)
