"""Tables of guidelines: each check, and the outcomes of each guideline."""

from collections import Counter
from collections.abc import Sequence

from earlybird.data.guidelines import OUTCOMES, GuidelineCheck, GuidelineChecks
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import change_text, interval_text
from earlybird.present.core.parts import grouped
from earlybird.present.core.table import Column, Table

_CHECK_COLUMNS = (
    Column("guideline", lambda check: check.text(), left=True, folded=True),
    Column("ranks", lambda check: check.ranks),
    Column("mapped by", lambda check: check.map_by, left=True, varying=True),
    Column("time", lambda check: format_seconds(check.time_s), detail=True),
    Column("bound", lambda check: format_seconds(check.bound_s), detail=True),
    Column("longer", lambda check: change_text(check.ratio.value)),
    Column("interval", lambda check: interval_text(check.ratio, change_text), detail=True),
    Column("launches", lambda check: f"{check.launches}, {check.bound_launches}", detail=True),
    Column("outcome", lambda check: check.outcome, left=True),
)
_REMEDY = Column("to do", lambda check: check.remedy, left=True)


def checks_table(
    checks: Sequence[GuidelineCheck], caption: str = "", *, with_remedies: bool = False
) -> Table:
    """Return a row for each check; `bound` is the time of the replacement."""
    columns = (*_CHECK_COLUMNS, _REMEDY) if with_remedies else _CHECK_COLUMNS
    return Table(caption, columns, checks, wide=with_remedies)


def outcomes_table(guidelines: GuidelineChecks, caption: str = "") -> Table:
    """Return how many checks of each guideline have each outcome."""

    def count(outcome: str) -> Column:
        return Column(outcome, lambda rule: rule[1][outcome])

    rules = grouped(guidelines.checks, lambda check: check.rule())
    rows = [(rule, Counter(check.outcome for check in checks)) for rule, checks in rules.items()]
    columns = [Column("guideline", lambda rule: rule[0], left=True), *map(count, OUTCOMES)]
    return Table(caption, columns, rows)
