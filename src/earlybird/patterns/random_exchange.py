"""A random exchange: messages between ranks drawn at random, their sizes from a range."""

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.patterns.checks import (
    require_messages,
    require_other_rank,
    require_range,
    require_ranks,
    require_total_bytes,
)

DISTRIBUTIONS = ("log-uniform", "uniform")


def random_exchange(
    num_ranks: int,
    num_messages: int,
    *,
    min_size_bytes: int = 8,
    max_size_bytes: int = 1 << 20,
    distribution: str = "log-uniform",
    seed: int = 1,
    available_bytes: int | None = None,
) -> Pattern:
    """Return `num_messages` messages, each from a random rank to another random rank, the same for the same
    seed.

    Sizes are whole bytes in min_size_bytes..max_size_bytes, both included: `uniform`, or `log-uniform`, where
    each doubling of the size is equally likely (min_size_bytes is then 1 or more). Messages that take
    more than `available_bytes` of memory are refused. Raises InputError.
    """
    require_ranks(num_ranks)
    require_range(num_messages, "the number of messages", 0)
    require_messages(num_messages, available_bytes)
    require_range(seed, "the seed", 0)
    if num_messages:
        require_other_rank(num_ranks)
    if distribution not in DISTRIBUTIONS:
        raise InputError(f"the distribution is {distribution!r}; choose one of {', '.join(DISTRIBUTIONS)}")
    smallest = 1 if distribution == "log-uniform" else 0
    require_range(min_size_bytes, f"the smallest size of a {distribution} distribution", smallest)
    require_range(max_size_bytes, "the largest size", min_size_bytes)
    require_total_bytes(num_messages * max_size_bytes)
    rng = np.random.default_rng(seed)
    src = rng.integers(num_ranks, size=num_messages)
    # Counting from the sender onwards leaves the sender itself out and every other rank equally likely.
    dst = (src + rng.integers(1, max(num_ranks, 2), size=num_messages)) % num_ranks
    if distribution == "uniform":
        size_bytes = rng.integers(min_size_bytes, max_size_bytes, size=num_messages, endpoint=True)
    else:
        exponent = rng.uniform(np.log(min_size_bytes), np.log(max_size_bytes + 1), num_messages)
        # exp(log(...)) may round to just outside either end.
        size_bytes = np.clip(np.exp(exponent).astype(np.int64), min_size_bytes, max_size_bytes)
    return Pattern(src, dst, size_bytes)
