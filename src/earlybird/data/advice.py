"""Advice: alternatives ranked by what was measured or predicted, and the sizes at which the best one
changes; of one operation, or of several collective operations of a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypedDict

from earlybird.data import files
from earlybird.data.schema import (
    OMIT_EMPTY,
    Bytes,
    Count,
    Estimate,
    Extra,
    Natural,
    NotNegative,
    Rank,
    Ranks,
    Record,
    decode,
)

SCHEMA = "earlybird.advice/1"
COLLECTIVES_SCHEMA = "earlybird.collectives-advice/1"
CONFIG = "config"  # the key of the settings
# What the values of an alternative are based on: this point was measured, lies within the measured range, or
# outside of it.
MEASURED, MODEL, EXTRAPOLATED = "measured", "model", "extrapolated"


class AlternativeKeys(TypedDict, total=False):
    """Further values of an alternative or of a range of sizes, which depend on the operation.

    Attributes
    ----------
    partitions : number of partitions of the buffer.
    messages : number of messages.
    message_bytes : size of every message but the last.
    vcis : communication contexts requested from the MPI.
    algorithm : algorithm of a collective.
    segment_bytes : size of the segments of a collective.
    form : the form that predicted the time.
    source : source of the parameters, as in a [prediction](#predictedmethod).
    extrapolated : the values that are outside the measured range.
    messages_between_nodes : number of messages between nodes with aggregation.
    largest_part : the work of the largest part of a mesh over the mean.
    edge_cut : number of edges between the parts of a mesh.
    kind : for a program: the kind of the change.
    phase : for a program: the phase that the change affects.
    functions : for a program: the functions that the change affects.
    """

    partitions: Count | None
    messages: Natural | None
    message_bytes: NotNegative | None
    vcis: Ranks
    algorithm: str | None
    segment_bytes: Bytes | None
    form: str | None
    source: str | None
    extrapolated: bool | list[str] | None
    messages_between_nodes: Natural | None
    largest_part: NotNegative | None
    edge_cut: NotNegative | None
    kind: str | None
    phase: int | str | None
    functions: str | list[str] | None


class ConfigKeys(TypedDict, total=False):
    """Settings that make the MPI use those of its algorithms that were measured to be faster than its
    default.

    Attributes
    ----------
    kind : `rules`, `shell` or `smpirun`.
    text : content of the file.
    use : the command that makes a job use it.
    regions : the settings in the file: `method` and sizes `from_bytes` to `to_bytes`, both included, null if
        unlimited; for several operations also `operation`.
    left_out : the choices that this file cannot express.
    """

    text: str
    use: str | None
    kind: Any
    regions: Any
    left_out: Any


class Asked(TypedDict, total=False):
    """The arguments of a request for advice; its keys depend on the operation. For a program: `recording`,
    `ranks` and `layout`; for a pipeline also `gamma`.

    Attributes
    ----------
    threads : number of threads that fill the buffer.
    root : root of the operation, 0 if it has none.
    size_bytes : size of the message or buffer; 0 for a barrier.
    """

    operation: str | None
    ranks: Ranks | None
    threads: Ranks | None
    root: Rank | None
    size_bytes: Bytes | None
    map_by: str | None
    layout: str | None
    level: str | None


class AdviceKeys(TypedDict, total=False):
    """Keys of an advice that depend on the operation.

    Attributes
    ----------
    assumptions, models : sentences about a program.
    rule : the rule by which `advise partition` chose.
    swaps : `advise layout`: the number of swaps tried.
    swaps_ended_by : `advise layout`: the end of the swaps: `count`, `budget` or `interrupt`.
    config : settings of collectives, [ConfigKeys](#configkeys).
    """

    assumptions: list[str]
    models: list[str]
    model_reason: str | None
    rule: str | None
    config: ConfigKeys | str | None
    swaps: Any
    swaps_ended_by: Any


@dataclass(frozen=True)
class Alternative(Record):
    """A method for the requested operation.

    Attributes
    ----------
    method : name of the method.
    action : the setting, command or program change that selects it.
    extra : further values, such as the number of partitions.
    measured_state : whether the measured times converged.
    time_s : time, determined as `basis` says.
    speed_up : speed-up over the baseline, determined as `basis` says; null if unknown.
    predicted_speed_up : speed-up by the model alone.
    measured_time_s : measured time; absent if this point was not measured.
    measured_speed_up : speed-up from measured times; absent if this point was not measured.
    basis : `measured` (this point was measured), `model` (the point lies within the measured range: the
        model's values, corrected by the measured points around it) or `extrapolated`.
    """

    key_types: ClassVar[Mapping[str, Any]] = {"extra": AlternativeKeys}

    method: str
    time_s: Estimate
    speed_up: Estimate | None
    action: str
    basis: str = MODEL
    predicted_speed_up: Estimate | None = None
    measured_time_s: Estimate | None = None
    measured_speed_up: Estimate | None = None
    measured_state: str = field(default="", metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class SizeRange(Record):
    """The sizes from `from_bytes` to `to_bytes` for which one method is advised; a crossover lies between two
    ranges. Further keys are the keys of an alternative that depend on the operation.

    Attributes
    ----------
    from_bytes, to_bytes : ends of the range.
    method : the method that is advised.
    action : the setting, command or program change that selects it.
    """

    key_types: ClassVar[Mapping[str, Any]] = {"extra": AlternativeKeys}

    from_bytes: Bytes
    to_bytes: Bytes
    method: str
    action: str
    extra: Extra = field(default_factory=dict)


def _about(size_bytes: float) -> str:
    """Return a size with two digits: crossovers are known to about 1 %."""
    return f"{float(size_bytes):.2g}"


@dataclass(frozen=True)
class Advice(Record):
    """The alternatives of an `operation`, best first, for the request `asked`.

    Attributes
    ----------
    operation : the operation, such as `pipeline` or `bcast`.
    asked : the question, [Asked](#asked).
    baseline : the method that speed-ups are relative to.
    ranked : the alternatives, at least one, the best first.
    size_ranges : ranges of sizes for which one method is advised, within the measured sizes.
    """

    schema: ClassVar[str] = SCHEMA
    key_types: ClassVar[Mapping[str, Any]] = {"extra": AdviceKeys, "asked": Asked}

    operation: str
    asked: Mapping[str, Any]
    baseline: str = ""
    ranked: tuple[Alternative, ...] = ()
    size_ranges: tuple[SizeRange, ...] = ()
    profile_id: str = ""
    notes: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ranked:
            raise ValueError("ranked is missing or empty; give an alternative")

    def distinct_ranges(self) -> list[SizeRange]:
        """Return the ranges of sizes, each joined with the next one if its ends read the same."""
        joined: list[SizeRange] = []
        begin: int | None = None
        for item in self.size_ranges:
            item = item if begin is None else replace(item, from_bytes=begin)
            begin = None
            is_short = item.to_bytes > item.from_bytes and _about(item.from_bytes) == _about(item.to_bytes)
            is_same = bool(joined) and (joined[-1].method, joined[-1].extra) == (item.method, item.extra)
            if is_short and not joined and item.to_bytes < self.size_ranges[-1].to_bytes:
                begin = item.from_bytes
            elif joined and (is_short or is_same):
                joined[-1] = replace(joined[-1], to_bytes=item.to_bytes)
            else:
                joined.append(item)
        return joined


@dataclass(frozen=True)
class CollectivesAdvice(Record):
    """Advice on several collective operations among the same ranks; `extra` has the settings of all.

    Attributes
    ----------
    advice : one Advice for each operation, without `config`, which applies to all.
    """

    schema: ClassVar[str] = COLLECTIVES_SCHEMA
    key_types: ClassVar[Mapping[str, Any]] = {"extra": AdviceKeys}

    advice: tuple[Advice, ...] = ()
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.advice:
            raise ValueError("advice is missing or empty; give that on an operation")

    def pieces(self) -> list[Advice]:
        """Return the advice on each operation, with the settings of all."""
        config = {CONFIG: self.extra[CONFIG]} if CONFIG in self.extra else {}
        return [replace(one, extra={**one.extra, **config}) for one in self.advice]


def load_advice(path: str | Path) -> Advice:
    return advice_from_json(files.read_json(path, "advice", SCHEMA), f"the advice {path}")


def advice_from_json(value: Mapping[str, Any], where: str = "the advice") -> Advice:
    """Build an Advice from its JSON object; raise InputError if a part is missing."""
    return decode(value, Advice, where, "make it again with `earlybird advise` and `--json`")


def collectives_advice_from_json(value: Mapping[str, Any], where: str = "the advice") -> CollectivesAdvice:
    """Build a CollectivesAdvice from its JSON object; raise InputError if a part is missing."""
    return decode(value, CollectivesAdvice, where, "make it again with `earlybird advise collective --json`")
