"""The chapter on collectives: which algorithm is the fastest, how far the models are off, what was proven."""

from collections.abc import Sequence

from earlybird.data.units import format_bytes
from earlybird.report import words
from earlybird.report.collective_choices import choices
from earlybird.report.collective_figures import collective_figures, fastest_words
from earlybird.report.collective_forms import brief_forms_table, collective_forms, forms_sentence, forms_table
from earlybird.report.collective_mapping_figures import mapping_figures
from earlybird.report.collective_maps import map_figures
from earlybird.report.collective_residuals import residual_figures
from earlybird.report.collective_tables import brief_table, crossovers_table, proofs_table, times_tables
from earlybird.report.collectives import Collective, collectives
from earlybird.report.material import Material, Proof
from earlybird.report.parts import Chapter, Figure

ID = "collectives"
QUESTION = "Which algorithm should a collective use?"
MAX_TOLD = 4  # operations and MPIs in the answer
MAX_SETTINGS = 24  # operations, MPIs and mappings drawn; the tables have all


def collective_chapter(material: Material) -> Chapter | None:
    """None where no collective was measured and no profile holds a form of one."""
    found, forms = collectives(material), collective_forms(material)
    if not found and not forms:
        return None
    told, believe = _sentences(found), forms_sentence(forms)
    compared = forms_table(forms)
    changes, proofs = crossovers_table(found), proofs_table(material.proofs)
    return Chapter(
        ID,
        QUESTION,
        told[0] if told else "A profile holds models of collectives; no measurement of one was given.",
        [*told[1:], *([believe] if believe else []), *_proof_lines(material.proofs)],
        figures=_figures(found, material),
        closing=[compared] if forms else [],
        tables=[
            *([changes] if changes.rows else []),
            *([proofs] if proofs.rows else []),
            *times_tables(found),
        ],
        brief=[
            *([brief_table(found)] if found else []),
            *([brief_forms_table(forms)] if forms else []),
        ],
        choices=choices(found) if found else {},
    )


def _figures(found: Sequence[Collective], material: Material) -> list[Figure]:
    figures: list[Figure] = []
    drawn = found[:MAX_SETTINGS]
    for k, one in enumerate(drawn):
        figures += collective_figures(k, one, drawn, material.references)
    figures += mapping_figures(drawn)
    for k, one in enumerate(drawn):
        figures += [*map_figures(k, one), *residual_figures(k, one)]
    left = len(found) - len(drawn)
    if left > 0:
        why = f"{MAX_SETTINGS} settings are drawn; the times of the others are in the tables."
        figures.append(Figure("collectives-left", words.counted(left, "more setting"), "", why_not=why))
    return figures


def _sentences(found: Sequence[Collective]) -> list[str]:
    """Per operation and MPI, with the mapping that has most ranks: the smallest and the largest size."""
    groups: dict[tuple[str, str], list[Collective]] = {}
    for one in found:
        groups.setdefault((one.operation, one.label), []).append(one)
    chosen = [max(group, key=lambda one: one.ranks()[-1]) for group in groups.values()]
    told = [_sentence(one) for one in chosen[:MAX_TOLD]]
    left = len(chosen) - MAX_TOLD
    return told + ([f"{words.counted(left, 'more pair')} of operation and MPI below."] if left > 0 else [])


def _sentence(one: Collective) -> str:
    points = one.of_ranks(one.ranks()[-1])
    ends = [points[0], points[-1]] if len(points) > 1 else points
    methods, times = zip(*(fastest_words(one, point) for point in ends), strict=True)
    sizes = [f"{format_bytes(point.size_bytes)} ({time})" for point, time in zip(ends, times, strict=True)]
    if len(set(methods)) == 1:
        told = f"{methods[0]} for {words.listed(sizes)}"
    else:
        told = words.listed([f"{method} for {size}" for method, size in zip(methods, sizes, strict=True)])
    mapped = f" mapped by {one.map_by}" if one.map_by else ""
    what = f"{words.capital(words.operation(one.operation))} with {one.label}"
    ranks = words.counted(points[0].ranks, "rank")
    crowded = " (there were more ranks than cores)" if any(point.oversubscribed for point in ends) else ""
    return f"{what} among {ranks}{mapped} is the fastest with {told}{crowded}."


def _proof_lines(proofs: Sequence[Proof]) -> list[str]:
    """How many of the forced algorithms are known to have run, and which did not."""
    if not proofs:
        return []
    counts = {
        verdict: sum(one.verdict == verdict for one in proofs)
        for verdict in ("proven", "contradicted", "not told")
    }
    told = words.listed([f"{number} {verdict}" for verdict, number in counts.items() if number])
    what = words.counted(len(proofs), "check")
    lines = [f"That an algorithm ran as asked was checked by delaying ranks: of {what} {told}."]
    wrong = [
        f"{words.method(one.method)} ({words.operation(one.operation)}, {words.flavour(one.mpi)}, "
        f"{words.counted(one.ranks, 'rank')})"
        for one in proofs
        if one.verdict == "contradicted"
    ]
    if wrong:
        names = words.listed_briefly(list(dict.fromkeys(wrong)), 5)
        lines.append(f"Do not trust the times of {names}: another algorithm ran.")
    return lines
