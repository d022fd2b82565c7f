"""One side of a comparison of runs: its points, and the circumstances of its launches."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from earlybird.data import kernels, labels
from earlybird.data.baseline import Baseline, BaselinePoint
from earlybird.data.benchmark_parameters import PARAMETERS, PROCESSES, THREADS
from earlybird.data.collective_algorithms import COMPLETION, VERIFICATION
from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import BOOKKEEPING, RECORDED, is_set_by_launcher, split_settings
from earlybird.data.run import UNNAMED_HOST, Run
from earlybird.data.run_comparison import Difference, Point
from earlybird.data.run_continuation import resume_command, stated_again
from earlybird.data.shell_commands import command_text
from earlybird.data.statistics import (
    MEAN,
    MEDIAN,
    SLOWEST_RANK_MEAN,
    STATISTICS,
    Statistic,
)

# What identifies a point on both sides: kernel, quantity, method, and its configuration without the MPI.
Key = tuple[str, str, str, tuple[tuple[str, Any], ...]]

_OF_MACHINE = (
    "host", "cpu_model", "cores", "sockets", "hardware_threads", "memory_bytes", "kernel", "governor",
)  # fmt: skip
_OF_LAUNCH = (
    "version", "mpi_standard", "launcher", "srun", "network", "transport", "binding", "threads_per_rank",
    "thread_level", "preloaded", "set_by_launcher", "oversubscribed", "simulated_machine",
    "datatype",
)  # fmt: skip
# Mappings whose entries are compared one by one.
_MAPPINGS = ("environment", "settings", "control_variables")
# The parts of a key before the configuration.
_OF_KEY = ("kernel", "quantity", "method")
_PREVENTING = frozenset({"host", "network"})
_PLACEMENT = "placement of "
_LIBRARY = "library: "
_FORMER_STATISTIC = "value of a launch"  # among the circumstances of a baseline of an earlier version
# Keys of a configuration that say how another benchmark measured.
_OF_BENCHMARKS = (*PARAMETERS, THREADS, PROCESSES, "window", "buffers")
_OF_ONE_MPI = ("control_variables.", _LIBRARY)


@dataclass(frozen=True)
class Side:
    """The measurements of one side of a comparison, by point.

    Attributes
    ----------
    name : the name that the user gave.
    mpi : name of the MPI flavour, with the settings that distinguish it in its run.
    times_s : key -> for every launch its steady iterations, (I,) seconds, or one value, see `statistics`.
    circumstances : facts that hold for all launches, as text; several values of one fact are listed.
    is_baseline : true if the side is kept in a baseline, not in a run.
    launches_asked : number of launches of each point that its run was to have, None if unknown.
    resume_options : the options that continue its run.
    statistics : key -> statistic of the one value of each launch, where its iterations are not known; several
        if launches differ.
    alternatives : key -> other statistics of each launch, (1,) seconds.
    rounding : key -> share by which the printed values may be off, where they have one digit.
    """

    name: str
    mpi: str
    times_s: Mapping[Key, Sequence[np.ndarray]]
    circumstances: Mapping[str, str]
    is_baseline: bool = False
    launches_asked: int | None = None
    resume_options: str = "--resume"
    statistics: Mapping[Key, frozenset[Statistic]] = field(default_factory=dict)
    alternatives: Mapping[Key, Mapping[Statistic, Sequence[np.ndarray]]] = field(default_factory=dict)
    rounding: Mapping[Key, float] = field(default_factory=dict)

    @property
    def is_host_unnamed(self) -> bool:
        """True if the side was imported without the name of its machine."""
        found = self.circumstances
        return (found.get("launcher"), found.get("host")) == ("import", UNNAMED_HOST)

    @property
    def is_check(self) -> bool:
        """True if the side is a run of `earlybird check`, which has no more than two launches."""
        return {kernel for kernel, *_ in self.times_s} == {kernels.CHECK.name}

    def launches_by_statistic(self, key: Key) -> dict[Statistic, Sequence[np.ndarray]]:
        """Return the statistics by which a point can be compared, with the times of every launch from which
        each is computed: iterations, or one value that already is the statistic. The value is None if
        launches have several.
        """
        times_s, known = self.times_s[key], self.statistics.get(key)
        if known is None:
            values: dict[Statistic, Sequence[np.ndarray]] = {MEDIAN: times_s, MEAN: times_s}
        else:
            values = dict.fromkeys(known, times_s) if len(known) == 1 else {}
        return values | dict(self.alternatives.get(key, {}))

    def medians(self) -> "Side":
        """Reduce each launch to one value of each statistic: single iterations need not be held in memory."""
        times: dict[Key, Sequence[np.ndarray]] = {}
        alternatives = dict(self.alternatives)
        for key, launches in self.times_s.items():
            times[key] = [np.array([np.median(one)]) for one in launches]
            if key not in self.statistics:
                means = [np.array([one.mean()]) for one in launches]
                alternatives[key] = {MEAN: means, **alternatives.get(key, {})}
        statistics = dict.fromkeys(self.times_s, frozenset[Statistic]({MEDIAN})) | dict(self.statistics)
        return replace(self, times_s=times, statistics=statistics, alternatives=alternatives)


def common_statistic(sides: Sequence[Side], key: Key) -> Statistic | None:
    """Choose the statistic by which all of `sides` can be compared at a point that they have; None if there
    is none: a mean and a median cannot be compared.
    """
    known = [side.launches_by_statistic(key) for side in sides]
    return next((one for one in (MEDIAN, MEAN, SLOWEST_RANK_MEAN) if all(one in of for of in known)), None)


def side_of(run: Run, mpi: str | None = None, name: str = "", preferred: str | None = None) -> Side:
    """Return the samples of `run`, of one MPI.

    Parameters
    ----------
    preferred : the MPI to choose from a run of several if `mpi` is None.

    Raises
    ------
    InputError if the run has several MPIs and none is chosen, if it lacks the chosen one, or if a sample
    received wrong data.
    """
    # By MPI, point and launch. Only the steady times are kept: a run may hold times of hundreds of ranks.
    times: dict[str, dict[Key, dict[str, list[np.ndarray]]]] = {}
    # By MPI and point.
    statistics: dict[tuple[str, Key], set[Statistic | None]] = {}
    slowest: dict[tuple[str, Key], dict[str, list[float]]] = {}
    rounding: dict[tuple[str, Key], float] = {}
    for sample in run.each_sample():
        if sample.quantity == VERIFICATION:
            continue
        key = _key(sample.kernel, sample.quantity, sample.method or "", sample.config)
        if not sample.validated:
            raise InputError(
                f"{run.path} has wrong data in {sample.kernel} of the launch {sample.launch}: the MPI "
                "corrupted a message there; do not compare its times"
            )
        of_mpi = times.setdefault(str(sample.config.get("mpi", "")), {})
        of_mpi.setdefault(key, {}).setdefault(sample.launch, []).append(sample.steady_times_s())
        of_mpi_key = (str(sample.config.get("mpi", "")), key)
        statistics.setdefault(of_mpi_key, set()).add(sample.statistic)
        is_completion = (sample.kernel, sample.quantity) == (kernels.COLLECTIVE.name, COMPLETION)
        if (of_ranks_s := sample.rank_times_s) is not None and is_completion:
            of_launch = slowest.setdefault(of_mpi_key, {}).setdefault(sample.launch, [])
            of_launch.append(float(of_ranks_s[sample.warmup :].mean(axis=0).max()))
        rounding[of_mpi_key] = max(rounding.get(of_mpi_key, 0.0), sample.rounding)
    chosen = _chosen(run, list(times), mpi, preferred)
    used = {launch for launches in times[chosen].values() for launch in launches}
    launches = [launch for launch in run.launches() if launch.get("id") in used]
    of_chosen = {key: (chosen, key) for key in times[chosen]}
    return Side(
        name or str(run.path),
        chosen,
        {
            key: [np.concatenate(one) for one in of_launch.values()]
            for key, of_launch in times[chosen].items()
        },
        _circumstances(run.header, launches, chosen),
        launches_asked=_launches_asked(run),
        resume_options=command_text(["--resume", *stated_again(run)]),
        statistics={
            key: frozenset(one or MEDIAN for one in statistics[name])
            for key, name in of_chosen.items()
            if statistics[name] != {None}
        },
        alternatives={
            key: {SLOWEST_RANK_MEAN: [np.array([np.mean(one)]) for one in slowest[name].values()]}
            for key, name in of_chosen.items()
            if slowest.get(name, {}).keys() == times[chosen][key].keys()
        },
        rounding={key: rounding[name] for key, name in of_chosen.items() if rounding[name]},
    )


def _launches_asked(run: Run) -> int | None:
    effort = (run.header.get("settings") or {}).get("effort")
    asked = effort.get("launches") if isinstance(effort, dict) else None
    return asked if isinstance(asked, int) else None


def mpis_of(run: Run) -> list[str]:
    """Return the MPIs of `run`, in the order in which they were given."""
    held = dict.fromkeys(str(sample.config.get("mpi", "")) for sample in run.each_sample())
    given = (run.header.get("settings") or {}).get("mpi")
    first = [name for name in given if name in held] if isinstance(given, list) else []
    return [*first, *(name for name in held if name not in first)]


def _chosen(run: Run, held: Sequence[str], mpi: str | None, preferred: str | None) -> str:
    if not held:
        raise InputError(f"{run.path} has no samples; measure, or continue it with `{resume_command(run)}`")
    if mpi is not None and mpi not in held:
        raise InputError(f"{run.path} has no samples of {mpi}; it has those of {labels.listed(held)}")
    if mpi is None and len(held) > 1 and preferred not in held:
        raise InputError(
            f"{run.path} has samples of {labels.listed(held)}; choose one with --mpi, or give --mpi twice to "
            "compare two of them"
        )
    if mpi is not None:
        return mpi
    return preferred if len(held) > 1 and preferred is not None else held[0]


def side_of_baseline(baseline: Baseline) -> Side:
    """Read a side of a baseline: a launch has one value, its median or what another benchmark printed, and
    further statistics."""
    points = {_key(one.kernel, one.quantity, one.method, one.config): one for one in baseline.points}
    further: dict[Key, dict[Statistic, np.ndarray | None]] = {
        key: {MEAN: one.launch_means_s, SLOWEST_RANK_MEAN: one.launch_slowest_rank_means_s}
        for key, one in points.items()
    }
    circumstances = dict(baseline.circumstances)
    had_means = circumstances.pop(_FORMER_STATISTIC, "").startswith("mean")
    return Side(
        baseline.name,
        baseline.mpi,
        {key: list(one.launch_medians_s[:, None]) for key, one in points.items()},
        circumstances,
        is_baseline=True,
        statistics={
            key: frozenset({_former_statistic(one) if had_means else one.statistic})
            for key, one in points.items()
        },
        alternatives={
            key: {name: list(values[:, None]) for name, values in of_point.items() if values is not None}
            for key, of_point in further.items()
        },
        rounding={key: one.rounding for key, one in points.items() if one.rounding},
    )


def require_times(times_s: np.ndarray, kernel: str, name: str) -> None:
    """Raise InputError for a time below 0, which is no time to compare later runs with; `name` is the
    run's."""
    if times_s.min(initial=0) < 0:
        raise InputError(
            f"{name} has a time of {times_s.min():g} s of {kernel}, below 0: the clocks of the nodes differ "
            "by more than what was measured; measure larger messages, or on nodes with synchronized clocks"
        )


