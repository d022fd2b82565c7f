"""The fitted model of one algorithm of a collective operation: an entry of a profile's `forms`."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earlybird.data.collective_algorithms import OPERATIONS, ROOTED
from earlybird.data.errors import InputError
from earlybird.data.files import with_present_keys
from earlybird.data.layout import LEVELS, MAPPINGS
from earlybird.data.profile import Profile
from earlybird.data.units import MAX_BYTES

FORMS = ("alpha-beta", "empirical")
RANGES = ("ranks", "size_bytes")

# Coefficients of a level: the prefix by term, in the order of `models.collective.term_names`.
_PREFIXES = {"linear": ("", "first_"), "empirical": ("", "log2_", "ranks_", "share_")}
_SCALARS = (
    "gamma_r_s_per_byte", "constant_s", "link_s_per_byte", "work_alpha_s", "work_beta_s_per_byte",
    "burst_bytes",
)  # fmt: skip


def prefixes(structure: str) -> tuple[str, ...]:
    """Prefixes of `alpha_s` and `beta_s_per_byte` in a level's coefficients, a term each."""
    return _PREFIXES.get(structure, ("",))


@dataclass(frozen=True, eq=False)
class CollectiveParameters:
    """Coefficients of one form, the arrays of `models.collective.CollectiveCosts`."""

    structure: str
    min_bytes: tuple[int, ...]
    alpha_s: np.ndarray
    beta_s_per_byte: np.ndarray
    gamma_r_s_per_byte: float = 0.0
    constant_s: float = 0.0
    link_s_per_byte: float = 0.0
    work_from_ranks: int = 0
    work_alpha_s: float = 0.0
    work_beta_s_per_byte: float = 0.0
    shared: str | None = None
    burst_bytes: float = 0.0

    def columns(self) -> dict[str, Any]:
        """The coefficients by their names in `models.collective.CollectiveCosts`."""
        value = {name: item for name, item in vars(self).items() if name != "structure"}
        return value | {"min_bytes": np.array(self.min_bytes)}

    def levels(self) -> set[str]:
        """The types of hops that have a coefficient above 0."""
        used = ((self.alpha_s > 0) | (self.beta_s_per_byte > 0)).any(axis=(0, 1))
        return {name for name, one in zip(LEVELS, used, strict=True) if one}

    def to_json(self) -> dict[str, Any]:
        protocols = []
        for c, start in enumerate(self.min_bytes):
            protocol: dict[str, Any] = {"min_bytes": start}
            for k, level in enumerate(LEVELS):
                entry: dict[str, float] = {}
                for t, prefix in enumerate(prefixes(self.structure)):
                    for name, table in (
                        ("alpha_s", self.alpha_s),
                        ("beta_s_per_byte", self.beta_s_per_byte),
                    ):
                        entry[f"{prefix}{name}"] = float(table[c, t, k])
                if any(entry.values()):
                    protocol[level] = {name: item for name, item in entry.items() if item}
            protocols.append(protocol)
        value: dict[str, Any] = {"protocols": protocols}
        value |= {name: getattr(self, name) for name in _SCALARS if getattr(self, name)}
        value |= {} if self.shared is None else {"shared": self.shared}
        return value | ({"work_from_ranks": self.work_from_ranks} if self.work_from_ranks else {})


