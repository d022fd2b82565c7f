"""What a reader chooses among pipelines: MPI, place, threads, contexts, partitions and delay."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earlybird.report import words
from earlybird.report.pipelines import Pipeline

# Of each choice: what sorts its values, and the value in words.
_CHOICES: Mapping[str, Callable[[Pipeline], tuple[Any, str]]] = {
    "MPI": lambda one: (one.label, one.label),
    "where": lambda one: (words.level_order(one.setting.level), words.level(one.setting.level)),
    "threads": lambda one: (one.setting.threads, str(one.setting.threads)),
    "contexts": lambda one: (one.setting.vcis or 0, one.setting.contexts()),
    "partitions": lambda one: (one.setting.partitions, str(one.setting.partitions)),
    "delay": lambda one: (one.setting.order()[4:], one.setting.late()),
}


def choice(one: Pipeline) -> dict[str, str]:
    """The values of `one`, by name of the choice."""
    return {name: value(one)[1] for name, value in _CHOICES.items()}


def choices(found: Sequence[Pipeline]) -> dict[str, list[str]]:
    """The values that there are of every choice, in order."""
    return {
        name: list(dict.fromkeys(text for _, text in sorted({value(one) for one in found})))
        for name, value in _CHOICES.items()
    }


def headline(found: Sequence[Pipeline]) -> Pipeline:
    """What a reader sees first: of those with a late partition, if any, and then of those with a core for
    each thread, the one that gains most over one message with its largest buffer."""
    return max(
        found,
        key=lambda one: (
            one.setting.delay_rate() > 0,
            not one.oversubscribed,
            _last_gain(one),
            len(one.points),
        ),
    )


def _last_gain(one: Pipeline) -> float:
    gains = [max(gain for gain, _, _ in point.gain.values()) for point in one.points if point.gain]
    return gains[-1] if gains else 0.0


def setting_words(one: Pipeline, leave_out: Sequence[str] = ()) -> str:
    """`within a socket, 4 threads, 16 partitions, delay 100 us/MB`; a single thread and the MPI's own
    contexts go without saying."""
    setting = one.setting
    parts = {
        "where": words.level(setting.level),
        "threads": words.counted(setting.threads, "thread") if setting.threads > 1 else "",
        "contexts": words.counted(setting.vcis, "context") if setting.vcis is not None else "",
        "partitions": words.counted(setting.partitions, "partition"),
        "delay": f"delay {setting.late()}" if setting.late() != "none" else "no delay",
    }
    return ", ".join(text for name, text in parts.items() if text and name not in leave_out)
