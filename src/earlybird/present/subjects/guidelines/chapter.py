"""The chapter on guidelines: which collectives take longer than what can replace them."""

from earlybird.data import labels
from earlybird.data.guidelines import HOLDS, OUTCOMES, UNDECIDED, VIOLATED, GuidelineCheck, GuidelineChecks
from earlybird.data.units import format_seconds
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.core.table import Table, table_of
from earlybird.present.core.text import NOTHING
from earlybird.present.material import Material
from earlybird.present.subjects.guidelines.figures import guideline_figure

ID = "guidelines"
QUESTION = "Which collectives take longer than what can replace them?"
MEANS = (
    "A guideline is violated if the launches of the operation and of its replacement differ significantly, "
    "with the number of checks taken into account, and the operation takes longer by more than the smallest "
    "difference that counts; it holds if the interval ends below that; otherwise it is inconclusive."
)
_BRIEF = 6
_IN_BRIEF = ("guideline", "ranks", "longer", "outcome")


def guidelines_chapter(material: Material) -> Chapter:
    """All checks of guidelines, in the order given."""
    found = material.guidelines
    if not found:
        return Chapter(ID, QUESTION, "")
    tables = [_table(one) for one in found]
    return Chapter(
        ID,
        QUESTION,
        " ".join(map(_sentence, found)),
        [MEANS, *(f"Not checked: {text}." for one in found for text in one.not_checked())],
        answers=[*map(_answer, found)],
        warnings=[labels.capital(note) for one in found for note in one.notes],
        figures=[guideline_figure(one, f"guidelines-{k}") for k, one in enumerate(found) if one.checks],
        tables=tables,
        shown=[_violations(one) for one in found if one.count(VIOLATED)],
        brief=[one.only(lambda column: column.head in _IN_BRIEF).first(_BRIEF, "check") for one in tables],
    )


def _what(one: GuidelineChecks) -> str:
    return f"{labels.flavour(one.mpi)}, {one.run}"


def _sentence(one: GuidelineChecks) -> str:
    verbs = {VIOLATED: "violated", UNDECIDED: "inconclusive", HOLDS: "kept"}
    counts = [f"{one.count(outcome)} {verbs[outcome]}" for outcome in OUTCOMES if one.count(outcome)]
    number = labels.counted(len(one.checks), "check")
    return f"{_what(one)}: collectives against what can replace them; of {number} {labels.listed(counts)}."


def _answer(one: GuidelineChecks) -> Answer:
    violated = [check for check in one.checks if check.outcome == VIOLATED]
    if not violated:
        undecided = one.count(UNDECIDED)
        more = f", {labels.counted(undecided, 'check')} inconclusive" if undecided else ""
        return Answer(_what(one), "", "", f"No guideline is violated{more}.", "" if undecided else NOTHING)
    worst = max(violated, key=lambda check: check.ratio.value)
    low, high = (labels.signed_percent(end - 1) for end in (worst.ratio.low, worst.ratio.high))
    number = f"{len(violated)} of {labels.counted(len(one.checks), 'check')}"
    return Answer(
        _what(one),
        labels.signed_percent(worst.ratio.value - 1),
        f"{low} to {high}",
        f"{number} violated, {worst.text()} most.",
        worst.remedy,
    )


def _worst_first(one: GuidelineChecks) -> list[GuidelineCheck]:
    return sorted(one.checks, key=lambda check: (OUTCOMES.index(check.outcome), -check.ratio.value))


def _table(one: GuidelineChecks) -> Table:
    def longer(check: GuidelineCheck) -> str:
        return labels.signed_percent(check.ratio.value - 1)

    def interval(check: GuidelineCheck) -> str:
        low, high = (labels.signed_percent(end - 1) for end in (check.ratio.low, check.ratio.high))
        return f"{low} to {high}"

    return table_of(
        f"All checks: {_what(one)}",
        _worst_first(one),
        {
            "guideline": lambda check: check.text(),
            "ranks": lambda check: str(check.ranks),
            "time": lambda check: format_seconds(check.time_s),
            "replacement": lambda check: format_seconds(check.bound_s),
            "longer": longer,
            "95 %": interval,
            "launches": lambda check: f"{check.launches}, {check.bound_launches}",
            "outcome": lambda check: check.outcome,
        },
    )


def _violations(one: GuidelineChecks) -> Table:
    return table_of(
        f"What to do: {_what(one)}",
        [check for check in _worst_first(one) if check.outcome == VIOLATED],
        {
            "violated": lambda check: check.text(),
            "longer": lambda check: labels.signed_percent(check.ratio.value - 1),
            "to do": lambda check: check.remedy,
        },
        wide=True,
    )
