"""What `measure` compares: MPIs and settings whose launches alternate, or this run with an earlier one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from earlybird.compare.sides import Side, mpis_of, side_of
from earlybird.data.errors import FAILED_VERDICT, InputError, WorkError
from earlybird.data.mpi_settings import alternatives, split_settings, with_settings
from earlybird.data.run import Run
from earlybird.data.run_comparison import SLOWER
from earlybird.machine.flavours import full_name
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line


def listed_mpis(stored: Any) -> list[str]:
    """The setting `mpi` of a run: one MPI, a list of several, or None."""
    return list(stored) if isinstance(stored, list) else [stored] if stored else []


def mpi_setting(mpis: Sequence[str]) -> str | list[str] | None:
    """The reverse."""
    return list(mpis) if len(mpis) > 1 else next(iter(mpis), None)


def in_full(mpi: str) -> str:
    """An MPI of --mpi as a run stores it: the path of an mpicc is absolute."""
    name, variables = split_settings(mpi)
    return with_settings(full_name(name), variables)


def asked_mpis(mpis: Sequence[str] | None, variables: Sequence[str] | None, stored: Any = None) -> list[str]:
    """The MPIs of `--mpi`, each with the settings of `--env`; without --mpi those of `stored`, else the one
    that is chosen without a name."""
    given = _in_full(mpis)
    if not variables:
        return given
    without = dict.fromkeys(split_settings(name)[0] for name in listed_mpis(stored))
    return alternatives(given or list(without) or [""], variables)


def _in_full(mpis: Sequence[str] | None) -> list[str]:
    """The MPIs of --mpi, each once."""
    return list(dict.fromkeys(map(in_full, mpis or ())))


def sides_against(
    path: Path, stored: Any, mpis: Sequence[str] | None, variables: Sequence[str] | None
) -> dict[str, Any]:
    """The settings `mpi` and `against` of a run that is measured against the one in `path`.

    If other MPIs or settings are asked for, both sides are measured, and `against` is None; otherwise the
    other side is what `path` holds, of these MPIs or all.
    """
    before = listed_mpis(stored)
    given = _in_full(mpis)
    asked = alternatives(given or before, variables) if variables else given
    if set(asked) <= set(before):
        return {"mpi": mpi_setting(asked or before), "against": str(path.absolute())}
    return {"mpi": mpi_setting(list(dict.fromkeys([*before, *asked]))), "against": None}


def growth(before: Run, settings: Mapping[str, Any]) -> float:
    """How many times as many MPIs and settings `settings` have as `before`."""
    counts = [len(listed_mpis(one.get("mpi"))) for one in (settings, before.header["settings"])]
    return max(counts[0], 1) / max(counts[1], 1)


def is_compared(settings: Mapping[str, Any]) -> bool:
    """Whether a run with these settings ends with a comparison, whose verdict is the exit status."""
    return bool(settings.get("against")) or len(listed_mpis(settings.get("mpi"))) > 1


@contextmanager
def failing_without_verdict(settings: Mapping[str, Any]) -> Iterator[None]:
    """Of a run that is compared, status 1 says that a point is slower: a failure has another one."""
    try:
        yield
    except WorkError as error:
        if is_compared(settings):
            error.exit_status = FAILED_VERDICT
        raise


def compare_measured(run: Run, settings: Mapping[str, Any], *, prints: bool) -> int:
    """Compare what `run` measured with the run that it was measured against, else its MPIs among themselves;
    nothing to do for a run of one.

    Returns the exit status: 1 if a point is slower, 3 if the runs cannot be compared.
    """
    from earlybird.compare.runs import compare_sides
    from earlybird.present.subjects.changes.terminal import print_run_comparisons

    if not is_compared(settings):
        return 0
    try:
        found = [compare_sides(*pair) for pair in _pairs(run, settings.get("against"))]
    except InputError as error:  # what was measured is stored; the other run may be missing by now
        note(f"warning: not compared: {error}")
        return FAILED_VERDICT
    if prints:
        print_line()
        print_run_comparisons(found, "table")
    return int(any(one.count(SLOWER) for one in found))


def _pairs(run: Run, against: str | None) -> list[tuple[Side, Side]]:
    """Before and after of each comparison."""
    mpis = mpis_of(run)
    if against is None:
        sides = [side_of(run, mpi, f"{run.path}, {mpi}") for mpi in mpis]
        return [(sides[0], other) for other in sides[1:]]
    before = Run.open(against)
    name = min(os.path.relpath(against), against, key=len)
    return [(side_of(before, mpi, name), side_of(run, mpi)) for mpi in mpis]
