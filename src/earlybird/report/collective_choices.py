"""Selectors of the chapter on collectives: operation, MPI, mapping and size; and which sizes are drawn."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.report.collectives import Collective
from earlybird.report.parts import few

MAX_SIZES = 5  # with figures against ranks, from the smallest to the largest; the tables have all


def choice(collective: Collective) -> dict[str, str]:
    """The value of every selector except the size."""
    return {
        "operation": labels.operation(collective.operation),
        "MPI": collective.label,
        "mapped by": collective.map_by or "-",
    }


def sized(collective: Collective, size_bytes: int) -> dict[str, str]:
    return choice(collective) | {"size": format_bytes(size_bytes)}


def drawn_sizes(collective: Collective, measured: Sequence[Collective]) -> list[int]:
    """At most MAX_SIZES of the sizes measured for the operation, or of its sizes if it has none of those."""
    same_operation = [other for other in measured if other.operation == collective.operation]
    for sizes in (sorted({size for other in same_operation for size in other.sizes()}), collective.sizes()):
        drawn = [sizes[k] for k in few(len(sizes), MAX_SIZES) if sizes[k] in collective.sizes()]
        if drawn:
            break
    return drawn


def choices(measured: Sequence[Collective]) -> dict[str, list[str]]:
    """The values of every selector, in order."""
    sizes = sorted({size for collective in measured for size in drawn_sizes(collective, measured)})
    chosen = [choice(collective) for collective in measured]
    return {name: list(dict.fromkeys(label[name] for label in chosen)) for name in chosen[0]} | {
        "size": [format_bytes(size) for size in sizes]
    }


def setting_text(collective: Collective) -> str:
    """`broadcast, Open MPI, mapped by node`."""
    mapped = f", mapped by {collective.map_by}" if collective.map_by else ""
    return f"{labels.operation(collective.operation)}, {collective.label}{mapped}"
