"""Predict the time to send a buffer in partitions with each method, by the joined model of `models`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.kernels import PIPELINE
from earlybird.data.levels import LEVELS
from earlybird.data.measure_commands import ANYWHERE, LaunchOptions, measure_command
from earlybird.data.methods import EARLYBIRD, SINGLE
from earlybird.data.pipeline_form import JoinedParameters, PipelineForm
from earlybird.data.profile import Level, Profile
from earlybird.data.units import format_bytes, size_argument
from earlybird.models.pipelined import PipelineCosts, Trains, joined_time_s, possible_messages, stacked
from earlybird.predict.ranges import extrapolations, interval

# Methods that need no measurement, with their messages: the levels of the profile give the cost of any
# message.
A_PRIORI: dict[str, str | int] = {"single": "one", "many": "each", "earlybird": "planned"}
FITTED, FROM_LEVELS, FEW_POINTS = "pipeline fit", "levels", "levels, corrected by few measured points"
_BOUND_OVER_MEDIAN = 2.9


@dataclass(frozen=True, eq=False)
class MethodModel:
    """A method of sending, with the costs that determine its times.

    Attributes
    ----------
    messages : the messages that it sends, see `models.pipelined.possible_messages`.
    vcis : contexts asked of the MPI, None for its default.
    replicates : costs from resampled launches; replicate k of all methods uses the same draw.
    source : FITTED, "pipeline fit at T threads", FROM_LEVELS: latency and bandwidth of the profile, or
        FEW_POINTS: the same for a method that was measured at too few points for a fit.
    measured : "size_bytes", "partitions" and "gamma_s_per_byte" to the lowest and highest value of the fit;
        empty for levels.
    threads : the number of threads of the measurement; None for levels.
    error : the median relative error at held-out points; 0 if unknown.
    """

    method: str
    messages: str | int
    costs: PipelineCosts
    source: str
    vcis: int | None = None
    replicates: tuple[PipelineCosts, ...] = ()
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    threads: int | None = None
    error: float = 0.0

    @property
    def error_bound(self) -> float:
        """The bound of |log(measured/predicted)| that follows from `error`: 95 % of a normal distribution lie
        within 2.9 times its median absolute deviation."""
        return math.log1p(_BOUND_OVER_MEDIAN * self.error)

    def time_s(self, size_bytes, partitions, delay_s, costs: PipelineCosts | None = None) -> np.ndarray:
        """Return the seconds from when the last partition is ready, `delay_s` after the others, until the
        receiver has everything; arguments broadcast.
        """
        return self._best(size_bytes, partitions, delay_s, costs or self.costs)[0]

    def drawn_s(self, size_bytes: float, partitions: int, delay_s: float) -> np.ndarray:
        """Return (R,) seconds by every replicate for one buffer."""
        if self._drawn_costs is not None:
            return np.atleast_1d(self.time_s(size_bytes, partitions, delay_s, self._drawn_costs))
        return np.array([self.time_s(size_bytes, partitions, delay_s, one) for one in self.replicates])

    @cached_property
    def _drawn_costs(self) -> PipelineCosts | None:
        return stacked(self.replicates) if self.replicates else None

    def best_messages(self, size_bytes: int, partitions: int, delay_s: float) -> tuple[int, float]:
        """Return the number of messages that the method sends, and the bytes of one of them (of those before
        the last).
        """
        _, k = self._best(size_bytes, partitions, delay_s, self.costs)
        trains = self._possible(size_bytes, partitions, delay_s)[int(k)]
        early = int(trains.count[0])
        return early + 1, float(trains.size_bytes[0] if early else trains.size_bytes[1])

    def _possible(self, size_bytes, partitions, delay_s):
        size = np.asarray(size_bytes, dtype=float)
        return possible_messages(self.messages, partitions, size / partitions, delay_s)

    def _best(self, size_bytes, partitions, delay_s, costs):
        possible = self._possible(size_bytes, partitions, delay_s)
        if np.ndim(costs.latency_s) == 1:  # of one draw: all alternatives in one call, in a tenth of the time
            parts = ([getattr(one, name) for one in possible] for name in ("ready_s", "size_bytes", "count"))
            times_s = joined_time_s(Trains(*map(np.stack, parts)), partitions, costs)
        else:
            times_s = np.array([joined_time_s(one, partitions, costs) for one in possible])
        return times_s.min(axis=0), times_s.argmin(axis=0)


@dataclass(frozen=True)
class MethodPrediction:
    """The predicted time of one method; `speed_up` is that over one message, None if it is unknown.

    `message_bytes` is the size of the largest of its messages.
    """

    method: str
    vcis: int | None
    time_s: float
    speed_up: float | None
    messages: int
    message_bytes: float
    source: str
    time_interval_s: tuple[float, float] | None = None
    speed_up_interval: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object; a speed-up that is unknown is null."""
        value = {name: item for name, item in vars(self).items() if item is not None}
        return value | {"message_bytes": round(self.message_bytes), "speed_up": self.speed_up}


