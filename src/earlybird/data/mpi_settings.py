"""The environment variables of an MPI: in its name, `mpich+MPIR_CVAR_X=1`, and in records of launches."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from earlybird.data.errors import InputError

# How the names of variables begin by which users set an MPI, the libraries below it and OpenMP, and choose
# libraries; not of those in which launchers number their ranks. Kernels on nodes and the recorder keep the
# same: native/kernels/nodes/facts.cpp, native/recorder/recording/settings.c.
SETTINGS = (
    "MPIR_", "MPICH_", "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "I_MPI_", "HYDRA_", "UCX_", "FI_", "PSM2_",
    "PSM3_", "OMP_", "KMP_", "GOMP_", "LD_PRELOAD", "LD_LIBRARY_PATH", "EARLYBIRD_",
)  # fmt: skip
# What a launch record keeps of the environment, besides the variables of --env. There is no rank yet: also
# what starts them.
RECORDED = re.compile("|".join((*SETTINGS, "OMPI_", "PRTE_", "PMIX_", "SLURM_")))
# Variables that differ between launches without an effect on the cost of messages; of Slurm's, those that
# choose a network and a frequency have one.
BOOKKEEPING = re.compile(r"(SLURM_(?!(NETWORK|CPU_FREQ_REQ)$)|EARLYBIRD_|PMI)|.*_ALLOW_RUN_AS_ROOT")
# Variables that the launcher sets, for launch records without `set_by_launcher`.
_BY_LAUNCHER = re.compile(
    r"MPIR_CVAR_POLLS_BEFORE_YIELD$|OMPI_MCA_mpi_yield_when_idle$"
    r"|I_MPI_THREAD_YIELD$|I_MPI_FABRICS$|I_MPI_PIN"
)

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_BEGIN = re.compile(rf"\+(?={_NAME}=)")  # of a setting: the path of an mpicc and a value may contain a `+`


def split_settings(text: str) -> tuple[str, dict[str, str]]:
    """Split a name with settings: `mpich+X=1+Y=2` -> `mpich` and {X: 1, Y: 2}."""
    mpi, *settings = _BEGIN.split(text)
    return mpi, dict(one.split("=", 1) for one in settings)


def with_settings(mpi: str, settings: Mapping[str, str]) -> str:
    """Return `mpi` with `settings`, the inverse of `split_settings`; they replace settings that `mpi` has
    already."""
    name, before = split_settings(mpi)
    return "+".join([name, *(f"{key}={value}" for key, value in (before | dict(settings)).items())])


def alternatives(mpis: Sequence[str], variables: Iterable[str]) -> list[str]:
    """Return every MPI with every combination of `variables`, `NAME=VALUE` each.

    The values of one name are alternatives; different names are combined. `NAME` alone leaves it unchanged,
    as an alternative to a value. Raise InputError for anything else.
    """
    values: dict[str, list[dict[str, str]]] = {}
    for text in dict.fromkeys(variables):
        name, equals, value = text.partition("=")
        if not re.fullmatch(_NAME, name) or not value.isprintable():
            raise InputError(f"--env is {text!r}; give NAME=VALUE, such as MPIR_CVAR_CH4_NUM_VCIS=2")
        if _BEGIN.search(value):
            raise InputError(
                f"--env is {text!r}, whose value contains another variable; give --env once for each"
            )
        values.setdefault(name, []).append({name: value} if equals else {})
    if without := [name for name, of_name in values.items() if not any(of_name)]:
        raise InputError(
            f"--env is {without[0]!r}, which changes nothing; give {without[0]}=VALUE, or both to compare "
            "that value with the shell's"
        )
    return list(
        dict.fromkeys(
            with_settings(mpi, {name: value for one in chosen for name, value in one.items()})
            for mpi in mpis
            for chosen in itertools.product(*values.values())
        )
    )


def options_of(mpis: Sequence[str], *, has_env: bool = True) -> list[str]:
    """Return the arguments that select these MPIs with their settings, by --mpi and, if a command `has_env`,
    --env."""
    names = list(dict.fromkeys(split_settings(mpi)[0] for mpi in mpis))
    variables: list[str] = []
    for mpi in mpis:
        of_mpi = split_settings(mpi)[1]
        every = dict.fromkeys(name for other in mpis for name in split_settings(other)[1])
        variables += [f"{name}={of_mpi[name]}" if name in of_mpi else name for name in every]
    variables = list(dict.fromkeys(variables))
    if not has_env or alternatives(names, variables) != list(mpis):
        names, variables = list(mpis), []
    given = [("--mpi", name) for name in names] + [("--env", variable) for variable in variables]
    return [argument for option in given for argument in option]


def is_set_by_launcher(launch: Mapping[str, Any], name: str) -> bool:
    """Return whether earlybird, not the user, set the variable `name` of a launch record."""
    listed = launch.get("set_by_launcher")
    return bool(_BY_LAUNCHER.match(name)) if listed is None else name in listed
