"""Commands that make a missing measurement, with the MPI and the launcher of the profile that lacks it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from earlybird.data.collective_algorithms import family_of
from earlybird.data.kernels import OF_MESSAGES
from earlybird.data.profile import Profile
from earlybird.data.recording import Recording
from earlybird.data.shell_commands import command_text, no_option, path_argument

# What a profile of messages is fitted to.
MESSAGES = " ".join(OF_MESSAGES)
# The key of a profile with the launch options of its runs.
MEASURED_WITH = "measured_with"
DEFAULT_CLUSTER = "virtual"
# The virtual cluster of `demo`, followed by the number of a process: it ends with the demo.
DEMO_CLUSTER = "demo-"
# In a command, for a virtual cluster that the user has or starts.
_ANY_CLUSTER = "cluster:NAME"
_OPTIONS = ("launcher", "hosts", "agent", "srun", "mpi")


@dataclass(frozen=True)
class LaunchOptions:
    """The options of `measure` that select the MPI and the hosts; empty for the default."""

    launcher: str = ""
    hosts: str = ""
    agent: str = ""
    srun: str = ""
    mpi: str = ""

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "LaunchOptions":
        """Return the options in a run's settings, or in a profile's `measured_with`."""
        given = {name: str(settings.get(name) or "") for name in _OPTIONS}
        return cls(**given | {"launcher": "" if given["launcher"] == "local" else given["launcher"]})

    @classmethod
    def of(cls, profile: Profile) -> "LaunchOptions":
        """Return the options with which the profile was measured, taken from its context if it has no
        others."""
        stated = profile.extra.get(MEASURED_WITH)
        if isinstance(stated, Mapping):
            return cls.of_settings(stated)
        launcher = str(profile.context.get("launcher") or "")
        # The name of the cluster, and the simulated machine, are unknown.
        more = {"cluster": _ANY_CLUSTER, "simgrid": "simgrid:NODESxSOCKETSxCORES"}
        return cls.of_settings(
            {"mpi": profile.context.get("flavour"), "launcher": more.get(launcher, launcher)}
        )

    def to_json(self) -> dict[str, str]:
        return {name: value for name in _OPTIONS if (value := getattr(self, name))}

    @property
    def arguments(self) -> list[str]:
        """The options as arguments of a command that a user runs later."""
        if re.fullmatch(f"cluster:{DEMO_CLUSTER}[0-9]+", self.launcher):
            return replace(self, launcher=_ANY_CLUSTER).arguments
        # A value that begins with a dash is no option.
        return [
            text
            for name, value in self.to_json().items()
            for text in ([f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value])
        ]


ANYWHERE = LaunchOptions()


def launch_of(recording: Recording, profile: Profile | None = None) -> LaunchOptions:
    """Return where to measure for a recorded program: with its MPI, and where the profile was measured, else
    on the nodes of the recording."""
    launch = ANYWHERE if profile is None else LaunchOptions.of(profile)
    first = next(iter(recording.ranks.values()), None)
    recorded = family_of({"library_version": first.mpi}) if first else None
    if recorded and (profile is None or recorded != family_of(profile.context)):
        launch = replace(launch, mpi=recorded)
    hosts = list(dict.fromkeys(one.host for one in recording.ranks.values()))
    if len(hosts) < 2 or launch.launcher or launch.hosts:
        return launch
    cluster = virtual_cluster(recording.command)
    return replace(launch, launcher=cluster) if cluster else replace(launch, hosts=",".join(hosts))


def virtual_cluster(command: Sequence[str]) -> str:
    """Return `cluster:NAME` of a recorded `earlybird cluster mpiexec` command; "" for another command."""
    words = list(command)
    if "cluster" not in words or "mpiexec" not in words[words.index("cluster") :]:
        return ""
    given = [
        words[k + 1] if word == "--name" and k + 1 < len(words) else word.removeprefix("--name=")
        for k, word in enumerate(words)
        if word == "--name" or word.startswith("--name=")
    ]
    return f"cluster:{given[0] if given else DEFAULT_CLUSTER}"


def measure_command(
    suites: str, options: Mapping[str, object], launch: LaunchOptions = ANYWHERE, run: str = "RUN"
) -> str:
    """Return `earlybird measure ...` without backquotes; `options` whose value is None are left out."""
    given = [
        text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))
    ]
    return command_text(["earlybird", "measure", *suites.split(), *given, *launch.arguments, "-o", run])


def replay_command(
    patterns: Sequence[Path], layout: str, profiles: Sequence[str] | None, profile: Profile
) -> str:
    """Return the command that runs exchanges, one after the other, where `profile` was measured; `profiles`
    are its files."""
    first, *then = map(no_option, patterns)
    launch = LaunchOptions.of(profile)
    command = ["earlybird", "replay", first, *(text for path in then for text in ("--then", path))]
    command += ["--layout", layout, *(["--profile", profiles[0]] if profiles and len(profiles) == 1 else [])]
    missing = "" if launch.launcher or launch.hosts else ", with --launcher or --hosts for its nodes"
    return command_text([*command, *launch.arguments]) + missing


def free_run() -> str:
    """Return a name for a further run that no file in the current folder has: `more`, `more2`, ..."""
    names = (f"more{k if k > 1 else ''}" for k in count(1))
    return next(name for name in names if not Path(name).exists())


def fit_together(profile: Profile, run: str) -> str:
    """Return how to fit `run` with the runs of the profile, whose ids alone are known: a run with few points
    cannot be fitted alone."""
    ids = list(dict.fromkeys(str(known["id"]) for known in profile.runs if known.get("id")))
    runs = "the runs of the profile" if len(ids) != 1 else "the run of the profile"
    named = f" ({', '.join(ids)})" if ids else ""
    return f"then `earlybird fit RUN {path_argument(run)} -o PROFILE`, RUN being {runs}{named}"
