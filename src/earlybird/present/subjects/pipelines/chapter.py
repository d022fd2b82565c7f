"""The chapter on pipelines: which method threads should use to send a buffer, by size."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes, format_delay_rate
from earlybird.present import commands
from earlybird.present.core.parts import Answer, Chapter, grouped
from earlybird.present.core.points import choices
from earlybird.present.core.text import crowd, method_answer, method_names
from earlybird.present.material import Material
from earlybird.present.subjects.pipelines.figures import pipeline_figures
from earlybird.present.subjects.pipelines.tables import (
    BRIEF_CHANGES,
    brief_pipelines_table,
    crossovers_table,
    pipelines_table,
)
from earlybird.present.subjects.pipelines.view import (
    Pipeline,
    headline,
    pipelines,
    setting_text,
)

ID = "pipelines"
QUESTION = "How should threads send a buffer?"
ADVISE = "earlybird advise pipeline"
MIN_REPORTED_COST = 1.5  # time relative to a single message from which a slow method is reported


def pipeline_chapter(material: Material) -> Chapter:
    """Return the chapter; it is empty without pipelines."""
    measured = pipelines(material)
    if not measured:
        return Chapter(ID, QUESTION, "")
    first = headline(measured)
    ordered = [first, *(pipeline for pipeline in measured if pipeline is not first)]
    groups = grouped(measured, lambda pipeline: (pipeline.label, pipeline.setting.level)).values()
    answers = [_best_method(headline(group), material) for group in groups]
    costs = [_cost_sentence(group) for group in groups]
    crossovers = crossovers_table(measured)
    return Chapter(
        ID,
        QUESTION,
        " ".join(answer.summary + cost for answer, cost in zip(answers, costs, strict=True)),
        [method_names(measured)],
        answers=answers,
        figures=pipeline_figures(ordered),
        tables=[pipelines_table(measured)],
        closing=[crossovers] if crossovers.rows else [],
        brief=[
            *([crossovers.brief().first(BRIEF_CHANGES)] if crossovers.rows else []),
            brief_pipelines_table(ordered),
        ],
        choices=choices(measured),
    )


def _best_method(pipeline: Pipeline, material: Material) -> Answer:
    """Return the best method for the largest buffer."""
    setting, point = pipeline.setting, pipeline.points[-1]
    what = f"Sending {format_bytes(point.size_bytes)}: {setting_text(pipeline)}"
    gamma = format_delay_rate(point.figures["delay_rate_s_per_byte"]).replace(" ", "")
    command = f"{ADVISE} --threads {setting.threads} --size {commands.size(point.size_bytes)} --gamma {gamma}"
    command += f" --level {quoted(setting.level)}" if setting.level else ""
    do = commands.advice(
        material,
        pipeline.run,
        pipeline.mpi,
        command,
        "pipelines.json",
        lambda what: what.get("operation") == "pipeline" and what.get("level") == setting.level,
    )
    ideal = (
        f"; ideal speed-up {point.ideal_speed_up:.2f}" if point.ideal_speed_up and pipeline.is_late else ""
    )
    crowded = f"; {crowd()}" * pipeline.oversubscribed
    return method_answer(what, point, "method", SINGLE, do, ideal + crowded)


def _cost_sentence(group: Sequence[Pipeline]) -> str:
    """Return the cost of early sending for the smallest buffers, if it is large."""
    costs = [
        (1 / gain.value, method, pipeline)
        for pipeline in group
        for method, gain in pipeline.points[0].speed_up.items()
        if gain.value > 0 and not method.startswith("rma") and SINGLE in pipeline.points[0].results
    ]
    cost, method, pipeline = max(costs, key=lambda cost: cost[0], default=(0.0, "", None))
    if pipeline is None or cost < MIN_REPORTED_COST:
        return ""
    threads = pipeline.setting.threads
    from_threads = f" from {labels.counted(threads, 'thread')}" if threads > 1 else ""
    return (
        f" Send small buffers as a single message: {pipeline.points[0].where}{from_threads} take {cost:.3g} "
        f"times as long using {labels.method(method)}."
    )
