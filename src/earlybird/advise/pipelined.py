"""Advise how to send a buffer that threads fill: method, partitions, and sizes at which the best one
changes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from earlybird.data.advice import Advice, Alternative, Stretch
from earlybird.data.methods import SINGLE
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes
from earlybird.predict.pipelined import (
    FROM_LEVELS,
    MethodModel,
    method_models,
    pipeline_level,
    predict_methods,
    reservations,
)

SMALLEST_BYTES, LARGEST_BYTES = 512, 1 << 30
# Candidate sizes per octave; bisection then locates a change to this relative accuracy.
_PER_OCTAVE, _KNOWN_TO = 2, 0.01
# A method that is more work, or more partitions, must reduce the predicted time by this share.
WORTH = 0.05
# At crossovers a method stays until another one takes less time by this share: similar methods must not
# alternate.
KEPT = 0.1
# From the least work for the author of a program to the most; other methods come last.
_WORK = ("single", "partitioned", "earlybird", "many", "stream")
# The maximum number of partitions without a measurement.
MAX_PARTITIONS = 128

DO = {
    "single": "one message after the last partition: MPI_Send_init once, MPI_Start when all are ready",
    "many": "one persistent message per partition, MPI_Start when it is ready; a communicator for each "
    "thread (MPI_Comm_dup)",
    "partitioned": "MPI_Psend_init with {partitions} partitions, MPI_Pready for each; this MPI's own calls",
    "earlybird": "MPI_Psend_init with {partitions} partitions, MPI_Pready for each; start the program with "
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
class _Question:
    models: Sequence[MethodModel]
    threads: int
    delay_rate: DelayRate
    mpi: str

    @cached_property
    def partitions(self) -> list[int]:
        """Multiples of the threads by powers of two, within the measured range, ascending."""
        measured = [model.measured["partitions"][1] for model in self.models if model.measured]
        most = max([*measured, self.threads] if measured else [MAX_PARTITIONS, self.threads])
        return [self.threads << k for k in range(32) if self.threads << k <= most]

    def delay_s(self, size_bytes, partitions: int):
        return self.delay_rate(partitions // self.threads) * size_bytes / partitions

    def best(self, size_bytes: float) -> tuple[MethodModel, int]:
        """The method and number of partitions with the least time at a size, or with less work and at most
        WORTH more time."""
        times_s = self._times_s(size_bytes)
        of_method_s = np.nanmin(times_s, axis=1)
        k = worthwhile(self.models, of_method_s)
        p = int(np.argmax(times_s[k] <= of_method_s[k] / (1 - WORTH)))
        return self.models[k], self.partitions[p]

    def keeps(self, model: MethodModel, size_bytes: float) -> bool:
        """Whether no other method takes less by more than KEPT."""
        of_method_s = np.nanmin(self._times_s(size_bytes), axis=1)
        return bool((1 - KEPT) * of_method_s[self.models.index(model)] <= of_method_s.min())

    def _times_s(self, size_bytes: float) -> np.ndarray:
        """(W, P) seconds."""
        return np.array([[self._time_s(m, size_bytes, p) for p in self.partitions] for m in self.models])

    def _time_s(self, model: MethodModel, size_bytes: float, partitions: int) -> float:
        # Partitions have at least one byte; with fewer bytes than threads, one partition per thread remains.
        if size_bytes < partitions != self.threads:
            return np.nan
        return float(model.time_s(size_bytes, partitions, self.delay_s(size_bytes, partitions)))

    def best_partitions(self, model: MethodModel, size_bytes: int) -> int:
        """The smallest number within WORTH of the least time of a method, among those that divide the
        size."""
        possible = [p for p in self.partitions if size_bytes % p == 0 and size_bytes >= p] or [self.threads]
        times_s = [self._time_s(model, size_bytes, p) for p in possible]
        return next(p for p, t in zip(possible, times_s, strict=True) if t <= min(times_s) / (1 - WORTH))


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
    Advice whose first alternative has the least predicted time, or less work and at most WORTH more time;
    gains are over `single`. Crossovers cover 512 B to 1 GiB.
    """
    level = pipeline_level(profile, level)
    models, left_out = _comparable(method_models(profile, level, threads))
    question = _Question(models, threads, delay_rate, str(profile.context.get("flavour", "mpich")))
    alternatives = [_alternative(question, model, size_bytes) for model in models]
    ranked = _rank(alternatives, models)
    partitions = ranked[0].extra["partitions"]
    stretches = tuple(_stretches(question))
    return Advice(
        "pipeline",
        {"level": level, "threads": threads, "size_bytes": size_bytes} | (asked or {}),
        SINGLE,
        tuple(ranked),
        stretches,
        profile.id,
        (
            *left_out,
            *reservations(models, size_bytes, partitions, delay_rate(partitions // threads)),
            *_kept_beyond(stretches, ranked[0], size_bytes),
        ),
    )


def _kept_beyond(stretches: Sequence[Stretch], first: Alternative, size_bytes: int) -> list[str]:
    """Why the crossovers list another method at the requested size than the first of the ranking."""

    def named(one: Alternative | Stretch) -> str:
        return one.method + (f" with {one.extra['vcis']} contexts" if "vcis" in one.extra else "")

    return [
        f"in the table of sizes {named(stretch)} is kept for {format_bytes(size_bytes)} though "
        f"{named(first)} is "
        f"advised: at a crossover another method must take {KEPT:.0%} less"
        for stretch in stretches
        if stretch.from_bytes <= size_bytes < stretch.to_bytes and named(stretch) != named(first)
    ]


def _comparable(models: list[MethodModel]) -> tuple[list[MethodModel], list[str]]:
    """The methods to choose from, and notes on the methods left out.

    Latency and bandwidth come from another benchmark, and threads delay each other. So methods from levels,
    or measured with other threads, are not compared with two measured methods.
    """
    measured = [model for model in models if model.source != FROM_LEVELS]
    if len(measured) < 2:
        return models, []
    notes = []
    if unmeasured := _names(model for model in models if model not in measured):
        notes.append(
            f"not measured as pipelines and so left out: {unmeasured}; `earlybird measure pipeline -o RUN` "
            "measures them; fit that run too"
        )
    alike = [model for model in measured if model.source == measured[0].source]
    if len({model.method for model in alike}) < 2:
        return measured, notes
    if others := _names(model for model in measured if model not in alike):
        notes.append(
            f"measured with other threads than {measured[0].method} and so left out: {others}; `earlybird "
            "measure pipeline --threads T --methods all -o RUN` measures all with the same threads; fit "
            "that run too"
        )
    return alike, notes


def _names(models: Iterable[MethodModel]) -> str:
    return ", ".join(dict.fromkeys(model.method for model in models))


def _alternative(question: _Question, model: MethodModel, size_bytes: int) -> Alternative:
    partitions = question.best_partitions(model, size_bytes)
    delay_s = question.delay_s(size_bytes, partitions)
    bulk = [one for one in question.models if one.method == SINGLE][:1]
    found = predict_methods([*bulk, model], size_bytes, partitions, delay_s)[-1]
    extra: dict[str, Any] = {} if model.vcis is None else {"vcis": model.vcis}
    extra |= {
        "partitions": partitions,
        "messages": found.messages,
        "message_bytes": round(found.message_bytes),
        "source": found.source,
    }
    return Alternative(
        model.method,
        found.time_s,
        found.gain,
        how_to(model, partitions, question.mpi),
        found.time_interval_s,
        found.gain_interval,
        extra,
    )


def how_to(model: MethodModel, partitions: int, mpi: str) -> str:
    """The calls and settings to send with this method."""
    name, _, bound = model.method.partition(":")
    text = DO.get(name, name).format(partitions=partitions, mpi=mpi)
    settings = [f"EARLYBIRD_AGGR_SIZE={bound}"] if bound else []
    if model.vcis is not None and mpi == "intel":
        settings += ["I_MPI_THREAD_SPLIT=1", "I_MPI_THREAD_RUNTIME=generic", f"I_MPI_THREAD_MAX={model.vcis}"]
    elif model.vcis is not None:
        settings.append(f"MPIR_CVAR_CH4_NUM_VCIS={model.vcis}")
    return f"{text}; {' '.join(settings)}" if settings else text


def worthwhile(models: Sequence[MethodModel], time_s: Sequence[float]) -> int:
    """The index of the method with the least work among those that take at most WORTH more than the
    fastest."""
    near = [k for k, one_s in enumerate(time_s) if one_s <= min(time_s) / (1 - WORTH)]
    return min(near, key=lambda k: _work(models[k]))


def _rank(alternatives: list[Alternative], models: Sequence[MethodModel]) -> list[Alternative]:
    """The best alternative first, the others by time."""
    first = alternatives[worthwhile(models, [one.time_s for one in alternatives])]
    rest = sorted((one for one in alternatives if one is not first), key=lambda one: one.time_s)
    return [first, *rest]


def _stretches(question: _Question) -> list[Stretch]:
    """Stretches from small to large sizes: a method stays until another takes less by more than KEPT."""
    octaves = (LARGEST_BYTES // SMALLEST_BYTES).bit_length() - 1
    sizes = SMALLEST_BYTES * 2.0 ** (np.arange(octaves * _PER_OCTAVE + 1) / _PER_OCTAVE)
    found = question.best(sizes[0])
    begins = [(SMALLEST_BYTES, found)]
    for low, high in pairwise(sizes):
        if not question.keeps(found[0], high):
            low = _last_kept(question, found[0], low, high)
            found = question.best(high)
            begins.append((round(low), found))
    ends = [*(start for start, _ in begins[1:]), LARGEST_BYTES]
    return [_stretch(question, start, end, *found) for (start, found), end in zip(begins, ends, strict=True)]


def _last_kept(question: _Question, model: MethodModel, low: float, high: float) -> float:
    """The size up to which `model` is kept; it is at `low` and is not at `high`."""
    while high > low * (1 + _KNOWN_TO):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if question.keeps(model, middle) else (low, middle)
    return low


def _stretch(question: _Question, start: int, end: int, model: MethodModel, partitions: int) -> Stretch:
    extra: dict[str, Any] = {} if model.vcis is None else {"vcis": model.vcis}
    extra |= {"partitions": partitions, "source": model.source}
    if model.measured:
        low, high = model.measured["size_bytes"]
        extra["extrapolated"] = bool(start < low or end > high)
    return Stretch(start, end, model.method, how_to(model, partitions, question.mpi), extra)


def _work(model: MethodModel) -> tuple:
    name, _, bound = model.method.partition(":")
    place = _WORK.index(name) if name in _WORK else len(_WORK)
    return place, bool(bound), model.vcis or 0, model.method