@dataclass(frozen=True)
class CollectiveForm:
    """One algorithm's parameters and their range of validity.

    Attributes
    ----------
    algorithm : its name without the segment size.
    tree : its communication tree, see `models.trees.TREES`; None if unknown (`form` "empirical").
    segments_bytes : measured segment sizes, 0 for no segmentation.
    map_by : measured mappings.
    levels : measured types of hops.
    machine : "nodes", "sockets" of a node and "cores" of a socket that ranks were placed on.
    range : each of RANGES to the lowest and highest measured.
    measured : seconds by (ranks, bytes, bytes of a segment, mapping), of root 0, the median over launches.
    replicates : parameters of resampled launches; replicate k is the same draw in every form of a profile.
    extra : further keys, such as `held_out_error` and `alternatives`; they are preserved.
    """

    operation: str
    algorithm: str
    mpi: str
    parameters: CollectiveParameters
    tree: str | None = None
    segments_bytes: tuple[int, ...] = (0,)
    map_by: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    machine: Mapping[str, int] = field(default_factory=dict)
    range: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    measured: Mapping[tuple[int, int, int, str], float] = field(default_factory=dict)
    replicates: tuple[CollectiveParameters, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def structure(self) -> str:
        return self.tree or "empirical"

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "what": {"operation": self.operation, "algorithm": self.algorithm, "mpi": self.mpi},
            "form": "alpha-beta" if self.tree else "empirical",
            "parameters": self.parameters.to_json(),
            "range": {name: list(bounds) for name, bounds in self.range.items()}
            | {"segments_bytes": list(self.segments_bytes)},
            "map_by": list(self.map_by),
            "levels": list(self.levels),
            "machine": dict(self.machine),
        }
        if self.tree:
            value["tree"] = self.tree
        value |= self.extra
        if self.measured:
            value["measured"] = [[*point, time_s] for point, time_s in sorted(self.measured.items())]
        if self.replicates:
            value["replicates"] = [one.to_json() for one in self.replicates]
        return value


def collective_forms(profile: Profile) -> list[CollectiveForm]:
    """The collectives of a profile; InputError if one is incomplete or has an invalid number."""
    where = f"the profile {profile.id or '(no id)'}"
    return [
        collective_form_from_json(form, f"{where}, form {k}")
        for k, form in enumerate(profile.forms)
        if _is_collective(form)
    ]


def collective_form_from_json(value: Mapping[str, Any], where: str = "the form") -> CollectiveForm:
    """Build a CollectiveForm from its JSON object, checking every number."""
    what = value["what"]
    algorithm, mpi, tree = what.get("algorithm"), what.get("mpi", ""), value.get("tree")
    if not isinstance(algorithm, str) or not isinstance(mpi, str):
        raise InputError(f"{where} is of algorithm {algorithm!r} of {mpi!r}; give their names")
    trees = ("linear", "chain", "binomial-doubling", "binomial-halving")
    if (value["form"] == "alpha-beta") != (tree in trees):
        raise InputError(
            f"{where} has the form {value['form']!r} and the tree {tree!r}; alpha-beta has one of "
            f"{', '.join(trees)}, empirical none"
        )
    if value["form"] == "alpha-beta" and what["operation"] not in ROOTED:
        raise InputError(f"{where}: {what['operation']} has no root, so no tree; give the form empirical")
    ranges = value.get("range", {})
    for name in RANGES:
        if not isinstance(ranges, dict) or not _is_pair(ranges.get(name)):
            raise InputError(f"{where}: 'range' must give {name} as [lowest, highest]")
    segments = ranges.get("segments_bytes", [0])
    if not isinstance(segments, list) or not segments or not all(map(_is_size, segments)):
        raise InputError(f"{where}: segments_bytes is {segments!r}; give a list of bytes, 0 for none")
    replicates, mappings = value.get("replicates", []), value.get("map_by", [])
    if not isinstance(replicates, list) or not isinstance(mappings, list):
        raise InputError(f"{where}: 'replicates' and 'map_by' must be JSON lists")
    if unknown := [one for one in mappings if one not in MAPPINGS]:
        raise InputError(f"{where}: map_by has {unknown[0]!r}; there are {', '.join(MAPPINGS)}")
    structure = tree or "empirical"
    parameters = _parameters(value.get("parameters"), structure, where)
    levels = value.get("levels", sorted(parameters.levels(), key=LEVELS.index))
    if not isinstance(levels, list) or not set(levels) <= set(LEVELS):
        raise InputError(f"{where}: levels is {levels!r}; give a list of {', '.join(LEVELS)}")
    known = {
        "what", "form", "tree", "parameters", "range", "map_by", "levels", "machine", "measured",
        "replicates",
    }  # fmt: skip
    return CollectiveForm(
        what["operation"],
        algorithm,
        mpi,
        parameters,
        tree,
        tuple(segments),
        tuple(mappings),
        tuple(levels),
        _machine(value.get("machine", {}), where),
        {name: tuple(ranges[name]) for name in RANGES},
        _measured(value.get("measured", []), where),
        tuple(_parameters(one, structure, f"{where}, replicate {k}") for k, one in enumerate(replicates)),
        {key: item for key, item in value.items() if key not in known},
    )


