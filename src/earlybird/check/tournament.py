"""Round-robin tournaments: every pair of nodes meets once, in rounds of disjoint pairs."""


def num_rounds(players: int) -> int:
    """Return one less than players if their number is even, otherwise as many."""
    return players - 1 if players % 2 == 0 else players


def opponent(player: int, round_: int, players: int) -> int:
    """Return the node that `player` meets in a round; itself if it pauses. See
    native/kernels/nodes/tournament.hpp."""
    rounds = num_rounds(players)
    last = rounds
    across = (round_ - player) % rounds
    if players % 2:
        return across
    if player != last:
        return last if across == player else across
    return next(other for other in range(rounds) if (2 * other - round_) % rounds == 0)


def pairs_of(round_: int, players: int) -> list[tuple[int, int]]:
    """Return the pairs of a round, the lower number first."""
    met = ((one, opponent(one, round_, players)) for one in range(players))
    return [(one, other) for one, other in met if one < other]


def round_of(one: int, other: int, players: int) -> int:
    """Return the round in which two nodes meet."""
    rounds = num_rounds(players)
    last = rounds
    if players % 2 == 0 and last in (one, other):
        return 2 * min(one, other) % rounds
    return (one + other) % rounds
