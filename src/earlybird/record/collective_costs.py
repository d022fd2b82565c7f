"""What recorded collectives cost on another layout or MPI, by the forms of profiles that describe them."""

import numpy as np

from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.mpi_calls import OPERATIONS
from earlybird.data.profile import Profile
from earlybird.models.program import Operation
from earlybird.predict.collective import Placed, forms_of, measured_placement, predict_collective
from earlybird.record.operations import Operations


def _predicted_s(operation: str, size_bytes: int, profile: Profile, layout: Layout) -> float:
    """Return the time of a call among all ranks by the MPI's choice. Raises InputError if no form says it."""
    forms = forms_of(profile, operation)
    named = measured_placement(forms, layout, layout.num_ranks) or (layout, layout.text, "core")
    placed = Placed(named[0], layout.num_ranks, named[2], 0, named[1])
    return predict_collective(forms, placed, size_bytes, DEFAULT).predictions[0].time_s


def cost_ratios(
    operations: Operations, before: tuple[Profile, Layout], after: tuple[Profile, Layout]
) -> np.ndarray:
    """Return (K,) by how much longer each blocking collective takes with another profile and layout; NaN
    where their forms do not say it, or if neither forms nor layout are changed, as with `--set`."""
    ratios = np.full(len(operations.collective), np.nan)
    if before[0].forms is after[0].forms and before[1] is after[1]:
        return ratios
    entered = operations.argument[operations.operation == Operation.ENTER]
    is_of_all = np.bincount(entered, minlength=len(ratios)) == operations.size
    known: dict[tuple[str, int], float] = {}
    for k in np.flatnonzero(is_of_all & ~operations.is_immediate).tolist():
        key = OPERATIONS.get(operations.collective[k], ""), int(operations.collective_bytes[k])
        if key not in known:
            try:
                times_s = [_predicted_s(*key, *place) for place in (before, after)]
                known[key] = times_s[1] / times_s[0] if times_s[0] > 0 else np.nan
            except InputError:
                known[key] = np.nan
        ratios[k] = known[key]
    return ratios


def scaled(operations: Operations, ratios: np.ndarray) -> np.ndarray:
    """Return the seconds of the operations with the cost of collectives multiplied by known ratios."""
    own_s = np.array(operations.own_s, float)
    enters = np.flatnonzero(operations.operation == Operation.ENTER)
    own_s[enters] *= np.nan_to_num(ratios[operations.argument[enters]], nan=1.0)
    return own_s
