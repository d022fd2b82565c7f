"""Merge several profiles, one file per context, into one for a prediction."""

from collections.abc import Sequence
from dataclasses import replace

from earlybird.data.errors import InputError
from earlybird.data.profile import Level, Profile, Replicate
from earlybird.data.results import Result, results_from_json


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """Return one profile with the levels of all, ids joined by `+`, and machine and context of the first.

    Replicate k of the result merges replicate k of each; these are independent. A profile without
    replicates contributes its fitted levels to each. Raises InputError if two have the same level.
    """
    if len(profiles) == 1:
        return profiles[0]
    levels: dict[str, Level] = {}
    for profile in profiles:
        twice = next((name for name in profile.levels if name in levels), None)
        if twice is not None:
            raise InputError(
                f"two of the given profiles have the level {twice}; give one --profile for each level"
            )
        levels |= profile.levels
    return replace(
        profiles[0],
        levels=levels,
        id="+".join(profile.id for profile in profiles if profile.id),
        runs=tuple(run for profile in profiles for run in profile.runs),
        forms=tuple(form for profile in profiles for form in profile.forms),
        intervals={key: item for profile in profiles for key, item in profile.intervals.items()},
        replicates=_merge_replicates(profiles),
        replays=tuple(replay for profile in profiles for replay in profile.replays),
        extra={
            **profiles[0].extra,
            "results": [row for profile in profiles for row in profile.extra.get("results", [])],
        },
    )


def measured_results(profile: Profile) -> list[Result]:
    """Return the measured results to which a profile was fitted; none for a profile of an earlier version."""
    where = f"the profile {profile.id or '(no id)'}"
    return results_from_json(profile.extra.get("results", []), where)


def _merge_replicates(profiles: Sequence[Profile]) -> tuple[Replicate, ...]:
    counts = [len(profile.replicates) for profile in profiles if profile.replicates]
    draws = [
        {
            name: level
            for profile in profiles
            for name, level in (profile.replicates[k] if profile.replicates else profile).levels.items()
        }
        for k in range(min(counts, default=0))
    ]
    return tuple(map(Replicate, draws))
