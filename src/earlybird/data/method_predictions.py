"""Predictions of pipelines and of collectives: the time of each method, or of each algorithm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data.schema import Bytes, Count, Extra, NotNegative, Number, Rank, Ranks, Record, decode

PIPELINE_SCHEMA = "earlybird.pipeline-prediction/1"
COLLECTIVE_SCHEMA = "earlybird.collective-prediction/1"

Interval = tuple[NotNegative, NotNegative]


@dataclass(frozen=True, kw_only=True)
class _Prediction(Record):
    """The attributes that every prediction of methods has."""

    size_bytes: Bytes
    profile_id: str = ""
    notes: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _PredictedTime(Record):
    """The attributes that the time of every method has.

    Attributes
    ----------
    time_interval_s : 95 % interval of the time, if the profile has replicates.
    """

    method: str
    time_s: NotNegative
    time_interval_s: Interval | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PredictedMethod(_PredictedTime):
    """The predicted time of one send method.

    Attributes
    ----------
    method : the send method.
    time_s : time from when the last partition is ready until the receiver has everything.
    vcis : number of communication contexts, if they were requested from the MPI.
    speed_up : speed-up over `single`.
    speed_up_interval : its interval.
    messages : number of messages.
    message_bytes : the size of every message but the last, and the largest size.
    source : the measurements to which the parameters were fitted: `pipeline fit`, `pipeline fit at T
        threads`, or `levels` (latency and bandwidth of the levels alone).
    """

    vcis: Ranks | None = None
    speed_up: NotNegative | None = None
    messages: Count
    message_bytes: Bytes
    source: str
    speed_up_interval: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class PipelinePrediction(_Prediction):
    """The output of `earlybird predict pipeline --json`.

    Attributes
    ----------
    threads : number of threads that fill the buffer.
    partitions : number of partitions of the buffer.
    gamma_s_per_byte : computation per byte.
    delay_s : time by which the last partition is late.
    methods : one prediction for each send method.
    """

    schema: ClassVar[str] = PIPELINE_SCHEMA

    level: str
    threads: Ranks
    partitions: Count
    gamma_s_per_byte: NotNegative
    delay_s: NotNegative
    methods: tuple[PredictedMethod, ...]


@dataclass(frozen=True, kw_only=True)
class PredictedAlgorithm(_PredictedTime):
    """The predicted time of one algorithm.

    Attributes
    ----------
    method : the method, such as `pipeline:8192`.
    algorithm : its algorithm, such as `pipeline`.
    segment_bytes : its segment size, such as 8192; 0 for no segments.
    time_s : time from the common start until the last rank is done.
    form : `alpha-beta`, `empirical`, or `interpolated` between measured times.
    tree : the communication tree.
    extrapolated : the names, out of `ranks`, `size`, `mapping` and `segment`, of values outside the measured
        range.
    held_out_error : held-out error of the form.
    """

    algorithm: str
    segment_bytes: Bytes
    form: str
    tree: str | None = None
    extrapolated: tuple[str, ...] = ()
    held_out_error: Number | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedTime(Record):
    """The time that a [published regression](../collective-models.md#insaghis-three-regressions) predicts.

    Attributes
    ----------
    form : form of the regression.
    table : the table of the regression in the paper.
    algorithm : algorithm that the regression describes.
    time_s : predicted time.
    """

    form: str
    table: str
    algorithm: str
    map_by: str
    time_s: NotNegative
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CollectivePrediction(_Prediction):
    """The output of `earlybird predict collective --json`.

    Attributes
    ----------
    algorithms : one prediction for each algorithm.
    references : times of the published regressions, for the same ranks, size and mapping on the machine of
        the paper.
    """

    schema: ClassVar[str] = COLLECTIVE_SCHEMA

    operation: str
    ranks: Ranks
    root: Rank
    layout: str
    map_by: str
    mpi: str
    algorithms: tuple[PredictedAlgorithm, ...]
    references: tuple[PublishedTime, ...] = ()


def pipeline_prediction_from_json(
    value: Mapping[str, Any], where: str = "the prediction"
) -> PipelinePrediction:
    return decode(value, PipelinePrediction, where, "make it again with `earlybird predict pipeline --json`")


def collective_prediction_from_json(
    value: Mapping[str, Any], where: str = "the prediction"
) -> CollectivePrediction:
    return decode(
        value, CollectivePrediction, where, "make it again with `earlybird predict collective --json`"
    )
