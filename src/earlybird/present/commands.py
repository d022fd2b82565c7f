"""Commands that the report recommends, with the files that it was made from."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earlybird.data import kernels
from earlybird.data.measure_commands import (
    ANYWHERE,
    MESSAGES,
    LaunchOptions,
    launch_of,
    measure_command,
)
from earlybird.data.profile import Profile
from earlybird.data.shell_commands import path_argument, quoted
from earlybird.data.units import format_bytes, whole_number
from earlybird.present.material import Material, MeasuredRun, profile_mpi

PROFILE, RUN, PATTERN, COLLECTIVES = "profile.json", "run", "PATTERN", "collectives"
_SLOTS = re.compile(r"([0-9]+x[0-9]+x[0-9]+)(?: by (\w+))?")


def size(size_bytes: float) -> str:
    """Return an exact size: `1MiB`; in bytes if a unit would round it."""
    whole = int(size_bytes)
    for unit in (1 << 30, 1 << 20, 1 << 10):
        if whole and whole % unit == 0:
            return format_bytes(whole).replace(" ", "")
    return str(whole)


def measure(launch: LaunchOptions = ANYWHERE) -> str:
    return measure_command(MESSAGES, {}, launch, RUN)


def fit(material: Material) -> str:
    """Return the command that fits the runs of messages, or RUN if the report has none."""
    runs = [
        run for run in material.runs if any(kernels.kernel_of(name).fit == "levels" for name in _kernels(run))
    ]
    return _fit(runs[:1], PROFILE)


def _fit(runs: Sequence[MeasuredRun], output: str, mpi: str = "") -> str:
    paths = " ".join(path_argument(run.path or RUN) for run in runs) or RUN
    mpis = {str(sample.config.get("mpi", "")) for run in runs for sample in run.samples}
    only = f" --mpi {quoted(mpi)}" if mpi and len(mpis) > 1 else ""
    return f"earlybird fit {paths} -o {path_argument(output)}{only}"


def _kernels(run: MeasuredRun) -> set[str]:
    return {sample.kernel for sample in run.samples}


def advise_buffer(material: Material) -> str:
    arguments = f"--threads 8 --size 64MiB --gamma 100us/MB --profile {profile_of(material)}"
    return f"earlybird advise pipeline {arguments} --json > advice.json"


def advise_operation(material: Material) -> str:
    """Return the command that advises on a collective operation with a profile of collectives, else with one
    fitted to a run of them, which is measured if needed."""
    advise = "earlybird advise collective --op {} --ranks {} --profile {} --json > advice.json"
    for k, profile in enumerate(material.profiles):
        for what in _subjects(profile):
            if "algorithm" in what and what.get("operation"):
                path = path_argument(material.path_of("profiles", k) or PROFILE)
                return advise.format(quoted(str(what["operation"])), 8, path)
    runs = [run for run in material.runs if kernels.COLLECTIVE.name in _kernels(run)]
    first = "" if runs else f"earlybird measure collective --op bcast -o {COLLECTIVES} && "
    fitted = _fit(runs[:1], f"{COLLECTIVES}.json") if runs else _fit_of(COLLECTIVES)
    operation, ranks = _operation(runs[0]) if runs else ("bcast", 4)
    return f"{first}{fitted} && {advise.format(quoted(operation), ranks, f'{COLLECTIVES}.json')}"


def _fit_of(name: str) -> str:
    return f"earlybird fit {name} -o {name}.json"


def _operation(run: MeasuredRun) -> tuple[str, int]:
    """Return an operation of the run and the most ranks."""
    configs = [sample.config for sample in run.samples if sample.kernel == kernels.COLLECTIVE.name]
    first = str(configs[0].get("operation", "bcast"))
    ranks = [whole_number(str(config.get("ranks", ""))) or 0 for config in configs]
    return first, max(ranks, default=0) or 4


def advice(
    material: Material,
    run: MeasuredRun,
    mpi: str,
    command: str,
    output: str,
    is_fitted: Callable[[Mapping[str, Any]], bool],
) -> str:
    """Return a clause that names the command for the calls and settings of the best method: `command` with
    the first profile of this MPI with a form for which `is_fitted`, or with one fitted to `run` and written
    to `output`."""
    for k, profile in enumerate(material.profiles):
        if profile_mpi(profile) == mpi and any(map(is_fitted, _subjects(profile))):
            path = material.path_of("profiles", k) or PROFILE
            return f"run `{command} --profile {path_argument(path)}` for the calls and settings to use"
    first = _fit([run], output, mpi)
    return (
        f"run `{first}`, then `{command} --profile {path_argument(output)}` for the calls and settings to use"
    )


def _subjects(profile: Profile) -> list[Mapping[str, Any]]:
    """Return the subjects that the forms of a profile describe."""
    whats = [form.get("what") for form in profile.forms if isinstance(form, Mapping)]
    return [what for what in whats if isinstance(what, Mapping)]


def profile_of(material: Material, id: str = "", mpi: str = "") -> str:
    """Return the path of the profile with this id, else of the first with messages and of this MPI."""

    def misfit(numbered: tuple[int, Profile]) -> tuple[bool, ...]:
        profile = numbered[1]
        return profile.id != id, not profile.levels, bool(mpi) and profile_mpi(profile) != mpi

    ordered = sorted(enumerate(material.profiles), key=misfit)
    return path_argument(material.path_of("profiles", ordered[0][0]) or PROFILE) if ordered else PROFILE


def pattern_of(material: Material, digest: str) -> str:
    for k, pattern in enumerate(material.patterns):
        if pattern.sha256() == digest:
            return path_argument(material.path_of("patterns", k) or PATTERN)
    return PATTERN


def placed(layout: str, num_ranks: int, map_by: str = "") -> str:
    """Return `--layout 1x1x4`, one node for all ranks if the layout is unknown."""
    slots = _SLOTS.fullmatch(layout)
    if slots is None:
        return f"--layout {quoted(layout or f'1x1x{num_ranks}')}"
    map_by = slots[2] or map_by
    return f"--layout {slots[1]}" + (f" --map-by {quoted(map_by)}" if map_by and map_by != "core" else "")


def predict_program(material: Material) -> str:
    """Return the command that simulates the program of the first recording."""
    return (
        f"{_profile_first(material)}earlybird predict program {_recorded(material)} --json > simulated.json"
    )


def advise_program(material: Material) -> str:
    """Return the command that advises on the program of the first recording."""
    return f"{_profile_first(material)}earlybird advise program {_recorded(material)} --json > advice.json"


def _recorded(material: Material) -> str:
    recording = path_argument(material.path_of("recordings", 0) or "rec")
    return f"{recording} --profile {profile_of(material)}"


def _profile_first(material: Material) -> str:
    """Return the commands that make the profile that a command needs, if the report has none."""
    has_messages = any(profile.levels for profile in material.profiles)
    launch = launch_of(material.recordings[0]) if material.recordings else ANYWHERE
    return "" if has_messages else f"{measure(launch)} && {_fit((), PROFILE)} && "


def predict(pattern: str, profile: str, where: str, model: str = "") -> str:
    chosen = f" --model {quoted(model)}" if model else ""
    return f"earlybird predict exchange {pattern} --profile {profile} {where}{chosen}"


def predict_file(pattern: str, profile: str, where: str) -> str:
    return f"{predict(pattern, profile, where)} --json > prediction.json"


def replay(pattern: str, profile: str, where: str) -> str:
    return f"earlybird replay {pattern} --profile {profile} {where} -o replay"
