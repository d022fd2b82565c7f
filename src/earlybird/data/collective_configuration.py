"""Configuration that makes an MPI use the advised algorithms: a file of rules, or variables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from earlybird.data.collective_algorithms import (
    DEFAULT,
    FAMILY_NAMES,
    PER_PAIR,
    Method,
    find_algorithm,
    forcing,
    parse_method,
)
from earlybird.data.errors import InputError
from earlybird.data.mpi_algorithms import FAMILIES, MPICH_LABELS, Algorithm
from earlybird.data.mpich_selection import Selection, SelectionRule, is_selectable, selection_files

# The number of each operation in Open MPI 5's files of rules.
_OPENMPI_NUMBERS = {
    "allgather": 0, "allreduce": 2, "alltoall": 3, "barrier": 6, "bcast": 7, "gather": 9, "reduce": 11,
    "scatter": 15,
}  # fmt: skip
_LAST_BYTES = (1 << 31) - 1
# Each rank of these compares its own count with the sizes of Open MPI's rules, and the counts need not agree:
# a rule of some sizes could make ranks choose different algorithms, and wait for each other for ever.
_OF_OWN_COUNTS = ("gather", "scatter")
_ONE_FOR_ALL = "this MPI uses one algorithm for all sizes"
_NETWORK = "_NETWORK"  # the variable of Intel MPI's algorithms that ignore nodes


@dataclass(frozen=True)
class Region:
    """Sizes from `from_bytes` to `to_bytes`, both included (None: unlimited), for which `ranks` use
    `method`."""

    method: str
    ranks: int
    from_bytes: int = 0
    to_bytes: int | None = None

    def describe(self) -> str:
        end = "up" if self.to_bytes is None else f"to {self.to_bytes}"
        return f"{self.method} from {self.from_bytes} bytes {end}"


@dataclass(frozen=True)
class Configuration:
    """`kind` is `rules` (a file that Open MPI reads), `shell` (lines for a job script) or `smpirun`
    (arguments); `use` explains how to use a file FILE with `text`; `left_out` are regions that cannot be
    expressed together with the others, for `reason`; `idle`: nothing is set, because the MPI's default is
    advised; `files`: texts of further files, by what is added to the name of FILE; `regions`: which algorithm
    is in force for which sizes."""

    kind: str
    text: str
    use: str
    left_out: tuple[Region, ...] = ()
    idle: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    reason: str = _ONE_FOR_ALL
    regions: tuple[Region, ...] = ()


def configuration(
    family: str, operation: str, regions: Sequence[Region], size_bytes: int | None = None
) -> Configuration:
    """The configuration for an MPI of `family`, with regions in order of size, all of the same rank count.

    Open MPI takes every region, but of gather and scatter only one algorithm for all sizes; so does MPICH by
    its variables (by size: `selection_configuration`). Intel MPI takes all if they are
    presets, or k-ary and binomial trees of one radix; otherwise one. That one is the algorithm of the region
    which contains `size_bytes`. Without `size_bytes` it is the default if that has a region, as another one
    would lose there, else that of the widest region. Sizes outside the regions keep the default of Open MPI,
    and of Intel MPI's presets.

    InputError for Earlybird's algorithms, which no MPI can be forced to use.
    """
    methods = [parse_method(region.method) for region in regions]
    for method in methods:
        if method.is_persistent:
            raise InputError(f"{method.text} is another call of the program, not a setting; leave it out")
        if method.is_own:
            raise InputError(
                f"{method.text} is Earlybird's algorithm, which no MPI can be forced to use; leave it out"
            )
        if method.is_forced:
            find_algorithm(family, operation, method.name)
    if not any(method.is_forced for method in methods):
        return _shell(family, operation, {}, regions, ())
    if family == "openmpi" and operation not in _OF_OWN_COUNTS:
        return _rules(operation, regions)
    sizes = _intel_ranges(operation, regions) if family == "intel" and len(regions) > 1 else None
    if sizes is not None:
        return _shell(family, operation, sizes, regions, ())
    chosen = Region(_of_all_sizes(regions, size_bytes).method, regions[0].ranks)
    left_out = tuple(region for region in regions if region.method not in (chosen.method, DEFAULT))
    if family == "openmpi" and chosen.method != DEFAULT:
        rules = _rules(operation, [chosen])
        return replace(rules, left_out=left_out, reason=f"ranks may count different sizes of {operation}")
    variables = _variables(family, operation, parse_method(chosen.method), chosen.ranks)
    return _shell(family, operation, variables, (chosen,), left_out)


def _of_all_sizes(regions: Sequence[Region], size_bytes: int | None) -> Region:
    """The region whose algorithm is used for all sizes."""
    if size_bytes is not None:
        around = [one for one in regions if one.from_bytes <= size_bytes <= _end(one)]
        return around[0] if around else Region(DEFAULT, regions[0].ranks)
    default = next((one for one in regions if one.method == DEFAULT), None)
    return default or max(regions, key=_span)


def mpich_selects(operation: str, method: str, ranks: int) -> bool:
    """Whether MPICH's files can select `method` by size."""
    parsed = parse_method(method)
    return not parsed.is_forced or is_selectable(operation, _variables("mpich", operation, parsed, ranks))


