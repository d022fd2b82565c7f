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
_NETWORK = "_NETWORK"  # the variable of Intel MPI's algorithms that ignore nodes


@dataclass(frozen=True)
class Region:
    """Sizes from `from_bytes` to `to_bytes` (None: unlimited) for which `ranks` use `method`."""

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
    expressed together with the others; `idle`: nothing is set, because the MPI's default is advised; `files`:
    texts of further files, by what is added to the name of FILE."""

    kind: str
    text: str
    use: str
    left_out: tuple[Region, ...] = ()
    idle: bool = False
    files: Mapping[str, str] = field(default_factory=dict)


def configuration(
    family: str, operation: str, regions: Sequence[Region], size_bytes: int | None = None
) -> Configuration:
    """The configuration for an MPI of `family`, with regions in order of size, all of the same rank count.

    Open MPI takes every region. MPICH takes one algorithm for all sizes: that of the region which contains
    `size_bytes`, otherwise of the widest region, because its selection file would have to list every
    collective operation. Intel MPI takes all if they are presets, or k-ary and binomial trees of one radix;
    otherwise one.

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
    if family == "openmpi":
        return _rules(operation, regions, methods)
    sizes = _intel_ranges(operation, regions, methods) if family == "intel" and len(regions) > 1 else None
    if sizes is not None:
        return _shell(family, operation, sizes, regions, ())
    if size_bytes is None:
        chosen = max(regions, key=_span)
    else:
        chosen = next((one for one in reversed(regions) if one.from_bytes <= size_bytes), regions[0])
    variables = _variables(family, operation, parse_method(chosen.method), chosen.ranks)
    left_out = tuple(region for region in regions if region.method != chosen.method)
    return _shell(family, operation, variables, (chosen,), left_out)


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
    for region, last in zip(regions, [*followers, regions[-1].to_bytes or _LAST_BYTES], strict=True):
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
        return Configuration(
            "smpirun", "\n".join(lines) + "\n", "smpirun $(grep -v '^#' FILE)", tuple(left_out), not variables
        )
    lines += [f'export {name}="{value}"' for name, value in variables.items()]
    return Configuration("shell", "\n".join(lines) + "\n", ". FILE", tuple(left_out), not variables)


def _smpirun_arguments(variables: Mapping[str, str]) -> list[str]:
    return [f"--cfg={name}:{value}" for name, value in variables.items()]


def _rules(operation: str, regions: Sequence[Region], methods: Sequence[Method]) -> Configuration:
    """From how many bytes on, among at least so many ranks, which algorithm, with which segments; sizes
    of blocks count all blocks."""
    ranks = regions[0].ranks
    blocks = ranks if operation in PER_PAIR else 1
    lines = [
        "1  # operations",
        f"{_OPENMPI_NUMBERS[operation]}  # {operation}",
        "1  # numbers of ranks",
        f"{ranks}  # from so many ranks on",
        f"{len(regions)}  # sizes; of each: from so many bytes on, algorithm, fan-out, bytes of a segment",
    ]
    for index, (region, method) in enumerate(zip(regions, methods, strict=True)):
        algorithm = find_algorithm("openmpi", operation, method.name) if method.is_forced else Algorithm(0)
        # Without a rule from 0 bytes on no rule of the file counts.
        first = region.from_bytes * blocks if index else 0
        lines.append(
            f"{first} {algorithm.choice} {algorithm.fan_out} {method.segment_bytes}  # {method.text}"
        )
    use = (
        "export OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_dynamic_rules_filename=FILE "
        "OMPI_MCA_coll_tuned_priority=90"
    )
    return Configuration("rules", "\n".join(lines) + "\n", use)


def _intel_ranges(
    operation: str, regions: Sequence[Region], methods: Sequence[Method]
) -> dict[str, str] | None:
    """One variable with a range of sizes for each region; None where the algorithms need different values of
    another variable. 2021.18.1 ignores a single range, and numbers of ranks."""
    known = FAMILIES["intel"][operation]
    found = [known[method.name] if method.is_forced else None for method in methods]
    name = f"I_MPI_ADJUST_{operation.upper()}"
    presets = [0 if one is None else one.choice or one.preset for one in found]
    if None not in presets and not any(method.segment_bytes for method in methods):
        return {name: _ranges(presets, regions)}
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


def _span(region: Region) -> float:
    """How many times its size doubles."""
    return math.log2((_LAST_BYTES if region.to_bytes is None else region.to_bytes) + 1) - math.log2(
        region.from_bytes + 1
    )
