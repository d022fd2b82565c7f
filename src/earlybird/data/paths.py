"""The paths of partitioned requests (docs/node-memory.md), and the starts that travelled on each."""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from earlybird.data.schema import Bytes, Count, Natural
from earlybird.data.units import format_bytes

PATHS = ("message", "ring", "direct")


class SizePaths(TypedDict):
    """The starts of the send requests of one size.

    Attributes
    ----------
    size_bytes : bytes of a request.
    partitions : its partitions.
    starts : starts by path: `message`, `ring`, `direct`.
    """

    size_bytes: Bytes
    partitions: Count
    starts: dict[str, Natural]


def paths_texts(launches: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a text for each MPI and size of requests in these launches: the share of its starts on each
    path."""
    sums: dict[tuple[str, int, int], dict[str, int]] = {}
    for launch in launches:
        for row in launch.get("paths") or ():
            key = str(launch.get("flavour", "")), row["size_bytes"], row["partitions"]
            of_size = sums.setdefault(key, dict.fromkeys(PATHS, 0))
            for path in PATHS:
                of_size[path] += row["starts"].get(path, 0)
    has_several = len({flavour for flavour, _, _ in sums}) > 1
    texts = []
    for (flavour, size_bytes, partitions), starts in sorted(sums.items()):
        total = max(sum(starts.values()), 1)
        used = ", ".join(f"{path} {starts[path] / total:.0%}" for path in PATHS if starts[path])
        name = f"{flavour} " if has_several else ""
        texts.append(f"{name}{format_bytes(size_bytes)} in {partitions}: {used}")
    return texts
