"""Options of `measure` that apply to some suites only, and the parsing of their values."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from earlybird.cli.delay_rates import parse_noise
from earlybird.data import units
from earlybird.data.collective_algorithms import Method
from earlybird.data.errors import InputError
from earlybird.measure.groups import MOST_THREADS, Options
from earlybird.measure.pipeline import AGGREGATED

# Suite options that runs of every version store; LATER_SETTINGS are missing in runs of earlier versions.
OF_ALL = ("sizes", "buffers", "competitors", "levels")
OF_PIPELINE = ("partitions", "gamma", "aggregation", "vcis", "ai", "ci", "frequency", "epsilon", "delta")
OF_COLLECTIVE = ("op", "algorithm", "ranks", "segments", "map-by", "root", "proof")
LATER_SETTINGS = (*OF_PIPELINE, "reproduce", "methods", "window", "thread_counts", *OF_COLLECTIVE)

# Factor from one size of a range to the next, without and with --quick.
_FACTOR, _QUICK_FACTOR = 2, 16

SizesOption = Annotated[
    str | None, typer.Option(help="Message sizes, such as 8,1KiB, or 1..1MiB for powers of two (one suite).")
]
BuffersOption = Annotated[
    str | None,
    typer.Option(help="pingpong: vary or reuse the contents of messages (OSU reuses).  [default: vary]"),
]
CompetitorsOption = Annotated[
    str | None, typer.Option(help="contention: numbers N of concurrent receivers, such as 1,2,4.")
]
LevelsOption = Annotated[str | None, typer.Option(help="intra_socket, inter_socket, inter_node (one suite).")]
PartitionsOption = Annotated[
    str | None, typer.Option(help="pipeline: partitions of all threads together, such as 4 or 1,4,16.")
]
GammaOption = Annotated[
    str | None, typer.Option(help="pipeline: delay of the last partition, such as 100us/MB or 0,1us/kB.")
]
MethodsOption = Annotated[
    str | None,
    typer.Option(
        help="pipeline: send methods, such as many,rma-fence,earlybird:4KiB, or all; msgrate: shared, "
        "per-thread, per-thread-contexts, processes."
    ),
]
WindowOption = Annotated[
    str | None, typer.Option(help="msgrate: messages that a thread has in flight at once.  [default: 64]")
]
AggregationOption = Annotated[
    str | None, typer.Option(help="pipeline: add earlybird with these aggregation limits, such as 512,4KiB.")
]
VcisOption = Annotated[
    str | None, typer.Option(help="pipeline: communication contexts of MPICH, such as 1,4.")
]
ArithmeticIntensityOption = Annotated[
    str | None,
    typer.Option(help="pipeline: compute each partition, with this arithmetic intensity in flop per byte."),
]
CommunicationIntensityOption = Annotated[
    str | None, typer.Option(help="pipeline: communication intensity, as in gain.")
]
FrequencyOption = Annotated[
    str | None, typer.Option(help="pipeline: clock frequency of the CPU, such as 3.5GHz.")
]
EpsilonOption = Annotated[
    float | None, typer.Option(help="pipeline: relative noise of the system.  [default: 0]")
]
DeltaOption = Annotated[
    float | None, typer.Option(help="pipeline: relative imbalance of the algorithm.  [default: 0]")
]
ReproduceOption = Annotated[
    str | None,
    typer.Option(help="pipeline: measure the figures of a paper: gillis (Gillis et al. 2023)."),
]
OperationsOption = Annotated[
    str | None,
    typer.Option(
        "--op", help="collective: bcast, reduce, allreduce, allgather, alltoall, gather, scatter, barrier."
    ),
]
AlgorithmsOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        help="collective: algorithms, such as linear,pipeline:8KiB,own-binomial, or own, all, default.",
    ),
]
RanksOption = Annotated[str | None, typer.Option(help="collective: rank counts, such as 2..8 or 2,4,8.")]
SegmentsOption = Annotated[
    str | None, typer.Option(help="collective: segment sizes of segmented algorithms, such as 0,8KiB.")
]
MapByOption = Annotated[
    str | None,
    typer.Option(
        "--map-by", help="collective: core, socket or node; several separated by commas.  [default: core]"
    ),
]
RootOption = Annotated[str | None, typer.Option(help="collective: the root rank.  [default: 0]")]
ProofOption = Annotated[
    str | None,
    typer.Option(
        help="collective: rank counts at which to verify the communication tree: largest, all, none.  "
        "[default: largest]"
    ),
]


def options_of(settings: dict[str, Any]) -> Options:
    """Parse the option values that a run stores; InputError if one is invalid."""
    buffers = settings["buffers"]
    if buffers not in (None, "vary", "reuse"):
        raise InputError(f"--buffers is {buffers!r}; choose vary or reuse")
    return Options(
        quick=settings["quick"],
        sizes_bytes=_sizes(settings["sizes"], settings["quick"]),
        buffers=buffers,
        competitors=_counts("--competitors", settings["competitors"], "numbers of processes, such as 1,2,4"),
        levels=_split(settings["levels"], str),
        partitions=_counts(
            "--partitions", settings["partitions"], "numbers of partitions from 1 up, such as 4"
        ),
        gammas_s_per_byte=_split(settings["gamma"], lambda item: units.parse_delay_rate(item, "--gamma")),
        noise=parse_noise(
            settings["gamma"],
            settings["ai"],
            settings["ci"],
            settings["frequency"],
            settings["epsilon"],
            settings["delta"],
        ),
        methods=_split(settings["methods"], _method),
        aggregation_bytes=_split(
            settings["aggregation"], lambda item: units.parse_bytes(item, "--aggregation")
        ),
        vcis=_counts("--vcis", settings["vcis"], "numbers of contexts from 1 up, such as 1,4"),
        reproduce=settings["reproduce"],
        window=None if settings["window"] is None else _window(settings["window"]),
        threads=thread_counts(settings["thread_counts"]),
        operations=_split(settings["op"], str),
        algorithms=_split(settings["algorithm"], _algorithm),
        ranks=_ranks(settings["ranks"]),
        segments_bytes=_split(settings["segments"], lambda item: units.parse_bytes(item, "--segments")),
        map_by=_split(settings["map-by"], str),
        root=_root(settings["root"]),
        proof=settings["proof"],
        launcher_threads=settings.get("threads", 1),
    )


def _split(text: str | None, parse: Callable[[str], Any]) -> tuple | None:
    return _ranges(text, lambda item: (parse(item),))


def _ranges(text: str | None, parse: Callable[[str], Iterable[Any]]) -> tuple | None:
    """The values of a comma-separated list whose items may be ranges, without duplicates."""
    if text is None:
        return None
    return tuple(dict.fromkeys(value for item in text.split(",") for value in parse(item.strip())))


def _sizes(text: str | None, quick: bool) -> tuple[int, ...] | None:
    """Parse `8,1KiB` and ranges such as `1..1MiB`, in which each size is twice the one before."""

    def parse(item: str) -> list[int]:
        ends = [units.parse_bytes(end, "--sizes") for end in item.split("..", 1)]
        if len(ends) == 1:
            return ends
        first, last = ends
        if not 1 <= first <= last:
            raise InputError(
                f"--sizes has {item}; give an ascending range from 1 byte or more, such as 1..1MiB"
            )
        sizes = []
        while first <= last:
            sizes.append(first)
            first *= _QUICK_FACTOR if quick else _FACTOR
        return sizes

    return _ranges(text, parse)


def _ranks(text: str | None) -> tuple[int, ...] | None:
    """Parse `2,4,8` and ranges such as `2..8`."""

    def parse(item: str) -> Iterable[int]:
        ends = item.split("..", 1)
        if not all(end.isdecimal() for end in ends) or int(ends[0]) > int(ends[-1]):
            raise InputError(f"--ranks has {item!r}; give rank counts, such as 2..8 or 2,4,8")
        return range(int(ends[0]), int(ends[-1]) + 1)

    return _ranges(text, parse)


def _root(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise InputError(f"--root is {text!r}; give a rank, such as 0")
    return int(text)


def _algorithm(text: str) -> str:
    """`pipeline:8KiB` -> `pipeline:8192`; names without a segment size are unchanged."""
    name, colon, segment = text.partition(":")
    if not colon:
        return name
    return Method(name, units.parse_bytes(segment, f"--algorithm has {text}, its segment")).text


def _counts(option: str, text: str | None, allowed: str) -> tuple[int, ...] | None:
    def parse(item: str) -> int:
        if not item.isdecimal() or int(item) < 1:
            raise InputError(f"{option} has {item!r}; give {allowed}")
        return int(item)

    return _split(text, parse)


def thread_counts(text: str | None) -> tuple[int, ...] | None:
    """The thread counts in --threads, such as `1,2,4`."""
    counts = _counts("--threads", text, "numbers of threads per rank from 1 up, such as 2")
    if counts is not None and max(counts) > MOST_THREADS:
        raise InputError(f"--threads has {max(counts)}; give 1 to {MOST_THREADS} threads per rank")
    return counts


def _window(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"--window is {text!r}; give a number of messages, such as 64")
    return int(text)


def _method(text: str) -> str:
    """`earlybird:4KiB` -> `earlybird:4096`; other names are unchanged."""
    if not text.startswith(AGGREGATED):
        return text
    limit_bytes = units.parse_bytes(text.removeprefix(AGGREGATED), f"--methods has {text}, its limit")
    return f"{AGGREGATED}{limit_bytes}"
