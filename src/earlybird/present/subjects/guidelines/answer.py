"""What checks of guidelines say in a sentence, and their line of the first screen."""

from earlybird.data.guidelines import OUTCOMES, UNDECIDED, VIOLATED, GuidelineChecks
from earlybird.data.labels import counted, flavour
from earlybird.present.core.notation import change_text, interval_text
from earlybird.present.core.parts import Answer
from earlybird.present.core.text import NOTHING


def title(guidelines: GuidelineChecks) -> str:
    """Return `MPICH, run`."""
    return f"{flavour(guidelines.mpi)}, {guidelines.run}"


def summary(guidelines: GuidelineChecks) -> str:
    """Return `2 violated, 1 inconclusive, 40 holds of 43 checks`, and what could not be checked."""
    counts = ", ".join(f"{guidelines.count(outcome)} {outcome}" for outcome in OUTCOMES)
    more = f"; {count} unchecked" if (count := len(guidelines.not_checked())) else ""
    return f"{counts} of {counted(len(guidelines.checks), 'check')}{more}"


def guidelines_answer(guidelines: GuidelineChecks) -> Answer:
    """Return the check that is violated most, and its remedy."""
    violated, undecided = guidelines.count(VIOLATED), guidelines.count(UNDECIDED)
    if not violated:
        more = f", {counted(undecided, 'check')} inconclusive" if undecided else ""
        sentence = f"No guideline is violated{more}."
        return Answer(title(guidelines), "", "", sentence, "" if undecided else NOTHING)
    worst = guidelines.worst_first()[0]
    return Answer(
        title(guidelines),
        change_text(worst.ratio.value),
        interval_text(worst.ratio, change_text),
        f"{violated} of {counted(len(guidelines.checks), 'check')} violated, {worst.text()} most.",
        worst.remedy,
    )
