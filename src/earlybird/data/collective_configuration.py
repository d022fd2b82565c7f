"""Configuration that makes an MPI use the advised algorithms of its operations: a file of rules, or
variables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

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
from earlybird.data.mpich_selection import Selection, SelectionRule, is_selectable
from earlybird.data.plain_text import plain_line

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
# What MPICH's two JSON files have after the name of the file of settings.
SELECTION_SUFFIXES = (".json", ".ch4.json")


@dataclass(frozen=True)
class Region:
    """Sizes from `from_bytes` to `to_bytes`, both included (None: unlimited), for which `ranks` use `method`
    in `operation`."""

    operation: str
    method: str
    ranks: int
    from_bytes: int = 0
    to_bytes: int | None = None

    def describe(self) -> str:
        end = "up" if self.to_bytes is None else f"to {self.to_bytes}"
        return f"{self.method} from {self.from_bytes} bytes {end}"


def by_operation(regions: Iterable[Region]) -> dict[str, list[Region]]:
    """Return the regions of each operation."""
    found: dict[str, list[Region]] = {}
    for region in regions:
        found.setdefault(region.operation, []).append(region)
    return found


def describe(regions: Iterable[Region]) -> str:
    """Return the regions of one operation as text."""
    return "; ".join(region.describe() for region in regions)


@dataclass(frozen=True)
class Configuration:
    """Settings of one job, for one operation or several.

    Attributes
    ----------
    kind : `rules` (a file that Open MPI reads), `shell` (lines for a job script) or `smpirun` (arguments).
    use : text that says how to use a file FILE with `text`.
    regions : the algorithm that is in force for each range of sizes.
    left_out : regions that cannot be expressed together with the others, with the reason.
    files : texts of further files, by the suffix that their name adds to FILE.
    """

    kind: str
    text: str
    use: str
    regions: tuple[Region, ...] = ()
    left_out: Mapping[Region, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(by_operation(self.regions))

    @property
    def changed(self) -> tuple[str, ...]:
        """The operations for which something is set; the others keep the MPI's default."""
        return tuple(by_operation(region for region in self.regions if region.method != DEFAULT))

    @property
    def idle(self) -> bool:
        """True if nothing is set."""
        return not self.changed


@dataclass(frozen=True)
class _OperationSettings:
    """The settings that make an MPI use `regions` of one operation: variables, or rules of Open MPI."""

    regions: Sequence[Region]
    variables: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[str] = ()
    left_out: Mapping[Region, str] = field(default_factory=dict)


def configuration(family: str, regions: Sequence[Region], size_bytes: int | None = None) -> Configuration:
    """Return the configuration for an MPI of `family`, with the regions of each operation in order of size,
    all for the same rank count.

    Open MPI takes every region, except that gather and scatter can use only one algorithm for all sizes.
    MPICH, too, uses one algorithm for all sizes if variables select it (by size: `selection_configuration`).
    Intel MPI takes all regions if they are presets, or k-ary and binomial trees of one radix; otherwise one.
    That one is the algorithm of the region that contains `size_bytes`. Without `size_bytes` it is the default
    if that has a region, as another algorithm would be slower there, else the algorithm of the widest region.
    Sizes outside the regions keep the default of Open MPI, and of Intel MPI's presets.

    Raise InputError for Earlybird's algorithms, which no MPI can be forced to use, and for operations that
    need different values of a variable.
    """
    parts = [
        _settings_of(family, operation, of_operation, size_bytes)
        for operation, of_operation in by_operation(regions).items()
    ]
    if any(part.rules for part in parts):
        return _rules_file(parts)
    return _shell(family, parts, _merged(parts))


def _settings_of(
    family: str, operation: str, regions: Sequence[Region], size_bytes: int | None
) -> _OperationSettings:
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
        return _OperationSettings(regions)
    if family == "openmpi" and operation not in _OF_OWN_COUNTS:
        return _OperationSettings(regions, rules=_rules(operation, regions))
    sizes = _intel_ranges(operation, regions) if family == "intel" and len(regions) > 1 else None
    if sizes is not None:
        return _OperationSettings(regions, sizes)
    return _settings_of_all_sizes(family, operation, regions, size_bytes)


