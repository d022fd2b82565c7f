"""How far runs of a recorded program differ, by how the recorded one differs in itself."""

import numpy as np

from earlybird.models.program import Operation
from earlybird.record.operations import Operations

# The run is divided into so many blocks or up to twice as many, and calls are compared if there are so many.
MIN_BLOCKS, MIN_CALLS = 20, 8


def other_run_s(operations: Operations, seconds: np.ndarray, seed: int) -> np.ndarray:
    """Return the seconds of the operations in a run that might as well have been recorded.

    What a thread computes before the calls of a site, and what these cost, is divided into blocks of calls
    that follow each other. Of two neighbouring blocks one is chosen at random and happens twice (a balanced
    half of the run): the spread of the sums over such runs is the deviation between runs, if blocks vary
    independently. What repeats within a block, and what becomes more over the run, counts little.
    """
    kind, site = operations.operation, operations.site
    is_own = (kind == Operation.COMPUTE) | (kind == Operation.ENTER) | (kind == Operation.WAIT_ALL)
    thread = np.repeat(np.arange(len(operations.thread_rank)), np.diff(operations.first))
    chosen = np.flatnonzero(is_own & (site >= 0))
    order = chosen[np.lexsort([chosen, kind[chosen], site[chosen], thread[chosen]])]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff([thread[order], site[order], kind[order]], axis=1) != 0).any(axis=0)
    first = np.flatnonzero(begins)
    other = np.array(seconds, float)
    for calls in np.split(order, first[1:]):
        num = len(calls)
        if num < MIN_CALLS:
            continue
        # Threads that make as many calls there are in step, and get the same blocks.
        random = np.random.default_rng([seed, int(site[calls[0]]), num])
        length = max(num // MIN_BLOCKS, 1)
        pairs = num // length // 2
        is_second = np.repeat(random.integers(2, size=pairs), length)
        blocks = np.arange(2 * pairs * length).reshape(pairs, 2, length)
        taken = np.where(is_second.reshape(pairs, length), blocks[:, 1], blocks[:, 0])
        other[calls[blocks]] = seconds[calls[taken]][:, None, :]
    return other


def unexplained_deviation_s(operations: Operations, end_s: np.ndarray) -> float:
    """Return the deviation between runs of what calls took beyond the simulation: `end_s`, (N,), are the ends
    of the operations as simulated.

    It is of the thread with the most operations; again, the differences of neighbouring blocks count. Waits
    for the messages of a broadcast have no recorded end of their own, and do not count.
    """
    if not len(operations.recorded_end_s):
        return 0.0
    thread = int(np.diff(operations.first).argmax())
    here = slice(operations.first[thread], operations.first[thread + 1])
    is_recorded = (operations.operation[here] == Operation.WAIT_ALL) & (operations.event[here] >= 0)
    beyond_s = (operations.recorded_end_s[here] - end_s[here])[is_recorded]
    if len(beyond_s) < MIN_CALLS:
        return 0.0
    edges = np.linspace(0, len(beyond_s) - 1, min(MIN_BLOCKS, len(beyond_s) // 2 * 2 - 2) + 1)
    of_block_s = np.diff(beyond_s[edges.round().astype(int)])
    return float(np.sqrt(((of_block_s[::2] - of_block_s[1::2]) ** 2).sum()))
