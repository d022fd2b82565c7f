"""The common parts of the pages of all papers: the table of printed values, and the chapter of a report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data import labels
from earlybird.data.profile import Profile
from earlybird.papers.paper import Paper, Row
from earlybird.papers.verdicts import VERDICTS
from earlybird.present.core.parts import Answer, Chapter, Figure
from earlybird.present.core.table import Column, Table
from earlybird.present.material import Material, MeasuredRun, labelled_profiles
from earlybird.present.subjects.provenance.view import machine_text

COLUMNS = (
    Column("figure", lambda row: row.figure, common=True, left=True, folded=True),
    Column("quantity", lambda row: row.quantity, left=True, folded=True),
    Column("paper", lambda row: row.paper, folded=True),
    Column("MPI", lambda row: row.mpi, varying=True, left=True),
    Column("here", lambda row: row.here, default="-", folded=True),
    Column("note", lambda row: row.note, optional=True, left=True, folded=True),
)

# A part of a note that so many rows share stands once, below the table, if it is that long.
_FOOTNOTE_ROWS, _FOOTNOTE_LENGTH = 3, 30


def runs_of(material: Material, name: str) -> list[MeasuredRun]:
    """Return the runs that reproduce a paper."""
    return [run for run in material.runs if settings_of(run).get("reproduce") == name]


def only_runs_of(material: Material, name: str) -> Material:
    """Return the material with the runs that reproduce a paper, and no others."""
    return replace(material, runs=tuple(runs_of(material, name)))


def own_profiles(material: Material) -> list[tuple[Profile, str]]:
    """Return the profiles that were fitted to runs of the material, with their names."""
    ids = {str(run.header.get("id")) for run in material.runs}
    return [
        (profile, label)
        for profile, label in labelled_profiles(material)
        if ids.intersection(str(run.get("id")) for run in profile.runs)
    ]


def settings_of(run: MeasuredRun) -> Mapping[str, Any]:
    settings = run.header.get("settings")
    return settings if isinstance(settings, dict) else {}


def step_of(run: MeasuredRun) -> str:
    """Return the name of the step of a plan that measured a run; "" for one of an earlier version."""
    return str(settings_of(run).get("step") or "")


def crowded_text(workers: str, run: MeasuredRun) -> str:
    """Return `more threads than cores (2 cores here)`, without the number in runs that do not have it."""
    cores = run.machine.get("cores")
    here = f" ({labels.counted(cores, 'core')} here)" if isinstance(cores, int) else ""
    return f"more {workers} than cores{here}"


def place_line(material: Material, name: str) -> str:
    """Return the machines that the runs of a paper had, with their cores and nodes; "" without runs."""
    nodes: dict[str, int] = {}
    for run in runs_of(material, name):
        places = [place for launch in run.launches for place in launch.get("placement") or ()]
        numbers = {place.get("node") for place in places if isinstance(place, Mapping)}
        machine = machine_text(run.machine)
        nodes[machine] = max(nodes.get(machine, 1), len(numbers))
    texts = [f"{machine}, {labels.counted(count, 'node')}" for machine, count in nodes.items()]
    return f"Here: {'; '.join(texts)}." if texts else ""


def rows_table(paper: Paper, rows: Iterable[Row], caption: str = "") -> Table:
    """Return the values of the paper next to those here."""
    return Table(labels.capital(caption or f"{paper.citation} and here"), COLUMNS, list(rows), wide=True)


def with_footnotes(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """Return the rows with numbers for the parts that several notes share, and a line for each number."""
    rows = list(rows)
    parts = [row.note.split("; ") for row in rows]
    counts = Counter(part for of_row in parts for part in dict.fromkeys(of_row) if part)
    shared = [
        part for part, count in counts.items() if count >= _FOOTNOTE_ROWS and len(part) > _FOOTNOTE_LENGTH
    ]
    numbers = {part: f"[{number}]" for number, part in enumerate(shared, 1)}
    noted = []
    for row, of_row in zip(rows, parts, strict=True):
        own = "; ".join(part for part in of_row if part not in numbers)
        cited = " ".join(numbers[part] for part in of_row if part in numbers)
        noted.append(replace(row, note=" ".join(filter(None, (own, cited)))))
    return noted, [f"{number} {part}" for part, number in numbers.items()]


def printed_table(paper: Paper, rows: Iterable[Row]) -> Table:
    """Return the values of the paper alone."""
    table = rows_table(paper, rows, f"{paper.citation}: printed values")
    return table.only(lambda column: column.head not in ("MPI", "here", "note"))


def chapter_of(
    paper: Paper,
    rows: Sequence[Row],
    *,
    lines: Sequence[str] = (),
    figures: Sequence[Figure] = (),
    tables: Sequence[Table] = (),
    choices: Mapping[str, Sequence[str]] | None = None,
) -> Chapter:
    """Return the page of a paper: its values next to those here, and its figures drawn from this machine."""
    noted, footnotes = with_footnotes(rows)
    table = rows_table(paper, noted)
    num_printed, num_here = _counts(rows)
    answer = Answer(
        f"The figures of {paper.citation}",
        f"{num_here} of {num_printed}",
        "",
        f"Values that the paper printed and that were repeated here.{_verdicts(rows)}",
    )
    return Chapter(
        f"paper-{paper.name}",
        f"What do the figures of {paper.citation} look like here?",
        summary(rows),
        [
            f"{labels.capital(paper.authors)}: {paper.title}.",
            *lines,
            *filter(None, [paper.legend]),
            *footnotes,
        ],
        answers=[answer],
        figures=figures,
        shown=[table],
        tables=tables,
        brief=[table.first(40)],
        choices=choices or {},
    )


def summary(rows: Sequence[Row]) -> str:
    """Return how many of the printed values have one from here, and how many of these agree."""
    num_printed, num_here = _counts(rows)
    return (
        f"Of {labels.counted(num_printed, 'printed value')} of the paper, {num_here} were repeated here."
        + _verdicts(rows)
    )


def _counts(rows: Sequence[Row]) -> tuple[int, int]:
    """Return the number of printed values, and of those that have one from here."""
    printed = {(row.figure, row.quantity) for row in rows}
    here = {(row.figure, row.quantity) for row in rows if row.here}
    return len(printed), len(here)


def _verdicts(rows: Sequence[Row]) -> str:
    """Return how many values agree, differ and are unclear; "" for a paper without verdicts."""
    counts = Counter(part for row in rows for part in row.note.split("; ") if part in VERDICTS)
    if not counts:
        return ""
    told = labels.listed([labels.counted(counts[one], *VERDICTS[one]) for one in VERDICTS if counts[one]])
    return f" Of {labels.counted(counts.total(), 'comparison')}, {told}."
