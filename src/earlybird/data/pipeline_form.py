"""The fitted model of one method to send a buffer in partitions: an entry of a profile's `forms`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from earlybird.data.levels import LEVELS
from earlybird.data.schema import (
    OMIT_EMPTY,
    Bandwidth,
    Bytes,
    Count,
    Extra,
    NotNegative,
    Ranks,
    Record,
    Share,
    decode,
    require_ascending,
    require_one_of,
)

FORM = "joined"
RANGES = ("size_bytes", "partitions", "gamma_s_per_byte")
_MESSAGES = ("one", "each", "planned")


@dataclass(frozen=True, kw_only=True)
class JoinedProtocol(Record):
    """The cost of messages of `min_bytes` and more: seconds once, seconds for each, bytes per second.

    Attributes
    ----------
    min_bytes : smallest size, 0 for the first, then ascending.
    bandwidth_bytes_per_s : bandwidth of the messages together.
    latency_s : time from the departure of the last message until the receiver has everything.
    overhead_s : time by which a message delays others, in addition to the time for its bytes.
    """

    min_bytes: Bytes = 0
    latency_s: NotNegative
    overhead_s: NotNegative = 0.0
    bandwidth_bytes_per_s: Bandwidth
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class JoinedParameters(Record):
    """The parameters of the [joined model](../pipeline-models.md#the-joined-model)
    (`models.pipelined.PipelineCosts`).

    Attributes
    ----------
    messages : `one`, `each` (partition), `planned` (by libearlybird), or the number of bytes up to which
        whole partitions are aggregated.
    protocols : protocols by ascending `min_bytes`.
    per_partition_s : cost of the calls for one partition.
    overlap : useful share of an early message's head start: 0 if nothing is sent before the last partition is
        ready.
    burst_bytes, post_burst_s_per_byte : additional time per byte in the part of a buffer beyond the first
        `burst_bytes`; absent if every byte costs the same.
    """

    messages: str | Count
    protocols: tuple[JoinedProtocol, ...]
    per_partition_s: NotNegative = 0.0
    overlap: Share = 1.0
    burst_bytes: NotNegative | None = None
    post_burst_s_per_byte: NotNegative = field(default=0.0, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.messages, str):
            require_one_of("messages", self.messages, (*_MESSAGES, "the bytes to aggregate up to"))
        require_ascending([one.min_bytes for one in self.protocols])

    def columns(self) -> dict[str, Any]:
        """Return the parameters as arrays over protocols and as numbers, by their names in
        `models.pipelined.PipelineCosts`."""
        return {
            "min_bytes": np.array([one.min_bytes for one in self.protocols]),
            "latency_s": np.array([one.latency_s for one in self.protocols]),
            "overhead_s": np.array([one.overhead_s for one in self.protocols]),
            "s_per_byte": np.array([1 / one.bandwidth_bytes_per_s for one in self.protocols]),
            "per_partition_s": self.per_partition_s,
            "overlap": self.overlap,
            "burst_bytes": math.inf if self.burst_bytes is None else self.burst_bytes,
            "post_burst_s_per_byte": self.post_burst_s_per_byte,
        }


@dataclass(frozen=True, kw_only=True)
class Pipeline(Record):
    """The method and conditions that a form of a pipeline describes.

    Attributes
    ----------
    operation : always `pipeline`.
    method : the send method.
    level : level of the two ranks.
    threads : number of threads that fill the buffer.
    vcis : number of communication contexts requested from the MPI; absent for its default.
    receivers : `threads` if all threads of the receiving rank received; absent if only its main thread did.
    """

    operation: Literal["pipeline"] = "pipeline"
    method: str
    level: str
    threads: Ranks = 1
    vcis: Ranks | None = None
    receivers: Literal["threads"] | None = None
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("level", self.level, LEVELS)


class PipelineFormKeys(TypedDict, total=False):
    """The keys of a form that `fit` adds.

    Attributes
    ----------
    error : median relative error at the points of the fit.
    held_out_error_sizes : error at sizes left out.
    points : number of points of the fit.
    oversubscribed : whether threads shared cores.
    held_out_error : error at numbers of partitions left out.
    """

    error: NotNegative | None
    held_out_error: NotNegative | None
    held_out_error_sizes: NotNegative | None
    points: Any
    oversubscribed: Any


@dataclass(frozen=True, kw_only=True)
class PipelineForm(Record):
    """The parameters of one method and their range of validity.

    Attributes
    ----------
    what : the method that it describes.
    form : always `joined`.
    parameters : parameters of the joined model.
    range : `size_bytes`, `partitions` and `gamma_s_per_byte`, each `[lowest, highest]` measured.
    replicates : parameters fitted to resampled launches; replicate k of every method of a profile uses the
        same draw.
    """

    key_types: ClassVar[Mapping[str, Any]] = {"extra": PipelineFormKeys}

    what: Pipeline
    form: Literal["joined"] = "joined"
    parameters: JoinedParameters
    range: dict[str, tuple[Bytes | NotNegative, Bytes | NotNegative]]
    replicates: tuple[JoinedParameters, ...] = field(default=(), metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if missing := [name for name in RANGES if name not in self.range]:
            raise ValueError(f"'range' must give {missing[0]} as [lowest, highest]")

    @property
    def method(self) -> str:
        return self.what.method

    @property
    def level(self) -> str:
        return self.what.level

    @property
    def threads(self) -> int:
        return self.what.threads

    @property
    def vcis(self) -> int | None:
        return self.what.vcis


def pipeline_form_from_json(value: Mapping[str, Any], where: str = "the form") -> PipelineForm:
    """Build a PipelineForm from its JSON object; check every number."""
    return decode(value, PipelineForm, where)


def is_pipeline(form: Any) -> bool:
    what = form.get("what") if isinstance(form, Mapping) else None
    return isinstance(what, Mapping) and what.get("operation") == "pipeline" and form.get("form") == FORM
