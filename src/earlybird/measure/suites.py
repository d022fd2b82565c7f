"""The suites: the groups of each, and the registry of all; some are in separate modules."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from earlybird.data import kernels, labels
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.machine.flavours import SIMULATED
from earlybird.measure import collective, motif_options, motifs, partitioned
from earlybird.measure.groups import (
    MIB,
    Group,
    Options,
    Resources,
    Suite,
    carried_bytes,
    levels_of,
    link_of,
    pair_layout,
    powers,
    refuse_large,
)
from earlybird.measure.msgrate import MSGRATE_OPTIONS, msgrate_groups
from earlybird.measure.options import BUFFERS, LEVELS, MAX_POINTS, REUSE, SuiteOption, counts, sizes_option
from earlybird.measure.packing import PACKING_OPTIONS, packing_groups
from earlybird.measure.partitioned import PARTITIONED_OPTIONS, partitioned_groups
from earlybird.measure.pipeline import PIPELINE_OPTIONS, pipeline_groups

# What one rank sends in one timed region of `contention`: at most this many messages, each from a place of
# its own, and at most this many bytes. Where a cache holds them all they come from there, as data that was
# just written does in applications.
_CONTENTION_BYTES = 16 * MIB
_CONTENTION_REPEATS = 64
# With more, simulating the messages in flight takes minutes.
_SIMULATED_COMPETITORS = 16
# Long messages that share a link, by pairs of ranks: kernels buffer some hundred KB to MB of each. The sizes
# are close where send buffers of Linux usually end: with 4 MiB they hold about 3 MB.
_SHARING_PAIRS = 2
_BUFFERED_SIZES_BYTES = tuple(quarters * MIB // 4 for quarters in (4, 8, 10, 11, 12, 13, 14, 16))
# How long they may keep a virtual link busy.
_SHARED_LINK_S = 1.0


def pingpong_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return the groups that measure half the round trip between two ranks, on every level."""
    largest, factor = (4 * MIB, 4) if options.quick else (64 * MIB, 2)
    result = []
    for level in levels_of(options, resources):
        sizes = options.sizes_bytes or (0, *powers(carried_bytes(largest, level, resources), factor))
        refuse_large(sizes)
        points = tuple(
            {"mpi": mpi, "level": level, "size_bytes": size, "buffers": options.buffers or "vary"}
            for size in sizes
        )
        link = link_of(level, resources)
        result.append(
            Group(kernels.PINGPONG.name, pair_layout(level, 1, resources), points, link_bytes_per_s=link)
        )
    return result


def contention_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return the groups of Algorithm 1 of Thune et al. 2023: N processes of a group receive at once, on every
    level."""
    result = []
    for level in levels_of(options, resources):
        sizes = options.sizes_bytes or powers(
            carried_bytes(4 * MIB, level, resources), 4 if options.quick else 2
        )
        refuse_large(sizes)
        for competitors in options.competitors or _competitor_counts(_most_competitors(level, resources)):
            if level == "intra_socket" and competitors > 1 and competitors % 2:
                raise InputError(
                    f"--competitors has {competitors}: ranks on one socket form pairs, so give 1 or even "
                    "numbers (odd ones are interpolated)"
                )
            # Quick means half of what else keeps the link busy; sizes stay as they are.
            share = competitors * (2 if options.quick else 1)
            volume_bytes = carried_bytes(_CONTENTION_BYTES, level, resources, share)
            reuses = {"buffers": REUSE} if options.buffers == REUSE else {}
            most = 1 if reuses else _CONTENTION_REPEATS
            points = tuple(
                {
                    "mpi": mpi,
                    "level": level,
                    "competitors": competitors,
                    # Only within a socket BW(1) is that of one pair in one direction (Thune et al., II-B).
                    "directions": 1 if level == "intra_socket" and competitors == 1 else 2,
                    "size_bytes": size,
                    "repeats": max(1, min(most, volume_bytes // max(size, 1))),
                    **reuses,
                }
                for size in sizes
            )
            layout, link = pair_layout(level, competitors, resources), link_of(level, resources)
            result.append(Group(kernels.CONTENTION.name, layout, points, link_bytes_per_s=link))
    return result


def _most_competitors(level: str, resources: Resources) -> int:
    most = resources.cores[level]
    return min(most, _SIMULATED_COMPETITORS) if resources.family == SIMULATED else most


def completion_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return the groups that measure when the send of one message is complete, its receiver prompt or late,
    on every level."""
    small = (1,) if options.quick else powers(256, 4)
    result = []
    for level in levels_of(options, resources):
        # A pause of three deliveries makes the largest messages dear on a slow link.
        largest = carried_bytes(4 * MIB, level, resources) if options.quick else 4 * MIB
        large = powers(largest, 4 if options.quick else 2, first=1 << 10)
        sizes = options.sizes_bytes or (*small, *large)
        refuse_large(sizes)
        points = tuple(
            {"mpi": mpi, "level": level, "size_bytes": size, "receiver": receiver}
            for size in sizes
            for receiver in ("prompt", "late")
        )
        link = link_of(level, resources)
        result.append(
            Group(kernels.COMPLETION.name, pair_layout(level, 1, resources), points, link_bytes_per_s=link)
        )
        is_real = resources.family != SIMULATED
        if level == "inter_node" and is_real and resources.cores[level] >= _SHARING_PAIRS:
            result += _sharing_group(options.sizes_bytes or _BUFFERED_SIZES_BYTES, link, resources, mpi)
    return result


