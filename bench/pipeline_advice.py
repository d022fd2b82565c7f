"""Advice on pipelines, judged by what it was not given: coverage of its intervals, and how often it lost.

Cells of the grid of `partitioned-grid` are divided as a chessboard is, by size, partitions and delay. A
profile is made of one half; for every cell of the other half its predicted speed-ups and its advice are
compared with the measured ones, and the reverse. The same is done with the launches: a profile of every
second launch is judged by the others at the very points that it measured, once with the partitions given and
once with the partitions advised, too."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas

from bench.partitioned_grid import geometric_mean, run_with
from earlybird.advise import options
from earlybird.advise.options import Option
from earlybird.advise.pipelined import pipeline_question
from earlybird.compare.results import results
from earlybird.data import labels
from earlybird.data.methods import SINGLE
from earlybird.data.profile import Profile
from earlybird.data.results import Result, results_to_json
from earlybird.data.run import Sample
from earlybird.data.units import format_bytes
from earlybird.fit.pipelined import COLUMNS, pipeline_forms
from earlybird.present.render.terminal import print_rows

# Created again every second start: never advised.
LEFT_OUT = ("earlybird-fresh",)
ASKED_COVERAGE, ASKED_LOST = 0.90, 0.02

Where = tuple[int, int, float]  # bytes, partitions, delay rate


@dataclass(frozen=True)
class Prediction:
    """One method at one cell: predicted speed-up with its interval, and the measured one."""

    where: Where
    method: str
    predicted: tuple[float, float, float]
    measured: float

    @property
    def is_covered(self) -> bool:
        _, low, high = self.predicted
        return low <= self.measured <= high


@dataclass(frozen=True)
class Choice:
    """The method advised for one cell, with its measured speed-up and that of the fastest method there."""

    where: Where
    advised: str
    speed_up: float
    fastest: str
    best_speed_up: float

    def describe(self) -> str:
        size_bytes, partitions, gamma = self.where
        where = f"{format_bytes(size_bytes)} in {partitions}, {gamma * 1e12:.0f} us/MB"
        return f"{self.advised} for {self.fastest}, speed-up {self.speed_up:.2f}, {where}"


@dataclass(frozen=True)
class Asked:
    """What is offered for one cell, and the measured speed-up."""

    where: Where
    method: str
    option: Option
    speed_up: float


@dataclass
class Judgement:
    """All predictions and choices of one kind of comparison."""

    predictions: list[Prediction] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)

    def coverage(self) -> float:
        return float(np.mean([prediction.is_covered for prediction in self.predictions]))

    def error(self) -> float:
        """The median of |predicted/measured - 1|."""
        return float(np.median([abs(one.predicted[0] / one.measured - 1) for one in self.predictions]))

    def lost(self) -> list[Choice]:
        """Advice against the single message that was slower than it."""
        return [choice for choice in self.choices if choice.advised != SINGLE and choice.speed_up < 1]


def main(arguments: Sequence[str] = ()) -> int:
    """Measure the grid, or read it, and print coverage and losses for each MPI."""
    return run_with("pipeline-advice", __doc__, arguments, _report)


def where_of(config) -> Where:
    return config["size_bytes"], config["partitions"], config["gamma_s_per_byte"]


def halves(wheres: Iterable[Where]) -> tuple[set[Where], set[Where]]:
    """The two colours of the chessboard."""
    wheres = set(wheres)
    places = [{value: k for k, value in enumerate(sorted({one[d] for one in wheres}))} for d in range(3)]
    colour = {one: sum(places[d][one[d]] for d in range(3)) % 2 for one in wheres}
    return {one for one in wheres if colour[one] == 0}, {one for one in wheres if colour[one] == 1}


def profile_of(samples: Sequence[Sample], found: Sequence[Result]) -> Profile:
    """The profile that `fit` makes of these samples."""
    rows = [
        (sample.method, sample.config["level"], sample.config.get("threads", 1), 0, *where_of(sample.config),
         sample.launch, sample.median_s(), sample.oversubscribed)
        for sample in samples
    ]  # fmt: skip
    table = pandas.DataFrame(rows, columns=list(COLUMNS))
    forms = tuple(pipeline_forms(table))
    return Profile({}, forms=forms, extra={"results": results_to_json(found)})


def judge(
    given: Sequence[Sample], held_out: Sequence[Sample], judgement: Judgement, is_free: bool = False
) -> None:
    """Compare the advice of a profile of `given` with the results of `held_out`: for every cell, or if
    `is_free`
    for every size and delay with all numbers of partitions to choose from."""
    profile = profile_of(given, results(given))
    cells: dict[Where, dict[str, Result]] = defaultdict(dict)
    for result in results(held_out):
        cells[where_of(result.config)][result.method] = result
    config = given[0].config
    asked: dict[tuple, list[Option]] = defaultdict(list)
    for where, measured in cells.items():
        size_bytes, partitions, gamma = where
        question, _ = pipeline_question(
            profile, config.get("threads", 1), lambda _, gamma=gamma: gamma, config["level"]
        )
        for model in question.models:
            speed_up = _speed_up(measured[model.method]) if model.method in measured else None
            if SINGLE in measured and speed_up is not None:
                option = question.candidate(model, size_bytes, partitions).option
                key = (size_bytes, gamma) if is_free else where
                asked[key].append(Asked(where, model.method, option, speed_up))
    for offered in asked.values():
        judgement.predictions += [
            Prediction(one.where, one.method, tuple(one.option.speed_up), one.speed_up)
            for one in offered
            if one.method != SINGLE
        ]
        if len({one.method for one in offered}) > 1:
            advised = offered[options.choose([one.option for one in offered])]
            fastest = max(offered, key=lambda one: one.speed_up)
            judgement.choices.append(
                Choice(advised.where, advised.method, advised.speed_up, fastest.method, fastest.speed_up)
            )


def _speed_up(result: Result) -> float | None:
    return 1.0 if result.method == SINGLE else result.speed_up and result.speed_up.value


def by_cells(samples: Sequence[Sample]) -> Judgement:
    """Both halves of the chessboard, each judged by the other."""
    judgement = Judgement()
    first, second = halves(where_of(sample.config) for sample in samples)
    for given, held_out in ((first, second), (second, first)):
        judge(
            [sample for sample in samples if where_of(sample.config) in given],
            [sample for sample in samples if where_of(sample.config) in held_out],
            judgement,
        )
    return judgement


def by_launches(samples: Sequence[Sample], is_free: bool = False) -> Judgement:
    """Every second launch of each kind, judged by the others, and the reverse; see `judge` for `is_free`."""
    judgement = Judgement()
    # Launches are named MPI-NUMBER-KIND; both kinds of a number belong together.
    number = {sample.launch: int(sample.launch.rsplit("-", 2)[1]) for sample in samples}
    parts = [[sample for sample in samples if number[sample.launch] % 2 == k] for k in (0, 1)]
    if all(parts):
        for given, held_out in (parts, parts[::-1]):
            judge(given, held_out, judgement, is_free)
    return judgement


def _report(mpi: str, samples: list[Sample]) -> None:
    samples = [sample for sample in samples if sample.method not in LEFT_OUT]
    threads = samples[0].config.get("threads", 1)
    launches = len({sample.launch for sample in samples if sample.method == "earlybird"})
    noisy = sum(not sample.converged for sample in samples) / len(samples)
    print(
        f"\n{mpi}, {labels.level(samples[0].config['level'])}, {labels.counted(threads, 'thread')}: "
        f"{labels.counted(launches, 'launch', 'launches')}, {noisy:.0%} of the samples noisy"
        + (", threads shared cores" if any(sample.oversubscribed for sample in samples) else "")
    )
    rows, lines = [], []
    judgements = {
        "cells left out": by_cells(samples),
        "launches left out": by_launches(samples),
        "the same, partitions advised": by_launches(samples, is_free=True),
    }
    for name, judgement in judgements.items():
        if not judgement.predictions:
            continue
        lost = judgement.lost()
        share = len(lost) / len(judgement.choices)
        given = [choice for choice in judgement.choices if choice.advised != SINGLE]
        rows.append([
            name, len(judgement.predictions), f"{judgement.error():.1%}", f"{judgement.coverage():.1%}",
            len(judgement.choices), len(given), f"{share:.1%}",
            f"{geometric_mean([choice.speed_up for choice in judgement.choices]):.3f}",
            f"{geometric_mean([choice.best_speed_up for choice in judgement.choices]):.3f}",
        ])  # fmt: skip
        lines.append(
            f"{name}: coverage {_verdict(judgement.coverage() >= ASKED_COVERAGE)}, "
            f"advice that lost {_verdict(share <= ASKED_LOST)}"
        )
        lines += [f"  lost: {choice.describe()}" for choice in sorted(lost, key=lambda one: one.speed_up)[:3]]
    print_rows(
        ["", "predictions", "median error", "covered", "cells", "advised a change", "lost", "speed-up",
         "of the fastest"],
        rows,
    )  # fmt: skip
    for line in lines:
        print(line)
    print(f"asked: at least {ASKED_COVERAGE:.0%} covered, at most {ASKED_LOST:.0%} lost")


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