def _settings_of_all_sizes(
    family: str, operation: str, regions: Sequence[Region], size_bytes: int | None
) -> _OperationSettings:
    """Return settings that use one algorithm for all sizes, and leave the other regions out."""
    if operation == "barrier":  # it has no other size than its own
        size_bytes = None
    chosen = Region(operation, _of_all_sizes(regions, size_bytes).method, regions[0].ranks)
    reason = f"ranks may count different sizes of {operation}" if family == "openmpi" else _ONE_FOR_ALL
    left_out = {region: reason for region in regions if region.method not in (chosen.method, DEFAULT)}
    if chosen.method == DEFAULT:
        return _OperationSettings([chosen], left_out=left_out)
    if family == "openmpi":
        return _OperationSettings([chosen], rules=_rules(operation, [chosen]), left_out=left_out)
    variables = _variables(family, operation, parse_method(chosen.method), chosen.ranks)
    return _OperationSettings([chosen], variables, left_out=left_out)


def _merged(parts: Sequence[_OperationSettings]) -> dict[str, str]:
    """Return the variables of all parts; raise InputError if two need different values of one."""
    merged: dict[str, str] = {}
    set_by: dict[str, str] = {}
    for part in parts:
        operation = part.regions[0].operation
        for name, value in part.variables.items():
            if merged.setdefault(name, value) != value:
                raise InputError(
                    f"{set_by[name]} and {operation} need {name} to be {merged[name]} and {value}, so one "
                    "file cannot set both; give one --op at a time"
                )
            set_by.setdefault(name, operation)
    return merged


def _of_all_sizes(regions: Sequence[Region], size_bytes: int | None) -> Region:
    """Return the region whose algorithm is used for all sizes."""
    if size_bytes is not None:
        around = [one for one in regions if one.from_bytes <= size_bytes <= _end(one)]
        return around[0] if around else Region(regions[0].operation, DEFAULT, regions[0].ranks)
    default = next((one for one in regions if one.method == DEFAULT), None)
    return default or max(regions, key=_span)


def mpich_selects(operation: str, method: str, ranks: int) -> bool:
    """Return whether MPICH's files can select `method` by size."""
    parsed = parse_method(method)
    return not parsed.is_forced or is_selectable(operation, _variables("mpich", operation, parsed, ranks))


def selection_configuration(selection: Selection, regions: Sequence[Region], num_nodes: int) -> Configuration:
    """Return the configuration for MPICH with the trees of its library: every region, for exactly its number
    of ranks on `num_nodes` nodes. Sizes below the first region of an operation and above its last one keep
    MPICH's choice."""
    parts = []
    for operation, of_operation in by_operation(regions).items():
        rules = _selection_rules(operation, of_operation)
        selection = selection.with_rules(operation, of_operation[0].ranks, num_nodes, rules)
        parts.append(_OperationSettings(of_operation))
    if all(region.method == DEFAULT for region in regions):
        return _shell("mpich", parts, {})
    texts = selection.files()
    shell = _shell("mpich", parts, {name: f"FILE{_suffix(name)}" for name in texts})
    return replace(shell, files={_suffix(name): text for name, text in texts.items()})


def _selection_rules(operation: str, regions: Sequence[Region]) -> list[SelectionRule]:
    followers = [region.from_bytes - 1 for region in regions[1:]]
    rules = []
    for region, last in zip(regions, [*followers, _end(regions[-1])], strict=True):
        method = parse_method(region.method)
        if method.is_forced:
            needs = find_algorithm("mpich", operation, method.name).needs
            variables = _variables("mpich", operation, method, region.ranks)
            rules.append(SelectionRule(region.from_bytes, last, variables, needs))
    return rules


def _suffix(variable: str) -> str:
    of_all, of_device = SELECTION_SUFFIXES
    return of_device if "_CH4_" in variable else of_all


def setting(family: str, operation: str, method: str, ranks: int) -> str:
    """Return text to write before the command that starts a job, for all sizes."""
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
    """Return the variables of calls as in the environment, where MPICH takes labels instead of numbers."""
    found = {}
    for name, value in variables.items():
        labels = MPICH_LABELS.get(name.removeprefix("MPIR_CVAR_"))
        found[prefix + name] = value if labels is None else labels[int(value)]
    return found


