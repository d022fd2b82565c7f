"""What a reader chooses among collectives: operation, MPI, mapping and size; which sizes are drawn."""

from collections.abc import Sequence

from earlybird.data.units import format_bytes
from earlybird.report import words
from earlybird.report.collectives import Collective

MAX_SIZES = 5  # drawn against ranks, from the smallest to the largest; the tables have all


def choice(one: Collective) -> dict[str, str]:
    """All but the size."""
    return {"operation": words.operation(one.operation), "MPI": one.label, "mapped by": one.map_by or "-"}


def sized(one: Collective, size_bytes: int) -> dict[str, str]:
    return choice(one) | {"size": format_bytes(size_bytes)}


def drawn_sizes(one: Collective, found: Sequence[Collective]) -> list[int]:
    """MAX_SIZES of those that its operation was measured with; its own where `one` has none of them."""
    alike = [other for other in found if other.operation == one.operation]
    common = _few(sorted({size for other in alike for size in other.sizes()}))
    return [size for size in common if size in one.sizes()] or _few(one.sizes())


def _few(sizes: Sequence[int]) -> list[int]:
    last = len(sizes) - 1
    return sorted({sizes[round(last * k / (MAX_SIZES - 1))] for k in range(MAX_SIZES)})


def choices(found: Sequence[Collective]) -> dict[str, list[str]]:
    """The values that there are of every choice, in order."""
    sizes = sorted({size for one in found for size in drawn_sizes(one, found)})
    named = [choice(one) for one in found]
    return {name: list(dict.fromkeys(told[name] for told in named)) for name in named[0]} | {
        "size": [format_bytes(size) for size in sizes]
    }


def setting_words(one: Collective) -> str:
    """`broadcast, Open MPI, mapped by node`."""
    mapped = f", mapped by {one.map_by}" if one.map_by else ""
    return f"{words.operation(one.operation)}, {one.label}{mapped}"
