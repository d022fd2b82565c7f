"""The suites: which points each one measures, and how many ranks sit where for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS, Layout, parse_layout
from earlybird.data.pattern import Pattern

MIB = 1 << 20
DEFAULT_LAUNCHES = 5
QUICK_LAUNCHES = 3

# What one rank sends in one timed region of `contention`: at most this many messages, each from a place of
# its own, and at most this many bytes. Where a cache holds them all they come from there, as data that was
# just written does in applications.
_CONTENTION_BYTES = 16 * MIB
_CONTENTION_REPEATS = 64

# Processes of a virtual node that receive at once: they share its link, however few its cores are.
VIRTUAL_COMPETITORS = 4
# How long one message, or those of all ranks in a timed region, may keep a virtual node's link busy.
_LINK_S = 0.1


# The ways of `pipeline`: one message when all partitions are ready, and one message for each.
PIPELINE_WAYS = ("single", "many")
_PIPELINE_GAMMA_S_PER_BYTE = 100e-12  # that of figure 8 of Gillis et al. 2023
# The gamma*beta of that figure (beta = 25 GB/s): what gamma is chosen by where a link's beta is known.
_PIPELINE_GAMMA_BETA = 2.5
# A delay beyond this is a slip of units: a bare 100 is 100 s/B.
_PIPELINE_DELAY_S = 1.0
# How late a late receiver of `completion` is, in deliveries; see native/kernels/completion.cpp.
_LATE_DELIVERIES = 3


@dataclass(frozen=True)
class Group:
    """Points that one launch can measure together: same kernel, same placement, same ways (if it has any).

    `link_bytes_per_s` is the rate of the links that its messages take; None where that is not known.
    `threads` of every rank, None: as many as the launcher gives; `vcis`: communication contexts that each
    rank's MPI is asked for, None: as many as it makes itself.
    """

    kernel: str
    layout: Layout
    points: tuple[dict[str, Any], ...]
    pattern: Pattern | None = None
    ways: tuple[str, ...] = ()
    link_bytes_per_s: float | None = None
    threads: int | None = None
    vcis: int | None = None

    def link_s(self, point: Mapping[str, Any]) -> float:
        """For how long an iteration of `point`, one of each way, keeps a link busy at least."""
        if self.link_bytes_per_s is None:
            return 0.0
        return max(len(self.ways), 1) * self._link_bytes(point) / self.link_bytes_per_s

    def _link_bytes(self, point: Mapping[str, Any]) -> float:
        if self.pattern is not None:
            return self._exchange_link_bytes
        size_bytes = point["size_bytes"]
        if self.kernel == "pingpong":
            return 2 * size_bytes
        if self.kernel == "contention":
            return size_bytes * point["competitors"] * point["repeats"]
        # The pause of a late receiver goes by the time of a delivery.
        return size_bytes * (1 + _LATE_DELIVERIES if point.get("receiver") == "late" else 1)

    @cached_property
    def _exchange_link_bytes(self) -> float:
        """The most that a node sends to, or receives from, other nodes."""
        src, dst = self.layout.node[self.pattern.src], self.layout.node[self.pattern.dst]
        across = src != dst
        ends = [np.bincount(end[across], self.pattern.bytes[across], minlength=1) for end in (src, dst)]
        return float(max(end.max() for end in ends))


@dataclass(frozen=True)
class Options:
    """What a person may choose; None leaves it to the suite."""

    quick: bool = False
    sizes_bytes: tuple[int, ...] | None = None
    buffers: str | None = None
    competitors: tuple[int, ...] | None = None
    levels: tuple[str, ...] | None = None
    partitions: tuple[int, ...] | None = None
    gammas_s_per_byte: tuple[float, ...] | None = None

    def chosen(self) -> list[str]:
        """Names of the suite options that were given."""
        names = ("sizes_bytes", "buffers", "competitors", "levels", "partitions", "gammas_s_per_byte")
        return [name for name in names if getattr(self, name) is not None]


@dataclass(frozen=True)
class Place:
    """What the launcher can reach: the levels there are, and the cores of a group on each (socket, socket,
    node).

    Ranks beyond `cores_per_socket` of a node sit on its next socket; None puts them all on one.
    `link_bytes_per_s` is what a virtual node's link carries; None where nobody limits it.
    """

    cores: Mapping[str, int]
    cores_per_socket: int | None = None
    link_bytes_per_s: float | None = None
    nodes: int = 1

    @classmethod
    def of(
        cls, cores_per_socket: int, sockets: int, nodes: int = 1, link_bytes_per_s: float | None = None
    ) -> "Place":
        """`nodes` alike, each with `sockets` of `cores_per_socket`."""
        cores = {"intra_socket": cores_per_socket}
        if sockets > 1:
            cores["inter_socket"] = cores_per_socket
        if nodes > 1:
            cores["inter_node"] = cores_per_socket * sockets
            if link_bytes_per_s is not None:
                # Where links are slower than the cores that they share, more ranks than cores still measure
                # the link.
                cores["inter_node"] = max(cores["inter_node"], VIRTUAL_COMPETITORS)
        return cls(cores, cores_per_socket, link_bytes_per_s, nodes)


@dataclass(frozen=True)
class Suite:
    """`groups(options, place, mpi)` lists what to measure; `takes` names the options that mean something to
    it."""

    name: str
    help: str
    takes: tuple[str, ...]
    groups: Callable[[Options, Place, str], list[Group]]
    example: str = field(default="")


def pingpong_groups(options: Options, place: Place, mpi: str) -> list[Group]:
    """Half the round trip between two ranks, on every level."""
    largest, factor = (4 * MIB, 4) if options.quick else (64 * MIB, 2)
    result = []
    for level in _levels(options, place):
        sizes = options.sizes_bytes or (0, *_powers(_largest(largest, level, place), factor))
        _refuse_large(sizes)
        points = tuple(
            {"mpi": mpi, "level": level, "size_bytes": size, "buffers": options.buffers or "vary"}
            for size in sizes
        )
        link = _link_of(level, place)
        result.append(Group("pingpong", _pair_layout(level, 1, place), points, link_bytes_per_s=link))
    return result


def contention_groups(options: Options, place: Place, mpi: str) -> list[Group]:
    """Algorithm 1 of Thune et al. 2023: N processes of a group receive at once, on every level."""
    result = []
    for level in _levels(options, place):
        sizes = options.sizes_bytes or _powers(_largest(4 * MIB, level, place), 4 if options.quick else 2)
        _refuse_large(sizes)
        for competitors in options.competitors or _competitor_counts(place.cores[level]):
            if level == "intra_socket" and competitors > 1 and competitors % 2:
                raise InputError(
                    f"--competitors has {competitors}: ranks on one socket form pairs, so give 1 or even "
                    "numbers (odd ones are interpolated)"
                )
            # Quick means half of what else keeps the link busy; sizes stay as they are.
            share = competitors * (2 if options.quick else 1)
            volume_bytes = _largest(_CONTENTION_BYTES, level, place, share)
            points = tuple(
                {
                    "mpi": mpi,
                    "level": level,
                    "competitors": competitors,
                    # Within a socket alone BW(1) is that of one pair in one direction (Thune et al., II-B).
                    "directions": 1 if level == "intra_socket" and competitors == 1 else 2,
                    "size_bytes": size,
                    "repeats": max(1, min(_CONTENTION_REPEATS, volume_bytes // max(size, 1))),
                }
                for size in sizes
            )
            layout, link = _pair_layout(level, competitors, place), _link_of(level, place)
            result.append(Group("contention", layout, points, link_bytes_per_s=link))
    return result


def completion_groups(options: Options, place: Place, mpi: str) -> list[Group]:
    """When the send of one message is complete, its receiver prompt or late, on every level."""
    small = (1,) if options.quick else _powers(256, 4)
    result = []
    for level in _levels(options, place):
        # A pause of three deliveries makes the largest messages dear on a slow link.
        largest = _largest(4 * MIB, level, place) if options.quick else 4 * MIB
        large = _powers(largest, 4 if options.quick else 2, first=1 << 10)
        sizes = options.sizes_bytes or (*small, *large)
        _refuse_large(sizes)
        points = tuple(
            {"mpi": mpi, "level": level, "size_bytes": size, "receiver": receiver}
            for size in sizes
            for receiver in ("prompt", "late")
        )
        link = _link_of(level, place)
        result.append(Group("completion", _pair_layout(level, 1, place), points, link_bytes_per_s=link))
    return result


def pipeline_groups(options: Options, place: Place, mpi: str) -> list[Group]:
    """A buffer in partitions of which the last is late (Gillis et al. 2023, figure 3), on every level.

    The delay is gamma times the size of a partition; sizes are those of whole buffers. Where the rate of a
    link is known, gamma is chosen for it: that of a fast network would show nothing on a slow one.
    """
    result = []
    for level in _levels(options, place):
        points = []
        for partitions in options.partitions or (4,):
            for size in options.sizes_bytes or _default_buffers(options, level, place, partitions):
                if size % partitions:
                    raise InputError(
                        f"--sizes has {size} bytes, which {partitions} partitions do not share evenly; "
                        f"give multiples of {partitions}, such as {max(size // partitions, 1) * partitions}"
                    )
                for gamma in options.gammas_s_per_byte or (_default_gamma(level, place),):
                    _refuse_long_delay(gamma, size // partitions)
                    points.append({"mpi": mpi, "level": level, "size_bytes": size, "partitions": partitions,
                                   "gamma_s_per_byte": gamma})  # fmt: skip
        _refuse_large([point["size_bytes"] for point in points])
        layout, link = _pair_layout(level, 1, place), _link_of(level, place)
        result.append(Group("pipeline", layout, tuple(points), ways=PIPELINE_WAYS, link_bytes_per_s=link))
    return result


def _default_buffers(options: Options, level: str, place: Place, partitions: int) -> tuple[int, ...]:
    """From 1 KiB to 16 MiB, each cut to a multiple of `partitions`."""
    first, last, factor = (1 << 12, MIB, 16) if options.quick else (1 << 10, 16 * MIB, 4)
    sizes = _powers(_largest(last, level, place), factor, first)
    return tuple(dict.fromkeys(max(size // partitions, 1) * partitions for size in sizes))


def _default_gamma(level: str, place: Place) -> float:
    link = _link_of(level, place)
    return _PIPELINE_GAMMA_S_PER_BYTE if link is None else _PIPELINE_GAMMA_BETA / link


def _refuse_long_delay(gamma_s_per_byte: float, partition_bytes: int) -> None:
    delay_s = gamma_s_per_byte * partition_bytes
    if delay_s > _PIPELINE_DELAY_S:
        raise InputError(
            f"a gamma of {gamma_s_per_byte:g} s/B makes a partition of {partition_bytes} bytes {delay_s:g} s "
            f"late; give a --gamma that makes it {_PIPELINE_DELAY_S:g} s at most, such as 100us/MB"
        )


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "pingpong",
            "latency and bandwidth between two ranks, 0 B to 64 MiB",
            ("sizes_bytes", "buffers", "levels"),
            pingpong_groups,
            "earlybird measure pingpong --sizes 8,1KiB,1MiB -o run",
        ),
        Suite(
            "contention",
            "bandwidth that N receiving processes share, BW(N)",
            ("sizes_bytes", "competitors", "levels"),
            contention_groups,
            "earlybird measure contention --competitors 1,2,4 -o run",
        ),
        Suite(
            "completion",
            "when a send is complete, by size and level: do senders wait for delivery?",
            ("sizes_bytes", "levels"),
            completion_groups,
            "earlybird measure completion --sizes 1KiB,64KiB,1MiB -o run",
        ),
        Suite(
            "pipeline",
            "what sending partitions as they are ready gains, the last one late",
            ("sizes_bytes", "levels", "partitions", "gammas_s_per_byte"),
            pipeline_groups,
            "earlybird measure pipeline --sizes 1MiB,4MiB --partitions 4 --gamma 100us/MB -o run",
        ),
    )
}


def find_suites(names: Sequence[str]) -> list[Suite]:
    """The suites called `names`; InputError naming those there are."""
    for name in names:
        if name not in SUITES:
            also = "; use `earlybird replay` for an exchange" if name == "exchange" else ""
            raise InputError(f"there is no suite {name!r}; the suites are {', '.join(SUITES)}{also}")
    return [SUITES[name] for name in dict.fromkeys(names)]


def check_options(suites: Sequence[Suite], options: Options) -> None:
    """Refuse an option that a suite does not know: several suites take the common options only."""
    words = {
        "sizes_bytes": "--sizes",
        "buffers": "--buffers",
        "competitors": "--competitors",
        "levels": "--levels",
        "partitions": "--partitions",
        "gammas_s_per_byte": "--gamma",
    }
    for name in options.chosen():
        if len(suites) > 1:
            raise InputError(
                f"{words[name]} belongs to one suite; measure {suites[0].name} alone, or leave it out"
            )
        if name not in suites[0].takes:
            known = ", ".join(words[taken] for taken in suites[0].takes)
            raise InputError(f"the suite {suites[0].name} takes no {words[name]}; it takes {known}")


def exchange_group(
    pattern: Pattern, layout: Layout, mpi: str, link_bytes_per_s: float | None = None
) -> Group:
    """Algorithm 2 of Thune et al. 2023: all messages of a pattern at once."""
    pattern.check_ranks(layout.num_ranks)
    _refuse_large([int(pattern.bytes.max(initial=0))])
    point = {
        "mpi": mpi, "layout": layout.text.replace(" ", "_"), "pattern_sha256": pattern.sha256(),
        "ranks": layout.num_ranks, "messages": pattern.num_messages,
    }  # fmt: skip
    return Group("exchange", layout, (point,), pattern, link_bytes_per_s=link_bytes_per_s)


def _pair_layout(level: str, competitors: int, place: Place) -> Layout:
    """Pairs r, r + P/2 whose two ranks are on one socket, on two sockets, or on two nodes."""
    if level == "intra_socket":
        return parse_layout(f"1x1x{max(2, competitors)}")
    if level == "inter_socket":
        return parse_layout(f"1x2x{competitors}")
    per_socket = place.cores_per_socket or competitors
    if competitors <= per_socket or place.link_bytes_per_s is not None:
        return parse_layout(f"2x1x{competitors}")
    rank = np.arange(2 * competitors)
    node, socket = rank // competitors, rank % competitors // per_socket
    return Layout(node, socket, f"2 nodes of {competitors} ranks")


def _levels(options: Options, place: Place) -> tuple[str, ...]:
    if options.levels is None:
        return tuple(place.cores)
    for level in options.levels:
        if level not in LEVELS:
            raise InputError(f"--levels has {level!r}; the levels are {', '.join(LEVELS)}")
        if level not in place.cores:
            raise InputError(f"--levels has {level!r}, which is not here; here are {', '.join(place.cores)}")
    return options.levels


def _competitor_counts(limit: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to the cores there are, and all of them when their number is even."""
    powers = {1 << k for k in range(1, limit.bit_length())}
    # One pair is measured even on a single core; the figures are then marked oversubscribed.
    return tuple(sorted({1, 2, max(2, limit - limit % 2)} | powers))


def _link_of(level: str, place: Place) -> float | None:
    """The rate of the links that messages of `level` take; None where none limits them."""
    return place.link_bytes_per_s if level == "inter_node" else None


def _largest(size_bytes: int, level: str, place: Place, shares: int = 1) -> int:
    """`size_bytes`, or one of `shares` of what a virtual link carries in `_LINK_S` where that is less."""
    link = _link_of(level, place)
    return size_bytes if link is None else min(size_bytes, max(1, round(_LINK_S * link / shares)))


def _powers(last: int, factor: int, first: int = 1) -> tuple[int, ...]:
    sizes, size = [], first
    while size <= last:
        sizes.append(size)
        size *= factor
    return tuple(sizes)


def _refuse_large(sizes: Sequence[int]) -> None:
    if max(sizes, default=0) >= 1 << 31:
        raise InputError(
            f"a message has {max(sizes)} bytes; the kernels send at most {(1 << 31) - 1} in one message"
        )
