"""Checks the options that continue a run, or measure it again, against those that the run was started
with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from earlybird.data import json_text, kernels, labels
from earlybird.data.errors import InputError
from earlybird.data.methods import MANY, SINGLE
from earlybird.data.run import Run
from earlybird.data.run_continuation import STATED_AGAIN
from earlybird.launch.launcher import Launcher
from earlybird.measure.effort import Effort
from earlybird.measure.foreign_runs import refuse_unstated, unstated
from earlybird.measure.launchers import network_of
from earlybird.measure.sides import as_stored, asked_mpis, listed_mpis, mpi_setting
from earlybird.measure.suites import find_suites

_FIRST_PIPELINE_METHODS = f"{SINGLE},{MANY}"  # of runs that store no methods


def stored_effort(run: Run, needed: Iterable[str]) -> tuple[dict[str, Any], Effort]:
    """Return the settings and the effort with which `run` was started; raise InputError if a setting in
    `needed` is missing because another command created it."""
    settings = run.header.get("settings")
    settings = json_text.with_current_keys(settings) if isinstance(settings, dict) else None
    if settings is None or not {"effort", *needed} <= settings.keys():
        raise InputError(
            f"{run.path} was created by another command or does not record how it was measured, so this "
            "command cannot continue it; use the command that created it, or measure again"
        )
    settings["mpi"] = mpi_setting(list(map(as_stored, listed_mpis(settings.get("mpi")))))
    try:
        return settings, Effort(**settings["effort"])
    except TypeError as error:
        raise InputError(
            f"{run.path} was created by another version of earlybird and cannot be continued; measure again"
        ) from error


# Of settings that are not named as their option: numbers of threads to compare are one of `--threads`.
_OPTIONS = {"thread_counts": "threads"}


def refuse_changes(run: Run, settings: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise InputError if an option given with --resume differs from the setting stored in `run`."""
    for name, value in given.items():
        kept = settings.get(name)
        if value not in (None, False) and value != kept:
            stored = "without it" if kept in (None, False) else f"with {_text(kept)}"
            remedy = "give that one" if name in STATED_AGAIN and kept is not None else "omit the option"
            option = _OPTIONS.get(name, name).replace("_", "-")
            raise InputError(
                f"--{option} is {_text(value)}, but {run.path} was started {stored}; "
                f"{remedy}, or measure into another folder"
            )


def _text(setting: Any) -> str:
    return labels.listed(list(map(str, setting))) if isinstance(setting, list) else str(setting)


def refuse_other_network(run: Run, settings: Mapping[str, Any], launcher: Launcher) -> None:
    """Raise InputError if a run is continued on another network than it was started on."""
    stored, current = settings.get("network"), network_of(launcher)
    if stored != current:
        raise InputError(
            f"{run.path} was started on {stored or 'no virtual cluster'}, but this is {current or 'none'}; "
            "continue it on the same network, or measure into another folder"
        )


def refuse_other_options(
    run: Run,
    settings: Mapping[str, Any],
    given: Mapping[str, Any],
    threads: str | None,
    of_suites: Mapping[str, Any],
) -> None:
    """Raise InputError for an option of `measure` that differs from the value stored in `run`: one of those
    `given`, --threads, or an option of its suites."""
    if kernels.PIPELINE.name in settings["suites"]:
        settings = {"methods": _FIRST_PIPELINE_METHODS} | settings
    refuse_changes(run, settings, given)
    of_suites = {name: value for name, value in of_suites.items() if value is not None}
    chosen = find_suites(settings["suites"])
    compares_threads = len(chosen) == 1 and chosen[0].compares_threads  # several suites do not
    key = "thread_counts" if compares_threads else "threads"
    threads = of_suites.pop(key, threads)
    refuse_changes(run, {"threads": settings.get(key) and str(settings[key])}, {"threads": threads})
    refuse_changes(run, settings, of_suites)


def refuse_other_mpis(
    run: Run,
    settings: Mapping[str, Any],
    place: Mapping[str, Any],
    mpis: Sequence[str],
    variables: Sequence[str],
    *,
    is_continued: bool,
) -> None:
    """Raise InputError if what --mpi and --env name is not what is to be measured, or lacks a part that a
    command line must state; for a run that `is_continued`, they must be those of the run."""
    asked, stored = asked_mpis(mpis, variables, settings["mpi"]), listed_mpis(settings["mpi"])
    if is_continued and not (set(asked) <= set(stored) and (variables or any(map(unstated, stored)))):
        refuse_changes(run, settings, {"mpi": mpi_setting(asked)})
    refuse_unstated(run, settings, place, mpis=stored, stated_mpis=mpis, stated_variables=variables)
