"""The settings of a run that select the algorithms of its collectives, and the selected algorithm."""

import re
from collections.abc import Iterable, Mapping

from earlybird.data.collective_algorithms import parse_method
from earlybird.data.collective_configuration import setting
from earlybird.data.errors import InputError

# The variable that selects an algorithm of an operation, by the family of the MPI.
_SELECTS = {
    "mpich": "MPIR_CVAR_{upper}_INTRA_ALGORITHM",
    "openmpi": "OMPI_MCA_coll_tuned_{lower}_algorithm",
    "intel": "I_MPI_ADJUST_{upper}",
}
# What selects for all operations: files of rules, components, and whether collectives are those of a device
# or of nodes with shared memory. A priority of `tuned` only makes its forced algorithms have effect.
_OF_ALL = re.compile(
    r"MPIR_CVAR_(CH4_|CH4_POSIX_)?COLL_SELECTION_TUNING_JSON_FILE|OMPI_MCA_coll_tuned_dynamic_rules_filename"
    r"|I_MPI_TUNING_BIN|I_MPI_ADJUST_CONFIG\w*"
    r"|MPIR_CVAR_DEVICE_COLLECTIVES|MPIR_CVAR_ENABLE_(SMP_COLLECTIVES|HCOLL)"
    r"|OMPI_MCA_coll|OMPI_MCA_coll_(ucc|hcoll)_enable|OMPI_MCA_coll_(?!tuned_)[a-z]+_priority"
    r"|I_MPI_COLL_(INTRANODE|EXTERNAL|DIRECT)\w*"
)
# Values with which any variable selects nothing, and those of some, which are their defaults.
_FREE = ("", "auto", "ignore")
_OFF, _ON = ("0", "false", "no", "off", "disable"), ("1", "true", "yes", "on", "enable")
_DEFAULTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"MPIR_CVAR_\w+_COMPOSITION|OMPI_MCA_coll_\w+_algorithm"), ("0",)),
    (re.compile(r"OMPI_MCA_coll_\w+_enable|MPIR_CVAR_ENABLE_HCOLL|I_MPI_COLL_EXTERNAL"), _OFF),
    (re.compile(r"MPIR_CVAR_\w+_DEVICE_COLLECTIVE|MPIR_CVAR_ENABLE_SMP_\w+"), _ON),
    (re.compile("MPIR_CVAR_DEVICE_COLLECTIVES"), ("percoll",)),
    (re.compile(r"I_MPI_ADJUST_\w+"), ("-1",)),
)


def selecting_variable(family: str | None, operation: str) -> str:
    """Return the name of the variable that selects an algorithm of `operation`; "" for an unknown MPI."""
    form = _SELECTS.get(family or "", "")
    return form.format(upper=operation.upper(), lower=operation.lower())


def algorithm_settings(settings: Mapping[str, str], operation: str) -> dict[str, str]:
    """Return the variables in `settings`, a rank's environment, that select an algorithm of `operation` or
    change which one the MPI chooses."""
    name, other = operation.upper(), _of_another(operation)
    limits = re.compile(
        # Not those between two groups of processes.
        rf"MPIR_CVAR_{name}_{other}(?!INTER_)\w*(MSG_SIZE|MIN_PROCS|THROTTLE|COMPOSITION|DEVICE_COLLECTIVE)"
        rf"|MPIR_CVAR_ENABLE_SMP_{name}|MPIR_CVAR_MAX_SMP_{name}_MSG_SIZE"
    )
    naming = _naming(settings, operation)
    return {
        key: value
        for key, value in settings.items()
        if any(names.fullmatch(key) for names in (naming, limits, _OF_ALL)) and not _is_free(key, value)
    }


def _of_another(operation: str) -> str:
    """Return a pattern that excludes variables of another operation whose name begins with `operation`:
    MPIR_CVAR_REDUCE_SCATTER_... is not a variable of reduce."""
    return "(?!SCATTER|scatter)" if operation == "reduce" else ""


def _naming(settings: Mapping[str, str], operation: str) -> re.Pattern[str]:
    """Return the form of the variables that name an algorithm of `operation`."""
    name, other = operation.upper(), _of_another(operation)
    # MPICH then uses the algorithm of the nonblocking operation.
    nonblocking = "I?" if settings.get(f"MPIR_CVAR_{name}_INTRA_ALGORITHM") == "nb" else ""
    return re.compile(
        rf"MPIR_CVAR_{nonblocking}{name}_{other}\w*(ALGORITHM|TREE_\w+)"
        rf"|I_MPI_ADJUST_{name}(_{other}(COMPOSITION|NETWORK|NODE)\w*)?"
        rf"|OMPI_MCA_coll_(tuned|han)_{operation}_{other}\w*algorithm\w*"
    )


def _is_free(name: str, value: str) -> bool:
    """Return whether a variable with this value selects nothing."""
    value = value.strip().lower()
    return value in _FREE or any(value in values for names, values in _DEFAULTS if names.fullmatch(name))


def selected_method(
    family: str | None, operation: str, settings: Mapping[str, str], methods: Iterable[str], ranks: int
) -> str | None:
    """Return which of `methods` the `settings` select; None if they select none of them."""
    if not family:
        return None
    matching: dict[str, int] = {}
    for method in methods:
        if not parse_method(method).is_forced:
            continue
        try:
            text = setting(family, operation, method, ranks)
        except InputError:  # an algorithm of another version
            continue
        forced = dict(one.split("=", 1) for one in text.split() if "=" in one)
        naming = _naming(forced, operation)
        wanted = {
            name: value
            for name, value in forced.items()
            if naming.fullmatch(name) and not _is_free(name, value)
        }
        if wanted and wanted.items() <= settings.items():
            matching[method] = len(wanted)
    return max(matching, key=lambda method: matching[method], default=None)
