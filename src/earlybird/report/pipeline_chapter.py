"""The chapter on pipelines: which method threads should send a buffer, and from which size on."""

from collections.abc import Sequence

from earlybird.data.units import format_bytes
from earlybird.report import gillis, words
from earlybird.report.best_method_figure import best_method_figures
from earlybird.report.material import Material
from earlybird.report.parts import Chapter
from earlybird.report.pipeline_choices import choices, headline
from earlybird.report.pipeline_figures import pipeline_figures
from earlybird.report.pipeline_tables import (
    brief_crossovers_table,
    brief_pipelines_table,
    crossovers_table,
    pipelines_table,
)
from earlybird.report.pipelines import BULK, Pipeline, pipelines

ID = "pipelines"
QUESTION = "How should threads send a buffer?"
LOUD = 1.5  # a method that takes so many times as long as one message is worth a word


def pipeline_chapter(material: Material) -> Chapter | None:
    """None where no pipeline was measured."""
    found = pipelines(material)
    if not found:
        return None
    first = headline(found)
    ordered = [first, *(one for one in found if one is not first)]
    paper, changes = gillis.paper_tables(found), crossovers_table(found)
    return Chapter(
        ID,
        QUESTION,
        " ".join(_sentences(found)),
        gillis.conditions(material),
        figures=[*pipeline_figures(ordered), *best_method_figures(ordered)],
        tables=[pipelines_table(found)],
        shown=paper,
        closing=[changes] if changes.rows else [],
        brief=[
            *gillis.brief_paper_tables(found),
            *([brief_crossovers_table(found)] if changes.rows else []),
            brief_pipelines_table(ordered),
        ],
        choices=choices(found),
    )


def _sentences(found: Sequence[Pipeline]) -> list[str]:
    """Per MPI and level, of the setting that gains most with its largest buffer."""
    groups: dict[tuple[str, str], list[Pipeline]] = {}
    for one in found:
        groups.setdefault((one.label, one.setting.level), []).append(one)
    return [_sentence(headline(group)) + _penalty(group) for group in groups.values()]


def _sentence(one: Pipeline) -> str:
    """What the largest buffer gains."""
    points = [point for point in one.points if point.gain]
    where = f"{words.capital(words.level(one.setting.level))}, {one.label}"
    if not points:
        return f"{where} was measured without one message to compare with."
    point, setting = points[-1], one.setting
    method = max(point.gain, key=lambda name: point.gain[name][0])
    gain, theory = point.gain[method][0], point.gain_theory
    late = "the last one late" if setting.gamma_s_per_byte else "computed with noise" if setting.noise else ""
    what = f"{format_bytes(point.size_bytes)} as {words.counted(setting.partitions, 'partition')}"
    what += f" of {words.counted(setting.threads, 'thread')}" if setting.threads > 1 else ""
    what += f", {late}," if late else ""
    says = f" (equation (4): {theory:.2f})" if theory is not None and setting.delay_rate() else ""
    if gain <= 1:
        return f"{where} sends {what} fastest as one message{says}."
    crowded = ", with more threads than cores" if one.oversubscribed else ""
    return (
        f"{where} sends {what} {gain:.2f} times as fast {_by(method)} as in one message"
        f"{' when all is ready' if late else ''}{crowded}{says}."
    )


def _by(method: str) -> str:
    return "with " + words.method(method)


def _penalty(group: Sequence[Pipeline]) -> str:
    """What early sending costs the smallest buffers, where it costs much."""
    costs = [
        (1 / gain, method, one)
        for one in group
        for method, (gain, _, _) in one.points[0].gain.items()
        if gain > 0 and not method.startswith("rma") and BULK in one.points[0].time_s
    ]
    if not costs:
        return ""
    cost, method, one = max(costs, key=lambda told: told[0])
    if cost < LOUD:
        return ""
    threads = f" from {words.counted(one.setting.threads, 'thread')}" if one.setting.threads > 1 else ""
    what = f"{format_bytes(one.points[0].size_bytes)} in {words.counted(one.setting.partitions, 'partition')}"
    return f" Small buffers go in one message: {what}{threads} take {cost:.3g} times as long {_by(method)}."
