"""The last figure of Temucin et al. 2022: what a program gains that communicates as Sweep3D does."""

from collections.abc import Iterator, Sequence

from earlybird.data import labels
from earlybird.data.collective_algorithms import family_of
from earlybird.data.kernels import SWEEP3D
from earlybird.data.methods import EARLYBIRD, FUNNELLED
from earlybird.data.recording import MIN_CORE_WAIT
from earlybird.data.shell_commands import command_text
from earlybird.data.units import format_bytes
from earlybird.papers.paper import Row
from earlybird.papers.temucin.throughput import Throughput
from earlybird.present.core.notation import ratio_text
from earlybird.present.material import Material
from earlybird.present.subjects.recording.view import Recorded, recordings

_FIGURE, _QUANTITY, _PRINTED = "SNAP", "speed-up expected from porting SNAP-C", "a picture"
_WITHOUT = "the paper prints no values; record SNAP, and give the recording to `earlybird report`"


def application_rows(material: Material, motifs: Sequence[Throughput]) -> list[Row]:
    """Return the values of the figure for each recorded program; without one, the way to get it."""
    timed = [recorded for recorded in recordings(material) if recorded.calls.whole.share > 0]
    rows = [
        Row(
            _FIGURE,
            _QUANTITY,
            _PRINTED,
            _share(recorded),
            "; ".join(_notes(recorded, motifs)),
            _mpi(recorded),
        )
        for recorded in timed
    ]
    return rows or [Row(_FIGURE, _QUANTITY, _PRINTED, note=_WITHOUT)]


def expected_speed_up(share: float, gain: float) -> float:
    """Return the speed-up of a run whose `share` of communication becomes `gain` times as fast (Amdahl)."""
    return 1 / (1 - share + share / gain)


def _share(recorded: Recorded) -> str:
    return f"{labels.percent(recorded.calls.whole.share)} in MPI"


def _mpi(recorded: Recorded) -> str:
    family = family_of({"library_version": recorded.mpi})
    return labels.flavour(family) if family else recorded.mpi


def _notes(recorded: Recorded, motifs: Sequence[Throughput]) -> Iterator[str]:
    """Yield the profile of the program, and the speed-up that follows from Sweep3D here."""
    share, recording = recorded.calls.whole.share, recorded.recording
    messages, sent_bytes = int(recorded.totals.messages.sum()), int(recorded.totals.bytes.sum())
    mean_bytes = sent_bytes / max(messages, 1)
    yield command_text(recording.command) if recording.command else recorded.name
    yield f"{labels.counted(messages, 'message')} of {format_bytes(mean_bytes)} in the mean"
    # Where several threads are inside the MPI at the same time, shares are no part of the run.
    for motif in motifs if 0 < share < 1 and messages else ():
        if motif.setting.motif != SWEEP3D.name:
            continue
        ratios = [(point, motif.ratio(point, EARLYBIRD, FUNNELLED)) for point in motif.points]
        known = [(point, ratio.value) for point, ratio in ratios if ratio]
        if known:
            point, gain = min(known, key=lambda pair: abs(pair[0].size_bytes - mean_bytes))
            yield (
                f"Sweep3D of {motif.label} with libearlybird has {ratio_text(gain)} times the throughput at "
                f"{format_bytes(point.size_bytes)}: speed-up {ratio_text(expected_speed_up(share, gain))} if "
                "all time in MPI shrinks so"
            )
    waited = recording.core_wait_share
    if waited is not None and waited >= MIN_CORE_WAIT:
        yield f"ranks waited for a core in {labels.percent(waited)} of the run: the share is the scheduler's"
