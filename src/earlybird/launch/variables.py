"""The environment variables of a launch: what it needs, what it prefers, and what the user has set."""

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from earlybird.data.collective_algorithms import Forcing
from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import BOOKKEEPING, RECORDED, is_set_by_launcher
from earlybird.machine.flavours import Flavour

# Open MPI's mpiexec passes only its own variables to other nodes, not those of the libraries below it.
_LEFT_BEHIND = re.compile(r"^(UCX_|FI_|OMP_)")
# What the flavour decides, and what differs between shells for other programs: the MPI's version says which
# libraries it means.
_NO_SETTING = frozenset({"I_MPI_ROOT", "LD_LIBRARY_PATH"})
_ADJUSTED_PART = re.compile("(I_MPI_ADJUST_[A-Z]+)_")
_NONE: Mapping[str, str] = MappingProxyType({})


def refuse_conflicts(settings: Mapping[str, str], needed: Mapping[str, str]) -> None:
    """Raise InputError for a variable of the user that conflicts with what the launch needs: it would have no
    effect.

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


def refuse_placement(settings: Mapping[str, str], placing: str, set_by_launch: Iterable[str]) -> None:
    """Raise InputError for a variable of the user that matches `placing`, the names of those by which an MPI
    would place ranks differently from what the launch sets.

    `settings` are those of --env, which replace the shell's.
    """
    names = {*settings, *os.environ} - {*set_by_launch}
    for name in sorted(filter(re.compile(placing).fullmatch, names)) if placing else ():
        value = settings.get(name, os.environ.get(name))
        given, remedy = (
            (f"--env {name}={value}", "omit it")
            if name in settings
            else (f"the variable {name}={value} of the environment", f"unset {name}")
        )
        raise InputError(
            f"{given} would place ranks otherwise than the layout and the binding of this launch say; "
            f"{remedy}"
        )


def refuse_replaced(mpi: Flavour, environment: Mapping[str, str], forcings: Iterable[Forcing]) -> None:
    """Raise InputError for a variable of the user that forced algorithms replace, or that replaces them.

    Control variables are written while the ranks run, those of `default` too: the user's value would no
    longer apply. Intel MPI's I_MPI_ADJUST_BCAST precedes the variables of the operation's parts that
    `environment`, the variables of the points, may have instead.
    """
    prefix = "OMPI_MCA_" if mpi.family == "openmpi" else ""
    written = {
        f"{prefix}{name}": None for forcing in forcings for name in (*forcing.communicator, *forcing.call)
    }
    if written and mpi.family == "openmpi":
        written["OMPI_MCA_coll_tuned_dynamic_rules_filename"] = None
    whole = [match[1] for match in map(_ADJUSTED_PART.match, environment) if match]
    for name in (*written, *whole):
        if name in mpi.settings or name in os.environ:
            value = mpi.settings.get(name, os.environ.get(name))
            remedy = "omit --env" if name in mpi.settings else f"unset {name}"
            raise InputError(
                f"the variable {name}={value} selects algorithms, and so does this measurement; {remedy}, or "
                "measure --algorithm default alone"
            )


def recorded_variables(mpi: Flavour, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return the part of `environment` that a launch record stores; variables of --env that are not set are
    None."""
    names = {*filter(RECORDED.match, environment), *mpi.settings, *mpi.compared}
    return {name: environment.get(name) for name in sorted(names)}


def refuse_changed(mpi: Flavour, launches: Iterable[Mapping[str, Any]], where: Any) -> None:
    """Raise InputError for a variable of the user that differs now from `launches`, the records of earlier
    launches of `mpi` in the run `where`: its samples would be of two settings."""
    present = recorded_variables(mpi, mpi.environment() | dict(mpi.settings))
    for launch in launches:
        recorded = launch.get("environment")
        if not isinstance(recorded, Mapping) or not isinstance(launch.get("set_by_launcher"), list):
            continue  # of an earlier version, which does not tell what the user set
        for name in sorted(recorded.keys() | present.keys()):
            if name not in recorded and not RECORDED.match(name):
                continue  # an earlier version did not record it for the side that has the shell's
            before, now = recorded.get(name), present.get(name)
            # What earlybird set it sets again, if the user does not.
            again = now is None and is_set_by_launcher(launch, name)
            if before == now or again or name in _NO_SETTING or BOOKKEEPING.match(name):
                continue
            was, value = ("not set" if one is None else repr(one) for one in (before, now))
            restore = f"unset {name}" if before is None else f"set {name}={before} again"
            if is_set_by_launcher(launch, name):
                restore = f"unset {name}, which earlybird sets itself"
            raise InputError(
                f"the variable {name} was {was} when {where} was measured and is {value} now, and a run has "
                f"one setting; {restore}, or measure into another folder"
            )


def variables_to_set(
    mpi: Flavour, needed: Mapping[str, str], preferred: Mapping[str, str] = _NONE
) -> dict[str, str]:
    """Return what a launch sets besides the user's variables; from `preferred`, only what the user has not
    set.

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
    """Return the user's variables that Open MPI's mpiexec must be instructed to pass to other nodes."""
    return list(dict.fromkeys([*mpi.settings, *sorted(filter(_LEFT_BEHIND.match, os.environ))]))