def _variables(family: str, operation: str, method: Method, ranks: int) -> dict[str, str]:
    """Return the environment that forces `method`, including variables that could be written at run time."""
    if method.name == DEFAULT:
        return {}
    forced = forcing(family, operation, method, ranks)
    variables = {**forced.environment, **_labelled(forced.call)}
    return variables | {f"OMPI_MCA_{name}": value for name, value in forced.communicator.items()}


def _shell(family: str, parts: Sequence[_OperationSettings], variables: Mapping[str, str]) -> Configuration:
    lines = []
    for part in parts:
        about = f"{part.regions[0].operation} on {part.regions[0].ranks} ranks"
        lines.append(f"# {FAMILY_NAMES[family]}, {about}: {describe(part.regions)}")
        lines += [
            f"# omitted, because one algorithm serves all sizes here: {region.describe()}"
            for region in part.left_out
        ]
    if family == "simgrid":
        lines += _smpirun_arguments(variables)
        kind, use = "smpirun", "smpirun $(grep -v '^#' FILE)"
    else:
        lines += [f'export {name}="{value}"' for name, value in variables.items()]
        kind, use = "shell", ". FILE"
    return _of_parts(kind, lines, use, parts)


def _of_parts(
    kind: str, lines: Sequence[str], use: str, parts: Sequence[_OperationSettings]
) -> Configuration:
    return Configuration(
        kind,
        "\n".join(map(plain_line, lines)) + "\n",
        use,
        tuple(region for part in parts for region in part.regions),
        {region: reason for part in parts for region, reason in part.left_out.items()},
    )


def _smpirun_arguments(variables: Mapping[str, str]) -> list[str]:
    return [f"--cfg={name}:{value}" for name, value in variables.items()]


def _rules_file(parts: Sequence[_OperationSettings]) -> Configuration:
    """Return the text of a rules file of Open MPI; operations without rules keep the choice of its component
    `tuned`."""
    rules = [part.rules for part in parts if part.rules]
    use = (
        "export OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_dynamic_rules_filename=FILE "
        "OMPI_MCA_coll_tuned_priority=90"
    )
    return _of_parts("rules", [f"{len(rules)}  # operations", *chain.from_iterable(rules)], use, parts)


def _rules(operation: str, regions: Sequence[Region]) -> list[str]:
    """Return the rules: from how many bytes on, among how many ranks, which algorithm, with which segments;
    sizes of blocks count all blocks.

    Open MPI also applies the rules of its first number of ranks to fewer ranks, and the rules of its last
    number to more: both are the default here.
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
    return rules


def _rule(operation: str, region: Region) -> str:
    method = parse_method(region.method)
    algorithm = find_algorithm("openmpi", operation, method.name) if method.is_forced else Algorithm(0)
    first = region.from_bytes * (region.ranks if operation in PER_PAIR else 1)
    return f"{first} {algorithm.choice} {algorithm.fan_out} {method.segment_bytes}  # {method.text}"


def _with_default(regions: Sequence[Region]) -> list[Region]:
    """Return regions that cover all sizes: the default below the first one and above the last one."""
    first, last = regions[0].from_bytes, regions[-1].to_bytes
    default = Region(regions[0].operation, DEFAULT, regions[0].ranks)
    below = [] if first == 0 else [replace(default, to_bytes=first - 1)]
    above = [] if last is None else [replace(default, from_bytes=last + 1)]
    found: list[Region] = []
    for region in (*below, *regions, *above):
        if found and found[-1].method == region.method:
            found[-1] = replace(found[-1], to_bytes=region.to_bytes)
        else:
            found.append(region)
    return found


def _intel_ranges(operation: str, regions: Sequence[Region]) -> dict[str, str] | None:
    """Return one variable with a range of sizes for each region; None if the algorithms need different values
    of another variable. Intel MPI 2021.18.1 ignores a single range, and numbers of ranks."""
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
    """Return the ranges of sizes without gaps, such as `1:0-1023;3:1024-2147483647`."""
    firsts = [0, *(region.from_bytes for region in regions[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), _LAST_BYTES]
    return ";".join(
        f"{choice}:{first}-{last}" for choice, first, last in zip(choices, firsts, lasts, strict=True)
    )


def _end(region: Region) -> int:
    """Return the last size of a region."""
    return _LAST_BYTES if region.to_bytes is None else region.to_bytes


def _span(region: Region) -> float:
    """Return how many times the size doubles within a region."""
    return math.log2(_end(region) + 1) - math.log2(region.from_bytes + 1)
