"""Advise how to send a buffer that threads fill: method, partitions, and sizes at which the best one
changes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from earlybird.advise import options
from earlybird.advise.crossovers import best_by_size
from earlybird.advise.options import WORTH, Option
from earlybird.data import labels
from earlybird.data.advice import EXTRAPOLATED, MEASURED, MODEL, Advice, Alternative, SizeRange
from earlybird.data.contexts import context_variables
from earlybird.data.kernels import PIPELINE
from earlybird.data.measure_commands import LaunchOptions, fit_together, free_run, measure_command
from earlybird.data.methods import EARLYBIRD, PER_PARTITION, SINGLE, library_settings
from earlybird.data.profile import Profile
from earlybird.data.results import Result
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes
from earlybird.predict.measured_pipelines import MeasuredPipelines, Outlook
from earlybird.predict.pipelined import (
    FROM_LEVELS,
    MethodModel,
    measure_pipelines_command,
    method_models,
    pipeline_level,
    reservations,
)
from earlybird.predict.profiles import measured_results

# The sizes of the table of sizes if none was measured.
SMALLEST_BYTES, LARGEST_BYTES = 512, 1 << 30
# From the least work for the author of a program to the most; other methods come last.
_WORK = ("single", "partitioned", "earlybird", PER_PARTITION, "many", "stream")
# The maximum number of partitions without a measurement.
MAX_PARTITIONS = 128

ACTIONS = {
    "single": "one message after the last partition: MPI_Send_init once, MPI_Start when all are ready",
    "many": "one persistent message per partition, MPI_Start when it is ready; a communicator for each "
    "thread (MPI_Comm_dup)",
    "partitioned": "MPI_Psend_init with {partitions}, MPI_Pready for each; this MPI's own calls",
    "earlybird": "MPI_Psend_init with {partitions}, MPI_Pready for each; start the program with "
    "`earlybird exec --mpi {mpi} -- mpiexec ...`",
    "rma-single-passive": "one window, MPI_Put per partition between MPI_Win_lock and MPI_Win_flush",
    "rma-many-passive": "a window per thread, MPI_Put per partition between MPI_Win_lock and MPI_Win_flush",
    "rma-single-active": "one window, MPI_Put per partition between MPI_Win_start and MPI_Win_complete",
    "rma-many-active": "a window per thread, MPI_Put per partition between MPI_Win_start and "
    "MPI_Win_complete",
    "rma-fence": "one window, MPI_Put per partition between two MPI_Win_fence",
    "stream": "a stream communicator for each thread (MPIX_Stream_create), one message per partition",
}

# The delay of the last partition in seconds per byte of it, for a number of partitions per thread.
DelayRate = Callable[[int], float]


@dataclass(frozen=True)
class Candidate:
    """A method with a number of partitions, and the facts known about it at a size."""

    model: MethodModel
    partitions: int
    outlook: Outlook
    option: Option


@dataclass(frozen=True)
class PipelineQuestion:
    """A choice among the methods of one level and number of threads."""

    models: Sequence[MethodModel]
    results: Sequence[Result]
    level: str
    threads: int
    delay_rate: DelayRate
    mpi: str
    _reliable: dict[int, bool] = field(default_factory=dict, init=False)
    _candidates: dict[tuple[float, bool], list["Candidate"]] = field(default_factory=dict, init=False)

    @cached_property
    def reference(self) -> MethodModel | None:
        return next((model for model in self.models if model.method == SINGLE), None)

    @cached_property
    def measured(self) -> MeasuredPipelines:
        return MeasuredPipelines(self.models, self.reference, self.results, self.level, self.threads)

    @cached_property
    def partitions(self) -> list[int]:
        """The multiples of the threads by powers of two, within the measured range, and those that were
        measured with these threads, ascending.
        """
        largest = [model.measured["partitions"][1] for model in self.models if model.measured]
        most = max([*largest, self.threads] if largest else [MAX_PARTITIONS, self.threads])
        powers = {self.threads << k for k in range(32) if self.threads << k <= most}
        here = [one for one in self.results if _has_threads(one, self.threads)]
        return sorted(powers | {one.config["partitions"] for one in here})

    def sizes_bytes(self) -> tuple[float, float]:
        """Return the smallest and the largest measured size, of the reference if it was measured."""
        models = [self.reference] if self.reference and self.reference.measured else self.models
        ranges = [model.measured["size_bytes"] for model in models if model.measured]
        if not ranges:
            sizes = {one.config["size_bytes"] for one in self.results if _has_threads(one, self.threads)}
            return (max(min(sizes), 1), max(sizes)) if sizes else (SMALLEST_BYTES, LARGEST_BYTES)
        return max(min(low for low, _ in ranges), 1), max(high for _, high in ranges)

    def candidates(self, size_bytes: float, *, is_shown: bool = False) -> list[Candidate]:
        """Return every method with its best number of partitions; if `is_shown`, one that divides the size,
        and with the values that the model alone predicts.
        """
        key = size_bytes, is_shown
        if key not in self._candidates:
            self._candidates[key] = [
                self._with_best_partitions(model, size_bytes, is_shown) for model in self.models
            ]
        return self._candidates[key]

    def _with_best_partitions(self, model: MethodModel, size_bytes: float, is_shown: bool) -> Candidate:
        """Return a method with the smallest number of partitions within WORTH of the least time, at the
        pessimistic end of the intervals, among those within the measured range if there are any.
        """
        possible = [p for p in self.partitions if size_bytes >= p and not (is_shown and size_bytes % p)]
        found = [self.candidate(model, size_bytes, p, is_shown=is_shown) for p in possible or [self.threads]]
        inside = [one for one in found if one.option.basis != EXTRAPOLATED] or found
        least = min(one.option.worst_cost for one in inside)
        return next(one for one in inside if one.option.worst_cost <= least / (1 - WORTH))

    def candidate(
        self, model: MethodModel, size_bytes: float, partitions: int, *, is_shown: bool = False
    ) -> Candidate:
        """Return the candidate of a method at a size and number of partitions."""
        gamma = self.delay_rate(partitions // self.threads)
        outlook = self.measured.outlook(model, size_bytes, partitions, gamma)
        option = Option(
            _name(model),
            _work(model),
            outlook.time_s,
            outlook.speed_up if self.reference else None,
            self._basis(model, outlook, size_bytes, partitions, gamma),
            model is self.reference,
            self.measured.predicted_speed_up(model, size_bytes, partitions, gamma) if is_shown else None,
            outlook.measured_speed_up,
            self._is_reliable(model),
            launches=0 if outlook.result is None else outlook.result.launches,
            shares_cores=options.share_cores(
                self.measured.results_of(model) if outlook.result is None else [outlook.result]
            ),
        )
        return Candidate(model, partitions, outlook, option)

    def _basis(
        self, model: MethodModel, outlook: Outlook, size_bytes: float, partitions: int, gamma: float
    ) -> str:
        if outlook.result is not None:
            return MEASURED
        is_inside = model.threads == self.threads and not beyond(model, size_bytes, partitions, gamma)
        return MODEL if is_inside else EXTRAPOLATED

    def _is_reliable(self, model: MethodModel) -> bool:
        if id(model) not in self._reliable:
            pair = [model, self.reference] if self.reference else [model]
            self._reliable[id(model)] = all(options.decides(self.measured.results_of(one)) for one in pair)
        return self._reliable[id(model)]


def advise_pipeline(
    profile: Profile,
    size_bytes: int,
    threads: int,
    delay_rate: DelayRate,
    *,
    level: str | None = None,
    asked: dict[str, Any] | None = None,
) -> Advice:
    """Rank every method of the profile, each with its best number of partitions, and find crossovers.

    Parameters
    ----------
    size_bytes : the whole buffer, at least a byte per thread.
    delay_rate : partitions per thread -> gamma in s/B: delay of the last partition, per byte of it.
    level : see `predict.pipelined.pipeline_level`.
    asked : further entries for the `asked` part of the advice.

    Returns
    -------
    Advice whose first alternative is the advised one, see `options.choose`; speed-ups are over `single`.
    Where the point was measured, its values are the measured ones; elsewhere those of the model, corrected by
    the measured points around it. The ranges of sizes cover the measured ones.
    """
    question, left_out = pipeline_question(profile, threads, delay_rate, level)
    models, level = question.models, question.level
    candidates = question.candidates(size_bytes, is_shown=True)
    of_all = [candidate.option for candidate in candidates]
    ranked = [candidates[k] for k in options.order(of_all)]
    partitions = ranked[0].partitions
    gamma = delay_rate(partitions // threads)
    gammas = {one.partitions: delay_rate(one.partitions // threads) for one in candidates}
    contexts = [model.vcis for model in models if model.vcis is not None]
    launch = LaunchOptions.of(profile)
    run = free_run()
    again = measure_pipelines_command(threads, size_bytes, gammas, level, contexts, launch, run)
    repeat = f"{again} on an idle machine, {fit_together(profile, run)}"
    ranges = tuple(_size_ranges(question))
    return Advice(
        PIPELINE.name,
        {"level": level, "threads": threads, "size_bytes": size_bytes} | (asked or {}),
        SINGLE if question.reference else "",
        tuple(_alternative(question, candidate, size_bytes) for candidate in ranked),
        ranges,
        profile.id,
        (
            *options.notes(of_all, ranked[0].option, repeat, "thread"),
            *left_out,
            *reservations(models, size_bytes, partitions, gamma, again, level),
            *kept_beyond(ranges, ranked[0], size_bytes),
        ),
    )


def pipeline_question(
    profile: Profile, threads: int, delay_rate: DelayRate, level: str | None = None
) -> tuple[PipelineQuestion, list[str]]:
    """Return the methods of a profile that can be compared for this number of threads, and notes on the
    others.
    """
    level = pipeline_level(profile, level)
    results = [one for one in measured_results(profile) if one.config.get("level") == level]
    measured = dict.fromkeys(
        (one.method, one.config.get("vcis")) for one in results if _has_threads(one, threads)
    )
    launch = LaunchOptions.of(profile)
    models, left_out = _comparable(method_models(profile, level, threads, measured), threads, launch)
    mpi = str(profile.context.get("flavour", "mpich"))
    return PipelineQuestion(models, results, level, threads, delay_rate, mpi), left_out


def _has_threads(result: Result, threads: int) -> bool:
    """Return whether `result` was measured with `threads` threads and a fixed delay of the last
    partition.
    """
    is_delayed = result.kernel == PIPELINE.name and "gamma_s_per_byte" in result.config
    return is_delayed and result.config.get("threads", 1) == threads


def beyond(model: MethodModel, size_bytes: float, partitions: int, gamma: float) -> list[str]:
    """Return those of size, partitions and delay that are outside the range in which a method was
    measured.
    """
    if not model.measured:
        return ["size"]
    values = {"size_bytes": size_bytes, "partitions": partitions, "gamma_s_per_byte": gamma}
    relevant = ["size_bytes"] if model.messages == "one" else list(values)
    return [
        name.partition("_")[0]
        for name in relevant
        if not model.measured[name][0] * 0.999 <= values[name] <= model.measured[name][1] * 1.001
    ]


def kept_beyond(ranges: Sequence[SizeRange], first: Candidate, size_bytes: int) -> list[str]:
    """Return the reason why the table of sizes lists another method at the requested size than the first of
    the ranking.
    """
    return [
        f"in the table of sizes {_named(one.method, one.extra.get('vcis'))} is kept for "
        f"{format_bytes(size_bytes)} though {first.option.name} is advised: the table changes its "
        "method only where another one is clearly faster"
        for one in ranges
        if one.from_bytes <= size_bytes < one.to_bytes
        and _named(one.method, one.extra.get("vcis")) != first.option.name
    ]


def _comparable(
    models: list[MethodModel], threads: int, launch: LaunchOptions
) -> tuple[list[MethodModel], list[str]]:
    """Return the methods to choose from, and notes on the methods left out.

    Latency and bandwidth come from another benchmark, and threads delay each other. So methods from levels,
    or measured with other threads, are not compared with two measured methods.
    """
    known = [model for model in models if model.source != FROM_LEVELS]
    if len(known) < 2:
        return models, []
    notes = []
    if unmeasured := _names(model for model in models if model not in known):
        notes.append(
            f"not measured as pipelines and so left out: {unmeasured}; "
            f"`{measure_command(PIPELINE.name, {'methods': 'all'}, launch)}` measures them; fit that run too"
        )
    alike = [model for model in known if (model.threads or threads) == (known[0].threads or threads)]
    if len({model.method for model in alike}) < 2:
        return known, notes
    if others := _names(model for model in known if model not in alike):
        notes.append(
            f"measured with other threads than {known[0].method} and so left out: {others}; "
            f"`{measure_command(PIPELINE.name, {'threads': threads, 'methods': 'all'}, launch)}` measures "
            "all with the same threads; fit that run too"
        )
    return alike, notes


def _names(models: Iterable[MethodModel]) -> str:
    return ", ".join(dict.fromkeys(model.method for model in models))


def _alternative(question: PipelineQuestion, candidate: Candidate, size_bytes: int) -> Alternative:
    model, outlook, option = candidate.model, candidate.outlook, candidate.option
    extra: dict[str, Any] = {} if model.vcis is None else {"vcis": model.vcis}
    gamma = question.delay_rate(candidate.partitions // question.threads)
    messages, message_bytes = model.best_messages(
        size_bytes, candidate.partitions, gamma * size_bytes / candidate.partitions
    )
    extra |= {
        "partitions": candidate.partitions,
        "messages": messages,
        "message_bytes": round(message_bytes),
        "source": model.source,
    }
    result = outlook.result
    return Alternative(
        model.method,
        option.time_s,
        option.speed_up,
        how_to(model, candidate.partitions, question.mpi),
        option.basis,
        option.predicted_speed_up if option.speed_up else None,
        result and result.time_s,
        outlook.measured_speed_up if option.speed_up else None,
        result.state if result else "",
        extra,
    )


def how_to(model: MethodModel, partitions: int, mpi: str) -> str:
    """Return the calls and settings to send with this method."""
    name = EARLYBIRD if library_settings(model.method) else model.method
    text = (
        ACTIONS[name].format(partitions=labels.counted(partitions, "partition"), mpi=quoted(mpi))
        if name in ACTIONS
        else name
    )
    settings = [f"{name}={quoted(value)}" for name, value in library_settings(model.method).items()]
    if model.vcis is not None:
        settings += context_settings(mpi, model.vcis)
    return f"{text}; {' '.join(settings)}" if settings else text


def context_settings(mpi: str, contexts: int) -> list[str]:
    """Return the variables that request communication contexts from an MPI; all MPIs that have them are Intel
    MPI or MPICH.
    """
    family = "intel" if mpi == "intel" else "mpich"
    return [f"{name}={value}" for name, value in context_variables(family, contexts).items()]


def _size_ranges(question: PipelineQuestion) -> list[SizeRange]:
    """Return the ranges from small to large sizes: a method stays until another is clearly faster, see
    `options.stays`.
    """
    found = best_by_size(
        *question.sizes_bytes(),
        lambda size_bytes: _best(question, size_bytes),
        lambda candidate, size_bytes: _stays(question, candidate, size_bytes),
    )
    return [_range(question, *one) for one in found]


def _best(question: PipelineQuestion, size_bytes: float) -> Candidate:
    found = question.candidates(size_bytes)
    return found[options.choose([candidate.option for candidate in found])]


def _stays(question: PipelineQuestion, candidate: Candidate, size_bytes: float) -> bool:
    found = question.candidates(size_bytes)
    current = next(one for one in found if one.model is candidate.model)
    return options.stays(current.option, [one.option for one in found])


def _range(question: PipelineQuestion, start: int, end: int, candidate: Candidate) -> SizeRange:
    model, partitions = candidate.model, candidate.partitions
    extra: dict[str, Any] = {} if model.vcis is None else {"vcis": model.vcis}
    extra |= {"partitions": partitions, "source": model.source}
    gamma = question.delay_rate(partitions // question.threads)
    outside = {name for size in (start, end) for name in beyond(model, size, partitions, gamma)}
    outside |= {"threads"} if model.threads != question.threads else set()
    extra["extrapolated"] = sorted(outside)
    return SizeRange(start, end, model.method, how_to(model, partitions, question.mpi), extra)


def _work(model: MethodModel) -> tuple:
    name, _, bound = model.method.partition(":")
    place = _WORK.index(name) if name in _WORK else len(_WORK)
    return place, bool(bound), model.vcis or 0, model.method


def _name(model: MethodModel) -> str:
    return _named(model.method, model.vcis)


def _named(method: str, vcis: int | None) -> str:
    return method if vcis is None else f"{method} with {vcis} contexts"
