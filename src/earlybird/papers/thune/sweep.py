"""Figure 3 of Thune et al. 2023: three pairs with 2s, s and s/2 bytes, measured and by each model, over s."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.compare import compare_times, exchange_samples, measured_times
from earlybird.data import labels
from earlybird.data.comparison import Comparison
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes, format_seconds
from earlybird.papers.page import crowded_text, own_profiles, step_of
from earlybird.papers.thune.experiments import (
    FIGURE_3,
    PAIRS,
    middle_bytes,
    oversubscribed,
    sweep_layout,
    sweep_pattern,
)
from earlybird.predict import Predictor
from earlybird.present.core import axes
from earlybird.present.core.lines import line
from earlybird.present.core.notation import percent_text
from earlybird.present.core.parts import Figure, grouped
from earlybird.present.core.table import Table, text_table
from earlybird.present.material import Material, MeasuredRun, profile_mpi

_DASHES = {"staircase": "solid", "max-rate": "dash", "postal": "dot"}


@dataclass(frozen=True)
class Sweep:
    """The data of one MPI for figure 3: for each s, the measured and predicted times of the six ranks."""

    label: str
    comparisons: Mapping[int, Comparison]
    crowded: str  # that the ranks had too few cores; "" if they had enough

    @property
    def models(self) -> list[str]:
        first = next(iter(self.comparisons.values()))
        return [model for model in _DASHES if model in first.predicted_s]

    def error(self, model: str) -> float:
        """Return equation (11) over all ranks and sizes."""
        measured = np.concatenate([one.measured_s for one in self.comparisons.values()])
        predicted = np.concatenate([one.predicted_s[model] for one in self.comparisons.values()])
        return float(np.abs(measured - predicted).sum() / measured.sum())


def sweeps(material: Material) -> list[Sweep]:
    """Return the sweeps of the runs whose MPI has a profile that was fitted to others of these runs."""
    found = []
    for run in material.runs:
        if step_of(run) != FIGURE_3:
            continue
        by_mpi = grouped(exchange_samples(run.samples), lambda sample: str(sample.config.get("mpi", "")))
        for mpi, samples in by_mpi.items():
            profile = _profile_of(run, mpi, material)
            if profile is None:
                continue
            by_size = grouped(samples, middle_bytes)
            comparisons = {
                size: compare_times(measured_times(of_size), predictions)
                for size, of_size in sorted(by_size.items(), key=lambda item: item[0] or 0)
                if size is not None and (predictions := dict(_predictions(size, profile)))
            }
            if comparisons:
                crowded = crowded_text("ranks", run) if oversubscribed(samples) else ""
                found.append(Sweep(labels.flavour(mpi), comparisons, crowded))
    return found


def _profile_of(run: MeasuredRun, mpi: str, material: Material) -> Profile | None:
    """Return the profile of an MPI that was fitted to runs on the machine of `run`; None if there is none."""
    host = run.machine.get("host")
    here = replace(material, runs=tuple(one for one in material.runs if one.machine.get("host") == host))
    own = (profile for profile, _ in own_profiles(here))
    return next((profile for profile in own if profile_mpi(profile) == mpi), None)


def _predictions(size: int, profile: Profile) -> Iterator[tuple]:
    """Yield the prediction of each model that the profile allows for s = `size`."""
    predictor = Predictor(sweep_pattern(size), sweep_layout())
    for model in MODELS:
        if model in _DASHES:
            try:
                yield model, predictor.predict(profile, model)
            except InputError:
                continue  # such as without the level


def sweep_figures(all_sweeps: Sequence[Sweep]) -> list[Figure]:
    """Return figure 3 for each MPI: dots are measured, lines predicted."""
    if not all_sweeps:
        reason = "No run has its exchanges with a profile of the same MPI."
        return [Figure("thune-3", "Figure 3: three pairs", "", absence=reason)]
    return [_figure(k, sweep) for k, sweep in enumerate(all_sweeps)]


def _figure(k: int, sweep: Sweep) -> Figure:
    sizes = list(sweep.comparisons)
    data: list[dict[str, Any]] = []
    values: list[float] = []
    for pair, name in enumerate(PAIRS):
        color, symbol = axes.color(axes.series(pair)), axes.symbol(axes.series(pair))
        measured = [_of_pair(one.measured_s, pair) for one in sweep.comparisons.values()]
        texts = [_hover(name, size, value, "measured") for size, value in zip(sizes, measured, strict=True)]
        shown = axes.label(f"pair with {name}")
        markers = {"mode": "markers", "marker": {"color": color, "size": 8, "symbol": symbol}}
        data.append(line(f"{shown}, measured", sizes, measured, texts, color, symbol=symbol) | markers)
        values += measured
        for model in sweep.models:
            predicted = [_of_pair(one.predicted_s[model], pair) for one in sweep.comparisons.values()]
            texts = [_hover(name, size, value, model) for size, value in zip(sizes, predicted, strict=True)]
            data.append(line(f"{shown}, {model}", sizes, predicted, texts, color, _DASHES[model]))
            values += predicted
    crowded = f" {labels.capital(sweep.crowded)}: times include the scheduler's." if sweep.crowded else ""
    return Figure(
        f"thune-3-{k}",
        f"Figure 3: three pairs on a socket exchange 2s, s and s/2, {sweep.label}",
        "Dots: measured, medians over iterations, launches and the two ranks of a pair. Lines: solid "
        f"staircase, dashed max-rate, dotted postal.{crowded}",
        data,
        axes.layout(axes.size_axis(sizes, "s"), axes.log_time_axis(values, "time")),
    )


def _of_pair(times_s: np.ndarray, pair: int) -> float:
    return float(np.median(times_s[2 * pair : 2 * pair + 2]))


def _hover(name: str, size: int, value_s: float, what: str) -> str:
    return f"pair with {name}, s = {format_bytes(size)}<br>{what}: <b>{format_seconds(value_s)}</b>"


def sweep_table(sweep: Sweep) -> Table:
    """Return the times of the pairs and the errors of the models, for each s."""
    header = ["s", *PAIRS, *(f"error of {model}" for model in sweep.models)]
    rows = [
        [
            format_bytes(size),
            *(format_seconds(_of_pair(one.measured_s, pair)) for pair in range(len(PAIRS))),
            *(percent_text(one.error[model]) for model in sweep.models),
        ]
        for size, one in sweep.comparisons.items()
    ]
    return text_table(f"Figure 3, {sweep.label}: times of the pairs", header, rows)