def _sharing_group(sizes: Sequence[int], link: float | None, resources: Resources, mpi: str) -> list[Group]:
    """Return the group that sends long messages of two pairs between the same nodes, to measure how much of a
    message is in flight, and not waited for, if messages share the link; no group if no size is long
    enough."""
    most = np.inf if link is None else _SHARED_LINK_S * link / _SHARING_PAIRS
    points = tuple(
        {"mpi": mpi, "level": "inter_node", "size_bytes": size, "receiver": "prompt", "pairs": _SHARING_PAIRS}
        for size in sizes
        if _BUFFERED_SIZES_BYTES[0] <= size <= most
    )
    layout = pair_layout("inter_node", _SHARING_PAIRS, resources)
    return [Group(kernels.COMPLETION.name, layout, points, link_bytes_per_s=link)] if points else []


_COMPETITORS = SuiteOption("competitors", "Numbers N of concurrent receivers, such as 1,2,4.  "
                           "[default: 1, 2, 4 .. all cores]",
                           "competitors",
                           counts("--competitors", "numbers of processes, such as 1,2,4"))  # fmt: skip


_PLACES = SuiteOption(
    "buffers", "Send up to 64 messages at once from places of their own (vary), or one from the same place, "
    "which a cache holds (reuse).  [default: vary]", "buffers", values=("vary", REUSE),
)  # fmt: skip


def _motif_suite(kind: motif_options.MotifKind, help: str, example: str) -> Suite:
    return Suite(
        kind.kernel,
        help,
        motif_options.options_of(kind),
        partial(motifs.motif_groups, kind),
        example,
        simulated=True,
        remarks=partial(motifs.remarks, kind),
    )


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            kernels.PINGPONG.name,
            "latency and bandwidth between two ranks, 0 B to 64 MiB",
            (sizes_option("0 B to 64 MiB"), BUFFERS, LEVELS),
            pingpong_groups,
            "earlybird measure pingpong --sizes 8,1KiB,1MiB -o run",
        ),
        Suite(
            kernels.CONTENTION.name,
            "bandwidth that N receiving processes share, BW(N)",
            (sizes_option("1 B to 4 MiB"), _COMPETITORS, _PLACES, LEVELS),
            contention_groups,
            "earlybird measure contention --competitors 1,2,4 -o run",
        ),
        Suite(
            kernels.COMPLETION.name,
            "when a send is complete, by size and level: do senders wait for delivery?",
            (sizes_option("1 B to 4 MiB"), LEVELS),
            completion_groups,
            "earlybird measure completion --sizes 1KiB,64KiB,1MiB -o run",
        ),
        Suite(
            kernels.PIPELINE.name,
            "methods to send a buffer that threads fill in partitions, and what each gains",
            PIPELINE_OPTIONS,
            pipeline_groups,
            "earlybird measure pipeline --sizes 1MiB,4MiB --partitions 4 --gamma 100us/MB -o run",
        ),
        Suite(
            kernels.PARTITIONED.name,
            "overhead, perceived bandwidth, availability and early-bird share of partitioned communication",
            PARTITIONED_OPTIONS,
            partitioned_groups,
            "earlybird measure partitioned --sizes 64KiB,1MiB --partitions 1,8 --noise none,single -o run",
            budgets_s=(partitioned.BUDGET_S, partitioned.QUICK_BUDGET_S),
            draws_threads=True,
            remarks=partitioned.remarks,
        ),
        _motif_suite(
            motif_options.HALO3D,
            "ghost cells of 3-D blocks: one thread or each communicates, or partitions are sent",
            "earlybird measure halo3d --ranks 2,4 --cells 32x32x32 --compute 0,1ms -o run",
        ),
        _motif_suite(
            motif_options.SWEEP3D,
            "wavefronts over a 2-D process grid, in the same styles",
            "earlybird measure sweep3d --ranks 2,4 --variables 8 --compute 100us -o run",
        ),
        _motif_suite(
            motif_options.COMB,
            "ghost cells of many variables for 26 neighbours, packed or by derived datatypes",
            "earlybird measure comb --variables 3,9 --buffers packed,derived -o run",
        ),
        Suite(
            kernels.MSGRATE.name,
            "messages per second of 1..T threads: one communicator, one per thread, contexts, or processes",
            MSGRATE_OPTIONS,
            msgrate_groups,
            "earlybird measure msgrate --threads 1,2,4 -o run",
        ),
        Suite(
            kernels.PACKING.name,
            "cost of packing and unpacking irregular data, by the MPI and by a loop, on hot and cold caches",
            PACKING_OPTIONS,
            packing_groups,
            "earlybird measure packing --sizes 1KiB,64KiB --packing strided,indexed -o run",
            budgets_s=(180.0, 30.0),
        ),
        Suite(
            kernels.COLLECTIVE.name,
            "broadcast, reduce and others by each algorithm of the MPI and by Earlybird's",
            collective.COLLECTIVE_OPTIONS,
            collective.collective_groups,
            "earlybird measure collective --op bcast,reduce --ranks 2..4 --sizes 1..1MiB -o run",
            remarks=collective.remarks,
        ),
    )
}


