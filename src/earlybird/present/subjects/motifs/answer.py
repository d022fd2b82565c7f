"""What motifs show, as sentences: the fastest style, what it gains, and where libearlybird is slower."""

from collections.abc import Iterable, Sequence

from earlybird.compare.motifs import SLOWER, over_best
from earlybird.data import labels
from earlybird.data.methods import EARLYBIRD, FUNNELLED, MULTIPLE, OWN_CALLS, PERSISTENT
from earlybird.data.run import Sample
from earlybird.present.core.notation import ratio_text, with_interval
from earlybird.present.core.parts import Answer
from earlybird.present.core.text import crowd, method_answer
from earlybird.present.subjects.motifs.view import Motif, setting_text

_CALLS = "send partitions with MPI_Psend_init and MPI_Pready"
# What to do, by the best style.
_DO = {
    PERSISTENT: "create the requests once, with MPI_Send_init and MPI_Recv_init",
    MULTIPLE: "let each thread send and receive its part, with a communicator for each sending thread",
    OWN_CALLS: _CALLS,
    EARLYBIRD: f"{_CALLS}, and start the program with `earlybird exec`",
}


def motif_sentence(motif: Motif) -> str:
    """Return the fastest style at the largest grid, and what libearlybird gains over the best other style."""
    point, reference = motif.points[-1], labels.method(FUNNELLED)
    gains = point.speed_up
    if not gains:
        return f"In {_where(motif)}, no launch compares styles with {reference}."
    best = max(gains, key=lambda method: gains[method].value)
    text = f"{labels.method(best)} {'is the fastest style and ' * point.leads(best)}"
    if point.best(FUNNELLED) == FUNNELLED:
        text = f"no style is clearly faster than {reference}: {labels.method(best)} "
    text += f"has a speed-up of {with_interval(gains[best], ratio_text)} over {reference}"
    library = motif.library_gain(point)
    is_said = best == EARLYBIRD and library is not None and library[0] == FUNNELLED
    return f"In {_where(motif)}, {text}{'' if is_said else _library_clause(motif)}."


def motif_answer(motifs: Sequence[Motif]) -> Answer:
    """Return the best style in the first setting, and at how many points of all settings one gains."""
    motif = motifs[0]
    point = motif.points[-1]
    do = _DO.get(point.best(FUNNELLED), "")
    more = _library_clause(motif) + _gaining(motifs)
    return method_answer(f"Exchange of {_where(motif)}", point, "style", FUNNELLED, do, more)


def slower_text(samples: Iterable[Sample]) -> str:
    """Return at how many points libearlybird is slower than the best other style; "" without its style."""
    points = over_best(samples)
    if not points:
        return ""
    slower = [point for point in points if point.is_slower]
    clearly = sum(point.is_clearly_slower for point in slower)
    whole = f", clearly (the whole interval) at {clearly} of them" if slower else ""
    return (
        f"libearlybird is more than {100 * (SLOWER - 1):.0f} % slower than the best other style "
        f"at {len(slower)} of {labels.counted(len(points), 'point')}{whole}"
    )


def _where(motif: Motif) -> str:
    """Return `halo3d, MPICH, 2 ranks of 2 threads, 8x8x8 cells, 4 partitions`, and whether threads share
    cores."""
    crowded = f" ({crowd()})" if motif.points[-1].oversubscribed else ""
    cells, *more = motif.settings_of_points()[-1]
    return f"{', '.join([setting_text(motif), f'{cells} cells', *more])}{crowded}"


def _library_clause(motif: Motif) -> str:
    """Return what libearlybird gains over the best other style, as a clause to add."""
    comparison = motif.library_gain(motif.points[-1])
    if comparison is None:
        return ""
    other, gain = comparison
    compared = f"{labels.method(EARLYBIRD)} over {labels.method(other)}, the best other style"
    return f"; the speed-up of {compared}, is {with_interval(gain.estimate, ratio_text)}"


def _gaining(motifs: Sequence[Motif]) -> str:
    """Return at how many points any style is clearly faster than the reference, as a clause to add."""
    points = [point for motif in motifs for point in motif.points if FUNNELLED in point.speeds()]
    if len(points) < 2:
        return ""
    gaining = sum(point.best(FUNNELLED) != FUNNELLED for point in points)
    return (
        f"; a style is clearly faster than {labels.method(FUNNELLED)} at {gaining} of {len(points)} points "
        f"of {motifs[0].name} with {motifs[0].label}"
    )
