"""What a chapter is made of: sentences, lights, tables, figures; the same for the page and the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Numbers behind a picture. `rows` hold text, one cell per header word; `wide`, where it is shown, takes
    the width of the page."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide: bool = False


@dataclass(frozen=True)
class Figure:
    """A plotly figure as plain data, or the reason why there is none in `why_not`.

    Colours are `var(--name)` of the page's style sheet, so that light, dark and print change them together.
    `sentence` stands above the picture, `caption` below it. A figure with a `choice` is one of several: the
    page shows those that fit what its reader chose of `Chapter.choices`.
    """

    id: str
    title: str
    caption: str
    data: Sequence[Mapping[str, Any]] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    why_not: str = ""
    wide: bool = False
    sentence: str = ""
    choice: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One thing to do: what for, what it is predicted to gain, and the setting, command or change that does
    it."""

    what: str
    gain: str
    do: str


@dataclass(frozen=True)
class Light:
    """How far one measurement can be trusted: how many of its samples were noisy, oversubscribed or wrong.

    `link_limited` samples shared cores too, but a virtual link was their limit; `oversubscribed` leaves them
    out.
    """

    what: str
    samples: int
    noisy: int
    oversubscribed: int
    wrong: int
    link_limited: int = 0

    @property
    def state(self) -> str:
        """`good`, `warn` or `bad`: the colour and shape of the lamp."""
        return "bad" if self.wrong else "warn" if self.noisy or self.oversubscribed else "good"

    @property
    def word(self) -> str:
        """The state without colour: `converged`, or what is wrong with how many samples, and how many shared
        cores without harm."""
        counts = ((self.wrong, "wrong data"), (self.noisy, "noisy"), (self.oversubscribed, "oversubscribed"))
        found = [f"{word} ({number} of {self.samples})" for number, word in counts if number]
        limited = f"cores shared, the link the limit ({self.link_limited} of {self.samples})"
        return ", ".join(found or ["converged"]) + (f", {limited}" if self.link_limited else "")


@dataclass(frozen=True)
class Chapter:
    """One of the five questions with its answer.

    Attributes
    ----------
    sentence : the answer in plain words.
    lines : provenance and remarks below it.
    tables : every number, for the page; `shown` stand open before the figures, `closing` after them, `brief`
        are for the terminal.
    steps : what to do, in its order.
    listings : texts to be copied, as pairs (caption, text), for the page.
    absent : what is missing, as pairs (remark, command that makes it or "").
    choices : what a reader chooses among its figures: name -> values in their order; the first figure with a
        choice is shown first.
    """

    id: str
    question: str
    sentence: str
    lines: Sequence[str] = ()
    lights: Sequence[Light] = ()
    remedies: Sequence[str] = ()
    steps: Sequence[Step] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    shown: Sequence[Table] = ()
    closing: Sequence[Table] = ()
    brief: Sequence[Table] = ()
    listings: Sequence[tuple[str, str]] = ()
    absent: Sequence[tuple[str, str]] = ()
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
