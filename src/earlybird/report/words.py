"""The words of the report: names of MPI flavours, levels and models as people read them."""

from collections.abc import Sequence

FLAVOURS = {"mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI", "system": "the system's MPI"}
LEVELS = {"intra_socket": "within a socket", "inter_socket": "between sockets", "inter_node": "between nodes"}
WAYS = {"single": "one message", "many": "by partition"}
MODELS = ("staircase", "fair", "max-rate", "postal")


def flavour(name: str) -> str:
    return FLAVOURS.get(name, name)


def level(name: str) -> str:
    return LEVELS.get(name, name.replace("_", " "))


def way(name: str) -> str:
    return WAYS.get(name, name)


def level_order(name: str) -> int:
    return list(LEVELS).index(name) if name in LEVELS else len(LEVELS)


def model_order(name: str) -> int:
    return MODELS.index(name) if name in MODELS else len(MODELS)


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 rank`, `4 ranks`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def percent(fraction: float) -> str:
    """0.1234 -> `12 %`; below ten one digit more."""
    value = 100 * fraction
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.1f} %"


def signed_percent(fraction: float) -> str:
    return ("+" if fraction > 0 else "") + percent(fraction)


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
