"""How far runs of a recorded program differ, by how the recorded one differs in itself."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from earlybird.models.program import Operation
from earlybird.record.operations import Operations

# The run is divided into so many blocks or up to twice as many, fewer of a site with few calls, and calls are
# compared if there are so many.
MIN_BLOCKS, MIN_CALLS = 20, 8
# Calls of a block: what alternates from call to call is in each.
MIN_LENGTH = 2


def other_run_s(operations: Operations, seconds: np.ndarray, seed: int) -> np.ndarray:
    """Return the seconds of the operations in a run that might as well have been recorded.

    What a thread computes before the calls of a site, and what these cost, is divided into blocks of calls
    that follow each other. Of two neighbouring blocks one is chosen at random and happens twice (a balanced
    half of the run): the spread of the sums over such runs is the deviation between runs, if blocks vary
    independently. What repeats within a block, and what becomes more over the run, counts little.
    """
    other = np.array(seconds, float)
    for group in _groups(operations):
        random = np.random.default_rng([seed, group.site, group.num])
        pairs = len(group.blocks)
        is_second = random.integers(2, size=pairs)
        taken = group.blocks[np.arange(pairs), is_second]
        other[group.calls[:, group.blocks]] = seconds[group.calls[:, taken]][:, :, None, :]
    return other


def num_pairs(operations: Operations, seconds: np.ndarray) -> float:
    """Return of how many pairs of blocks the deviation of `other_run_s` is, in effect: of sites that differ
    in how much they vary, by the rule of Welch and Satterthwaite."""
    total = squares = 0.0
    for group in _groups(operations):
        pairs = len(group.blocks)
        sums_s = seconds[group.calls[:, group.blocks]].sum(axis=-1)
        variance = float((np.diff(sums_s, axis=-1) ** 2).sum())
        total, squares = total + variance, squares + variance**2 / pairs
    return total**2 / squares if squares else math.inf


@dataclass(frozen=True, eq=False)
class _Group:
    """What threads do at a site that are in step there, as they call it as often.

    Attributes
    ----------
    site, num : the site and how often each calls it.
    calls : (R, num) operations, a row for each thread and kind of operation.
    blocks : (pairs, 2, length) calls of each pair of neighbouring blocks.
    """

    site: int
    num: int
    calls: np.ndarray
    blocks: np.ndarray


@lru_cache(maxsize=3)
def _groups(operations: Operations) -> tuple[_Group, ...]:
    """Return the calls of which other runs are drawn."""
    kind, site = operations.operation, operations.site
    is_own = (kind == Operation.COMPUTE) | (kind == Operation.ENTER) | (kind == Operation.WAIT_ALL)
    thread = np.repeat(operations.row, np.diff(operations.first))
    chosen = np.flatnonzero(is_own & (site >= 0))
    order = chosen[np.lexsort([chosen, kind[chosen], site[chosen], thread[chosen]])]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff([thread[order], site[order], kind[order]], axis=1) != 0).any(axis=0)
    first = np.flatnonzero(begins)
    nums = np.diff(first, append=len(order))
    first, nums = first[nums >= MIN_CALLS], nums[nums >= MIN_CALLS]
    sites = site[order[first]]
    found = []
    for at, num in np.unique(np.column_stack([sites, nums]), axis=0).tolist():
        rows = first[(sites == at) & (nums == num)]
        length = max(num // MIN_BLOCKS, MIN_LENGTH)
        pairs = num // length // 2
        blocks = np.arange(2 * pairs * length).reshape(pairs, 2, length)
        found.append(_Group(at, num, order[rows[:, None] + np.arange(num)], blocks))
    return tuple(found)


def unexplained_deviation_s(operations: Operations, end_s: np.ndarray) -> tuple[float, int]:
    """Return the deviation between runs of what calls took beyond the simulation, and of how many pairs of
    blocks it is: `end_s`, (N,), are the ends of the operations as simulated.

    It is of the thread with the most operations; again, the differences of neighbouring blocks count. Waits
    for the messages of a broadcast have no recorded end of their own, and do not count.
    """
    if not len(operations.recorded_end_s):
        return 0.0, 1
    thread = int(np.diff(operations.first).argmax())
    here = slice(operations.first[thread], operations.first[thread + 1])
    is_recorded = (operations.operation[here] == Operation.WAIT_ALL) & (operations.event[here] >= 0)
    beyond_s = (operations.recorded_end_s[here] - end_s[here])[is_recorded]
    if len(beyond_s) < MIN_CALLS:
        return 0.0, 1
    edges = np.linspace(0, len(beyond_s) - 1, min(MIN_BLOCKS, len(beyond_s) // 2 * 2 - 2) + 1)
    of_block_s = np.diff(beyond_s[edges.round().astype(int)])
    differences_s = of_block_s[::2] - of_block_s[1::2]
    return float(np.sqrt((differences_s**2).sum())), len(differences_s)