def _former_statistic(point: BaselinePoint) -> Statistic:
    """Return the statistic of a point in a baseline of an earlier version that had means."""
    return SLOWEST_RANK_MEAN if point.quantity == COMPLETION else MEAN


def baseline_of(side: Side, name: str, run: Run) -> Baseline:
    """Return the baseline of `side` of `run`, without single iterations.

    Raises InputError if the launches of a point have several statistics.
    """
    points = []
    medians = side.medians()
    for key, launches in medians.times_s.items():
        if len(known := medians.statistics[key]) > 1:
            raise InputError(
                f"{side.name} has launches of {key[0]} that are the {labels.listed(_names(known))}, which no "
                "baseline can hold together; import outputs of one kind"
            )
        (statistic,) = known
        alternatives = medians.alternatives.get(key, {})
        means_s, slowest_s = (
            np.concatenate(alternatives[name]) if name in alternatives else None
            for name in (MEAN, SLOWEST_RANK_MEAN)
        )
        for values_s in (np.concatenate(launches), means_s, slowest_s):
            if values_s is not None:
                require_times(values_s, key[0], side.name)
        points.append(
            BaselinePoint(
                *key[:3], dict(key[3]), np.concatenate(launches), statistic, means_s,
                slowest_s, side.rounding.get(key, 0.0),
            )
        )  # fmt: skip
    started = str(run.header.get("started", ""))
    return Baseline(name, run.id, started, side.mpi, dict(side.circumstances), tuple(points))


