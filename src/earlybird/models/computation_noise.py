"""Compute the times that threads compute with the noise models of Temucin et al. 2022, from a seed."""

import numpy as np

_ALL_THREADS = 1 << 31  # in the place of a thread: what concerns the threads together


def thread_times_s(
    model: str, share: float, compute_s: float, seed: int, num_threads: int, rounds: np.ndarray
) -> np.ndarray:
    """Return (I, T) seconds that each thread computes in every round.

    C is `compute_s` and epsilon is `share`. `none`: C. `single`: one thread, drawn in each round, computes C
    (1 + epsilon), the others C. `uniform`: C (1 + epsilon u), u from [0, 1). `gaussian`: C max(x, 0), x from
    a normal distribution of mean 1 and standard deviation epsilon.

    As in native/kernels/computing/noise.cpp, each thread has a random state of its own, which the seed, its
    number and the round determine; the random numbers themselves are others.
    """
    times_s = np.full((len(rounds), num_threads), float(compute_s))
    for row, number in zip(times_s, rounds.tolist(), strict=True):
        if model == "single":
            row[_state(seed, _ALL_THREADS, number).integers(num_threads)] *= 1 + share
        elif model == "uniform":
            row *= [1 + share * _state(seed, thread, number).random() for thread in range(num_threads)]
        elif model == "gaussian":
            row *= [max(_state(seed, thread, number).normal(1, share), 0.0) for thread in range(num_threads)]
    return times_s


def _state(seed: int, thread: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, thread, number])
