"""Draws of launches for the replicates of a form."""

from collections.abc import Sequence

import numpy as np
import pandas

NUM_REPLICATES = 20


def draws(table: pandas.DataFrame, columns: Sequence[str], seed: int) -> tuple[list[list[str]], set[str]]:
    """Return NUM_REPLICATES draws of launches, with replacement among those with the same rows of `columns`;
    and the launches without such a counterpart.

    All forms use the same draws, so that their replicates are correlated like their launches.
    """
    strata: dict[frozenset, list[str]] = {}
    for launch, rows in table.groupby("launch"):
        strata.setdefault(frozenset(map(tuple, rows[list(columns)].to_numpy())), []).append(launch)
    random = np.random.default_rng(seed)
    drawn = [
        [launch for members in strata.values() for launch in random.choice(members, len(members))]
        for _ in range(NUM_REPLICATES)
    ]
    return drawn, {members[0] for members in strata.values() if len(members) == 1}
