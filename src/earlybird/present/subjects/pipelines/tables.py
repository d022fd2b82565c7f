"""Tables of pipelines: times, speed-ups, and the sizes at which the best method changes."""

from collections.abc import Sequence

from earlybird.data.methods import SINGLE
from earlybird.present.core import crossovers
from earlybird.present.core.parts import few
from earlybird.present.core.points import choices
from earlybird.present.core.table import Table, more_text
from earlybird.present.core.text import star
from earlybird.present.subjects.measured.columns import labelled, labelled_results, results_table
from earlybird.present.subjects.pipelines.view import Pipeline

BRIEF_SIZES = 4  # per pipeline in the terminal, from the smallest to the largest
BRIEF_SETTINGS, BRIEF_CHANGES = 6, 12
_RARE = ("contexts", "receivers")  # of these there is mostly one value
_CAPTION = "Pipelines: time of a buffer in partitions, and speed-up over a single message"


def pipelines_table(measured: Sequence[Pipeline]) -> Table:
    """Return the table of all results."""
    return results_table(_CAPTION, labelled_results(measured), on_page=True)


def brief_pipelines_table(measured: Sequence[Pipeline]) -> Table:
    """Return a single message and the best method of a few sizes of the first pipelines."""
    rows = [
        labelled(pipeline.points[k].results[method], pipeline.label)
        for pipeline in measured[:BRIEF_SETTINGS]
        for k in few(len(pipeline.points), BRIEF_SIZES)
        for method in dict.fromkeys((SINGLE, pipeline.best_methods()[k] or pipeline.points[k].fastest()))
        if method in pipeline.points[k].results
    ]
    more = more_text(len(measured) - BRIEF_SETTINGS, "setting")
    return results_table(_CAPTION + more, rows).brief()


def crossovers_table(measured: Sequence[Pipeline]) -> Table:
    """Return the best method of small buffers of every pipeline, and each size at which it changes."""
    left_out = {name for name, values in choices(measured).items() if name in _RARE and len(values) == 1}
    rows = [
        (
            {name: text for name, text in _setting(pipeline).items() if name not in left_out},
            pipeline.points,
        )
        for pipeline in measured
        if len(pipeline.points) > 1 and len(pipeline.methods()) > 1
    ]
    return crossovers.crossovers_table(f"Crossovers between methods{star_of(measured)}", rows, SINGLE)


def _setting(pipeline: Pipeline) -> dict[str, str]:
    return {**pipeline.choice(), "threads": f"{pipeline.setting.threads}{' *' * pipeline.oversubscribed}"}


def star_of(measured: Sequence[Pipeline]) -> str:
    return star(any(pipeline.oversubscribed for pipeline in measured))
