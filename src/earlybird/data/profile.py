"""Profile: the cost of MPI on a machine in one context, by level and protocol."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypedDict, TypeVar

import msgspec
import numpy as np

from earlybird.data import files
from earlybird.data.collective_form import CollectiveForm, collective_form_from_json, is_collective
from earlybird.data.errors import InputError
from earlybird.data.kernels import PINGPONG
from earlybird.data.kinds import require_path
from earlybird.data.levels import LEVELS
from earlybird.data.packing_form import PackingForm, is_packing, packing_form_from_json
from earlybird.data.pipeline_form import PipelineForm, is_pipeline, pipeline_form_from_json
from earlybird.data.results import results_from_json
from earlybird.data.schema import (
    OMIT_EMPTY,
    Bandwidth,
    Bytes,
    Extra,
    NotNegative,
    Number,
    Ratio,
    Record,
    decode,
    require_ascending,
    require_one_of,
)
from earlybird.data.units import number_or_none

SCHEMA = "earlybird.profile/1"
REUSED = "reused_s"  # a key of a level
Form = TypeVar("Form", PipelineForm, CollectiveForm, PackingForm)
# How forms in a file are recognised and read.
_READERS: Mapping[type, tuple[Callable[[Any], bool], Callable[[Any, str], Any]]] = {
    PipelineForm: (is_pipeline, pipeline_form_from_json),
    CollectiveForm: (is_collective, collective_form_from_json),
    PackingForm: (is_packing, packing_form_from_json),
}
# Defaults for a profile's context or a launch without these keys: threads per rank, the network, which is
# recorded only for a virtual cluster, and the user's arguments for srun.
USUAL_CONTEXT = {"threads_per_rank": 1, "network": "not a virtual cluster's", "srun": "without arguments"}

Competitors = Annotated[int, msgspec.Meta(ge=1, lt=10**9)]


class ProtocolKeys(TypedDict, total=False):
    """The keys of a protocol that `fit` adds.

    Attributes
    ----------
    sender_waits_measured : [completion times](../fitting.md#whether-senders-wait) determined `sender_waits`.
    sender_waits_changes_between_bytes : the two measured sizes between which `sender_waits` changes at
        `min_bytes`. A protocol within which it changes is written as several entries with the same name.
    bounded_n, above_link_n, oversubscribed_n : the N whose bandwidth is only a bound, exceeds the link of a
        virtual cluster, or was measured with more ranks than cores.
    threshold : the library variable that determined `min_bytes`.
    """

    sender_waits_measured: bool | None
    oversubscribed_n: list[int]
    bounded_n: list[int]
    above_link_n: list[int]
    sender_waits_changes_between_bytes: Any
    threshold: Any


class LevelKeys(TypedDict, total=False):
    """The keys of a level that `fit` adds.

    Attributes
    ----------
    held_out_error : median relative error at [sizes left out](../fitting.md#how-far-to-trust-it) of the
        fit.
    held_out_error_n : the same error at numbers of competitors left out.
    launches : how often the N with the fewest launches was launched.
    reused_s : the seconds of one message whose buffers a cache holds, by N and size, from
        `measure contention --buffers reuse`.
    """

    held_out_error: Number | None
    held_out_error_n: Number | None
    launches: int
    reused_s: dict[str, dict[str, Number]]


class ProfileKeys(TypedDict, total=False):
    """The keys of a profile that `fit` adds.

    Attributes
    ----------
    warnings : warnings about the use of the profile.
    fit : the method of the fit.
    results : measurements of pipelines and collectives, [results](#result); `advise` uses them where they
        exist.
    measured_with : `launcher`, `hosts`, `agent` and `mpi` of the first run, if given; printed commands
        contain them.
    """

    warnings: list[str]
    results: list[Any]
    fit: Any
    measured_with: Any


@dataclass(frozen=True, kw_only=True)
class Protocol(Record):
    """A protocol of a level (short, eager, rendezvous): a straight line in the message size, for every N.

    Attributes
    ----------
    name : any text; `fit` names protocols [by their order](../fitting.md#where-protocols-begin).
    min_bytes : smallest size of the protocol: 0 for the first of a level, then ascending.
    latency_s : tau, per message.
    sender_waits : whether a send completes only at delivery; if absent, true for the name `rendezvous`; set
        it, or measure it, where it matters.
    buffered_bytes : bytes of a connection that may not be acknowledged yet when a send is complete, for the
        model [`queue`](../models.md#queues); [measured](../fitting.md#what-the-network-buffers) between
        nodes; if absent, no limit, or nothing if `sender_waits`.
    awaits_receive : whether a message begins only when its receive is posted;
        [measured](../fitting.md#whether-senders-wait); if absent, as `sender_waits`.
    bandwidth_bytes_per_s : maps N to the bytes/s that the whole group receives while N of its processes
        receive. Models use `"1"`.
    """

    key_types: ClassVar[Mapping[str, Any]] = {"extra": ProtocolKeys}

    name: str = "rendezvous"
    min_bytes: Bytes = 0
    latency_s: NotNegative
    sender_waits: bool | None = None
    buffered_bytes: Bytes | None = None
    awaits_receive: bool | None = None
    bandwidth_bytes_per_s: dict[Competitors, Bandwidth]
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.bandwidth_bytes_per_s:
            raise ValueError('bandwidth_bytes_per_s must map N to bytes per second, such as {"1": 1e10}')
        if self.sender_waits is None:
            object.__setattr__(self, "sender_waits", self.name == "rendezvous")

    @property
    def buffered(self) -> float:
        """`buffered_bytes`; without it 0 if the sender waits, else infinity."""
        if self.buffered_bytes is not None:
            return float(self.buffered_bytes)
        return 0.0 if self.sender_waits else np.inf

    def bandwidth_table(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (N sorted, bytes/s), the two columns that the models interpolate."""
        counts, rates = zip(*sorted(self.bandwidth_bytes_per_s.items()), strict=True)
        return np.array(counts), np.array(rates, dtype=float)

    def continues(self, before: "Protocol") -> bool:
        """Return whether this is the same line as `before`, except for `sender_waits`."""
        line, line_before = ((p.name, p.latency_s, p.bandwidth_bytes_per_s) for p in (self, before))
        return line == line_before


@dataclass(frozen=True)
class Level(Record):
    """The protocols of one level, by ascending `min_bytes`.

    Attributes
    ----------
    protocols : protocols, at least one, by ascending `min_bytes`.
    """

    key_types: ClassVar[Mapping[str, Any]] = {"extra": LevelKeys}
    given_elsewhere = ("name",)

    name: str
    protocols: tuple[Protocol, ...]
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_ascending([protocol.min_bytes for protocol in self.protocols])

    def protocol_index(self, size_bytes: np.ndarray) -> np.ndarray:
        """Return the index of the one of `protocols` that carries a message of each size."""
        starts = np.array([protocol.min_bytes for protocol in self.protocols])
        return np.searchsorted(starts, size_bytes, side="right") - 1


class PingPongLine(NamedTuple):
    """The half round trip of messages of at least `min_bytes`: the latency, and bytes over the bandwidth."""

    name: str
    min_bytes: float
    latency_s: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True)
class Replicate(Record):
    """The levels of one draw of resampled launches.

    Attributes
    ----------
    levels : levels by name.
    """

    levels: dict[str, Level]
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class Replay(Record):
    """The errors of the models for an exchange that was replayed, which was not part of the fit.

    Attributes
    ----------
    level : level of the messages that go farthest.
    error : model name -> the relative error, as in a Comparison.
    run_id : id of the replay.
    """

    level: str
    error: dict[str, Ratio]
    run_id: str = ""
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("level", self.level, LEVELS)


@dataclass(frozen=True)
class Profile(Record):
    """The results of `fit` in one context. A hand-written file requires only `levels`, which may be empty if
    there are forms.

    A form is a PipelineForm, a CollectiveForm, a PackingForm or a JSON object: forms of a file are checked
    when `pipelines`, `collectives` or `packings` is first used.

    Attributes
    ----------
    levels : `intra_socket`, `inter_socket`, `inter_node`; at least one, unless `forms` has an entry.
    id : name of the profile.
    machine : the machine of its run.
    context : the conditions of its runs: flavour, version, launcher, transport, the placement of each level,
        `threads_per_rank` when not 1, `network` of a virtual cluster.
    runs : `id` and `sha256` of each run; the digest is the digest of `samples.ndjson`.
    forms : further fitted models: the [ping-pong curve](../fitting.md#the-ping-pong-curve),
        [pipelines](#pipelineform), [collectives](#collectiveform),
        [packing](#packingform).
    intervals : 95 % intervals `[low, high]` by level, protocol, and then `latency_s`, or
        `bandwidth_bytes_per_s` by N.
    replicates : fits to resampled launches; `predict` computes intervals from them.
    replays : errors for each replay given to `fit`; they [choose the default
        model](../fitting.md#replays-and-the-default-model).
    """

    schema: ClassVar[str] = SCHEMA
    key_types: ClassVar[Mapping[str, Any]] = {"extra": ProfileKeys}

    levels: dict[str, Level]
    id: str = ""
    machine: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    runs: tuple[dict[str, str], ...] = ()
    forms: tuple[Any, ...] = ()
    intervals: dict[str, Any] = field(default_factory=dict, metadata=OMIT_EMPTY)
    replicates: tuple[Replicate, ...] = field(default=(), metadata=OMIT_EMPTY)
    replays: tuple[Replay, ...] = field(default=(), metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.levels:
            require_one_of("level", name, LEVELS)

    @classmethod
    def load(cls, path: str | Path) -> "Profile":
        """Read a profile; raise InputError for missing or invalid values."""
        require_path(path, "the profile to load")
        return load_profile(path)

    def save(self, path: str | Path) -> None:
        """Write the profile as JSON, atomically."""
        require_path(path, "the file to write")
        save_profile(self, path)

    @cached_property
    def pipelines(self) -> list[PipelineForm]:
        return self._typed(PipelineForm)

    @cached_property
    def collectives(self) -> list[CollectiveForm]:
        return self._typed(CollectiveForm)

    @cached_property
    def packings(self) -> list[PackingForm]:
        return self._typed(PackingForm)

    def readable(self) -> tuple["Profile", str]:
        """Return the profile with the forms that have all that this version needs, and a remark on the
        others, such as those of an old file; "" without any."""
        kept, problems = [], []
        for k, form in enumerate(self.forms):
            try:
                for kind in _READERS:
                    self._read(form, k, kind)
                kept.append(form)
            except InputError as error:
                problems.append(str(error))
        if not problems:
            return self, ""
        count = f"{len(problems)} form{'s' * (len(problems) > 1)}"
        return replace(self, forms=tuple(kept)), f"left out {count}: {problems[0]}, or fit again"

    def _typed(self, kind: type[Form]) -> list[Form]:
        forms = [self._read(form, k, kind) for k, form in enumerate(self.forms)]
        return [form for form in forms if form is not None]

    def _read(self, form: Any, k: int, kind: type[Form]) -> Form | None:
        """Return the k-th form as a record of this kind; None if it is of another one."""
        if isinstance(form, kind):
            return form
        is_one, from_json = _READERS[kind]
        return from_json(form, f"the profile {self.id or '(no id)'}, form {k}") if is_one(form) else None

    def ping_pong(self, level: str) -> tuple[Mapping[str, Any], list[PingPongLine]]:
        """Return the first usable `piecewise_postal` form of a level, and its lines by size; no lines without
        a form."""
        for form in self.forms:
            what = form.get("what") if isinstance(form, dict) else None
            if not isinstance(what, dict) or form.get("form") != "piecewise_postal":
                continue
            is_one = what.get("operation") == PINGPONG.name and what.get("level") == level
            if is_one and (lines := _ping_pong_lines(form)):
                return form, lines
        return {}, []

    def interval(
        self, level: str, protocol: str, key: str, n: int | None = None
    ) -> tuple[float, float] | None:
        """Return the interval of a value of a protocol, or of its value at N; None if there is no such
        pair."""
        value: Any = self.intervals
        for name in (level, protocol, key, *([] if n is None else [str(n)])):
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, list | tuple) or len(value) != 2 or None in map(number_or_none, value):
            return None
        return float(value[0]), float(value[1])

    def level(self, name: str) -> Level:
        """Return the level `name`; raise InputError if this profile has none."""
        if name not in self.levels:
            raise InputError(
                f"the profile {self.id or '(no id)'} has no level {name}, which this pattern and layout "
                f"need; it has {', '.join(self.levels) or 'none'}: measure at "
                "that level, then fit again, or add its profile with another --profile"
            )
        return self.levels[name]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "id": self.id} | super().to_json()


def _ping_pong_lines(form: Mapping[str, Any]) -> list[PingPongLine]:
    """Return the lines of a form; an empty list if a value is not usable."""
    try:
        lines = [
            PingPongLine(str(row.get("name", "")), *(float(row[key]) for key in PingPongLine._fields[1:]))
            for row in form["parameters"]["protocols"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    usable = all(
        np.isfinite(one[1:]).all() and one.latency_s >= 0 < one.bandwidth_bytes_per_s for one in lines
    )
    return lines if usable else []


def load_profile(path: str | Path) -> Profile:
    """Read a profile; raise InputError for missing or invalid values."""
    return profile_from_json(files.read_json(path, "profile", SCHEMA), f"the profile {path}")


def save_profile(profile: Profile, path: str | Path) -> None:
    files.write_json(path, profile.to_json())


def profile_from_json(value: Mapping[str, Any], where: str = "the profile") -> Profile:
    """Build a Profile from its JSON object; check every number."""
    if not value.get("levels") and not value.get("forms"):
        raise InputError(f"{where} has no 'levels'; give at least one of {', '.join(LEVELS)}")
    named = {"levels": _named(value.get("levels"))}
    if isinstance(replicates := value.get("replicates"), list):
        named["replicates"] = [
            one | {"levels": _named(one.get("levels"))} if isinstance(one, dict) else one
            for one in replicates
        ]
    results_from_json(value.get("results", []), where)  # read where they are used, and right before that
    return decode({**value, **named}, Profile, where)


def _named(levels: Any) -> Any:
    """Return the JSON object of levels with their names in them."""
    if not isinstance(levels, dict):
        return levels
    return {name: one | {"name": name} if isinstance(one, dict) else one for name, one in levels.items()}