def _names(known: Iterable[Statistic]) -> list[str]:
    return [STATISTICS[one] for one in STATISTICS if one in set(known)]


def point_of(key: Key) -> Point:
    kernel, quantity, method, config = key
    return Point(kernel, quantity, method, dict(config))


def differences(before: Side, after: Side) -> list[Difference]:
    """Return all differences other than times, beginning with those that prevent a comparison.

    The variables of two different MPIs have nothing in common, nor do the descriptions that their libraries
    report: these are left out, as are layouts that one side lacks, and facts that the text of another
    benchmark does not state.
    """
    names = dict.fromkeys([*before.circumstances, *after.circumstances])
    both = before.circumstances.keys() & after.circumstances.keys()
    names = {name: None for name in names if not name.startswith(_PLACEMENT) or name in both}
    if _flavour(before.mpi) != _flavour(after.mpi):
        names = {name: None for name in names if not name.startswith(_OF_ONE_MPI)}
    pairs = _statistics(before, after) | _parameters(before, after)
    pairs |= {
        name: [side.circumstances.get(name, _absent(name)) for side in (before, after)]
        for name in names
        if not any(_is_unknown(name, side) for side in (before, after))
    }
    found = [
        Difference(name, one, other, name in _PREVENTING or name.startswith(_PLACEMENT))
        for name, (one, other) in pairs.items()
        if one != other
    ]
    return sorted(found, key=lambda one: not one.prevents_comparison)


