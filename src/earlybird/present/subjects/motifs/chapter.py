"""The chapter on motifs: what threads and partitions gain in the exchanges of applications."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.methods import EARLYBIRD, FUNNELLED, MULTIPLE, OWN_CALLS, PERSISTENT
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import Answer, Chapter, grouped
from earlybird.present.core.text import method_answer
from earlybird.present.material import Material
from earlybird.present.subjects.motifs.figures import CROWDED, MAX_SETTINGS, motif_figures
from earlybird.present.subjects.motifs.tables import (
    brief_motifs_table,
    brief_scaling_tables,
    motifs_table,
    scaling_tables,
)
from earlybird.present.subjects.motifs.view import Motif, by_interest, choices, motifs, setting_text

ID = "motifs"
QUESTION = "What do threads and partitions gain in an application's exchange?"
_CALLS = "send partitions with MPI_Psend_init and MPI_Pready"
# What to do, by the best style.
_DO = {
    PERSISTENT: "create the requests once, with MPI_Send_init and MPI_Recv_init",
    MULTIPLE: "let each thread send and receive its part, with a communicator for each sending thread",
    OWN_CALLS: _CALLS,
    EARLYBIRD: f"{_CALLS}, and start the program with `earlybird exec`",
}


def motif_chapter(material: Material) -> Chapter:
    measured = motifs(material)
    if not measured:
        return Chapter(ID, QUESTION, "")
    ordered = by_interest(measured)
    of_motifs = grouped(ordered, lambda one: one.name).values()
    of_mpis = grouped(ordered, lambda one: (one.name, one.mpi)).values()
    return Chapter(
        ID,
        QUESTION,
        " ".join(_sentence(group[0]) for group in of_motifs),
        [_styles(measured), *_crowd(measured)],
        answers=[_answer(group) for group in of_mpis],
        figures=motif_figures(ordered),
        tables=[motifs_table(measured), *scaling_tables(measured)],
        brief=[brief_motifs_table(ordered), *brief_scaling_tables(measured)],
        choices=choices(ordered[:MAX_SETTINGS]),
    )


def _styles(measured: Sequence[Motif]) -> str:
    names = sorted({method for one in measured for method in one.methods()}, key=labels.method_order)
    listed = labels.listed([f"{labels.method(name)} ({name})" for name in names])
    return f"Styles, with their names in options: {listed}."


def _crowd(measured: Sequence[Motif]) -> list[str]:
    crowded = sum(one.oversubscribed for one in measured)
    settings = labels.counted(len(measured), "setting")
    return [f"In {crowded} of {settings}: {CROWDED[0].lower()}{CROWDED[1:]}"] if crowded else []


def _where(one: Motif) -> str:
    """`halo3d, MPICH, 2 ranks of 2 threads, 8x8x8 cells, 4 partitions`, and whether threads share cores."""
    crowded = " (more threads than cores)" if one.points[-1].oversubscribed else ""
    cells, *more = one.settings_of_points()[-1]
    return f"{', '.join([setting_text(one), f'{cells} cells', *more])}{crowded}"


def _sentence(one: Motif) -> str:
    """The fastest style at the largest grid, and libearlybird compared with the best other style."""
    point, reference = one.points[-1], labels.method(FUNNELLED)
    gains = point.speed_up
    if not gains:
        return f"In {_where(one)}, no launch compares styles with {reference}."
    best = max(gains, key=lambda method: gains[method].value)
    over = f"has a speed-up of {with_interval(gains[best], ratio_text)} over {reference}"
    if point.best(FUNNELLED) == FUNNELLED:
        found = f"no style is clearly faster than {reference}: {labels.method(best)} {over}"
    else:
        found = f"{labels.method(best)} {'is the fastest style and ' * point.leads(best)}{over}"
    library = one.library_gain(point)
    is_said = best == EARLYBIRD and library is not None and library[0] == FUNNELLED
    return f"In {_where(one)}, {found}{'' if is_said else _of_library(one)}."


def _of_library(one: Motif) -> str:
    """What libearlybird gains compared with the best other style."""
    found = one.library_gain(one.points[-1])
    if found is None:
        return ""
    other, gain = found
    text = with_interval(gain.estimate, ratio_text)
    compared = f"{labels.method(EARLYBIRD)} over {labels.method(other)}, the best other style"
    return f"; the speed-up of {compared}, is {text}"


def _answer(of_mpi: Sequence[Motif]) -> Answer:
    """The style that is the best in the setting that shows most, and at how many points one gains."""
    one = of_mpi[0]
    point = one.points[-1]
    what = f"Exchange of {_where(one)}"
    do = _DO.get(point.best(FUNNELLED), "")
    return method_answer(what, point, "style", FUNNELLED, do, _of_library(one) + _gaining(of_mpi))


def _gaining(of_mpi: Sequence[Motif]) -> str:
    """At how many points of all settings any style is clearly faster than the reference."""
    points = [point for one in of_mpi for point in one.points if FUNNELLED in point.speeds()]
    if len(points) < 2:
        return ""
    gaining = sum(point.best(FUNNELLED) != FUNNELLED for point in points)
    return (
        f"; a style is clearly faster than {labels.method(FUNNELLED)} at {gaining} of {len(points)} points "
        f"of {of_mpi[0].name} with {of_mpi[0].label}"
    )
