"""The measurements for the figures of Temucin et al. 2022: `measure partitioned --reproduce temucin`."""

from dataclasses import replace

from earlybird.data.errors import InputError
from earlybird.measure.groups import MIB, Group, Options, Resources, carried_bytes, levels_of, powers
from earlybird.measure.partitioned import PARTITIONED_OPTIONS, partitioned_groups

PAPER = "temucin"
# Of the paper's figures; those with 100 ms have fewer sizes, because an iteration takes that long.
_PARTITIONS = (1, 4, 16)
_SHORT_S, _LONG_S = 10e-3, 100e-3
_SHARES = (0.04, 0.1)
# What the set decides itself.
_DECIDED = ("sizes_bytes", "partitions", "threads", "computes_s", "noise_models", "noise_shares", "caches",
            "methods")  # fmt: skip


def groups_of_partitioned(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """The measurements of the suite `partitioned`: the paper's figures if requested, otherwise those of the
    options."""
    if options.reproduce is None:
        return partitioned_groups(options, resources, mpi)
    _check(options, resources)
    groups = [g for one in _figures(options, resources) for g in partitioned_groups(one, resources, mpi)]
    return _without_repeats(groups)


def _figures(options: Options, resources: Resources) -> list[Options]:
    """The options of the suite for each kind of figure."""
    level = levels_of(options, resources)[-1]
    last = carried_bytes(4 * MIB, level, resources)
    few = powers(max(last, 1 << 10), 64, 1 << 10)
    sizes = few if options.quick else powers(max(last, 1 << 10), 16, 1 << 10)
    most = _PARTITIONS[-1]
    common = replace(options, reproduce=None, levels=(level,), sizes_bytes=sizes, noise_models=("none",))
    long_s = _SHORT_S if options.quick else _LONG_S
    overhead = replace(common, partitions=_PARTITIONS, computes_s=(_SHORT_S,), caches=("hot", "cold"))
    early = replace(common, partitions=_PARTITIONS[1:], computes_s=(_SHORT_S,), noise_models=("uniform",),
                    noise_shares=_SHARES)  # fmt: skip
    long = replace(common, partitions=(most,), computes_s=(long_s,), sizes_bytes=few)
    perceived = replace(long, noise_models=("none", "uniform"), noise_shares=_SHARES)
    by_noise = replace(long, noise_models=("single", "uniform", "gaussian"), noise_shares=_SHARES[:1])
    by_partitions = replace(by_noise, partitions=_PARTITIONS[1:], noise_models=("single",))
    return [overhead, early, perceived, by_noise, by_partitions]


def _without_repeats(groups: list[Group]) -> list[Group]:
    """The figures share points: each is measured once."""
    seen: set[tuple] = set()
    found = []
    for group in groups:
        points = [point for point in group.points if (group.preload, *point.items()) not in seen]
        seen |= {(group.preload, *point.items()) for point in points}
        if points:
            found.append(replace(group, points=tuple(points)))
    return found


def _check(options: Options, resources: Resources) -> None:
    if options.reproduce != PAPER:
        raise InputError(f"--reproduce is {options.reproduce!r}; the paper of this suite is {PAPER}")
    for name in _DECIDED:
        if getattr(options, name) is not None:
            word = next(option.word for option in PARTITIONED_OPTIONS if option.field == name)
            raise InputError(f"--reproduce {PAPER} chooses {word} itself; leave {word} out, or --reproduce")
    if options.levels is not None and len(levels_of(options, resources)) > 1:
        raise InputError("--reproduce measures at one level; give one of --levels")
