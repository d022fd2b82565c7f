"""Selects what `measure` compares: MPIs and settings whose launches alternate, or this run with an earlier
one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from earlybird.compare.chosen_sides import sides_within
from earlybird.compare.sides import Side, mpis_of, side_of
from earlybird.data.errors import FAILED_VERDICT, WorkError
from earlybird.data.mpi_settings import alternatives, split_settings, with_settings
from earlybird.data.run import Run
from earlybird.data.run_comparison import RunComparison
from earlybird.machine.flavours import full_name


def listed_mpis(stored: Any) -> list[str]:
    """Return the setting `mpi` of a run: one MPI, a list of several, or None."""
    return list(stored) if isinstance(stored, list) else [stored] if stored else []


def mpi_setting(mpis: Sequence[str]) -> str | list[str] | None:
    """Return the setting `mpi` of a run of these MPIs."""
    return list(mpis) if len(mpis) > 1 else next(iter(mpis), None)


def as_stored(mpi: str) -> str:
    """Return an MPI of --mpi as a run stores it: the path of an mpicc is absolute."""
    name, variables = split_settings(mpi)
    return with_settings(full_name(name), variables)


def asked_mpis(mpis: Sequence[str] | None, variables: Sequence[str] | None, stored: Any = None) -> list[str]:
    """Return what `--mpi` and `--env` ask for: [] without either, the MPIs of --mpi without --env. With it,
    each setting of these MPIs, without --mpi of those of `stored`, else of the one that is chosen without a
    name."""
    given = _given_mpis(mpis)
    if not variables:
        return given
    without = dict.fromkeys(split_settings(name)[0] for name in listed_mpis(stored))
    return alternatives(given or list(without) or [""], variables)


def _given_mpis(mpis: Sequence[str] | None) -> list[str]:
    """Return the MPIs of --mpi, each once."""
    return list(dict.fromkeys(map(as_stored, mpis or ())))


def sides_against(
    path: Path, stored: Any, mpis: Sequence[str] | None, variables: Sequence[str] | None
) -> dict[str, Any]:
    """Return the settings `mpi` and `against` of a run that is measured against the one in `path`.

    If other MPIs or settings are asked for, both sides are measured, and `against` is None; otherwise the
    other side is the content of `path`, for these MPIs or all.
    """
    before = listed_mpis(stored)
    given = _given_mpis(mpis)
    asked = alternatives(given or before, variables) if variables else given
    if set(asked) <= set(before):
        return {"mpi": mpi_setting(asked or before), "against": str(path.absolute())}
    return {"mpi": mpi_setting(list(dict.fromkeys([*before, *asked]))), "against": None}


def most_launches(run: Run) -> int:
    """Return of how many launches a run has the point that has most."""
    launches: dict[str, set[str]] = {}
    for sample in run.each_sample():
        point = repr((sample.kernel, sample.quantity, sample.method, sorted(sample.config.items())))
        launches.setdefault(point, set()).add(sample.launch)
    return max(map(len, launches.values()), default=0)


def growth(before: Run, settings: Mapping[str, Any]) -> float:
    """Return the number of MPIs and settings in `settings` divided by that in `before`."""
    counts = [len(listed_mpis(stored.get("mpi"))) for stored in (settings, before.header["settings"])]
    return max(counts[0], 1) / max(counts[1], 1)


def is_compared(settings: Mapping[str, Any]) -> bool:
    """Return whether a run with these settings ends with a comparison, whose verdict is the exit status."""
    return bool(settings.get("against")) or len(listed_mpis(settings.get("mpi"))) > 1


@contextmanager
def failing_without_verdict(settings: Mapping[str, Any]) -> Iterator[None]:
    """Give a failure of a run that is compared an exit status other than 1, which means that a point is
    slower."""
    try:
        yield
    except WorkError as error:
        if is_compared(settings):
            error.exit_status = FAILED_VERDICT
        raise


def comparisons_of(run: Run, settings: Mapping[str, Any]) -> list[RunComparison]:
    """Compare what `run` measured with the run that it was measured against, otherwise its MPIs among
    themselves; return nothing for a run of one MPI. Raise InputError if the runs cannot be compared."""
    from earlybird.compare.runs import compare_sides

    return (
        [compare_sides(*pair) for pair in _pairs(run, settings.get("against"))]
        if is_compared(settings)
        else []
    )


def _pairs(run: Run, against: str | None) -> list[tuple[Side, Side]]:
    """Return before and after of each comparison."""
    mpis = mpis_of(run)
    if against is None:
        return sides_within(run, mpis)
    before = Run.open(against)
    name = min(os.path.relpath(against), against, key=len)
    return [(side_of(before, mpi, name), side_of(run, mpi)) for mpi in mpis]