def pipeline_level(profile: Profile, asked: str | None) -> str:
    """Return the level asked for, or the outermost one that has pipelines, or the outermost of all."""
    forms = {form.level for form in profile.pipelines}
    if asked is not None:
        if asked not in LEVELS:
            raise InputError(f"--level is {asked!r}; give one of {', '.join(LEVELS)}")
        if asked not in profile.levels and asked not in forms:
            known = [name for name in LEVELS if name in profile.levels or name in forms]
            raise InputError(
                f"the profile {profile.id or '(no id)'} has no level {asked}; it has {', '.join(known)}"
            )
        return asked
    for names in (forms, profile.levels):
        if found := [name for name in LEVELS if name in names]:
            return found[-1]
    raise InputError(
        f"the profile {profile.id or '(no id)'} has no pipelines and no levels that give the cost of their "
        "messages; "
        f"`{measure_command(PIPELINE.name, {}, LaunchOptions.of(profile))}` and `earlybird fit RUN` add them"
    )


def method_models(
    profile: Profile, level: str, threads: int, measured_methods: Iterable[tuple[str, int | None]] = ()
) -> list[MethodModel]:
    """Return every method that the profile describes at a level: the fitted ones, with the number of threads
    nearest to `threads`, and from latency and bandwidth those of `A_PRIORI` and of `measured_methods`,
    (method, contexts), that have too few points for a fit.
    """
    measured: dict[tuple[str, int | None], PipelineForm] = {}
    for form in profile.pipelines:
        key = form.method, form.vcis
        known = measured.get(key)
        if form.level == level and (known is None or _distance(form, threads) < _distance(known, threads)):
            measured[key] = form
    models = [_of_form(form, threads) for form in measured.values()]
    if level in profile.levels:
        methods = {form.method for form in measured.values()}
        costs = _costs_of_level(profile.levels[level])
        few = [key for key in measured_methods if key not in measured]
        others = [
            (method, None) for method in A_PRIORI if method not in methods and (method, None) not in few
        ]
        models += [
            MethodModel(method, A_PRIORI.get(method, "each"), costs, source, vcis)
            for keys, source in ((few, FEW_POINTS), (others, FROM_LEVELS))
            for method, vcis in keys
        ]
    return sorted(models, key=lambda model: (model.method != SINGLE, model.method, model.vcis or 0))


def predict_methods(
    models: Sequence[MethodModel],
    size_bytes: float,
    partitions: int,
    delay_s: float,
    reference: MethodModel | None = None,
) -> list[MethodPrediction]:
    """Predict the time and speed-up of each of `models` for a buffer whose last partition is `delay_s` late;
    the reference is the first `single` unless given.
    """
    single = reference or next((model for model in models if model.method == SINGLE), None)
    return [_predict(model, single, size_bytes, partitions, delay_s) for model in models]


def _predict(model, single, size_bytes, partitions, delay_s) -> MethodPrediction:
    def times(one: MethodModel) -> tuple[float, np.ndarray]:
        drawn_s = one.drawn_s(size_bytes, partitions, delay_s)
        return float(one.time_s(size_bytes, partitions, delay_s)), drawn_s

    time_s, drawn_s = times(model)
    speed_up = speed_up_interval = None
    if single is not None:
        single_s, single_drawn_s = times(single)
        speed_up = single_s / time_s
        if len(drawn_s) and len(drawn_s) == len(single_drawn_s):
            speed_up_interval = interval(single_drawn_s / drawn_s, speed_up)
    messages, message_bytes = model.best_messages(size_bytes, partitions, delay_s)
    return MethodPrediction(
        model.method,
        model.vcis,
        time_s,
        speed_up,
        messages,
        message_bytes,
        model.source,
        interval(drawn_s, time_s) if len(drawn_s) else None,
        speed_up_interval,
    )


