"""The environment variables of a launch: what it needs, what it prefers, and what the user has set."""

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

from earlybird.data.errors import InputError
from earlybird.machine.flavours import Flavour

# What a launch record keeps of the environment.
RECORDED = re.compile(r"^(MPIR_|MPICH_|OMPI_|PMIX_|PRTE_|I_MPI_|UCX_|FI_|HYDRA_|SLURM_|OMP_|EARLYBIRD_)")
# Open MPI's mpiexec passes only its own variables to other nodes, not those of the libraries below it.
_LEFT_BEHIND = re.compile(r"^(UCX_|FI_|OMP_)")
_NONE: Mapping[str, str] = MappingProxyType({})


def refuse_conflicts(settings: Mapping[str, str], needed: Mapping[str, str]) -> None:
    """Raise InputError for a variable of the user that the launch needs otherwise: it would have no effect.

    `settings` are those of --env, which replace the shell's.
    """
    for name, value in needed.items():
        set_by_user = settings.get(name, os.environ.get(name, value))
        if set_by_user == value:
            continue
        reason = f"has no effect in a launch that needs {name}={value} for its ranks or its algorithms"
        if name in settings:
            raise InputError(f"--env {name}={set_by_user} {reason}; omit it, or measure other points")
        raise InputError(
            f"the variable {name}={set_by_user} of the environment {reason}; unset {name}, or measure other "
            "points"
        )


def variables_to_set(
    mpi: Flavour, needed: Mapping[str, str], preferred: Mapping[str, str] = _NONE
) -> dict[str, str]:
    """Return what a launch sets besides the user's variables; of `preferred`, what the user has not set.

    Raises InputError for a conflict with `needed`, see `refuse_conflicts`.
    """
    refuse_conflicts(mpi.settings, needed)
    free = {
        name: value
        for name, value in preferred.items()
        if name not in mpi.settings and name not in os.environ
    }
    return free | dict(needed)


def left_behind(mpi: Flavour) -> list[str]:
    """Return the user's variables that Open MPI's mpiexec must be told to pass to other nodes."""
    return list(dict.fromkeys([*mpi.settings, *sorted(filter(_LEFT_BEHIND.match, os.environ))]))
