"""Display names of MPI flavours, levels, methods and algorithms, and helpers for sentences."""

import re
from collections.abc import Collection, Iterable, Sequence

from earlybird.data.errors import InputError
from earlybird.data.levels import LEVEL_LABELS, LEVELS, UNKNOWN_MAPPING
from earlybird.data.methods import OWN, PERSISTENT_PREFIX, SEGMENTED
from earlybird.data.mpi_settings import split_settings
from earlybird.data.units import format_bytes, whole_number

FLAVOURS = {
    "mpich": "MPICH",
    "openmpi": "Open MPI",
    "intel": "Intel MPI",
    "system": "the system's MPI",
    "simgrid": "SimGrid's SMPI",
}
# What `import` also takes: MPIs that are not installed here.
OTHER_MPIS = (
    "bullxmpi", "craympich", "fujitsu", "hpcx", "hpe", "mpt", "mvapich", "nvidia", "parastation", "spectrum",
)  # fmt: skip
_NAMES_IN_SMALL_LETTERS = frozenset(
    ("libearlybird", "mpiexec", "srun", "neighbor_allgather", "neighbor_alltoall", "neighbor_alltoallv",
     *OTHER_MPIS)
)  # fmt: skip
# Methods that send a buffer in partitions, in legend order: display name, and letters for a small cell.
METHODS = {
    "single": ("single message", "S"),
    "many": ("message per partition", "M"),
    "partitioned": ("MPI partitioned communication", "P"),
    "earlybird": ("libearlybird", "E"),
    "earlybird-partition": ("libearlybird, message per partition", "EM"),
    "earlybird-segments": ("libearlybird", "EN"),
    "earlybird-fresh": ("libearlybird, first starts", "E0"),
    "stream": ("MPIX streams", "X"),
    "rma-single-passive": ("RMA, one window, passive", "1p"),
    "rma-many-passive": ("RMA, many windows, passive", "Np"),
    "rma-single-active": ("RMA, one window, active", "1a"),
    "rma-many-active": ("RMA, many windows, active", "Na"),
    "rma-fence": ("RMA, fence", "F"),
}
# The styles of motifs that are no methods above.
STYLES = {
    "funnelled": "funnelled communication",
    "persistent": "persistent communication",
    "multiple": "multi-threaded communication",
}
# Collective algorithms, likewise. The prefix `own-` marks our implementations on point-to-point calls.
ALGORITHMS = {
    "default": ("the MPI's default", "D"),
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
    "two-ranks": ("two ranks only", "2"),
    "blocked": ("in blocks of messages", "Bl"),
    "gather-bcast": ("gather and broadcast", "GB"),
    "plum": ("Plum", "Pl"),
    "recursive-exchange": ("recursive exchange", "RX"),
}
# MPICH's second engine of nonblocking collectives.
_TSP = "-tsp"
OPERATIONS = {
    "bcast": "broadcast",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "allgatherv": "allgatherv",
    "alltoallv": "alltoallv",
    "neighbor_allgather": "neighbor_allgather",
    "neighbor_alltoall": "neighbor_alltoall",
    "neighbor_alltoallv": "neighbor_alltoallv",
}


def flavour(name: str) -> str:
    """Return the label of an MPI: `MPICH`; with settings `MPICH with X=1, Y=2`."""
    mpi, settings = split_settings(name)
    text = FLAVOURS.get(mpi, mpi)
    return f"{text} with {', '.join(map('='.join, settings.items()))}" if settings else text


def level(name: str) -> str:
    """Return the label of a level: `same socket`."""
    return LEVEL_LABELS.get(name, name.replace("_", " "))


def sender_waits(waits: bool | None, buffered_bytes: int | None) -> str:
    """Return for which sizes the sender waits for delivery: `yes`, `no` or `beyond 586 KiB`."""
    if buffered_bytes is not None:
        return f"beyond {format_bytes(buffered_bytes)}"
    return "yes" if waits else "no"


def method(name: str) -> str:
    """Return the display name of a method. `earlybird:4096` is libearlybird with at most 4096 bytes per
    aggregated message; `earlybird-segments:4` sends 4 messages; `own-pipeline:4096` is our pipeline in
    segments of 4096 bytes."""
    known, _, bound = name.partition(":")
    if known in STYLES:
        return STYLES[known]
    if known not in METHODS:
        return algorithm(name)
    text = METHODS[known][0]
    if name.startswith(SEGMENTED) and (number := whole_number(bound)):
        return f"{text}, {counted(number, 'message')}"
    return (
        f"{text}, up to {format_bytes(int(bound))}"
        if whole_number(bound) is not None
        else text + f", {bound}" * bool(bound)
    )


