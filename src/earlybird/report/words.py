"""The words of the report: names of MPI flavours, levels and models as people read them."""

from collections.abc import Sequence

from earlybird.data.units import format_bytes

FLAVOURS = {
    "mpich": "MPICH",
    "openmpi": "Open MPI",
    "intel": "Intel MPI",
    "system": "the system's MPI",
    "simgrid": "SimGrid's SMPI",
}
LEVELS = {"intra_socket": "within a socket", "inter_socket": "between sockets", "inter_node": "between nodes"}
# Methods to send a buffer in partitions, in the order of legends: their words and the letters of a small
# cell.
METHODS = {
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
# Algorithms of collectives, likewise; `own-` before one is ours, on point-to-point calls.
ALGORITHMS = {
    "default": ("the MPI's own choice", "D"),
    "linear": ("linear", "L"),
    "pipeline": ("pipeline", "P"),
    "binomial": ("binomial tree", "B"),
    "chain": ("chains", "C"),
    "binary": ("binary tree", "Y"),
    "split-binary": ("split binary tree", "SY"),
    "in-order-binary": ("binary tree in order", "IY"),
    "knomial": ("k-nomial tree", "K"),
    "scatter-allgather": ("scatter and allgather", "SA"),
    "scatter-ring-allgather": ("scatter and ring", "SR"),
    "ring": ("ring", "R"),
    "recursive-doubling": ("recursive doubling", "RD"),
    "rabenseifner": ("Rabenseifner", "Rb"),
    "bruck": ("Bruck", "Bk"),
    "pairwise": ("pairwise", "PW"),
    "segmented-ring": ("ring in segments", "RS"),
    "double-ring": ("double ring", "DR"),
    "neighbor-exchange": ("neighbour exchange", "NX"),
    "dissemination": ("dissemination", "DS"),
    "reduce-bcast": ("reduce and broadcast", "RB"),
    "linear-sync": ("linear, synchronised", "LS"),
    "linear-nonblocking": ("linear, nonblocking", "LN"),
    "sparbit": ("Sparbit", "Sp"),
    "tree": ("tree", "T"),
    "two-ranks": ("two ranks alone", "2"),
}
OWN = "own-"
OPERATIONS = {
    "bcast": "broadcast",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
}
MODELS = ("staircase", "fair", "max-rate", "postal")


def flavour(name: str) -> str:
    return FLAVOURS.get(name, name)


def level(name: str) -> str:
    return LEVELS.get(name, name.replace("_", " "))


def method(name: str) -> str:
    """`earlybird:4096` is libearlybird with at most 4096 bytes in a message that gathers partitions;
    `own-pipeline:4096` our pipeline, in segments of as many."""
    known, _, bound = name.partition(":")
    if known not in METHODS:
        return algorithm(name)
    text = METHODS[known][0]
    return (
        f"{text}, up to {format_bytes(int(bound))}"
        if bound.isdecimal()
        else text + f", {bound}" * bool(bound)
    )


def algorithm(name: str) -> str:
    """`our pipeline in segments of 4 KiB`; one of 0 bytes is the whole message, which goes without saying."""
    known, _, segment = name.partition(":")
    base = known.removeprefix(OWN)
    text = ("our " if base != known else "") + (ALGORITHMS[base][0] if base in ALGORITHMS else base)
    if not segment.isdecimal():
        return text + f", {segment}" * bool(segment)
    return f"{text} in segments of {format_bytes(int(segment))}" if int(segment) else text


def operation(name: str) -> str:
    return OPERATIONS.get(name, name)


def method_letters(name: str) -> str:
    """One or two letters for a cell too small for words; `o` before what is ours."""
    known = name.partition(":")[0]
    if known in METHODS:
        return METHODS[known][1]
    base = known.removeprefix(OWN)
    return "o" * (base != known) + (ALGORITHMS[base][1] if base in ALGORITHMS else base[:2])


def method_order(name: str) -> tuple[int, bool, int, str]:
    """Sorts methods as METHODS and ALGORITHMS do, ours after the MPI's, the bounds of one method by size."""
    known, _, bound = name.partition(":")
    base = known.removeprefix(OWN)
    names = [*METHODS, *ALGORITHMS]
    position = names.index(base) if base in names else len(names)
    return position, base != known, int(bound) if bound.isdecimal() else -1, name


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
