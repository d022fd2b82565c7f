"""Selects what a run measures: the groups of its suites on every MPI, and which of them a launcher can
run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earlybird.data import kernels, labels
from earlybird.data.errors import InputError
from earlybird.launch.launcher import Launcher
from earlybird.measure.groups import Group, Library, Options, Resources, Suite
from earlybird.measure.launch_counts import DEFAULT_LAUNCHES, QUICK_LAUNCHES
from earlybird.measure.launchers import is_simulated
from earlybird.measure.options import thread_counts
from earlybird.measure.session import refuse_conflicts_of
from earlybird.measure.suites import SUITES
from earlybird.measure.synthetic_times import is_drawn


def default_launches(quick: bool, launcher_text: str) -> int:
    """Return the number of launches of every point: one in a simulation, where all give the same times."""
    if is_simulated(launcher_text):
        return 1
    return QUICK_LAUNCHES if quick else DEFAULT_LAUNCHES


def default_budget_s(chosen: Sequence[Suite], quick: bool, mpis: Sequence[str]) -> float:
    """Return the seconds for all suites on all MPIs."""
    return sum(suite.budgets_s[quick] for suite in chosen) * max(len(mpis), 1)


def planned_groups(
    chosen: Sequence[Suite],
    options: Options,
    resources: Mapping[str, Resources],
    launcher: Launcher,
    launcher_text: str,
) -> tuple[list[Group], list[str]]:
    """Return the groups of the suites with the resources of every MPI, and remarks on what they measure.

    Raises InputError for what the launcher cannot run, and if there is nothing to measure.
    """
    if launcher.name == "synthetic":
        _refuse_undrawn(chosen, options)
    if is_simulated(launcher_text):
        _refuse_without_threads(chosen)
    groups = [
        group
        for name, of_mpi in resources.items()
        for suite in chosen
        for group in suite.groups(options, of_mpi, name)
    ]
    if not groups:
        raise InputError(
            f"there is nothing to measure: {', '.join(suite.name for suite in chosen)} has no points with "
            "these options on this machine; give other options or another suite"
        )
    for group in groups:
        launcher.check(group.layout)
    refuse_conflicts_of(groups, launcher)
    remarks = [
        text for of_mpi in resources.values() for suite in chosen for text in suite.remarks(options, of_mpi)
    ]
    return groups, list(dict.fromkeys(remarks))


def groups_anywhere(chosen: Sequence[Suite], options: Options) -> list[Group]:
    """Return groups on as many levels as the options leave open, for a script that runs on other nodes."""
    anywhere = replace(Resources.of(2, 2, 2), library=Library("mpi"))
    return [group for suite in chosen for group in suite.groups(options, anywhere, "mpi")]


def can_be_fitted(groups: Sequence[Group]) -> bool:
    """Return whether `fit` can make a profile from these groups alone."""
    points: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        points.setdefault(group.kernel, []).extend(group.points)
    return any(kernels.KERNELS[name].is_fitted(of_kernel) for name, of_kernel in points.items())


def profile_name(suite_names: Sequence[str]) -> str:
    """Return a name that does not overwrite the profile of messages, to which others are added."""
    profiles = {kernels.KERNELS[name].profile for name in suite_names}
    return profiles.pop() if len(profiles) == 1 else kernels.PINGPONG.profile


def launcher_threads(text: str | None) -> int:
    """Return the number of threads of all launches; suites that compare thread counts have an option of their
    own."""
    counts = thread_counts(text) or (1,)
    if len(counts) > 1:
        comparing = [suite.name for suite in SUITES.values() if suite.compares_threads]
        raise InputError(
            f"--threads is {text}, but only {labels.listed(comparing)}, measured alone, take several thread "
            "counts; give one"
        )
    return counts[0]


def refuse_options_of_suites(of_suites: Mapping[str, Any]) -> None:
    """Raise InputError for an option that belongs to some suites, where several are measured."""
    key = next((key for key, value in of_suites.items() if value is not None), None)
    if key is None:
        return
    taking = [
        (suite.name, option.option)
        for suite in SUITES.values()
        for option in suite.takes
        if option.key == key
    ]
    raise InputError(
        f"{taking[0][1]} is an option of {', '.join(name for name, _ in taking)}, and several suites take "
        "the common options only; measure one suite, or omit it"
    )


def _refuse_without_threads(chosen: Sequence[Suite]) -> None:
    for suite in chosen:
        if suite.compares_threads and not suite.simulated:
            others = [
                other.name for other in SUITES.values() if other.simulated or not other.compares_threads
            ]
            raise InputError(
                f"{suite.name} measures threads or partitions, which simulated ranks do not support; measure "
                f"{', '.join(others)}, or give another --launcher"
            )


def _refuse_undrawn(chosen: Sequence[Suite], options: Options) -> None:
    """Raise InputError for points whose times the launcher synthetic cannot draw."""
    for suite in chosen:
        if not is_drawn(suite.name):
            raise InputError(
                f"the launcher synthetic draws times from a profile, which does not describe {suite.name}; "
                f"measure {suite.name} with another --launcher"
            )
    most = max(options.threads or (options.launcher_threads,))
    if most > 1 and not all(suite.draws_threads for suite in chosen):
        raise InputError(
            f"--threads is {most}, but the launcher synthetic draws times from a profile and ignores "
            "threads; omit --threads"
        )
