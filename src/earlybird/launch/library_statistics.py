"""Reads from the output of a launch on which paths libearlybird's starts travelled (EARLYBIRD_STATS=1)."""

import re

from earlybird.data.paths import PATHS, SizePaths

_HEAD = re.compile(rf"^ *bytes of requests +partitions +{' +'.join(PATHS)}$", re.MULTILINE)
_ROW = re.compile(rf"\n *([0-9]+) +([0-9]+){' +([0-9]+)' * len(PATHS)}(?=\n|$)")


def paths_in(output: str) -> list[SizePaths]:
    """Return the rows of the table; none if the statistics were off."""
    rows: list[SizePaths] = []
    head = _HEAD.search(output)
    at = head.end() if head else len(output)
    while row := _ROW.match(output, at):
        size_bytes, partitions, *starts = map(int, row.groups())
        rows.append(
            {
                "size_bytes": size_bytes,
                "partitions": partitions,
                "starts": dict(zip(PATHS, starts, strict=True)),
            }
        )
        at = row.end()
    return rows