def find_suites(names: Sequence[str]) -> list[Suite]:
    """Return the suites called `names`; raise InputError, listing the known ones, for an unknown name."""
    for name in names:
        if name not in SUITES:
            also = "; use `earlybird replay` for an exchange" if name == kernels.EXCHANGE.name else ""
            problem, remedy = f"there is no suite {name!r}", f"the suites are {', '.join(SUITES)}{also}"
            raise InputError(labels.with_guess(problem, labels.nearest(name, SUITES), remedy))
    return [SUITES[name] for name in dict.fromkeys(names)]


# How run.json has the values of options.
_JSON_KINDS = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


def options_of(suites: Sequence[Suite], settings: Mapping[str, Any]) -> Options:
    """Return the options of `suites` that the settings of a run contain; raise InputError if one is
    invalid."""
    if paper := settings.get("reproduce"):
        raise InputError(
            f"the run has the figures of {paper}, which an earlier version measured with --reproduce; "
            f"measure them again with `earlybird reproduce {paper} -o DIR`"
        )
    return read_options([option for suite in suites for option in suite.takes], settings)


def read_options(takes: Sequence[SuiteOption], settings: Mapping[str, Any]) -> Options:
    """Return the values of the options that the settings of a run contain; raise InputError if one is
    invalid."""
    values = {}
    for option in takes:
        value = settings.get(option.key)
        if value is None:
            continue
        kinds = (int, float) if option.type is float else option.type
        if not isinstance(value, kinds) or isinstance(value, bool) is not (option.type is bool):
            raise InputError(
                f"settings.{option.key} of the run is {value!r}; give what {option.option} takes, as "
                f"{_JSON_KINDS[option.type]}"
            )
        values[option.field] = option.read(value, settings)
    num_points = math.prod(len(value) for value in values.values() if isinstance(value, tuple))
    if num_points > MAX_POINTS:
        raise InputError(
            f"the options have {num_points} combinations of values; give lists with at most {MAX_POINTS}"
        )
    return Options(quick=settings["quick"], launcher_threads=settings.get("threads", 1), **values)


def exchange_group(
    pattern: Pattern,
    layout: Layout,
    mpi: str,
    link_bytes_per_s: float | None = None,
    packing: Mapping[str, str] | None = None,
) -> Group:
    """Return the group of Algorithm 2 of Thune et al. 2023: all messages of a pattern at once; with the keys
    `packing` and `packing_by` of `packing`, they are packed."""
    pattern.check_ranks(layout.num_ranks)
    refuse_large([int(pattern.bytes.max(initial=0))])
    point = {
        "mpi": mpi, "layout": layout.text.replace(" ", "_"), "pattern_sha256": pattern.sha256(),
        "ranks": layout.num_ranks, "messages": pattern.num_messages,
        **{key: packing[key] for key in ("packing", "packing_by") if packing and key in packing},
    }  # fmt: skip
    return Group(kernels.EXCHANGE.name, layout, (point,), pattern, link_bytes_per_s=link_bytes_per_s)


def staged_group(
    stages: Sequence[Pattern],
    layout: Layout,
    mpi: str,
    link_bytes_per_s: float | None = None,
    packing: Mapping[str, str] | None = None,
) -> Group:
    """Return the group of several exchanges in one timed region: a rank begins an exchange when its messages
    of the previous one are complete."""
    group = exchange_group(Pattern.joined(stages), layout, mpi, link_bytes_per_s, packing)
    counts = "+".join(str(stage.num_messages) for stage in stages)
    return replace(group, points=tuple(dict(point) | {"stages": counts} for point in group.points))


def exchange_groups(
    pattern: Pattern,
    layout: Layout,
    mpi: str,
    link_bytes_per_s: float | None = None,
    packing: Mapping[str, str] | None = None,
    *,
    with_empty: bool = False,
) -> list[Group]:
    """Return `exchange_group` and, if `with_empty`, in separate launches the same messages without data,
    marked `empty=yes`."""
    whole = exchange_group(pattern, layout, mpi, link_bytes_per_s, packing)
    if not with_empty or not pattern.total_bytes:
        return [whole]
    empty = exchange_group(pattern.without_data(), layout, mpi, link_bytes_per_s)
    return [whole, replace(empty, points=tuple(dict(point) | {"empty": "yes"} for point in empty.points))]


def _competitor_counts(limit: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... up to the number of cores, and that number if it is even."""
    doubled = {1 << k for k in range(1, limit.bit_length())}
    # One pair is measured even on a single core; the figures are then marked oversubscribed.
    return tuple(sorted({1, 2, max(2, limit - limit % 2)} | doubled))
