"""The parts of the report: answers, chapters, lights, tables and figures, for the page and the terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from earlybird.data import labels
from earlybird.present.core.table import Table

Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items with the same key, in the order of their first item."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def few(count: int, most: int) -> list[int]:
    """Return at most `most` of `count` indices, evenly from the first to the last."""
    return sorted({round((count - 1) * k / (most - 1)) for k in range(most)})


@dataclass(frozen=True)
class Answer:
    """A line of the first screen: the question, the number and its interval ("" if unknown), the finding in
    one sentence, and the action, with commands between backquotes."""

    what: str
    number: str
    interval: str
    sentence: str
    do: str = ""

    @property
    def summary(self) -> str:
        """The question, the number and the finding, for the chapter."""
        number = f"{self.number}. " if self.number else ""
        return f"{self.what}: {number}{self.sentence}"


@dataclass(frozen=True)
class Figure:
    """A plotly figure as plain data, or the reason for its absence in `absence`.

    Colours are variables `var(--name)` of the style sheet, which differ between the light and the dark theme.
    `sentence` is printed above the figure, `caption` below it. The page shows a figure with a `choice` only
    if it matches the selected values of `Chapter.choices`.
    """

    id: str
    title: str
    caption: str
    data: Sequence[Mapping[str, Any]] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    absence: str = ""
    wide: bool = False
    sentence: str = ""
    choice: Mapping[str, str] = field(default_factory=dict)


def figures_left(kind: str, count: int, drawn: int) -> list[Figure]:
    """Return the text in place of the figures of all settings but the first `drawn`."""
    if count <= drawn:
        return []
    reason = f"{drawn} settings have figures; the numbers of the others are in the tables."
    return [Figure(f"{kind}-left", labels.counted(count - drawn, "more setting"), "", absence=reason)]


def more_in_table(number: int, noun: str) -> str:
    """Return ` 3 more points in the table.`, for the caption of a figure of some; "" if there are no more."""
    return f" {labels.counted(number, f'more {noun}')} in the table." if number > 0 else ""


@dataclass(frozen=True)
class Light:
    """The quality of one measurement: the number of noisy, oversubscribed and wrong samples.

    Of the `oversubscribed` samples, `link_limited` had a virtual link as their bottleneck.
    """

    what: str
    samples: int
    noisy: int
    oversubscribed: int
    wrong: int
    link_limited: int = 0

    @property
    def state(self) -> str:
        """Return `good`, `warn` or `bad`: the colour and shape of the light."""
        return "bad" if self.wrong else "warn" if self.noisy or self.of_shared_cores else "good"

    @property
    def text(self) -> str:
        """Return `20 of 39 samples converged, 2 noisy`: the state as text."""
        return self.summary()

    def summary(self, why: str = "") -> str:
        """Return how many samples converged, and then the problems with the number of affected samples; `why`
        they are oversubscribed."""
        limited = f"{self.link_limited} of them link-limited" if self.link_limited else ""
        remarks = "; ".join(filter(None, (why, limited)))
        problems = (
            (self.wrong, "wrong data"),
            (self.noisy, "noisy"),
            (self.oversubscribed, f"oversubscribed ({remarks})" if remarks else "oversubscribed"),
        )
        converged = f"{self.samples - self.noisy} of {labels.counted(self.samples, 'sample')} converged"
        return ", ".join([converged, *(f"{number} {problem}" for number, problem in problems if number)])

    @property
    def of_shared_cores(self) -> int:
        """Count the oversubscribed samples whose times the shared cores determine."""
        return self.oversubscribed - self.link_limited


@dataclass(frozen=True)
class Chapter:
    """A chapter of the report: a question with its answer.

    Attributes
    ----------
    sentence : the answer in full; "" if the chapter has no data and is not shown.
    answers : the same for the first screen, one per line.
    lines : provenance and remarks below the sentence.
    warnings : doubts and their remedies; the report lists those of all chapters in one place.
    tables : tables with all numbers, folded on the page. `shown` are open before the figures, `closing` open
        after them, `brief` are for the terminal.
    listings : texts to copy, as pairs (caption, text), for the page.
    absent : missing inputs, as pairs (remark, command that produces them or "").
    choices : selectors of the figures: name -> values in order. The page first selects the choice of the
        first figure that has one.
    """

    id: str
    question: str
    sentence: str
    lines: Sequence[str] = ()
    answers: Sequence[Answer] = ()
    warnings: Sequence[str] = ()
    lights: Sequence[Light] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    shown: Sequence[Table] = ()
    closing: Sequence[Table] = ()
    brief: Sequence[Table] = ()
    listings: Sequence[tuple[str, str]] = ()
    absent: Sequence[tuple[str, str]] = ()
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
