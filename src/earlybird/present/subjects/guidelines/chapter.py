"""The chapter on guidelines: which collectives take longer than what can replace them."""

from earlybird.data import labels
from earlybird.data.guidelines import VIOLATED
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.guidelines.answer import guidelines_answer, summary, title
from earlybird.present.subjects.guidelines.figures import guideline_figure
from earlybird.present.subjects.guidelines.tables import checks_table, outcomes_table

ID = "guidelines"
QUESTION = "Which collectives take longer than what can replace them?"
MEANS = (
    "A guideline is violated if the launches of the operation and of its replacement differ significantly, "
    "with the number of checks taken into account, and the operation takes longer by more than the smallest "
    "difference that counts; it holds if the interval ends below that; otherwise it is inconclusive."
)
_BRIEF = 6  # checks in the report of the terminal


def guidelines_chapter(material: Material) -> Chapter:
    """Return the chapter on all checks of guidelines, in the order given."""
    given = material.guidelines
    if not given:
        return Chapter(ID, QUESTION, "")
    tables = [checks_table(item.worst_first(), f"All checks: {title(item)}") for item in given]
    return Chapter(
        ID,
        QUESTION,
        " ".join(f"{title(item)}: {summary(item)}." for item in given),
        [MEANS, *(f"Not checked: {text}." for item in given for text in item.not_checked())],
        answers=[guidelines_answer(item) for item in given],
        warnings=[labels.capital(note) for item in given for note in item.notes],
        figures=[guideline_figure(item, f"guidelines-{k}") for k, item in enumerate(given) if item.checks],
        tables=[*tables, *(outcomes_table(item, f"Outcomes: {title(item)}") for item in given)],
        shown=[
            checks_table(item.worst_first(VIOLATED), f"What to do: {title(item)}", with_remedies=True)
            for item in given
            if item.count(VIOLATED)
        ],
        brief=[table.brief().first(_BRIEF, "check") for table in tables],
    )
