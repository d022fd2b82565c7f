"""The chapter on a check: which nodes and links are not as fast as the others."""

from earlybird.data.labels import capital
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.check.answer import check_answer, overview
from earlybird.present.subjects.check.figures import bandwidth_map, latency_map
from earlybird.present.subjects.check.tables import findings_table, nodes_table

ID = "check"
QUESTION = "Is every node and link as fast as the others?"
MEANS = (
    "Every pair of nodes was measured in rounds of disjoint pairs, and each node against all others. A value "
    "is not as the others if it is worse than the median of comparable nodes by more than the minimum effect "
    "and by more than five standard deviations, and again in a second launch. If nodes are of two groups, "
    "the faster one is what others are compared with."
)


def check_chapter(material: Material) -> Chapter:
    """Return the chapter on all checks in the order given."""
    checks = material.checks
    if not checks:
        return Chapter(ID, QUESTION, "")
    findings = [findings_table(check) for check in checks if check.findings or check.undecided]
    return Chapter(
        ID,
        QUESTION,
        " ".join(f"{capital(sentence)}." for check in checks for sentence in overview(check)),
        [MEANS, *(f"{capital(note)}." for check in checks for note in check.notes)],
        answers=[check_answer(check) for check in checks],
        figures=[
            map_of(check, f"check-{name}-{k}")
            for k, check in enumerate(checks)
            for name, map_of in (("bandwidth", bandwidth_map), ("latency", latency_map))
        ],
        tables=[nodes_table(check) for check in checks],
        shown=findings,
        brief=findings,
    )
