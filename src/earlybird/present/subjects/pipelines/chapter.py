"""The chapter on pipelines: which method threads should use to send a buffer, by size."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.layout import level_phrase
from earlybird.data.methods import SINGLE
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes, format_delay_rate
from earlybird.present import commands
from earlybird.present.core.parts import Answer, Chapter, grouped
from earlybird.present.core.points import choices
from earlybird.present.core.text import method_answer, method_names
from earlybird.present.material import Material
from earlybird.present.subjects.pipelines.figures import pipeline_figures, theory_text
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
    crossovers = crossovers_table(measured)
    return Chapter(
        ID,
        QUESTION,
        " ".join(_speed_up_sentence(headline(group)) + _cost_sentence(group) for group in groups),
        [method_names(measured)],
        answers=[_best_method(headline(group), material) for group in groups],
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
    return method_answer(what, point, "method", SINGLE, do)


def _speed_up_sentence(pipeline: Pipeline) -> str:
    """Return the speed-up of the largest buffer, for the setting of an MPI and level with the largest one."""
    points = [point for point in pipeline.points if point.speed_up]
    where = f"{labels.capital(level_phrase(pipeline.setting.level))}, {pipeline.label}"
    if not points:
        return f"{where} was measured without the reference, a single message."
    point, setting = points[-1], pipeline.setting
    method = point.best(SINGLE)
    late = (
        "the last one late"
        if setting.gamma_s_per_byte
        else "computed with noise"
        if setting.compute_s_per_byte
        else ""
    )
    what = f"{format_bytes(point.size_bytes)} as {labels.counted(setting.partitions, 'partition')}"
    what += f" of {labels.counted(setting.threads, 'thread')}" if setting.threads > 1 else ""
    what += f", {late}," if late else ""
    theory = theory_text(point, pipeline)
    if method not in point.speed_up:
        return f"{where}: no method is clearly faster than a single message for {what.rstrip(',')}{theory}."
    crowded = ", with more threads than cores" if pipeline.oversubscribed else ""
    return (
        f"{where} sends {what} using {labels.method(method)} with a speed-up of "
        f"{point.speed_up[method].value:.2f} over a single "
        f"message{' sent when all partitions are ready' if late else ''}{crowded}{theory}."
    )


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