def selection_configuration(
    selection: Selection, operation: str, regions: Sequence[Region], num_nodes: int
) -> Configuration:
    """The configuration for MPICH with the trees of its library: every region, for exactly their ranks on
    `num_nodes` nodes. Sizes below the first region and above the last one keep MPICH's choice."""
    ranks = regions[0].ranks
    followers = [region.from_bytes - 1 for region in regions[1:]]
    rules = []
    for region, last in zip(regions, [*followers, _end(regions[-1])], strict=True):
        method = parse_method(region.method)
        if method.is_forced:
            needs = find_algorithm("mpich", operation, method.name).needs
            variables = _variables("mpich", operation, method, ranks)
            rules.append(SelectionRule(region.from_bytes, last, variables, needs))
    if not rules:
        return _shell("mpich", operation, {}, regions, ())
    files = selection_files(selection, operation, ranks, num_nodes, rules)
    paths = {name: _suffix(name) for name in files}
    variables = {name: f"FILE{suffix}" for name, suffix in paths.items()}
    shell = _shell("mpich", operation, variables, regions, ())
    return replace(shell, files={paths[name]: text for name, text in files.items()})


def _suffix(variable: str) -> str:
    return ".ch4.json" if "_CH4_" in variable else ".json"


def setting(family: str, operation: str, method: str, ranks: int) -> str:
    """Text to write before the command that starts a job, for all sizes."""
    parsed = parse_method(method)
    if parsed.is_own:
        return "an MPI cannot select it: replace the call by sends and receives along its tree"
    if parsed.name == DEFAULT:
        return "nothing: this is the default of the MPI"
    if parsed.is_persistent:
        return _persistent_setting(family, operation, parsed, ranks)
    variables = _variables(family, operation, parsed, ranks)
    if family == "simgrid":
        return " ".join(_smpirun_arguments(variables))
    return " ".join(f"{name}={value}" for name, value in variables.items())


def _persistent_setting(family: str, operation: str, method: Method, ranks: int) -> str:
    call = f"MPI_{operation.capitalize()}"
    text = f"replace {call} by {call}_init once, MPI_Start and MPI_Wait"
    forced = forcing(family, operation, method, ranks)
    variables = _labelled(forced.call, "OMPI_MCA_" if family == "openmpi" else "")
    settings = " ".join(f"{name}={value}" for name, value in variables.items())
    return f"{text}, with {settings}" if settings else text