def _is_collective(form: Any) -> bool:
    what = form.get("what") if isinstance(form, dict) else None
    return isinstance(what, dict) and what.get("operation") in OPERATIONS and form.get("form") in FORMS


def _machine(value: Any, where: str) -> dict[str, int]:
    names = ("nodes", "sockets", "cores")
    if value and (not isinstance(value, dict) or not all(_is_count(value.get(name)) for name in names)):
        raise InputError(f"{where}: 'machine' must give {', '.join(names)}, each 1 or more")
    return dict(value)


def _measured(value: Any, where: str) -> dict[tuple[int, int, int, str], float]:
    def is_point(row: Any) -> bool:
        if not isinstance(row, list) or len(row) != 5:
            return False
        *counts, map_by, time_s = row
        return all(map(_is_size, counts)) and map_by in MAPPINGS and _is_number(time_s)

    if not isinstance(value, list) or not all(map(is_point, value)):
        raise InputError(
            f"{where}: 'measured' must list points, each [ranks, bytes, bytes of a segment, mapping, seconds]"
        )
    return {tuple(point): float(time_s) for *point, time_s in value}


def _parameters(value: Any, structure: str, where: str) -> CollectiveParameters:
    protocols = value.get("protocols") if isinstance(value, dict) else None
    if not isinstance(protocols, list) or not protocols or not all(isinstance(p, dict) for p in protocols):
        raise InputError(f"{where}: 'parameters' must hold a list 'protocols' of JSON objects")
    value = with_present_keys(value)
    starts = [protocol.get("min_bytes", 0) for protocol in protocols]
    if not all(map(_is_size, starts)) or starts[0] != 0 or starts != sorted(set(starts)):
        raise InputError(f"{where}: min_bytes is {starts}; it must begin at 0 and ascend")
    shape = (len(protocols), len(prefixes(structure)), len(LEVELS))
    alpha_s, beta = np.zeros(shape), np.zeros(shape)
    for c, protocol in enumerate(protocols):
        for k, level in enumerate(LEVELS):
            entry = protocol.get(level, {})
            if not isinstance(entry, dict):
                raise InputError(f"{where}, protocol {c}: {level} must be a JSON object of coefficients")
            for t, prefix in enumerate(prefixes(structure)):
                alpha_s[c, t, k] = _number(entry, f"{prefix}alpha_s", where)
                beta[c, t, k] = _number(entry, f"{prefix}beta_s_per_byte", where)
    shared = value.get("shared")
    if shared not in (None, "links", "sends"):
        raise InputError(f"{where}: shared is {shared!r}; give links or sends, or leave it out")
    crowded = value.get("work_from_ranks", 0)
    if not _is_size(crowded):
        raise InputError(f"{where}: work_from_ranks is {crowded!r}; give a number of ranks, or leave it out")
    scalars = {name: _number(value, name, where) for name in _SCALARS}
    return CollectiveParameters(
        structure, tuple(starts), alpha_s, beta, **scalars, work_from_ranks=crowded, shared=shared
    )


def _number(value: Mapping[str, Any], name: str, where: str) -> float:
    number = value.get(name, 0.0)
    if not _is_number(number):
        raise InputError(f"{where}: {name} is {number!r}; give a number, 0 or more")
    return float(number)


def _is_number(value: Any) -> bool:
    sound = isinstance(value, int | float) and not isinstance(value, bool)
    return sound and 0 <= value <= sys.float_info.max and not math.isnan(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_size, value))


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_BYTES


def _is_count(value: Any) -> bool:
    return _is_size(value) and value >= 1
