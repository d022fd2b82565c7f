"""The chapter on collectives: the fastest algorithms, model errors, and verified algorithms."""

from collections.abc import Sequence

from earlybird.compare.collective_forms import Form
from earlybird.data import labels
from earlybird.present.core.parts import Chapter, Figure, figures_left
from earlybird.present.material import Material
from earlybird.present.subjects.collectives.answer import (
    collective_answer,
    contradiction_warnings,
    main_mappings,
    sentences,
    verification_lines,
)
from earlybird.present.subjects.collectives.figures import collective_figures, map_figures, mapping_figures
from earlybird.present.subjects.collectives.forms import (
    brief_forms_table,
    collective_forms,
    form_meanings,
    forms_sentence,
    forms_table,
)
from earlybird.present.subjects.collectives.residuals import residual_figures
from earlybird.present.subjects.collectives.tables import (
    best_table,
    crossovers_table,
    times_table,
    verifications_table,
)
from earlybird.present.subjects.collectives.view import Collective, base, choices, collectives

ID = "collectives"
QUESTION = "Which algorithm should a collective use?"
MAX_SETTINGS = 24  # settings (operation, MPI, mapping) with figures; the tables have all
NO_TIMES = "A profile contains models of collectives, but no measurement of a collective was given."


def collective_chapter(material: Material) -> Chapter:
    """Return the chapter on the algorithms of collectives and their cost models."""
    measured, forms = collectives(material), collective_forms(material)
    if not measured and not forms:
        return Chapter(ID, QUESTION, "")
    first, *others = sentences(measured) or [NO_TIMES]
    brief = [best_table(measured), brief_forms_table(forms)]
    tables = [crossovers_table(measured), verifications_table(material.verifications)]
    return Chapter(
        ID,
        QUESTION,
        first,
        [
            *others,
            *_algorithm_names(measured, forms),
            *form_meanings(forms),
            *filter(None, [forms_sentence(forms)]),
            *verification_lines(material.verifications),
        ],
        warnings=contradiction_warnings(material.verifications),
        answers=[collective_answer(collective, material) for collective in main_mappings(measured)],
        figures=_figures(measured, material),
        closing=[forms_table(forms)] if forms else [],
        tables=[*(table for table in tables if table.items), *map(times_table, measured)],
        brief=[table for table in brief if table.items],
        choices=choices(measured) if measured else {},
    )


def _algorithm_names(measured: Sequence[Collective], forms: Sequence[Form]) -> list[str]:
    names = {base(method) for collective in measured for method in collective.methods()}
    ordered = sorted(names | {form.algorithm for form in forms}, key=labels.method_order)
    listed = labels.listed([f"{labels.method(name)} ({name})" for name in ordered])
    return [f"Algorithms, with their names in options: {listed}."]


def _figures(measured: Sequence[Collective], material: Material) -> list[Figure]:
    figures: list[Figure] = []
    drawn = measured[:MAX_SETTINGS]
    for k, collective in enumerate(drawn):
        figures += collective_figures(k, collective, drawn, material.references)
    figures += mapping_figures(drawn)
    for k, collective in enumerate(drawn):
        figures += [*map_figures(k, collective), *residual_figures(k, collective)]
    return figures + figures_left("collectives", len(measured), MAX_SETTINGS)
