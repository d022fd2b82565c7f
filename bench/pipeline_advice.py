"""The joined model of pipelines and the method it advises, compared with the grid of `partitioned-grid`.

Cells are divided as a chessboard is, by size, partitions and delay. The model is fitted to one half; for
every cell of the other half its advice is compared with the method that was measured to be the quickest
there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas

from bench.partitioned_grid import geometric_mean, run_with
from earlybird.advise.pipelined import worthwhile
from earlybird.cli.common import print_table
from earlybird.compare.ratios import paired_ratio
from earlybird.data.methods import SINGLE
from earlybird.data.profile import Profile
from earlybird.data.run import Sample, median_of_launches
from earlybird.data.units import format_bytes
from earlybird.fit.pipelined import COLUMNS, pipeline_forms
from earlybird.predict.pipelined import MethodModel, method_models

# Created again every second start: never advised.
LEFT_OUT = ("earlybird-fresh",)
ASKED_ERROR, ASKED_SLOWER = 0.15, 1.10

Where = tuple[int, int, float]  # bytes, partitions, delay rate


@dataclass(frozen=True)
class Cell:
    """One cell of one MPI: seconds of each method, medians over launches; and the same as ratios to `single`,
    taken round by round, times its seconds."""

    where: Where
    level: str
    time_s: Mapping[str, float]
    paired_s: Mapping[str, float]

    @property
    def delay_s(self) -> float:
        size_bytes, partitions, gamma = self.where
        return gamma * size_bytes / partitions

    def describe(self) -> str:
        size_bytes, partitions, gamma = self.where
        return f"{format_bytes(size_bytes)} in {partitions}, {gamma * 1e12:.0f} us/MB"


@dataclass(frozen=True)
class Choice:
    """What is advised for a cell and what was the quickest there, with how much longer the first takes."""

    cell: Cell
    advised: str
    quickest: str
    slower: float


def main(words: Sequence[str] = ()) -> int:
    """Measure the grid, or read it, and print errors and choices for each MPI."""
    return run_with("pipeline-advice", __doc__, words, _report)


def cells_of(samples: Iterable[Sample]) -> list[Cell]:
    """The cells of one MPI in order of size, partitions and delay rate."""
    by_cell: dict[tuple, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if sample.method not in LEFT_OUT:
            config = sample.config
            where = config["size_bytes"], config["partitions"], config["gamma_s_per_byte"]
            by_cell[where, config["level"]][sample.method].append(sample)
    return [_cell(where, level, methods) for (where, level), methods in sorted(by_cell.items())]


def _cell(where: Where, level: str, methods: Mapping[str, list[Sample]]) -> Cell:
    time_s = {method: median_of_launches(found) for method, found in methods.items()}
    ratios = {
        method: paired_ratio(found, methods[SINGLE]) for method, found in methods.items() if SINGLE in methods
    }
    paired_s = {method: ratio.value * time_s[SINGLE] for method, ratio in ratios.items() if ratio is not None}
    return Cell(where, level, time_s, paired_s | ({SINGLE: time_s[SINGLE]} if SINGLE in methods else {}))


def halves(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """The two colours of the chessboard."""
    places = [{value: k for k, value in enumerate(sorted({c.where[d] for c in cells}))} for d in range(3)]
    colour = [sum(place[value] for place, value in zip(places, c.where, strict=True)) % 2 for c in cells]
    return [c for c, k in zip(cells, colour, strict=True) if k == 0], [
        c for c, k in zip(cells, colour, strict=True) if k == 1
    ]


def table_of(samples: Iterable[Sample], cells: Iterable[Cell]) -> pandas.DataFrame:
    """The samples of these cells as `fit` reads them."""
    wanted = {cell.where for cell in cells}
    rows = []
    for sample in samples:
        config = sample.config
        where = config["size_bytes"], config["partitions"], config["gamma_s_per_byte"]
        if where in wanted and sample.method not in LEFT_OUT:
            rows.append(
                (sample.method, config["level"], threads_of(sample), 0, *where, sample.launch,
                 sample.median_s(),
                 sample.oversubscribed)
            )  # fmt: skip
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def models_of(table: pandas.DataFrame) -> list[MethodModel]:
    """The joined model of each method, fitted to `table`."""
    forms = tuple(form.to_json() for form in pipeline_forms(table))
    return method_models(Profile({}, forms=forms), table.level.iloc[0], int(table.threads.iloc[0]))


def threads_of(sample: Sample) -> int:
    """Of every rank; grids of before there was a choice had one."""
    return sample.config.get("threads", 1)


def errors_of(models: Iterable[MethodModel], cells: Iterable[Cell]) -> dict[str, float]:
    """Median relative error of each method over cells."""
    cells = list(cells)
    return {
        model.method: float(np.median([_error(model, c) for c in cells if model.method in c.time_s]))
        for model in models
    }


def _error(model: MethodModel, cell: Cell) -> float:
    return abs(_predicted_s(model, cell) / cell.time_s[model.method] - 1)


def _predicted_s(model: MethodModel, cell: Cell) -> float:
    size_bytes, partitions, _ = cell.where
    return float(model.time_s(size_bytes, partitions, cell.delay_s))


def choices_of(models: Sequence[MethodModel], cells: Iterable[Cell]) -> list[Choice]:
    """What the models advise for each of `cells`, of the methods that were measured there."""
    return [_choice(models, cell) for cell in cells if len(cell.paired_s) > 1]


def _choice(models: Sequence[MethodModel], cell: Cell) -> Choice:
    known = [model for model in models if model.method in cell.paired_s]
    advised = known[worthwhile(known, [_predicted_s(model, cell) for model in known])].method
    quickest = min(cell.paired_s, key=cell.paired_s.get)
    return Choice(cell, advised, quickest, cell.paired_s[advised] / cell.paired_s[quickest])


def free_choices_of(models: Sequence[MethodModel], cells: Iterable[Cell]) -> list[Choice]:
    """The same for each size and delay rate, the number of partitions advised too.

    Times are compared as multiples of `single` in their own cell: one message does not depend on partitions,
    and where its times differ from cell to cell, what was measured before them does (a link's bucket).
    """
    groups: dict[tuple, list[Cell]] = defaultdict(list)
    for cell in cells:
        if len(cell.paired_s) > 1:
            groups[cell.where[0], cell.where[2]].append(cell)
    choices = []
    for group in groups.values():
        options = [(m, c) for c in group for m in models if m.method in c.paired_s]
        predicted_s = [_predicted_s(model, cell) for model, cell in options]
        model, cell = options[worthwhile([model for model, _ in options], predicted_s)]
        multiples = {
            (method, c.where[1]): s / c.paired_s[SINGLE] for c in group for method, s in c.paired_s.items()
        }
        quickest, best_partitions = min(multiples, key=multiples.get)
        slower = multiples[model.method, cell.where[1]] / multiples[quickest, best_partitions]
        choices.append(
            Choice(cell, f"{model.method} in {cell.where[1]}", f"{quickest} in {best_partitions}", slower)
        )
    return choices


def _report(mpi: str, samples: list[Sample]) -> None:
    cells = cells_of(samples)
    fitted, judged = halves(cells)
    whole, half = models_of(table_of(samples, cells)), models_of(table_of(samples, fitted))
    of_grid, of_fitted, of_judged = (
        errors_of(whole, cells), errors_of(half, fitted), errors_of(half, judged)
    )  # fmt: skip
    threads = threads_of(samples[0])
    print(
        f"\n{mpi}, {cells[0].level}, {threads} thread{'' if threads == 1 else 's'}: median relative error of "
        f"the joined model, {len(cells)} cells"
    )
    print_table(
        ["method", "fitted to all", "", "fitted to half", "the other half"],
        [
            [method, _per_cent(error), _verdict(error <= ASKED_ERROR), _per_cent(of_fitted[method]),
             _per_cent(of_judged[method])]
            for method, error in of_grid.items()
        ],
    )  # fmt: skip
    print(f"asked: at most {_per_cent(ASKED_ERROR)} over the grid")
    choices, free = choices_of(half, judged), free_choices_of(half, judged)
    slower = geometric_mean([choice.slower for choice in choices])
    right = sum(choice.advised == choice.quickest for choice in choices)
    worst = max(choices, key=lambda choice: choice.slower)
    print(
        f"the method advised takes {slower:.3f} times the quickest measured one, geometric mean of "
        f"{len(choices)} cells not fitted to (asked: at most {ASKED_SLOWER:.2f}, "
        f"{_verdict(slower <= ASKED_SLOWER)}); the quickest itself in {right}"
    )
    print(f"worst: {worst.advised} for {worst.quickest}, {worst.slower:.2f} times, {worst.cell.describe()}")
    print(
        f"method and partitions advised together: {geometric_mean([choice.slower for choice in free]):.3f} "
        f"times, {len(free)} sizes and delays"
    )
    always = {
        method: geometric_mean([c.cell.paired_s[method] / min(c.cell.paired_s.values()) for c in choices])
        for method in of_grid
        if all(method in choice.cell.paired_s for choice in choices)
    }
    if any(sample.oversubscribed for sample in samples):
        print("threads shared cores: these figures tell of the scheduler too")
    print("always the same method: " + ", ".join(f"{method} {ratio:.3f}" for method, ratio in always.items()))


def _per_cent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