def _absent(name: str) -> str:
    """Return the text shown for a missing circumstance `name` of a side: launch records have other variables
    than those of MPIs only if --env names them.
    """
    kind, _, variable = name.partition(".")
    return "(not recorded)" if kind == "environment" and not RECORDED.match(variable) else ""


def _is_unknown(name: str, side: Side) -> bool:
    """Return whether `side` was imported from a text that does not state `name`."""
    is_import = side.circumstances.get("launcher") == "import"
    return is_import and name not in side.circumstances and name not in _PREVENTING


def _parameters(before: Side, after: Side) -> dict[str, list[str]]:
    """Return how other benchmarks measured a kernel, if no point of the one side has a value of the other."""
    held: list[dict[tuple[str, str], dict[str, None]]] = [{}, {}]
    for values, side in zip(held, (before, after), strict=True):
        for kernel, *_, config in side.times_s:
            for name in _OF_BENCHMARKS:
                values.setdefault((name, kernel), {})[str(dict(config).get(name, ""))] = None
    return {
        f"{name} of {kernel}": [" | ".join(one[name, kernel]) for one in held]
        for name, kernel in held[0]
        if (name, kernel) in held[1] and not held[0][name, kernel].keys() & held[1][name, kernel].keys()
    }


def _statistics(before: Side, after: Side) -> dict[str, list[str]]:
    """Return the statistics of the values of common points, if they differ between the sides and cannot be
    made equal.
    """
    found = {}
    for key in before.times_s:
        if key in after.times_s and common_statistic((before, after), key) is None:
            found[f"value of {key[0]} {key[1]}"] = [
                " | ".join(_names({*side.statistics.get(key, {MEDIAN}), *side.alternatives.get(key, ())}))
                for side in (before, after)
            ]
    return found


def first_difference(before: Side, after: Side) -> str:
    """Return a phrase for what distinguishes the points of two sides without a common point: the kernel, the
    quantity, the method, or the first key of the configuration that has no value in common among points that
    agree in everything before it; sizes come last.
    """
    keys = [[_parts(key) for key in side.times_s] for side in (before, after)]
    of_config = {name for side in keys for parts in side for name in parts} - set(_OF_KEY)
    names = [*_OF_KEY, *sorted(of_config, key=lambda name: (name == "size_bytes", name))]
    agreeing: tuple[Any, ...] = ()
    for count in range(1, len(names) + 1):
        starts = [{_values(parts, names[:count]): None for parts in side} for side in keys]
        common = [start for start in starts[0] if start in starts[1]]
        if not common:
            break
        agreeing = common[0]
        keys = [[one for one in side if _values(one, names[:count]) in common] for side in keys]
    found = []
    for side, points in zip((before, after), keys, strict=True):
        alike = [parts for parts in points if _values(parts, names[: len(agreeing)]) == agreeing]
        values = dict.fromkeys(str(parts.get(names[len(agreeing)], "")) or "none" for parts in alike)
        found.append(f"{side.name} has {labels.listed_briefly(list(values))}")
    which = f"the points of {agreeing[0]}" if agreeing else "they"
    return f"{which} first differ in {names[len(agreeing)]} ({'; '.join(found)})"


def _parts(key: Key) -> dict[str, Any]:
    return dict(zip(_OF_KEY, key, strict=False)) | dict(key[3])


