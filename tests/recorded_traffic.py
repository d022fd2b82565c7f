"""Messages of programs that are recorded, and what the recording must contain."""

from collections import Counter

RANKS = 4


def pairs_of(totals):
    """{(src, dst): (messages, bytes)}"""
    sums = totals.by_pair()
    columns = (getattr(sums, name).tolist() for name in ("src", "dst", "messages", "bytes"))
    return {(src, dst): (messages, size) for src, dst, messages, size in zip(*columns, strict=True)}


def expected(messages, times):
    counts, sizes = Counter(), Counter()
    for src, dst, size in messages:
        counts[src, dst] += times
        sizes[src, dst] += times * size
    return {pair: (counts[pair], sizes[pair]) for pair in counts}


def phases_of(recording, styles):
    """{style: {rank: numbers of its phases}} of a program that exchanged these styles one after another.

    The k-th style is in the region k + 2 of MPI_Pcontrol.
    """
    return {
        style: {
            rank: [number for number, phase in one.phases.items() if phase.region == region]
            for rank, one in recording.ranks.items()
        }
        for region, style in enumerate(styles, 2)
    }
