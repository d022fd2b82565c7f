"""Selectors of the chapter on pipelines: MPI, level, threads, contexts, partitions and delay."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earlybird.data import labels
from earlybird.report.pipelines import Pipeline

# For each selector: the sort key of a value, and its label.
_CHOICES: Mapping[str, Callable[[Pipeline], tuple[Any, str]]] = {
    "MPI": lambda pipeline: (pipeline.label, pipeline.label),
    "level": lambda pipeline: (
        labels.level_order(pipeline.setting.level),
        labels.level(pipeline.setting.level),
    ),
    "threads": lambda pipeline: (pipeline.setting.threads, str(pipeline.setting.threads)),
    "contexts": lambda pipeline: (pipeline.setting.vcis or 0, pipeline.setting.contexts()),
    "partitions": lambda pipeline: (pipeline.setting.partitions, str(pipeline.setting.partitions)),
    "delay": lambda pipeline: (pipeline.setting.order()[4:], pipeline.setting.late()),
}


def choice(pipeline: Pipeline) -> dict[str, str]:
    """The values of a pipeline, by name of the selector."""
    return {name: value(pipeline)[1] for name, value in _CHOICES.items()}


def choices(measured: Sequence[Pipeline]) -> dict[str, list[str]]:
    """The values of every selector, in order."""
    return {
        name: list(dict.fromkeys(text for _, text in sorted({value(pipeline) for pipeline in measured})))
        for name, value in _CHOICES.items()
    }


def headline(measured: Sequence[Pipeline]) -> Pipeline:
    """The pipeline shown first: preferably one with a late partition, then one with a core per thread, then
    the one whose largest buffer has the largest speed-up over a single message."""
    return max(
        measured,
        key=lambda pipeline: (
            pipeline.setting.delay_rate() > 0,
            not pipeline.oversubscribed,
            _last_speed_up(pipeline),
            len(pipeline.points),
        ),
    )


def _last_speed_up(pipeline: Pipeline) -> float:
    gains = [
        max(gain for gain, _, _ in point.speed_up.values()) for point in pipeline.points if point.speed_up
    ]
    return gains[-1] if gains else 0.0


def setting_text(pipeline: Pipeline, leave_out: Sequence[str] = ()) -> str:
    """`MPICH, same socket, 4 threads, 16 partitions, delay 100 us/MB`, without a single thread or the default
    number of contexts."""
    setting = pipeline.setting
    parts = {
        "MPI": pipeline.label,
        "level": labels.level(setting.level),
        "threads": labels.counted(setting.threads, "thread") if setting.threads > 1 else "",
        "contexts": labels.counted(setting.vcis, "context") if setting.vcis is not None else "",
        "partitions": labels.counted(setting.partitions, "partition"),
        "delay": f"delay {setting.late()}" if setting.late() != "none" else "no delay",
    }
    return ", ".join(text for name, text in parts.items() if text and name not in leave_out)