def _values(parts: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    # A key without a value differs from a key that is absent.
    return tuple(parts.get(name, "") for name in names)


def more_launches(*sides: Side) -> str:
    """Return the instruction that adds launches to one side, or to both sides of a comparison."""
    actions = [_more_launches(side) for side in sides]
    if len(sides) > 1 and len(set(actions)) == 1:
        return actions[0].format("both")
    return labels.listed([action.format(side.name) for action, side in zip(actions, sides, strict=True)])


def _more_launches(side: Side) -> str:
    from earlybird.compare.changes import MIN_LAUNCHES  # and with it scipy

    if side.is_baseline:
        return "save {} again from a run of more launches"
    if side.circumstances.get("launcher") == "import":
        return "import {} again with more outputs, each of another launch"
    if side.is_check:
        return "compare runs of `earlybird measure` instead of {}, because a check has two launches at most"
    asked, fewest = side.launches_asked, min(map(len, side.times_s.values()), default=0)
    resume = side.resume_options.replace("{", "{{").replace("}", "}}")
    if asked is None or asked <= fewest:
        return f"continue {{}} with {resume} and more --launches"
    more = "" if asked >= MIN_LAUNCHES else "more --launches and "
    return f"continue {{}} with {resume} and {more}a larger --budget ({asked} launches were asked for)"


def _key(kernel: str, quantity: str, method: str, config: Mapping[str, Any]) -> Key:
    return (
        kernel, quantity, method,
        tuple(sorted((name, value) for name, value in config.items() if name != "mpi")),
    )  # fmt: skip


def _circumstances(
    header: Mapping[str, Any], launches: Sequence[Mapping[str, Any]], mpi: str
) -> dict[str, str]:
    machine = header.get("machine") or {}
    values = {name: {_text(machine[name])} for name in _OF_MACHINE if machine.get(name) is not None}
    values |= {"MPI": {labels.flavour(_flavour(mpi))}, "earlybird": {_text(header.get("earlybird", ""))}}
    for launch in launches:
        for name in _OF_LAUNCH:
            if launch.get(name) not in (None, [], {}):
                values.setdefault(name, set()).add(_text(launch[name]))
        for name in _MAPPINGS:
            for variable, value in (launch.get(name) or {}).items():
                # A variable of --env that is recorded as not set is an empty text, as an absent one.
                values.setdefault(f"{name}.{variable}", set()).add("" if value is None else _text(value))
    mixed = _mixed_variables(launches)
    for launch in launches:
        values.setdefault(f"{_PLACEMENT}{launch.get('layout', '')}", set()).add(_cores(launch))
    values |= {
        f"{_LIBRARY}{name}": {value} for name, value in _library_lines(launches).items() if name != "MPI"
    }
    return {name: " | ".join(sorted(of_launches)) for name, of_launches in values.items()} | mixed


def _mixed_variables(launches: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the values of variables that the user has changed between `launches`, of one MPI."""
    records = [
        launch
        for launch in launches
        if isinstance(launch.get("environment"), Mapping) and isinstance(launch.get("set_by_launcher"), list)
    ]
    of_user = {
        name: None
        for launch in records
        for name in launch["environment"]
        if not BOOKKEEPING.match(name) and not is_set_by_launcher(launch, name)
    }
    found = {}
    for name in of_user:
        values = [
            launch["environment"].get(name)
            for launch in records
            if name in launch["environment"] or RECORDED.match(name)
        ]
        texts = sorted({_text(value) for value in values if value is not None})
        texts += ["(none)"] if None in values else []
        if len(texts) > 1:
            found[f"environment.{name}"] = labels.listed(texts)
    return found


def _flavour(mpi: str) -> str:
    """Return the MPI flavour without settings, which are part of the environment of the launches."""
    return split_settings(mpi)[0]


def _cores(launch: Mapping[str, Any]) -> str:
    """Return the CPUs of each rank, after the host if it differs from that of the previous rank."""
    parts: list[str] = []
    host = None
    for place in launch.get("placement") or ():
        if place.get("host") not in (None, host):
            host = place["host"]
            parts.append(f"{host}:")
        parts.append(",".join(map(str, place.get("cpus") or "-")))
    return " ".join(parts)


def _library_lines(launches: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the description that the MPI library reports, by the name before the colon of each line."""
    text = str(launches[0].get("library_version", "")) if launches else ""
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    return {name.strip(): value.strip() for name, _, value in lines}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