def measure_pipelines_command(
    threads: int,
    size_bytes: int,
    gammas_s_per_byte: Mapping[int, float],
    level: str,
    vcis: Iterable[int] = (),
    launch: LaunchOptions = ANYWHERE,
    run: str = "RUN",
) -> str:
    """Return the command that measures all methods at these points; a fit of its run replaces an
    extrapolation.

    `gammas_s_per_byte`: the delay rate of each number of partitions; `vcis`: contexts to compare.
    """
    gammas = dict.fromkeys(f"{gamma * 1e12:.6g}us/MB" for gamma in gammas_s_per_byte.values())
    vcis = list(vcis)
    points = {
        "threads": threads,
        "sizes": size_argument(size_bytes),
        "partitions": ",".join(map(str, sorted(gammas_s_per_byte))),
        "gamma": ",".join(gammas),
        "vcis": ",".join(map(str, sorted({1, *vcis}))) if vcis else None,
        "levels": level,
        "methods": "all",
        "launches": 7,
    }
    return f"`{measure_command(PIPELINE.name, points, launch, run)}`"


def reservations(
    models: Sequence[MethodModel],
    size_bytes: int,
    partitions: int,
    gamma_s_per_byte: float,
    command: str,
    level: str,
) -> list[str]:
    """Return notes on a prediction outside the measured range, one sentence each, with the `command` that
    measures there.
    """
    notes = []
    unmeasured = [model.method for model in models if model.source == FROM_LEVELS]
    if unmeasured:
        notes.append(
            f"not measured as pipelines: {', '.join(unmeasured)}; predicted from the profile's latency and "
            f"bandwidth, with the latency for every message; {command} measures them"
        )
    if EARLYBIRD in unmeasured and level != LEVELS[-1]:
        notes.append(
            f"{EARLYBIRD} is predicted with messages of the MPI: within a node it may copy through memory, "
            "which is not in this prediction"
        )
    for source in dict.fromkeys(model.source for model in models):
        if source not in (FITTED, FROM_LEVELS, FEW_POINTS):
            methods = ", ".join(dict.fromkeys(model.method for model in models if model.source == source))
            notes.append(
                f"{source}: {methods}; these times do not include how the requested threads delay each "
                f"other; {command} measures it"
            )
    for label, name, value, form in (
        ("sizes", "size_bytes", size_bytes, format_bytes),
        ("numbers of partitions", "partitions", partitions, str),
        ("delay rates", "gamma_s_per_byte", gamma_s_per_byte, lambda rate: f"{rate * 1e12:.4g} us/MB"),
    ):
        measured = [
            (model.method, model.measured[name])
            for model in models
            if name in model.measured and (name == "size_bytes" or model.messages != "one")
        ]
        notes += extrapolations(label, [value], measured, form)
    return notes


def _of_form(form: PipelineForm, threads: int) -> MethodModel:
    return MethodModel(
        form.method,
        form.parameters.messages,
        _costs(form.parameters),
        FITTED if form.threads == threads else f"{FITTED} at {_counted(form.threads, 'thread')}",
        form.vcis,
        tuple(_costs(one) for one in form.replicates),
        form.range,
        form.threads,
        max(float(form.extra.get(name, 0.0)) for name in ("error", "held_out_error", "held_out_error_sizes")),
    )


def _costs(parameters: JoinedParameters) -> PipelineCosts:
    return PipelineCosts(**parameters.columns())


def _costs_of_level(level: Level) -> PipelineCosts:
    """Return costs in which every message has the latency of the level, because its tau is per message."""
    tables = [protocol.bandwidth_table() for protocol in level.protocols]
    return PipelineCosts(
        min_bytes=np.array([protocol.min_bytes for protocol in level.protocols]),
        latency_s=np.zeros(len(tables)),
        overhead_s=np.array([protocol.latency_s for protocol in level.protocols]),
        # Without N = 1, use the smallest measured N, with the share of one process.
        s_per_byte=np.array([counts[0] / rates[0] for counts, rates in tables]),
    )


def _distance(form: PipelineForm, threads: int) -> float:
    return abs(math.log(form.threads / threads))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
