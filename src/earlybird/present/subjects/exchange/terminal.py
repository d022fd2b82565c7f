"""Prints the times of the ranks of an exchange: measured, predicted, or both next to each other."""

from collections.abc import Mapping

import numpy as np

from earlybird.compare import exchange_samples, measured_times
from earlybird.data.comparison import Comparison
from earlybird.data.exchange_models import with_reason
from earlybird.data.pattern import Pattern
from earlybird.data.prediction import Prediction
from earlybird.data.run import Run
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.table import text_table
from earlybird.present.render.data import Format, print_csv, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table, prints_all

# Tables of more ranks than MAX_RANKS show the slowest ones only.
MAX_RANKS, SLOWEST_RANKS = 32, 10


def print_prediction(prediction: Prediction, format: str, pattern: Pattern | None = None) -> None:
    """Print the times of every rank; notes, and the amount of messages of a known pattern, on stderr."""
    for reservation in prediction.extra.get("notes", ()):
        note(f"warning: {reservation}")
    time_s, interval_s = prediction.time_s, prediction.time_interval_s
    names = ("receive_s", "intra_node_s", "inter_node_s")
    columns = {"time_s": time_s} | {name: getattr(prediction, name) for name in names}
    if prediction.overlap_s is not None:
        columns["overlap_s"] = prediction.overlap_s
    if interval_s is not None:
        columns |= {"time_low_s": interval_s[:, 0], "time_high_s": interval_s[:, 1]}
    if format == Format.json:
        print_json(prediction.to_json())
    elif format == Format.csv:
        _print_csv(columns)
    else:
        shown = np.arange(len(time_s))
        if len(shown) > MAX_RANKS and not prints_all():
            shown = _slowest(time_s, SLOWEST_RANKS)
            note(f"the {SLOWEST_RANKS} slowest of {len(time_s)} ranks; --all prints all")
        _print_table(columns, shown)
        slowest = prediction.slowest_rank
        amount = f"; {pattern.num_messages} messages, {format_bytes(pattern.total_bytes)}" if pattern else ""
        time = format_seconds(time_s[slowest])
        model = with_reason(prediction.model, prediction.extra)
        note(f"{model}: the slowest rank is {slowest} with {time}{amount}")


def print_measured(run: Run, format: str) -> None:
    """Print the time of every rank of an exchange without prediction."""
    samples = run.samples()
    times_s = measured_times(exchange_samples(samples))
    columns = {"measured_s": times_s}
    if without_data := exchange_samples(samples, empty=True):
        columns["empty_s"] = measured_times(without_data)
    if format == Format.json:
        slowest = int(times_s.argmax())
        lists = {name: values_s.tolist() for name, values_s in columns.items()}
        print_json({"run": str(run.path), **lists, "slowest_rank": slowest})
    elif format == Format.csv:
        _print_csv(columns)
    else:
        _print_with_slowest(columns)
        print_line()
        print_line("add --profile PROFILE.json to compare with a prediction")


def print_comparison(comparison: Comparison, format: str) -> None:
    """Print measured and predicted times of every rank, and the errors of the models."""
    columns = {"measured_s": comparison.measured_s}
    if comparison.empty is not None:
        columns["empty_s"] = comparison.empty.measured_s
    columns |= {f"{model}_s": times_s for model, times_s in comparison.predicted_s.items()}
    if format == Format.json:
        print_json(comparison.to_json())
    elif format == Format.csv:
        _print_csv({name.replace("-", "_"): times_s for name, times_s in columns.items()})
    else:
        _print_with_slowest(columns)
        print_line()
        print_errors(comparison)
        if default := comparison.extra.get("default_model"):
            errors = (comparison.empty or comparison).error
            better = any(error < errors.get(default, 0) for error in errors.values())
            store = "; `earlybird fit RUN... REPLAY` makes the model that errs least the default"
            note(f"predict's default here: {with_reason(default, comparison.extra)}{store if better else ''}")


def print_comparison_of_file(comparison: Comparison, format: str) -> None:
    """Print a comparison with its notes, which a replay has printed while it ran."""
    for difference in comparison.extra.get("notes", ()):
        note(f"warning: {difference}")
    print_comparison(comparison, format)


def print_errors(comparison: Comparison) -> None:
    """Error (11) and the slowest rank's error of every model, best first, also over the exchange of empty
    messages if that was measured."""
    errors = {model: (error, comparison.slowest_error[model]) for model, error in comparison.error.items()}
    if empty := comparison.empty:
        errors |= {
            f"{model} over empty": (error, empty.slowest_error[model]) for model, error in empty.error.items()
        }
    rows = [
        [model, f"{error:.1%}", f"{slowest:+.1%}"]
        for model, (error, slowest) in sorted(errors.items(), key=lambda item: item[1])
    ]
    print_table(text_table("", ["model", "error (11)", "slowest rank"], rows))
    if empty:
        note(f"{comparison.describe_empty()}; `over empty` adds the data to that")


def _print_csv(columns: Mapping[str, np.ndarray]) -> None:
    ranks = enumerate(zip(*(times_s.tolist() for times_s in columns.values()), strict=True))
    names = ("rank", *columns)
    print_csv([dict(zip(names, (rank, *times_s), strict=True)) for rank, times_s in ranks], names)


def _print_table(columns: Mapping[str, np.ndarray], shown: np.ndarray) -> None:
    header = ["rank", *(name.removesuffix("_s").replace("_", "-") for name in columns)]
    rows = [[rank, *(format_seconds(times_s[rank]) for times_s in columns.values())] for rank in shown]
    print_table(text_table("", header, rows))


def _slowest(times_s: np.ndarray, number: int) -> np.ndarray:
    return np.argsort(-times_s, kind="stable")[:number]


def _print_with_slowest(columns: Mapping[str, np.ndarray]) -> None:
    measured_s = columns["measured_s"]
    shown = np.arange(len(measured_s))
    if len(shown) > MAX_RANKS and not prints_all():
        shown = _slowest(measured_s, MAX_RANKS)
        print_line(f"the {MAX_RANKS} slowest of {len(measured_s)} ranks:")
    _print_table(columns, shown)
    slowest = int(measured_s.argmax())
    others_wait_s = float((measured_s.max() - measured_s).sum()) / max(len(measured_s) - 1, 1)
    print_line(
        f"slowest: rank {slowest}, {format_seconds(measured_s[slowest])}; the other ranks wait for it "
        f"{format_seconds(others_wait_s)} on average"
    )
