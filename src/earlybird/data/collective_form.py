"""The fitted model of one algorithm of a collective operation: an entry of a profile's `forms`."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Required, TypedDict

import numpy as np

from earlybird.data import labels
from earlybird.data.collective_algorithms import OPERATIONS, ROOTED
from earlybird.data.levels import LEVELS, MAPPINGS
from earlybird.data.schema import (
    OMIT_EMPTY,
    Bytes,
    Count,
    Extra,
    NotNegative,
    Number,
    Record,
    decode,
    require_ascending,
    require_one_of,
)

FORMS = ("alpha-beta", "empirical")
RANGES = ("ranks", "size_bytes")
TREES = ("linear", "chain", "binomial-doubling", "binomial-halving")

# Coefficients of a level: the prefix by term, in the order of `models.collective.term_names`.
_PREFIXES = {"linear": ("", "first_"), "empirical": ("", "log2_", "ranks_", "share_")}
_TABLES = ("alpha_s", "beta_s_per_byte")
_SHARED = ("links", "sends")

# Ranks, bytes, bytes of a segment, mapping, seconds.
Point = tuple[Count, Bytes, Bytes, str, NotNegative]


@dataclass(frozen=True)
class CollectiveProtocol(Record):
    """The coefficients of messages of `min_bytes` and more, by the type of the hop and by name; coefficients
    that are absent are 0.

    Attributes
    ----------
    min_bytes : smallest size, 0 for the first, then ascending.
    intra_socket, inter_socket, inter_node : `alpha_s` and `beta_s_per_byte` of a hop; with the prefix
        `first_` the additional cost of the first message of linear; in an empirical form without prefix for
        each call, with the prefixes `log2_`, `ranks_` and `share_` for further terms.
    """

    min_bytes: Bytes = 0
    intra_socket: dict[str, NotNegative] = field(default_factory=dict, metadata=OMIT_EMPTY)
    inter_socket: dict[str, NotNegative] = field(default_factory=dict, metadata=OMIT_EMPTY)
    inter_node: dict[str, NotNegative] = field(default_factory=dict, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class CollectiveParameters(Record):
    """The coefficients of one form (`models.collective.CollectiveCosts`), see
    [collective-models.md](../collective-models.md).

    Attributes
    ----------
    protocols : protocols by ascending `min_bytes`.
    gamma_r_s_per_byte : time to reduce a byte.
    constant_s : time added once per call.
    shared : the resource that messages share: `links` or `sends`.
    link_s_per_byte : time per byte of the link of the busiest node.
    burst_bytes : bytes that an idle link between nodes carries at once; 0 if every byte costs the same.
    work_alpha_s : time per message of all ranks together, on shared cores.
    work_beta_s_per_byte : time per byte of all ranks together, on shared cores.
    work_from_ranks : the number of ranks from which on they share cores.
    """

    given_elsewhere = ("structure",)  # the form's tree

    structure: str
    protocols: tuple[CollectiveProtocol, ...]
    gamma_r_s_per_byte: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    constant_s: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    link_s_per_byte: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    work_from_ranks: Bytes = field(default=0, metadata=OMIT_EMPTY)
    work_alpha_s: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    work_beta_s_per_byte: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    shared: str | None = None
    burst_bytes: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_ascending(self.min_bytes)
        if self.shared is not None:
            require_one_of("shared", self.shared, _SHARED)

    @classmethod
    def of_columns(cls, structure: str, columns: Mapping[str, Any]) -> "CollectiveParameters":
        """Build the parameters from their columns, the inverse of `columns`."""
        tables = [(name, columns[name]) for name in _TABLES]
        protocols = []
        for c, start in enumerate(columns["min_bytes"]):
            coefficients = {
                level: {
                    prefix + name: float(table[c, t, k])
                    for t, prefix in enumerate(_prefixes(structure))
                    for name, table in tables
                    if table[c, t, k]
                }
                for k, level in enumerate(LEVELS)
            }
            protocols.append(CollectiveProtocol(int(start), **coefficients))
        others = {name: item for name, item in columns.items() if name not in (*_TABLES, "min_bytes")}
        return cls(structure, tuple(protocols), **others)

    def columns(self) -> dict[str, Any]:
        """Return the coefficients by their names in `models.collective.CollectiveCosts`."""
        others = ("structure", "protocols", "extra")
        value = {name: item for name, item in vars(self).items() if name not in others}
        return value | {"min_bytes": np.array(self.min_bytes)} | {name: self._table(name) for name in _TABLES}

    @property
    def min_bytes(self) -> tuple[int, ...]:
        return tuple(one.min_bytes for one in self.protocols)

    @property
    def alpha_s(self) -> np.ndarray:
        return self._table("alpha_s")

    @property
    def beta_s_per_byte(self) -> np.ndarray:
        return self._table("beta_s_per_byte")

    def _table(self, name: str) -> np.ndarray:
        """Return the coefficients as an array (C, T, 3) by protocol, term and level."""
        names = [prefix + name for prefix in _prefixes(self.structure)]
        of_levels = [[getattr(one, level) for level in LEVELS] for one in self.protocols]
        return np.array([[[one.get(name, 0.0) for one in row] for name in names] for row in of_levels])


@dataclass(frozen=True, kw_only=True)
class Collective(Record):
    """The algorithm that a form of a collective describes.

    Attributes
    ----------
    operation : the operation, such as `bcast`.
    algorithm : the algorithm, without the segment size.
    mpi : the MPI whose algorithm it is; absent for Earlybird's own.
    """

    operation: str
    algorithm: str
    mpi: str = ""
    extra: Extra = field(default_factory=dict)


# With more than this error, a form predicts nothing.
_LARGE_ERROR = 0.5


class AlternativeForm(TypedDict, total=False):
    """A [published regression](../collective-models.md#insaghis-three-regressions) that `fit` compared with
    the form of the profile, on the same points.

    Attributes
    ----------
    form : name of the regression, such as `insaghi-3`.
    points : the points to which it was fitted, such as `all sizes`.
    times : `completion`.
    fitted_to : `all sizes` or `all mappings`.
    parameters : parameters of the form.
    aicc : corrected Akaike criterion.
    error : median relative error at these points.
    held_out_error : error at a process count left out.
    held_out_error_sizes : error at a size left out.
    extrapolation_error : error if fitted to at most half of the processes.
    """

    form: Required[str]
    points: Required[Any]
    fitted_to: str
    parameters: Any
    aicc: Number | None
    error: NotNegative | None
    held_out_error: NotNegative | None
    held_out_error_sizes: NotNegative | None
    extrapolation_error: NotNegative | None
    times: Any


class CollectiveFormKeys(TypedDict, total=False):
    """The keys of a form that `fit` adds.

    Attributes
    ----------
    error : median relative error at the points of the fit.
    points : number of points of the fit.
    aicc : corrected Akaike criterion.
    held_out_error : error at a process count left out.
    held_out_error_sizes : error at a size left out.
    extrapolation_error : error if fitted to at most half of the processes.
    family : the MPI whose algorithms these are, if `mpi` does not say it (`system`).
    oversubscribed : ranks shared cores.
    alternatives : other forms that were fitted to the same points.
    """

    error: NotNegative | None
    held_out_error: NotNegative | None
    held_out_error_sizes: NotNegative | None
    extrapolation_error: NotNegative | None
    family: str
    alternatives: list[AlternativeForm]
    points: Any
    aicc: Any
    oversubscribed: Any


@dataclass(frozen=True, kw_only=True)
class CollectiveForm(Record):
    """The parameters of one algorithm and their range of validity.

    Attributes
    ----------
    extra : further keys, such as `held_out_error` and `alternatives`.
    what : the algorithm that it describes.
    form : `alpha-beta` or `empirical`.
    tree : its communication tree: `linear`, `chain`, `binomial-doubling` or `binomial-halving`; absent if the
        form is `empirical`.
    parameters : parameters of the form.
    range : `ranks` and `size_bytes`, each `[lowest, highest]` measured; `segments_bytes`, the measured
        segment sizes, 0 for no segmentation.
    map_by : measured mappings.
    levels : measured types of hops; by default the types that have a coefficient.
    machine : `nodes`, `sockets` of a node and `cores` of a socket that ranks were placed on.
    measured : ranks, bytes, bytes of a segment, mapping and seconds of points with root 0 and ranks placed
        like the first ranks of that machine, the median over launches.
    replicates : parameters of resampled launches; replicate k is the same draw in every form of a profile.
    """

    key_types: ClassVar[Mapping[str, Any]] = {"extra": CollectiveFormKeys}

    what: Collective
    form: str
    tree: str | None = None
    parameters: CollectiveParameters
    range: dict[str, tuple[Bytes, ...]]
    map_by: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None
    machine: dict[str, Count] = field(default_factory=dict)
    measured: tuple[Point, ...] = field(default=(), metadata=OMIT_EMPTY)
    replicates: tuple[CollectiveParameters, ...] = field(default=(), metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.form == "alpha-beta":
            require_one_of(f"the operation of the form {self.form}", self.operation, ROOTED)
            require_one_of(f"the tree of the form {self.form}", self.tree, TREES)
        elif self.tree is not None:
            raise ValueError(f"the form {self.form} has the tree {self.tree!r}; leave it out")
        for name in RANGES:
            if len(self.range.get(name, ())) != 2:
                raise ValueError(f"'range' must give {name} as [lowest, highest]")
        if not self.segments_bytes:
            raise ValueError("segments_bytes is empty; give a list of bytes, 0 for none")
        for map_by in (*self.map_by, *(point[3] for point in self.measured)):
            require_one_of("map_by", map_by, MAPPINGS)
        if self.machine and not self.machine.keys() >= {"nodes", "sockets", "cores"}:
            raise ValueError("'machine' must give nodes, sockets, cores")
        if self.levels is None:
            of_protocols = self.parameters.protocols
            used = (any(any(getattr(one, level).values()) for one in of_protocols) for level in LEVELS)
            object.__setattr__(self, "levels", tuple(itertools.compress(LEVELS, used)))
        for level in self.levels or ():
            require_one_of("levels", level, LEVELS)

    @property
    def operation(self) -> str:
        return self.what.operation

    @property
    def algorithm(self) -> str:
        return self.what.algorithm

    @property
    def mpi(self) -> str:
        return self.what.mpi

    @property
    def structure(self) -> str:
        return self.tree or "empirical"

    @property
    def doubt(self) -> str:
        """A sentence if the form does not even describe the points to which it was fitted; else ""."""
        error = self.extra.get("error")
        if not isinstance(error, int | float) or error <= _LARGE_ERROR:
            return ""
        return (
            f"the form of {self.algorithm} is off by {labels.percent(error)} at the points that it was "
            "fitted to, so what it predicts means little; measure again on an idle machine"
        )

    @property
    def segments_bytes(self) -> tuple[int, ...]:
        return self.range.get("segments_bytes", (0,))


def collective_form_from_json(value: Mapping[str, Any], where: str = "the form") -> CollectiveForm:
    """Build a CollectiveForm from its JSON object; check every number."""
    structure = {"structure": value.get("tree") or "empirical"}
    changed: dict[str, Any] = {}
    if isinstance(parameters := value.get("parameters"), Mapping):
        changed["parameters"] = {**parameters, **structure}
    if isinstance(replicates := value.get("replicates"), list):
        changed["replicates"] = [
            {**one, **structure} if isinstance(one, Mapping) else one for one in replicates
        ]
    return decode({**value, **changed}, CollectiveForm, where)


def is_collective(form: Any) -> bool:
    what = form.get("what") if isinstance(form, Mapping) else None
    return isinstance(what, Mapping) and what.get("operation") in OPERATIONS and form.get("form") in FORMS


def _prefixes(structure: str) -> tuple[str, ...]:
    return _PREFIXES.get(structure, ("",))
