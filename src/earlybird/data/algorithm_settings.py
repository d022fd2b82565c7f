"""Which settings of a run select the algorithms of its collective operations, and which algorithm that is."""

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
# Files of rules for all operations.
_OF_ALL = re.compile(
    r"MPIR_CVAR_(CH4_|CH4_POSIX_)?COLL_SELECTION_TUNING_JSON_FILE|OMPI_MCA_coll_tuned_dynamic_rules_filename"
    r"|I_MPI_TUNING_BIN|I_MPI_ADJUST_CONFIG\w*"
)
# Values with which a variable selects nothing.
_FREE = ("", "auto", "ignore")


def selecting_variable(family: str | None, operation: str) -> str:
    """Return the name of the variable that selects an algorithm of `operation`; "" for an unknown MPI."""
    form = _SELECTS.get(family or "", "")
    return form.format(upper=operation.upper(), lower=operation.lower())


def algorithm_settings(settings: Mapping[str, str], operation: str) -> dict[str, str]:
    """Return those of `settings`, a rank's environment, that select an algorithm of `operation`."""
    name = operation.upper()
    # MPIR_CVAR_REDUCE_SCATTER_... is of another operation than MPIR_CVAR_REDUCE_...
    other = "(?!SCATTER|scatter)" if operation == "reduce" else ""
    # MPICH then uses the algorithm of the nonblocking operation.
    nonblocking = "I?" if settings.get(f"MPIR_CVAR_{name}_INTRA_ALGORITHM") == "nb" else ""
    own = re.compile(
        rf"MPIR_CVAR_{nonblocking}{name}_{other}\w*(ALGORITHM|TREE_\w+)"
        rf"|I_MPI_ADJUST_{name}(_{other}(COMPOSITION|NETWORK|NODE)\w*)?"
        rf"|OMPI_MCA_coll_(tuned|han)_{operation}_{other}\w*algorithm\w*"
    )
    return {
        key: value
        for key, value in settings.items()
        if (own.fullmatch(key) or _OF_ALL.fullmatch(key)) and value.strip().lower() not in _FREE
    }


def selected_method(
    family: str | None, operation: str, settings: Mapping[str, str], methods: Iterable[str], ranks: int
) -> str | None:
    """Return which of `methods` the `settings` select; None if none of these."""
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
        wanted = algorithm_settings(dict(one.split("=", 1) for one in text.split() if "=" in one), operation)
        if wanted and wanted.items() <= settings.items():
            matching[method] = len(wanted)
    return max(matching, key=lambda method: matching[method], default=None)
