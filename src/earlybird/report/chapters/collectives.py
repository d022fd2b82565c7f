"""The chapter on collectives: the fastest algorithms, model errors, and verified algorithms."""

from collections import Counter
from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.units import format_bytes
from earlybird.report.figures.collective_residuals import residual_figures
from earlybird.report.figures.collectives import (
    collective_figures,
    fastest_text,
    map_figures,
    mapping_figures,
)
from earlybird.report.material import Material, Proof
from earlybird.report.parts import Answer, Chapter, Figure, figures_left, grouped
from earlybird.report.tables.collective_forms import (
    brief_forms_table,
    collective_forms,
    forms_sentence,
    forms_table,
)
from earlybird.report.tables.collectives import brief_table, crossovers_table, proofs_table, times_tables
from earlybird.report.texts import fastest_answer
from earlybird.report.views.collectives import Collective, choices, collectives

ID = "collectives"
QUESTION = "Which algorithm should a collective use?"
ADVISE = "earlybird advise collective"
MAX_LISTED = 4  # pairs of operation and MPI in the answer
MAX_SETTINGS = 24  # settings (operation, MPI, mapping) with figures; the tables have all


def collective_chapter(material: Material) -> Chapter:
    measured, forms = collectives(material), collective_forms(material)
    if not measured and not forms:
        return Chapter(ID, QUESTION, "")
    sentences, best_form = _sentences(measured), forms_sentence(forms)
    crossovers, proofs = crossovers_table(measured), proofs_table(material.proofs)
    return Chapter(
        ID,
        QUESTION,
        sentences[0]
        if sentences
        else "A profile contains models of collectives, but no measurement of a collective was given.",
        [*sentences[1:], *([best_form] if best_form else []), *_proof_lines(material.proofs)],
        warnings=_contradicted(material.proofs),
        answers=[_answer(collective) for collective in _chosen(measured)],
        figures=_figures(measured, material),
        closing=[forms_table(forms)] if forms else [],
        tables=[
            *(table for table in (crossovers, proofs) if table.rows),
            *times_tables(measured),
        ],
        brief=[
            *([brief_table(measured)] if measured else []),
            *([brief_forms_table(forms)] if forms else []),
        ],
        choices=choices(measured) if measured else {},
    )


def _figures(measured: Sequence[Collective], material: Material) -> list[Figure]:
    figures: list[Figure] = []
    drawn = measured[:MAX_SETTINGS]
    for k, collective in enumerate(drawn):
        figures += collective_figures(k, collective, drawn, material.references)
    figures += mapping_figures(drawn)
    for k, collective in enumerate(drawn):
        figures += [*map_figures(k, collective), *residual_figures(k, collective)]
    return figures + figures_left("collectives", len(measured), MAX_SETTINGS)


def _sentences(measured: Sequence[Collective]) -> list[str]:
    """One sentence per operation and MPI."""
    chosen = _chosen(measured)
    sentences = [_sentence(collective) for collective in chosen[:MAX_LISTED]]
    num_left = len(chosen) - MAX_LISTED
    return sentences + (
        [f"{labels.counted(num_left, 'more pair')} of operation and MPI: see below."] if num_left > 0 else []
    )


def _chosen(measured: Sequence[Collective]) -> list[Collective]:
    """For each operation and MPI, the mapping with the most ranks."""
    groups = grouped(measured, lambda collective: (collective.operation, collective.label))
    return [max(group, key=lambda collective: collective.ranks()[-1]) for group in groups.values()]


def _answer(collective: Collective) -> Answer:
    """The fastest algorithm at the largest size among the most ranks."""
    point = collective.of_ranks(collective.ranks()[-1])[-1]
    method = collective.best_at(point)
    ranks = labels.counted(point.ranks, "rank")
    what = f"{labels.capital(collective.setting_text)}, {format_bytes(point.size_bytes)}, {ranks}"
    finding = f"{labels.capital(labels.method(method))} is the fastest algorithm"
    command = f"{ADVISE} --op {collective.operation} --ranks {point.ranks}"
    return fastest_answer(what, finding, point.results[method], "the MPI's default", command)


def _sentence(collective: Collective) -> str:
    points = collective.of_ranks(collective.ranks()[-1])
    ends = [points[0], points[-1]] if len(points) > 1 else points
    algorithms, times = zip(*(fastest_text(collective, point) for point in ends), strict=True)
    sizes = [f"{format_bytes(point.size_bytes)} ({time})" for point, time in zip(ends, times, strict=True)]
    if len(set(algorithms)) == 1:
        best = f"{algorithms[0]} for {labels.listed(sizes)}"
    else:
        best = labels.listed([f"{method} for {size}" for method, size in zip(algorithms, sizes, strict=True)])
    mapped = f" mapped by {collective.map_by}" if collective.map_by else ""
    what = f"{labels.capital(labels.operation(collective.operation))} with {collective.label}"
    ranks = labels.counted(points[0].ranks, "rank")
    crowded = " (there were more ranks than cores)" if any(point.oversubscribed for point in ends) else ""
    return f"{what} among {ranks}{mapped} is fastest with {best}{crowded}."


def _proof_lines(proofs: Sequence[Proof]) -> list[str]:
    """How many of the forced algorithms were verified."""
    if not proofs:
        return []
    counts = Counter(proof.verdict for proof in proofs)
    verdicts = [verdict for verdict in ("proven", "contradicted", "not verified") if counts[verdict]]
    counted = labels.listed([f"{counts[verdict]} {verdict}" for verdict in verdicts])
    what = labels.counted(len(proofs), "check")
    return [f"Algorithms were verified by delaying ranks: of {what}, {counted}."]


def _contradicted(proofs: Sequence[Proof]) -> list[str]:
    """Which of the forced algorithms did not run."""
    contradicted = [
        f"{labels.method(proof.method)} ({labels.operation(proof.operation)}, {labels.flavour(proof.mpi)}, "
        f"{labels.counted(proof.ranks, 'rank')})"
        for proof in proofs
        if proof.verdict == "contradicted"
    ]
    names = labels.listed_briefly(list(dict.fromkeys(contradicted)), 5)
    return [f"Do not use the times of {names}: another algorithm ran."] if contradicted else []
