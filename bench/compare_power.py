"""How often `earlybird compare` calls a point changed: slowdowns planted in simulated runs, and none at all.

Medians of launches vary log-normally by 1 %. A fifth and a half of 100 points are slower by the same factor;
the table has the share of them that is significant. Takes seconds.
"""

import numpy as np

from earlybird.compare import changes
from earlybird.compare.runs import LEVEL
from earlybird.present.render.terminal import print_rows

POINTS, PAIRS, NOISE = 100, 200, 0.01
SLOWDOWNS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10, 0.20)


def main() -> int:
    """Print the table; 0."""
    rows = []
    for launches in (5, 10):
        for changed in (POINTS // 5, POINTS // 2):
            shares = [_found(launches, changed, slowdown) for slowdown in SLOWDOWNS]
            rows.append([launches, f"{changed} of {POINTS}", *(f"{100 * share:.1f} %" for share in shares)])
    print_rows(["launches", "slower", *(f"by {100 * one:g} %" for one in SLOWDOWNS)], rows)
    return 0


def _found(launches: int, changed: int, slowdown: float) -> float:
    """The share of the changed points that is significant; without a slowdown, that of all points."""
    sides = np.exp(NOISE * np.random.default_rng(1).standard_normal((2, PAIRS, POINTS, launches)))
    sides[1, :, :changed] *= 1 + slowdown
    p = changes.p_values(*sides.reshape(2, PAIRS * POINTS, launches)).reshape(PAIRS, POINTS)
    found = np.array([changes.adjusted(row) for row in p]) <= LEVEL
    return float(found[:, :changed].mean() if slowdown else found.mean())
