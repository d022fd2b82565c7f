"""What a chapter is made of: sentences, lights, tables and figures, the same for the page and the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Numbers behind a picture. `rows` hold text, one cell per header word."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A plotly figure as plain data, or the reason why there is none in `why_not`.

    Colours are `var(--name)` of the page's style sheet, so that light, dark and print change them together.
    """

    id: str
    title: str
    caption: str
    data: Sequence[Mapping[str, Any]] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    why_not: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Light:
    """The traffic light of one measurement: state is `good`, `warn` or `bad`; `word` says it without colour."""

    what: str
    state: str
    word: str
    advice: str = ""


@dataclass(frozen=True)
class Chapter:
    """One of the five questions with its answer.

    Attributes
    ----------
    sentence : the answer in plain words.
    lines : provenance and remarks below it.
    tables : every number, for the page; `brief` are the few that the terminal prints.
    absent : what is missing, as pairs (remark, command that makes it or "").
    """

    id: str
    question: str
    sentence: str
    lines: Sequence[str] = ()
    lights: Sequence[Light] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    brief: Sequence[Table] = ()
    absent: Sequence[tuple[str, str]] = ()
