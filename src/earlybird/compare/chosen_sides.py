"""Selects the sides of comparisons: runs, the MPIs of one run, or a baseline and runs."""

from collections.abc import Sequence
from pathlib import Path

from earlybird.compare.sides import Side, mpis_of, side_of, side_of_baseline
from earlybird.data.baseline import load_baseline
from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.run import Run


def one_side(sources: Sequence[Path], mpis: Sequence[str]) -> Side:
    """Return the side whose operations are compared with each other."""
    if len(sources) > 1 or len(mpis) > 1:
        raise InputError(
            "--guidelines compares the operations of one RUN and one MPI with each other; give one run, and "
            "--mpi once at most"
        )
    return side_of(Run.open(sources[0]), *mpis)


def sides_with_baseline(path: Path, sources: Sequence[Path], mpis: Sequence[str]) -> list[tuple[Side, Side]]:
    """Return the baseline paired with each run; for a run of several MPIs, the MPI of the baseline is
    compared.
    """
    if len(mpis) > 1:
        raise InputError(f"--mpi is given {len(mpis)} times with --baseline; give it once at most")
    before = side_of_baseline(load_baseline(path))
    runs = [Run.open(source) for source in sources]
    mpi = mpis[0] if mpis else None
    return [(before, side_of(run, mpi, preferred=before.mpi)) for run in runs]


def sides_of(sources: Sequence[Path], mpis: Sequence[str]) -> list[tuple[Side, Side]]:
    """Return the first run and each other, or the first MPI of a single run and each other."""
    runs = [Run.open(source) for source in sources]
    if len(runs) == 1:
        mpis = mpis or mpis_of(runs[0])
        if len(mpis) < 2:
            raise InputError(
                f"{sources[0]} alone has nothing to be compared with; give a second run, or one of several "
                "MPIs or settings, from `earlybird measure --mpi A --mpi B`"
            )
        return sides_within(runs[0], mpis)
    if len(mpis) > 1:
        raise InputError(
            f"{counted(len(runs), 'run')} and {len(mpis)} times --mpi are given; give --mpi once for "
            "several runs, or one run and --mpi twice"
        )
    first, *others = (side_of(run, mpis[0] if mpis else None) for run in runs)
    return [(first, other) for other in others]


def sides_within(run: Run, mpis: Sequence[str]) -> list[tuple[Side, Side]]:
    """Return the first of these MPIs of a run and each other."""
    first, *others = (side_of(run, mpi, f"{run.path}, {mpi}") for mpi in mpis)
    return [(first, other) for other in others]
