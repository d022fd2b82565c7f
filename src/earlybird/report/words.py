"""The words of the report: names of MPI flavours, levels and models as people read them."""

from collections.abc import Sequence

from earlybird.data.units import format_bytes

FLAVOURS = {"mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI", "system": "the system's MPI"}
LEVELS = {"intra_socket": "within a socket", "inter_socket": "between sockets", "inter_node": "between nodes"}
# Ways to send a buffer in partitions, in the order of legends: their words and the letters of a small cell.
WAYS = {
    "single": ("one message", "S"),
    "many": ("a message per partition", "M"),
    "partitioned": ("the MPI's partitioned calls", "P"),
    "earlybird": ("libearlybird", "E"),
    "earlybird-fresh": ("libearlybird, nothing learned", "E0"),
    "stream": ("MPIX streams", "X"),
    "rma-single-passive": ("RMA, one window, passive", "1p"),
    "rma-many-passive": ("RMA, many windows, passive", "Np"),
    "rma-single-active": ("RMA, one window, active", "1a"),
    "rma-many-active": ("RMA, many windows, active", "Na"),
    "rma-fence": ("RMA, fence", "F"),
}
MODELS = ("staircase", "fair", "max-rate", "postal")


def flavour(name: str) -> str:
    return FLAVOURS.get(name, name)


def level(name: str) -> str:
    return LEVELS.get(name, name.replace("_", " "))


def way(name: str) -> str:
    """`earlybird:4096` is libearlybird with at most 4096 bytes in a message that gathers partitions."""
    known, _, bound = name.partition(":")
    text = WAYS[known][0] if known in WAYS else known
    return (
        f"{text}, up to {format_bytes(int(bound))}"
        if bound.isdecimal()
        else text + f", {bound}" * bool(bound)
    )


def way_letters(name: str) -> str:
    """One or two letters for a cell too small for words."""
    known = name.partition(":")[0]
    return WAYS[known][1] if known in WAYS else known[:2]


def way_order(name: str) -> tuple[int, int, str]:
    """Sorts ways as WAYS does, the bounds of one way by size."""
    known, _, bound = name.partition(":")
    position = list(WAYS).index(known) if known in WAYS else len(WAYS)
    return position, int(bound) if bound.isdecimal() else -1, name


def level_order(name: str) -> int:
    return list(LEVELS).index(name) if name in LEVELS else len(LEVELS)


def model_order(name: str) -> int:
    return MODELS.index(name) if name in MODELS else len(MODELS)


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def listed_briefly(words: Sequence[str], limit: int = 3) -> str:
    """As `listed`; of more than `limit` words the first ones and how many others there are."""
    over = len(words) - limit
    return listed(words if over <= 0 else [*words[:limit], counted(over, "other")])


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