def _labelled(variables: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Variables of calls as in the environment, where MPICH takes labels instead of numbers."""
    found = {}
    for name, value in variables.items():
        labels = MPICH_LABELS.get(name.removeprefix("MPIR_CVAR_"))
        found[prefix + name] = value if labels is None else labels[int(value)]
    return found


def _variables(family: str, operation: str, method: Method, ranks: int) -> dict[str, str]:
    """The environment that forces `method`, including variables that could be written at run time."""
    if method.name == DEFAULT:
        return {}
    forced = forcing(family, operation, method, ranks)
    variables = {**forced.environment, **_labelled(forced.call)}
    return variables | {f"OMPI_MCA_{name}": value for name, value in forced.communicator.items()}


def _shell(
    family: str,
    operation: str,
    variables: Mapping[str, str],
    regions: Sequence[Region],
    left_out: Sequence[Region],
) -> Configuration:
    description = "; ".join(region.describe() for region in regions)
    lines = [f"# {FAMILY_NAMES[family]}, {operation} on {regions[0].ranks} ranks: {description}"]
    lines += [
        f"# omitted, because one algorithm serves all sizes here: {region.describe()}" for region in left_out
    ]
    if family == "simgrid":
        lines += _smpirun_arguments(variables)
        kind, use = "smpirun", "smpirun $(grep -v '^#' FILE)"
    else:
        lines += [f'export {name}="{value}"' for name, value in variables.items()]
        kind, use = "shell", ". FILE"
    return Configuration(
        kind, "\n".join(lines) + "\n", use, tuple(left_out), not variables, regions=tuple(regions)
    )


def _smpirun_arguments(variables: Mapping[str, str]) -> list[str]:
    return [f"--cfg={name}:{value}" for name, value in variables.items()]


def _rules(operation: str, regions: Sequence[Region]) -> Configuration:
    """From how many bytes on, among how many ranks, which algorithm, with which segments; sizes of blocks
    count all blocks.

    Open MPI also applies the rules of its first number of ranks to fewer ranks, and those of its last number
    to more: both are the default here.
    """
    ranks = regions[0].ranks
    rules = [f"{_OPENMPI_NUMBERS[operation]}  # {operation}", "3  # numbers of ranks"]
    of_others = ["0 0 0 0  # default"]
    of_ranks = [_rule(operation, region) for region in _with_default(regions)]
    fields = "of each: from so many bytes on, algorithm, fan-out, bytes of a segment"
    for first, of_sizes in ((1, of_others), (ranks, of_ranks), (ranks + 1, of_others)):
        rules += [
            f"{first}  # from so many ranks on",
            f"{len(of_sizes)}  # sizes; {fields}",
            *of_sizes,
        ]
    use = (
        "export OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_dynamic_rules_filename=FILE "
        "OMPI_MCA_coll_tuned_priority=90"
    )
    return Configuration("rules", "\n".join(["1  # operations", *rules]) + "\n", use, regions=tuple(regions))


def _rule(operation: str, region: Region) -> str:
    method = parse_method(region.method)
    algorithm = find_algorithm("openmpi", operation, method.name) if method.is_forced else Algorithm(0)
    first = region.from_bytes * (region.ranks if operation in PER_PAIR else 1)
    return f"{first} {algorithm.choice} {algorithm.fan_out} {method.segment_bytes}  # {method.text}"


def _with_default(regions: Sequence[Region]) -> list[Region]:
    """Regions that cover all sizes: the default below the first one and above the last one."""
    first, last, ranks = regions[0].from_bytes, regions[-1].to_bytes, regions[0].ranks
    below = [] if first == 0 else [Region(DEFAULT, ranks, 0, first - 1)]
    above = [] if last is None else [Region(DEFAULT, ranks, last + 1)]
    found: list[Region] = []
    for region in (*below, *regions, *above):
        if found and found[-1].method == region.method:
            found[-1] = replace(found[-1], to_bytes=region.to_bytes)
        else:
            found.append(region)
    return found


def _intel_ranges(operation: str, regions: Sequence[Region]) -> dict[str, str] | None:
    """One variable with a range of sizes for each region; None where the algorithms need different values of
    another variable. 2021.18.1 ignores a single range, and numbers of ranks."""
    known = FAMILIES["intel"][operation]
    methods = [parse_method(region.method) for region in regions]
    found = [known[method.name] if method.is_forced else None for method in methods]
    name = f"I_MPI_ADJUST_{operation.upper()}"
    preset_of = {DEFAULT: 0} | {
        region.method: 0 if one is None else one.choice or one.preset
        for region, one in zip(regions, found, strict=True)
    }
    if None not in preset_of.values() and not any(method.segment_bytes for method in methods):
        covering = _with_default(regions)
        return {name: _ranges([preset_of[region.method] for region in covering], covering)}
    if None in found or any(one.choice for one in found if one is not None):
        return None
    of_methods = [
        _variables("intel", operation, method, region.ranks)
        for method, region in zip(methods, regions, strict=True)
    ]
    merged: dict[str, str] = {}
    for variables in of_methods:
        for key, value in variables.items():
            if key != name + _NETWORK and merged.setdefault(key, value) != value:
                return None
    return merged | {name + _NETWORK: _ranges([one[name + _NETWORK] for one in of_methods], regions)}


def _ranges(choices: Sequence[object], regions: Sequence[Region]) -> str:
    """`1:0-1023;3:1024-2147483647`, without gaps."""
    firsts = [0, *(region.from_bytes for region in regions[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), _LAST_BYTES]
    return ";".join(
        f"{choice}:{first}-{last}" for choice, first, last in zip(choices, firsts, lasts, strict=True)
    )


def _end(region: Region) -> int:
    """The last size."""
    return _LAST_BYTES if region.to_bytes is None else region.to_bytes


def _span(region: Region) -> float:
    """How many times its size doubles."""
    return math.log2(_end(region) + 1) - math.log2(region.from_bytes + 1)
