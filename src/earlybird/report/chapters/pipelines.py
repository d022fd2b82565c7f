"""The chapter on pipelines: which method threads should use to send a buffer, by size."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.layout import level_phrase
from earlybird.data.methods import SINGLE
from earlybird.data.units import format_bytes
from earlybird.report.advice_text import fastest_answer
from earlybird.report.figures.best_method import best_method_figures
from earlybird.report.figures.pipelines import pipeline_figures
from earlybird.report.material import Material
from earlybird.report.parts import Answer, Chapter
from earlybird.report.pipeline_choices import choices, headline, setting_text
from earlybird.report.pipelines import Pipeline, pipelines
from earlybird.report.tables import gillis
from earlybird.report.tables.pipelines import (
    brief_crossovers_table,
    brief_pipelines_table,
    crossovers_table,
    pipelines_table,
)

ID = "pipelines"
QUESTION = "How should threads send a buffer?"
ADVISE = "earlybird advise pipeline"
MIN_REPORTED_COST = 1.5  # time relative to a single message from which a slow method is reported


def pipeline_chapter(material: Material) -> Chapter:
    measured = pipelines(material)
    if not measured:
        return Chapter(ID, QUESTION, "")
    first = headline(measured)
    ordered = [first, *(pipeline for pipeline in measured if pipeline is not first)]
    paper_tables, crossovers = gillis.paper_tables(measured), crossovers_table(measured)
    return Chapter(
        ID,
        QUESTION,
        " ".join(_sentences(measured)),
        gillis.conditions(material),
        answers=[_answer(headline(group)) for group in _groups(measured)],
        figures=[*pipeline_figures(ordered), *best_method_figures(ordered)],
        tables=[pipelines_table(measured)],
        shown=paper_tables,
        closing=[crossovers] if crossovers.rows else [],
        brief=[
            *gillis.brief_paper_tables(measured),
            *([brief_crossovers_table(measured)] if crossovers.rows else []),
            brief_pipelines_table(ordered),
        ],
        choices=choices(measured),
    )


def _sentences(measured: Sequence[Pipeline]) -> list[str]:
    """One sentence per MPI and level, for the setting with the largest speed-up of its largest buffer."""
    return [_sentence(headline(group)) + _penalty(group) for group in _groups(measured)]


def _groups(measured: Sequence[Pipeline]) -> list[list[Pipeline]]:
    """The pipelines of each MPI and level."""
    groups: dict[tuple[str, str], list[Pipeline]] = {}
    for pipeline in measured:
        groups.setdefault((pipeline.label, pipeline.setting.level), []).append(pipeline)
    return list(groups.values())


def _answer(pipeline: Pipeline) -> Answer:
    """The fastest method for the largest buffer."""
    setting, point = pipeline.setting, pipeline.points[-1]
    method = pipeline.best_methods()[-1] or min(point.time_s, key=lambda name: point.time_s[name].value)
    what = f"Sending {format_bytes(point.size_bytes)}: {setting_text(pipeline)}"
    finding = f"{labels.capital(labels.method(method))} is the fastest method"
    command = f"{ADVISE} --threads {setting.threads} --size {point.size_bytes}"
    return fastest_answer(what, finding, point.results[method], "a single message", command)


def _sentence(pipeline: Pipeline) -> str:
    """The speed-up of the largest buffer."""
    points = [point for point in pipeline.points if point.speed_up]
    where = f"{labels.capital(level_phrase(pipeline.setting.level))}, {pipeline.label}"
    if not points:
        return f"{where} was measured without the reference, a single message."
    point, setting = points[-1], pipeline.setting
    method = max(point.speed_up, key=lambda name: point.speed_up[name][0])
    gain, theory = point.speed_up[method][0], point.ideal_speed_up
    late = "the last one late" if setting.gamma_s_per_byte else "computed with noise" if setting.noise else ""
    what = f"{format_bytes(point.size_bytes)} as {labels.counted(setting.partitions, 'partition')}"
    what += f" of {labels.counted(setting.threads, 'thread')}" if setting.threads > 1 else ""
    what += f", {late}," if late else ""
    theory_text = f" (equation (4): {theory:.2f})" if theory is not None and setting.delay_rate() else ""
    if gain <= 1:
        return f"{where} sends {what} fastest as a single message{theory_text}."
    crowded = ", with more threads than cores" if pipeline.oversubscribed else ""
    return (
        f"{where} sends {what} {_using(method)} with a speed-up of {gain:.2f} over a single message"
        f"{' sent when all partitions are ready' if late else ''}{crowded}{theory_text}."
    )


def _using(method: str) -> str:
    return f"using {labels.method(method)}"


def _penalty(group: Sequence[Pipeline]) -> str:
    """The cost of early sending for the smallest buffers, if it is large."""
    costs = [
        (1 / gain, method, pipeline)
        for pipeline in group
        for method, (gain, _, _) in pipeline.points[0].speed_up.items()
        if gain > 0 and not method.startswith("rma") and SINGLE in pipeline.points[0].time_s
    ]
    if not costs:
        return ""
    cost, method, pipeline = max(costs, key=lambda cost: cost[0])
    if cost < MIN_REPORTED_COST:
        return ""
    threads = (
        f" from {labels.counted(pipeline.setting.threads, 'thread')}" if pipeline.setting.threads > 1 else ""
    )
    partitions = labels.counted(pipeline.setting.partitions, "partition")
    what = f"{format_bytes(pipeline.points[0].size_bytes)} in {partitions}{threads}"
    return f" Send small buffers as a single message: {what} take {cost:.3g} times as long {_using(method)}."