def algorithm(name: str) -> str:
    """Return the display name of an algorithm: `our pipeline in segments of 4 KiB`. A segment of 0 bytes
    means the whole message and is omitted."""
    known, _, segment = name.partition(":")
    before, base, after = split_algorithm(known)
    text = before + (ALGORITHMS[base][0] if base in ALGORITHMS else base) + after
    if whole_number(segment) is None:
        return text + f", {segment}" * bool(segment)
    return f"{text} in segments of {format_bytes(int(segment))}" if int(segment) else text


def split_algorithm(name: str) -> tuple[str, str, str]:
    """Return the parts of a name such as `persistent-ring-tsp`: the text before the algorithm, the algorithm,
    and the text after it."""
    base = name.removeprefix(OWN)
    if base != name:
        return "our ", base, ""
    base = name.removeprefix(PERSISTENT_PREFIX)
    plain = base.removesuffix(_TSP)
    return "persistent " * (base != name), plain, ", generic transport" * (plain != base)


def is_own(method: str) -> bool:
    """Return whether it is an algorithm of Earlybird, which an MPI cannot select."""
    return method.startswith(OWN)


def operation(name: str) -> str:
    return OPERATIONS.get(name, name)


def method_letters(name: str) -> str:
    """Return one or two letters for a small cell; the prefix `o` marks our implementations, `p` persistent
    ones."""
    known = name.partition(":")[0]
    if known in METHODS:
        return METHODS[known][1]
    before, base, after = split_algorithm(known)
    letters = ALGORITHMS[base][1] if base in ALGORITHMS else base[:2]
    return before[:1] + letters + "t" * bool(after)


def method_order(name: str) -> tuple[int, bool, int, str]:
    """Return a sort key: the MPI's default, the order of STYLES, METHODS and ALGORITHMS, ours and persistent
    ones after the others, then the size bound."""
    known, _, bound = name.partition(":")
    before, base, _ = split_algorithm(known)
    names = [next(iter(ALGORITHMS)), *STYLES, *METHODS, *ALGORITHMS]
    position = names.index(base) if base in names else len(names)
    return position, bool(before), -1 if whole_number(bound) is None else int(bound), name


def level_order(name: str) -> int:
    return LEVELS.index(name) if name in LEVELS else len(LEVELS)


def noise(model: str, share: float) -> str:
    """Return the label of noise: `single 4 %`; `none`."""
    return f"{model} {100 * share:.3g} %" if share else model


def listed(items: Sequence[str]) -> str:
    """Join items: `a`, `a and b`, `a, b and c`."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def listed_briefly(items: Sequence[str], limit: int = 3) -> str:
    """Join items as `listed` does; beyond `limit` items, return the first ones and the number of others."""
    over = len(items) - limit
    return listed(items if over <= 0 else [*items[:limit], counted(over, "other")])


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the member of `known` that is most similar to a misspelt `name`; "" if none is similar."""
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), n=1)), "")


def choose(text: str, allowed: Collection[str], option: str, *, is_list: bool = True) -> tuple[str, ...]:
    """Return the items of a comma-separated list, each once; raise InputError for an item that is not
    allowed.

    For an option that does not take a list, the text is a single item.
    """
    items = tuple(dict.fromkeys(item.strip() for item in text.split(","))) if is_list else (text,)
    for item in items:
        if item not in allowed:
            remedy = f"give {'some' if is_list else 'one'} of {', '.join(allowed)}"
            raise InputError(with_guess(f"{option} has {item!r}", nearest(item, allowed), remedy))
    return items


def with_guess(problem: str, meant: str, remedy: str) -> str:
    """Return `PROBLEM; REMEDY`, with a question in between if a misspelt name seems to mean `meant`."""
    return f"{problem}, did you mean {meant}? {capital(remedy)}" if meant else f"{problem}; {remedy}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 rank`, `4 ranks`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def percent(fraction: float) -> str:
    """Return a fraction in percent: 0.1234 -> `12 %`; one decimal below 10 %; never `-0.0 %`."""
    value = 100 * fraction
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:z.1f} %"


def signed_percent(fraction: float) -> str:
    """Return a fraction in percent with its sign: 0.1234 -> `+12 %`; `0.0 %` has no sign."""
    text = percent(fraction)
    return text if fraction <= 0 or text == percent(0.0) else f"+{text}"


def capital(sentence: str) -> str:
    """Return the sentence with a capital letter first, unless it begins with a name that has none."""
    word = re.match(r"\w*", sentence)
    if word and word.group() in _NAMES_IN_SMALL_LETTERS:
        return sentence
    return sentence[:1].upper() + sentence[1:]


def mapped_by(mapping: str) -> str:
    """Return the label of a mapping: `mapped by node`; nothing for an unknown mapping, except its further
    parameters."""
    name, _, parameters = mapping.partition(", ")
    return parameters if name in ("", UNKNOWN_MAPPING) else f"mapped by {mapping}"
