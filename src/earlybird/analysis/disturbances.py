"""Describes what may have disturbed a measurement, from a run's record of its machine."""

from collections.abc import Mapping
from typing import Any

from earlybird.data.units import number_or_none

_SLOW_GOVERNORS = ("powersave", "ondemand", "conservative", "schedutil")
_IDLE_LOAD = 0.5  # up to this a machine counts as idle


def load_of(machine: Mapping[str, Any]) -> float | None:
    """Return the load at the start of a run; None if the file does not have it."""
    load = machine.get("load")
    return number_or_none(load[0] if isinstance(load, list) and load else load)


def overload_of(machine: Mapping[str, Any]) -> float | None:
    """Return the load if other work kept every core busy at the start of a run; a lower load may be that of
    an earlier run."""
    load, cores = load_of(machine), machine.get("cores")
    if load is None or not isinstance(cores, int) or isinstance(cores, bool):
        return None
    return load if load > cores else None


def noise_remedy(machine: Mapping[str, Any]) -> str:
    """Return how to reduce the noise, as a clause."""
    remedies = ["measure longer with a larger --budget"]
    governor = machine.get("governor")
    if governor in _SLOW_GOVERNORS:
        remedies.append(f"set the frequency governor from {governor} to performance")
    load = load_of(machine)
    if load is not None and load > _IDLE_LOAD:
        remedies.append(f"wait until the machine is idle (its load was {load:.1f} at the start)")
    return ", or ".join(remedies)
